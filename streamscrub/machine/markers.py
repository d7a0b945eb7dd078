"""What each kind of marker does where it stands in text."""

from __future__ import annotations

import re
from typing import Final

from ..attributes import TAG_END, TAG_END_CUT
from ..blocks import BlockReader, Envelope, Use
from ..events import DropKind
from ..frames import Frame, HeaderReader
from ..limits import MAX_BLANKS, MAX_HEADER
from ..lines import ElementReader, EmptyElementReader, element_at
from ..reading import BLANK, DEAD, DONE, MORE, Around
from ..sentinels import CUT
from ..tables import Kind, Role, Sigil
from .release import tag_name
from .starts import LineStarts
from .state import Candidate

_DAMAGED_TAG: Final = re.compile(rb"[ \t]*+(?:name[ \t]*+)?=[^<>\n\r]{0,%d}+" % MAX_HEADER)
_SIGIL_WORD: Final = re.compile(rb"[\w:.-]")
# The rest of a tag in an inline span, and what may still become one.
_QUOTED_TAG: Final = re.compile(rb"[^<>`\n\r]{0,%d}+>" % MAX_HEADER)
_QUOTED_TAG_CUT: Final = re.compile(rb"[^<>`\n\r]{0,%d}+\Z" % MAX_HEADER)


def sigil_end(buf: bytearray, i: int, end: int, sigil: Sigil) -> tuple[int, bool]:
    """Where the tag ends whose start was read up to ``i``, and whether more bytes may make it longer."""
    tag = sigil.tag_end.rest.match(buf, i, end)
    stop = tag.end() if tag is not None else i
    whole = stop > i and buf[stop - 1] == 0x3E
    return stop, not whole and sigil.tag_end.rest_cut.match(buf, i, end) is not None


class Markers(LineStarts):
    """One handler a kind; each returns MORE (hold), DONE (another mode) or DEAD (scanning goes on)."""

    def _marker(self, p: int, end: int, final: bool) -> int:
        """A lead byte at ``p``. MORE: hold; DONE: another mode; DEAD: ``_i`` stands behind what was accepted."""
        buf, tables = self._buf, self._tables
        byte = buf[p]
        if (0x61 <= byte <= 0x7A or 0x41 <= byte <= 0x5A) and self._behind_word(p):
            self._advance(p, p + 1)
            return DEAD
        size = tables.marks.at(buf, p, end)
        cut = size == CUT
        if size == CUT and final:
            size = tables.marks.at(buf, p, end, True)
            if size == 0:
                return MORE
            if tables.role(bytes(buf[p : p + size])).special and not self._span:
                # A token and the start of a longer one: neither is text.
                self._markup("cut_marker", p, end)
                return DEAD
        if size == CUT:
            return MORE
        if size == 0:
            if byte == 0x3C and tables.reserved is not None and self._offer.tools:
                return self._element(p, end, final)
            self._advance(p, p + 1)
            return DEAD
        word = bytes(buf[p : p + size])
        role = tables.role(word)
        if not role.special:
            if self._frame_kind == "text" or (self._span and self._quoted(p, end, final) != DEAD):
                if self._span and self._frame_kind != "text" and not self._span_sure:
                    return MORE
                self._advance(p, p + size)
                return DEAD
        elif self._span and p == self._span_at:
            lone, stop = self._lone_marker(role, p, size, end, final)
            if lone == DEAD:
                lone, stop = self._quoted_block(p + size, end, final)
            if lone == MORE:
                return MORE
            if lone == DONE:
                self._advance(p, stop)
                return DEAD
        if size < end - p and role.special and cut:
            # The bytes end inside a longer token, which begins with a whole one: none of it is an answer.
            self._markup("cut_marker", p, end)
            return DEAD
        handler = _HANDLERS[role.kind]
        return handler(self, role, p, size, end, final)

    def _lone_marker(self, role: Role, p: int, size: int, end: int, final: bool) -> tuple[int, int]:
        """Is the marker, or the tag that it begins, all that an inline span holds? With the index behind it."""
        stop = p + size
        lone = self._lone(stop, end, final)
        if lone != DEAD:
            return lone, stop
        label = str(role.target.get("label", "")).encode().strip() if role.kind is Kind.THINK else b""
        here = bytes(self._buf[stop : stop + len(label)])
        if label and here == label:
            stop += len(label)
        elif here and label.startswith(here):
            return (DEAD if final else MORE), stop
        elif role.kind in (Kind.SIGIL, Kind.CLOSE, Kind.KEY, Kind.TAG):
            tag = _QUOTED_TAG.match(self._buf, stop, end)
            if tag is None:
                growing = _QUOTED_TAG_CUT.match(self._buf, stop, end) is not None and not final
                return (MORE if growing else DEAD), stop
            stop = tag.end()
        else:
            return DEAD, stop
        return self._lone(stop, end, final), stop

    def _quoted_block(self, i: int, end: int, final: bool) -> tuple[int, int]:
        """Is a wrapper with its calls all that an inline span holds, up to a token directly before the closing run?"""
        if self._quoted(i, end, final) != DONE:
            return (MORE if self._span and not final else DEAD), i
        stop = self._span_end(i, end)
        return (DONE if self._buf[stop - 1] in b">]" else DEAD), stop

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

    def _release(self, role: Role, p: int, size: int) -> int:
        """A marker that means nothing here is text; its closer on the same line is text too."""
        name = tag_name(bytes(self._buf[p : p + size]))
        if name:
            self._released |= {name}
        self._advance(p, p + size)
        return DEAD

    def _was_released(self, word: bytes) -> bool:
        return bool(self._released) and (tag_name(word) or word.lower()) in self._released

    def _follows_markup(self, p: int) -> bool:
        """Does ``p`` stand directly behind reasoning, a block or a control token, blanks aside?"""
        return self._after_markup and self._base + p > 0 and self._marked

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
            self._before(p)
            self._break_promise("malformed")
            self._markup("delimiter", p, p + size)
            self._leave_frame()
        else:
            self._markup("control", p, p + size)
        return DEAD

    def _do_answer(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """A wrapper around the answer: its opener counts behind markup, its closer behind such an opener."""
        opens = role.target == "open"
        if not role.special and not (self._follows_markup(p) if opens else self._answered):
            return self._release(role, p, size)
        self._answered = opens
        self._markup("wrapper", p, p + size)
        return DEAD

    def _do_close(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        buf = self._buf
        word = bytes(buf[p : p + size])
        no_tools = self._offer.known and not self._offer.tools
        if role.target == "result" and (self._on_fabricated == "keep" or (no_tools and not role.special)):
            return self._release(role, p, size)
        if not role.special and self._was_released(word):
            self._advance(p, p + size)
            return DEAD
        stop = p + size
        if not word.endswith((b">", b"]")):
            tail = TAG_END.match(buf, stop, end)
            if tail is None:
                if not final and TAG_END_CUT.match(buf, stop, end) is not None and end - stop <= MAX_BLANKS:
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
        self._section_of = role.grammar
        return DEAD

    def _do_unwrap(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        self._before(p)
        self._section = False
        self._markup("wrapper", p, p + size)
        return DEAD

    def _sigil_size(self, p: int, size: int, end: int, final: bool) -> int:
        """The size of a sigil without a bracket at its end that begins another marker; CUT if it may begin one."""
        bracket = size - len(bytes(self._buf[p : p + size]).rstrip(b"</"))
        if not bracket or bracket == size:
            return size
        found = self._tables.marks.at(self._buf, p + size - bracket, end, final)
        return size if found == 0 else size - bracket if found > 0 else CUT

    def _do_sigil(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        """Any other tag of a special syntax: a wrapper, a stray parameter, a damaged tag. Never text."""
        buf = self._buf
        sigil: Sigil = role.target
        own = self._sigil_size(p, size, end, final)
        if own == CUT:
            return MORE
        if own < size:
            self._markup("control", p, p + own)
            return DEAD
        stop, growing = sigil_end(buf, p + size, end, sigil)
        if growing and not final:
            return MORE
        mentioned = role.kind is Kind.SIGIL and sigil.section is None and buf[stop - 1] not in b">|"
        if mentioned and stop > p + size and buf[p + size] in b" \t":
            stop = p + size  # what follows is no word of a tag
        if role.kind is Kind.KEY and buf[stop - 1] != 0x3E:
            # The end of the tag is missing; what it says belongs to it all the same.
            damaged = _DAMAGED_TAG.match(buf, p + size, end)
            stop = damaged.end() if damaged is not None else stop
        self._before(p)
        # Only a wrapper around calls makes the words in it none of the answer.
        wraps = sigil.section is not None and not _SIGIL_WORD.match(buf, p + size, stop)
        inside = bool(sigil.section) if wraps else self._section
        orphan = sigil.closing and not self._section
        self._section = self._section and not (wraps and sigil.closing)
        self._markup("orphan" if orphan else "wrapper", p, stop)
        self._section = inside
        self._section_of = role.grammar if wraps else self._section_of
        return DEAD

    def _do_think(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if self._reasoning == "off" or self._frame_kind:
            return self._release(role, p, size)
        line = self._line
        starts = line is not None and not line.strip()
        # A prompt may begin the turn with words that no file lists.
        if not role.special and not (starts or self._after_markup or self._prefilling):
            return self._release(role, p, size)
        self._markup("delimiter", p, p + size)
        self._enter_reasoning(role.target)
        return DONE

    def _do_unthink(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if self._reasoning == "off" or (not role.special and self._was_released(bytes(self._buf[p : p + size]))):
            self._advance(p, p + size)
            return DEAD
        self._markup("orphan", p, p + size)
        return DEAD

    def _do_turn(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        if self._prefilling:
            self._markup("control", p, p + size)
            return DEAD
        self._before(p)
        self._break_promise("malformed")
        self._drop_pending()
        self._at = self._i = p
        self._enter_drop("fabricated_turn")
        return DONE

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
        return self._enter_result(p, size, role.target)

    def _do_open(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        envelope: Envelope = role.target
        if envelope.demand and not self._offer.tools:
            self._advance(p, p + size)
            return DEAD
        self._before(p)
        begin = p + size - (1 if envelope.from_last else 0)
        block = BlockReader(envelope, self._offer, begin, attributed=role.attributes, unclosed=role.unclosed)
        candidate = Candidate(p, block, "block", size, role, role.special)
        return self._begin(candidate)

    def _do_tag(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        use: Use = role.target
        self._before(p)
        reader = use.body.reader(p + size, use.settings["around"], self._offer, use.settings)
        return self._begin(Candidate(p, reader, "tags", size, role, role.special))

    def _do_frame(self, role: Role, p: int, size: int, end: int, final: bool) -> int:
        frame: Frame = role.target
        mentioned = frame.mentioned(role.literal, self._buf, p + size, end)
        if mentioned == MORE and not final:
            return MORE
        if mentioned == DONE:
            self._markup("control", p, p + size)
            return DEAD
        self._before(p)
        self._break_promise("malformed")
        self._leave_frame()
        header = HeaderReader(p + size, frame, role.literal)
        return self._begin(Candidate(p, header, "header", size, role, True))

    def _element(self, p: int, end: int, final: bool) -> int:
        tables = self._tables
        assert tables.reserved is not None
        if self._section or self._frame_kind or p < self._muted:
            self._advance(p, p + 1)
            return DEAD
        verdict, element = element_at(self._buf, p, end, self._offer, tables.reserved, final)
        if verdict == MORE:
            return MORE
        # One without content needs attributes, or the section that some models write around them.
        bare = element is not None and element.empty and not element.attributes and not element.cut
        if element is None or (bare and self._wrapper is None):
            self._advance(p, p + 1)
            return DEAD
        if self._span and self._quoted(p, end, final) != DEAD:
            if not self._span_sure:
                return MORE
            self._advance(p, p + 1)
            return DEAD
        if element.cut and not self._cut_off:
            self._advance(p, p + 1)
            return DEAD
        self._before(p)
        if element.cut:
            cut = EmptyElementReader(p, self._offer, "elements", element)
            self._reject(
                Candidate(p, cut, "line", end - p), "truncated", element.name, end, "the stream ended in a tag"
            )
            return DEAD
        if element.empty:
            empty = EmptyElementReader(p, self._offer, "elements", element)
            return self._begin(Candidate(p, empty, "line", element.stop - p))
        reader = ElementReader(p, self._offer, Around(), {}, "elements", element.name, element.stop)
        return self._begin(Candidate(p, reader, "line", element.stop - p))


_HANDLERS: Final = {
    Kind.OPEN: Markers._do_open,
    Kind.TAG: Markers._do_tag,
    Kind.WRAP: Markers._do_wrap,
    Kind.UNWRAP: Markers._do_unwrap,
    Kind.CLOSE: Markers._do_close,
    Kind.KEY: Markers._do_key,
    Kind.THINK: Markers._do_think,
    Kind.UNTHINK: Markers._do_unthink,
    Kind.CONTROL: Markers._do_control,
    Kind.ANSWER: Markers._do_answer,
    Kind.TURN: Markers._do_turn,
    Kind.RESULT: Markers._do_result,
    Kind.FRAME: Markers._do_frame,
    Kind.SIGIL: Markers._do_sigil,
}
