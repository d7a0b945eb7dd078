"""Policies for a turn: each judges one reply, counts in plain fields, and knows when to start over.

A policy is its own counter: copy it, compare it, keep it with ``dataclasses.asdict`` and make it again with
``Policy(**record)``. ``judge`` is called once a reply, ``new_message`` when the user has spoken. No policy calls a
model or runs a tool. ``Turn`` asks all of them in the right order.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .announcements import intent
from .reply import FINAL, GO_ON, Reply, Verdict, canonical


@dataclass(slots=True)
class DroppedCall:
    """The provider says that the reply ends in a call, and there is none. At most ``limit`` nudges in a row.

    Any call, and any reply that does not end this way, starts the count over.
    """

    limit: int = 3
    count: int = 0

    def judge(self, reply: Reply) -> Verdict:
        """``nudge``, ``give_up`` once the limit is passed, else ``go_on``."""
        if reply.calls or not reply.meant_to_call:
            self.count = 0
            return GO_ON
        if reply.attempted:  # there is a call to answer, though none to run
            return GO_ON
        self.count += 1
        if self.count > self.limit:
            self.count = 0
            return Verdict("give_up", "dropped_call", "the model keeps ending with a tool call that never arrives")
        said = "Your reply ended with a tool call, but no call arrived. Write the call again, complete, or answer."
        return Verdict("nudge", "dropped_call", said)

    def new_message(self) -> None:
        """The user has spoken."""
        self.count = 0


@dataclass(slots=True)
class Announced:
    """The reply announces an action and does not take it. At most ``limit`` nudges for one message of the user.

    Beyond that the reply stands as it is. Only a new message starts the count over, or a model that announces every
    step would be nudged for ever.
    """

    limit: int = 2
    count: int = 0
    language: str = "en"

    def judge(self, reply: Reply) -> Verdict:
        """``nudge`` for an announcement; ``final`` for a reply that finishes or asks the user; else ``go_on``."""
        if reply.attempted or not reply.text.strip():
            return GO_ON
        if intent(reply.text, self.language) != "announces" or self.count >= self.limit:
            return FINAL
        self.count += 1
        return Verdict("nudge", "announced", "You said what you would do next, but made no call. Go on and do it now.")

    def new_message(self) -> None:
        """The user has spoken."""
        self.count = 0


@dataclass(slots=True)
class EmptyReply:
    """No visible text and no call. The reply is left out of the history; at most ``limit`` nudges a message."""

    limit: int = 2
    count: int = 0

    def judge(self, reply: Reply) -> Verdict:
        """``nudge``, ``give_up`` once the limit is passed, ``go_on`` for a reply that is not empty."""
        if not reply.empty:
            return GO_ON
        if self.count >= self.limit:
            return Verdict("give_up", "empty", "the model answers nothing", keep=False)
        self.count += 1
        return Verdict("nudge", "empty", "Your last reply was empty. Answer, or call a tool.", keep=False)

    def new_message(self) -> None:
        """The user has spoken."""
        self.count = 0


@dataclass(slots=True)
class CutAnswer:
    """The reply ended at the length limit without a call. At most ``limit`` nudges for one message of the user."""

    limit: int = 2
    count: int = 0

    def judge(self, reply: Reply) -> Verdict:
        """``nudge`` to go on; beyond the limit ``final`` for prose and ``give_up`` for nothing; else ``go_on``."""
        if not reply.cut or reply.attempted:
            return GO_ON
        shown = bool(reply.text.strip())
        if self.count >= self.limit:
            return FINAL if shown else Verdict("give_up", "cut", "the model thinks until its limit", keep=False)
        self.count += 1
        if shown:
            return Verdict("nudge", "cut", "Your reply was cut off by the length limit. Continue where it stopped.")
        said = "Your reply reached the length limit before it said anything. Think less, and answer now."
        return Verdict("nudge", "cut", said, keep=False)

    def new_message(self) -> None:
        """The user has spoken."""
        self.count = 0


@dataclass(slots=True)
class Unreliable:
    """Steps whose calls could not be read, one after the other. More than ``limit`` of them: the model is unreliable.

    Prose after such a step is giving up as well. Any call that could be read starts the count over.
    """

    limit: int = 2
    count: int = 0

    def judge(self, reply: Reply) -> Verdict:
        """``give_up`` if the model is unreliable or gave up, else ``go_on``."""
        if reply.calls:
            self.count = 0
        elif reply.failures:
            self.count += 1
            if self.count > self.limit:
                self.count = 0
                return Verdict("give_up", "unreliable", "the model cannot write calls that can be read")
        elif self.count and reply.text.strip() and not reply.refused and not reply.cut:
            self.count = 0
            return Verdict("give_up", "unreliable", "after calls that could not be read the model went over to prose")
        return GO_ON

    def new_message(self) -> None:
        """The user has spoken."""
        self.count = 0


@dataclass(slots=True)
class LoopGuard:
    """The same set of calls again and again. At the ``limit``-th time in a row it is reported, then given up.

    The order of the calls in a set does not count. Any other set of calls starts the count over; so does a reply
    without calls, and a new message.
    """

    limit: int = 3
    count: int = 0
    last: str = ""  # a hash: the arguments may be large

    def judge(self, reply: Reply) -> Verdict:
        """``nudge`` at the limit, ``give_up`` beyond it, else ``go_on``."""
        if not reply.calls:
            self.new_message()
            return GO_ON
        this = hashlib.sha256(canonical(sorted(reply.calls)).encode("utf-8", "replace")).hexdigest()
        self.count, self.last = (self.count + 1 if this == self.last else 1), this
        if self.count < self.limit:
            return GO_ON
        if self.count > self.limit:
            return Verdict("give_up", "loop", f"the same calls came {self.count} times in a row")
        said = f"The same calls came {self.count} times in a row; their results will not change. Do another thing."
        return Verdict("nudge", "loop", said)

    def new_message(self) -> None:
        """The user has spoken."""
        self.count, self.last = 0, ""


def gave_up(reply: Reply) -> bool:
    """True if the reply itself shows a model that could not write its call and went over to prose."""
    return bool(reply.failures and not reply.calls and reply.prose_last and reply.text.strip())
