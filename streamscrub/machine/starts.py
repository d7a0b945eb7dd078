"""Forms that count only where a line starts."""

from __future__ import annotations

import re
from typing import Any, Final

from ..blocks import BlockReader
from ..frames import HeaderReader
from ..limits import MAX_NAME
from ..lines import ActionReader, BareReader, GlmForm, NamedReader
from ..reading import BLANK, DEAD, DONE, MORE, NOTHING, Around
from ..sentinels import CUT
from ..tables import Kind
from .code import Code
from .state import Candidate, begins_token

_RECIPIENT: Final = re.compile(rb"to=[^\s<{]{1,%d}+[ \t]{0,%d}+" % (MAX_NAME, MAX_NAME))
_WORD: Final = re.compile(rb"[A-Za-z_][\w.-]{0,%d}+" % MAX_NAME)


class LineStarts(Code):
    """Looks once at the start of each line."""

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
        indented = len(line) > 3
        if self._section and not self._frame_kind and not indented and byte in b"{[`~" and i >= self._muted:
            # Where tags are due a call as JSON is one, too, so that it is not lost with the words of a section.
            inside = self._tables.sections.get(self._section_of)
            if inside is not None:
                return self._begin(Candidate(i, BlockReader(inside, self._offer, i), "block", 0, None, True))
        if byte in b"\r\n`~<":
            self._fresh_line = byte in b"`~"
            return DEAD
        if indented or line.strip():
            self._fresh_line = False
            return DEAD
        self._fresh_line = False
        if byte == 0x74 and i == self._at and not (self._shown or self._number or self._marked):
            verdict = self._recipient(i, end, final)
            if verdict != DEAD:
                self._fresh_line = verdict == MORE
                return verdict
        if self._section or self._frame_kind or (self._bare_fence is not None and self._bare_kept):
            return DEAD
        verdict = self._line_form(i, end, final)
        if verdict == MORE:
            self._fresh_line = True
        return verdict

    def _line_result(self, i: int, size: int, grammar: str) -> int:
        """A result that only a word opens, right behind a call of a line of its grammar: it reaches to the next token
        or the end."""
        counts = self._after_call and self._after_markup and self._last_line == grammar
        if not counts or self._on_fabricated == "keep":
            return DEAD
        return self._enter_result(i, size, NOTHING)

    def _recipient(self, i: int, end: int, final: bool) -> int:
        """At the start of a response ``to=NAME`` before a token of a frame is the header that the prompt began."""
        buf = self._buf
        word = _RECIPIENT.match(buf, i, end)
        if word is None or (word.end() == end and not final):
            return MORE if word is not None or (b"to=".startswith(buf[i:end]) and not final) else DEAD
        for frame in self._tables.frames:
            size = frame.marks.at(buf, word.end(), end)
            if size == CUT and not final:
                return MORE
            if size > 0:
                header = HeaderReader(i, frame, b"")
                return self._begin(Candidate(i, header, "header", word.end() - i, None, True))
        return DEAD

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
                    cut = size == CUT and begins_token(bytes(self._buf[i + len(word) : end]))
                    if cut or (found is not None and found.kind is Kind.FRAME):
                        self._markup("delimiter", i, i + len(word))
                        return DEAD
                elif word.startswith(here) and i + len(here) == end and not final:
                    return MORE
        self._frame_over = False
        return DEAD

    def _line_form(self, i: int, end: int, final: bool) -> int:
        buf, offer, tables = self._buf, self._offer, self._tables
        if not (tables.lines or tables.headed) or i < self._muted:
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
            return self._begin(Candidate(i, reader, "line", 1))
        if not offer.known or not offer.tools:
            return DEAD
        words = tables.words.at(buf, i, end, final) if byte in tables.words.leads else 0
        if words == CUT:
            return MORE
        if words > 0:
            start = bytes(buf[i : i + words])
            line = next(one for one in tables.lines if one.start.encode() == start)
            if line.syntax == "result":
                return self._line_result(i, words, line.grammar)
            if line.others:
                verdict = self._addressed(i, words, line.others, end, final)
                if verdict != DEAD:
                    return verdict
            action = ActionReader(i, offer, self._plain_around(), {}, line.grammar, (start, line.then.encode()))
            return self._begin(Candidate(i, action, "line", words))
        word = _WORD.match(buf, i, end)
        if word is None:
            return DEAD
        name = word.group().decode("utf-8", "replace")
        if word.end() == end and not final:
            may = offer.may_begin(name) or b"call:".startswith(word.group())
            return MORE if may else DEAD
        after = buf[word.end()] if word.end() < end else 0
        if after == 0x3C and offer.plain(name) is not None:
            return self._headed(i, word.end(), end, final)
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
            return self._begin(Candidate(i, named, "line", 1))
        if after == 0x2F and "glm_line" in forms and offer.plain(name) is not None and self._bare_fence is None:
            glm = GlmForm(i, offer, self._plain_around(), {}, forms["glm_line"])
            return self._begin(Candidate(i, glm, "line", 1))
        return DEAD

    def _headed(self, i: int, stop: int, end: int, final: bool) -> int:
        """An offered name directly before the token that follows it in a header: the prompt wrote what opens it."""
        size = self._tables.marks.at(self._buf, stop, end, final)
        if size == CUT:
            return MORE
        role = self._tables.roles.get(bytes(self._buf[stop : stop + size])) if size > 0 else None
        if role is None or role.kind is not Kind.OPEN or not role.target.shared:
            return DEAD
        block = BlockReader(role.target, self._offer, i)
        return self._begin(Candidate(i, block, "block", stop - i, role))

    def _addressed(self, i: int, size: int, others: tuple[str, ...], end: int, final: bool) -> int:
        """A line that says whom the text below it is for. DONE: it was one, and is dropped."""
        line = bytes(self._buf[i + size : min(end, i + size + MAX_NAME)])
        for other in others:
            for newline in (b"\n", b"\r\n"):
                whole = other.encode() + newline
                if line.startswith(whole):
                    self._markup("delimiter", i, i + size + len(whole))
                    return DONE
                if whole.startswith(line) and i + size + len(line) == end and not final:
                    return MORE
        return DEAD

    def _plain_around(self) -> Around:
        bare = self._tables.bare
        return bare.around if bare is not None else Around(outer=self._tables.marks)

    def _quotes(self) -> dict[str, Any]:
        bare = self._tables.bare
        return dict(bare.uses[0].settings) if bare is not None and bare.uses else {}
