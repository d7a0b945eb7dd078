"""The house rules as tests: markers only in grammar files, imports down one list, no regex that can run away."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

import streamscrub
from fuzz.literals import GRAMMARS, strings_of

PACKAGE: Final = Path(streamscrub.__file__).resolve().parent
ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = sorted(PACKAGE.rglob("*.py"))
WRITTEN: Final = [path for path in SOURCES if path.stat().st_size]

# Imports go to earlier modules of this list only. A folder is one entry.
ORDER: Final = (
    "nudges",
    "events",
    "records",
    "limits",
    "endings",
    "tools",
    "sentinels",
    "reading",
    "jsontext",
    "edits",
    "jsonfix",
    "linefix",
    "repeats",
    "repair",
    "names",
    "shapes",
    "attributes",
    "bodies",
    "blocks",
    "frames",
    "lines",
    "modelids",
    "fileforms",
    "spellings",
    "templates",
    "grammar",
    "tables",
    "union",
    "writing",
    "resolve",
    "machine",
    "scrubber",
    "stream",
    "models",
    "pages",
    "host",
    "dialects",
    "console",
    "host_verbs",
    "dialect_verbs",
    "cli",
)
# Section "The surface" of DESIGN.md, and the events. Nothing else is promised.
DOCUMENTED: Final = {
    "ArgumentsDelta",
    "CallStarted",
    "Dropped",
    "Event",
    "Grammar",
    "GrammarError",
    "Reasoning",
    "RejectedCall",
    "Repair",
    "Scrubbed",
    "StreamScrubber",
    "Text",
    "Tool",
    "ToolCall",
    "awrap",
    "calls_of",
    "scrub",
    "text_of",
    "wrap",
}
_MARKER: Final = re.compile(r"[<\[|]|[｜‖▁«»【】〈〉⟨⟩]")


def module_of(path: Path) -> str:
    """The name of a module inside the package, dotted; "" for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def wire_markers() -> set[str]:
    """The literals of all grammar files that are long and strange enough to be searched for in the sources."""
    found: set[str] = set()
    for path in GRAMMARS.glob("*.toml"):
        for _, literal in strings_of(tomllib.loads(path.read_text(encoding="utf-8"))):
            found.update(part for part in re.split(r"\{\w+\}", literal.strip()) if is_marker(part))
    return found


def is_marker(literal: str) -> bool:
    return len(literal) >= 4 and _MARKER.search(literal) is not None


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_no_marker_stands_in_a_source_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert sorted(marker for marker in wire_markers() if marker in text) == []


def test_the_search_for_markers_would_find_one() -> None:
    markers = wire_markers()
    assert {"<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<|im_end|>"} <= markers


def imports_of(path: Path) -> Iterator[str]:
    """The modules of this package that a file imports, dotted, wherever the import stands."""
    here = ("streamscrub", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *(node.module or "").split("."))).strip(".")
            # `from . import x`: x may be a module.
            targets = [stem if node.module else f"{stem}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            if target.startswith("streamscrub."):
                yield target.removeprefix("streamscrub.")


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name not in ("__init__.py", "__main__.py")], ids=module_of)
def test_imports_go_down_the_list(path: Path) -> None:
    own = module_of(path).split(".")[0]
    assert own in ORDER, f"{own} is not in the list of modules"
    earlier = ORDER[: ORDER.index(own) + 1]
    assert [target for target in imports_of(path) if target.split(".")[0] not in earlier] == []


@pytest.mark.parametrize("path", WRITTEN, ids=module_of)
def test_a_module_begins_with_one_sentence(path: Path) -> None:
    first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]
    assert first.endswith((".", "`.", "?"))


@pytest.mark.parametrize("path", WRITTEN, ids=module_of)
def test_annotations_are_postponed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(ast.parse(text).body) == 1 or "from __future__ import annotations" in text


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}), ids=lambda path: path.name)
def test_no_public_name_of_a_package_hides_a_module_of_it(folder: Path) -> None:
    package = importlib.import_module(".".join(folder.relative_to(PACKAGE.parent).parts))
    assert set(getattr(package, "__all__", ())) & {path.stem for path in folder.iterdir()} == set()


# Patterns


def package_modules() -> list[Any]:
    names = [info.name for info in pkgutil.walk_packages([str(PACKAGE)], "streamscrub.")]
    return [streamscrub, *(importlib.import_module(name) for name in names if not name.endswith("__main__"))]


def patterns_in(value: Any, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict) and depth:
        for item in value.values():
            yield from patterns_in(item, depth - 1)
    elif isinstance(value, (list, tuple, set, frozenset)) and depth:
        for item in value:
            yield from patterns_in(item, depth - 1)
    elif isinstance(value, type) and value.__module__.startswith("streamscrub") and depth:
        for item in vars(value).values():
            yield from patterns_in(item, depth - 1)


def literal_patterns() -> Iterator[tuple[str, str | bytes, int]]:
    """(where, pattern, flags) of every ``re`` call with a literal pattern, module level or not."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.args
                and isinstance(node.args[0], ast.Constant)
                and isinstance(node.args[0].value, (str, bytes))
            ):
                yield f"{module_of(path)}:{node.lineno}", node.args[0].value, 0


def all_patterns() -> list[tuple[str, str | bytes, int]]:
    compiled = [
        (
            module.__name__,
            pattern.pattern,
            pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags,
        )
        for module in package_modules()
        for value in vars(module).values()
        for pattern in patterns_in(value)
    ]
    return [*compiled, *literal_patterns()]


def runaway(parsed: Any, inside_repeat: bool = False) -> bool:
    """True if an unbounded repeat stands inside an unbounded repeat and neither gives up its choices at once."""
    for operation, argument in parsed:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            _, most, inner = argument
            unbounded = int(most) > 512
            if unbounded and inside_repeat:
                return True
            if runaway(inner, inside_repeat or unbounded):
                return True
        elif name == "POSSESSIVE_REPEAT":
            if runaway(argument[2], False):
                return True
        elif name == "ATOMIC_GROUP":
            if runaway(argument, False):
                return True
        elif name == "SUBPATTERN":
            if runaway(argument[3], inside_repeat):
                return True
        elif name == "BRANCH":
            if any(runaway(branch, inside_repeat) for branch in argument[1]):
                return True
        elif name in ("ASSERT", "ASSERT_NOT"):
            if runaway(argument[1], False):
                return True
        elif name == "GROUPREF_EXISTS" and any(runaway(branch, inside_repeat) for branch in argument[1:] if branch):
            return True
    return False


def is_runaway(pattern: str | bytes, flags: int = 0) -> bool:
    parser: Any = importlib.import_module("re._parser")
    return runaway(parser.parse(pattern, flags))


def test_no_pattern_has_a_repeat_inside_a_repeat() -> None:
    found = {(where, pattern) for where, pattern, flags in all_patterns() if is_runaway(pattern, flags)}
    assert set() == found


def test_no_pattern_looks_lazily_for_a_tag() -> None:
    lazy = re.compile(rb"\.[*+]\?")
    found = {
        (where, pattern)
        for where, pattern, _ in all_patterns()
        if lazy.search(pattern.encode() if isinstance(pattern, str) else pattern)
    }
    assert set() == found


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ('"(?:[^"\\\\]+|\\\\.)*"', True),
        ('"(?:[^"\\\\]++|\\\\.)*+"', False),
        ("(?:a*)*", True),
        ("(?:(?>a*))*", False),
        ("a*b*", False),
        ("(?:ab?)*", False),
        ("(?:a{1,128}b)*", False),
    ],
)
def test_the_walk_tells_runaway_patterns(pattern: str, expected: bool) -> None:
    assert expected == is_runaway(pattern)


# The surface


def test_all_is_what_is_documented() -> None:
    assert set(streamscrub.__all__) - {"__version__"} == DOCUMENTED
    assert list(streamscrub.__all__) == sorted(streamscrub.__all__)


@pytest.mark.parametrize("name", sorted(DOCUMENTED))
def test_every_documented_name_is_importable_and_described(name: str) -> None:
    value = getattr(streamscrub, name)
    if callable(value):
        assert value.__doc__


def test_importing_the_package_imports_no_third_party_module() -> None:
    code = (
        "import sys, streamscrub; "
        "print([m for m in ('json_repair', 'rapidfuzz', 'regex', 'hypothesis', 'pytest') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert printed.strip() == "[]"


def test_a_new_scrubber_imports_no_test_module() -> None:
    code = "import sys; from streamscrub import StreamScrubber as S; S().feed('a'); print('hypothesis' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert printed.strip() == "False"


def test_the_package_is_typed_and_has_a_version() -> None:
    assert (PACKAGE / "py.typed").exists()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", project["version"])
    assert f"[{project['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_limit_says_why() -> None:
    lines = (PACKAGE / "limits.py").read_text(encoding="utf-8").split("\n")
    bare = [
        line for before, line in pairwise(lines) if re.match(r"[A-Z_]+: Final", line) and not before.startswith("#")
    ]
    assert bare == []
