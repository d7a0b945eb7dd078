"""GLM line calls: ``tool/param>value`` or ``tool/{json}``, one whole line."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..edits import in_bytes, moved
from ..jsontext import JsonReader
from ..limits import MAX_HEADER, MAX_NAME
from ..names import Offer
from ..reading import BLANK, BLANKS, DEAD, DONE, MORE, Around, Run
from ..repair import Unreadable, load
from ..sentinels import CUT, NONE
from .base import Body, Context, Ending, Settings, Written
from .json_call import under_arguments

_WORD: Final = re.compile(rb"[A-Za-z_][\w.-]{0,%d}+" % MAX_NAME)
_LINE: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)/(?:([A-Za-z_][\w-]*)>(.*)|(\{.*\}))\s*\Z", re.DOTALL)


class GlmLineReader:
    """Reads one line of an offered tool and a declared parameter. See ``reading.Reader`` for the common part.

    A value is text up to the end of the line, but no marker that has a meaning there is part of it: a token ends the
    line, and so do closers behind which nothing stands on it. ``torn`` says that another call begins in the line.
    """

    __slots__ = (
        "_around", "_json", "_looked", "_offer", "at", "broken", "ended", "evidence", "name", "run", "start", "torn",
    )  # fmt: skip

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.at = self.start = start
        self.evidence = False
        self.broken = False
        self.run: Run | None = None
        self.name: str | None = None
        self.torn = False
        self.ended = False  # by the end of its line or a token, not by that of the stream
        self._around = around
        self._offer = offer
        self._looked = False
        self._json: JsonReader | None = None  # of an object that is not at its end yet

    def shift(self, by: int) -> None:
        self.start -= by
        self.at -= by
        if self._json is not None:
            self._json.shift(by)

    @property
    def keep(self) -> int:
        return self.start

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return self._looked and self._json is None

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if not self._looked:
            verdict = self._head(buf, end, final)
            if verdict != DONE:
                return verdict
        if self._json is not None:
            verdict = self._json.read(buf, end, final)
            line = buf.find(b"\n", self.at, self._json.at)
            if line >= 0:
                return self._end(buf, line)
            self.at = self._json.at
            if verdict == MORE:
                return MORE
            if verdict == DEAD or self._json.broken:
                self.broken = True
                return verdict
            self._json = None
        return self._in_line(buf, end, final)

    def _in_line(self, buf: bytearray, end: int, final: bool) -> int:
        """From ``at`` to the end of the line, or to a marker that ends it."""
        around = self._around
        while True:
            newline = buf.find(b"\n", self.at, end)
            limit = newline if newline >= 0 else end
            known = final or newline >= 0
            places = [one.find(buf, self.at, limit, known) for one in (around.close, around.outer)]
            i, size = min(places, key=lambda place: (place[0], -place[1]))
            if size == NONE:
                self.at = limit
                return self._end(buf, limit) if known else MORE
            if size == CUT:
                self.at = i
                return MORE
            if around.special.at(buf, i, limit, True) > 0 or around.control.at(buf, i, limit, True) > 0:
                return self._end(buf, i)
            if around.calls.at(buf, i, limit, True) > 0:
                self.at = i
                self.torn = self.broken = True
                return DONE
            verdict = self._closers(buf, i, limit, known)
            if verdict == MORE:
                self.at = i
                return MORE
            if verdict == DONE:
                return self._end(buf, i)
            self.at = i + size

    def _closers(self, buf: bytearray, i: int, limit: int, known: bool) -> int:
        """Does nothing but closers stand from ``i`` to the end of the line, or to a token or another call?"""
        around, k = self._around, i
        while True:
            run = BLANK.match(buf, k, limit)
            k = run.end() if run is not None else k
            if k == limit:
                return DONE if known else MORE if k - i <= MAX_HEADER else DEAD
            closing = around.close.at(buf, k, limit, known)
            size = closing or around.outer.at(buf, k, limit, known)
            if size == CUT:
                return MORE
            if closing > 0:
                return DONE
            if size <= 0:
                return DEAD
            if k > i and max(one.at(buf, k, limit, True) for one in (around.special, around.control, around.calls)) > 0:
                return DONE
            if buf[k : k + 2] != b"</":
                return DEAD
            k += size

    def _end(self, buf: bytearray, i: int) -> int:
        self.ended = True
        self.at = i - 1 if i > self.start and buf[i - 1] == 0x0D and buf[i : i + 1] == b"\n" else i
        return DONE

    def _head(self, buf: bytearray, end: int, final: bool) -> int:
        more = DEAD if final else MORE
        name = _WORD.match(buf, self.start, end)
        if name is None or (name.end() < end and buf[name.end()] != 0x2F):
            return DEAD
        i = name.end() + 1
        if i >= end:
            return more
        tool = self._offer.plain(name.group().decode("utf-8", "replace"))
        if tool is None:
            return DEAD
        if buf[i] == 0x7B:
            self._json = JsonReader(i, self._around)
        else:
            key = _WORD.match(buf, i, end)
            if key is None:
                return DEAD
            word = key.group().decode("utf-8", "replace")
            if key.end() == end:
                return more if any(one.startswith(word) for one in tool.properties) else DEAD
            if buf[key.end()] != 0x3E or word not in tool.properties:
                return DEAD
        self.name = tool.name
        self._looked = self.evidence = True
        self.at = i
        return DONE


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read one complete line. The value is text, typed by the schema."""
    found = _LINE.match(raw.decode("utf-8", "replace"))
    call = Written(None, end=len(raw.rstrip(BLANKS)), complete=ending != "cut")
    if found is None:
        call.fault = "no line of the form"
        return [call]
    call.name = found.group(1)
    if found.group(2) is not None:
        call.texts = {found.group(2): (found.group(3).strip(), "")}
        return [call]
    try:
        loaded = load(found.group(4))
    except Unreadable as error:
        call.fault = str(error)
        return [call]
    call.arguments = loaded.value
    call.repairs += in_bytes(moved(under_arguments(loaded.repairs), found.start(4)), raw)
    return [call]


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """One parameter as ``tool/param>value``, else the object; needs one line."""
    for key, value in arguments.items() if len(arguments) == 1 else ():
        if isinstance(value, str) and value and value.strip() == value and "\n" not in value:
            return f"{name}/{key}>{value}"
    return f"{name}/{json.dumps(arguments, ensure_ascii=False)}"


# Another line is another call.
_AGAIN: Final = re.compile(rb"[A-Za-z_][\w.-]*+/(?:[A-Za-z_][\w-]*+>|\{)")
_AGAIN_CUT: Final = re.compile(rb"[A-Za-z_][\w.-]*+(?:/[\w-]*+)?+\Z")
BODY: Final = Body("glm_line", GlmLineReader, decode, write, (_AGAIN, _AGAIN_CUT))
