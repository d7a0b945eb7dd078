"""The verbs ``render`` and ``convert``: what a dialect writes, and a reply of one dialect in another."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from .console import Usage, out, say, short
from .dialects import (
    AssistantToolCalls,
    Dialect,
    ToolResults,
    dialect,
    entries_of,
    preferred_for_model,
    wire,
)
from .events import Reasoning, RejectedCall, Text, ToolCall
from .grammar import Grammar, find
from .stream import scrub
from .writing import write_calls

# The parts that are made of the tools alone.
_OF_TOOLS: Final = frozenset(("prompt", "catalogue", "example"))


def render_verb(args: argparse.Namespace, tools: list[Any] | None, read: Callable[[str], bytes]) -> int:
    """Write one part of a dialect: text, or JSON where the part is a list of messages."""
    if not args.dialect and not args.model and args.part != "wire":  # the provider's records are in no dialect
        raise Usage(f"streamscrub render {args.part}: needs --dialect NAME, or --model ID")
    one = _named(args.dialect) if args.dialect else preferred_for_model(args.model or "")
    if args.model and not args.dialect and not one.models:
        say(sys.stderr, f"streamscrub: no dialect is that of {short(args.model)}: {one.name}, for any model\n")
    if args.part in _OF_TOOLS and not tools:
        raise Usage(f"streamscrub render {args.part}: needs --tools FILE")
    if args.exact and tools is None and one.table.get("body") in ("tags", "pairs"):
        say(
            sys.stderr, f"streamscrub: without --tools texts stand in quotes: {one.name} writes values by their types\n"
        )
    text = "" if args.part in _OF_TOOLS else read(args.file).decode("utf-8", "replace")
    try:
        made = _made(one.exact() if args.exact else one, args.part, text, tools, args.add_generation_prompt)
    except (TypeError, ValueError, KeyError) as error:
        raise Usage(f"streamscrub render {args.part}: {short(str(error))}") from None
    if isinstance(made, str):
        exact = args.part == "transcript" and (args.exact or args.add_generation_prompt)
        out(made if exact or made.endswith("\n") else f"{made}\n")
    else:
        out(json.dumps(made, ensure_ascii=False, indent=2) + "\n")
    return 0


def _made(one: Dialect, part: str, text: str, tools: list[Any] | None, asking: bool) -> Any:
    match part:
        case "prompt":
            return one.prompt(tools or ())
        case "catalogue":
            return one.catalogue(tools or ())
        case "example":
            return one.example(tools or ())
        case "thinking":
            return one.render_thinking(text)
    records = _records(text)
    match part:
        case "calls":
            return one.render_calls(_of_conversation(records, AssistantToolCalls), tools)
        case "results":
            return one.render_results(_of_conversation(records, ToolResults))
        case "wire":
            return wire(records)
        case "encode":
            return one.encode(records, tools)
        case "fold":
            return one.fold(records, tools)
        case "replay":
            return one.replay(records, tools)
        case _:
            return one.transcript(records, tools, add_generation_prompt=asking)


def _records(text: str) -> list[Any]:
    """A list of records, one record, or the messages of a request body."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the input is no JSON: {error}") from None
    if isinstance(found, dict):
        found = next((found[key] for key in ("messages", "calls", "results") if key in found), [found])
    if not isinstance(found, list):
        raise TypeError("the input is no list of records")
    return found


def _of_conversation(records: list[Any], kind: type[AssistantToolCalls] | type[ToolResults]) -> list[Any]:
    """The records; of the messages of a conversation only the calls, or only the results, named after their calls."""
    if not any(isinstance(record, dict) and isinstance(record.get("role"), str) for record in records):
        return records
    found: list[Any] = []
    for entry in entries_of(records):
        if isinstance(entry, kind):
            found += entry.calls if isinstance(entry, AssistantToolCalls) else entry.results
    if not found:
        raise ValueError(f"the conversation holds no {'results' if kind is ToolResults else 'calls'}")
    return found


def convert_verb(args: argparse.Namespace, tools: list[Any] | None, read: Callable[[str], bytes]) -> int:
    """Write a reply as another dialect would; 1 if it holds a call that could not be read, which is left out."""
    target = _either(args.target)
    source = _either(args.source) if args.source else None
    text = read(args.file).decode("utf-8", "replace")
    if isinstance(source, Dialect):
        events = source.parse(text, tools, finish_reason=args.finish_reason).events
    else:
        chosen = None if source is None else [source]
        events = scrub(text, tools, grammars=chosen, finish_reason=args.finish_reason).events
    if isinstance(target, Grammar):
        if any(isinstance(event, ToolCall) for event in events) and "body" not in target.data.get("render", {}):
            raise Usage(f"streamscrub convert: {target.name} writes no calls: its file has no [render] with a body")
        if any(isinstance(event, Reasoning) and event.text.strip() for event in events):
            say(
                sys.stderr, f"streamscrub: left out the reasoning: {target.name} is no dialect and has no form for it\n"
            )
        events = [event for event in events if not isinstance(event, Reasoning)]
    code, calls, count = 0, [], 0
    written: list[str] = []
    try:
        for event in events:
            if isinstance(event, ToolCall):
                calls.append(event)
                continue
            if isinstance(event, RejectedCall):
                code = 1
                say(sys.stderr, f"streamscrub: left out {short(event.name or 'a call')}: {short(event.reason)}\n")
            if calls and isinstance(event, Text | Reasoning) and event.text.strip():
                # The line break behind a block was padding and is gone.
                written += [*_calls(target, calls, tools, count), "\n"]
                count += len(calls)
                calls = []
            if isinstance(event, Text):
                written.append(event.text)
            elif isinstance(event, Reasoning) and isinstance(target, Dialect):
                written.append(_thought(target, event.text))
        written += _calls(target, calls, tools, count)
    except ValueError as error:
        raise Usage(f"streamscrub convert: {short(str(error))}") from None
    out("".join(written))
    return code


def _calls(target: Dialect | Grammar, calls: list[ToolCall], tools: list[Any] | None, first: int) -> Iterator[str]:
    if calls and isinstance(target, Dialect):
        yield target.render_calls(calls, tools, first=first)
    elif calls and isinstance(target, Grammar):
        yield write_calls(target, [(call.name, call.arguments) for call in calls], tools or ())


def _thought(target: Dialect, text: str) -> str:
    """Reasoning in the target's envelope."""
    if not text.strip():
        return text
    return target.render_thinking(text.strip("\n")) + "\n"


def _named(name: str) -> Dialect:
    try:
        return dialect(name)
    except ValueError as error:
        raise Usage(f"streamscrub: {error}") from None


def _either(name: str) -> Dialect | Grammar:
    """A dialect, or a grammar by its name or file."""
    try:
        return dialect(name)
    except ValueError as error:
        try:
            return find([name])[0]
        except ValueError:
            raise Usage(f"streamscrub: {error}; nor is it a grammar") from None
