"""All policies of a turn together: one verdict for one reply, and one JSON record of all counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from .policies import Announced, CutAnswer, DroppedCall, EmptyReply, LoopGuard, Unreliable
from .reply import GO_ON, Reply, Verdict

_Policy: TypeAlias = DroppedCall | Announced | EmptyReply | CutAnswer | Unreliable | LoopGuard


@dataclass(slots=True)
class Turn:
    """The counters of one conversation. Ask ``judge`` once for each reply; tell it of each message of the user.

    The order is: a model that cannot write calls, calls that repeat, a call that never arrived, an answer that was cut,
    an empty one, an announcement. The first that has something to say wins; all of them count every reply they see.

    >>> turn = Turn()
    >>> turn.judge(Reply("Let me read the file.")).action, turn.judge(Reply("It has three lines.")).action
    ('nudge', 'final')
    """

    unreliable: Unreliable = field(default_factory=Unreliable)
    loop: LoopGuard = field(default_factory=LoopGuard)
    dropped: DroppedCall = field(default_factory=DroppedCall)
    cut: CutAnswer = field(default_factory=CutAnswer)
    empty: EmptyReply = field(default_factory=EmptyReply)
    announced: Announced = field(default_factory=Announced)

    def judge(self, reply: Reply) -> Verdict:
        """The verdict on one reply. ``go_on``: run its calls, and answer its rejected ones."""
        # These three start over at certain replies, so they see all of them.
        for verdict in [policy.judge(reply) for policy in (self.unreliable, self.loop, self.dropped)]:
            if verdict.action != "go_on":
                return verdict
        if reply.attempted:
            return GO_ON
        for policy in (self.cut, self.empty):
            verdict = policy.judge(reply)
            if verdict.action != "go_on":
                return verdict
        return self.announced.judge(reply)

    def new_message(self) -> None:
        """The user has spoken: counts that hold for one message start over."""
        for policy in self._policies():
            policy.new_message()

    def to_dict(self) -> dict[str, Any]:
        """All counters and limits as a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Mapping[str, Any]]) -> Turn:
        """The turn that ``to_dict`` wrote. Raises ``TypeError`` for keys that no policy has."""
        turn = cls()
        unknown = record.keys() - asdict(turn).keys()
        if unknown:
            raise TypeError(f"no such policy: {', '.join(sorted(unknown))}")
        for name, counters in record.items():
            setattr(turn, name, type(getattr(turn, name))(**counters))
        return turn

    def _policies(self) -> Iterator[_Policy]:
        yield from (self.unreliable, self.loop, self.dropped, self.cut, self.empty, self.announced)
