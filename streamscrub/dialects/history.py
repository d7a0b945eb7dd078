"""A conversation as it goes to the model: in text, in the provider's records, or as one string in a chat template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

from ..events import ToolCall
from ..host.structured import read_structured
from ..tools import Tool, read_tools
from ..writing import filled
from .boundary import with_closed_fence
from .forms import Form
from .prompts import wording
from .records import (
    AssistantToolCalls,
    Call,
    Chat,
    ToolResult,
    ToolResults,
    TranscriptEntry,
    entries_of,
    entry_at,
    image_mark,
    placed_in,
    places_of,
    text_of_content,
)

# -- text dialects


def encode(form: Form, messages: Iterable[Any], tools: Iterable[Any] | None = None) -> list[dict[str, Any]]:
    """The messages with their calls as text behind the prose, and results in a row as one turn of the user, with
    their images behind the text. A code fence that the prose leaves open is closed before the calls.

    Results stand in the order of their calls. Everything else comes back as it was given, so that a longer conversation
    begins with the same bytes. The reasoning of a turn with calls is left out. A call that cannot be written as it is,
    because its arguments do not fit its schema or need a repair, is written as the library reads it. Raises
    ``ValueError`` for a call that is not even read, or that the dialect cannot carry.
    """
    out: list[dict[str, Any]] = []
    places: Mapping[str, tuple[int, Call]] = {}
    pending: list[ToolResult] = []
    offered = read_tools(tools)
    for place, message in enumerate(messages):
        entry = entry_at(place, message)
        if isinstance(entry, ToolResults):
            pending += [placed_in(places, result) for result in entry.results]
            continue
        out += _turns(form, pending)
        pending = []
        if isinstance(entry, AssistantToolCalls):
            places = places_of(entry.calls)
            written = _written(form, entry.calls, offered)
            prose = with_closed_fence((entry.text or "").rstrip())
            out.append(
                {"role": "assistant", "content": f"{prose}\n{written}" if prose and written else prose + written}
            )
        else:
            out.append(_given(message) if isinstance(message, Mapping) else _plain(entry))
    return out + _turns(form, pending)


def _given(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message as it was, but for an empty list of calls, which providers refuse."""
    return {key: value for key, value in message.items() if value or key not in ("calls", "tool_calls")}


def _written(form: Form, calls: Sequence[Call], tools: tuple[Tool, ...] | None) -> str:
    """The calls of an earlier turn. What a model wrote once is no reason to stop: see ``encode``."""
    try:
        return form.render_calls(calls, tools)
    except ValueError:
        read = [again for call in calls for again in _as_read(form, call, tools)]
        if read == list(calls):
            raise
    return form.render_calls(read, tools)


def _as_read(form: Form, call: Call, tools: tuple[Tool, ...] | None) -> list[Call]:
    """The call, or where it cannot be written, what the library reads in its record."""
    try:
        form.render_calls([call], tools)
    except ValueError:
        known = tools if tools is not None and any(tool.name == call.name for tool in tools) else None
        events = read_structured([{"name": call.name, "arguments": call.arguments}], known)
        if all(isinstance(event, ToolCall) for event in events):
            return [replace(call, name=event.name or "", arguments=event.arguments or {}) for event in events]
    return [call]


def _turns(form: Form, results: list[ToolResult], replayed: bool = False) -> list[dict[str, Any]]:
    results = _in_order(form, results)
    messages = form.result_messages(map(_named, results), replayed=replayed) if results else []
    turns: list[dict[str, Any]] = [{"role": "user", "content": message} for message in messages]
    images = [image for result in results for image in result.images]
    if images:
        turns[-1]["content"] = [{"type": "text", "text": turns[-1]["content"]}, *images]
    return turns


def _in_order(form: Form, results: Sequence[ToolResult]) -> list[ToolResult]:
    """The results in the order of their calls, if all of these are known: in most envelopes it alone says whose it is.

    A chat template keeps the order of the messages, and so does the exact form.
    """
    if form.table.get("is_exact") or any(result.index is None for result in results):
        return list(results)
    return sorted(results, key=lambda result: result.index or 0)


def _named(result: ToolResult) -> ToolResult:
    """The result, where it has no text, with its images named: the envelope alone would say nothing."""
    return result if result.text else replace(result, text="".join(map(image_mark, result.images)))


def _plain(entry: Chat) -> dict[str, Any]:
    message: dict[str, Any] = {"role": entry.role, "content": entry.content}
    if entry.reasoning_content is not None:
        message["reasoning_content"] = entry.reasoning_content
    return {**message, **(entry.extra_metadata or {})}


def fold(form: Form, messages: Iterable[Any], tools: Iterable[Any] | None = None) -> list[dict[str, Any]]:
    """``encode``, and a turn of the user where there is none that asks for anything.

    Some chat templates raise an error for a conversation without a query; results are none. The turn stands right
    behind the leading system messages.
    """
    out = encode(form, messages, tools)
    if any(_asks(form, message) for message in out):
        return out
    start = next((place for place, one in enumerate(out) if one["role"] not in ("system", "developer")), len(out))
    return [*out[:start], {"role": "user", "content": wording()["continuation"]}, *out[start:]]


def _asks(form: Form, message: Mapping[str, Any]) -> bool:
    content = text_of_content(message.get("content"))
    head = str(form.table.get("results", "")).partition("{results}")[0].strip()
    results = bool(head and content.startswith(head)) or form.read_results(content) is not None
    return message["role"] == "user" and bool(content.strip()) and not results


def replay(form: Form, entries: Iterable[Any], tools: Iterable[Any] | None = None) -> list[dict[str, Any]]:
    """The messages of a transcript for a text dialect: the model's own text word for word, results by their ids.

    Where a turn has no text, because its calls came through the provider's channel, they are written.
    """
    out: list[dict[str, Any]] = []
    offered = read_tools(tools)
    for entry in entries_of(entries):
        if isinstance(entry, ToolResults):
            out += _turns(form, list(entry.results), replayed=True)
        elif isinstance(entry, AssistantToolCalls):
            text = entry.text if entry.text else _written(form, entry.calls, offered)
            out.append({"role": "assistant", "content": text})
        else:
            out.append(_plain(entry))
    return out


# -- the provider's records


def wire(entries: Iterable[Any]) -> list[dict[str, Any]]:
    """The messages of a transcript for a provider with tool calling.

    The text of the arguments, the reasoning and what the provider added to a call go back as they came.
    """
    out: list[dict[str, Any]] = []
    for entry in starmap(entry_at, enumerate(entries)):
        if isinstance(entry, ToolResults):
            out += map(_answer, entry.results)
        elif isinstance(entry, AssistantToolCalls):
            message: dict[str, Any] = {"role": "assistant", "content": entry.text}
            if entry.reasoning_content is not None:
                message["reasoning_content"] = entry.reasoning_content
            message["tool_calls"] = [_record(call) for call in entry.calls]
            out.append({**message, **(entry.extra_metadata or {})})
        else:
            out.append(_plain(entry))
    return out


def _answer(result: ToolResult) -> dict[str, Any]:
    content = [{"type": "text", "text": result.text}, *result.images] if result.images else result.text
    return {"role": "tool", "tool_call_id": result.id, "content": content, **(result.extra_metadata or {})}


def _record(call: Call) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text()},
    }  # fmt: skip
    return record if call.extra_content is None else {**record, "extra_content": call.extra_content}


def read_wire(messages: Iterable[Mapping[str, Any]]) -> list[TranscriptEntry]:
    """The inverse of ``wire``: what its fields cannot give back, such as a content of blocks, is ``extra_metadata``."""
    out: list[TranscriptEntry] = []
    row: list[ToolResult] = []
    for place, message in enumerate(messages):
        entry = entry_at(place, message)
        (made,) = wire([entry])
        other = {key: value for key, value in message.items() if key not in made or made[key] != value} or None
        if isinstance(entry, ToolResults):
            row.append(replace(entry.results[0], extra_metadata=other))
            continue
        if row:
            out.append(ToolResults(tuple(row)))
            row = []
        out.append(replace(entry, extra_metadata=other))
    return [*out, ToolResults(tuple(row))] if row else out


def pair_tool_cycles(entries: Sequence[TranscriptEntry]) -> list[TranscriptEntry]:
    """Only the whole cycles of calls and results, as providers demand it: for the native dialect, at the last moment.

    Calls are kept if the very next entry are their results: the same set of ids, and not the empty one. Results are
    kept behind kept calls only. Messages without calls are kept always.
    """
    out: list[TranscriptEntry] = []
    for place, entry in enumerate(entries):
        if (
            isinstance(entry, Chat)
            or (isinstance(entry, AssistantToolCalls) and _whole(entries, place))
            or (isinstance(entry, ToolResults) and place and _whole(entries, place - 1))
        ):
            out.append(entry)
    return out


def _whole(entries: Sequence[TranscriptEntry], place: int) -> bool:
    calls, results = entries[place], entries[place + 1] if place + 1 < len(entries) else None
    if not isinstance(calls, AssistantToolCalls) or not isinstance(results, ToolResults):
        return False
    ids = {call.id for call in calls.calls}
    return bool(ids) and ids == {result.id for result in results.results}


def cut_before(entries: Sequence[TranscriptEntry], at: int) -> int:
    """Where a history may be cut instead of before ``at``, so that no results lose their calls: at ``at`` or earlier.

    >>> cut_before([Chat("user", "hi"), AssistantToolCalls(None, ()), ToolResults(())], 2)
    1
    """
    at = min(max(at, 0), len(entries))
    start = at
    while 0 < start < len(entries) and isinstance(entries[start], ToolResults):
        start -= 1
    if start < at and not isinstance(entries[start], AssistantToolCalls):
        return at
    return start


# -- one string


def transcript(
    form: Form, messages: Iterable[Any], tools: Iterable[Any] | None = None, *, add_generation_prompt: bool = False
) -> str:
    """The whole conversation as one string in the chat template of the dialect's models.

    With ``add_generation_prompt`` it ends with what asks the model for its turn. Control tokens in the text of a user
    or a tool are made inert. Raises ``ValueError`` for a dialect that belongs to no model.
    """
    template: Mapping[str, Any] | None = form.table.get("transcript")
    if template is None:
        raise ValueError(f"{form.name} has no transcript: it is a protocol for any model's template")
    out = [template.get("start", "")]
    waiting = ""  # system text for the next turn of the user, where the template has no system turn
    offered = read_tools(tools)
    entries = entries_of(messages)
    if not entries or not _is_systems(entries[0]):
        out.append(template.get("default", ""))
    recent = _recent(template.get("recent"), entries)
    inside = "{blocks}" in template["assistant"]  # results stand in the turn that called
    for place, entry in enumerate(entries):
        after = entries[place + 1] if place + 1 < len(entries) else None
        if isinstance(entry, ToolResults):
            before = entries[place - 1] if place else None
            if not (inside and before is not None and _is_models(before)):
                around = template.get("results", "{blocks}")
                out.append(
                    _results(form, template.get("results_last", around) if after is None else around, entry.results)
                )
        elif isinstance(entry, Chat) and _is_systems(entry):
            if "system" in template:
                out.append(filled(template["system"], content=_trimmed(template, "system", entry.content)))
            else:
                waiting += entry.content + "\n"
        elif isinstance(entry, Chat) and entry.role != "assistant":
            said = _trimmed(template, "user", entry.content)
            out.append(filled(template["user"], content=waiting + form.turn.text(said)))
            waiting = ""
        else:
            results = after.results if inside and isinstance(after, ToolResults) else ()
            blocks = form.result_blocks(_in_order(form, results)) if results else ""
            out.append(_model_turn(form, template, entry, blocks, offered, _Place(entries, place, recent)))
    return "".join([*out, _opening(template, entries) if add_generation_prompt else ""])


def _opening(template: Mapping[str, Any], entries: Sequence[TranscriptEntry]) -> str:
    """What begins the model's next turn, or goes on with the one that waits for its results."""
    waits = len(entries) > 1 and isinstance(entries[-1], ToolResults) and _is_models(entries[-2])
    if waits and "resumed" in template:
        return str(template["resumed"]).partition("{")[0]
    return str(template.get("opening", template["assistant"].partition("{")[0]))


def _is_systems(entry: TranscriptEntry) -> bool:
    return isinstance(entry, Chat) and entry.role in ("system", "developer")


def _trimmed(template: Mapping[str, Any], part: str, text: str) -> str:
    """The text of a part without the blanks around it, where the template drops them."""
    if part == "thinking" and template.get("unlined"):
        return text.strip("\n")
    return text.strip() if part in template.get("trimmed", ()) else text


def _text(entry: TranscriptEntry) -> str:
    if isinstance(entry, ToolResults):
        return ""
    return (entry.text if isinstance(entry, AssistantToolCalls) else entry.content) or ""


def _recent(rule: str | None, entries: Sequence[TranscriptEntry]) -> int:
    """The first entry whose reasoning is kept: all, those behind the last query, or behind the last answer."""
    if rule is None:
        return 0
    role = "user" if rule == "query" else "assistant"
    kept = (place + 1 for place, entry in enumerate(entries) if isinstance(entry, Chat) and entry.role == role)
    return max(kept, default=0)


class _Place:
    """Where a turn of the model stands in a conversation."""

    def __init__(self, entries: Sequence[TranscriptEntry], place: int, recent: int) -> None:
        around = [one for one in entries[max(place - 2, 0) : place] if not isinstance(one, ToolResults)]
        behind = [one for one in entries[place + 1 : place + 3] if not isinstance(one, ToolResults)]
        self.recent = place >= recent
        self.last = place == len(entries) - 1
        self.resumed = bool(around) and _is_models(around[-1])
        # The model goes on: its next turn is there, or results ask for it.
        self.goes_on = _is_models(behind[0]) if behind else not self.last and not _text(entries[place])


def _is_models(entry: TranscriptEntry) -> bool:
    return isinstance(entry, AssistantToolCalls) or (isinstance(entry, Chat) and entry.role == "assistant")


def _results(form: Form, template: str, results: Sequence[ToolResult]) -> str:
    """A turn of results: ``{results}`` with what stands around all of them, ``{blocks}`` without."""
    results = [
        replace(result, text=result.text + "".join(map(image_mark, result.images)))
        for result in _in_order(form, results)
    ]
    if "{results}" in template:
        return filled(template, results=form.render_results(results))
    return filled(template, blocks=form.result_blocks(results))


def _model_turn(
    form: Form,
    template: Mapping[str, Any],
    entry: Chat | AssistantToolCalls,
    blocks: str,
    tools: tuple[Tool, ...] | None,
    place: _Place,
) -> str:
    calls = _written(form, entry.calls, tools) if isinstance(entry, AssistantToolCalls) else ""
    text = _trimmed(template, "text", _text(entry))
    if calls:
        calls = filled(template.get("calls", "{content}"), content=calls)
    thought = _trimmed(template, "thinking", entry.reasoning_content or "")
    thinking = form.render_thinking(thought) if place.recent else ""
    if thinking:
        thinking = filled(template.get("thinking", "{content}"), content=thinking)
    elif place.last and place.recent and "unthought_last" in template:
        thinking = template["unthought_last"]
    else:
        thinking = template.get("unthought", "")
    if thinking and template.get("unlined"):
        text = text.lstrip("\n")
    if text or not calls:
        answer = template.get("text", "{content}")
        text = filled(template.get("preamble", answer) if calls else answer, content=text)
    turn = template["resumed"] if place.resumed and "resumed" in template else template["assistant"]
    end = "" if place.goes_on else template.get("end", "")
    return filled(turn, thinking=thinking, text=text, calls=calls, blocks=blocks) + end
