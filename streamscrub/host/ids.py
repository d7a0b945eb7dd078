"""Ids for recovered calls: minted here and never by the parser, and nothing is dispatched without one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from ..events import ToolCall


def mint_ids(prefix: str) -> Iterator[str]:
    """Mint ``{prefix}-tool-1``, ``{prefix}-tool-2``, … for the calls of one model call.

    ``prefix`` names the model call and must be unique in a run. Raises ``ValueError`` if it is blank.

    >>> ids = mint_ids("m7")
    >>> next(ids), next(ids)
    ('m7-tool-1', 'm7-tool-2')
    """
    if not prefix.strip():
        raise ValueError("mint_ids needs a prefix that names the model call")
    return (f"{prefix}-tool-{number}" for number in count(1))


@dataclass(slots=True)
class AdapterIds:
    """Ids of an adapter that recovers calls itself: ``text-{seq}-{slot}``, where ``seq`` counts its responses from 0.

    Its only state is ``seq``: keep it over a conversation, and no id comes twice.

    >>> ids = AdapterIds(seq=3)
    >>> [next(slot) for slot in [ids.response()] * 2], next(ids.response())
    (['text-3-0', 'text-3-1'], 'text-4-0')
    """

    seq: int = 0

    def response(self) -> Iterator[str]:
        """The ids of the next response."""
        seq, self.seq = self.seq, self.seq + 1
        return (f"text-{seq}-{slot}" for slot in count())


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A call that may be run: it has an id by which its result finds back. Raises ``ValueError`` without one."""

    id: str
    call: ToolCall

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise ValueError("a call without an id cannot be dispatched: its result could not be paired with it")


def dispatches(calls: Iterable[ToolCall], ids: Iterator[str], taken: Collection[str] = ()) -> list[Dispatch]:
    """Give every call an id of ``ids`` that is not ``taken``. What the model wrote as an id is not trusted."""
    known = set(taken)
    return [Dispatch(_fresh(ids, known), call) for call in calls]


def fill_ids(
    tool_calls: Iterable[Mapping[str, Any]], ids: Iterator[str], taken: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Copies of provider records of calls, each with an ``id``; one that is set already is left alone.

    >>> fill_ids([{"id": ""}, {"id": "text-3-0"}, {}], AdapterIds(3).response())
    [{'id': 'text-3-1'}, {'id': 'text-3-0'}, {'id': 'text-3-2'}]
    """
    records = [dict(record) for record in tool_calls]
    known = {*taken, *(record["id"] for record in records if _is_set(record))}
    for record in records:
        if not _is_set(record):
            record["id"] = _fresh(ids, known)
    return records


def _is_set(record: Mapping[str, Any]) -> bool:
    written = record.get("id")
    return isinstance(written, str) and bool(written.strip())


def _fresh(ids: Iterator[str], known: set[str]) -> str:
    for minted in ids:
        if minted not in known:
            known.add(minted)
            return minted
    raise ValueError("no ids are left")
