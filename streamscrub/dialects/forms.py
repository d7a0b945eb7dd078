"""How a dialect writes calls, results and reasoning, and reads them back: one table of a grammar file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from ..bodies.loose_object import loose
from ..events import Event, Scrubbed, ToolCall
from ..grammar import Grammar, shipped
from ..stream import scrub
from ..tools import Tool, read_tools
from ..union import tables_for
from ..writing import filled, write_call
from .boundary import Boundary, fenced, run_at
from .records import UNKNOWN, Call, ToolResult, call_of, result_of

# Envelopes around envelopes that are taken off. Reasoning is doubled by one replay too many, not by ten.
_DOUBLED: Final = 8
_FIELD: Final = re.compile(r"\{[a-z]+\}")
# Bytes of a name in the header of a message, which is read up to ``MAX_HEADER``. No tool has a longer one.
_LONGEST_NAME: Final = 160
# What ``Boundary.name`` writes.
_REFERENCE: Final = re.compile(r"&(?:quot|lt|gt|amp|#([0-9]{2,6}));")
_CHARS: Final = {"&quot;": '"', "&lt;": "<", "&gt;": ">", "&amp;": "&"}
_TEMPLATES: Final = ("call", "calls", "several", "result", "error", "results", "replayed")


class Form:
    """One way to write calls and results in a grammar. ``table`` is the ``[[dialect]]`` of the file."""

    def __init__(self, grammar: Grammar, table: Mapping[str, Any]) -> None:
        self.grammar = grammar
        self.table: Mapping[str, Any] = {**grammar.data.get("render", {}), **table}
        self.name: str = table["name"]

    @cached_property
    def boundary(self) -> Boundary:
        """The rules for texts inside its envelopes."""
        texts = [self.table.get(key, "") for key in _TEMPLATES]
        texts += [text for text in self.table.get("form", {}).values() if isinstance(text, str)]
        fallback = self.table.get("fallback", {})
        return Boundary([*texts, fallback.get("call", "")], self.table.get("escape") == "bars", own=self._own_markers)

    @cached_property
    def turn(self) -> Boundary:
        """The rules for what a user says in a chat template: it can begin no other turn."""
        return Boundary([], self.table.get("escape") == "bars", "none")

    @property
    def writes(self) -> bool:
        """True if calls are text; False for the provider's own channel."""
        return "body" in self.table

    @property
    def _own(self) -> bool:
        """True for a format of the host's own, which is read beside the shipped ones."""
        return shipped().get(self.grammar.name) is not self.grammar

    @property
    def _own_markers(self) -> set[str]:
        """What a format of the host's own begins and ends with, and what its results stand between."""
        if not self._own:
            return set()
        pieces = (piece for key in ("result", "error", "replayed") for piece in _FIELD.split(self.table.get(key, "")))
        markers = {role.literal.decode() for role in tables_for((self.grammar,), None).roles.values()}
        return markers | {piece.strip() for piece in pieces if piece.strip()}

    @cached_property
    def _reading(self) -> dict[str, Any]:
        """The options with which a reply is read."""
        model = {"model": self.table["model"]} if "model" in self.table else {}
        return {**model, "grammars": (*shipped().values(), self.grammar)} if self._own else model

    # -- calls

    def render_calls(self, calls: Iterable[Any], tools: Iterable[Any] | None = None, *, first: int = 0) -> str:
        """The calls as a model writes them in this dialect; "" for none.

        ``first`` is the number of calls of the reply before these, for ids that count them.

        A call is a ``Call``, a ``ToolCall``, (name, arguments) or a provider's record. ``tools`` are the offered ones,
        None if they are not known. A value that holds a marker is written with escapes, or its call in the dialect's
        second form; what comes out is read again before it is returned. Raises ``ValueError`` for a call that this
        dialect cannot carry, and for arguments that are no object.
        """
        given = [call_of(call) for call in calls]
        if not given:
            return ""
        if not self.writes:
            raise ValueError(f"{self.name} writes no calls: they go through the provider's own channel")
        ordered = _sorted if self.table.get("sorted") else dict
        wanted = [(self._bare(call.name), ordered(call.object())) for call in given]
        offered = _with_forgotten(read_tools(tools), wanted)
        written = [
            self._written(call, name, arguments, index, offered)
            for index, (call, (name, arguments)) in enumerate(zip(given, wanted, strict=True), first)
        ]
        for text in (self._joined(written), "\n".join(self._joined([one]) for one in written)):
            if len(written) == 1 or self._reads(text, wanted, offered):
                return text
        raise ValueError(f"{self.name} cannot carry these calls side by side")

    def _written(
        self, call: Call, name: str, arguments: dict[str, Any], index: int, offered: tuple[Tool, ...] | None
    ) -> str:
        tool = next((tool for tool in offered or () if tool.name == name), None)
        shown = {"id": self.id_of(call.id, name, index), "compact": not self.table.get("spaced")}
        problem = f"{self.name} cannot carry this call of {name!r}"
        for render in (self.table, self.table.get("fallback", {})):
            for hard in (False, True) if render else ():
                try:
                    prefixed = name if render is not self.table else self._prefix + name
                    text = write_call(self.grammar, render, prefixed, arguments, tool, index, hard=hard, **shown)
                except ValueError as error:
                    problem = str(error)
                    continue
                if self._reads(self._joined([text]), [(name, arguments)], offered):
                    return text
        raise ValueError(problem)

    def _joined(self, written: list[str]) -> str:
        template = self.table.get("calls", "{calls}")
        if len(written) > 1:
            template = self.table.get("several", template)
        return filled(template, calls=self.table.get("join", "\n").join(written))

    def _reads(self, text: str, wanted: list[tuple[str, dict[str, Any]]], offered: tuple[Tool, ...] | None) -> bool:
        """Is this read back as these calls, and as nothing else?"""
        found = self.parse(text, offered, max_calls=max(len(wanted), 1) + 1)
        calls = [(call.name, call.arguments) for call in found.calls]
        return not found.rejected and not found.text.strip() and _same(calls, wanted)

    @property
    def _prefix(self) -> str:
        return str(self.table.get("prefix", ""))

    def _bare(self, name: str) -> str:
        return name.removeprefix(self._prefix)

    def id_of(self, id: str, name: str, index: int) -> str:
        """The id as this dialect writes it: as it is, or made of name and index; one of that make is kept."""
        template = self.table.get("id")
        if template is None:
            return id
        head, _, tail = filled(template, name=self._prefix + self._bare(name)).partition("{index}")
        number = id[len(head) : len(id) - len(tail)] if id.startswith(head) and id.endswith(tail) else ""
        return id if number.isascii() and number.isdigit() else f"{head}{index}{tail}"

    def parse(self, text: str, tools: Iterable[Any] | None = None, **options: Any) -> Scrubbed:
        """Read a whole response, with all grammars on: what a model was not taught it may write all the same.

        Without ``tools`` names are taken as written, but for the prefix that the dialect itself puts before them.
        ``options`` are those of ``scrub``.
        """
        read = scrub(text, tools, **{**self._reading, **options})
        if tools is None and self._prefix:
            read = Scrubbed([self._unprefixed(event) for event in read.events])
        return read

    def _unprefixed(self, event: Event) -> Event:
        return replace(event, name=self._bare(event.name)) if isinstance(event, ToolCall) else event

    # -- results

    def render_results(self, results: Iterable[Any], *, replayed: bool = False) -> str:
        """The results as one message for the model; "" for none.

        Whatever the texts hold, the message reads back as exactly these results and as no call; a text without a
        marker passes byte for byte. ``replayed``: results of an earlier turn, which some dialects name by their id.
        """
        given = [result_of(result) for result in results]
        if not given:
            return ""
        if "result" not in self.table:
            raise ValueError(f"{self.name} writes no results: they go through the provider's own channel")
        parts = [self._result(result, place, replayed) for place, result in enumerate(given)]
        blocks = self.table.get("between", "\n").join(parts)
        return filled(self.table.get("results", "{results}"), results=blocks)

    def result_blocks(self, results: Iterable[Any]) -> str:
        """The results without what stands around all of them."""
        parts = [self._result(result_of(result), place, False) for place, result in enumerate(results)]
        return str(self.table.get("between", "\n")).join(parts)

    def result_messages(self, results: Iterable[Any], *, replayed: bool = False) -> list[str]:
        """The same as one message or more: a trusted result stands alone, as it is."""
        messages: list[str] = []
        batch: list[ToolResult] = []
        for result in map(result_of, results):
            if not result.trusted_verbatim:
                batch.append(result)
                continue
            messages += [self.render_results(batch, replayed=replayed), result.text]
            batch = []
        messages.append(self.render_results(batch, replayed=replayed))
        return [message for message in messages if message]

    def _result(self, result: ToolResult, place: int, replayed: bool) -> str:
        template = self.table["result"]
        if replayed and "replayed" in self.table:
            template = self.table["replayed"]
        elif result.is_error:
            template = self.table.get("error", template)
        name = self._bare(result.name) or UNKNOWN
        shown = self.id_of(result.id, name, place if result.index is None else result.index) or UNKNOWN
        content = self._content(result.text)
        if self.table.get("escape") == "fence":
            template = fenced(template, content)
        fields = {"status": "error" if result.is_error else "ok", "content": content}
        return filled(
            template, **fields, name=self._field(name, "name", template), id=self._field(shown, "id", template)
        )

    def _field(self, text: str, field: str, template: str) -> str:
        """A name or an id, with nothing in it that would end it in this template."""
        written = self.boundary.name(text)
        if self.table.get("escape") == "bars" and len(written.encode("utf-8", "replace")) > _LONGEST_NAME:
            return self._field(text[: len(text) * 3 // 4], field, template)
        literals, names = _pieces(template)
        for literal, name in zip(literals[1:], names, strict=True):
            if name == field and literal and literal in written:
                written = written.replace(literal, f"&#{ord(literal[0])};{literal[1:]}")
        return written

    def _content(self, text: str) -> str:
        if self.table.get("quoted"):
            return json.dumps(self.boundary.text(text), ensure_ascii=False)
        if not self.table.get("literal"):
            return self.boundary.text(text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        try:
            return loose(self._inert(value), self._quote)
        except RecursionError:
            return loose(self.boundary.text(text), self._quote)

    def _inert(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.boundary.text(value)
        if isinstance(value, dict):
            return {self.boundary.text(key): self._inert(item) for key, item in value.items()}
        return [self._inert(item) for item in value] if isinstance(value, list) else value

    @property
    def _quote(self) -> str:
        return next((str(body["quotes"][0]) for body in self.grammar.reads.get("body", ()) if "quotes" in body), '"')

    def read_results(self, text: str) -> list[ToolResult] | None:
        """The results of a message that this dialect rendered, bodies as the model saw them; None for any other text.

        >>> from streamscrub.dialects import dialect
        >>> hermes = dialect("hermes")
        >>> [one.text for one in hermes.read_results(hermes.render_results([{"text": "07:12"}])) or []]
        ['07:12']
        """
        head, _, tail = self.table.get("results", "{results}").partition("{results}")
        if "result" not in self.table or not text.startswith(head) or not text.endswith(tail):
            return None
        inner = text[len(head) : len(text) - len(tail)]
        between = self.table.get("between", "\n")
        templates = [self.table[key] for key in ("replayed", "error", "result") if key in self.table]
        found: list[ToolResult] = []
        at = 0
        while at < len(inner):
            if found:
                if not inner.startswith(between, at):
                    return None
                at += len(between)
            for template in templates:
                fields, end = _matched(template, inner, at, self.table.get("escape") == "fence")
                if fields is not None:
                    break
            else:
                return None
            failed = template == self.table.get("error") and template != self.table["result"]
            error = fields["status"] == "error" if "status" in fields else failed
            name, id = (_unescaped(fields.get(key, "")) for key in ("name", "id"))
            found.append(ToolResult(id, name, fields["content"], error, len(found)))
            at = end
        return found or None

    # -- reasoning

    def render_thinking(self, text: str) -> str:
        """Reasoning in its envelope; "" for none. Text that is such envelopes already is unwrapped first."""
        return self._thought(text, self.table.get("thinking", "{content}"))

    def demote(self, text: str) -> str:
        """Earlier reasoning for another model: where this dialect's own form is control tokens, in a plain one."""
        return self._thought(text, self.table.get("demoted", self.table.get("thinking", "{content}")))

    def _thought(self, text: str, template: str) -> str:
        head, _, tail = template.partition("{content}")
        text = _unwrapped(text, head.strip(), tail.strip())
        if not text.strip():
            return ""
        if head:
            bars = self.table.get("escape") == "bars"
            text = Boundary([template], bars, "reasoning").text(text)
            if self.table.get("escape") == "fence":
                template = fenced(template, text)
        return filled(template, content=text)


def _with_forgotten(
    offered: tuple[Tool, ...] | None, calls: list[tuple[str, dict[str, Any]]]
) -> tuple[Tool, ...] | None:
    """The tools, and those that are called and no longer offered, as far as the calls tell what they take."""
    if offered is None:
        return None
    known = {tool.name for tool in offered}
    keys: dict[str, dict[str, Any]] = {}
    for name, arguments in calls:
        if name.strip() and name not in known:
            keys.setdefault(name, {}).update({key: {} for key in arguments})
    return (*offered, *(Tool(name, {"type": "object", "properties": found}) for name, found in keys.items()))


def _sorted(value: dict[str, Any]) -> dict[str, Any]:
    """The object with its keys in the order of their names, whatever their case, and so the objects in it."""
    return {key: _within(item) for key, item in sorted(value.items(), key=lambda item: item[0].lower())}


def _within(value: Any) -> Any:
    if isinstance(value, dict):
        return _sorted(value)
    return [_within(item) for item in value] if isinstance(value, list) else value


def _same(found: list[tuple[str, Any]], wanted: list[tuple[str, Any]]) -> bool:
    return json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)


def _pieces(template: str) -> tuple[list[str], list[str]]:
    """What stands around the fields of a template, and their names."""
    pieces = template.split("{")
    literals, names = [pieces[0]], []
    for piece in pieces[1:]:
        name, brace, rest = piece.partition("}")
        if not brace or not name.isidentifier():
            literals[-1] += "{" + piece
            continue
        names.append(name)
        literals.append(rest)
    return literals, names


def _matched(template: str, text: str, at: int, fence: bool) -> tuple[dict[str, str] | None, int]:
    """The fields of one envelope at ``at`` and where it ends; None if it is none."""
    if fence:
        template = template.replace("```", "`" * max(run_at(text, at), 3))
    fields: dict[str, str] = {}
    literals, names = _pieces(template)
    if not text.startswith(literals[0], at):
        return None, at
    at += len(literals[0])
    for name, literal in zip(names, literals[1:], strict=True):
        end = text.find(literal, at)
        if end < 0:
            return None, at
        value = text[at:end]
        if (name != "content" and any(char in value for char in '<>"')) or fields.get(name, value) != value:
            return None, at
        fields[name] = value
        at = end + len(literal)
    return fields, at


def _unescaped(text: str) -> str:
    return _REFERENCE.sub(lambda found: _CHARS.get(found[0]) or chr(int(found[1])), text)


def _unwrapped(text: str, head: str, tail: str) -> str:
    """What is inside a text that is a sequence of envelopes and nothing else, perhaps doubled; else the text itself."""
    for _ in range(_DOUBLED):
        inner = _opened(text, head, tail)
        if inner is None:
            break
        text = inner
    return text


def _opened(text: str, head: str, tail: str) -> str | None:
    """The bodies of a sequence of envelopes, without the line break that an envelope adds on each side."""
    if not head or not tail or not text.strip().startswith(head):
        return None
    bodies: list[str] = []
    depth = start = end = 0
    for mark in re.finditer(f"{re.escape(head)}|{re.escape(tail)}", text):
        if mark[0] == head and depth == 0:
            if text[end : mark.start()].strip():
                return None
            start = mark.end()
        depth += 1 if mark[0] == head else -1
        if depth < 0:
            return None
        if depth == 0:
            end = mark.end()
            bodies.append(text[start : mark.start()].removeprefix("\n").removesuffix("\n"))
    return None if depth or text[end:].strip() else "\n".join(bodies)
