"""Calls by structured output: one JSON object for the message and the calls, for servers that enforce a schema.

It is off unless a host asks for it. An API that wants every property of a schema to be required cannot enforce it,
because the arguments carry the schemas of the tools as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..events import RejectedCall, ToolCall
from ..host.structured import read_structured
from ..host.validation import Problem, validate
from ..repair import Unreadable, load
from ..tools import Tool, read_tools
from .prompts import wording

# The variable that turns it on where the host says nothing.
VARIABLE: Final = "STREAMSCRUB_STRUCTURED"
IGNORED: Final = "the reply is not the object that was asked for: the backend ignored the schema"
_ON: Final = frozenset(("1", "true", "yes", "on"))
_LARGEST: Final = 1 << 20  # characters of a reply
_OPEN_LIST: Final = 2  # levels that are open between two calls: the reply and its list


@dataclass(frozen=True, slots=True)
class Envelope:
    """One reply. ``error`` says why it is none; then there are no calls and no message.

    ``problems`` are the fields of calls that do not fit their schemas, by the number of the call; such calls are not
    in ``calls``.
    """

    message: str = ""
    calls: tuple[ToolCall, ...] = ()
    rejected: tuple[RejectedCall, ...] = ()
    problems: tuple[tuple[int, Problem], ...] = ()
    error: str = ""
    repaired: bool = False


def use_envelope(
    asked: bool | None = None, *, native_tools: bool, environment: Mapping[str, str] | None = None
) -> bool:
    """Is structured output used in this run? ``asked`` None: the variable ``STREAMSCRUB_STRUCTURED`` decides.

    A provider with tools of its own never needs it.

    >>> use_envelope(True, native_tools=False), use_envelope(True, native_tools=True), use_envelope(
    ...     None, native_tools=False, environment={}
    ... )
    (True, False, False)
    """
    if native_tools:
        return False
    if asked is None:
        return (os.environ if environment is None else environment).get(VARIABLE, "").strip().lower() in _ON
    return asked


def build_envelope_schema(tools: Iterable[Any] | None) -> dict[str, Any]:
    """The JSON schema of a reply: ``message``, and ``tool_calls`` of the offered tools, each with its own schema.

    Without tools no call is allowed. References inside a tool's schema are carried along.
    """
    offered = read_tools(tools) or ()
    calls: dict[str, Any] = {"type": "array", "description": "The tools to call, in order; empty for none."}
    if offered:
        calls["items"] = {"oneOf": [_call_schema(tool) for tool in offered]}
    else:
        calls["maxItems"] = 0
    return {
        "type": "object",
        "description": wording()["envelope"],
        "properties": {
            "message": {"type": "string", "description": "The text for the user; may be empty beside calls."},
            "tool_calls": calls,
        },
        "required": ["message", "tool_calls"],
        "additionalProperties": False,
    }


def _call_schema(tool: Tool) -> dict[str, Any]:
    schema = tool.parameters or {"type": "object"}
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": schema},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def parse_envelope(text: str, tools: Iterable[Any] | None, *, finish_reason: str | None = "stop") -> Envelope:
    """Read a reply that was asked for with ``build_envelope_schema``. The whole text must be the object.

    One repair of the JSON is tried. Each call still goes through the resolution of names and through validation. A
    text that is no such object is an error, and not a message. A call in which the text ends is ``truncated``.

    >>> parse_envelope('{"message": "hi", "tool_calls": []}', []).message
    'hi'
    >>> parse_envelope("hello", []).error
    'the reply is not the object that was asked for: the backend ignored the schema'
    """
    value, repaired, open_levels = _read(text)
    records = None if value is None or not isinstance(value.get("message"), str | None) else _records(value)
    if value is None or records is None:
        return Envelope(error=IGNORED)
    if records and open_levels > _OPEN_LIST:
        records, finish_reason = [*records[:-1], {**records[-1], "invalid": True}], "length"
    offered = read_tools(tools) or ()
    named = {tool.name: tool for tool in offered}
    events = read_structured(records, offered, finish_reason=finish_reason)
    calls, rejected, problems = [], [], []
    for event in events:
        if isinstance(event, RejectedCall):
            rejected.append(event)
            continue
        found = validate(event.arguments, named[event.name])
        problems += [(event.number, problem) for problem in found]
        if not found:
            calls.append(event)
    return Envelope(value.get("message") or "", tuple(calls), tuple(rejected), tuple(problems), "", repaired)


def _records(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The records of the calls, None if they are none."""
    records = value.get("tool_calls")
    if "message" not in value and "tool_calls" not in value:
        return None
    if records is None:
        return []
    whole = isinstance(records, list) and all(isinstance(record, dict) for record in records)
    return records if whole else None


def _read(text: str) -> tuple[dict[str, Any] | None, bool, int]:
    """The object that a text is, whether it had to be repaired, and how many levels the end of the text left open."""
    if len(text) > _LARGEST:
        return None, False, 0
    try:
        value = json.loads(text)
        return (value if isinstance(value, dict) else None), False, 0
    except (ValueError, RecursionError):
        pass
    text = text.strip()
    if not text.startswith("{"):
        return None, False, 0
    try:
        loaded = load(text)
    except Unreadable:
        return None, False, 0
    closers = "".join(edit.after for edit in loaded.edits if edit.start == len(text)).strip()
    return (loaded.value if isinstance(loaded.value, dict) else None), True, len(closers)


def answer_tool(schema: Mapping[str, Any], name: str = "give_answer", description: str = "") -> Tool:
    """A tool whose arguments are a structured answer, for models that can call but take no schema for their text.

    Give it to ``Dialect.prepare`` as ``synthesized``; its call is the answer and is not run.
    """
    return Tool(name, dict(schema), description or "Gives the final answer. Call it once, when the answer is complete.")
