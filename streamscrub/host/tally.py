"""How reliable each model is: counts that add up over responses, processes and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from ..events import REJECT_REASONS, Dropped, Event, RejectedCall, ToolCall
from .reply import FAILURES

# The counters, in the order of the table. A rejection is counted under ``rejected_`` and its reason.
COUNTERS: Final = (
    "responses", "calls", "repaired", "name_corrected", *(f"rejected_{reason}" for reason in REJECT_REASONS),
    "given_up", "leaked",
)  # fmt: skip
_HEAD: Final = (
    "model", "responses", "calls", "clean", "repaired", "names", "rejected", "cut", "given up", "leaked", "rate",
)  # fmt: skip
_LEAKS: Final = frozenset(("control",))
# Names of models that a tally holds; ids that a client makes up must not fill the memory of a server.
MAX_MODELS: Final = 10_000
OTHERS: Final = "(others)"


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the calls of one model.

    ``calls`` were handed out; ``repaired`` of them needed a repair, and ``name_corrected`` of those one of the name.
    The ``rejected_…`` were not handed out. ``given_up`` counts the turns that the host ended because of the model,
    ``leaked`` the runs of control tokens that stood in the text.
    """

    responses: int = 0
    calls: int = 0
    repaired: int = 0
    name_corrected: int = 0
    rejected_truncated: int = 0
    rejected_withheld: int = 0
    rejected_unknown_tool: int = 0
    rejected_malformed: int = 0
    rejected_too_large: int = 0
    rejected_too_many: int = 0
    given_up: int = 0
    leaked: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in COUNTERS))

    @property
    def clean(self) -> int:
        """Calls that stood on the wire as they were handed out."""
        return self.calls - self.repaired

    @property
    def failures(self) -> int:
        """Calls that could not be read: malformed, truncated or too large."""
        return sum(int(getattr(self, f"rejected_{reason}")) for reason in FAILURES)

    @property
    def rejected(self) -> dict[str, int]:
        """Rejected calls by reason; reasons that did not occur are left out."""
        found = {reason: int(getattr(self, f"rejected_{reason}")) for reason in REJECT_REASONS}
        return {reason: number for reason, number in found.items() if number}

    @property
    def rate(self) -> float:
        """Per cent of the calls, failures included, that were clean; 100 where there were none.

        >>> Counts(calls=8, repaired=2, rejected_malformed=2).rate
        60.0
        """
        tried = self.calls + self.failures
        return 100.0 * self.clean / tried if tried else 100.0

    @property
    def summary(self) -> str:
        """The rate in words, such as ``6/10 clean (60%)``, or ``no calls``."""
        tried = self.calls + self.failures
        return f"{self.clean}/{tried} clean ({self.rate:.0f}%)" if tried else "no calls"


def counts_of(events: Iterable[Event], given_up: bool = False) -> Counts:
    """Count one response. Its events may come from a stream however it was cut."""
    found = dict.fromkeys(COUNTERS, 0) | {"responses": 1, "given_up": int(given_up)}
    # A stream may tell one run of tokens in several events.
    for (kind, dropped), run in groupby(events, lambda event: (type(event), getattr(event, "kind", ""))):
        if kind is ToolCall:
            calls = [event for event in run if isinstance(event, ToolCall)]
            found["calls"] += len(calls)
            found["repaired"] += sum(call.repaired for call in calls)
            found["name_corrected"] += sum(call.corrected_from is not None for call in calls)
        elif kind is RejectedCall:
            for event in run:
                if isinstance(event, RejectedCall):
                    found[f"rejected_{event.reason}"] += 1
        elif kind is Dropped:
            found["leaked"] += dropped in _LEAKS
    return Counts(**found)


@dataclass(slots=True)
class Tally:
    """Counts by model. Tallies of other processes and days can be merged; the order never matters.

    >>> tally = Tally({"m": Counts(calls=8, repaired=2, rejected_malformed=2)})
    >>> tally.merge(Tally({"m": Counts(calls=1)})).models["m"].summary
    '7/11 clean (64%)'
    """

    models: dict[str, Counts] = field(default_factory=dict)

    def add(self, model: str, events: Iterable[Event], given_up: bool = False) -> Counts:
        """Count one response of ``model``. Returns what was added. ``model`` "" stands for one that is not known."""
        counts = counts_of(events, given_up)
        self._add(model, counts)
        return counts

    def give_up(self, model: str) -> None:
        """The host has ended a turn because of the model."""
        self._add(model, Counts(given_up=1))

    def merge(self, other: Tally) -> Tally:
        """Both tallies together, as a new one."""
        merged = Tally(dict(self.models))
        for model, counts in other.models.items():
            merged._add(model, counts)
        return merged

    def _add(self, model: str, counts: Counts) -> None:
        if model not in self.models and len(self.models) >= MAX_MODELS:
            model = OTHERS
        self.models[model] = self.models.get(model, Counts()) + counts

    @property
    def total(self) -> Counts:
        """All models together."""
        return sum(self.models.values(), Counts())

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """A JSON object by model: the counters, and ``clean``, ``failures`` and ``rate`` that follow from them."""
        return {
            model: {name: getattr(counts, name) for name in COUNTERS}
            | {"clean": counts.clean, "failures": counts.failures, "rate": round(counts.rate, 1)}
            for model, counts in sorted(self.models.items())
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Mapping[str, Any]]) -> Tally:
        """The tally that ``to_dict`` wrote. Raises ``ValueError`` for counts that are no whole numbers."""
        models: dict[str, Counts] = {}
        for model, counts in record.items():
            found = {name: counts.get(name, 0) for name in COUNTERS}
            for name, number in found.items():
                if type(number) is not int or number < 0:
                    raise ValueError(f"{model}: {name} is no count")
            models[model] = Counts(**found)
        return cls(models)

    def table(self) -> str:
        """A row a model, the least reliable first, and one for all of them if there are several."""
        rows = [_row(model or "(unknown)", counts) for model, counts in sorted(self.models.items(), key=_worst_first)]
        if len(rows) > 1:
            rows.append(_row("all", self.total))
        table = [_HEAD, *rows]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "".join(_line(row, widths) + "\n" for row in table) + "".join(f"  {line}\n" for line in self._reasons())

    def _reasons(self) -> Iterator[str]:
        for model, counts in sorted(self.models.items()):
            if counts.rejected:
                told = ", ".join(f"{reason} {number}" for reason, number in counts.rejected.items())
                yield f"{model or '(unknown)'}: rejected as {told}"


def _worst_first(pair: tuple[str, Counts]) -> tuple[float, str]:
    return pair[1].rate, pair[0]


def _row(model: str, counts: Counts) -> tuple[str, ...]:
    numbers = (
        counts.responses, counts.calls, counts.clean, counts.repaired, counts.name_corrected,
        sum(counts.rejected.values()), counts.rejected_truncated, counts.given_up, counts.leaked,
    )  # fmt: skip
    tried = counts.calls + counts.failures
    return (model, *map(str, numbers), f"{counts.rate:.0f}%" if tried else "-")


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]).rstrip()
