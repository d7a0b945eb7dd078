"""Telling calls: numbers, limits, the strict mode, and progress."""

from __future__ import annotations

from typing import Any

from ..edits import placed
from ..events import ArgumentsDelta, CallStarted, RejectedCall, RejectReason, ToolCall
from ..lines import LineReader
from ..reading import Around, UntilCloser
from ..resolve import Outcome
from .dropping import Dropping
from .state import Candidate


class Calls(Dropping):
    """Turns outcomes into events."""

    def _tell_outcomes(self, candidate: Candidate, outcomes: list[Outcome], stop: int) -> None:
        self._drop_pending()
        base = candidate.start
        self._last_calls = []
        self._last_line = candidate.reader.grammar if isinstance(candidate.reader, LineReader) else ""
        for k, one in enumerate(outcomes):
            start = base if k == 0 else base + one.start
            end = stop if k == len(outcomes) - 1 else base + outcomes[k + 1].start
            self._tell_call(candidate, one, max(start, base), max(end, start), first=k == 0)
        self._at = self._i = stop
        self._after_block()
        self._after_call = True

    def _tell_call(self, candidate: Candidate, one: Outcome, start: int, end: int, first: bool) -> None:
        self._promised = ""
        if self._base + end <= 0:
            return  # it stands in the prefill, and the response is empty
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
                RejectedCall(
                    number,
                    reason,
                    _clean(one.name),
                    one.arguments,
                    raw,
                    one.grammar,
                    span,
                    detail,
                    _clean(one.model_id),
                )
            )
            return
        assert one.name is not None
        assert one.arguments is not None
        self._last_calls.append((one.name, one.arguments))
        repairs = tuple(placed(one.repairs, raw, span, self._base + candidate.start))
        self._out.append(
            ToolCall(
                number,
                one.name,
                one.arguments,
                raw,
                one.grammar,
                span,
                repairs,
                one.strategy,
                _clean(one.model_id),
            )
        )

    def _reject(
        self, candidate: Candidate, reason: RejectReason, name: str | None, stop: int, detail: str, grammar: str = ""
    ) -> None:
        """Tell that the candidate, up to ``stop``, is a call that does not run."""
        name = name or (self._offer.resolve(self._promised).name if self._promised else None)
        self._drop_pending()
        grammar = grammar or self._grammar_of(candidate)
        outcome = Outcome(name or None, None, 0, stop - candidate.start, reason=reason, detail=detail, grammar=grammar)
        self._tell_call(candidate, outcome, candidate.start, stop, first=True)
        self._at = self._i = stop
        self._after_block()
        self._after_call = True

    def _break_promise(self, reason: RejectReason) -> bool:
        if not self._promised or not self._pending:
            return False
        name = self._offer.resolve(self._promised).name
        frame = self._frame.name if self._frame is not None else ""
        outcome = Outcome(name, None, 0, 0, reason=reason, detail="the message holds no call", grammar=frame)
        start, stop = self._pending[0][1], self._pending[-1][2]
        self._pending.clear()
        self._tell_call(Candidate(start, UntilCloser(start, Around()), "header", 0), outcome, start, stop, first=False)
        self._after_call = True
        return True

    def _grammar_of(self, candidate: Candidate) -> str:
        grammar = getattr(candidate.reader, "grammar", "")
        return grammar or (candidate.role.grammar if candidate.role is not None else "")

    def _announce(self, candidate: Candidate) -> None:
        """With progress: tell the name once it is known, then the argument text as it grows."""
        reader = candidate.reader
        if candidate.what not in ("block", "tags") or not reader.evidence or candidate.quoted or self._draft_from >= 0:
            return
        if candidate.frame is not None and getattr(reader, "leading", None) is None:
            return  # the message may hold a call with an opener of its own
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
            self._out.append(
                CallStarted(candidate.number, resolution.name or written, self._grammar_of(candidate), span)
            )
        start, stop = getattr(reader, "arguments", (-1, -1))
        if start < 0:
            return
        begin = max(start, candidate.told)
        stop = self._whole_end(begin, min(stop, len(self._buf)))
        if stop > begin:
            candidate.told = stop
            text = self._decode(begin, stop)
            self._out.append(ArgumentsDelta(candidate.number, text, self._span_of(candidate.start, candidate.start)))


def _clean(text: str | None) -> str | None:
    """Strings in events encode to UTF-8."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


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
