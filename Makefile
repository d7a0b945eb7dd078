# Nothing but Python >= 3.11 and make is assumed. `make demo` installs the runtime dependencies, the rest also the
# development tools, both into .venv.
PYTHON ?= python3
SECONDS_EACH ?= 60
BIN := .venv/bin

.PHONY: demo test differential bench repairs fuzz lint formats wheel clean

demo: .venv/runtime
	$(BIN)/streamscrub demo

test: .venv/development
	$(BIN)/python -m pytest -q

# The tests that need the packages of others. trl is a folder of chat templates here: its dependencies are not needed.
differential: .venv/differential
	$(BIN)/python -m pytest -q -m slow

bench: .venv/development
	$(BIN)/python -m benchmarks

# The table of docs/repairs.md.
repairs: .venv/development
	$(BIN)/python -m benchmarks.repairs --write

fuzz: .venv/development
	$(BIN)/python -m fuzz --seconds $(SECONDS_EACH)

lint: .venv/development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The page of all wire formats, from the grammar files.
formats: .venv/development
	$(BIN)/streamscrub grammars --markdown > docs/formats.md.new && mv docs/formats.md.new docs/formats.md

# The wheel must work where no checkout is near: a clean environment, run from another folder.
wheel: .venv/development
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist .
	clean=$$(mktemp -d) && trap 'rm -rf "$$clean"' EXIT && wheel="$$PWD/$$(ls dist/*.whl)" && \
	$(PYTHON) -m venv "$$clean/venv" && \
	"$$clean/venv/bin/pip" install --quiet --disable-pip-version-check "$$wheel" && \
	cd "$$clean" && "$$clean/venv/bin/streamscrub" check

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'streamscrub needs Python 3.11 or newer: make PYTHON=python3.12 ...' >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/runtime: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/development: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch .venv/runtime $@

.venv/differential: .venv/development
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[differential]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps trl==1.16.0
	touch $@

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .hypothesis .pytest_cache .benchmarks .coverage
