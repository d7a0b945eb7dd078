"""Calls written in the form of a grammar: the other direction of its reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from .bodies import BODIES
from .bodies.base import hardened
from .grammar import Grammar
from .tables import Kind, Tables
from .tools import Tool, read_tools
from .union import tables_for

# Syntaxes whose strings stand in double quotes and know JSON's escapes.
_ESCAPING: Final = frozenset(("json_call", "json_arguments", "keyed_call", "python_call"))


def write_calls(grammar: Grammar, calls: Iterable[tuple[str, Mapping[str, Any]]], tools: Iterable[Any] = ()) -> str:
    """The calls, (name, arguments) each, as a model of this grammar writes them.

    ``tools`` in any shape give the order of positional values and the types. Raises ``ValueError`` if the grammar
    writes no calls, or if its form cannot carry a value so that it is read back as it is.
    """
    render = grammar.data.get("render", {})
    if "body" not in render:
        raise ValueError(f"{grammar.name} writes no calls")
    offered = {tool.name: tool for tool in read_tools(tools) or ()}
    written = [
        write_call(grammar, render, name, arguments, offered.get(name), index)
        for index, (name, arguments) in enumerate(calls)
    ]
    return filled(render.get("calls", "{calls}"), calls=render.get("join", "\n").join(written))


def write_call(
    grammar: Grammar,
    render: Mapping[str, Any],
    name: str,
    arguments: Mapping[str, Any],
    tool: Tool | None,
    index: int,
    **more: Any,
) -> str:
    """One call in the form of ``render``. ``more`` are settings of the writer, and ``id``, the text of that field.

    With ``hard`` the strings of a syntax that has escapes hold no character that a marker could begin with. Raises
    ``ValueError`` for what the form cannot carry.
    """
    settings = {**_settings(grammar, render, tool), "number": str(index + 1), **more}
    text = BODIES[render["body"]].write(name, dict(arguments), settings)
    if more.get("hard") and render["body"] in _ESCAPING:
        text = hardened(text)
    return filled(render.get("call", "{call}"), name=name, index=str(index), id=more.get("id", ""), call=text)


def _settings(grammar: Grammar, render: Mapping[str, Any], tool: Tool | None) -> dict[str, Any]:
    """What a body's writer gets: the settings of its reader, the texts of the file, and the tool."""
    settings = dict(_reader(grammar, render["body"], render.get("form", {}).get("call_open") == ""))
    for one in grammar.reads.get("body", ()):
        if one["syntax"] == render["body"]:
            settings |= {key: one[key] for key in ("quotes",) if key in one}
    settings["form"] = render.get("form", {})
    if tool is not None:
        settings |= {"tool": tool, "slots": tool.slots}
    return settings


@lru_cache(maxsize=256)
def _reader(grammar: Grammar, syntax: str, named: bool) -> Mapping[str, Any]:
    """The settings of the grammar's own reader, or of one of a grammar that it needs."""
    tables = tables_for([grammar], None)
    for name in (grammar.name, *grammar.reads.get("needs", ())):
        found = _reader_settings(tables, name, syntax, named)
        if found is not None:
            return found
    return {}


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


def filled(template: str, **fields: str) -> str:
    """Put the fields in. What they hold is not looked at again.

    >>> filled("{name}: {x} {y}", name="{x}", x="1")
    '{x}: 1 {y}'
    """
    parts = template.split("{")
    out = [parts[0]]
    for part in parts[1:]:
        key, brace, rest = part.partition("}")
        out.append(fields[key] + rest if brace and key in fields else "{" + part)
    return "".join(out)
