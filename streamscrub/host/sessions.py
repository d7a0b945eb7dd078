"""Saved responses: our own record, one JSON line each, and the readers of what others have saved.

Our record is an object with ``streamscrub`` (the version of the form, 1), ``text`` (what the model wrote), ``tools``,
``options``, ``finish_reason``, ``model``, ``id`` and ``events`` (what it was read as). Read are also case files, chat
logs in OpenAI's and Anthropic's shape (requests, responses, pairs of them, conversations, fine-tuning lines, streamed
chunks; JSON or JSON lines), and any other file as the plain text of one response.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike, fspath
from typing import Any, BinaryIO, Final, TypeAlias

from ..events import Event, Reasoning, RejectedCall, Span, Text, ToolCall
from ..names import encodable
from ..records import bytes_of, bytes_record, from_record, to_record
from ..tools import Tool
from .reply import canonical

FORM: Final = 1
# Levels of lists and wrappers around a conversation that are opened; logs have two.
MAX_WRAPPERS: Final = 4
# Levels of a JSON value; arguments have 64 at most, and what is deeper could end a recursion elsewhere.
MAX_LEVELS: Final = 200

_RESULT: Final = (
    "written by parse or scrub --calls, without what the model wrote; for records keep its response and run "
    "streamscrub replay RESPONSE --record FILE"
)
_READING: Final = ("text", "events", "finish_reason", "tools")
# Names of files that hold JSON lines, whatever the first of them is.
_LINES: Final = (".jsonl", ".ndjson")
_TEXT_PARTS: Final = frozenset(("text", "output_text", "input_text"))


@dataclass(frozen=True, slots=True)
class Seen:
    """A call in an outcome. ``arguments`` is canonical JSON; None stands for what was not recorded."""

    name: str
    arguments: str
    repaired: bool | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a response was read as. ``text`` and ``reasoning`` None: not recorded, so not compared."""

    calls: tuple[Seen, ...] = ()
    rejected: tuple[tuple[str, str | None], ...] | None = None
    text: str | None = None
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """One saved response. ``recorded`` is what it was read as, None if that was not saved. ``where`` is for people."""

    text: str | bytes
    tools: list[Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = "stop"
    model: str = ""
    id: str = ""
    recorded: Outcome | None = None
    events: tuple[Event, ...] | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line of a session that is no record, and why."""

    where: str
    problem: str


Saved: TypeAlias = Response | Unreadable


def session_record(
    text: str | bytes,
    events: Iterable[Event],
    *,
    tools: Iterable[Mapping[str, Any] | Tool] | None = None,
    finish_reason: str | None = "stop",
    model: str = "",
    id: str = "",
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Our record of one response: write it as a JSON line. ``tools`` and ``options`` must be JSON."""
    record: dict[str, Any] = {"streamscrub": FORM, "id": id, "model": model, "finish_reason": finish_reason}
    record |= {"text": text} if isinstance(text, str) else bytes_record("text", text)
    record |= {
        "tools": None if tools is None else [_tool_record(tool) for tool in tools],
        "options": dict(options or {}),
    }
    return record | {"events": [to_record(event) for event in events]}


def _tool_record(tool: Mapping[str, Any] | Tool) -> dict[str, Any]:
    if isinstance(tool, Tool):
        return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return dict(tool)


def outcome_of(events: Iterable[Event]) -> Outcome:
    """The outcome that the events of one response make up."""
    calls: list[Seen] = []
    rejected: list[tuple[str, str | None]] = []
    text: list[str] = []
    reasoning: list[str] = []
    for event in events:
        if type(event) is Text:
            text.append(event.text)
        elif type(event) is Reasoning:
            reasoning.append(event.text)
        elif type(event) is ToolCall:
            calls.append(Seen(event.name, canonical(event.arguments), event.repaired, event.span))
        elif type(event) is RejectedCall:
            rejected.append((event.reason, event.name))
    return Outcome(tuple(calls), tuple(rejected), "".join(text), "".join(reasoning))


def read_session(path: str | PathLike[str], told: Callable[[int], None] | None = None) -> Iterator[Saved]:
    """The responses of a file, whatever its form; JSON lines are read one by one.

    Lines are those of a file whose name says so, or whose first line is of a known form. ``told`` gets the number of
    bytes that were read.

    Raises ``OSError`` if the file cannot be read.
    """
    name = fspath(path)
    with open(name, "rb") as file:
        yield from read_open(file, name, told)


def read_open(file: BinaryIO, name: str, told: Callable[[int], None] | None = None) -> Iterator[Saved]:
    """The same of an open file, such as standard input. ``name`` is for people."""
    first = [file.readline()]  # it may be a pipe, which cannot be read twice
    while first[-1] and not first[-1].strip():
        first.append(file.readline())
    start = _loads(first[-1])
    if _is_result(start):
        yield Unreadable(name, _RESULT)
        return
    if name.endswith(_LINES) or (start is not None and _is_known(start)):
        yield from read_lines(_counted(chain(first, file), told), name)
        return
    whole = b"".join(first) + file.read()
    if told is not None:
        told(len(whole))
    document = _loads(whole)
    if _is_result(document):
        yield Unreadable(name, _RESULT)
    elif document is not None and _is_known(document):
        yield from _read(document, name, None, MAX_WRAPPERS)
    else:
        yield Response(whole, where=name)


def read_lines(lines: Iterable[str | bytes], name: str = "line") -> Iterator[Saved]:
    """The responses in JSON lines of any known form. Lines that are none are told as ``Unreadable``."""
    chunks = _Chunks()
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if _is_idle(line):
            continue
        value = _loads(line)
        if value is None or not _is_known(value):
            torn = ", torn" if isinstance(line, bytes) and not line.endswith(b"\n") else ""
            yield Unreadable(
                where, f"no JSON that can be read{torn}" if value is None else "a JSON value of no known form"
            )
        elif _is_chunk(value):
            yield from chunks.add(value, where)
        else:
            yield from _read(value, where, None, MAX_WRAPPERS)
    yield from chunks.rest()


def _is_idle(line: str | bytes) -> bool:
    """True for an empty line, and for those of an event stream that carry no data."""
    word = line.strip()
    if isinstance(word, bytes):
        return not word or word == b"data: [DONE]" or word.startswith((b":", b"event:", b"id:", b"retry:"))
    return not word or word == "data: [DONE]" or word.startswith((":", "event:", "id:", "retry:"))


def _counted(file: Iterable[bytes], told: Callable[[int], None] | None) -> Iterator[bytes]:
    for line in file:
        if told is not None:
            told(len(line))
        yield line


def _loads(data: str | bytes) -> Any:
    """A JSON value, also behind the ``data:`` of an event stream; None if it is none (a lone null says nothing)."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        value = json.loads(text.strip().removeprefix("data:"))
    except (ValueError, RecursionError):
        return None
    return None if text.count("[") + text.count("{") > MAX_LEVELS and _is_deep(value) else value


def _is_result(value: Any) -> bool:
    """Is this what the command made of a response? It lacks what the model wrote, so nothing can be read again."""
    return isinstance(value, dict) and (
        value.keys() >= {"calls", "rejected", "counts"} or (isinstance(value.get("event"), str) and "span" in value)
    )


def _is_deep(value: Any) -> bool:
    """True if a value has more than ``MAX_LEVELS`` levels; found without recursion, which such a value would end."""
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _is_known(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict | list) and _is_known(item) for item in value[:8])
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("text"), str) and ("streamscrub" in value or any(key in value for key in _READING[1:])):
        return True
    if any(isinstance(value.get(key), list) for key in ("choices", "messages")):
        return True
    if isinstance(value.get("role"), str) and ("content" in value or "tool_calls" in value):
        return True
    return any(isinstance(value.get(key), dict) and _is_known(value[key]) for key in ("response", "body"))


def _read(value: Any, where: str, tools: list[Any] | None, depth: int) -> Iterator[Saved]:
    """All responses in one JSON value."""
    if depth < 0:
        yield Unreadable(where, "too many wrappers")
    elif isinstance(value, list):
        for item in value:
            yield from _read(item, where, tools, depth - 1)
    elif not isinstance(value, dict):
        yield Unreadable(where, "a JSON value of no known form")
    elif isinstance(value.get("text"), str):
        yield _record(value, where)
    elif isinstance(value.get("choices"), list):
        for index, choice in enumerate(value["choices"]):
            if isinstance(choice, dict):
                yield _choice(choice, value, f"{value.get('id') or ''}{f'/{index}' * bool(index)}", tools, where)
    elif isinstance(value.get("response"), dict):
        request = value.get("request") if isinstance(value.get("request"), dict) else value
        yield from _read(value["response"], where, _tools(request) or tools, depth - 1)
    elif isinstance(value.get("body"), dict):
        yield from _read(value["body"], where, tools, depth - 1)
    elif isinstance(value.get("messages"), list):
        for number, message in enumerate(value["messages"]):
            if isinstance(message, dict):
                model = value.get("model")
                told = message if "model" in message or not isinstance(model, str) else {**message, "model": model}
                yield from _message(told, _tools(value) or tools, f"{where}, message {number}")
    else:
        yield from _message(value, tools, where)


def _tools(value: Any) -> list[Any] | None:
    found = value.get("tools") if isinstance(value, dict) else None
    if found is None and isinstance(value, dict):
        found = value.get("functions")
    return found if isinstance(found, list) else None


def _record(value: dict[str, Any], where: str) -> Saved:
    """Our own record, or a case."""
    if "response_template" in value:
        return Unreadable(where, "a case with a template of its own")
    try:
        recorded, events = None, None
        text = bytes_of(value, "text") if "text_base64" in value else encodable(value["text"])
        if isinstance(value.get("events"), list):
            events = tuple(from_record(record) for record in value["events"])
            recorded = outcome_of(events)
        elif isinstance(value.get("expect"), dict):
            recorded = _expected(value["expect"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Unreadable(where, str(error) or type(error).__name__)
    options = value.get("options") or {}
    finish = value.get("finish_reason", "stop")
    if not isinstance(options, dict) or not isinstance(finish, str | None):
        return Unreadable(where, "options must be an object, finish_reason a text or null")
    tools, model = value.get("tools"), _word(value.get("model"))
    return Response(text, tools, options, finish, model, _word(value.get("id")), recorded, events, where)


def _expected(expect: dict[str, Any]) -> Outcome:
    calls = tuple(Seen(call["name"], canonical(call["arguments"])) for call in expect.get("calls", []))
    rejected = tuple((str(one["reason"]), one.get("name")) for one in expect.get("rejected", []))
    return Outcome(calls, rejected)


def _choice(choice: dict[str, Any], whole: dict[str, Any], id: str, tools: list[Any] | None, where: str) -> Saved:
    message = choice.get("message")
    if not isinstance(message, dict):
        message = {"content": choice.get("text")}
    return _reply(
        message, choice.get("finish_reason", "stop"), _word(whole.get("model")), id, _tools(whole) or tools, where
    )


def _message(message: dict[str, Any], tools: list[Any] | None, where: str) -> Iterator[Saved]:
    """The response in one message of a chat; other roles hold none."""
    if message.get("role") == "assistant":
        finish = message.get("finish_reason", message.get("stop_reason", "stop"))
        yield _reply(message, finish, _word(message.get("model")), _word(message.get("id")), tools, where)


def _reply(message: dict[str, Any], finish: Any, model: str, id: str, tools: list[Any] | None, where: str) -> Saved:
    content = message.get("content")
    structured = bool(message.get("tool_calls") or message.get("function_call"))
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        structured = structured or any(part.get("type") == "tool_use" for part in parts)
        content = "".join(str(part.get("text") or "") for part in parts if part.get("type") in _TEXT_PARTS)
    if not isinstance(content, str | None) or not isinstance(finish, str | None):
        return Unreadable(where, "a message whose content is no text")
    # A response that carries structured calls is not searched for more of them.
    options = {"recover": False} if structured else {}
    return Response(encodable(content or ""), tools, options, finish, model, id, Outcome(), None, where)


def _word(value: Any) -> str:
    return encodable(value) if isinstance(value, str) else ""


def _is_chunk(value: Any) -> bool:
    choices = value.get("choices") if isinstance(value, dict) else None
    return isinstance(choices, list) and (
        value.get("object") == "chat.completion.chunk"
        or any(isinstance(choice, dict) and "delta" in choice for choice in choices)
    )


class _Chunks:
    """Joins streamed chunks to responses, one for each id and choice."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], dict[str, Any]] = {}

    def add(self, chunk: dict[str, Any], where: str) -> Iterator[Saved]:
        """Take one chunk; the response comes with its finish reason."""
        for choice in chunk["choices"]:
            if not isinstance(choice, dict) or not isinstance(choice.get("delta", {}), dict):
                continue
            index = choice["index"] if isinstance(choice.get("index"), int) else 0
            key = (_word(chunk.get("id")), index)
            one = self._open.setdefault(key, {"parts": [], "calls": False, "model": "", "where": where})
            delta = choice.get("delta") or {}
            if isinstance(delta.get("content"), str):
                one["parts"].append(delta["content"])
            one["calls"] = one["calls"] or bool(delta.get("tool_calls") or delta.get("function_call"))
            one["model"] = one["model"] or _word(chunk.get("model"))
            if choice.get("finish_reason") is not None:
                yield self._closed(key, choice["finish_reason"])

    def rest(self) -> Iterator[Saved]:
        """Responses whose streams broke off."""
        for key in list(self._open):
            yield self._closed(key, None)

    def _closed(self, key: tuple[str, int], finish: Any) -> Saved:
        one = self._open.pop(key)
        message = {"content": "".join(one["parts"]), "tool_calls": one["calls"]}
        return _reply(message, finish, one["model"], key[0] + f"/{key[1]}" * bool(key[1]), None, one["where"])
