"""What is dropped as it comes: results and turns that the model made up."""

from __future__ import annotations

from ..events import DropKind
from ..reading import DONE
from ..sentinels import Sentinels
from .state import RESULT, TEXT, State


class Dropping(State):
    """A result ends at its closer or the next special marker, a turn never."""

    def _enter_result(self, start: int, size: int, closers: Sentinels, kind: DropKind = "fabricated_result") -> int:
        """Drop a result, or a message for nobody, from its opener on; what it holds is not read."""
        self._before(start)
        self._break_promise("malformed")
        self._drop_pending()
        self._at = self._i = start
        if self._on_fabricated == "cut" and kind == "fabricated_result":
            self._enter_drop("fabricated_result")
            return DONE
        self._result_kind = kind
        self._drop(kind, start, start + size)
        self._at = self._i = start + size
        self._stop = closers
        self._mode = RESULT
        return DONE

    def _in_result(self, final: bool) -> bool:
        """Inside a result that the model made up, or a message for nobody: to its closer or the next special marker."""
        buf, tables = self._buf, self._tables
        end = len(buf)
        closers = self._stop
        assert closers is not None
        close, closing = closers.find(buf, self._i, end, final)
        # Before a closer nothing can be the start of a token that is still to come.
        other, opening = tables.specials.find(buf, self._i, close if closing > 0 else end, final or closing > 0)
        stop = min(close, other)
        self._drop(self._result_kind, self._i, stop)
        self._at = self._i = stop
        if stop < end and closing > 0 and close <= other:
            k = stop + closing
            while k < end and buf[k] in b"`~" and buf[k] == buf[k - 1]:
                k += 1
            if k == end and buf[k - 1] in b"`~" and not final:
                return False  # the run that closes a fence may be longer
            self._drop(self._result_kind, stop, k)
            self._at = self._i = k
        elif not (stop < end and opening > 0):
            if final:
                self._drop(self._result_kind, self._i, end)
                self._at = self._i = end
                self._mode = TEXT
            return False
        self._mode = TEXT
        self._after_block()
        return True

    def _in_drop(self, final: bool) -> bool:
        end = len(self._buf)
        self._drop(self._drop_kind, self._at, end)
        self._at = self._i = end
        return False
