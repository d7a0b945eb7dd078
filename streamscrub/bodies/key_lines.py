"""Arguments written as lines of a key and a value, ``zone: north``, behind a header that holds the name."""

from __future__ import annotations

from typing import Any, Final

from ..names import Offer
from .base import Body, Context, Ending, Settings, Written
from .carrying import carried, filled
from .text import TextReader


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read the lines. ``settings["between"]`` parts two of them, ``settings["after_key"]`` a key from its value."""
    between, after_key = separators(context.settings)
    call = Written(context.settings.get("name"), end=len(raw), complete=ending != "cut")
    call.texts = {}
    for line in raw.decode("utf-8", "replace").split(between):
        key, found, value = line.partition(after_key)
        if found:
            call.texts.pop(key.strip(), None)
            call.texts[key.strip()] = (value.strip(), "")
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


_SETTINGS: Final = {"between": "string", "after_key": "string"}
BODY: Final = Body("key_lines", TextReader, decode, write, settings=_SETTINGS, bracketed=False)
