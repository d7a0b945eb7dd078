"""Thin records of a conversation: calls, results and transcript entries. A host maps its own field by field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from ..events import ToolCall

_MIME: Final = re.compile(r"[\w.+-]++/[\w.+-]++")

# What a result is called whose call is not known.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Call:
    """One call. ``arguments`` is an object, or the JSON text of one, which is then kept as it is.

    ``extra_content`` is what a provider wants back beside the call, such as a signature of its thoughts.
    """

    name: str
    arguments: dict[str, Any] | str
    id: str = ""
    extra_content: dict[str, Any] | None = None

    def object(self) -> dict[str, Any]:
        """The arguments as an object. Raises ``ValueError`` if their text is none: they are never taken for ``{}``."""
        if isinstance(self.arguments, dict):
            return self.arguments
        try:
            value = json.loads(self.arguments or "{}")
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ValueError(f"the arguments of {self.name!r} are no JSON object")
        return value

    def text(self) -> str:
        """The arguments as JSON text: the text that was given, or compact JSON."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call. ``index`` is the place of the call among those of its turn, None if that is not known.

    A ``trusted_verbatim`` result is sent as it is, alone in a message of its own: only for texts that the host wrote.
    ``images`` are the provider's blocks for them, which go with the text and never into it. ``extra_metadata`` are
    other keys of the provider's message.
    """

    id: str = ""
    name: str = ""
    text: str = ""
    is_error: bool = False
    index: int | None = None
    trusted_verbatim: bool = False
    images: tuple[dict[str, Any], ...] = ()
    extra_metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """A message without calls, of any role."""

    role: str
    content: str
    reasoning_content: str | None = None
    extra_metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AssistantToolCalls:
    """A turn of the model with calls.

    ``text`` is what it wrote: for a text dialect the raw reply, calls included. ``reasoning_content`` goes back word
    for word where a provider wants it.
    """

    text: str | None
    calls: tuple[Call, ...]
    reasoning_content: str | None = None
    extra_metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolResults:
    """The results of one turn's calls, in the order in which they are shown."""

    results: tuple[ToolResult, ...]


TranscriptEntry: TypeAlias = Chat | AssistantToolCalls | ToolResults


def call_of(record: Any) -> Call:
    """A call out of a ``Call``, a ``ToolCall``, (name, arguments), or a provider's record.

    >>> call_of({"id": "c1", "function": {"name": "ping", "arguments": "{}"}})
    Call(name='ping', arguments='{}', id='c1', extra_content=None)
    """
    if isinstance(record, Call):
        return record
    if isinstance(record, ToolCall):
        return Call(record.name, record.arguments)
    if isinstance(record, tuple):
        name, arguments = record
        return Call(name, arguments)
    if not isinstance(record, Mapping):
        raise TypeError(f"a call is a Call, a ToolCall, (name, arguments) or a dict, not {type(record).__name__}")
    told = record["function"] if isinstance(record.get("function"), Mapping) else record
    arguments = told.get("arguments", told.get("input"))
    if arguments is None:
        arguments = {}
    if not isinstance(told.get("name"), str) or not isinstance(arguments, dict | str):
        raise ValueError("a call needs a name, and arguments that are an object or its JSON text")
    return Call(told["name"], arguments, _word(record, "id"), record.get("extra_content"))


def _word(record: Mapping[str, Any], key: str) -> str:
    """A name or an id, "" where there is none."""
    word = record.get(key)
    if not isinstance(word, str | None):
        raise TypeError(f"{key!r} is a string, not {type(word).__name__}")
    return word or ""


def result_of(record: Any) -> ToolResult:
    """A result out of a ``ToolResult``, a dict of its fields, or a message of the role ``tool``.

    >>> result_of({"role": "tool", "tool_call_id": "c1", "content": "up"})
    ToolResult(id='c1', name='', text='up', is_error=False, index=None, trusted_verbatim=False, images=(), \
extra_metadata=None)
    """
    if isinstance(record, ToolResult):
        return record
    if not isinstance(record, Mapping):
        raise TypeError(f"a result is a ToolResult or a dict, not {type(record).__name__}")
    content = record.get("text", record.get("content"))
    return ToolResult(
        _word(record, "id") or _word(record, "tool_call_id"),
        _word(record, "name"),
        text_of_content(content, images=False),
        record.get("is_error") is True or record.get("status") == "error",
        record.get("index"),
        record.get("trusted_verbatim") is True,
        (*(one for one in record.get("images", ()) if isinstance(one, dict)), *images_of_content(content)),
    )


def entry_of(record: Any) -> TranscriptEntry:
    """An entry out of one, or out of a message: a dict with ``role``, and ``calls`` or ``tool_calls`` if it calls."""
    if isinstance(record, Chat | AssistantToolCalls | ToolResults):
        return record
    if not isinstance(record, Mapping) or not isinstance(record.get("role"), str):
        raise TypeError("a message is a dict with a role, or one of the transcript records")
    content = record.get("content")
    calls = record.get("calls") or record.get("tool_calls") or ()
    reasoning = record.get("reasoning_content", record.get("thinking"))
    reasoning = reasoning if isinstance(reasoning, str) else None
    if record["role"] in ("tool", "function"):
        return ToolResults((result_of(record),))
    if record["role"] not in ("system", "developer", "user", "assistant"):
        raise ValueError(f"no role of a message: {record['role']!r}")
    if record["role"] == "assistant" and calls:
        text = None if content is None else text_of_content(content)
        return AssistantToolCalls(text, tuple(map(call_of, calls)), reasoning)
    return Chat(record["role"], text_of_content(content), reasoning)


def entry_at(place: int, record: Any) -> TranscriptEntry:
    """The same for the message at ``place`` of a conversation, which an error names."""
    try:
        return entry_of(record)
    except (TypeError, ValueError) as error:
        raise type(error)(f"messages[{place}]: {error}") from None


def entries_of(messages: Iterable[Any]) -> list[TranscriptEntry]:
    """The entries of a conversation. Results in a row are one entry; each gets its call's name and index by its id."""
    entries: list[TranscriptEntry] = []
    places: Mapping[str, tuple[int, Call]] = {}
    row: list[ToolResult] = []
    for place, message in enumerate(messages):
        entry = entry_at(place, message)
        if isinstance(entry, ToolResults):
            row += [placed_in(places, result) for result in entry.results]
            continue
        if row:
            entries.append(ToolResults(tuple(row)))
            row = []
        if isinstance(entry, AssistantToolCalls):
            places = places_of(entry.calls)
        entries.append(entry)
    return [*entries, ToolResults(tuple(row))] if row else entries


def places_of(calls: tuple[Call, ...]) -> Mapping[str, tuple[int, Call]]:
    """The index and the call of each id; the first counts."""
    return {call.id: (index, call) for index, call in reversed([*enumerate(calls)]) if call.id}


def placed_in(places: Mapping[str, tuple[int, Call]], result: ToolResult) -> ToolResult:
    """The result with the name and the index of its call, as far as it does not say so itself."""
    if result.id not in places:
        return result
    index, call = places[result.id]
    return replace(result, name=result.name or call.name, index=index if result.index is None else result.index)


def text_of_content(content: Any, images: bool = True) -> str:
    """The text of a message: a string, or a list of blocks, where an image is named by its type, or with
    ``images=False`` left out.

    >>> text_of_content([{"type": "text", "text": "See "}, {"type": "image", "mime": "image/png"}])
    'See [Image: image/png]'
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise TypeError(f"the content of a message is a string or a list of blocks, not {type(content).__name__}")
    parts = []
    for block in content:
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            parts.append(block["text"])
        elif images and _is_image(block):
            parts.append(image_mark(block))
    return "".join(parts)


def images_of_content(content: Any) -> tuple[dict[str, Any], ...]:
    """The blocks of a message that are images, as they were given."""
    return tuple(block for block in content if _is_image(block)) if isinstance(content, list) else ()


def _is_image(block: Any) -> bool:
    return isinstance(block, Mapping) and "image" in str(block.get("type", "")) and "text" not in block


def image_mark(block: Mapping[str, Any]) -> str:
    """What stands for an image in a text. Its type is looked for where OpenAI, Anthropic, Gemini and MCP put it.

    >>> image_mark({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}})
    '[Image: image/png]'
    """
    for held in (block, block.get("source"), block.get("image_url"), block.get("inline_data")):
        if isinstance(held, str):
            held = {"url": held}
        if not isinstance(held, Mapping):
            continue
        for key in ("mime", "mimeType", "media_type", "mime_type"):
            if isinstance(held.get(key), str) and held[key]:
                return f"[Image: {held[key]}]"
        url = held.get("url")
        if isinstance(url, str) and url.startswith("data:") and (mime := _MIME.match(url, len("data:"))):
            return f"[Image: {mime[0]}]"
    return "[Image: image]"
