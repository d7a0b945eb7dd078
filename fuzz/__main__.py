"""Runs the targets over mutations of their corpus: ``python -m fuzz [target ...] --seconds 60``.

With Atheris installed its coverage-guided engine is used (one process a target); ``--own`` insists on the mutator
below, which needs nothing and is good enough to find what a test forgot. An input that fails is written to the corpus,
where ``tests/test_fuzz_corpus.py`` replays it from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from . import CORPUS, TARGETS, target
from .literals import marker_literals

MAX_LENGTH: Final = 2048
WORDS: Final = (
    b"<", b">", b"</", b"<|", b"|>", b"`", b"```", b"\n", b" ", b"{", b"}", b"[", b"]", b'"', b"\\", b"'", b":", b",",
    b'{"name": "find", "arguments": {"q": "a"}}', b'{"name": "ping", "arguments": {}}', b"find", b"ping", b"\xff",
    b"\xef\xbd", b"\x00", b"null", b"True", b"1e9", b"\\u", b"//", b"#",
)  # fmt: skip


def mutated(seed: bytes, other: bytes, words: list[bytes], draw: random.Random) -> bytes:
    """A few random changes: cut, repeat, splice, insert a word, change a byte."""
    data = bytearray(seed)
    for _ in range(draw.choice((1, 1, 2, 3, 5, 8))):
        at = draw.randint(0, len(data))
        end = min(len(data), at + draw.choice((1, 1, 2, 4, 16, 64)))
        kind = draw.randint(0, 5)
        if kind == 0:
            del data[at:end]
        elif kind == 1:
            data[at:at] = data[at:end] * draw.choice((1, 2, 3, 20))
        elif kind == 2:
            start = draw.randint(0, len(other))
            data[at:end] = other[start : start + draw.randint(0, 64)]
        elif kind == 3 and at < len(data):
            data[at] = draw.randint(0, 255)
        else:
            data[at:at] = draw.choice(words)
    return bytes(data[:MAX_LENGTH])


def fuzz(name: str, seconds: float, seed: int) -> int:
    """Run one target for a while: the number of inputs that failed (at most one, then it stops)."""
    function = target(name)
    draw = random.Random(f"{name} {seed}")
    words = [*WORDS, *(literal.encode() for literal in marker_literals())]
    pool = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())] or [b"\x00" * 9]
    runs, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(draw.choice(pool), draw.choice(pool), words, draw)
        runs += 1
        if not passes(function, data):
            save(name, shrunk(function, data, end + 30))
            print(f"{name}: failed after {runs} runs")
            return 1
        if runs % 50 == 0 and len(pool) < 500:
            pool.append(data)
    print(f"{name}: {runs} runs, no failure")
    return 0


def passes(function: Callable[[bytes], None], data: bytes) -> bool:
    try:
        function(data)
    except Exception:
        return False
    return True


def shrunk(function: Callable[[bytes], None], data: bytes, end: float) -> bytes:
    """A smaller input that fails too: halves, quarters ... single bytes are left out while it still fails."""
    size = len(data) // 2
    while size and time.monotonic() < end:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if not passes(function, shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def save(name: str, data: bytes) -> None:
    """Keep a failing input, and show why it fails."""
    path = CORPUS / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    print(f"{path}: {data!r}", file=sys.stderr)
    try:
        target(name)(data)
    except Exception:
        traceback.print_exc()


def with_atheris(name: str, seconds: float) -> int:
    """Run one target under Atheris, in a process of its own because it ends the process."""
    command = [sys.executable, "-m", "fuzz", name, "--inside-atheris", "--seconds", str(int(seconds))]
    return int(subprocess.run(command, check=False).returncode != 0)


def inside_atheris(name: str, seconds: float) -> None:
    atheris: Any = importlib.import_module("atheris")
    function = target(name)
    atheris.instrument_all()
    folder = CORPUS / name
    arguments = [
        sys.argv[0],
        f"-max_total_time={int(seconds)}",
        f"-max_len={MAX_LENGTH}",
        f"-artifact_prefix={folder}/found-",
    ]
    atheris.Setup([*arguments, str(folder)], lambda data: function(bytes(data)))
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the targets over their corpus.")
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all of them if none is named")
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the own mutator")
    parser.add_argument("--own", action="store_true", help="use the own mutator even if Atheris is installed")
    parser.add_argument("--inside-atheris", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.targets or list(TARGETS)
    if options.inside_atheris:
        inside_atheris(names[0], options.seconds)
        return 0
    atheris = not options.own and importlib.util.find_spec("atheris") is not None
    print(f"engine: {'Atheris' if atheris else f'own mutator, seed {options.seed}'}")
    failed = [with_atheris(n, options.seconds) if atheris else fuzz(n, options.seconds, options.seed) for n in names]
    return int(any(failed))


def corpus_files() -> list[Path]:
    """Every file of the corpus of every target."""
    return [path for name in TARGETS for path in sorted((CORPUS / name).iterdir())]


if __name__ == "__main__":
    sys.exit(main())
