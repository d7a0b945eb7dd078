"""Markerless forms: bare JSON, pythonic lists, ``NAME{…}``, ``Action:`` lines, ``tool/param>value``, elements, fences.

They count only for offered tools, and give their text back when they turn out to be something else. Each reader knows
its calls by itself (``calls``), because nothing on the wire says that there is one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from .attributes import CHILD, CHILD_CUT, read_attributes
from .bodies import BODIES
from .bodies.base import Context, Written
from .bodies.glm_line import GlmLineReader
from .bodies.json_call import CallReader, CallWatch, settle, under_arguments
from .bodies.json_call import decode as decode_json
from .bodies.python_call import CodeReader
from .bodies.python_call import decode as decode_code
from .edits import in_bytes, moved
from .jsontext import JsonReader
from .limits import MAX_BLANKS, MAX_HEADER, MAX_NAME
from .names import Offer
from .reading import BLANK, DEAD, DONE, MORE, Around, Run
from .repair import Unreadable, load
from .sentinels import CUT
from .tools import Tool

_TAIL: Final = re.compile(rb"[ \t]*+")
_NEWLINE: Final = re.compile(rb"\r?\n")
_WORD: Final = re.compile(rb"[A-Za-z_][\w.-]{0,%d}+" % MAX_NAME)
_NAMED: Final = re.compile(rb"(?:call:)?([A-Za-z_][\w.-]{0,%d}+)" % MAX_NAME)

_ACTION_FENCE: Final = re.compile(rb"\r?\n```(?:json)?[ \t]{0,64}+\r?\n[ \t\r\n]{0,64}(?=[\[{])")
_ACTION_FENCE_CUT: Final = re.compile(
    rb"(?:\r?(?:\n(?:`{0,2}|```(?:j(?:s(?:o(?:n)?)?)?)?[ \t]{0,64}+\r?(?:\n[ \t\r\n]{0,64})?))?)\Z"
)


def declared(calls: list[Written], offer: Offer) -> bool:
    """Are all of these calls of offered tools, with objects of declared parameters for arguments?"""
    if not calls:
        return False
    for call in calls:
        if call.fault or call.name is None or not call.complete:
            return False
        tool = offer.plain(call.name)
        if tool is None:
            return False
        keys = call.texts if call.texts is not None else call.arguments
        if not isinstance(keys, dict) or any(tool.key(key) is None for key in keys):
            return False
        if any(repair.kind in ("flattened", "no_arguments") for repair in call.repairs):
            return False
    return True


class LineReader:
    """The common part: where the form starts, how far it was read, and what may end it."""

    __slots__ = ("around", "at", "broken", "context", "evidence", "grammar", "met", "offer", "run", "start")

    def __init__(self, start: int, offer: Offer, around: Around, settings: dict[str, Any], grammar: str) -> None:
        self.start = self.at = start
        self.offer = offer
        self.around = around
        self.context = Context(offer, settings)
        self.grammar = grammar
        self.evidence = False  # enough was read to call it cut, should the stream end here
        self.met = False  # the end condition of the form was met
        self.broken = False
        self.run: Run | None = None

    def shift(self, by: int) -> None:
        self.start -= by
        self.at -= by

    @property
    def keep(self) -> int:
        return self.start

    @property
    def refuted_to(self) -> int:
        """Up to here no markerless call may start, should this be refuted."""
        return self.at

    @property
    def valued(self) -> bool:
        """Is the value read to its end, so that only the end of the form is missing?"""
        return False

    @property
    def name(self) -> str | None:
        """The name, as far as it was read."""
        return None

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        """Read on up to ``end``: MORE, DEAD or DONE."""
        raise NotImplementedError

    def calls(self, buf: bytearray) -> list[Written]:
        """The calls that were read, with offsets from the start of the form, in bytes."""
        raise NotImplementedError


class BareReader(LineReader):
    """An object or array of calls, or a pythonic list, that starts a line. ``whole``: it must be the whole response."""

    __slots__ = ("_code", "_json", "_tailed", "_watch", "end", "pieces", "whole")

    @property
    def valued(self) -> bool:
        return self._tailed

    @property
    def name(self) -> str | None:
        return self._watch.name

    def __init__(
        self, start: int, offer: Offer, around: Around, settings: dict[str, Any], grammar: str, whole: bool = False
    ) -> None:
        super().__init__(start, offer, around, settings, grammar)
        self.whole = whole
        self.pieces: list[tuple[int, int]] = []
        self.end = start
        self._begin(start)

    def _begin(self, start: int) -> None:
        self._watch = CallWatch(self.offer, bare=True)
        self._json: JsonReader | None = JsonReader(start, self.around, self._watch)
        self._code: CodeReader | None = (
            CodeReader(start, self.around, self.offer, {**self.context.settings, "markerless": True})
            if self.offer.known and not self.pieces
            else None
        )
        self._tailed = False

    def shift(self, by: int) -> None:
        super().shift(by)
        self.end -= by
        self.pieces = [(start - by, end - by) for start, end in self.pieces]
        for reader in (self._json, self._code):
            if reader is not None:
                reader.shift(by)

    @property
    def refuted_to(self) -> int:
        return max(self.at, self.end)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        while True:
            if self._tailed:
                verdict = self._tail(buf, end, final)
            else:
                verdict = self._value(buf, end, final)
            if verdict >= 0:
                return verdict

    def _value(self, buf: bytearray, end: int, final: bool) -> int:
        for which in ("_code", "_json"):
            reader = getattr(self, which)
            if reader is None:
                continue
            verdict = reader.read(buf, end, final)
            self.at = max(self.at, reader.at)
            if verdict == DEAD or (verdict == DONE and reader.broken):
                setattr(self, which, None)
                continue
            if verdict == MORE:
                continue
            self.at = self.end = reader.at
            self.pieces.append((self.pieces[-1][1] if self.pieces else self.start, reader.at))
            if which == "_code":
                if not reader.evidence or buf[self.start] != 0x5B:
                    return DEAD
                self.met = True
                self._json = None
                return DONE
            if not self._watch.named and self.offer.known:
                # An envelope with an empty list, an array of data: no call was named.
                return DEAD
            self._code = None
            self._tailed = True
            return -1
        if self._json is None and self._code is None:
            return DEAD
        alone = self._json if self._code is None else self._code if self._json is None else None
        self.run = alone.run if alone is not None else None
        if self._code is not None and buf[self.start] != 0x5B:
            self._code = None
            if self._json is None:
                return DEAD
        self.evidence = (self._json is not None and self._watch.named and self._watch.declared) or (
            self._code is not None and self._code.evidence
        )
        return MORE

    def _tail(self, buf: bytearray, end: int, final: bool) -> int:
        """Nothing but blanks may follow on the last line; ``;`` joins another object."""
        self.run = None
        if self.whole:
            run = BLANK.match(buf, self.end, end)
            i = run.end() if run is not None else self.end
            if i - self.end > MAX_BLANKS or i < end:
                return DEAD
            # Its end is that of the response, which a cut one never reaches.
            self.at = self.end if final else i
            return DONE if final else MORE
        i = self.at
        while True:
            run = _TAIL.match(buf, i, end)
            i = run.end() if run is not None else i
            if i - self.end > MAX_HEADER:
                return DEAD
            if i == end:
                self.at = self.end
                return DONE if final else MORE
            newline = _NEWLINE.match(buf, i, end)
            if newline is not None or (buf[i] == 0x0D and (i + 1 < end or final)):
                self.at = self.end
                self.met = True
                return DONE
            if buf[i] == 0x0D:
                return MORE
            size = self.around.outer.at(buf, i, end)
            if size == CUT:
                return MORE
            if size > 0 and buf[i] not in b"[{":
                self.at = self.end
                self.met = True
                return DONE
            if buf[i] == 0x3B:
                blank = BLANK.match(buf, i + 1, end)
                j = blank.end() if blank is not None else i + 1
                if j == end and not final and j - i <= MAX_BLANKS:
                    return MORE
                if j < end and buf[j] == 0x7B and j - i <= MAX_BLANKS:
                    self.at = j
                    self._begin(j)
                    return -1
            return DEAD

    def calls(self, buf: bytearray) -> list[Written]:
        """The calls of all pieces, with offsets from the start of the form."""
        out: list[Written] = []
        if not self.pieces:
            return out
        for start, end in self.pieces:
            raw = bytes(buf[start:end])
            skip = len(raw) - len(raw.lstrip(b" \t\r\n;"))
            is_code = self._json is None
            found = (decode_code if is_code else decode_json)(raw[skip:], "whole", self.context)
            for call in found:
                call.start += start + skip - self.start
                call.end += start + skip - self.start
                call.repairs = moved(call.repairs, start + skip - self.start)
            out += found
        return out


class NamedReader(LineReader):
    """``NAME{…}`` of an offered tool where a line starts, with or without ``call:``."""

    __slots__ = ("_name", "_reader", "_watch")

    def __init__(self, start: int, offer: Offer, around: Around, settings: dict[str, Any], grammar: str) -> None:
        super().__init__(start, offer, around, settings, grammar)
        self._name = ""
        self._reader: JsonReader | None = None
        self._watch: _Declared | None = None

    @property
    def name(self) -> str | None:
        return self._name or None

    def shift(self, by: int) -> None:
        super().shift(by)
        if self._reader is not None:
            self._reader.shift(by)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if self._reader is None:
            named = _NAMED.match(buf, self.start, end)
            if named is None or named.end() == end or buf[named.end()] != 0x7B:
                return DEAD if final or named is None or named.end() < end else MORE
            self._name = named.group(1).decode("utf-8", "replace")
            tool = self.offer.plain(self._name)
            if tool is None:
                return DEAD
            self._watch = _Declared(tool)
            self._reader = JsonReader(named.end(), self.around, self._watch)
        reader = self._reader
        verdict = reader.read(buf, end, final)
        self.at = reader.at
        self.run = reader.run
        self.evidence = self._watch is not None and self._watch.declared
        if verdict == DONE and reader.broken:
            return DEAD
        self.met = verdict == DONE
        return verdict

    def calls(self, buf: bytearray) -> list[Written]:
        """The one call."""
        raw = bytes(buf[self.start : self.at])
        body = raw[raw.index(b"{") :]
        call = Written(self._name, end=len(raw))
        try:
            loaded = load(body.decode("utf-8", "replace"), quote_tokens=self.context.settings.get("quotes", ()))
            call.arguments = loaded.value
            call.repairs += in_bytes(under_arguments(loaded.repairs), body, len(raw) - len(body))
            settle(call)
        except Unreadable:
            return BODIES["loose_object"].decode(raw, "whole", self.context)
        return [call]


class _Declared:
    """Refuses an object at its first key that the tool does not declare."""

    __slots__ = ("bare", "declared", "tool")

    def __init__(self, tool: Tool) -> None:
        self.bare = True
        self.tool = tool
        self.declared = False

    def key(self, depth: int, key: bytes) -> bool:
        if depth == 1:
            known = self.tool.key(key.decode("utf-8", "replace")) is not None
            self.declared = self.declared or known
            return known
        return True

    def string(self, depth: int, key: bytes, value: bytes) -> bool:
        return True

    def opened(self, depth: int, key: bytes, bracket: int, at: int) -> bool:
        return True

    def closed(self, depth: int, at: int) -> bool:
        return True

    def shift(self, by: int) -> None:
        pass


class GlmForm(LineReader):
    """``tool/param>value`` or ``tool/{json}``: a whole line."""

    __slots__ = ("_reader",)

    def __init__(self, start: int, offer: Offer, around: Around, settings: dict[str, Any], grammar: str) -> None:
        super().__init__(start, offer, around, settings, grammar)
        self._reader = GlmLineReader(start, around, offer, settings)

    @property
    def name(self) -> str | None:
        return self._reader.name

    def shift(self, by: int) -> None:
        super().shift(by)
        self._reader.shift(by)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        verdict = self._reader.read(buf, end, final)
        self.at = self._reader.at
        self.evidence = self._reader.evidence
        self.met = verdict == DONE and (self.at < end or not final)
        # A line that holds another call is none itself.
        return DEAD if verdict == DONE and self._reader.broken else verdict

    def calls(self, buf: bytearray) -> list[Written]:
        """The one call of the line."""
        return BODIES["glm_line"].decode(bytes(buf[self.start : self.at]), "whole", self.context)


class ActionReader(LineReader):
    """``Action: NAME`` + ``Action Input: {…}``, or ``Action:`` + a json fence of calls."""

    __slots__ = ("_closing", "_fence", "_input", "_name", "_reader", "_start_word", "_value")

    def __init__(
        self,
        start: int,
        offer: Offer,
        around: Around,
        settings: dict[str, Any],
        grammar: str,
        words: tuple[bytes, bytes],
    ) -> None:
        super().__init__(start, offer, around, settings, grammar)
        self._start_word, self._input = words
        self._reader: JsonReader | None = None
        self._fence = False
        self._closing = False  # the value is read
        self._name = ""
        self._value = start  # where it starts

    @property
    def valued(self) -> bool:
        return self._closing

    @property
    def name(self) -> str | None:
        return self._name or None

    def shift(self, by: int) -> None:
        super().shift(by)
        self._value -= by
        if self._reader is not None:
            self._reader.shift(by)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if self._reader is None:
            verdict = self._head(buf, end, final)
            if verdict >= 0:
                return verdict
        reader = self._reader
        assert reader is not None
        if not self._closing:
            verdict = reader.read(buf, end, final)
            self.at = reader.at
            self.run = reader.run
            self.evidence = bool(self._name)
            if verdict != DONE:
                return verdict
            if reader.broken:
                return DEAD
            self.run = None
            self._closing = True
            if not self._fence:
                self.met = True
                return DONE
        run = BLANK.match(buf, self.at, end)
        i = run.end() if run is not None else self.at
        if i - self.at > MAX_BLANKS:
            return DEAD
        j = i
        while j < end and buf[j] == 0x60:
            j += 1
        if j == end and (j - i < 3 or not final):
            return MORE
        if j - i < 3:
            return DEAD
        self.at = j
        self.met = True
        return DONE

    def _head(self, buf: bytearray, end: int, final: bool) -> int:
        more = DEAD if final else MORE
        i = self.start + len(self._start_word)
        run = _TAIL.match(buf, i, end)
        i = run.end() if run is not None else i
        if i - self.start > MAX_HEADER:
            return DEAD
        if i == end:
            return more
        name = _WORD.match(buf, i, end)
        if name is None:
            fence = _ACTION_FENCE.match(buf, i, end)
            if fence is None:
                return more if _ACTION_FENCE_CUT.match(buf, i, end) is not None else DEAD
            self._fence = True
            self._value = fence.end()
            self._reader = CallReader(fence.end(), self.around, self.offer, {})
            return -1
        if name.end() == end:
            word = name.group().decode("utf-8", "replace")
            return more if self.offer.may_begin(word) else DEAD
        self._name = name.group().decode("utf-8", "replace")
        if self.offer.plain(self._name) is None:
            return DEAD
        run = BLANK.match(buf, name.end(), end)
        j = run.end() if run is not None else name.end()
        gap = bytes(buf[name.end() : j])
        if len(gap) > MAX_BLANKS:
            return DEAD
        if j == end:
            return more
        if b"\n" not in gap:
            return DEAD
        here = bytes(buf[j : j + len(self._input)])
        if here != self._input:
            return more if j + len(here) == end and self._input.startswith(here) else DEAD
        run = BLANK.match(buf, j + len(here), end)
        k = run.end() if run is not None else j + len(here)
        if k - j > MAX_BLANKS:
            return DEAD
        if k == end:
            return more
        if buf[k] != 0x7B:
            return DEAD
        self._value = k
        self._reader = JsonReader(k, self.around)
        return -1

    def calls(self, buf: bytearray) -> list[Written]:
        """The one call, or those of the fence."""
        raw = bytes(buf[self.start : self.at])
        offset = self._value - self.start
        if self._fence:
            body = raw[offset:].rstrip(b"` \t\r\n")
            calls = decode_json(body, "whole", self.context)
            for call in calls:
                call.start += offset
                call.end += offset
                call.repairs = moved(call.repairs, offset)
            return calls
        call = Written(self._name, end=len(raw))
        try:
            loaded = load(raw[offset:].decode("utf-8", "replace"))
            call.arguments = loaded.value
            call.repairs += in_bytes(under_arguments(loaded.repairs), raw[offset:], offset)
            settle(call)
        except Unreadable as error:
            call.fault = str(error)
        return [call]


class FenceReader(LineReader):
    """A json fence, or one without a language, whose whole content is a call object or array."""

    __slots__ = ("_char", "_count", "_reader", "_watch", "closed", "content")

    @property
    def valued(self) -> bool:
        return self.met

    @property
    def name(self) -> str | None:
        return self._watch.name

    def __init__(
        self,
        start: int,
        content: int,
        char: int,
        count: int,
        offer: Offer,
        around: Around,
        settings: dict[str, Any],
        grammar: str,
    ) -> None:
        super().__init__(start, offer, around, settings, grammar)
        self._char = char
        self._count = count
        self._watch = CallWatch(offer, bare=True)
        self.content = content
        self.closed = False  # its closing run was there
        self._reader = JsonReader(content, around, self._watch)

    def shift(self, by: int) -> None:
        super().shift(by)
        self.content -= by
        self._reader.shift(by)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if not self.met:
            verdict = self._reader.read(buf, end, final)
            self.at = self._reader.at
            self.run = self._reader.run
            self.evidence = self._watch.named and self._watch.declared
            if verdict == DEAD or (verdict == DONE and (self._reader.broken or not self._watch.named)):
                return DEAD
            if verdict == MORE:
                return MORE
            self.met = True
            self.run = None
        run = BLANK.match(buf, self.at, end)
        i = run.end() if run is not None else self.at
        if i - self.at > MAX_BLANKS:
            return DEAD
        if i == end:
            return DONE if final else MORE
        j = i
        while j < end and buf[j] == self._char:
            j += 1
        if j == end and (j - i < self._count or not final):
            return MORE
        if j - i < self._count or b"\n" not in buf[self.at : i]:
            return DEAD
        self.at = j
        self.closed = True
        return DONE

    def calls(self, buf: bytearray) -> list[Written]:
        """The calls of the content, with offsets from the start of the fence."""
        offset = self.content - self.start
        raw = bytes(buf[self.content : self._reader.at])
        calls = decode_json(raw, "whole", self.context)
        for call in calls:
            call.start += offset
            call.end += offset
            call.repairs = moved(call.repairs, offset)
        return calls


class ElementReader(LineReader):
    """``<NAME><param>value</param></NAME>`` for an offered name with declared children only."""

    __slots__ = ("_child", "_key", "tool", "values")

    @property
    def name(self) -> str:
        return self.tool.name

    def __init__(
        self, start: int, offer: Offer, around: Around, settings: dict[str, Any], grammar: str, name: str, head_end: int
    ) -> None:
        super().__init__(start, offer, around, settings, grammar)
        tool = offer.get(name)
        assert tool is not None
        self.tool = tool
        self.at = head_end
        self.values: list[tuple[str, int, int]] = []
        self._key = ""  # the child that is open
        self._child = 0  # where its text starts

    def shift(self, by: int) -> None:
        super().shift(by)
        self._child -= by
        self.values = [(key, start - by, end - by) for key, start, end in self.values]

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        while True:
            verdict = self._in_child(buf, end, final) if self._key else self._between(buf, end, final)
            if verdict >= 0:
                return verdict

    def _between(self, buf: bytearray, end: int, final: bool) -> int:
        run = BLANK.match(buf, self.at, end)
        i = run.end() if run is not None else self.at
        if i - self.at > MAX_BLANKS:
            return DEAD
        if i == end:
            return MORE
        close = b"</" + self.name.encode() + b">"
        here = bytes(buf[i : i + len(close)])
        if here == close:
            if not self.values:
                return DEAD
            self.at = i + len(close)
            self.met = True
            self.evidence = True
            return DONE
        if close.startswith(here) and i + len(here) == end:
            return MORE
        child = CHILD.match(buf, i, end)
        if child is None:
            return MORE if not final and CHILD_CUT.match(buf, i, end) is not None else DEAD
        key = child.group(1).decode("utf-8", "replace")
        if key not in self.tool.properties:
            return DEAD
        self._key = key
        self._child = self.at = child.end()
        self.evidence = True
        return -1

    def _in_child(self, buf: bytearray, end: int, final: bool) -> int:
        close = b"</" + self._key.encode() + b">"
        at = self.at
        while True:
            i = buf.find(close, at, end)
            if i < 0:
                self.at = max(self.at, end - len(close) + 1)
                return MORE
            # A closer that a sibling, the element's closer or the end follows; others are data.
            j = i + len(close)
            run = BLANK.match(buf, j, end)
            k = run.end() if run is not None else j
            wide = k - j > MAX_BLANKS
            if k == end and not final and not wide:
                self.at = i
                return MORE
            if not wide and (k == end or buf[k] == 0x3C):
                self.values.append((self._key, self._child, i))
                self._key = ""
                self.at = j
                return -1
            at = i + 1

    def calls(self, buf: bytearray) -> list[Written]:
        """The one call."""
        call = Written(self.name, end=self.at - self.start)
        call.complete = not self._key
        call.texts = {}
        for key, start, end in self.values:
            text = bytes(buf[start:end]).decode("utf-8", "replace")
            if not self.tool.string_only(key) or (text.startswith("\n") and text.endswith("\n")):
                text = text.strip("\r\n")
            call.texts[key] = (text, "")
        return [call]


class EmptyElementReader(LineReader):
    """``<NAME param="value"/>`` for an offered name: it was read to its end before it counted."""

    __slots__ = ("_name", "_values")

    def __init__(self, start: int, offer: Offer, grammar: str, element: Element) -> None:
        super().__init__(start, offer, Around(), {}, grammar)
        self._name = element.name
        self._values = element.attributes
        self.at = element.stop
        self.evidence = self.met = True

    @property
    def name(self) -> str:
        return self._name

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        return DONE

    def calls(self, buf: bytearray) -> list[Written]:
        """The one call."""
        call = Written(self._name, end=self.at - self.start)
        call.texts = {key: (text, "") for key, text in self._values.items()}
        return [call]


_ATTRIBUTE: Final = re.compile(rb"[ \t\r\n]*+([\w.:-]++)[ \t\r\n]*+=")


@dataclass(slots=True)
class Element:
    """The start of an element: its name, the index behind its tag, and the attributes of one without content."""

    name: str
    stop: int
    attributes: dict[str, str] = field(default_factory=dict)
    empty: bool = False
    cut: bool = False  # the stream ends in its tag, behind the name of a declared attribute


def element_at(
    buf: bytearray, i: int, end: int, offer: Offer, reserved: frozenset[str], final: bool
) -> tuple[int, Element | None]:
    """Does an element of an offered name start at ``i``? (MORE or DEAD, None) or (DONE, the element)."""
    more = DEAD if final else MORE
    word = _WORD.match(buf, i + 1, end)
    stop = word.end() if word is not None else i + 1
    name = bytes(buf[i + 1 : stop]).decode("utf-8", "replace")
    if stop == end:
        return (more if not name or offer.may_begin(name) else DEAD), None
    tool = offer.get(name)
    if tool is None or name in reserved or buf[stop] not in b" \t\r\n/>":
        return DEAD, None
    verdict, at, found = read_attributes(buf, stop, end)
    if verdict == MORE:
        open_key = _ATTRIBUTE.match(buf, at, end) if final else None
        keys = [*found, *((open_key.group(1).decode("utf-8", "replace"),) if open_key is not None else ())]
        if final and keys and all(tool.key(key) is not None for key in keys):
            return DONE, Element(name, end, found, empty=True, cut=True)
        return more, None
    if verdict == DEAD:
        return DEAD, None
    if "/" not in found:
        return (DONE, Element(name, at)) if not found else (DEAD, None)
    del found["/"]
    if any(tool.key(key) is None for key in found):
        return DEAD, None
    return DONE, Element(name, at, found, empty=True)
