"""A body that is no syntax at all: everything up to the closer, for formats whose header alone makes a call.

``settings["tools"]`` are names of tools that take such text without any header, as a code interpreter does: the first
of them that is offered is called.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ..events import Repair
from ..limits import MAX_REPAIR_TEXT
from ..names import Offer
from ..reading import BLANK, DEAD, Around, UntilCloser
from ..sentinels import sentinels
from ..tools import Tool
from .base import Body, Context, Ending, Settings, Written


class TextReader(UntilCloser):
    """Text is whole wherever it ends."""

    __slots__ = ("_headless", "_start", "_taker")

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self._headless = "name" not in settings
        # Without a header nothing says which closer is the body's own, so any token of a tokenizer ends it.
        super().__init__(start, replace(around, special=sentinels(around.outer.exact)) if self._headless else around)
        self.broken = not self._headless
        self._start = start
        self._taker = _taker(offer, settings) is not None
        self.evidence = not self._headless

    def shift(self, by: int) -> None:
        super().shift(by)
        self._start -= by

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if self._headless and not self._taker:
            return DEAD
        verdict = super().read(buf, end, final)
        if not self.evidence:
            blank = BLANK.match(buf, self._start, self.at)
            self.evidence = blank is not None and blank.end() < self.at
        return verdict

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return True


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """The text is the value of the tool's only required string parameter, if the header says that it is code."""
    name = context.settings.get("name")
    tool = context.offer.resolve(name).tool if name else _taker(context.offer, context.settings)
    call = Written(name or (tool.name if tool is not None else None), end=len(raw), complete=ending != "cut")
    text = raw.decode("utf-8", "replace")
    if not text.strip():
        call.arguments = {}
        call.repairs.append(Repair("no_arguments", "arguments", text, "{}"))
    elif name and not context.settings.get("code"):
        call.fault = "no object"
    elif tool is not None and (key := _only_text(tool)) is not None:
        call.arguments = {key: text}
        call.repairs.append(Repair("code", f"arguments.{key}", text[:MAX_REPAIR_TEXT], ""))
    else:
        call.fault = "code, but the tool has no single string parameter for it"
    return [call]


def _taker(offer: Offer, settings: Settings) -> Tool | None:
    """The offered tool that takes text without a header."""
    found = (offer.get(name) for name in settings.get("tools", ()))
    return next((tool for tool in found if tool is not None and _only_text(tool) is not None), None)


def _only_text(tool: Tool) -> str | None:
    """The tool's only required parameter, if it is a string."""
    return tool.required[0] if len(tool.required) == 1 and tool.string_only(tool.required[0]) else None


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """The only value, as it is."""
    (value,) = arguments.values()
    return str(value)


BODY: Final = Body("text", TextReader, decode, write, settings={"tools": "strings", "code": "flag"})
