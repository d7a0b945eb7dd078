"""What the policies of a turn look at, and what they answer: one reply of the model, one verdict."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ..endings import CALLING, CUT, plain_reason
from ..events import Event, RejectedCall, RejectReason, Text, ToolCall

# What a verdict asks of the host. ``go_on``: run the calls, or answer the rejected ones, as always. ``nudge``: send
# ``message`` and call the model again. ``final``: the reply is the answer. ``give_up``: end the turn, it leads nowhere.
Action: TypeAlias = Literal["go_on", "nudge", "final", "give_up"]
Policy: TypeAlias = Literal[
    "dropped_call", "announced", "empty", "cut", "unreliable", "loop", "unknown_tool", "invalid_arguments", ""
]

# Rejections that say that the model could not write a call. The others say that the host did not want one.
FAILURES: Final[frozenset[RejectReason]] = frozenset(("malformed", "truncated", "too_large"))


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, as far as a policy needs it. ``finish_reason`` None means that the stream broke off."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()  # name and arguments as canonical JSON of every call to run
    failures: int = 0  # calls that could not be read
    refused: int = 0  # calls that were read and must not be run: unknown, withheld, too many
    finish_reason: str | None = "stop"
    prose_last: bool = True  # visible text stands behind the last call or failure

    @property
    def attempted(self) -> bool:
        """True if there is a call, to be run or not."""
        return bool(self.calls or self.failures or self.refused)

    @property
    def empty(self) -> bool:
        """True if there is neither visible text nor a call, nor an attempt at one."""
        return not self.text.strip() and not self.attempted

    @property
    def cut(self) -> bool:
        """True if the reply ended at a limit or broke off."""
        return is_cut(self.finish_reason)

    @property
    def meant_to_call(self) -> bool:
        """True if the provider says that the reply ends in a call."""
        return self.finish_reason is not None and plain_reason(self.finish_reason) in CALLING


def is_cut(finish_reason: str | None) -> bool:
    """True for a response that ended at a limit, or broke off (None)."""
    return finish_reason is None or plain_reason(finish_reason) in CUT


def reply_of(
    events: Iterable[Event], finish_reason: str | None = "stop", structured: Iterable[tuple[str, object]] = ()
) -> Reply:
    """The reply that a scrubber's events make up, with the provider's own ``structured`` calls: (name, arguments)."""
    text: list[str] = []
    calls = [(name, canonical(arguments)) for name, arguments in structured]
    failures, refused, prose_last = 0, 0, True
    for event in events:
        if type(event) is Text:
            text.append(event.text)
            prose_last = prose_last or bool(event.text.strip())
        elif type(event) is ToolCall:
            calls.append((event.name, canonical(event.arguments)))
            prose_last = False
        elif type(event) is RejectedCall:
            failures += event.reason in FAILURES
            refused += event.reason not in FAILURES
            prose_last = False
    return Reply("".join(text), tuple(calls), failures, refused, finish_reason, prose_last)


def canonical(value: object) -> str:
    """JSON that is equal for equal values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says about a reply. ``policy`` names the one that spoke, ``message`` is for the model.

    ``keep`` False: leave the reply out of the history, it says nothing. A nudge is a call of the model and counts
    against the host's own limits.
    """

    action: Action = "go_on"
    policy: Policy = ""
    message: str = ""
    keep: bool = True


GO_ON: Final = Verdict()
FINAL: Final = Verdict("final")
