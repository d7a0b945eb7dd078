"""Text: scanned from stop to stop, told as soon as nothing can make it markup."""

from __future__ import annotations

from ..limits import MAX_BLANKS
from ..reading import BLANK, DONE, GAP, GAP_CUT, MORE
from .markers import Markers
from .state import DROP_PAD, KEEP_PAD, LEAD_PAD, NO_PAD, TEXT, TOKEN_STARTS, begins_token


class TextMode(Markers):
    """The mode that everything returns to."""

    def _text(self, final: bool) -> bool:
        """Scan text from ``_i``. True to go on in another mode, False when more bytes are needed."""
        buf, tables = self._buf, self._tables
        end = len(buf)
        while True:
            if self._pad != NO_PAD and not self._padding(end, final):
                return False
            i = self._i
            if i >= end:
                return self._rest(end, final)
            if buf[i] == 0xC4 and self._after_markup and self._after_call:
                k = self._leftover(i, end, final)
                if k < 0:
                    return self._hold(i, False)
                if k > i:
                    self._markup("padding", i, k)
                    continue
            if self._fresh_line and self._line is not None:
                verdict = self._at_line_start(i, end, final)
                if verdict == MORE:
                    return self._hold(i, final)
                if verdict == DONE:
                    return True
                if self._mode != TEXT:
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
            if verdict == DONE or self._mode != TEXT:
                return True

    def _leftover(self, i: int, end: int, final: bool) -> int:
        """Where a gap of leftover blanks ends that stands between a block and the next tag or the end; ``i`` if none
        does, -1 if more bytes must tell."""
        gap = GAP.match(self._buf, i, min(end, i + MAX_BLANKS))
        k = gap.end() if gap is not None else i
        if not final and (k == end or GAP_CUT.match(self._buf, k, end) is not None):
            return -1
        return k if k == end or self._buf[k] == 0x3C else i

    def _rest(self, end: int, final: bool) -> bool:
        """All is scanned: tell the accepted text, but for the start of a code point."""
        self._i = end
        stop = end if final else self._whole_end(self._at, end)
        if stop > self._at or (final and self._pending):
            if self._pad == LEAD_PAD and not final:
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
        if self._promised:
            self._i = len(buf)
            return
        tail = bytes(buf[p:])
        text = tail.decode("utf-8", "replace")
        start = self._pending[0][1] if self._pending else self._at
        token = begins_token(tail)
        soft = len(tail) >= 3 and text.startswith(("<", "]<"))
        directly = p == start and self._after_markup and self._after_call
        if self._tables.marks.is_prefix(tail) and (token or (soft and (self._cut_off or directly))):
            self._before(p)
            self._drop_pending()
            self._drop("cut_marker", p, len(buf))
            self._at = self._i = len(buf)
            return
        piece = p + self._cut_token(tail)
        self._advance(p, piece)
        self._i = piece
        self._tell_text(piece)
        if piece < len(buf):
            self._markup("cut_marker", piece, len(buf))

    def _cut_token(self, tail: bytes) -> int:
        """Where the start of a token stands behind words that were held with it; the end of ``tail`` if none does."""
        k = max(tail.rfind(start.encode()) for start in TOKEN_STARTS)
        return k if k > 0 and begins_token(tail[k:]) and self._tables.marks.is_prefix(tail[k:]) else len(tail)

    def _padding(self, end: int, final: bool) -> bool:
        """White space at the start of the response, or after markup. False: wait for more."""
        i = self._i
        run = BLANK.match(self._buf, i, end)
        j = run.end() if run is not None else i
        pad = self._pad
        if pad == DROP_PAD:
            if j > i:
                if self._promised:
                    self._keep_promise("padding", i, j)
                else:
                    self._drop("padding", i, j)
                self._at = self._i = j
                self._line = b""
                self._fresh_line = True
            if j == end:
                return False
        elif pad == LEAD_PAD or self._wrapper is not None:
            # At the start, and between a block and the closer of what wraps it, white space is no text yet.
            if j == end and not final and j - self._at <= MAX_BLANKS:
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
                self._pad = KEEP_PAD
                self._rest(end, final)
                return False
        self._pad = NO_PAD
        return True
