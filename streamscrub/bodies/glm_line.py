"""GLM line calls: ``tool/param>value`` or ``tool/{json}``, one whole line."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..edits import in_bytes, moved
from ..limits import MAX_NAME
from ..names import Offer
from ..reading import BLANKS, DEAD, DONE, MORE, Around, Run
from ..repair import Unreadable, load
from .base import Body, Context, Ending, Settings, Written
from .json_call import under_arguments

_WORD: Final = re.compile(rb"[A-Za-z_][\w.-]{0,%d}+" % MAX_NAME)
_LINE: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)/(?:([A-Za-z_][\w-]*)>(.*)|(\{.*\}))\s*\Z", re.DOTALL)


class GlmLineReader:
    """Reads one line of an offered tool and a declared parameter. See ``reading.Reader`` for the common part."""

    __slots__ = ("_around", "_looked", "_offer", "at", "broken", "evidence", "name", "run", "start")

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.at = self.start = start
        self.evidence = False
        self.broken = False
        self.run: Run | None = None
        self.name: str | None = None
        self._around = around
        self._offer = offer
        self._looked = False

    def shift(self, by: int) -> None:
        self.start -= by
        self.at -= by

    @property
    def keep(self) -> int:
        return self.start

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return self._looked

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if not self._looked:
            verdict = self._head(buf, end, final)
            if verdict != DONE:
                return verdict
        newline = buf.find(b"\n", self.at, end)
        close, size = self._around.close.find(buf, self.at, newline if newline >= 0 else end, final and newline < 0)
        if size > 0:
            self.at = close
            return DONE
        if newline < 0:
            self.at = close
            return DONE if final else MORE
        self.at = newline - 1 if buf[newline - 1] == 0x0D else newline
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
        if buf[i] != 0x7B:
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


BODY: Final = Body("glm_line", GlmLineReader, decode, write)
