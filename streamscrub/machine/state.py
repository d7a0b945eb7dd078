"""The state of one response, what is told of it, and what of the past is remembered because decisions need it."""

from __future__ import annotations

import re
from codecs import utf_8_decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..blocks import Envelope
from ..events import DropKind, Dropped, Event, Reasoning, RejectReason, Text, set_span, set_text
from ..frames import Frame
from ..limits import MAX_HEADER
from ..names import Offer
from ..reading import DEAD, DONE, MORE, Reader
from ..sentinels import Sentinels
from ..tables import Role, Tables

# What the machine is in: text, a candidate, a reasoning section, protected code, a result that the model made up,
# the rest of a response that is dropped, the rest of a block that was too large, frames without their tokens.
TEXT, CANDIDATE, REASON, FENCE, RESULT, DROP, SKIP, STRIPPED = range(8)
# White space at ``_at``: no question, drop it, keep it, or (at the start of the response) not decided yet.
NO_PAD, DROP_PAD, KEEP_PAD, LEAD_PAD = range(4)

# What only tokens begin with.
TOKEN_STARTS: Final = ("<|", "<\uff5c", "]<]")

_LINE_CHARS: Final = re.compile(rb"[ \t>*+\-0-9.)]{0,32}")
_new: Final = object.__new__


def begins_token(tail: bytes) -> bool:
    """Is so much of a token there, if it is the start of one, that it is no text?"""
    text = tail.decode("utf-8", "replace")
    return any(text.startswith(start) and len(text) > len(start) for start in TOKEN_STARTS)


@dataclass(slots=True)
class Candidate:
    """A stretch that began with a marker and may still become a call."""

    start: int
    reader: Reader
    what: str  # "block", "tags", "header", "line"
    size: int  # bytes of the opener
    role: Role | None = None
    special: bool = False
    quoted: int = 0  # directly behind a backtick run of this length
    name: str = ""  # of a call frame
    frame: Frame | None = None  # whose message it is
    code: bool = False
    verdict: int = MORE
    number: int = -1  # announced with progress
    told: int = -1  # argument bytes already told


class State:
    """All fields, and the few ways in which bytes leave the buffer."""

    def __init__(
        self,
        offer: Offer,
        tables: Tables,
        *,
        reasoning: str,
        recover: bool,
        on_fabricated: str,
        progress: bool,
        strict: bool,
        max_call_bytes: int,
        max_depth: int,
        max_calls: int,
    ) -> None:
        self._offer = offer
        self._tables = tables
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

        self._mode = TEXT
        self._candidate: Candidate | None = None
        self._pending: list[tuple[DropKind, int, int]] = []  # undecided bytes right before ``_at``
        self._number = 0
        self._out: list[Event] = []

        # What was released, as far as decisions need it.
        self._tail = ""  # the last text shown
        self._told_to = 0  # the wire offset behind what was told as text or dropped as words
        self._last = b""  # the last bytes of it
        self._shown = False  # any text was shown
        self._pad = LEAD_PAD
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
        self._section_of = ""  # of this grammar, if it stands around calls
        self._wrapper: Envelope | None = None
        self._bare_fence: tuple[int, int] | None = None  # (character, length) of an open fence without a language
        self._bare_kept = False  # its opener was shown
        self._fence: tuple[int, int] = (0, 0)
        self._fence_run = 0
        self._frame: Frame | None = None
        self._frame_kind = ""
        self._promised = ""  # the recipient of a message whose call was not read yet, while all is pending
        self._frame_over = False  # a message ended, so a role word may follow
        self._home = TEXT  # what a candidate returns to
        self._stripped: Frame | None = None  # the format whose tokens may be missing
        self._channel: str | None = None  # of the present message without tokens
        self._resumed = TEXT  # the mode before the first bytes were looked at
        self._stop: Sentinels | None = None
        self._drop_kind: DropKind = "fabricated_turn"
        self._result_kind: DropKind = "fabricated_result"
        self._last_line = ""  # the grammar of the last call, if that was one of a line form
        self._last_calls: list[tuple[str, dict[str, Any]]] = []
        self._label = b""
        self._ends: frozenset[bytes] = frozenset()  # tokens that end the present section besides its closers
        self._resumes = False  # the present section goes on behind a call in it
        self._think_fence: tuple[int, int, int] | None = None  # (character, length, fences open inside)

        self._draft_from = -1  # where the held drafts of an open section start
        self._last_draft: Reader | None = None  # reads the last of them
        self._drafts_off = False  # they were too large to hold
        self._prefilling = False

    def _span_of(self, start: int, end: int) -> tuple[int, int]:
        return max(0, self._base + start), max(0, self._base + end)

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

    def _tell_text(self, end: int) -> None:
        """Tell accepted text up to ``end``, what was undecided before it included."""
        start = self._at
        if self._promised:
            self._keep_promise("wrapper", start, end)
            self._at = end
            return
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
        text = self._decode(start, end)
        self._tail = text
        self._shown = True
        if self._after_markup and text.strip():
            self._after_markup = False
        event = _new(Text)
        set_text(event, text)
        set_span(event, (base + start, base + end))
        self._out.append(event)

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
        if self._promised:
            self._keep_promise(kind, start, end)
        else:
            self._drop_pending()
            self._drop(kind, start, end)
        self._at = self._i = end
        self._after_block()

    def _keep_promise(self, kind: DropKind, start: int, end: int) -> None:
        """In a message to a tool nothing is told before its call, with which it may have to be rejected."""
        if end > start:
            self._pending.append((kind, start, end))
        limit = self._pending[0][1] + MAX_HEADER if self._pending else end
        if end > limit:
            self._pending = [(kind, begin, min(stop, limit)) for kind, begin, stop in self._pending if begin < limit]
            self._break_promise("malformed")
            self._drop("wrapper", limit, end)

    def _break_promise(self, reason: RejectReason) -> bool:
        """A message to a tool has no call in it: reject it, as far as it is pending. Is that so? Done in ``Calls``."""
        raise NotImplementedError

    def _before(self, start: int) -> None:
        """Tell the text before a marker; blanks or a fence directly before it stay undecided."""
        if start > self._at:
            self._tell_text(start)

    def _after_block(self) -> None:
        """A block, a section or a control token ended at ``_at``: a line starts, white space may be padding."""
        self._pad = DROP_PAD if not self._shown or self._tail[-1:].isspace() or not self._tail else KEEP_PAD
        self._line = b""
        self._fresh_line = True
        self._after_markup = self._marked = True

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

    def _new_line(self) -> None:
        self._line = b""
        self._fresh_line = True
        self._span = 0
        self._span_sure = False
        if self._released:
            self._released = frozenset()

    def _pad_line(self, i: int, j: int) -> None:
        line = self._buf.rfind(b"\n", i, j)
        if line >= 0:
            self._new_line()
            self._line = bytes(self._buf[line + 1 : j])
        elif self._line is not None:
            self._line += bytes(self._buf[i:j])

    def _leave_frame(self) -> None:
        self._frame_over = self._frame is not None
        self._section = self._section and self._frame_kind != "call"
        self._frame = None
        self._frame_kind = ""

    def _enter_fence(self, char: int, size: int) -> None:
        self._mode = FENCE
        self._fence = (char, size)
        self._fence_run = -1
        self._line = None

    def _enter_drop(self, kind: DropKind) -> None:
        self._mode = DROP
        self._drop_kind = kind

    def _enter_reasoning(self, section: Mapping[str, Any] | None = None) -> None:
        """A section opened: by a marker of this table of a grammar file, or (None) by the prompt."""
        self._mode = REASON
        self._label = self._tables.label
        self._ends = self._tables.ends
        self._resumes = False
        if section is not None:
            self._label = str(section.get("label", "")).encode()
            self._ends = frozenset(end.encode() for end in section.get("ends", ()))
            self._resumes = bool(section.get("resumes"))
        self._frame_kind = ""
        self._frame = None
        self._draft_from = -1
        self._last_draft = None
        self._drafts_off = False
        self._think_fence = None

    def _lone(self, j: int, end: int, final: bool) -> int:
        """Does the closing run of the span follow at ``j``?"""
        k = j
        while k < end and self._buf[k] == 0x60 and k - j <= self._span:
            k += 1
        if k == end and not final:
            return MORE if k - j <= self._span else DEAD
        return DONE if k - j == self._span else DEAD
