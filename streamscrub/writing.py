"""Calls written in the form of a grammar: the other direction of its reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .bodies import BODIES
from .grammar import Grammar
from .tables import Kind, Tables
from .tools import Tool, read_tools
from .union import tables_for


def write_calls(grammar: Grammar, calls: Iterable[tuple[str, Mapping[str, Any]]], tools: Iterable[Any] = ()) -> str:
    """The calls, (name, arguments) each, as a model of this grammar writes them.

    ``tools`` in any shape give the order of positional values and the types. Raises ``ValueError`` if the grammar
    writes no calls, or if its form cannot carry a value so that it is read back as it is.
    """
    render = grammar.data.get("render", {})
    if "body" not in render:
        raise ValueError(f"{grammar.name} writes no calls")
    tables = tables_for([grammar], None)
    offered = {tool.name: tool for tool in read_tools(tools) or ()}
    written = []
    for index, (name, arguments) in enumerate(calls):
        settings = {**_settings(grammar, tables, offered.get(name)), "number": str(index + 1)}
        body = BODIES[render["body"]].write(name, dict(arguments), settings)
        written.append(_filled(render.get("call", "{call}"), name=name, index=str(index), call=body))
    return _filled(render.get("calls", "{calls}"), calls=render.get("join", "\n").join(written))


def _settings(grammar: Grammar, tables: Tables, tool: Tool | None) -> dict[str, Any]:
    """What a body's writer gets: the settings of its reader, the texts of the file, and the tool."""
    render = grammar.data["render"]
    settings: dict[str, Any] = {}
    for name in (grammar.name, *grammar.data.get("needs", ())):
        found = _reader_settings(tables, name, render["body"], render.get("form", {}).get("call_open") == "")
        if found is not None:
            settings.update(found)
            break
    for one in grammar.data.get("body", ()):
        if one["syntax"] == render["body"]:
            settings |= {key: one[key] for key in ("quotes",) if key in one}
    settings["form"] = render.get("form", {})
    if tool is not None:
        settings |= {"tool": tool, "slots": tool.slots}
    return settings


def _reader_settings(tables: Tables, grammar: str, syntax: str, named: bool) -> Mapping[str, Any] | None:
    """The settings of the reader. ``named``: the call's name stands in the header of its message."""
    for frame in tables.frames if named else ():
        for use in frame.uses:
            if use.grammar == grammar and use.body.name == syntax:
                return {**use.settings, "named": True}
    for role in tables.roles.values():
        if role.kind is Kind.TAG and role.grammar == grammar:
            uses = (role.target,)
        elif role.kind is Kind.OPEN:
            uses = (*role.target.uses, *role.target.named, *role.target.headed)
        else:
            continue
        for use in uses:
            if use.grammar == grammar and use.body.name == syntax:
                settings: Mapping[str, Any] = use.settings
                return settings
    return None


def _filled(template: str, **fields: str) -> str:
    """Put the fields in. What they hold is not looked at again."""
    parts = template.split("{")
    out = [parts[0]]
    for part in parts[1:]:
        key, brace, rest = part.partition("}")
        out.append(fields[key] + rest if brace and key in fields else "{" + part)
    return "".join(out)
