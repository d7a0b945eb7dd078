"""Reasoning sections: their ends, tokens inside them, and drafts of calls."""

from __future__ import annotations

from typing import Final

from ..blocks import NEST, BlockReader, Use
from ..events import DropKind
from ..limits import MAX_BLANKS, MAX_HEADER
from ..reading import DEAD, DONE, MORE, Reader, nested
from ..sentinels import CUT
from ..tables import Kind, Role, Sigil
from .markers import sigil_end
from .state import NO_PAD, REASON, TEXT
from .text import TextMode

_WRAPPERS: Final = 4  # inside each other; no format has more than two


class ReasoningMode(TextMode):
    """A soft call inside a section is a draft: real only if the section is still open at the end of the stream."""

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
                self._line = None if buf[i:end].strip() else self._line
                return self._reasoned(end, final)
            p = found.start()
            self._line = None if p > i and buf[i:p].strip() else self._line
            if buf[p] == 0x0A:
                self._line = b""
                self._i = p + 1
                continue
            if buf[p] in b"`~":
                verdict = self._fence_in_reasoning(p, end, final)
                if verdict == MORE:
                    return self._reasoned(p, final)
                if verdict == DONE:
                    return True
                continue
            size = tables.marks.at(buf, p, end)
            if size == CUT and final:
                size = tables.marks.at(buf, p, end, True)
                if size == 0 or (size < end - p and tables.role(bytes(buf[p : p + size])).special):
                    return self._end_of_reasoning(p)
            if size == CUT:
                return self._reasoned(p, final)
            if size == 0:
                self._line = None
                self._i = p + 1
                continue
            word = bytes(buf[p : p + size])
            role = tables.role(word)
            verdict = self._reason_marker(role, p, size, end, final)
            if verdict == MORE:
                return self._reasoned(p, final)
            if verdict == DONE:
                return True

    def _fence_in_reasoning(self, p: int, end: int, final: bool) -> int:
        """Code in a fence of reasoning may hold fences of its own; the run without a word ends what is open."""
        buf = self._buf
        limit = min(end, p + MAX_BLANKS)
        j = p
        while j < limit and buf[j] == buf[p]:
            j += 1
        self._i = j
        fence = self._think_fence
        if fence is None or self._line is None or self._line.strip() or fence[0] != buf[p]:
            return DEAD
        if j == end and j - p < MAX_BLANKS and not final:
            return MORE
        char, size, inside = fence
        if j - p < size:
            return DEAD
        if j < end and buf[j] not in b" \t\r\n":
            self._think_fence = (char, size, inside + 1)
        elif inside:
            self._think_fence = (char, size, inside - 1)
        else:
            self._close_reasoning(p, j)
            return DONE
        self._line = None
        return DEAD

    def _reasoned(self, stop: int, final: bool) -> bool:
        """Tell reasoning up to ``stop``, unless a draft is held."""
        self._i = stop
        if self._draft_from < 0:
            self._tell_reasoning(stop if final else self._whole_end(self._at, stop))
            self._i = stop
        elif stop - self._draft_from > self._max_bytes:
            # Too much to hold: the drafts become reasoning, and later ones of this section stay drafts.
            self._draft_from = -1
            self._last_draft = None
            self._drafts_off = True
            self._tell_reasoning(stop)
            self._i = stop
        return False

    def _end_of_reasoning(self, p: int) -> bool:
        tail = bytes(self._buf[p:]).decode("utf-8", "replace")
        whole = self._tables.specials.at(self._buf, p, len(self._buf), True) > 0
        token = len(tail) >= 3 and (
            whole or tail.startswith(("<|", "<\uff5c")) or (self._cut_off and tail.startswith("<"))
        )
        if self._draft_from < 0 and token:
            self._tell_reasoning(p)
            self._drop("cut_marker", p, len(self._buf))
            self._at = self._i = len(self._buf)
            return False
        return self._reasoned(len(self._buf), True)

    def _reason_marker(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """A marker inside reasoning. DEAD: scanning goes on at ``_i``."""
        if self._frame_kind == "reasoning":
            return self._framed_marker(role, p, size, end, final)
        kind = role.kind
        if kind == Kind.UNTHINK or (self._ends and role.literal in self._ends):
            verdict = self._in_draft(p, end, final)
            if verdict == DEAD:
                self._close_reasoning(p, p + size)
                return DONE
            return MORE if verdict == MORE else DEAD
        if kind == Kind.THINK:
            # A doubled opener counts once, and so does its label.
            self._swallow("delimiter", p, p + size)
            if self._draft_from >= 0:
                return DEAD
            self._label = str(role.target.get("label", "")).encode()
            return DONE
        if kind == Kind.CONTROL and role.special:
            self._swallow("control", p, p + size)
            return DEAD
        if kind == Kind.ANSWER and role.special and role.target == "open":
            # The answer begins, so the section is over.
            self._end_section(p)
            return DONE
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
            self._mode = TEXT
            self._leave_frame()
            self._after_block()
            return DONE
        if role.kind == Kind.FRAME and (probe := self._probe(role, p, size, end, final)) != DONE:
            if probe == DEAD:
                self._swallow("control", p, p + size)
            return probe
        if role.kind == Kind.FRAME or (role.special and role.kind in (Kind.OPEN, Kind.TAG, Kind.WRAP)):
            self._tell_reasoning(p)
            self._at = self._i = p
            self._mode = TEXT
            self._leave_frame()
            self._after_block()
            self._pad = NO_PAD
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

    def _end_section(self, p: int) -> None:
        """The section ends before ``p``: held drafts stay reasoning."""
        self._draft_from = -1
        self._last_draft = None
        self._tell_held(p)
        self._at = self._i = p
        self._mode = TEXT
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
            role = tables.role(word)
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
            self._pad = NO_PAD
            if self._resumes and role.kind == Kind.OPEN:
                self._home = REASON
            return DONE
        if self._draft_from >= 0:
            self._i = p + size
            return DEAD
        stop = p + self._sigil_size(p, size, end, final)
        if stop < p:
            return MORE
        if stop == p + size and role.kind in (Kind.SIGIL, Kind.KEY, Kind.TAG):
            # A tag that is only mentioned is dropped whole.
            target = role.target
            sigil = target if isinstance(target, Sigil) else Sigil(target.settings["tags"].tag_end, False, None)
            stop, growing = sigil_end(self._buf, stop, end, sigil)
            if growing and not final:
                return MORE
        self._swallow("control", p, stop)
        return DEAD

    def _probe(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """Does a call with a name follow the special opener at ``p``? Looks at a bounded stretch."""
        buf, tables = self._buf, self._tables
        limit = min(end, p + 2 * MAX_HEADER)
        if role.kind == Kind.FRAME:
            mentioned = role.target.mentioned(role.literal, buf, p + size, end)
            return DEAD if mentioned == DONE else MORE if mentioned == MORE and not final else DONE
        wrappers = 0
        while role.kind in (Kind.WRAP, Kind.SIGIL):
            # Wrappers may hold wrappers; what counts is what stands in the last one.
            wrappers += 1
            if wrappers > _WRAPPERS:
                return DEAD
            sigil = role.kind == Kind.SIGIL
            at, growing = sigil_end(buf, p + size, end, role.target) if sigil else (p + size, False)
            if growing and not final:
                return MORE
            i, found = tables.special.find(buf, at, limit, final)
            if buf[at : i if found else limit].strip():
                return DEAD
            if found <= 0:
                return MORE if limit == end and not final else DEAD
            role, p, size = tables.role(bytes(buf[i : i + found])), i, found
            if role.kind not in (Kind.OPEN, Kind.TAG, Kind.WRAP):
                return DEAD
        reader = self._reader(role, p, size)
        # A bounded stretch, so that many openers in one delta cost no more than their bytes.
        verdict = reader.read(buf, min(end, p + 2 * MAX_HEADER), False)
        # Once a name was shown it stays shown, whatever becomes of the call.
        if isinstance(reader, BlockReader) and reader.named_only:
            return DEAD
        if verdict == NEST or reader.evidence or (role.kind == Kind.TAG and getattr(reader, "name", None)):
            return DONE
        if verdict == DEAD:
            return DEAD
        return MORE if end - p <= 2 * MAX_HEADER else DEAD

    def _draft(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if self._drafts_off or self._section:
            self._i = p + size
            return DEAD
        buf = self._buf
        reader = self._reader(role, p, size)
        # A bounded stretch, so that many openers in one delta cost no more than their bytes.
        verdict = reader.read(buf, min(end, p + 2 * MAX_HEADER), False)
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
        self._last_draft = self._reader(role, p, size)
        self._i = p + size
        return DEAD

    def _in_draft(self, p: int, end: int, final: bool) -> int:
        """A closer of the section at ``p``. DONE: it is data in a string of a draft that completes behind it."""
        draft = self._last_draft
        if draft is None:
            return DEAD
        if draft.at <= p:
            verdict = draft.read(self._buf, p, False)
            quoted = any(getattr(one, "in_string", False) for one in nested(draft))
            if verdict != MORE or not quoted:
                self._last_draft = None
                return DEAD
        verdict = draft.read(self._buf, end, False)
        if verdict == MORE and not final:
            return MORE
        self._last_draft = None
        if verdict != DONE:
            return DEAD
        self._i = draft.at
        return DONE

    def _reader(self, role: Role, p: int, size: int) -> Reader:
        """What reads the call that the marker at ``p`` opens."""
        if role.kind == Kind.TAG:
            use: Use = role.target
            return use.body.reader(p + size, use.settings["around"], self._offer, use.settings)
        start = p + size - (1 if role.target.from_last else 0)
        return BlockReader(role.target, self._offer, start, attributed=role.attributes)
