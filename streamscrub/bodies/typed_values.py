"""Arguments written as value tags that state their type and nest: text, JSON, a list or an object of such tags."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from ..attributes import TAG_END, TAG_END_CUT, read_attributes
from ..events import Repair
from ..limits import CLOSER_WAIT, MAX_BLANKS, MAX_DEPTH
from ..names import Offer
from ..reading import BLANK, DEAD, DONE, MORE, Around, Run, plain_run
from ..sentinels import CUT, joined
from .base import Body, Context, Ending, Settings, Written
from .tag_syntax import Tags

_CONTAINERS: Final = frozenset(("list", "dict"))
_HOW: Final = {"raw": "text", "json": "json"}
_KEY: Final = re.compile(r"[^\s\"<>&]+")
_FIELD: Final = re.compile(r"\{(key|type|value)\}")
_ITEMS, _VALUE, _JUNK = range(3)


@dataclass(slots=True)
class Node:
    """One value as it was read. Offsets are of the buffer; those of a container are not used."""

    typed: str
    name: str | None
    start: int
    end: int = -1
    children: list[Node] = field(default_factory=list)


class ValuesReader:
    """Reads values up to the closer of the call. See ``reading.Reader`` for the common part.

    A text ends at its closer if a tag of the call or the end of the text follows. With ``keep_nodes`` the values are
    kept, for decoding.
    """

    __slots__ = (
        "_around", "_depth", "_keep", "_open", "_phase", "_run", "_start", "_tags", "_wait", "_weak",
        "at", "broken", "evidence", "fault", "implicit", "nodes", "run",
    )  # fmt: skip

    def __init__(
        self, start: int, around: Around, offer: Offer, settings: Settings, *, keep_nodes: bool = False
    ) -> None:
        self.at = start
        self.evidence = False
        self.broken = False
        self.run: Run | None = None
        self.fault = ""  # why this can be no call
        self.implicit = False  # a value ended without its closer
        self.nodes: list[Node] = []
        self._open: list[Node] = []  # the containers around what is read, and the text that is read
        self._keep = keep_nodes
        self._around = around
        self._tags: Tags = settings["tags"]
        self._run = plain_run((), joined(self._tags.key_close, around.close, around.special))
        self._phase = _ITEMS
        self._depth = 0  # open containers
        self._start = start
        self._weak = -1  # the first end of the call in a text
        self._wait = -1  # and the last one

    def shift(self, by: int) -> None:
        self.at -= by
        self._start -= by
        self._weak -= by if self._weak >= 0 else 0
        self._wait -= by if self._wait >= 0 else 0

    @property
    def keep(self) -> int:
        return self._weak if self._weak >= 0 else self.at

    @property
    def name(self) -> str | None:
        """Known to the opener, not to the body."""
        return None

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the values stand: (start, end so far), or (-1, -1)."""
        return (self._start, self.keep) if self.evidence and self._start >= 0 else (-1, -1)

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return self._phase == _ITEMS and not self._depth

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        while True:
            if self._phase == _VALUE:
                verdict = self._in_value(buf, end, final)
            elif self._phase == _ITEMS:
                verdict = self._items(buf, end, final)
            else:
                verdict = self._junk(buf, end, final)
            if verdict >= 0:
                return verdict

    def _items(self, buf: bytearray, end: int, final: bool) -> int:
        """Between two values: an opener, the closer of a container, or the end of the call."""
        tags, around = self._tags, self._around
        self.run = None
        blank = BLANK.match(buf, self.at, end)
        i = blank.end() if blank is not None else self.at
        if i - self.at > MAX_BLANKS:
            return self._no_values()
        if i == end:
            return MORE
        opening, closing = tags.key_open.at(buf, i, end, final), tags.key_close.at(buf, i, end, final)
        close, outer = around.close.at(buf, i, end, final), around.outer.at(buf, i, end, final)
        if opening > 0:
            verdict, j, found = read_attributes(buf, i + opening, end)
            if verdict == DONE:
                self.evidence = True
                self._opened(found, j)
                return -1
            if verdict == MORE and not final:
                return MORE
        elif closing > 0:
            tail = TAG_END.match(buf, i + closing, end)
            if tail is not None:
                self._closed()
                self.at = tail.end()
                return -1
            if TAG_END_CUT.match(buf, i + closing, end) is not None:
                return MORE
        elif CUT in (opening, closing, close, outer):
            return MORE
        elif close > 0 or outer > 0:
            self.at = i
            self.implicit = bool(self._depth)
            self.broken = self.implicit and close <= 0
            return DONE
        return self._no_values()

    def _no_values(self) -> int:
        """What stands here is none of a call, which is malformed if it had begun."""
        if not self.evidence:
            return DEAD
        self.fault = "something else than values stands in the call"
        self._phase = _JUNK
        return -1

    def _opened(self, attributes: dict[str, str], at: int) -> None:
        typed = attributes.get("type", "").lower()
        node = Node(typed, attributes.get("name"), at)
        if self._keep:
            (self._open[-1].children if self._open else self.nodes).append(node)
        self.at = at
        if "/" in attributes:
            node.end = at
        elif typed in _CONTAINERS:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                self.fault = "nested too deep"
            elif self._keep:
                self._open.append(node)
        else:
            self._phase = _VALUE
            if self._keep:
                self._open.append(node)

    def _closed(self) -> None:
        """A container closes; one closer too many is nothing."""
        if 0 < self._depth <= MAX_DEPTH and self._keep:
            self._open.pop()
        self._depth = max(0, self._depth - 1)

    def _in_value(self, buf: bytearray, end: int, final: bool) -> int:
        i, marks = self.at, self._run
        while True:
            plain = marks.match(buf, i, end)
            i = plain.end() if plain is not None else i
            if self._wait >= 0 and i - self._wait > CLOSER_WAIT:
                return self._settle()
            if i >= end:
                self.at = i
                self.run = marks if self._wait < 0 else None
                if final and self._wait >= 0:
                    return self._settle()
                return MORE
            closing = self._tags.key_close.at(buf, i, end, final)
            if closing > 0:
                ends = self._ends(buf, i + closing, end, final)
                if ends is None:
                    return self._hold(i)
                if ends:
                    return self._end_value(i, ends)
                i += closing
                continue
            close = self._around.close.at(buf, i, end, final)
            special = self._around.special.at(buf, i, end, final)
            if CUT in (closing, close, special):
                return self._hold(i)
            if close > 0 or special > 0:
                self._weak = i if self._weak < 0 else self._weak
                self._wait = i
                i += max(close, special)
            else:
                i += 1

    def _hold(self, i: int) -> int:
        self.at = i
        self.run = None
        return MORE

    def _ends(self, buf: bytearray, j: int, end: int, final: bool) -> int | None:
        """The index behind the tag of a closer if it ends the text, 0 if it is data, None if that is not known yet."""
        tail = TAG_END.match(buf, j, end)
        if tail is None:
            return None if not final and TAG_END_CUT.match(buf, j, end) is not None else 0
        blank = BLANK.match(buf, tail.end(), min(end, tail.end() + MAX_BLANKS + 1))
        k = blank.end() if blank is not None else tail.end()
        if k == end:
            return tail.end() if final else None
        follow = [self._tags.after, self._around.close]
        if self._depth:
            follow.append(self._tags.key_close)
        sizes = [one.at(buf, k, end, final) for one in follow]
        if any(size > 0 for size in sizes):
            return tail.end()
        return None if CUT in sizes else 0

    def _end_value(self, text_end: int, resume: int) -> int:
        if self._keep:
            self._open.pop().end = text_end
        self._weak = self._wait = -1
        self.at = resume
        self._phase = _ITEMS
        return -1

    def _settle(self) -> int:
        """The text's own closer did not come: it ends where the call does."""
        i = self._weak
        self._end_value(i, i)
        self.implicit = True
        self._depth = 0
        self._open.clear()
        return -1

    def _junk(self, buf: bytearray, end: int, final: bool) -> int:
        i, size = self._around.close.find(buf, self.at, end, final)
        j, other = self._around.special.find(buf, self.at, i if size > 0 else end, final or size > 0)
        self.at = min(i, j)
        if (size > 0 and i <= j) or (other > 0 and j < i):
            self.broken = j < i
            return DONE
        return MORE


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read the values of one call. ``settings["name"]`` is the name from the opener."""
    call = Written(context.settings.get("name"), end=len(raw), complete=ending != "cut")
    if ending == "cut":
        return [call]
    reader = ValuesReader(0, context.settings["around"], context.offer, context.settings, keep_nodes=True)
    reader.read(bytearray(raw), len(raw), True)
    if reader._phase == _VALUE:
        reader._end_value(len(raw), len(raw))
        reader.implicit = True
    call.fault = reader.fault
    if reader.implicit or reader._depth:
        call.repairs.append(Repair("missing_tag", "arguments", "", "closer"))
    call.texts = {}
    for node in reader.nodes:
        if not node.name:
            call.fault = call.fault or "a value without a name"
        elif node.typed in _CONTAINERS:
            call.put(node.name, json.dumps(_value(node, raw), ensure_ascii=False), "json")
        else:
            call.put(node.name, _text(node, raw), _HOW.get(node.typed, ""))
    return [call]


def _text(node: Node, raw: bytes) -> str:
    return raw[node.start : node.end].decode("utf-8", "replace")


def _value(node: Node, raw: bytes) -> Any:
    """The value of a node. No deeper than the reader keeps nodes."""
    if node.typed == "list":
        return [_value(child, raw) for child in node.children]
    if node.typed == "dict":
        return {child.name or "": _value(child, raw) for child in node.children}
    text = _text(node, raw)
    if node.typed == "json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """A tag a value. A string that holds anything like a tag or a token is written as JSON, without its brackets.

    Raises ``ValueError`` for a key that no attribute can hold.
    """
    return "".join(_written(key, value, settings["form"]) for key, value in arguments.items())


def _written(key: str | None, value: Any, form: dict[str, str]) -> str:
    if key is not None and not _KEY.fullmatch(key):
        raise ValueError(f"the format cannot carry the key {key!r}")
    if isinstance(value, list) and value:
        typed, text = "list", "".join(_written(None, item, form) for item in value)
    elif isinstance(value, dict) and value:
        typed, text = "dict", "".join(_written(inner, item, form) for inner, item in value.items())
    elif isinstance(value, str) and not re.search(r"[<\[\]]", value):
        typed, text = "raw", value
    else:
        typed, text = "json", json.dumps(value, ensure_ascii=False)
        for char in "<[]" if isinstance(value, str) else "":
            text = text.replace(char, f"\\u{ord(char):04x}")
    pieces = {"key": key or "", "type": typed, "value": text}
    return _FIELD.sub(lambda field: pieces[field[1]], form["item" if key is None else "value"])


BODY: Final = Body("typed_values", ValuesReader, decode, write, settings={"of": "string"}, table="tags")
