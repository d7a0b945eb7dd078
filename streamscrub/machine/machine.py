"""All modes together."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Final

from ..events import Event, Reasoning, RejectedCall, Repair, Text, ToolCall
from .state import NO_PAD, TEXT
from .stripped import Stripped


class Machine(Stripped):
    """Steps through the modes until more bytes are needed."""

    def _run(self, final: bool) -> None:
        while _STEPS[self._mode](self, final):
            pass
        if final and self._draft_from >= 0:
            self._finish_drafts()
        if final and self._promised:
            self._tell_text(len(self._buf))
            self._break_promise("truncated")

    def _finish_drafts(self) -> None:
        """The stream ended inside a section with calls in it."""
        start = self._draft_from
        self._draft_from = -1
        if self._cut_off or not self._recover:
            self._tell_held(len(self._buf))
            self._i = len(self._buf)
            return
        # Read the held bytes as text would be read: calls are real, words stay reasoning.
        inner = copy.copy(self)
        inner._buf = bytearray(self._buf[start:])
        inner._base = self._base + start
        inner._at = inner._i = 0
        inner._mode = TEXT
        inner._out = []
        inner._pending = []
        inner._candidate = None
        inner._progress = False
        inner._pad = NO_PAD
        inner._line = None
        inner._fresh_line = False
        inner._span = 0
        inner._frame_kind = ""
        inner._reasoning = "auto"
        inner._finished = True
        inner._run(True)
        for event in inner._out:
            self._out.append(_as_reasoning(event, self._strict))
        self._number = inner._number
        self._at = self._i = len(self._buf)


_STEPS: Final = (
    Machine._text,
    Machine._in_candidate,
    Machine._in_reasoning,
    Machine._in_fence,
    Machine._in_result,
    Machine._in_drop,
    Machine._in_skip,
    Machine._in_stripped,
)


def _as_reasoning(event: Event, strict: bool) -> Event:
    if type(event) is Text:
        return Reasoning(event.text, event.span)
    if type(event) is ToolCall and strict:
        return RejectedCall(
            event.number,
            "malformed",
            event.name,
            event.arguments,
            event.raw,
            event.grammar,
            event.span,
            "needs a repair: unclosed_reasoning",
            event.model_id,
        )
    if type(event) is ToolCall:
        repairs = (*event.repairs, Repair("unclosed_reasoning"))
        return replace(event, repairs=repairs, strategy=event.strategy if event.repairs else "unclosed_reasoning")
    return event
