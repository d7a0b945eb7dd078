"""What comes out of a scrubber: frozen records, each with the span of wire bytes it stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from .nudges import nudge

Span: TypeAlias = tuple[int, int]

RejectReason: TypeAlias = Literal["unknown_tool", "malformed", "truncated", "too_large", "too_many", "withheld"]
DropKind: TypeAlias = Literal[
    "control",  # a tokenizer control token, an end-of-turn mark
    "delimiter",  # a reasoning opener or closer, a frame header
    "wrapper",  # a section around calls
    "padding",  # white space that belongs to a block, not to the text
    "orphan",  # a closer without its opener
    "cut_marker",  # the start of a marker that the stream broke off
    "fabricated_result",  # a tool result that the model wrote itself
    "fabricated_turn",  # an invented user or tool turn and all after it
    "empty",  # an opener and its closer with nothing between them
    "overflow",  # the rest of a block that was too large to keep
]
REJECT_REASONS: Final = ("truncated", "withheld", "unknown_tool", "malformed", "too_large", "too_many")
DROP_KINDS: Final[tuple[DropKind, ...]] = (
    "control",
    "delimiter",
    "wrapper",
    "padding",
    "orphan",
    "cut_marker",
    "fabricated_result",
    "fabricated_turn",
    "empty",
    "overflow",
)


@dataclass(frozen=True, slots=True)
class Repair:
    """One change between what the model wrote and what the call carries.

    ``kind`` names the change (the table in docs/repairs.md lists all of them), ``where`` is the argument path
    (``"arguments.days"``, ``"name"``, ``""`` for the whole block), ``before`` and ``after`` are the texts, cut to
    200 characters each. ``span`` is the stretch of the wire that was changed, (start, end) in bytes of the whole
    stream; it is empty where something was put in, and None for a change that has no place of its own.
    """

    kind: str
    where: str = ""
    before: str = ""
    after: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """Visible text, safe to show now. ``span`` is (start, end) in wire bytes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning text, without its delimiters. ``span`` is (start, end) in wire bytes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One complete call of an offered tool, emitted exactly once.

    ``number`` counts announced calls of the response from 0. ``raw`` is the verbatim block, ``grammar`` the name of
    the grammar file that read it, ``repairs`` what was changed and ``strategy`` the path that read it (``"clean"``
    when nothing was changed). ``model_id`` is what the model wrote as an id, for information only: ids are minted by
    the host.
    """

    number: int
    name: str
    arguments: dict[str, Any]
    raw: bytes
    grammar: str
    span: Span
    repairs: tuple[Repair, ...] = ()
    strategy: str = "clean"
    model_id: str | None = None

    @property
    def repaired(self) -> bool:
        """True if anything was changed between the wire and the call."""
        return bool(self.repairs)

    @property
    def corrected_from(self) -> str | None:
        """The name as the model wrote it, where it was corrected; else None."""
        return next((one.before for one in self.repairs if one.kind in ("name", "nameless")), None)


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """Markup that is a call by its form and must not be run.

    ``name`` is the name as written, or None where none was whole; ``arguments`` what could be read of them, or None.
    ``detail`` is a sentence for a log, never for a decision.
    """

    number: int
    reason: RejectReason
    name: str | None
    arguments: dict[str, Any] | None
    raw: bytes
    grammar: str
    span: Span
    detail: str = ""
    model_id: str | None = None

    @property
    def nudge(self) -> str:
        """A ready sentence for the model: what became of the call, and what it can do."""
        return nudge(self.reason, self.name, len(self.raw), self.detail)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Markup that carries nothing for the reader. ``raw`` holds its bytes, ``kind`` says what it was."""

    raw: bytes
    kind: DropKind
    span: Span


@dataclass(frozen=True, slots=True)
class CallStarted:
    """Only with ``progress=True``: the name of a call is known. Its span is empty and stands where the block starts."""

    number: int
    name: str
    grammar: str
    span: Span


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """Only with ``progress=True``: more argument text, as the model writes it. The span is that of ``CallStarted``."""

    number: int
    text: str
    span: Span


# A frozen dataclass costs twice a plain one to build, and a Text comes with every delta: the scrubber sets its two
# slots directly.
_slots: Any = Text
set_text: Final = _slots.text.__set__
set_span: Final = _slots.span.__set__

Event: TypeAlias = Text | Reasoning | ToolCall | RejectedCall | Dropped | CallStarted | ArgumentsDelta


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A whole response, read: its events, which iterating gives, too. The lists are views of them, in their order."""

    events: list[Event] = field(default_factory=list)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    @property
    def text(self) -> str:
        """All visible text, joined."""
        return text_of(self.events)

    @property
    def reasoning(self) -> str:
        """All reasoning text, joined."""
        return "".join(event.text for event in self.events if type(event) is Reasoning)

    @property
    def calls(self) -> list[ToolCall]:
        """The calls to run, in order."""
        return calls_of(self.events)

    @property
    def rejected(self) -> list[RejectedCall]:
        """The calls that must not be run, with the reason."""
        return [event for event in self.events if type(event) is RejectedCall]

    @property
    def dropped(self) -> list[Dropped]:
        """What was taken out and carries nothing."""
        return [event for event in self.events if type(event) is Dropped]


def text_of(events: list[Event]) -> str:
    """Join the visible text of ``events``."""
    return "".join(event.text for event in events if type(event) is Text)


def calls_of(events: list[Event]) -> list[ToolCall]:
    """The complete calls among ``events``."""
    return [event for event in events if type(event) is ToolCall]
