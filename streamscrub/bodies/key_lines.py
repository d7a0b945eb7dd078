"""Arguments written as lines of a key and a value, ``zone: north``, behind a header that holds the name.

``settings["repaired"]`` says that the format writes them otherwise. Then they are a repair, and a key that the tool
declares must begin them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..names import Offer
from ..reading import DEAD, MORE, Around
from . import json_arguments
from .base import Body, Context, Ending, Settings, Written
from .carrying import carried, filled
from .text import TextReader

_FIRST: Final = re.compile(rb"[ \t\r\n]*+([^\s:\"'{}\[\]<,]{0,128}+)([ \t]*+)(:?)")


class LinesReader(TextReader):
    """Runs to the closer. The first line tells whether what only may be lines are some."""

    __slots__ = ("_keys",)

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        super().__init__(start, around, offer, settings)
        self._keys: tuple[bytes, ...] = ()
        if settings.get("repaired"):
            tool = offer.resolve(settings["name"]).tool if settings.get("name") else None
            self._keys = tuple(key.encode() for key in tool.properties) if tool is not None else ()
            self.evidence = False

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if not self.evidence:
            found = _FIRST.match(buf, self._start, end)
            assert found is not None  # it matches nothing at all if need be
            if found[3]:
                self.evidence = found[1] in self._keys
            elif found.end() == end and not final:
                begun = any(key == found[1] if found[2] else key.startswith(found[1]) for key in self._keys)
                return MORE if begun else DEAD
            if not self.evidence:
                return DEAD
        return super().read(buf, end, final)


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read the lines. ``settings["between"]`` parts two of them, ``settings["after_key"]`` a key from its value."""
    if context.settings.get("repaired"):
        return json_arguments.decode(raw, ending, context)
    between, after_key = separators(context.settings)
    call = Written(context.settings.get("name"), end=len(raw), complete=ending != "cut")
    call.texts = {}
    for line in raw.decode("utf-8", "replace").split(between):
        key, found, value = line.partition(after_key)
        if found:
            call.put(key.strip(), value.strip())
        elif line.strip():
            call.fault = "a line without a key"
    if "" in call.texts:
        call.fault = "a line without a key"
    if not call.name:
        call.fault = "no name"
    return [call]


def separators(settings: Settings) -> tuple[str, str]:
    """What parts lines, and keys from values."""
    return settings.get("between", "\n"), settings.get("after_key", ":")


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """One line a parameter. Raises ``ValueError`` for a value that a line cannot carry."""
    between, after_key = separators(settings)
    blank = "" if after_key[-1:].isspace() else " "

    def compose(texts: dict[str, str]) -> str:
        return between.join(filled("{key}" + after_key + blank + "{value}", key, text) for key, text in texts.items())

    def read(text: str) -> Written:
        context = Context(Offer(None), {**settings, "name": name})
        return decode(text.encode("utf-8", "replace"), "closed", context)[0]

    for key in arguments:
        if after_key in key or between in key:
            raise ValueError(f"this format cannot carry the key {key!r}")
    return carried(name, arguments, settings, compose, read, lambda value: "", ())


_SETTINGS: Final = {"between": "string", "after_key": "string", "repaired": "flag"}
BODY: Final = Body("key_lines", LinesReader, decode, write, settings=_SETTINGS, bracketed=False)
