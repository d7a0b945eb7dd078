"""The machine: bytes in, events out. All state is here, in explicit fields; it knows no wire format.

Text runs through until a marker of the tables is met. Then a *candidate* begins: a reader follows it until it is
certain to be a call (``DONE``), certain not to be one (``DEAD``), or the stream ends. What is refuted goes back to the
text and scanning resumes inside it. Every decision depends on the bytes alone, never on how they were cut: a reader is
asked again with more bytes until the answer can no longer change.

(Longer than other modules: what can be told apart from the state was moved out, and the state is one thing.)
"""

from __future__ import annotations

import copy
import re
from codecs import utf_8_decode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from .blocks import NEST, BlockReader, Envelope, Part, Use
from .bodies.base import Ending, Written
from .bodies.json_call import scan
from .bodies.tags import TagsReader
from .events import (
    ArgumentsDelta,
    CallStarted,
    DropKind,
    Dropped,
    Event,
    Reasoning,
    RejectedCall,
    Repair,
    Text,
    ToolCall,
    set_span,
    set_text,
)
from .frames import Frame, Header, HeaderReader
from .grammar import Grammar, Kind, Role, Tables, tables
from .limits import CLOSER_WAIT, MAX_BLANKS, MAX_CALL_BYTES, MAX_CALLS, MAX_DEPTH, MAX_HEADER, MAX_NAME
from .lines import (
    ActionReader,
    BareReader,
    ElementReader,
    FenceReader,
    GlmForm,
    NamedReader,
    declared,
    element_at,
)
from .names import Offer
from .reading import BLANK, DEAD, DONE, MORE, NOTHING, Around, Run
from .resolve import Outcome, decode_parts, merge_headed, settle_call
from .sentinels import CUT, Sentinels
from .tools import read_tools

# Finish reasons by what they say about the last bytes: cut off, or ended on purpose.
_CUT_REASONS: Final = frozenset(("length", "max_tokens", "MAX_TOKENS", "content_filter", "model_length", "max_output_tokens"))

_TEXT, _CANDIDATE, _REASON, _FENCE, _RESULT, _DROP, _SKIP = range(7)
_NO_PAD, _DROP_PAD, _KEEP_PAD, _LEAD_PAD = range(4)

_LINE_CHARS: Final = re.compile(rb"[ \t>*+\-0-9.)]{0,32}")
_FENCE_LINE: Final = re.compile(rb" {0,3}+(?:(?:>[ \t]?+|[-*+][ \t]++|\d{1,9}+[.)][ \t]++)[ \t]{0,3}+)*+")
_CLOSING_LINE: Final = re.compile(rb"[ \t]{0,12}(?:>[ \t]?)*[ \t]{0,3}")
_WORD: Final = re.compile(rb"[A-Za-z_][\w.-]{0,%d}+" % MAX_NAME)
_INFO: Final = re.compile(rb"[ \t]*+([^\s`]*+)[ \t]*+")
_TAG_END: Final = re.compile(rb"[ \t\r\n]*+/?>")
_TAG_END_CUT: Final = re.compile(rb"[ \t\r\n]*+/?\Z")
_SIGIL_TAG: Final = re.compile(rb"[ \t]*+[\w:]*+[ \t]*+(?:[^<>\n\r]{0,%d}?>|\|(?=\s))?" % MAX_HEADER)
_SIGIL_CUT: Final = re.compile(rb"[^<>\n\r]{0,%d}+\|?\Z" % MAX_HEADER)
_RUN_OR_LINE: Final = re.compile(rb"`+|\n")
_AT_HEADER: Final = re.compile(rb"[ \t]to=[^\s<]{0,%d}[ \t]*+" % MAX_NAME)
_AT_HEADER_CUT: Final = re.compile(rb"[ \t](?:t(?:o(?:=(?:[^\s<]{0,%d}[ \t]*+)?)?)?)?\Z" % MAX_NAME)
_new: Final = object.__new__


def _nothing(text: str) -> object:
    return None



class _Reads(Protocol):
    at: int
    evidence: bool
    broken: bool
    run: Run | None

    def read(self, buf: bytearray, end: int, final: bool) -> int: ...
    def shift(self, by: int) -> None: ...
    @property
    def keep(self) -> int: ...


@dataclass(slots=True)
class _Candidate:
    """A stretch that began with a marker and may still become a call."""

    start: int
    reader: _Reads
    what: str  # "block", "tags", "header", "line"
    size: int  # bytes of the opener
    role: Role | None = None
    special: bool = False
    quoted: int = 0  # directly behind a backtick run of this length
    name: str = ""  # of a call frame
    code: bool = False
    verdict: int = MORE
    number: int = -1  # announced with progress
    told: int = -1  # argument bytes already told


class StreamScrubber:
    """Reads one response as it arrives. See the README for the events and the guarantees.

    ``tools`` are the tools offered in this request, in any ecosystem's shape (``Tool``, OpenAI, Anthropic, MCP); None:
    unknown, so names are taken as written; ``[]``: none. ``grammars`` restricts the wire formats to names, paths of
    TOML files or ``Grammar`` objects. ``model`` orders ambiguous readings. ``reasoning`` is "auto", "open" (the prompt
    opened a section) or "off"; ``prefill`` the tail of the prompt that belongs to the assistant's turn. With
    ``recover=False`` calls are scrubbed and rejected as withheld. ``on_fabricated`` is "drop", "cut" or "keep".
    ``strict`` rejects every call that would need a repair. The limits are explained in ``streamscrub.limits``.

    Raises ``TypeError`` or ``ValueError`` for wrong use, never for what a model wrote.
    """

    def __init__(
        self,
        tools: Iterable[Any] | None = None,
        *,
        grammars: Iterable[str | Path | Grammar] | None = None,
        model: str | None = None,
        reasoning: Literal["auto", "open", "off"] = "auto",
        prefill: str | bytes = "",
        recover: bool = True,
        on_fabricated: Literal["drop", "cut", "keep"] = "drop",
        progress: bool = False,
        strict: bool = False,
        max_call_bytes: int = MAX_CALL_BYTES,
        max_depth: int = MAX_DEPTH,
        max_calls: int = MAX_CALLS,
    ) -> None:
        _one_of("reasoning", reasoning, ("auto", "open", "off"))
        _one_of("on_fabricated", on_fabricated, ("drop", "cut", "keep"))
        for name, limit in (("max_call_bytes", max_call_bytes), ("max_depth", max_depth), ("max_calls", max_calls)):
            if not isinstance(limit, int) or isinstance(limit, bool):
                raise TypeError(f"{name} must be an int, not {type(limit).__name__}")
            if limit < 1:
                raise ValueError(f"{name} must be at least 1, not {limit}")
        for name, flag in (("recover", recover), ("progress", progress), ("strict", strict)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} must be a bool, not {type(flag).__name__}")
        if model is not None and not isinstance(model, str):
            raise TypeError(f"model must be a str or None, not {type(model).__name__}")
        self._options = (tuple(grammars) if grammars is not None and not isinstance(grammars, str) else grammars, model)
        self._offer = Offer(read_tools(tools))
        self._tables = tables(self._options[0], model)
        self._recover = recover
        self._on_fabricated = on_fabricated
        self._reasoning = reasoning
        self._progress = progress
        self._strict = strict
        self._max_bytes = max_call_bytes
        self._max_depth = max_depth
        self._max_calls = max_calls

        self._buf = bytearray()
        self._base = 0  # wire offset of the first byte of the buffer
        self._at = 0  # buffer index: everything before it was told
        self._i = 0  # buffer index: text up to it is accepted but not told yet
        self._high = ""  # the first half of a surrogate pair
        self._finished = False
        self._cut_off = False  # the finish reason says that the stream was cut

        self._search: Callable[[str], object] | None = None
        self._match: Callable[[bytearray, int], re.Match[bytes]] | None = None
        self._quiet: Callable[[str], object] = _nothing
        self._matched = 0
        self._match_limit = 0
        self._parts: list[str] = []  # deltas that decide nothing, not in the buffer yet
        self._room = 0  # bytes that may still be taken without looking at the limit

        self._mode = _TEXT
        self._candidate: _Candidate | None = None
        self._pending: list[tuple[DropKind, int, int]] = []  # undecided bytes right before ``_at``
        self._number = 0
        self._out: list[Event] = []

        # What was released, as far as decisions need it.
        self._tail = ""  # the last text shown
        self._told_to = 0  # the wire offset behind what was told as text or dropped as words
        self._last = b""  # the last bytes of it
        self._shown = False  # any text was shown
        self._pad = _LEAD_PAD
        self._line: bytes | None = b""  # the line so far, while a fence or a form may still start on it
        self._fresh_line = True  # the line start has not been looked at
        self._span = 0  # an inline code span opened by this many backticks
        self._span_at = -1  # buffer index behind its opening run
        self._span_sure = False  # its closing run was seen on the line
        self._muted = -1  # up to this index no markerless form starts
        self._released: frozenset[bytes] = frozenset()  # tags whose opener was released on this line
        self._after_markup = True  # nothing but blanks since the start, a block, a section or a control token
        self._marked = False  # markup was met at all
        self._after_call = False
        self._answered = False  # an answer wrapper was opened
        self._section = False  # inside a special wrapper
        self._wrapper: Envelope | None = None
        self._bare_fence: tuple[int, int] | None = None  # (character, length) of an open fence without a language
        self._bare_kept = False  # its opener was shown
        self._fence: tuple[int, int] = (0, 0)
        self._fence_run = 0
        self._frame: Frame | None = None
        self._frame_kind = ""
        self._frame_over = False  # a message ended, so a role word may follow
        self._stop: Sentinels | None = None
        self._drop_kind: DropKind = "fabricated_turn"
        self._last_calls: list[tuple[str, dict[str, Any]]] = []
        self._label = b""

        # Reasoning.
        self._drafts: list[_Candidate] = []
        self._draft_from = -1  # where the held drafts start

        if reasoning == "open":
            self._enter_reasoning(b"")
        self._prefilling = False
        if not isinstance(prefill, str | bytes):
            raise TypeError(f"prefill must be str or bytes, not {type(prefill).__name__}")
        if prefill:
            data = self._encode(prefill) if isinstance(prefill, str) else prefill
            self._base = -len(data)
            self._buf += data
            self._prefilling = True
            self._run(False)
            self._compact()
            self._out = []
            self._prefilling = False
            self._tail, self._shown = "", False
            if self._mode == _TEXT and self._pad == _NO_PAD:
                self._pad = _DROP_PAD

    # -- the public face

    def feed(self, chunk: str | bytes) -> list[Event]:
        """Take the next piece of the response, cut anywhere. Returns what is decided by now, in order.

        Raises ``TypeError`` for anything but ``str`` or ``bytes`` and ``ValueError`` after ``finish``.
        """
        # Two states make up nearly all of a stream, and each is left only for something that could change it: ordinary
        # text in the middle of a line, and the inside of a long string or value.
        if type(chunk) is str:
            search = self._search
            if search is not None and search(chunk) is None and chunk:
                start = self._base
                try:
                    self._base = end = start + (len(chunk) if chunk.isascii() else len(chunk.encode()))
                except UnicodeEncodeError:
                    return self._slow(self._encode(chunk))
                self._tail = chunk
                event = _new(Text)
                set_text(event, chunk)
                set_span(event, (start, end))
                return [event]
            match = self._match
            if match is not None:
                if self._quiet(chunk) is not None and chunk.isascii():
                    self._room -= len(chunk)
                    if self._room >= 0:
                        self._parts.append(chunk)
                        return []
                self._join()
                try:
                    data = chunk.encode()
                except UnicodeEncodeError:
                    data = self._encode(chunk)
                buf = self._buf
                buf += data
                size = len(buf)
                self._matched = end = match(buf, self._matched).end()
                # The last bytes may begin an escape or a tag, which is longer; they are matched again with the next ones.
                pause = size - end
                if (not pause or (pause <= 3 and (buf[end] == 0x3C or (pause == 1 and buf[end] == 0x5C)))) and size <= self._match_limit:
                    self._room = -1 if pause else self._match_limit - size
                    return []
                return self._slow(b"")
            data = self._encode(chunk)
        elif isinstance(chunk, bytes | bytearray | memoryview):
            data = bytes(chunk)
            if self._high:
                data = b"\xef\xbf\xbd" + data
                self._high = ""
        elif isinstance(chunk, str):
            data = self._encode(str(chunk))
        else:
            raise TypeError(f"feed takes str or bytes, not {type(chunk).__name__}")
        if self._finished:
            raise ValueError("feed after finish: make a new StreamScrubber for the next response")
        return self._slow(data)

    def _slow(self, data: bytes) -> list[Event]:
        """Take bytes through the machine, and see whether the next delta may go the fast way."""
        self._leave_fast_way()
        self._buf += data
        self._run(False)
        self._compact()
        out, self._out = self._out, []
        candidate = self._candidate
        if candidate is None:
            if self._mode == _TEXT and not self._buf and self._fast():
                self._search = self._tables.lead.search
        elif self._mode == _CANDIDATE and not self._progress and not self._high:
            reader = candidate.reader
            if reader.run is not None:
                self._match = reader.run.match
                self._quiet = reader.run.quiet
                self._matched = _innermost(reader).at
                self._match_limit = candidate.start + self._max_bytes
                self._room = self._match_limit - len(self._buf) if self._matched == len(self._buf) else -1
        return out

    def _leave_fast_way(self) -> None:
        """Bring the state up to date with what went by unread."""
        if self._match is not None:
            self._skimmed()
        elif self._search is not None:
            self._told_to = self._base
            self._last = self._tail[-1:].encode()
            self._shown = True
            self._after_markup = False
        self._search = self._match = None
        self._quiet = _nothing

    def finish(self, finish_reason: str | None = None) -> list[Event]:
        """End the response. ``finish_reason`` None means that the stream broke off and is treated like "length".

        Returns the last events; a second call returns nothing. Raises ``TypeError`` for a reason that is no string.
        """
        if finish_reason is not None and not isinstance(finish_reason, str):
            raise TypeError(f"finish_reason must be a str or None, not {type(finish_reason).__name__}")
        if self._finished:
            return []
        self._finished = True
        self._cut_off = finish_reason is None or finish_reason in _CUT_REASONS
        if self._high:
            self._buf += b"\xef\xbf\xbd"
            self._high = ""
        self._leave_fast_way()
        self._run(True)
        self._compact()
        out, self._out = self._out, []
        return out

    @property
    def held(self) -> bytes:
        """What is withheld right now, in wire bytes."""
        self._join()
        start = self._pending[0][1] if self._pending else self._at
        return bytes(self._buf[max(start, -self._base) :])

    # -- text on the fast path

    def _fast(self) -> bool:
        """True in the middle of a line of ordinary text, where only a lead character can change anything."""
        return (
            self._line is None
            and not self._fresh_line
            and self._pad == _NO_PAD
            and not self._section
            and not self._high
            and not self._finished
            and not self._pending
        )

    def _encode(self, chunk: str) -> bytes:
        """Wire bytes of a text delta: a surrogate pair joins over two deltas, a lone one is U+FFFD."""
        if self._high:
            chunk = self._high + chunk
            self._high = ""
        try:
            return chunk.encode()
        except UnicodeEncodeError:
            if "\ud800" <= chunk[-1] <= "\udbff":
                self._high = chunk[-1]
                chunk = chunk[:-1]
            return chunk.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()

    def _join(self) -> None:
        """Bring the deltas that were only kept into the buffer."""
        if self._parts:
            self._buf += "".join(self._parts).encode()
            self._parts.clear()
            self._matched = len(self._buf)

    def _skimmed(self) -> None:
        """Everything up to ``_matched`` was the text of an open string or value."""
        self._join()
        candidate = self._candidate
        assert candidate is not None
        reader: Any = candidate.reader
        while reader is not None:
            reader.at = self._matched
            reader = getattr(reader, "inner", None)

    # -- the loop

    def _run(self, final: bool) -> None:
        while _STEPS[self._mode](self, final):
            pass

    def _compact(self) -> None:
        """Forget what was told. The buffer holds only what is undecided."""
        candidate = self._candidate
        low = self._pending[0][1] if self._pending else self._at
        if low <= 0:
            return
        if candidate is not None:
            low = min(low, candidate.start) if self._mode != _SKIP else min(candidate.reader.keep, candidate.reader.at)
        if self._draft_from >= 0:
            low = min(low, self._draft_from)
        if low <= 0:
            return
        del self._buf[:low]
        self._base += low
        self._at -= low
        self._i -= low
        self._span_at -= low
        self._muted -= low
        self._draft_from = self._draft_from - low if self._draft_from >= 0 else -1
        if self._pending:
            self._pending = [(kind, start - low, end - low) for kind, start, end in self._pending]
        if candidate is not None:
            candidate.start -= low
            candidate.told -= low if candidate.told >= 0 else 0
            candidate.reader.shift(low)

    # -- telling

    def _span_of(self, start: int, end: int) -> tuple[int, int]:
        return max(0, self._base + start), max(0, self._base + end)

    def _tell_text(self, end: int) -> None:
        """Tell accepted text up to ``end``, what was undecided before it included."""
        start = self._at
        if self._pending:
            start = self._pending[0][1]
            self._pending.clear()
        self._at = end
        if end <= start:
            return
        self._told_to = self._base + end
        self._last = bytes(self._buf[max(start, end - 4) : end])
        if self._section:
            self._drop("wrapper", start, end)
            return
        base = self._base
        if base + end <= 0 or self._prefilling:
            return
        if base + start < 0:
            start = -base
        text = utf_8_decode(self._buf[start:end], "replace", True)[0]
        self._tail = text
        self._shown = True
        if self._after_markup and text.strip():
            self._after_markup = False
        event = _new(Text)
        set_text(event, text)
        set_span(event, (base + start, base + end))
        self._out.append(event)

    def _decode(self, start: int, end: int) -> str:
        return utf_8_decode(self._buf[start:end], "replace", True)[0]

    def _whole_end(self, start: int, end: int) -> int:
        """``end`` without the start of a code point that is still incomplete."""
        if end > start and self._buf[end - 1] < 0x80:
            return end
        for back in range(1, min(4, end - start + 1)):
            byte = self._buf[end - back]
            if byte < 0x80:
                break
            if byte >= 0xC0:
                need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF8 else 1
                if need > back:
                    # Only a sequence that can still become valid is waited for.
                    _, used = utf_8_decode(bytes(self._buf[end - back : end]), "replace", False)
                    return end - back if used == 0 else end
                break
        return end

    def _drop(self, kind: DropKind, start: int, end: int) -> None:
        if end <= start or self._base + end <= 0 or self._prefilling:
            return
        start = max(start, -self._base)
        self._out.append(Dropped(bytes(self._buf[start:end]), kind, self._span_of(start, end)))

    def _drop_pending(self) -> None:
        for kind, start, end in self._pending:
            self._drop(kind, start, end)
            if kind == "delimiter":
                self._bare_kept = False
        self._pending.clear()

    def _markup(self, kind: DropKind, start: int, end: int) -> None:
        """Drop a marker that stands where text was accepted up to ``start``."""
        self._before(start)
        self._drop_pending()
        self._drop(kind, start, end)
        self._at = self._i = end
        self._after_block()

    def _before(self, start: int) -> None:
        """Tell the text before a marker; blanks or a fence directly before it stay undecided."""
        if start > self._at:
            self._tell_text(start)

    def _after_block(self) -> None:
        """A block, a section or a control token ended at ``_at``: a line starts, white space may be padding."""
        self._pad = _DROP_PAD if not self._shown or self._tail[-1:].isspace() or not self._tail else _KEEP_PAD
        self._line = b""
        self._fresh_line = True
        self._after_markup = self._marked = True

    # -- text

    def _text(self, final: bool) -> bool:
        """Scan text from ``_i``. True to go on in another mode, False when more bytes are needed."""
        buf, tables = self._buf, self._tables
        end = len(buf)
        while True:
            if self._pad != _NO_PAD and not self._padding(end, final):
                return False
            i = self._i
            if i >= end:
                return self._rest(end, final)
            if self._fresh_line and self._line is not None:
                verdict = self._at_line_start(i, end, final)
                if verdict == MORE:
                    return self._hold(i, final)
                if verdict == DONE:
                    return True
                if self._mode != _TEXT:
                    return True
                if self._i != i:
                    continue
            found = tables.stop.search(buf, i, end)
            if found is None:
                self._advance(i, end)
                return self._rest(end, final)
            p = found.start()
            self._advance(i, p)
            byte = buf[p]
            if byte == 0x0A:
                self._i = p + 1
                self._new_line()
                continue
            if byte == 0x60 or byte == 0x7E:
                verdict = self._backticks(p, end, final)
            else:
                verdict = self._marker(p, end, final)
            if verdict == MORE:
                return self._hold(p, final)
            if verdict == DONE or self._mode != _TEXT:
                return True

    def _rest(self, end: int, final: bool) -> bool:
        """All is scanned: tell the accepted text, but for the start of a code point."""
        self._i = end
        stop = end if final else self._whole_end(self._at, end)
        if stop > self._at or (final and self._pending):
            if self._pad == _LEAD_PAD and not final:
                return False
            self._tell_text(stop)
            self._i = end
        return False

    def _hold(self, p: int, final: bool) -> bool:
        """The bytes from ``p`` on may become markup; what stands before them is text."""
        self._i = p
        if final:
            # Nothing follows, so what is held is decided now.
            self._end_of_text(p)
            return self._i < len(self._buf)
        if p > self._at:
            self._tell_text(p)
            self._i = p
        return False

    def _end_of_text(self, p: int) -> None:
        """A held tail at the end of the stream: dropped if it is the start of a token, else text (decision 20)."""
        buf = self._buf
        tail = bytes(buf[p:])
        text = tail.decode("utf-8", "replace")
        start = self._pending[0][1] if self._pending else self._at
        token = text.startswith(("<|", "<\uff5c")) and len(text) >= 3
        token = token or (text.startswith("]<]") and len(text) >= 4)
        soft = len(tail) >= 3 and text.startswith(("<", "]<"))
        directly = p == self._at and self._after_markup and start == p and self._shown is not None
        if self._tables.marks.is_prefix(tail) and (token or (soft and (self._cut_off or (directly and self._after_call)))):
            self._before(p)
            self._drop_pending()
            self._drop("cut_marker", p, len(buf))
            self._at = self._i = len(buf)
            return
        self._advance(p, len(buf))
        self._i = len(buf)
        self._tell_text(len(buf))

    def _padding(self, end: int, final: bool) -> bool:
        """White space at the start of the response, or after markup. False: wait for more."""
        i = self._i
        run = BLANK.match(self._buf, i, end)
        j = run.end() if run is not None else i
        pad = self._pad
        if pad == _DROP_PAD:
            if j > i:
                self._drop("padding", i, j)
                self._at = self._i = j
                self._line = b""
                self._fresh_line = True
            if j == end:
                return False
        elif pad == _LEAD_PAD:
            if j == end and not final and j - self._at <= MAX_BLANKS:
                if j - self._at > 0 and self._header_may_start(end):
                    pass
                self._i = j
                self._pad_line(i, j)
                return False
            if j > self._at and j - self._at <= MAX_BLANKS and j < end:
                self._pending.append(("padding", self._at, j))
                self._pad_line(i, j)
                self._at = self._i = j
            else:
                self._pad_line(i, j)
                self._i = j
        else:
            self._pad_line(i, j)
            self._i = j
            if j == end:
                self._pad = _KEEP_PAD
                self._rest(end, final)
                return False
        self._pad = _NO_PAD
        return True

    def _header_may_start(self, end: int) -> bool:
        return False

    def _pad_line(self, i: int, j: int) -> None:
        line = self._buf.rfind(b"\n", i, j)
        if line >= 0:
            self._new_line()
            self._line = bytes(self._buf[line + 1 : j])
        elif self._line is not None:
            self._line += bytes(self._buf[i:j])

    def _new_line(self) -> None:
        self._line = b""
        self._fresh_line = True
        self._span = 0
        self._span_sure = False
        if self._released:
            self._released = frozenset()

    def _advance(self, i: int, j: int) -> None:
        """Accept ``buf[i:j]``, which holds no newline, as text of the present line."""
        if j > i:
            if self._line is not None:
                line = self._line + bytes(self._buf[i : min(j, i + 40)])
                self._line = line if j - i < 40 and _LINE_CHARS.fullmatch(line) else None
            self._fresh_line = False
            if (self._after_markup or self._bare_fence is not None) and self._buf[i:j].strip():
                self._after_markup = False
                self._bare_kept = self._bare_fence is not None
        self._i = j

    # -- line starts

    def _at_line_start(self, i: int, end: int, final: bool) -> int:
        """Forms that count only where a line starts. MORE: hold; DONE: a candidate began; DEAD: none starts here."""
        buf = self._buf
        line = self._line or b""
        blank = BLANK.match(buf, i, end)
        byte = buf[i]
        if byte in b" \t":
            # Indentation is text at once; the form behind it may still start the line.
            j = blank.end() if blank is not None else i
            newline = buf.find(b"\n", i, j)
            stop = newline if newline >= 0 else j
            self._advance(i, stop)
            self._fresh_line = self._line is not None and stop == end
            if self._line is not None and len(self._line) <= 3 and stop < end and newline < 0:
                self._fresh_line = True
            return DEAD
        if self._frame_over and byte not in b" \t\r\n<":
            verdict = self._role_word(i, end, final)
            if verdict != DEAD or self._i != i:
                return verdict
        if byte in b"\r\n`~<":
            self._fresh_line = byte in b"`~"
            return DEAD
        if len(line) > 3 or line.strip():
            self._fresh_line = False
            return DEAD
        self._fresh_line = False
        if self._base + i == 0 and not self._shown and self._tables.frames and self._line == b"":
            pass
        if self._section or self._frame_kind or self._bare_fence is not None and self._bare_kept:
            return DEAD
        verdict = self._line_form(i, end, final)
        if verdict == MORE:
            self._fresh_line = True
        return verdict

    def _line_result(self, i: int, size: int) -> int:
        """A result that only a word opens, right behind a call: it reaches to the next token or the end."""
        if not self._after_call or not self._after_markup or self._on_fabricated == "keep":
            return DEAD
        self._before(i)
        self._drop_pending()
        self._at = self._i = i
        if self._on_fabricated == "cut":
            self._enter_drop("fabricated_result")
            return DONE
        self._drop("fabricated_result", i, i + size)
        self._at = self._i = i + size
        self._stop = NOTHING
        self._mode = _RESULT
        return DONE

    def _role_word(self, i: int, end: int, final: bool) -> int:
        """Between two messages a bare role word is the start of a header, if a header token follows it."""
        for frame in self._tables.frames:
            for role in frame.roles:
                word = role.encode()
                here = bytes(self._buf[i : i + len(word)])
                if here == word:
                    size = self._tables.marks.at(self._buf, i + len(word), end)
                    if (i + len(word) == end or size == CUT) and not final:
                        return MORE
                    found = self._tables.roles.get(bytes(self._buf[i + len(word) : i + len(word) + max(size, 0)]))
                    if found is not None and found.kind is Kind.FRAME:
                        self._markup("delimiter", i, i + len(word))
                        return DEAD
                elif word.startswith(here) and i + len(here) == end and not final:
                    return MORE
        self._frame_over = False
        return DEAD

    def _line_form(self, i: int, end: int, final: bool) -> int:
        buf, offer, tables = self._buf, self._offer, self._tables
        if not tables.lines or i < self._muted:
            return DEAD
        byte = buf[i]
        bare = tables.bare
        if byte in b"{[" and bare is not None:
            if offer.known and not offer.tools:
                return DEAD
            if not offer.known and (byte != 0x7B or self._shown or i > self._at or self._number):
                return DEAD
            size = tables.marks.at(buf, i, end, final)
            if size == CUT and end - i > 1:
                return MORE
            if size > 0:
                return DEAD
            settings = dict(bare.uses[0].settings) if bare.uses else {}
            reader = BareReader(i, offer, bare.around, settings, bare.name, whole=not offer.known)
            return self._begin(_Candidate(i, reader, "line", 1))
        if not offer.known or not offer.tools:
            return DEAD
        words = tables.words.at(buf, i, end, final) if byte in tables.words.leads else 0
        if words == CUT:
            return MORE
        if words > 0:
            start = bytes(buf[i : i + words])
            line = next(one for one in tables.lines if one.start.encode() == start)
            if line.syntax == "result":
                return self._line_result(i, words)
            action = ActionReader(i, offer, self._plain_around(), {}, line.grammar, (start, line.then.encode()))
            return self._begin(_Candidate(i, action, "line", words))
        word = _WORD.match(buf, i, end)
        if word is None:
            return DEAD
        name = word.group().decode("utf-8", "replace")
        if word.end() == end and not final:
            may = offer.may_begin(name) or b"call:".startswith(word.group())
            return MORE if may else DEAD
        after = buf[word.end()] if word.end() < end else 0
        forms = {one.syntax: one.grammar for one in tables.lines}
        if after == 0x3A and name == "call" and "named_object" in forms:
            second = _WORD.match(buf, word.end() + 1, end)
            if word.end() + 1 == end or (second is not None and second.end() == end):
                begun = second is None or offer.may_begin(second.group().decode("utf-8", "replace"))
                return MORE if begun and not final else DEAD
            if second is None or buf[second.end()] != 0x7B:
                return DEAD
            after, name = 0x7B, second.group().decode("utf-8", "replace")
        if after == 0x7B and "named_object" in forms and offer.plain(name) is not None:
            named = NamedReader(i, offer, self._plain_around(), self._quotes(), forms["named_object"])
            return self._begin(_Candidate(i, named, "line", 1))
        if after == 0x2F and "glm_line" in forms and offer.plain(name) is not None and self._bare_fence is None:
            glm = GlmForm(i, offer, Around(), {}, forms["glm_line"])
            return self._begin(_Candidate(i, glm, "line", 1))
        return DEAD

    def _plain_around(self) -> Around:
        bare = self._tables.bare
        return bare.around if bare is not None else Around(outer=self._tables.outer)

    def _quotes(self) -> dict[str, Any]:
        bare = self._tables.bare
        return dict(bare.uses[0].settings) if bare is not None and bare.uses else {}

    # -- code

    def _backticks(self, p: int, end: int, final: bool) -> int:
        """A run of backticks at ``p``: a fence where a line starts, else one end of an inline span."""
        buf = self._buf
        char = buf[p]
        j = p
        while j < end and buf[j] == char:
            j += 1
        fence = self._line is not None and _FENCE_LINE.fullmatch(self._line) is not None
        if j == end and not final and (fence or char == 0x60):
            return MORE
        size = j - p
        if size >= 3 and fence:
            verdict = self._fence_line(p, j, char, end, final)
            if verdict != DEAD or self._i != p:
                return verdict
        if char == 0x7E:
            self._advance(p, j)
            return DEAD
        if self._span:
            if self._span == size:
                self._span = 0
                self._span_sure = False
        else:
            self._span = size
            self._span_at = j
            self._span_sure = False
        self._advance(p, j)
        return DEAD

    def _fence_line(self, p: int, j: int, char: int, end: int, final: bool) -> int:
        """A run of three or more at a line start. DEAD with ``_i`` moved: it was a fence and is text."""
        buf, tables = self._buf, self._tables
        size = j - p
        if self._bare_fence is not None and self._bare_fence[0] == char and size >= self._bare_fence[1]:
            return self._close_bare(p, j)
        info = _INFO.match(buf, j, end)
        word = info.group(1) if info is not None else b""
        k = info.end() if info is not None else j
        language = word.decode("utf-8", "replace").lower()
        special = {**{name: "call" for name in tables.fences}, "json": "json"}
        if tables.thinking_fence:
            special[tables.thinking_fence] = "thinking"
        if k == end and not final:
            if not language or any(name.startswith(language) for name in special):
                return MORE if k - j <= MAX_BLANKS else DEAD
        newline = k < end and buf[k] in b"\r\n"
        if newline and buf[k] == 0x0D and k + 1 == end and not final and (not language or language in special):
            return MORE
        behind = k + (2 if bytes(buf[k : k + 2]) == b"\r\n" else 1) if newline else k
        if not language or language.startswith("<"):
            if char == 0x60 and not newline and k < end and not language:
                return DEAD  # a backtick in the info string: an inline span
            if language:
                return self._open_bare(p, j, j, char, size, end, final, False)
            return self._open_bare(p, j, behind if newline else j, char, size, end, final, newline)
        if newline and language in special and not self._section and not self._frame_kind:
            what = special[language]
            if what == "json":
                verdict = self._json_fence(p, behind, char, size, end, final)
                if verdict != DEAD:
                    return verdict
            elif what == "call":
                if self._offer.known and not self._offer.tools:
                    pass
                else:
                    envelope, _ = tables.fences[language]
                    self._before(p)
                    block = BlockReader(envelope, self._offer, behind)
                    return self._begin(_Candidate(p, block, "block", behind - p))
            else:
                self._markup("delimiter", p, behind)
                self._enter_reasoning(b"")
                self._stop = None
                return DONE
        self._advance(p, j)
        self._line = None
        self._tell_text(self._whole_end(self._at, j))
        self._i = j
        self._enter_fence(char, size)
        return DONE

    def _enter_fence(self, char: int, size: int) -> None:
        self._mode = _FENCE
        self._fence = (char, size)
        self._fence_run = -1
        self._line = None

    def _json_fence(self, p: int, behind: int, char: int, size: int, end: int, final: bool) -> int:
        if not self._offer.known or not self._offer.tools or self._tables.bare is None or p < self._muted:
            return DEAD
        run = BLANK.match(self._buf, behind, end)
        i = run.end() if run is not None else behind
        if i - behind > MAX_BLANKS:
            return DEAD
        if i == end:
            return DEAD if final else MORE
        if self._buf[i] not in b"{[":
            return DEAD
        bare = self._tables.bare
        settings = dict(bare.uses[0].settings) if bare.uses else {}
        reader = FenceReader(p, i, char, size, self._offer, Around(), settings, "json")
        return self._begin(_Candidate(p, reader, "line", behind - p))

    def _open_bare(
        self, p: int, j: int, behind: int, char: int, size: int, end: int, final: bool, newline: bool
    ) -> int:
        """A fence without a language protects nothing; its opener waits for the first thing in it."""
        if self._bare_fence is not None or self._frame_kind:
            self._advance(p, behind)
            self._line = None if not newline else b""
            self._fresh_line = newline
            return DEAD
        if newline:
            verdict = self._json_fence(p, behind, char, size, end, final)
            if verdict != DEAD:
                return verdict
        self._before(p)
        self._bare_fence = (char, size)
        self._bare_kept = False
        self._pending.append(("delimiter", p, behind))
        self._at = self._i = behind
        self._new_line()
        run = BLANK.match(self._buf, behind, end)
        k = run.end() if run is not None else behind
        if k > behind and k < end:
            self._pending.append(("padding", behind, k))
            self._at = self._i = k
            self._line = b""
        if not newline:
            self._line = None
            self._fresh_line = False
        return DEAD

    def _close_bare(self, p: int, j: int) -> int:
        """The closing run of a fence without a language: dropped if only blocks stood in it."""
        self._bare_fence = None
        blocks = not self._bare_kept and not self._pending and self._after_markup
        if blocks and p == self._at:
            self._markup("delimiter", p, j)
        else:
            self._advance(p, j)
            self._line = None
        return DEAD

    def _in_fence(self, final: bool) -> bool:
        """Protected code is text; only its closing run is looked for."""
        buf = self._buf
        char, size = self._fence
        end = len(buf)
        i = self._i
        while i < end:
            if self._fence_run >= 0:
                # At a line start, maybe behind blanks.
                if self._line is not None:
                    run = _CLOSING_LINE.match(buf, i, end)
                    k = run.end() if run is not None else i
                    if k > i and len(self._line) < 16:
                        self._line += bytes(buf[i:k])
                        i = k
                        continue
                k = i
                while k < end and buf[k] == char:
                    k += 1
                if k > i:
                    self._fence_run += k - i
                    self._line = None
                    i = k
                    continue
                if self._fence_run >= size:
                    self._i = i
                    self._tell_text(i)
                    self._mode = _TEXT
                    self._line = None
                    self._fresh_line = False
                    return True
                self._fence_run = -1
            newline = buf.find(b"\n", i, end)
            if newline < 0:
                i = end
                break
            i = newline + 1
            self._fence_run = 0
            self._line = b""
        self._i = end
        stop = end if final else self._whole_end(self._at, end)
        if stop > self._at or self._pending:
            self._tell_text(stop)
            self._i = end
        if final:
            self._mode = _TEXT
        return False

    # -- markers in text

    def _marker(self, p: int, end: int, final: bool) -> int:
        """A lead byte at ``p``. MORE: hold; DONE: another mode; DEAD: ``_i`` stands behind what was accepted."""
        buf, tables = self._buf, self._tables
        byte = buf[p]
        if (0x61 <= byte <= 0x7A or 0x41 <= byte <= 0x5A) and self._behind_word(p):
            self._advance(p, p + 1)
            return DEAD
        size = tables.marks.at(buf, p, end)
        if size == CUT and final:
            size = tables.marks.at(buf, p, end, True)
            if size == 0:
                return MORE
        if size == CUT:
            return MORE
        if size == 0:
            if byte == 0x3C and tables.reserved is not None and self._offer.tools:
                return self._element(p, end, final)
            self._advance(p, p + 1)
            return DEAD
        word = bytes(buf[p : p + size])
        role = tables.roles.get(word) or tables.roles[word.lower()]
        if not role.special:
            if self._frame_kind == "text" or (self._span and self._quoted(p, end, final) != DEAD):
                if self._span and not self._frame_kind and not self._span_sure:
                    return MORE
                self._advance(p, p + size)
                return DEAD
        elif self._span and p == self._span_at:
            lone = self._lone(p + size, end, final)
            if lone == MORE:
                return MORE
            if lone == DONE:
                self._advance(p, p + size)
                return DEAD
        handler = _HANDLERS[role.kind]
        return handler(self, role, p, size, end, final)

    def _quoted(self, p: int, end: int, final: bool) -> int:
        """Is the open inline span closed later on this line? DONE, DEAD or MORE; sets ``_span_sure``."""
        if self._span_sure:
            return DONE
        at = p
        while True:
            found = _RUN_OR_LINE.search(self._buf, at, end)
            if found is None:
                if final or end - p > CLOSER_WAIT:
                    break
                return MORE
            if found.group() == b"\n":
                break
            if found.end() == end and not final:
                return MORE
            if found.end() - found.start() == self._span:
                self._span_sure = True
                return DONE
            at = found.end()
        self._span = 0
        return DEAD

    def _lone(self, j: int, end: int, final: bool) -> int:
        """Does the closing run of the span follow at ``j``?"""
        k = j
        while k < end and self._buf[k] == 0x60 and k - j <= self._span:
            k += 1
        if k == end and not final:
            return MORE if k - j <= self._span else DEAD
        return DONE if k - j == self._span else DEAD

    def _release(self, role: Role, p: int, size: int) -> int:
        """A marker that means nothing here is text; its closer on the same line is text too."""
        name = _tag_name(bytes(self._buf[p : p + size]))
        if name:
            self._released |= {name}
        self._advance(p, p + size)
        return DEAD

    def _was_released(self, word: bytes) -> bool:
        return bool(self._released) and _tag_name(word) in self._released

    def _do_control(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if not role.special and not self._follows_markup(p):
            # An end-of-text word counts at the very end of the response too.
            run = BLANK.match(self._buf, p + size, end)
            k = run.end() if run is not None else p + size
            if k == end and not final and k - p <= MAX_BLANKS:
                return MORE
            if k < end:
                return self._release(role, p, size)
        if self._frame is not None and role.literal in self._frame.ends:
            self._markup("delimiter", p, p + size)
            self._leave_frame()
        else:
            self._markup("control", p, p + size)
        return DEAD

    def _follows_markup(self, p: int) -> bool:
        """Does ``p`` stand directly behind reasoning, a block or a control token, blanks aside?"""
        return self._after_markup and self._base + p > 0 and self._marked

    def _do_answer(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """A wrapper around the answer: its opener counts behind markup, its closer behind such an opener."""
        opens = role.target == "open"
        if not (self._follows_markup(p) if opens else self._answered):
            return self._release(role, p, size)
        self._answered = opens
        self._markup("wrapper", p, p + size)
        return DEAD

    def _do_close(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        buf = self._buf
        word = bytes(buf[p : p + size])
        if role.target == "result" and (
            self._on_fabricated == "keep" or (self._offer.known and not self._offer.tools)
        ):
            return self._release(role, p, size)
        if not role.special and self._was_released(word):
            self._advance(p, p + size)
            return DEAD
        stop = p + size
        if not word.endswith((b">", b"]")):
            tail = _TAG_END.match(buf, stop, end)
            if tail is None:
                if not final and _TAG_END_CUT.match(buf, stop, end) is not None and end - stop <= MAX_BLANKS:
                    return MORE
                if not role.special:
                    self._advance(p, p + 1)
                    return DEAD
            else:
                stop = tail.end()
        wrapper = self._wrapper
        kind: DropKind = "orphan"
        if wrapper is not None and wrapper.around.close.at(buf, p, end, True) > 0:
            kind = "wrapper"
            self._wrapper = None
        self._markup(kind, p, stop)
        return DEAD

    def _do_key(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if role.special:
            return self._do_sigil(role, p, size, end, final)
        return self._release(role, p, size)

    def _do_wrap(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        self._markup("wrapper", p, p + size)
        self._section = True
        return DEAD

    def _do_unwrap(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        self._before(p)
        self._section = False
        self._markup("wrapper", p, p + size)
        return DEAD

    def _do_sigil(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """Any other tag of a special syntax: a wrapper, a stray parameter, a damaged tag. Never text."""
        buf = self._buf
        tag = _SIGIL_TAG.match(buf, p + size, end)
        stop = tag.end() if tag is not None else p + size
        if buf[stop - 1] != 0x3E and not final and _SIGIL_CUT.match(buf, p + size, end):
            return MORE
        closing = b"/" in bytes(buf[p : p + size])
        self._before(p)
        if closing:
            self._section = False
        self._markup("orphan" if closing else "wrapper", p, stop)
        if not closing:
            self._section = True
        return DEAD

    def _do_think(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if self._reasoning == "off" or self._frame_kind:
            return self._release(role, p, size)
        line = self._line
        starts = line is not None and not line.strip()
        if not role.special and not (starts or self._after_markup):
            return self._release(role, p, size)
        label = str(role.target.get("label", "")).encode() if isinstance(role.target, dict) else b""
        self._markup("delimiter", p, p + size)
        self._enter_reasoning(label)
        return DONE

    def _do_unthink(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if self._reasoning == "off" or (not role.special and self._was_released(role.literal)):
            self._advance(p, p + size)
            return DEAD
        self._markup("orphan", p, p + size)
        return DEAD

    def _do_turn(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if self._prefilling:
            self._markup("control", p, p + size)
            return DEAD
        self._before(p)
        self._drop_pending()
        self._at = self._i = p
        self._enter_drop("fabricated_turn")
        return DONE

    def _enter_drop(self, kind: DropKind) -> None:
        self._mode = _DROP
        self._drop_kind = kind

    def _do_result(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        no_tools = self._offer.known and not self._offer.tools
        line = self._line
        starts = line is not None and not line.strip()
        counts = not no_tools and (role.special or starts or self._after_call)
        if self._on_fabricated == "keep" or not counts or (self._frame_kind and not role.special):
            if role.special and self._on_fabricated != "keep":
                self._markup("control", p, p + size)
                return DEAD
            return self._release(role, p, size)
        self._before(p)
        self._drop_pending()
        self._at = self._i = p
        if self._on_fabricated == "cut":
            self._enter_drop("fabricated_result")
            return DONE
        self._drop("fabricated_result", p, p + size)
        self._at = self._i = p + size
        self._stop = role.target
        self._mode = _RESULT
        return DONE

    def _do_open(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        envelope: Envelope = role.target
        if envelope.demand and not self._offer.tools:
            self._advance(p, p + size)
            return DEAD
        self._before(p)
        begin = p + size - (1 if envelope.from_last else 0)
        block = BlockReader(envelope, self._offer, begin, attributed=role.attributes)
        candidate = _Candidate(p, block, "block", size, role, role.special)
        return self._begin(candidate)

    def _behind_word(self, p: int) -> bool:
        """Does a word character stand directly before ``p``? Then no word marker begins there."""
        low = self._pending[0][1] if self._pending else self._at
        if p > low:
            last = bytes(self._buf[max(low, p - 4) : p])
        elif self._told_to == self._base + p:
            last = self._last
        else:
            return False
        before = last.decode("utf-8", "ignore")[-1:]
        return before.isalnum() or before == "_"

    def _do_tag(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        use: Use = role.target
        self._before(p)
        reader = TagsReader(p + size, use.settings["around"], self._offer, use.settings)
        return self._begin(_Candidate(p, reader, "tags", size, role, role.special))

    def _do_frame(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        self._before(p)
        frame: Frame = role.target
        self._leave_frame()
        header = HeaderReader(p + size, frame, role.literal)
        return self._begin(_Candidate(p, header, "header", size, role, True))

    def _leave_frame(self) -> None:
        self._frame_over = self._frame is not None
        self._frame = None
        self._frame_kind = ""

    def _element(self, p: int, end: int, final: bool) -> int:
        tables = self._tables
        assert tables.reserved is not None
        if self._section or self._frame_kind or p < self._muted:
            self._advance(p, p + 1)
            return DEAD
        verdict, name, stop = element_at(self._buf, p, end, self._offer, tables.reserved, final)
        if verdict == MORE:
            return MORE
        if verdict == DEAD:
            self._advance(p, p + 1)
            return DEAD
        if self._span and self._quoted(p, end, final) != DEAD:
            if not self._span_sure:
                return MORE
            self._advance(p, p + 1)
            return DEAD
        self._before(p)
        reader = ElementReader(p, self._offer, Around(), {}, "elements", name, stop)
        return self._begin(_Candidate(p, reader, "line", stop - p))

    # -- candidates

    def _begin(self, candidate: _Candidate) -> int:
        """Start reading a candidate at its opener; the text before it is told."""
        if candidate.start > self._at:
            self._tell_text(candidate.start)
        self._at = self._i = candidate.start
        if self._span and candidate.start == self._span_at and candidate.what in ("block", "tags"):
            candidate.quoted = self._span
        self._candidate = candidate
        self._mode = _CANDIDATE
        return DONE

    def _in_candidate(self, final: bool) -> bool:
        candidate = self._candidate
        assert candidate is not None
        buf = self._buf
        end = len(buf)
        reader = candidate.reader
        verdict = candidate.verdict
        if verdict == MORE:
            verdict = candidate.verdict = reader.read(buf, end, final)
        if verdict == MORE and not final:
            if reader.at - candidate.start > self._max_bytes:
                return self._too_large(candidate)
            if self._progress:
                self._announce(candidate)
            return False
        if verdict == DONE and reader.at - candidate.start > self._max_bytes:
            return self._too_large(candidate)
        if verdict == DONE and candidate.quoted:
            lone = self._lone_after(candidate, reader.at, end, final)
            if lone == MORE:
                return False
            if lone == DONE:
                return self._refute(candidate, reader.at)
        if self._progress and verdict != DEAD:
            self._announce(candidate)
        self._candidate = None
        self._mode = _TEXT
        if candidate.what == "header":
            return self._header_done(candidate, verdict, final)
        if candidate.what == "line":
            return self._line_done(candidate, verdict, final)
        return self._block_done(candidate, verdict, final)

    def _lone_after(self, candidate: _Candidate, j: int, end: int, final: bool) -> int:
        self._span = candidate.quoted
        return self._lone(j, end, final)

    def _refute(self, candidate: _Candidate, resume: int = -1) -> bool:
        """Not a call: its bytes are text, and scanning goes on inside it."""
        self._candidate = None
        self._mode = _TEXT
        start = candidate.start
        if resume >= 0:
            self._at = start
            self._advance(start, resume)
            self._line = None
            return True
        if candidate.special:
            # The token itself is never text.
            self._at = self._i = start
            self._markup("control", start, start + candidate.size)
            return True
        self._at = start
        if candidate.what != "line":
            name = _tag_name(bytes(self._buf[start : start + candidate.size]))
            if name:
                self._released |= {name}
        skip = start + max(1, candidate.size if candidate.what in ("block", "tags") else 1)
        self._pad = _NO_PAD
        if b"\n" in self._buf[start:skip]:
            # A fence line: what follows is read again as what it is now.
            return self._refuted_fence(candidate)
        if candidate.what == "line":
            # Looked at again, now without markerless forms.
            self._muted = max(self._muted, start + 1)
            self._i = start
            self._fresh_line = False
            return True
        self._advance(start, skip)
        return True

    def _refuted_fence(self, candidate: _Candidate) -> bool:
        start = candidate.start
        char = self._buf[start]
        j = start
        while j < len(self._buf) and self._buf[j] == char:
            j += 1
        info = _INFO.match(self._buf, j)
        if info is not None and info.group(1):
            self._advance(start, j)
            self._i = j
            self._enter_fence(char, j - start)
            return True
        self._bare_fence = (char, j - start)
        self._bare_kept = True
        self._advance(start, j)
        self._line = None
        return True

    def _too_large(self, candidate: _Candidate) -> bool:
        reader = candidate.reader
        if candidate.what in ("line", "header") or not reader.evidence:
            self._muted = max(self._muted, reader.at)
            return self._refute(candidate)
        stop = candidate.start + self._max_bytes
        self._drop_pending()
        name = getattr(reader, "name", None) or candidate.name or None
        self._reject(candidate, "too_large", name, candidate.start, stop, f"over {self._max_bytes} bytes")
        self._at = self._i = stop
        self._mode = _SKIP
        return True

    def _in_skip(self, final: bool) -> bool:
        """The rest of a block that was too large: dropped without keeping it."""
        candidate = self._candidate
        assert candidate is not None
        end = len(self._buf)
        verdict = candidate.reader.read(self._buf, end, final)
        stop = end if verdict == MORE else max(candidate.reader.at, self._at)
        keep = min(candidate.reader.keep, candidate.reader.at) if verdict == MORE and not final else stop
        stop = max(self._at, min(stop, keep)) if verdict == MORE and not final else stop
        self._drop("overflow", self._at, stop)
        self._at = self._i = stop
        if verdict == MORE and not final:
            return False
        self._candidate = None
        self._mode = _TEXT
        self._after_block()
        self._after_call = True
        return True

    def _header_done(self, candidate: _Candidate, verdict: int, final: bool) -> bool:
        reader = candidate.reader
        assert isinstance(reader, HeaderReader)
        if verdict != DONE:
            # The stream ended inside the header.
            recipient = reader.recipient(self._buf, len(self._buf))
            self._drop_pending()
            end = len(self._buf)
            if recipient:
                name = self._offer.resolve(recipient).name
                self._reject(candidate, "truncated", name, candidate.start, end, "the stream ended in the header")
            else:
                self._drop("delimiter", candidate.start, end)
            self._at = self._i = end
            self._after_block()
            return False
        header = reader.header
        assert header is not None
        start, stop = candidate.start, reader.at
        if header.kind == "turn":
            if self._prefilling:
                self._markup("control", start, stop)
                return True
            self._drop_pending()
            self._at = self._i = start
            self._enter_drop("fabricated_turn")
            return True
        if header.kind == "call":
            return self._call_frame(candidate, reader, header, final)
        self._drop_pending()
        self._drop("delimiter", start, stop)
        self._at = self._i = stop
        self._after_block()
        if header.kind in ("text", "reasoning"):
            self._frame = reader.frame
            self._frame_kind = header.kind
            if header.kind == "reasoning":
                self._mode = _REASON
                self._draft_from = -1
        return True

    def _call_frame(self, candidate: _Candidate, reader: HeaderReader, header: Header, final: bool) -> bool:
        if reader.broken:
            self._drop_pending()
            name = self._offer.resolve(header.recipient).name
            self._reject(candidate, "truncated", name, candidate.start, reader.at, "the header has no message")
            self._at = self._i = reader.at
            self._after_block()
            return True
        frame = reader.frame
        envelope = Envelope(frame.name, frame.around, named=frame.uses, special=True)
        name = header.recipient
        if self._offer.get(name) is None:
            name = name.removeprefix(frame.prefix)
        block = BlockReader(envelope, self._offer, reader.at, attributes={"name": name})
        block.evidence = True
        candidate.reader = block
        candidate.what = "block"
        candidate.verdict = MORE
        candidate.name = name
        candidate.code = header.code
        self._candidate = candidate
        self._mode = _CANDIDATE
        return True

    # -- what a candidate comes to

    def _line_done(self, candidate: _Candidate, verdict: int, final: bool) -> bool:
        reader: Any = candidate.reader
        buf = self._buf
        if verdict == DEAD:
            self._muted = max(self._muted, reader.refuted_to)
            return self._refute(candidate)
        if verdict == MORE:
            # The stream ended inside.
            complete = isinstance(reader, ElementReader) and reader.closed_children
            if complete and not self._cut_off:
                reader.at = len(buf)
                calls = reader.calls(buf, "closed")
                for call in calls:
                    call.repairs.append(Repair("missing_close", ""))
            elif reader.evidence and (self._cut_off or isinstance(reader, ElementReader)):
                name = getattr(reader, "name", "") or (reader._watch.name if hasattr(reader, "_watch") else "") or None
                self._drop_pending()
                self._reject(candidate, "truncated", name, candidate.start, len(buf), "the stream ended inside the call")
                self._at = self._i = len(buf)
                return False
            else:
                self._muted = len(buf)
                return self._refute(candidate)
        else:
            if not reader.met and self._cut_off and final:
                calls = reader.calls(buf, "cut")
                if declared(calls, self._offer):
                    self._drop_pending()
                    self._reject(candidate, "truncated", calls[0].name, candidate.start, reader.at, "no end of the line")
                    self._at = self._i = reader.at
                    self._after_block()
                    return True
            calls = reader.calls(buf, "whole")
            cut_fence = isinstance(reader, FenceReader) and final and not buf[: reader.at].rstrip(b"\r\n").endswith((b"`", b"~"))
            if cut_fence:
                for call in calls:
                    call.repairs.append(Repair("missing_close", ""))
                if self._cut_off and declared(calls, self._offer):
                    self._drop_pending()
                    self._reject(candidate, "truncated", calls[0].name, candidate.start, reader.at, "no end of the fence")
                    self._at = self._i = reader.at
                    return True
        if self._offer.known and not declared(calls, self._offer):
            self._muted = max(self._muted, reader.refuted_to)
            return self._refute(candidate)
        if not self._offer.known and not self._is_plain_object(candidate, reader):
            self._muted = max(self._muted, reader.refuted_to)
            return self._refute(candidate)
        if self._is_copy(calls):
            self._drop_pending()
            self._drop("padding", candidate.start, reader.at)
            self._at = self._i = reader.at
            self._after_block()
            return True
        outcomes = [settle_call(call, reader.grammar, self._offer, recover=self._recover) for call in calls]
        self._tell_outcomes(candidate, outcomes, reader.at)
        return True

    def _is_plain_object(self, candidate: _Candidate, reader: Any) -> bool:
        """Without tools only an object with exactly the keys name and arguments counts."""
        import json

        try:
            value = json.loads(bytes(self._buf[candidate.start : reader.at]))
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and set(value) == {"name", "arguments"} and isinstance(value["arguments"], dict)

    def _is_copy(self, calls: list[Written]) -> bool:
        """A markerless copy of the block just closed."""
        if not self._after_markup or not self._last_calls or not self._after_call:
            return False
        found = [(call.name or "", call.arguments) for call in calls]
        return found == self._last_calls

    def _block_done(self, candidate: _Candidate, verdict: int, final: bool) -> bool:
        reader = candidate.reader
        buf = self._buf
        if verdict == NEST:
            return self._nested(candidate)
        if verdict == DEAD or (verdict == MORE and not reader.evidence):
            if verdict == MORE:
                return self._unproven(candidate)
            if self._in_bare_unoffered(candidate):
                return self._refute(candidate)
            return self._refute(candidate)
        stop = reader.at if verdict == DONE else len(buf)
        if isinstance(reader, BlockReader) and reader.envelope.demand:
            names = [scan(bytes(buf[part.start : part.end]), self._offer).name for part in reader.parts]
            if verdict == MORE or not all(name is not None and self._offer.plain(name) for name in names):
                self._muted = max(self._muted, reader.at)
                return self._refute(candidate)
        if isinstance(reader, BlockReader):
            if verdict == DONE and not reader.parts:
                return self._empty(candidate, reader, stop)
            calls, closed, implicit = self._read_block(candidate, reader, verdict, stop)
            by_id = any("id" in field for template in reader.envelope.headers for field in template if field == "{id}")
            closes = reader.envelope.closes and bool(reader.envelope.around.close.literals)
        else:
            assert isinstance(reader, TagsReader)
            calls, closed, implicit = self._read_tags(candidate, reader, verdict, stop)
            by_id = False
            closes = True
        cut = not closed and closes and self._cut_off and final and not implicit
        if self._frame_closed(candidate) and not closed and self._cut_off and final:
            cut = True
        outcomes: list[Outcome] = []
        for k, (call, grammar) in enumerate(calls):
            last = k == len(calls) - 1
            if last and not closed and closes and call.complete and not cut:
                call.repairs.append(Repair("missing_close", ""))
            id_named = by_id and call.name is not None and self._header_had_id(reader)
            outcomes.append(
                settle_call(call, grammar, self._offer, recover=self._recover, by_id=id_named, cut=cut and last)
            )
        if not outcomes:
            return self._empty(candidate, reader, stop)
        if self._bare_fence is not None and not candidate.special and self._offer.known:
            if all(one.reason == "unknown_tool" for one in outcomes):
                return self._refute(candidate, stop)
        self._tell_outcomes(candidate, outcomes, stop)
        return True

    def _header_had_id(self, reader: _Reads) -> bool:
        return isinstance(reader, BlockReader) and any(part.model_id is not None for part in reader.parts)

    def _frame_closed(self, candidate: _Candidate) -> bool:
        return bool(candidate.name)

    def _in_bare_unoffered(self, candidate: _Candidate) -> bool:
        return False

    def _read_block(
        self, candidate: _Candidate, reader: BlockReader, verdict: int, stop: int
    ) -> tuple[list[tuple[Written, str]], bool, bool]:
        parts = list(reader.parts)
        if verdict == MORE:
            part = reader.open_part(len(self._buf), self._cut_off)
            if part is not None:
                parts.append(part)
        if candidate.code:
            parts = [
                Part(Use(part.use.body, part.use.grammar, {**part.use.settings, "code": True}), part.start, part.end,
                     part.ending, part.name, part.model_id, part.fenced)
                for part in parts
            ]  # fmt: skip
        base = candidate.start
        calls = decode_parts(parts, bytes(self._buf[base:stop]), base, self._offer, reader.attributes.get("name"))
        headed = any(part.name is not None for part in parts) or reader.attributes.get("name") is not None
        if headed:
            groups: list[tuple[Written, str]] = []
            run: list[tuple[Written, str]] = []
            for pair in calls:
                if run and run[-1][0].name != pair[0].name:
                    groups += merge_headed(run, self._offer)
                    run = []
                run.append(pair)
            groups += merge_headed(run, self._offer)
            calls = groups
        if reader.attributes.get("id"):
            for call, _ in calls:
                call.model_id = call.model_id or reader.attributes["id"]
        if candidate.code:
            for call, _ in calls:
                call.strategy = call.strategy or ""
        return calls, reader.closed, reader.implicit

    def _read_tags(
        self, candidate: _Candidate, reader: TagsReader, verdict: int, stop: int
    ) -> tuple[list[tuple[Written, str]], bool, bool]:
        role = candidate.role
        assert role is not None
        use: Use = role.target
        begin = candidate.start + candidate.size
        ending: Ending = "whole" if reader.closed else "cut" if verdict == MORE and self._cut_off else "closed"
        part = Part(use, begin, stop, ending)
        calls = decode_parts([part], bytes(self._buf[candidate.start : stop]), candidate.start, self._offer)
        return calls, reader.closed, verdict == DONE and not reader.closed

    def _nested(self, candidate: _Candidate) -> bool:
        """The opener only wraps what follows, which has an opener of its own."""
        reader = candidate.reader
        assert isinstance(reader, BlockReader)
        start, stop = candidate.start, reader.at
        self._wrapper = reader.envelope
        head = candidate.start + candidate.size
        if candidate.special:
            self._drop_pending()
            self._drop("wrapper", start, stop)
            self._at = self._i = stop
            self._after_block()
            return True
        del head
        self._pending.append(("wrapper", start, stop))
        self._at = self._i = stop
        self._line = b""
        self._fresh_line = False
        self._after_markup = True
        self._pad = _NO_PAD
        return True

    def _empty(self, candidate: _Candidate, reader: _Reads, stop: int) -> bool:
        self._drop_pending()
        self._drop("empty", candidate.start, stop)
        self._at = self._i = stop
        self._after_block()
        return True

    def _unproven(self, candidate: _Candidate) -> bool:
        """The stream ended in a candidate without evidence (decisions 20 and 21)."""
        buf = self._buf
        reader = candidate.reader
        start, end = candidate.start, len(buf)
        rest = bytes(buf[start + candidate.size : end]).strip()
        begun = bool(rest.strip(b">=\"' \t\r\n"))
        if candidate.special and begun:
            self._drop_pending()
            self._reject(candidate, "truncated", None, start, end, "the stream ended before the name was whole")
            self._at = self._i = end
            return False
        named = isinstance(reader, TagsReader) or (isinstance(reader, BlockReader) and reader.began)
        if self._cut_off and not candidate.special and begun and (isinstance(reader, TagsReader) and _has_name(rest) or (isinstance(reader, BlockReader) and not buf[start + candidate.size :].strip(b"> \t\r\n").startswith(b"<") and rest.startswith(b">"))):
            self._drop_pending()
            self._reject(candidate, "truncated", None, start, end, "the stream ended before the name was whole")
            self._at = self._i = end
            return False
        del named
        alone = (self._line is not None and not self._line.strip()) and not begun
        if candidate.special or self._cut_off or alone:
            whole = rest.startswith(b">") or candidate.special or bytes(buf[start : start + candidate.size]).endswith((b">", b":", b"["))
            if whole or self._cut_off:
                self._drop_pending()
                self._drop("cut_marker" if self._cut_off else "empty", start, end)
                self._at = self._i = end
                return False
        return self._refute(candidate)

    # -- telling calls

    def _tell_outcomes(self, candidate: _Candidate, outcomes: list[Outcome], stop: int) -> None:
        self._drop_pending()
        base = candidate.start
        self._last_calls = []
        for k, one in enumerate(outcomes):
            start = base if k == 0 else base + one.start
            end = stop if k == len(outcomes) - 1 else base + outcomes[k + 1].start
            self._tell_call(candidate, one, max(start, base), max(end, start), first=k == 0)
        self._at = self._i = stop
        self._after_block()
        self._after_call = True

    def _tell_call(self, candidate: _Candidate, one: Outcome, start: int, end: int, first: bool) -> None:
        number = candidate.number if first and candidate.number >= 0 else self._number
        if number == self._number:
            self._number += 1
        raw = bytes(self._buf[max(start, -self._base) : end])
        span = self._span_of(start, end)
        reason, detail = one.reason, one.detail
        if reason is None and self._strict and one.repairs:
            reason, detail = "malformed", f"needs a repair: {one.repairs[0].kind}"
        if reason is None and one.arguments is not None and _depth(one.arguments) > self._max_depth:
            reason, detail = "malformed", f"nested deeper than {self._max_depth} levels"
        if number >= self._max_calls:
            reason, detail = "too_many", f"over {self._max_calls} calls"
        if reason is not None:
            self._out.append(
                RejectedCall(number, reason, _clean(one.name), one.arguments, raw, one.grammar, span, detail, _clean(one.model_id))
            )
            return
        assert one.name is not None
        assert one.arguments is not None
        self._last_calls.append((one.name, one.arguments))
        self._out.append(
            ToolCall(number, one.name, one.arguments, raw, one.grammar, span, tuple(one.repairs), one.strategy, _clean(one.model_id))
        )

    def _reject(self, candidate: _Candidate, reason: str, name: str | None, start: int, end: int, detail: str) -> None:
        outcome = Outcome(name or None, None, 0, end - start, reason=reason, detail=detail, grammar=self._grammar_of(candidate))  # type: ignore[arg-type]
        self._tell_call(candidate, outcome, start, end, first=True)
        self._after_call = True

    def _grammar_of(self, candidate: _Candidate) -> str:
        grammar = getattr(candidate.reader, "grammar", "")
        return grammar or (candidate.role.grammar if candidate.role is not None else "")

    def _announce(self, candidate: _Candidate) -> None:
        """With progress: tell the name once it is known, then the argument text as it grows."""
        reader = candidate.reader
        if candidate.what not in ("block", "tags") or not reader.evidence or candidate.quoted or self._draft_from >= 0:
            return
        if candidate.number < 0:
            written = candidate.name or getattr(reader, "name", None)
            if not written:
                return
            resolution = self._offer.resolve(written)
            if self._offer.known and resolution.tool is None:
                return
            if self._number >= self._max_calls or not self._recover:
                return
            candidate.number = self._number
            self._number += 1
            span = self._span_of(candidate.start, candidate.start)
            self._out.append(CallStarted(candidate.number, resolution.name or written, self._grammar_of(candidate), span))
        start, stop = getattr(reader, "arguments", (-1, -1))
        if start < 0:
            return
        begin = max(start, candidate.told)
        stop = self._whole_end(begin, min(stop, len(self._buf)))
        if stop > begin:
            candidate.told = stop
            text = self._decode(begin, stop)
            self._out.append(ArgumentsDelta(candidate.number, text, self._span_of(candidate.start, candidate.start)))

    # -- reasoning

    def _enter_reasoning(self, label: bytes) -> None:
        self._mode = _REASON
        self._label = label
        self._frame_kind = ""
        self._frame = None
        self._draft_from = -1
        self._drafts = []

    def _tell_reasoning(self, end: int) -> None:
        start = self._at
        self._at = end
        if end <= start:
            return
        if self._base + end > 0 and not self._prefilling:
            clip = max(start, -self._base)
            text = self._decode(clip, end)
            if text:
                self._out.append(Reasoning(text, self._span_of(clip, end)))

    def _in_reasoning(self, final: bool) -> bool:
        buf, tables = self._buf, self._tables
        end = len(buf)
        if self._label:
            here = bytes(buf[self._i : self._i + len(self._label)])
            if here != self._label and self._label.startswith(here) and not final:
                return False
            if here == self._label:
                self._drop("delimiter", self._i, self._i + len(self._label))
                self._at = self._i = self._i + len(self._label)
            self._label = b""
        while True:
            i = self._i
            found = tables.stop.search(buf, i, end)
            if found is None:
                return self._reasoned(end, final)
            p = found.start()
            self._line = None if p > i and buf[i:p].strip() else self._line
            if buf[p] == 0x0A:
                self._line = b""
                self._i = p + 1
                continue
            if buf[p] in b"`~":
                self._i = p + 1
                continue
            size = tables.marks.at(buf, p, end)
            if size == CUT and final:
                size = tables.marks.at(buf, p, end, True)
                if size == 0:
                    return self._end_of_reasoning(p)
            if size == CUT:
                return self._reasoned(p, final)
            if size == 0:
                self._i = p + 1
                continue
            word = bytes(buf[p : p + size])
            role = tables.roles.get(word) or tables.roles[word.lower()]
            verdict = self._reason_marker(role, p, size, end, final)
            if verdict == MORE:
                return self._reasoned(p, final)
            if verdict == DONE:
                return True

    def _reasoned(self, stop: int, final: bool) -> bool:
        """Tell reasoning up to ``stop``, unless a draft is held."""
        self._i = stop
        if self._draft_from < 0:
            self._tell_reasoning(stop if final else self._whole_end(self._at, stop))
            self._i = stop
        elif stop - self._draft_from > self._max_bytes:
            # Too much to hold: the drafts become reasoning, and later ones of this section stay drafts.
            self._draft_from = -1
            self._drafts_off = True
            self._tell_reasoning(stop)
            self._i = stop
        if final and self._i >= len(self._buf):
            return self._finish_reasoning()
        return False

    def _end_of_reasoning(self, p: int) -> bool:
        tail = bytes(self._buf[p:]).decode("utf-8", "replace")
        token = len(tail) >= 3 and (tail.startswith(("<|", "<\uff5c")) or (self._cut_off and tail.startswith("<")))
        if self._draft_from < 0 and token:
            self._tell_reasoning(p)
            self._drop("cut_marker", p, len(self._buf))
            self._at = self._i = len(self._buf)
            return self._finish_reasoning()
        return self._reasoned(len(self._buf), True)

    def _reason_marker(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """A marker inside reasoning. DEAD: scanning goes on at ``_i``."""
        if self._frame_kind == "reasoning":
            return self._framed_marker(role, p, size, end, final)
        kind = role.kind
        if kind == Kind.UNTHINK:
            self._close_reasoning(p, p + size)
            return DONE
        if kind == Kind.THINK:
            # A doubled opener counts once.
            self._swallow("delimiter", p, p + size)
            return DEAD
        if kind == Kind.CONTROL and role.special:
            self._swallow("control", p, p + size)
            return DEAD
        if kind == Kind.TURN:
            self._end_section(p)
            self._enter_drop("fabricated_turn")
            return DONE
        if role.special and kind in (Kind.OPEN, Kind.TAG, Kind.WRAP, Kind.SIGIL, Kind.FRAME):
            return self._special_in_reasoning(role, p, size, end, final)
        if role.special:
            self._swallow("control", p, p + size)
            return DEAD
        if kind == Kind.TAG or (kind == Kind.OPEN and not role.target.demand):
            return self._draft(role, p, size, end, final)
        self._i = p + size
        return DEAD

    def _framed_marker(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        frame = self._frame
        assert frame is not None
        if role.literal in frame.ends:
            self._tell_reasoning(p)
            self._drop("delimiter", p, p + size)
            self._at = self._i = p + size
            self._mode = _TEXT
            self._leave_frame()
            self._after_block()
            return DONE
        if role.kind == Kind.FRAME or (role.special and role.kind in (Kind.OPEN, Kind.TAG, Kind.WRAP)):
            self._tell_reasoning(p)
            self._at = self._i = p
            self._mode = _TEXT
            self._leave_frame()
            self._after_block()
            self._pad = _NO_PAD
            return DONE
        if role.special:
            self._swallow("control", p, p + size)
            return DEAD
        self._i = p + size
        return DEAD

    def _swallow(self, kind: DropKind, start: int, end: int) -> None:
        """Drop a token inside reasoning. With a draft held, it is dropped when the drafts are told."""
        if self._draft_from >= 0:
            self._i = end
            return
        self._tell_reasoning(start)
        self._drop(kind, start, end)
        self._at = self._i = end

    def _close_reasoning(self, start: int, end: int) -> None:
        self._end_section(start)
        self._drop("delimiter", start, end)
        self._at = self._i = end
        self._mode = _TEXT
        self._after_block()

    def _end_section(self, p: int) -> None:
        """The section ends before ``p``: held drafts stay reasoning."""
        self._draft_from = -1
        self._drafts = []
        self._tell_held(p)
        self._at = self._i = p
        self._mode = _TEXT
        self._after_block()

    def _tell_held(self, end: int) -> None:
        """Tell reasoning up to ``end``, without the control tokens in it."""
        i = self._at
        tables = self._tables
        while i < end:
            p, size = tables.marks.find(self._buf, i, end, True)
            if size <= 0:
                break
            word = bytes(self._buf[p : p + size])
            role = tables.roles.get(word) or tables.roles[word.lower()]
            if role.special and role.kind in (Kind.CONTROL, Kind.UNWRAP, Kind.CLOSE):
                self._tell_reasoning(p)
                self._drop("control", p, p + size)
                self._at = p + size
            i = p + size
        self._tell_reasoning(end)

    def _special_in_reasoning(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """A special opener ends the section once it shows a name; a bare mention does not."""
        probe = self._probe(role, p, size, end, final)
        if probe == MORE and not final:
            return MORE
        if probe == DONE:
            self._end_section(p)
            self._pad = _NO_PAD
            return DONE
        if self._draft_from >= 0:
            self._i = p + size
            return DEAD
        self._swallow("control", p, p + size)
        return DEAD

    def _probe(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """Does a call with a name follow the special opener at ``p``? Looks at a bounded stretch."""
        buf, tables = self._buf, self._tables
        kind = role.kind
        limit = min(end, p + 2 * MAX_HEADER)
        if kind == Kind.FRAME:
            return DONE
        if kind in (Kind.WRAP, Kind.SIGIL):
            tag = _SIGIL_TAG.match(buf, p + size, end) if kind == Kind.SIGIL else None
            at = tag.end() if tag is not None else p + size
            if tag is not None and buf[at - 1] != 0x3E and not final and _SIGIL_CUT.match(buf, p + size, end):
                return MORE
            i, found = tables.special.find(buf, at, limit, final)
            if found > 0 and not buf[at:i].strip():
                word = bytes(buf[i : i + found])
                inner = tables.roles.get(word)
                if inner is None:
                    return DEAD
                if inner.kind in (Kind.OPEN, Kind.TAG, Kind.WRAP):
                    return self._probe(inner, i, found, end, final)
                return DEAD
            between = buf[at : i if found else limit].strip()
            if between and kind == Kind.WRAP and found <= 0 and limit == end and not final and len(between) < MAX_HEADER:
                # Words inside a section are possible; a call may still follow.
                return DEAD
            if between:
                return DEAD
            return MORE if limit == end and not final else DEAD
        if kind == Kind.TAG:
            use: Use = role.target
            reader: _Reads = TagsReader(p + size, use.settings["around"], self._offer, use.settings)
        else:
            reader = BlockReader(
                role.target, self._offer, p + size - (1 if role.target.from_last else 0), attributed=role.attributes
            )
        verdict = reader.read(buf, end, False)
        # Once a name was shown it stays shown, whatever becomes of the call.
        if verdict == NEST or reader.evidence or (isinstance(reader, TagsReader) and reader.name):
            return DONE
        if verdict == DEAD:
            return DEAD
        return MORE if end - p <= 2 * MAX_HEADER else DEAD

    # Drafts: soft calls inside a section, real only if the section is still open at the end.

    def _draft(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if self._drafts_off or self._section:
            self._i = p + size
            return DEAD
        buf = self._buf
        around = self._draft_around
        del around
        if role.kind == Kind.TAG:
            use: Use = role.target
            reader: _Reads = TagsReader(p + size, use.settings["around"], self._offer, use.settings)
        else:
            reader = BlockReader(
                role.target, self._offer, p + size - (1 if role.target.from_last else 0), attributed=role.attributes
            )
        verdict = reader.read(buf, end, False)
        if verdict == DEAD or (verdict == MORE and not reader.evidence and end - p > 2 * MAX_HEADER):
            self._i = p + size
            return DEAD
        if verdict == MORE and not reader.evidence:
            if final:
                self._i = p + size
                return DEAD
            return MORE
        # It shows evidence: from here on all is held until the section ends.
        if self._draft_from < 0:
            self._tell_reasoning(p)
            self._draft_from = p
        self._i = p + size
        return DEAD

    @property
    def _draft_around(self) -> None:
        return None

    _drafts_off = False

    def _finish_reasoning(self) -> bool:
        """The stream ended inside the section."""
        if self._draft_from < 0:
            return False
        start = self._draft_from
        self._draft_from = -1
        if self._cut_off or not self._recover:
            self._tell_held(len(self._buf))
            self._i = len(self._buf)
            return False
        # Read the held bytes as text would be read: calls are real, words stay reasoning.
        inner = copy.copy(self)
        inner._buf = bytearray(self._buf[start:])
        inner._base = self._base + start
        inner._at = inner._i = 0
        inner._mode = _TEXT
        inner._out = []
        inner._pending = []
        inner._candidate = None
        inner._progress = False
        inner._pad = _NO_PAD
        inner._line = None
        inner._fresh_line = False
        inner._span = 0
        inner._frame_kind = ""
        inner._reasoning = "auto"
        inner._finished = True
        inner._run(True)
        for event in inner._out:
            self._out.append(_as_reasoning(event))
        self._number = inner._number
        self._at = self._i = len(self._buf)
        return False

    # -- dropping

    def _in_result(self, final: bool) -> bool:
        """Inside a result that the model made up: to its closer or the next special marker."""
        buf, tables = self._buf, self._tables
        end = len(buf)
        closers = self._stop
        assert closers is not None
        close, closing = closers.find(buf, self._i, end, final)
        other, opening = tables.specials.find(buf, self._i, close if closing > 0 else end, final)
        stop = min(close, other)
        self._drop("fabricated_result", self._i, stop)
        self._at = self._i = stop
        if stop < end and closing > 0 and close <= other:
            self._drop("fabricated_result", stop, stop + closing)
            self._at = self._i = stop + closing
        elif not (stop < end and opening > 0):
            if final:
                self._drop("fabricated_result", self._i, end)
                self._at = self._i = end
                self._mode = _TEXT
            return False
        self._mode = _TEXT
        self._after_block()
        return True

    def _in_drop(self, final: bool) -> bool:
        end = len(self._buf)
        self._drop(self._drop_kind, self._at, end)
        self._at = self._i = end
        return False

    # -- copying

    def __deepcopy__(self, memo: dict[int, Any]) -> StreamScrubber:
        self._settle()
        other = object.__new__(StreamScrubber)
        shared = ("_tables", "_offer", "_options", "_search")
        for key, value in self.__dict__.items():
            other.__dict__[key] = value if key in shared else copy.deepcopy(value, memo)
        return other

    def _settle(self) -> None:
        """Leave the fast way inside a value, whose state would not survive a copy."""
        if self._match is not None:
            self._skimmed()
            self._match = None
            self._quiet = _nothing

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        state = dict(self.__dict__)
        state["_search"] = self._search is not None
        del state["_tables"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._tables = tables(self._options[0], self._options[1])
        self._search = self._tables.lead.search if state["_search"] else None


def _innermost(reader: Any) -> _Reads:
    """The reader that has the bytes, inside of those that hold it."""
    while True:
        inner = getattr(reader, "inner", None)
        if inner is None:
            return reader  # type: ignore[no-any-return]
        reader = inner


_STEPS: Final = (
    StreamScrubber._text,
    StreamScrubber._in_candidate,
    StreamScrubber._in_reasoning,
    StreamScrubber._in_fence,
    StreamScrubber._in_result,
    StreamScrubber._in_drop,
    StreamScrubber._in_skip,
)
_HANDLERS: Final = {
    Kind.OPEN: StreamScrubber._do_open,
    Kind.TAG: StreamScrubber._do_tag,
    Kind.WRAP: StreamScrubber._do_wrap,
    Kind.UNWRAP: StreamScrubber._do_unwrap,
    Kind.CLOSE: StreamScrubber._do_close,
    Kind.KEY: StreamScrubber._do_key,
    Kind.THINK: StreamScrubber._do_think,
    Kind.UNTHINK: StreamScrubber._do_unthink,
    Kind.CONTROL: StreamScrubber._do_control,
    Kind.ANSWER: StreamScrubber._do_answer,
    Kind.TURN: StreamScrubber._do_turn,
    Kind.RESULT: StreamScrubber._do_result,
    Kind.FRAME: StreamScrubber._do_frame,
    Kind.SIGIL: StreamScrubber._do_sigil,
}

_NAME_IN_TAG: Final = re.compile(rb"</?\s*([\w:.-]+)")


def _tag_name(word: bytes) -> bytes:
    found = _NAME_IN_TAG.match(word)
    return found.group(1).lower() if found is not None else b""


def _has_name(rest: bytes) -> bool:
    """Behind a tag's word: an equals sign or a name attribute with something of a value."""
    found = re.match(rb"\s*(?:=|name\s*=|tool\s*=)\s*[\"']?([^\s\"'>]+)", rest)
    return found is not None


def _as_reasoning(event: Event) -> Event:
    if type(event) is Text:
        return Reasoning(event.text, event.span)
    if type(event) is ToolCall:
        return ToolCall(
            event.number, event.name, event.arguments, event.raw, event.grammar, event.span,
            (*event.repairs, Repair("unclosed_reasoning", "")), event.strategy if event.repairs else "unclosed_reasoning",
            event.model_id,
        )  # fmt: skip
    return event


def _clean(text: str | None) -> str | None:
    """Strings in events encode to UTF-8."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8") if any("\ud800" <= char <= "\udfff" for char in text) else text


def _depth(value: Any) -> int:
    """Levels of nesting, without recursion."""
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(item, dict | list)
        ]
    return deepest


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(allowed)}, not {type(value).__name__}")
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")

