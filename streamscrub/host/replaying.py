"""Saved responses through the current parser: what no longer resolves, what is new, what changed.

A response is replayed by a pure function (``replay``), so a corpus of any size can be split in any way: over the
processes of one machine (``replay_all``), or over many with ``replay_batch`` inside another engine.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from ..events import Event
from ..stream import scrub
from .sessions import Outcome, Response, Saved, Seen, Unreadable, outcome_of, read_lines

# The worst first. ``regression``: a recorded call no longer resolves. ``repair``: the same calls, but one now needs a
# repair. ``changed``: anything else that differs. ``handled``: more resolves than was recorded. ``new``: nothing was
# recorded.
VERDICTS: Final = ("regression", "repair", "changed", "handled", "new", "same", "unreadable")
Verdict: TypeAlias = Literal["regression", "repair", "changed", "handled", "new", "same", "unreadable"]

# Responses that go to a process at once, and batches that wait for each process.
BATCH: Final = 32
AHEAD: Final = 4
_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class Result:
    """What the replay of one response came to. ``details`` has a line for each difference, the worst first."""

    verdict: Verdict
    details: tuple[str, ...] = ()
    where: str = ""
    id: str = ""
    model: str = ""
    outcome: Outcome | None = None
    recorded: Outcome | None = None
    events: tuple[Event, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A JSON object for a report."""
        calls = self.outcome.calls if self.outcome else ()
        rejected = self.outcome.rejected or () if self.outcome else ()
        return {
            "verdict": self.verdict,
            "where": self.where,
            "id": self.id,
            "model": self.model,
            "details": list(self.details),
            "calls": [
                {"name": one.name, "arguments": json.loads(one.arguments), "repaired": one.repaired} for one in calls
            ],
            "rejected": [{"reason": reason, "name": name} for reason, name in rejected],
        }


def reread(response: Response) -> list[Event]:
    """All events of a saved response, read by the current parser. Raises what ``scrub`` raises for wrong options."""
    options = dict(response.options)
    if response.model:
        options.setdefault("model", response.model)
    return scrub(response.text, response.tools, finish_reason=response.finish_reason, **options).events


def replay(saved: Saved, recorded: Outcome | None = None, keep: bool = False) -> Result:
    """Read one saved response again and compare it with ``recorded``, or with what was saved with it.

    With ``keep`` the result carries the events. Raises nothing for what was saved: it may be ``unreadable``.
    """
    if isinstance(saved, Unreadable):
        return Result("unreadable", (saved.problem,), saved.where)
    where, id, model = saved.where, saved.id, saved.model
    try:
        events = reread(saved)
    except (TypeError, ValueError) as error:
        return Result("unreadable", (str(error),), where, id, model)
    now = outcome_of(events)
    kept = tuple(events) if keep else ()
    before = recorded or saved.recorded
    if before is None:
        return Result("new", _told(now), where, id, model, now, None, kept)
    verdict, details = compare(before, now)
    return Result(verdict, tuple(details), where, id, model, now, before, kept)


def compare(before: Outcome, now: Outcome) -> tuple[Verdict, list[str]]:
    """The worst of what differs between two outcomes, and a line for each difference."""
    found: dict[Verdict, list[str]] = {verdict: [] for verdict in VERDICTS}
    pairs, lost, gained = _paired(before.calls, now.calls)
    for old, new in pairs:
        if (old.name, old.arguments) != (new.name, new.arguments):
            found["changed"].append(f"{_call(old)} is now {_call(new)}")
        elif old.repaired is False and new.repaired:
            found["repair"].append(f"{_call(new)} now needs a repair")
        elif old.repaired and new.repaired is False:
            found["changed"].append(f"{_call(new)} no longer needs a repair")
    rejected = "".join(f"; rejected now: {reason} {name or ''}".rstrip() for reason, name in now.rejected or ())
    found["regression"] = [f"{_call(old)} no longer resolves{rejected}" for old in lost]
    found["handled"] = [f"{_call(new)} now resolves" for new in gained]
    if not lost and not gained and before.rejected is not None and before.rejected != now.rejected:
        found["changed"].append(f"rejected: {_reasons(before)}, now {_reasons(now)}")
    for word, old_text, new_text in (("text", before.text, now.text), ("reasoning", before.reasoning, now.reasoning)):
        if old_text is not None and old_text != new_text and not lost and not gained:
            found["changed"].append(f"{word}: {_difference(old_text, new_text or '')}")
    worst: Verdict = next((verdict for verdict in VERDICTS if found[verdict]), "same")
    return worst, [line for verdict in VERDICTS for line in found[verdict]]


def _paired(before: tuple[Seen, ...], now: tuple[Seen, ...]) -> tuple[list[tuple[Seen, Seen]], list[Seen], list[Seen]]:
    """Calls that belong together: equal ones in order, then those that stood in the same place."""
    waiting: dict[tuple[str, str], deque[int]] = {}
    for index, new in enumerate(now):
        waiting.setdefault((new.name, new.arguments), deque()).append(index)
    pairs: list[tuple[Seen, Seen]] = []
    old_left: list[Seen] = []
    taken: set[int] = set()
    for old in before:
        same = waiting.get((old.name, old.arguments))
        if same:
            taken.add(same[0])
            pairs.append((old, now[same.popleft()]))
        else:
            old_left.append(old)
    new_left = deque(new for index, new in enumerate(now) if index not in taken)
    lost: list[Seen] = []
    gained: list[Seen] = []
    for old in old_left:  # both lists are in the order of the wire
        while new_left and old.span and new_left[0].span and new_left[0].span[1] <= old.span[0]:
            gained.append(new_left.popleft())
        if new_left and _meet(old.span, new_left[0].span):
            pairs.append((old, new_left.popleft()))
        else:
            lost.append(old)
    return pairs, lost, [*gained, *new_left]


def _meet(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    return one is None or other is None or (one[0] < other[1] and other[0] < one[1])


def _call(seen: Seen) -> str:
    text = f"{seen.name} {seen.arguments}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _reasons(outcome: Outcome) -> str:
    return ", ".join(f"{reason} {name or ''}".rstrip() for reason, name in outcome.rejected or ()) or "none"


def _told(outcome: Outcome) -> tuple[str, ...]:
    rejected = [f"rejected: {_reasons(outcome)}"] if outcome.rejected else []
    return (*map(_call, outcome.calls), *rejected)


def _difference(before: str, now: str) -> str:
    """Where two texts part, with a few characters of each."""
    at = next((place for place, (old, new) in enumerate(zip(before, now, strict=False)) if old != new), None)
    at = min(len(before), len(now)) if at is None else at
    return f"differs from character {at} on: {before[at : at + 30]!r}, now {now[at : at + 30]!r}"


class Baseline:
    """Outcomes of an older replay, found again by the text of the response."""

    def __init__(self, saved: Iterable[Saved]) -> None:
        self._known: dict[bytes, deque[Outcome]] = {}
        for one in saved:
            if isinstance(one, Response) and one.recorded is not None:
                self._known.setdefault(_digest(one), deque()).append(one.recorded)

    def find(self, saved: Saved) -> Outcome | None:
        """What this response was read as; of equal texts each is given once, in order."""
        found = self._known.get(_digest(saved)) if isinstance(saved, Response) else None
        return (found.popleft() if len(found) > 1 else found[0]) if found else None


def _digest(response: Response) -> bytes:
    text = response.text if isinstance(response.text, bytes) else response.text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).digest()


def replay_all(
    saved: Iterable[Saved], baseline: Baseline | None = None, jobs: int = 1, keep: bool = False
) -> Iterator[tuple[Saved, Result]]:
    """Replay all, in order, over ``jobs`` processes. At most a few batches are in memory at once."""
    work = ((one, baseline.find(one) if baseline else None) for one in saved)
    if jobs < 2:
        for one, recorded in work:
            yield one, replay(one, recorded, keep)
        return
    with ProcessPoolExecutor(jobs) as pool:
        running: deque[tuple[list[tuple[Saved, Outcome | None]], Future[list[Result]]]] = deque()
        while batch := list(islice(work, BATCH)):
            running.append((batch, pool.submit(_replay_some, batch, keep)))
            if len(running) >= AHEAD * jobs:
                yield from _finished(*running.popleft())
        while running:
            yield from _finished(*running.popleft())


def _finished(
    batch: list[tuple[Saved, Outcome | None]], future: Future[list[Result]]
) -> Iterator[tuple[Saved, Result]]:
    yield from zip((one for one, _ in batch), future.result(), strict=True)


def _replay_some(batch: list[tuple[Saved, Outcome | None]], keep: bool) -> list[Result]:
    return [replay(one, recorded, keep) for one, recorded in batch]


def replay_batch(columns: Mapping[str, Any], column: str = "text") -> dict[str, list[Any]]:
    """Replay the session lines in one column of a batch: a pure function for engines that map over batches.

    ``columns`` is a dict of columns (lists, arrays) or a data frame; ``column`` holds JSON lines of any form that
    ``read_lines`` knows. The result has one row a response: ``verdict``, ``id``, ``model``, ``calls``, ``repaired``,
    ``rejected`` (numbers) and ``details`` (text).

    >>> replay_batch({"text": ['{"streamscrub": 1, "text": "Hi.", "tools": []}']})["verdict"]
    ['new']
    """
    out: dict[str, list[Any]] = {
        key: [] for key in ("verdict", "id", "model", "calls", "repaired", "rejected", "details")
    }
    for line in columns[column]:
        for result in map(replay, read_lines([line])):
            outcome = result.outcome or Outcome()
            out["verdict"].append(result.verdict)
            out["id"].append(result.id)
            out["model"].append(result.model)
            out["calls"].append(len(outcome.calls))
            out["repaired"].append(sum(bool(call.repaired) for call in outcome.calls))
            out["rejected"].append(len(outcome.rejected or ()))
            out["details"].append("\n".join(result.details))
    return out


def case_of(response: Response, result: Result) -> dict[str, Any]:
    """A line for a case file. Expected is what was recorded where the replay lost something, else what is read now."""
    worse = result.verdict in ("regression", "repair") and result.recorded is not None
    wanted = result.recorded if worse else result.outcome
    assert wanted is not None
    now = result.outcome or Outcome()
    text = response.text if isinstance(response.text, str) else response.text.decode("utf-8", "replace")
    marks = [call.repaired for call in wanted.calls]
    repaired = None if None in marks else any(marks)
    options = {**({"model": response.model} if response.model else {}), **response.options}
    rejected = wanted.rejected if wanted.rejected is not None else now.rejected
    return {
        "id": f"replay-{_digest(response).hex()[:12]}",
        "family": "replay",
        "phenomenon": f"{result.verdict}: {'; '.join(result.details)}"[:400],
        "origin": response.where,
        "tools": response.tools,
        "options": options,
        "text": text,
        "finish_reason": response.finish_reason,
        "expect": {
            "text": wanted.text if wanted.text is not None else now.text,
            "reasoning": wanted.reasoning if wanted.reasoning is not None else now.reasoning,
            "calls": [{"name": call.name, "arguments": json.loads(call.arguments)} for call in wanted.calls],
            "rejected": [{"reason": reason, "name": name} for reason, name in rejected or ()],
            "repaired": repaired,
        },
        "contested": False,
        "note": "",
    }
