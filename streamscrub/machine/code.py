"""Code in text: fences with and without a language, and inline spans."""

from __future__ import annotations

import re
from typing import Final

from ..blocks import BlockReader, Envelope
from ..limits import CLOSER_WAIT, MAX_BLANKS
from ..lines import FenceReader
from ..reading import BLANK, DEAD, DONE, MORE, Around
from ..sentinels import sentinels
from .candidates import Candidates
from .release import INFO
from .state import TEXT, Candidate

_FENCE_LINE: Final = re.compile(rb" {0,3}+(?:(?:>[ \t]?+|[-*+][ \t]++|\d{1,9}+[.)][ \t]++)[ \t]{0,3}+)*+")
_CLOSING_LINE: Final = re.compile(rb"[ \t]{0,12}(?:>[ \t]?)*[ \t]{0,3}")
_RUN_OR_LINE: Final = re.compile(rb"`+|\n")


class Code(Candidates):
    """Protected code runs through; the rest of a fence waits for what it holds."""

    def _backticks(self, p: int, end: int, final: bool) -> int:
        """A run of backticks at ``p``: a fence where a line starts, else one end of an inline span."""
        buf = self._buf
        char = buf[p]
        # A longer run is two, which bounds what is held.
        limit = min(end, p + MAX_BLANKS)
        j = p
        while j < limit and buf[j] == char:
            j += 1
        fence = self._line is not None and _FENCE_LINE.fullmatch(self._line) is not None
        if j == end and j - p < MAX_BLANKS and not final and (fence or char == 0x60):
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
        info = INFO.match(buf, j, end)
        word = info.group(1) if info is not None else b""
        k = info.end() if info is not None else j
        language = word.decode("utf-8", "replace").lower()
        special = {"json", *tables.fences}
        if k == end and not final and (not language or any(name.startswith(language) for name in special)):
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
            holds = tables.fences.get(language, "json")
            if isinstance(holds, Envelope):
                block = BlockReader(holds.fence(bytes(buf[p:j])), self._offer, behind)
                return self._begin(Candidate(p, block, "block", behind - p))
            if holds == "reasoning":
                self._markup("delimiter", p, behind)
                self._enter_reasoning({})
                self._think_fence = (char, size, 0)
                return DONE
            if holds == "result":
                if self._on_fabricated != "keep" and (self._offer.tools or not self._offer.known):
                    # The newline before its closing run is part of the closer.
                    return self._enter_result(p, behind - 1 - p, sentinels((b"\n" + bytes(buf[p:j]),)))
            else:
                verdict = self._json_fence(p, behind, char, size, end, final)
                if verdict != DEAD:
                    return verdict
        self._advance(p, j)
        self._line = None
        self._tell_text(self._whole_end(self._at, j))
        self._i = j
        self._enter_fence(char, size)
        return DONE

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
        return self._begin(Candidate(p, reader, "line", behind - p))

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
                    self._mode = TEXT
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
            self._mode = TEXT
        return False

    def _span_end(self, i: int, end: int) -> int:
        """Where the closing run of the open inline span begins, which is known to come."""
        found = _RUN_OR_LINE.search(self._buf, i, end)
        while found is not None and found.end() - found.start() != self._span:
            found = _RUN_OR_LINE.search(self._buf, found.end(), end)
        return found.start() if found is not None else end

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
