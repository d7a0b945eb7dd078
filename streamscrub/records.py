"""Events as JSON records and back: the form in which the command line, logs and sessions keep them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from .events import (
    DROP_KINDS,
    REJECT_REASONS,
    ArgumentsDelta,
    CallStarted,
    Dropped,
    Event,
    Reasoning,
    RejectedCall,
    Repair,
    Span,
    Text,
    ToolCall,
)


def to_record(event: Event) -> dict[str, Any]:
    """One event as a JSON object. Its key ``event`` says what it is; the others are the fields of the event.

    The reason of a rejected call stands under ``rejected``. ``raw`` is the block as text; where its bytes are no valid
    UTF-8, ``raw_base64`` holds them as well.

    >>> to_record(Text("Hi", (0, 2)))
    {'event': 'text', 'text': 'Hi', 'span': [0, 2]}
    """
    match event:
        case Text():
            return {"event": "text", "text": event.text, "span": list(event.span)}
        case Reasoning():
            return {"event": "reasoning", "text": event.text, "span": list(event.span)}
        case ToolCall():
            record = {"event": "call", "number": event.number, "name": event.name, "arguments": event.arguments}
            record |= {"grammar": event.grammar, "strategy": event.strategy}
            record |= {"repairs": [asdict(repair) for repair in event.repairs], "model_id": event.model_id}
            return record | {"span": list(event.span), **bytes_record("raw", event.raw)}
        case RejectedCall():
            record = {"event": "rejected", "number": event.number, "rejected": event.reason, "name": event.name}
            record |= {"arguments": event.arguments, "grammar": event.grammar, "detail": event.detail}
            return record | {"model_id": event.model_id, "span": list(event.span), **bytes_record("raw", event.raw)}
        case Dropped():
            return {"event": "dropped", "kind": event.kind, "span": list(event.span), **bytes_record("raw", event.raw)}
        case CallStarted():
            record = {"event": "started", "number": event.number, "name": event.name, "grammar": event.grammar}
            return record | {"span": list(event.span)}
        case ArgumentsDelta():
            return {"event": "delta", "number": event.number, "text": event.text, "span": list(event.span)}


def from_record(record: Mapping[str, Any]) -> Event:
    """The event that ``to_record`` wrote. Unknown keys are passed over, so that newer records can be read.

    Raises ``ValueError`` that names the key which is missing or of the wrong type.

    >>> from_record({"event": "text", "text": "Hi", "span": [0, 2]})
    Text(text='Hi', span=(0, 2))
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"an event record is an object, not {type(record).__name__}")
    make = _MAKERS.get(record["event"]) if isinstance(record.get("event"), str) else None
    if make is None:
        raise ValueError(f"event: none of {', '.join(_MAKERS)}: {str(record.get('event'))[:40]!r}")
    return make(record)


def bytes_record(key: str, data: bytes) -> dict[str, str]:
    """``data`` as text under ``key``, and exactly under ``key_base64`` where it is no valid UTF-8."""
    try:
        return {key: data.decode()}
    except UnicodeDecodeError:
        return {key: data.decode("utf-8", "replace"), f"{key}_base64": b64encode(data).decode()}


def bytes_of(record: Mapping[str, Any], key: str) -> bytes:
    """The bytes that ``bytes_record`` wrote. Raises ``ValueError`` for anything else."""
    exact = _get(record, f"{key}_base64", (str, type(None)))
    if exact is not None:
        try:
            return b64decode(exact, validate=True)
        except ValueError:
            raise ValueError(f"{key}_base64: no base64") from None
    text: str = _get(record, key, str)
    return text.encode("utf-8", "replace")


def _get(record: Mapping[str, Any], key: str, kinds: type | tuple[type, ...]) -> Any:
    value = record.get(key)
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is int):
        raise ValueError(f"{key}: {'missing' if key not in record else 'of the wrong type'}")
    return value


def _span(record: Mapping[str, Any]) -> Span:
    span = record.get("span")
    if not isinstance(span, list | tuple) or len(span) != 2 or not all(type(end) is int for end in span):
        raise ValueError("span: two integers are wanted")
    return span[0], span[1]


def _call(record: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        _get(record, "number", int),
        _get(record, "name", str),
        _get(record, "arguments", dict),
        bytes_of(record, "raw"),
        _get(record, "grammar", str),
        _span(record),
        tuple(_repair(one) for one in _get(record, "repairs", list)),
        _get(record, "strategy", str),
        _get(record, "model_id", (str, type(None))),
    )


def _repair(record: Any) -> Repair:
    if not isinstance(record, Mapping):
        raise ValueError("repairs: a list of objects is wanted")
    # Records of older versions have no span.
    span = _span(record) if record.get("span") is not None else None
    kind, where, before, after = (_get(record, key, str) for key in ("kind", "where", "before", "after"))
    return Repair(kind, where, before, after, span)


def _rejected(record: Mapping[str, Any]) -> RejectedCall:
    reason = record.get("rejected")
    if reason not in REJECT_REASONS:
        raise ValueError(f"rejected: none of {', '.join(REJECT_REASONS)}")
    return RejectedCall(
        _get(record, "number", int),
        reason,
        _get(record, "name", (str, type(None))),
        _get(record, "arguments", (dict, type(None))),
        bytes_of(record, "raw"),
        _get(record, "grammar", str),
        _span(record),
        _get(record, "detail", str),
        _get(record, "model_id", (str, type(None))),
    )


def _dropped(record: Mapping[str, Any]) -> Dropped:
    kind = record.get("kind")
    if kind not in DROP_KINDS:
        raise ValueError(f"kind: none of {', '.join(DROP_KINDS)}")
    return Dropped(bytes_of(record, "raw"), kind, _span(record))


_MAKERS: Final[dict[str, Callable[[Mapping[str, Any]], Event]]] = {
    "text": lambda record: Text(_get(record, "text", str), _span(record)),
    "reasoning": lambda record: Reasoning(_get(record, "text", str), _span(record)),
    "call": _call,
    "rejected": _rejected,
    "dropped": _dropped,
    "started": lambda record: CallStarted(
        _get(record, "number", int), _get(record, "name", str), _get(record, "grammar", str), _span(record)
    ),
    "delta": lambda record: ArgumentsDelta(_get(record, "number", int), _get(record, "text", str), _span(record)),
}
