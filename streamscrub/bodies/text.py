"""A body that is no syntax at all: everything up to the closer, for formats whose header alone makes a call."""

from __future__ import annotations

from typing import Any, Final

from ..events import Repair
from ..limits import MAX_REPAIR_TEXT
from ..names import Offer
from ..reading import Around, UntilCloser
from .base import Body, Context, Ending, Settings, Written


class TextReader(UntilCloser):
    """Text is whole wherever it ends."""

    __slots__ = ()

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        super().__init__(start, around)

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return True


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """The text is the value of the tool's only required string parameter, if the header says that it is code."""
    name = context.settings.get("name")
    call = Written(name, end=len(raw), complete=ending != "cut")
    text = raw.decode("utf-8", "replace")
    if not text.strip():
        call.arguments = {}
        call.repairs.append(Repair("no_arguments", "arguments", text, "{}"))
        return [call]
    tool = context.offer.resolve(name).tool if name else None
    if not context.settings.get("code"):
        call.fault = "no object"
    elif tool is not None and len(tool.required) == 1 and tool.string_only(tool.required[0]):
        call.arguments = {tool.required[0]: text}
        call.repairs.append(Repair("code", f"arguments.{tool.required[0]}", text[:MAX_REPAIR_TEXT], ""))
    else:
        call.fault = "code, but the tool has no single string parameter for it"
    return [call]


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """The only value, as it is."""
    (value,) = arguments.values()
    return str(value)


BODY: Final = Body("text", TextReader, decode, write)
