"""Replays the fuzz corpus: what was found once stays found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import CORPUS, TARGETS, target
from fuzz.slow import STEEP, slope

FILES = [path for name in TARGETS for path in sorted((CORPUS / name).iterdir())]
SLOW = sorted((CORPUS / "slow").iterdir()) if (CORPUS / "slow").is_dir() else []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_invariant_of_the_target_holds(path: Path) -> None:
    target(path.parent.name)(path.read_bytes())


@pytest.mark.parametrize("path", SLOW, ids=lambda path: path.name)
def test_what_was_slow_is_linear(path: Path) -> None:
    opener, _, filler = path.read_bytes().decode("utf-8", "surrogatepass").partition("\x00")
    assert min(slope(opener, filler, 8_000, 4) for _ in range(3)) <= STEEP


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_a_corpus_and_takes_any_bytes(name: str) -> None:
    assert any(path.parent.name == name for path in FILES)
    for data in (b"", b"\x00", b"\xff" * 12, bytes(range(256))):
        target(name)(data)
