"""Calls written as JSON objects whose key is the name: ``{"find": {…}}``, or an array of them."""

from __future__ import annotations

from typing import Any, Final

from ..jsontext import JsonReader
from ..names import Offer
from ..reading import Around
from . import json_call
from .base import Body, Context, Ending, Settings, Written, dumped


class KeyWatch(json_call.CallWatch):
    """Follows one JSON value: the first key of its first object, and where the value under it stands."""

    __slots__ = ()

    def key(self, depth: int, key: bytes) -> bool:
        if self.name is None and key != b"name":
            self.name = key.decode("utf-8", "replace")
        return True

    def opened(self, depth: int, key: bytes, bracket: int, at: int) -> bool:
        if self.from_ < 0 and key and key.decode("utf-8", "replace") == self.name:
            self._arguments_depth = depth
            self.from_ = at
            return True
        return super().opened(depth, key, bracket, at)


class KeyedReader(json_call.CallReader):
    """A JSON value behind a marker; its first name and arguments are known as they are written."""

    __slots__ = ()

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.watch = KeyWatch(offer, json_call.keys_of(settings))
        JsonReader.__init__(self, start, around, self.watch)


def _name(raw: bytes, context: Context) -> str | None:
    watch = KeyWatch(context.offer, json_call.keys_of(context.settings))
    JsonReader(0, Around(), watch).read(bytearray(raw), len(raw), True)
    return watch.name


def _read(value: Any, context: Context) -> list[Written]:
    """A call for each key of the object. One that has a name is written in the ordinary form."""
    if not isinstance(value, dict) or not value or isinstance(value.get("name"), str):
        return json_call.FORM.read(value, context)
    calls = []
    for name, arguments in value.items():
        call = Written(name, arguments)
        json_call.settle(call)
        calls.append(call)
    return calls


def _keys(context: Context) -> tuple[str, ...]:
    return (*json_call.FORM.keys(context), *(tool.name for tool in context.offer.tools or ()))


_FORM: Final = json_call.Form(_name, _read, _keys)


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read the calls of one JSON value. Of a cut array, the elements that are whole are calls."""
    lead = len(raw) - len(raw.lstrip())
    return json_call.decode_with(_FORM, raw[lead:], lead, ending, context)


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """``{"NAME": …}``."""
    return dumped({name: arguments}, settings)


BODY: Final = Body("keyed_call", KeyedReader, decode, write, settings={"python": "flag"})
