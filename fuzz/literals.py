"""All marker literals of the grammar files, read from the TOML without asking the library."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

GRAMMARS: Final = Path(__file__).resolve().parent.parent / "grammars"
# What stands under these keys is prose, a template or an example. References to other files hold no bracket.
NOT_LITERAL: Final = {"name", "models", "source", "title", "notes", "example", "render", "dialect", "wording"}
_BRACKET: Final = re.compile(r"[<>\[\]{}|]|[^\x00-\x7f]|:$|^`{3}")


def strings_of(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every (key, string) of a parsed TOML value."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for item in value:
            yield from strings_of(item, key)
    elif isinstance(value, dict):
        yield from tags_of(value)
        for name, item in value.items():
            if name not in NOT_LITERAL:
                yield from strings_of(item, name)


def tags_of(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The markers that a table of tags means: each opening and closing sigil before each name."""
    names = [*table.get("call", ()), *table.get("wrapper", ()), *(key["name"] for key in table.get("key", ()))]
    for sigil in (sigil for pair in table.get("sigils", ()) for sigil in pair):
        yield from (("sigils", sigil + name) for name in names)


@cache
def literals_by_file() -> dict[str, tuple[str, ...]]:
    """Grammar file -> the strings in it that look like markers, as they stand in the file."""
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(GRAMMARS.glob("*.toml")):
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
        words = {word.strip() for _, word in strings_of(parsed) if len(word) <= 64 and _BRACKET.search(word.strip())}
        found[path.name] = tuple(sorted(words))
    return found


@cache
def marker_literals() -> tuple[str, ...]:
    """The markers of all files, sorted. Fields such as ``{name}`` are cut out of header templates."""
    words: set[str] = set()
    for literals in literals_by_file().values():
        for literal in literals:
            words.update(part for part in re.split(r"\{\w+\}", literal) if len(part) >= 2)
    return tuple(sorted(words))
