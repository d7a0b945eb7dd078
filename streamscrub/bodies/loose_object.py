"""Calls written as ``NAME{k:v}`` with bare keys and strings between quote tokens, as Gemma models do."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..events import Repair
from ..jsontext import JsonReader
from ..limits import MAX_DEPTH, MAX_NAME
from ..names import Offer
from ..reading import DEAD, MORE, Around
from .base import Body, Context, Ending, Settings, Written

_HEAD: Final = re.compile(
    rb"[ \t\r\n]*+(?:(?:call)?:[ \t]*+(?=[^{(]*[{(])|(?=[^{(]*\{))([A-Za-z_][\w.-]{0,%d}+)[ \t\r\n]*+([{(])" % MAX_NAME
)
_HEAD_CUT: Final = re.compile(rb"[ \t\r\n]*+(?:call)?:?[ \t]*+(?:[A-Za-z_][\w.-]{0,%d}+[ \t\r\n]*+)?\Z" % MAX_NAME)


class LooseReader(JsonReader):
    """Reads ``call:NAME{…}`` to its own bracket. See ``reading.Reader`` for the common part."""

    __slots__ = ("name",)

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        super().__init__(start, around)
        self.name: str | None = None

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the object stands: (start, end so far), or (-1, -1)."""
        return (self._first, self.at) if self.evidence else (-1, -1)

    def _open(self, buf: bytearray, end: int, final: bool) -> int:
        head = _HEAD.match(buf, self._first, end)
        if head is None:
            return MORE if not final and _HEAD_CUT.match(buf, self._first, end) is not None else DEAD
        self.name = head.group(1).decode("utf-8", "replace")
        self.evidence = True
        self.at = self._first = head.end() - 1
        if head.group(2) == b"(":
            self._stack.append(0x7B)
            self._key_next = True
            self.at += 1
        return MORE

    def _pop(self, bracket: int, at: int) -> int:
        return super()._pop(0x7D if bracket == 0x29 else bracket, at)


_TEXT_HEAD: Final = re.compile(r"\s*(?:call)?:?\s*([A-Za-z_][\w.-]*)\s*[{(]")
_KEY: Final = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z_$][\w$.-]*))\s*:""")
_SCALAR: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?\Z")
_WORDS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}


class _Bad(ValueError):
    """This is no object of the syntax."""


class _Loose:
    """A one-shot parser of the object. No recursion: containers stand on a list."""

    def __init__(self, text: str, quotes: tuple[str, ...]) -> None:
        self.text = text
        self.quotes = sorted(quotes, key=len, reverse=True)
        self.repairs: list[Repair] = []

    def parse(self, at: int) -> tuple[Any, int]:
        stack: list[tuple[Any, str | None]] = [({}, None)]
        key: str | None = None
        text = self.text
        expect_key = True
        while stack:
            while at < len(text) and text[at] in " \t\r\n":
                at += 1
            if at >= len(text):
                raise _Bad("the object never closes")
            container = stack[-1][0]
            char = text[at]
            if char in "}])":
                done, above = stack.pop()
                at += 1
                if not stack:
                    return done, at
                self._put(stack[-1][0], above, done)
                expect_key = False
            elif char == ",":
                at += 1
                expect_key = isinstance(container, dict)
            elif isinstance(container, dict) and expect_key:
                key, at = self._key(at)
                expect_key = False
            elif char in "{[":
                if len(stack) >= MAX_DEPTH:
                    raise _Bad("nested too deep")
                stack.append(({} if char == "{" else [], key))
                expect_key = char == "{"
                at += 1
            else:
                value, at = self._value(at, isinstance(container, dict))
                self._put(container, key, value)
        raise _Bad("no object")

    @staticmethod
    def _put(container: Any, key: str | None, value: Any) -> None:
        if isinstance(container, dict):
            container[key or ""] = value
        else:
            container.append(value)

    def _quoted(self, at: int) -> tuple[str, int] | None:
        for quote in self.quotes:
            if self.text.startswith(quote, at):
                ends = [(found, mark) for mark in self.quotes if (found := self.text.find(mark, at + len(quote))) >= 0]
                if not ends:
                    raise _Bad("a string never closes")
                end, mark = min(ends, key=lambda pair: (pair[0], -len(pair[1])))
                return self.text[at + len(quote) : end], end + len(mark)
        return None

    def _key(self, at: int) -> tuple[str, int]:
        quoted = self._quoted(at)
        if quoted is not None:
            key, at = quoted
            colon = re.compile(r"\s*:").match(self.text, at)
            if colon is None:
                raise _Bad("a key without a value")
            return key, colon.end()
        found = _KEY.match(self.text, at)
        if found is None:
            raise _Bad(f"a key expected at {at}")
        return next(group for group in found.groups() if group is not None), found.end()

    def _value(self, at: int, in_object: bool) -> tuple[Any, int]:
        quoted = self._quoted(at)
        if quoted is not None:
            return quoted
        text = self.text
        if text[at] in "\"'":
            quote = text[at]
            pattern = re.compile(quote + r"((?:[^\\" + quote + r"]|\\[\s\S])*+)" + quote + r"(?=\s*[,}\])]|\s*\Z)")
            found = pattern.match(text, at)
            if found is not None:
                self.repairs.append(Repair("quotes", "arguments", found.group()[:200], found.group(1)[:200]))
                body = found.group(1)
                try:
                    return json.loads(
                        '"' + body.replace('"', '\\"' if quote == "'" else '"') + '"', strict=False
                    ), found.end()
                except ValueError:
                    return body, found.end()
        end = at
        while end < len(text):
            char = text[end]
            if char in "}])":
                break
            if char == "," and (not in_object or _KEY.match(text, end + 1) or self._starts_quoted_key(end + 1)):
                break
            end += 1
        word = text[at:end].strip()
        if word in _WORDS:
            return _WORDS[word], end
        if _SCALAR.match(word) and len(word) < 4000:
            return json.loads(word), end
        self.repairs.append(Repair("quotes", "arguments", word[:200], word[:200]))
        return word, end

    def _starts_quoted_key(self, at: int) -> bool:
        rest = self.text[at : at + 32].lstrip()
        return any(rest.startswith(quote) for quote in self.quotes)


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read one ``NAME{…}``. ``settings["quotes"]`` are the quote tokens of the grammar."""
    text = raw.decode("utf-8", "replace")
    head = _TEXT_HEAD.match(text)
    call = Written(head.group(1) if head else None, end=len(raw), complete=ending != "cut")
    if head is None or ending == "cut":
        call.fault = "" if ending == "cut" else "no name"
        return [call]
    parser = _Loose(text if ending == "whole" else text + "}" * 4, tuple(context.settings.get("quotes", ())))
    try:
        call.arguments, _ = parser.parse(head.end())
    except (_Bad, RecursionError) as error:
        call.fault = str(error)
        return [call]
    if ending == "closed":
        parser.repairs.append(Repair("missing_bracket", "arguments"))
    call.repairs = parser.repairs
    return [call]


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """``call:NAME{k:v}`` with the first quote token of the grammar around strings."""
    quotes = settings.get("quotes", ('"',))
    return settings.get("lead", "call:") + name + _loose(arguments, quotes[0])


def _loose(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_loose(item, quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_loose(item, quote) for item in value) + "]"
    return json.dumps(value)


BODY: Final = Body("loose_object", LooseReader, decode, write)
