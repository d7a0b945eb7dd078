"""Calls that the provider has parsed: the same repair, names and shapes as for calls out of the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..bodies.base import Context
from ..bodies.json_arguments import decode
from ..events import RejectedCall, RejectReason, Repair, ToolCall
from ..limits import MAX_CALL_BYTES, MAX_REPAIR_TEXT
from ..names import Offer
from ..resolve import merge_headed, settle_call
from ..stream import scrub
from ..tools import read_tools
from .reply import is_cut

GRAMMAR: Final = "structured"
# Characters around arguments that are looked at as markup which a server has left there.
MAX_LEAK: Final = 1024
_BLANKS: Final = re.compile(r"\s*+")
_DECODER: Final = json.JSONDecoder()


def read_structured(
    tool_calls: Iterable[Mapping[str, Any]],
    tools: Iterable[Any] | None = None,
    *,
    finish_reason: str | None = "tool_calls",
) -> list[ToolCall | RejectedCall]:
    """Read a provider's records of calls, in order. ``raw`` is the arguments text, and spans are of it.

    A record is OpenAI's (``function`` with ``name`` and ``arguments``), a flat one (``name``, ``arguments``) or
    Anthropic's (``name``, ``input``). Arguments that cannot be made an object are ``malformed`` and never ``{}``. If
    the response was cut, its last call is ``truncated`` unless its arguments are whole JSON; so is one whose record the
    provider marks with ``"invalid": true``. Several objects in one string are several events of that record. The ids
    stay with the records: see ``fill_ids``.

    >>> read_structured([{"function": {"name": "ping", "arguments": '{"a": "7",}'}}])[0].arguments
    {'a': '7'}
    """
    offer = Offer(read_tools(tools))
    records = list(tool_calls)
    last = len(records) - 1 if is_cut(finish_reason) else -1
    events: list[ToolCall | RejectedCall] = []
    for place, record in enumerate(records):
        events += _read(record, len(events), offer, place == last)
    return events


def _read(record: Mapping[str, Any], number: int, offer: Offer, suspect: bool) -> list[ToolCall | RejectedCall]:
    inner = record.get("function")
    told: Mapping[str, Any] = inner if isinstance(inner, Mapping) else record
    name = told.get("name")
    name = name if isinstance(name, str) and name.strip() else None
    given = told.get("arguments", told.get("input"))
    text = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
    raw = text.encode("utf-8", "replace")
    span = (0, len(raw))
    if len(raw) > MAX_CALL_BYTES:
        return [RejectedCall(number, "too_large", name, None, raw, GRAMMAR, span, f"over {MAX_CALL_BYTES} bytes")]
    marked = record.get("invalid") is True
    if suspect and (marked or not _is_whole(text)):
        return [RejectedCall(number, "truncated", name, None, raw, GRAMMAR, span, "the response was cut in the call")]
    bare, leaks = _without_leaks(text)
    context = Context(offer, {"name": name})
    written = [(call, GRAMMAR) for part in _objects(bare) for call in decode(part.encode(), "closed", context)]
    events: list[ToolCall | RejectedCall] = []
    for place, (call, _) in enumerate(merge_headed(written, offer), number):
        one = settle_call(call, GRAMMAR, offer, recover=True)
        reason, detail = one.reason, one.detail
        if reason is None and marked:
            reason, detail = "malformed", "the provider marked the call as invalid"
        if reason is not None or one.name is None or one.arguments is None:
            why: RejectReason = reason or "malformed"
            events.append(RejectedCall(place, why, one.name, one.arguments, raw, GRAMMAR, span, detail))
        else:
            repairs = (*leaks, *one.repairs)
            strategy = "json" if leaks and not one.repairs else one.strategy
            events.append(ToolCall(place, one.name, one.arguments, raw, GRAMMAR, span, repairs, strategy))
    return events


def _without_leaks(text: str) -> tuple[str, list[Repair]]:
    """The arguments without markup before and behind them that some server has left there."""
    start, end = text.find("{"), text.rfind("}") + 1
    head, tail = text[: max(start, 0)].strip(), text[end:].strip()
    if not end or not (head or tail) or len(head) + len(tail) > MAX_LEAK:
        return text, []
    repairs = []
    for leak in (head, tail):
        if leak:
            if scrub(leak, [], finish_reason="length").text.strip():
                return text, []
            repairs.append(Repair("leaked_token", "arguments", leak[:MAX_REPAIR_TEXT], ""))
    return text[start:end], repairs


def _objects(text: str) -> list[str]:
    """Several objects that one string holds, each alone; any other text as it is."""
    found, at = [], 0
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [text]
        if not isinstance(value, dict):
            return [text]
        found.append(text[at:end])
        blanks = _BLANKS.match(text, end)
        at = blanks.end() if blanks else end
    return found or [text]


def _is_whole(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
