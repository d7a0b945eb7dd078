"""The arguments object of a call whose name stands outside of it, in a header or an attribute."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..edits import in_bytes
from ..events import Repair
from ..jsontext import JsonReader
from ..names import Offer
from ..reading import BLANK, DEAD, DONE, MORE, Around
from ..repair import Unreadable, complete
from .base import Body, Context, Ending, Settings, Written, dumped
from .json_call import ARGUMENT_KEYS, NAME_KEYS, read, settle, under_arguments

# A string that holds an object, and how it begins.
_HELD: Final = re.compile(rb'"(?:[ \t]|\\[nrt]){0,8}+\{')
_HELD_CUT: Final = re.compile(rb'"(?:[ \t]|\\[nrt]){0,8}+\\?\Z')


class ArgumentsReader(JsonReader):
    """A JSON object that is the arguments themselves, or a string that holds it.

    In a format without a closer nothing else tells where a body ends, so there an array or any string is read to its
    own end, too, and what is malformed does not swallow the text behind it.
    """

    __slots__ = ()

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        super().__init__(start, around)

    def _open(self, buf: bytearray, end: int, final: bool) -> int:
        verdict = super()._open(buf, end, final)
        if verdict != DEAD:
            return verdict
        blank = BLANK.match(buf, self._first, end)
        i = blank.end() if blank is not None else self._first
        if i == end or buf[i] not in (b'"' if self._around.close.literals else b'["'):
            return DEAD
        if self._around.close.literals and _HELD.match(buf, i, end) is None:
            return MORE if _HELD_CUT.match(buf, i, end) is not None and not final else DEAD
        self.at = i
        self.evidence = True
        return MORE

    def _after_quote(self, buf: bytearray, end: int, final: bool) -> int:
        return super()._after_quote(buf, end, final) if self._stack else DONE

    @property
    def name(self) -> str | None:
        """Known to the header, not to the body."""
        return None

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the arguments stand: (start, end so far), or (-1, -1)."""
        return (self._first, self.keep) if self.evidence else (-1, -1)


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read one arguments object. ``settings["name"]`` is the name from the header, None if it has none."""
    name = context.settings.get("name")
    tool = context.offer.resolve(name).tool if name else None
    text = raw.decode("utf-8", "replace")
    call = Written(name, end=len(raw))
    if ending == "cut" and not _is_whole(text):
        call.complete = False
        return [call]
    if not text.strip():
        call.arguments = {}
        call.repairs.append(Repair("no_arguments", "arguments", text, "{}"))
        return [call]
    try:
        loaded = read(text, tool, context)
    except Unreadable as error:
        call.fault = str(error)
        return [call]
    value = loaded.value
    repairs = in_bytes(under_arguments(loaded.repairs), raw)
    several = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
    calls = []
    for item in value if several else [value]:
        one = Written(name, item, end=len(raw), repairs=list(repairs))
        one.strategy = loaded.strategy if repairs else ""
        _unwrap(one, tool.properties if tool is not None else {})
        settle(one)
        calls.append(one)
    return calls


def _is_whole(text: str) -> bool:
    """True for a value that has its own end, where a format has no closer to tell it."""
    word = text.strip()
    if not word.startswith('"'):
        return word == "null" or complete(word)
    try:
        return isinstance(json.loads(word), str)
    except ValueError:
        return False


def _unwrap(call: Written, declared: dict[str, Any]) -> None:
    """A body that repeats the call around its arguments means the inner object."""
    value = call.arguments
    if not isinstance(value, dict):
        return
    inner = [key for key in ARGUMENT_KEYS if key in value and key not in declared]
    rest = [key for key in value if key not in inner and key not in NAME_KEYS]
    told = next((value[key] for key in NAME_KEYS if isinstance(value.get(key), str)), call.name)
    if len(inner) == 1 and not rest and told == call.name and isinstance(value[inner[0]], (dict, str)):
        call.arguments = value[inner[0]]
        call.repairs.append(Repair("unwrapped", "arguments", inner[0], ""))


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """The object alone."""
    return dumped(arguments, settings)


BODY: Final = Body("json_arguments", ArgumentsReader, decode, write)
