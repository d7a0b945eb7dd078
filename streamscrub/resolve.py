"""From a complete raw block to ``ToolCall`` or ``RejectedCall``: names, then shapes, repairs added up, one reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from .blocks import Part
from .bodies.base import Context, Written
from .bodies.json_call import ARGUMENT_KEYS, NAME_KEYS, PSEUDO_TOOLS
from .edits import moved
from .events import RejectReason, Repair
from .names import Offer
from .shapes import accepts, coerce, type_texts
from .tools import Tool

# The strategy of a call is named after the most telling of its repairs, in this order.
_STRATEGIES: Final = (
    ("anchored", "anchored"), ("json_repair", "loose"), ("lines", "loose"), ("merged", "merged"), ("name", "name"),
    ("nameless", "name"), ("fence", "wrapper"), ("wrapper", "wrapper"), ("braces", "wrapper"),
    ("unwrapped", "wrapper"), ("missing_close", "missing_close"), ("coerced", "coerced"),
)  # fmt: skip

# Keys under which a pseudo tool may hold the whole call.
_CALL_KEYS: Final = PSEUDO_TOOLS | {"function", "call", "tool"}

# Ids that carry no name, less the prefix and the index of their form: a counter, a random part behind a word for a
# call, a hash. A word behind ``call_`` that holds no digit is a name.
_NAMELESS: Final = re.compile(
    r"(?:functions?|tool|call|toolu|chatcmpl-tool)?[-_.:]*+[0-9]*"
    r"|(?:call|toolu|chatcmpl-tool)[-_](?=[^0-9]*[0-9])[0-9A-Za-z-]++"
    r"|(?=[^0-9]*[0-9])[0-9a-fA-F]{8}[0-9a-fA-F-]{8,}+"
)


@dataclass(slots=True)
class Outcome:
    """What one written call comes to: a call to run, or a reason not to. Offsets are in the block, in bytes."""

    name: str | None
    arguments: dict[str, Any] | None
    start: int
    end: int
    reason: RejectReason | None = None
    detail: str = ""
    repairs: list[Repair] = field(default_factory=list)
    strategy: str = "clean"
    model_id: str | None = None
    grammar: str = ""


def decode_parts(
    parts: Iterable[Part], block: bytes, base: int, offer: Offer, name: str | None = None
) -> list[tuple[Written, str]]:
    """Decode the bodies of a block: (call, grammar) each, with offsets in the block.

    ``base`` is the buffer index of the block's first byte; ``name`` a name from the opener's attributes.
    """
    out: list[tuple[Written, str]] = []
    for part in parts:
        settings = dict(part.use.settings)
        headed = part.name if part.name is not None else name
        if headed is not None or part.use.body.name in ("json_arguments", "text"):
            settings["name"] = headed
        raw = block[part.start - base : part.end - base]
        for call in part.use.body.decode(raw, part.ending, Context(offer, settings)):
            call.start += part.start - base
            call.end += part.start - base
            call.repairs = moved(call.repairs, part.start - base)
            call.model_id = call.model_id or part.model_id
            if part.fenced and all(repair.kind != "fence" for repair in call.repairs):
                call.repairs.insert(0, Repair("fence"))
            if part.wrapped:
                call.repairs.insert(0, Repair("wrapper"))
            if part.surplus:
                call.repairs.append(Repair("surplus_bracket"))
            out.append((call, part.use.grammar))
    return out


def merge_headed(calls: list[tuple[Written, str]], offer: Offer) -> list[tuple[Written, str]]:
    """Objects under one name from outside: an empty one before another is none, disjoint ones may be one call."""
    if len(calls) < 2:
        return calls
    full = [pair for pair in calls if pair[0].arguments != {} or pair[0].fault]
    kept = full if full and len(full) < len(calls) else calls
    first = kept[0][0]
    if len(kept) > 1:
        objects = [call.arguments for call, _ in kept]
        tool = offer.resolve(first.name).tool if first.name else None
        whole = [one for (call, _), one in zip(kept, objects, strict=True) if call.complete and isinstance(one, dict)]
        if tool is not None and not kept[-1][0].complete and not all(_satisfies(tool, one) for one in whole):
            # What was cut might have completed the objects before it.
            first.complete = False
            first.end = kept[-1][0].end
            return [kept[0]]
        if tool is not None and all(isinstance(one, dict) for one in objects):
            merged: dict[str, Any] = {}
            for one in objects:
                if merged.keys() & one.keys():
                    break
                merged.update(one)
            else:
                alone = [_satisfies(tool, one) for one in objects]
                if not all(alone) and _satisfies(tool, merged):
                    first.arguments = merged
                    first.end = kept[-1][0].end
                    first.repairs = [one for call, _ in kept for one in call.repairs]
                    first.repairs.append(Repair("merged", "arguments"))
                    return [kept[0]]
    return kept


def _satisfies(tool: Tool, arguments: dict[str, Any]) -> bool:
    return accepts(tool, coerce(dict(arguments), tool)[0])


def settle_call(
    call: Written, grammar: str, offer: Offer, *, recover: bool, by_id: bool = False, cut: bool = False
) -> Outcome:
    """Judge one written call. ``cut``: the block lacks its end and the stream was cut. One reason only, in the order
    truncated, withheld, unknown_tool, malformed."""
    out = Outcome(call.name, None, call.start, call.end, model_id=call.model_id, grammar=grammar)
    if cut or not call.complete:
        out.reason, out.detail = "truncated", "the stream ended inside the call" if cut else "the call breaks off"
        if call.name is not None:
            out.name = _resolve(call, offer, by_id)[1]
        return out
    repairs = list(call.repairs)
    _unwrap_pseudo(call, offer, repairs)
    tool, name, name_repairs = _resolve(call, offer, by_id)
    if tool is None and by_id and (tool := _only_reader(call, name, offer)) is not None:
        name_repairs = [Repair("nameless", "name", call.name or "", tool.name)]
        name = tool.name
    out.name = name
    repairs += name_repairs
    arguments, shape_repairs = _shaped(call, tool)
    out.arguments = arguments
    if not recover:
        out.reason, out.detail = "withheld", "calls of this response are not recovered"
    elif not call.name:
        out.reason, out.detail = "malformed", call.fault or "no name"
        out.name = None
    elif tool is None and offer.known:
        out.reason, out.detail = "unknown_tool", f"{call.name[:60]!r} is not offered"
    elif call.fault or arguments is None:
        out.reason, out.detail = "malformed", call.fault or "no arguments"
    if out.reason is None and tool is not None and arguments is not None and _misread(repairs, tool, arguments):
        out.reason, out.detail = "malformed", "bare words were read as strings, and the result does not fit the schema"
    if out.reason is None:
        out.repairs = repairs + shape_repairs
        out.strategy = _strategy(call, out.repairs)
    return out


def _misread(repairs: list[Repair], tool: Tool, arguments: dict[str, Any]) -> bool:
    """Whether a doubtful reading does not even fit the schema: it may be another one that was meant."""
    return any(one.kind in ("json_repair", "lines") for one in repairs) and not accepts(tool, arguments)


def _only_reader(call: Written, name: str | None, offer: Offer) -> Tool | None:
    """The only offered tool that accepts the arguments of a call whose id carries no name."""
    if name is None or not _NAMELESS.fullmatch(name) or call.fault or not isinstance(call.arguments, dict):
        return None
    takers = [tool for tool in offer.tools or () if accepts(tool, call.arguments)]
    return takers[0] if len(takers) == 1 else None


def _resolve(call: Written, offer: Offer, by_id: bool) -> tuple[Tool | None, str | None, list[Repair]]:
    if call.name is None:
        return None, None, []
    resolution = offer.id_name(call.name) if by_id else offer.resolve(call.name)
    return resolution.tool, resolution.name, list(resolution.repairs)


def _shaped(call: Written, tool: Tool | None) -> tuple[dict[str, Any] | None, list[Repair]]:
    if call.texts is not None:
        return type_texts(call.texts, tool)
    if not isinstance(call.arguments, dict):
        return None, []
    return coerce(call.arguments, tool)


def _unwrap_pseudo(call: Written, offer: Offer, repairs: list[Repair]) -> None:
    """A tool that only stands for a call, and is not offered itself, gives way to the call in its payload."""
    if call.name not in PSEUDO_TOOLS or offer.get(call.name or "") is not None:
        return
    payload = call.arguments
    if call.texts is not None:
        payload = {key: text for key, (text, _) in call.texts.items()}
    if not isinstance(payload, dict):
        return
    while len(payload) == 1 and isinstance(one := next(iter(payload.values())), dict):
        # The call may stand one level down, under a key that only says so.
        if next(iter(payload)) not in _CALL_KEYS:
            break
        payload = one
    name_key = next((key for key in NAME_KEYS if isinstance(payload.get(key), str)), None)
    if name_key is not None and (offer.resolve(payload[name_key]).tool is not None or not offer.known):
        name = payload[name_key]
        argument_key = next((key for key in ARGUMENT_KEYS if key in payload), None)
        inner = payload[argument_key] if argument_key else {k: v for k, v in payload.items() if k != name_key}
    elif len(payload) == 1 and offer.get(next(iter(payload))) is not None:
        ((name, inner),) = payload.items()
    else:
        return
    if isinstance(inner, str):
        try:
            inner = json.loads(inner) if inner.strip() else {}
        except (ValueError, RecursionError):
            return
    if not isinstance(inner, dict):
        return
    repairs.append(Repair("unwrapped", "name", call.name or "", name))
    call.name, call.arguments, call.texts, call.fault = name, inner, None, ""


def _strategy(call: Written, repairs: list[Repair]) -> str:
    if not repairs:
        return "clean"
    kinds = {repair.kind for repair in repairs}
    for kind, strategy in _STRATEGIES:
        if kind in kinds:
            return strategy
    return call.strategy or "json"
