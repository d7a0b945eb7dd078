"""P-Format calls: ``name[index|value|index|value]``, slots in the order required first, then optional by name."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

from ..limits import CLOSER_WAIT, MAX_BLANKS, MAX_NAME
from ..names import Offer
from ..reading import BLANK, DEAD, DONE, MORE, Around, Run, plain_run
from ..sentinels import CUT, Sentinels, joined
from .base import Body, Context, Ending, Settings, Written

_NAME: Final = re.compile(rb"[ \t\r\n]*+(?:[A-Za-z_][\w.-]*+\.)?+([A-Za-z_][\w.-]{0,%d}+)(?=[^\w.-])" % MAX_NAME)
_NAME_CUT: Final = re.compile(rb"[ \t\r\n]*+[\w.-]{0,%d}+\Z" % (2 * MAX_NAME))
_FIRST: Final = re.compile(rb"(?:[ \t]*\]|[ \t]*\d{1,4}\|)")
_FIRST_CUT: Final = re.compile(rb"[ \t]*\d{0,4}\Z")
_CALL: Final = re.compile(r"\s*([A-Za-z_][\w.-]*)\[(.*)\]\s*\Z", re.DOTALL)
_BRACKETED: Final = re.compile(r"\s*[A-Za-z_][\w.-]*\[(?:[^\]\\]|\\[\s\S])*+\]")
_ESCAPED: Final = re.compile(r"\\([|\]\\])")
_MUST_ESCAPE: Final = re.compile(r"([|\]\\])")
_PART: Final = re.compile(r"((?:[^|\\]|\\[\s\S]?)*+)(?:\||\Z)")
_TRUE: Final = frozenset(("true", "yes", "1"))
_FALSE: Final = frozenset(("false", "no", "0"))


@lru_cache(maxsize=64)
def _marks(*parts: Sentinels) -> Sentinels:
    return joined(*parts)


class PformatReader:
    """Reads ``name[…]`` up to the closer of its envelope. See ``reading.Reader`` for the common part."""

    __slots__ = (
        "_around", "_first", "_offer", "_open", "_tent", "_tent_last", "at", "broken", "evidence", "name", "run",
    )  # fmt: skip

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.at = self._first = start
        self.evidence = False
        self.broken = False
        self.name: str | None = None
        self.run: Run | None = None
        self._around = around
        self._offer = offer
        self._open = True  # inside the brackets
        self._tent = -1  # the first closer seen inside an open slot
        self._tent_last = -1

    def shift(self, by: int) -> None:
        self.at -= by
        self._first -= by
        self._tent -= by
        self._tent_last -= by

    @property
    def keep(self) -> int:
        return self._tent if self._tent >= 0 else self.at

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the slots stand: (start, end so far), or (-1, -1)."""
        return (self._first, self.keep) if self.evidence else (-1, -1)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if not self.evidence:
            name = _NAME.match(buf, self._first, end)
            if name is None:
                return MORE if not final and _NAME_CUT.match(buf, self._first, end) else DEAD
            i = name.end()
            if i == end:
                return DEAD if final else MORE
            if buf[i] != 0x5B:
                return DEAD
            written = name.group().strip().decode("utf-8", "replace")
            if self._offer.resolve(written).tool is None:
                slot = _FIRST.match(buf, i + 1, end)
                if slot is None:
                    return MORE if not final and _FIRST_CUT.match(buf, i + 1, end) else DEAD
            self.name = written
            self.evidence = True
            self.at = self._first = i + 1
        return self._slots(buf, end, final)

    def _slots(self, buf: bytearray, end: int, final: bool) -> int:
        close, i = self._around.close, self.at
        plain = plain_run((0x5D,), _marks(close, self._around.calls), escape=True)
        while True:
            run = plain.match(buf, i, end)
            i = run.end() if run is not None else i
            if self._tent >= 0 and i - self._tent_last > CLOSER_WAIT:
                return self._give_up()
            if i >= end or (buf[i] == 0x5C and not final):
                self.at = i
                if final and self._tent >= 0:
                    return self._give_up()
                return MORE
            if buf[i] == 0x5D:
                blank = BLANK.match(buf, i + 1, end)
                j = blank.end() if blank is not None else i + 1
                if j - i > MAX_BLANKS:
                    self._open = False
                    i += 1
                    continue
                if j == end:
                    self.at = i
                    if not final:
                        return MORE
                    self.at = j
                    self._open = False
                    return DONE
                size = close.at(buf, j, end, final)
                if size == CUT:
                    self.at = i
                    return MORE
                others = [one.at(buf, j, end, final) for one in (self._around.calls, self._around.control)]
                if CUT in others:
                    self.at = i
                    return MORE
                if size > 0 or max(others) > 0:
                    # Another call or a token that ends the turn closes it as well.
                    self.at = j
                    self._open = False
                    return DONE
                self._open = False  # no end of the block, so the body is malformed; its closer is still looked for
                i += 1
                continue
            size = close.at(buf, i, end, final)
            other = 0 if self._open else self._around.calls.at(buf, i, end, final)
            if CUT in (size, other):
                self.at = i
                return MORE
            if size > 0 or other > 0:
                if not self._open:
                    self.at = i
                    self.broken = True
                    return DONE
                if self._tent < 0:
                    self._tent = i
                self._tent_last = i
                i += size
            else:
                i += 1

    def _give_up(self) -> int:
        self.at = self._tent
        self.broken = True
        return DONE


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Bind the slots to the tool's parameters. Anything that does not fit exactly is a fault, never a guess."""
    text = raw.decode("utf-8", "replace")
    found = _CALL.match(text)
    name = text.split("[", 1)[0].strip()
    call = Written(found.group(1) if found else name or None, end=len(raw))
    if found is None:
        call.complete = ending == "closed" or _BRACKETED.match(text) is not None
        call.fault = "text after the closing bracket" if call.complete else ""
        return [call]
    resolution = context.offer.resolve(name)
    call.name = name
    tool = resolution.tool
    if tool is None:
        # Without the tool there are no slots; an unknown name is reported as such, unknown tools cannot be read.
        call.fault = "" if context.offer.known else "no tools to bind the slots to"
        call.arguments = {}
        return [call]
    parts = _parts(found.group(2))
    if parts is None or len(parts) % 2:
        call.fault = "an odd number of slots"
        return [call]
    arguments: dict[str, Any] = {}
    for index, value in zip(parts[::2], parts[1::2], strict=True):
        index = index.strip()
        if not (index.isascii() and index.isdigit()) or len(index) > 4 or int(index) >= len(tool.slots):
            call.fault = f"no slot {index[:20]!r}"
            return [call]
        key = tool.slots[int(index)]
        if not value.strip():
            arguments.pop(key, None)
            continue
        arguments[key] = _typed(_ESCAPED.sub(r"\1", value), tool.properties.get(key, {}))
    call.arguments = arguments
    return [call]


def _parts(text: str) -> list[str] | None:
    """Split at unescaped bars; None if a bracket stands there unescaped."""
    if not text:
        return []
    parts = []
    at = 0
    while True:
        found = _PART.match(text, at)
        if found is None:
            return None
        parts.append(found.group(1))
        at = found.end()
        if at >= len(text):
            if found.group().endswith("|") and not found.group(1).endswith("|"):
                parts.append("")
            return parts


def _typed(text: str, schema: Any) -> Any:
    """The value of a slot by the first type of its schema that is not null; the text itself where it does not fit."""
    kinds = schema.get("type") if isinstance(schema, dict) else None
    kind = next((item for item in kinds if item != "null"), None) if isinstance(kinds, list) else kinds
    word = text.strip()
    if kind == "boolean":
        folded = word.lower()
        return True if folded in _TRUE else False if folded in _FALSE else text
    if kind not in ("integer", "number", "array", "object"):
        return text
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return text
    if kind in ("array", "object"):
        return value
    wanted = int if kind == "integer" else int | float
    return value if isinstance(value, wanted) and not isinstance(value, bool) else text


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """Needs ``settings["slots"]``, the tool's slot order. Raises ``ValueError`` for a value that no slot can hold: a
    blank one, which reads as left out, and a nested one."""
    slots = list(settings.get("slots", ()))
    parts = []
    for key, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict | list):
            raise ValueError(f"P-Format cannot write the nested value of {key!r}")
        if not text.strip():
            raise ValueError(f"P-Format cannot write the blank value of {key!r}")
        if key not in slots:
            raise ValueError(f"P-Format has no slot for {key!r}")
        parts += [str(slots.index(key)), _MUST_ESCAPE.sub(r"\\\1", text)]
    return f"{name}[{'|'.join(parts)}]"


BODY: Final = Body("pformat", PformatReader, decode, write)
