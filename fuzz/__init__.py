"""Fuzz targets: a short function around a one-sentence invariant each, and the corpus that the tests replay."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

TARGETS: Final = ("split", "envelope", "repair", "loader")
CORPUS: Final = Path(__file__).resolve().parent / "corpus"


def target(name: str) -> Callable[[bytes], None]:
    """The function of a target: takes any bytes, returns, or raises AssertionError where the invariant fails."""
    function: Callable[[bytes], None] = import_module(f"fuzz.{name}").one_input
    return function
