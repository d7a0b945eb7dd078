"""Wrong use of the public surface: a ``TypeError`` or ``ValueError`` that says what was meant."""

from __future__ import annotations

from typing import Any, Final

import pytest

from streamscrub import StreamScrubber, Tool, ToolCall, scrub

OPTIONS: Final[list[tuple[dict[str, Any], type[Exception], str]]] = [
    ({"max_calls": "3"}, TypeError, "max_calls must be an int, not str"),
    ({"max_depth": True}, TypeError, "max_depth must be an int, not bool"),
    ({"max_call_bytes": 0}, ValueError, "max_call_bytes must be at least 1, not 0"),
    ({"strict": 1}, TypeError, "strict must be a bool, not int"),
    ({"recover": None}, TypeError, "recover must be a bool, not NoneType"),
    ({"progress": "yes"}, TypeError, "progress must be a bool, not str"),
    ({"model": 4}, TypeError, "model must be a str or None, not int"),
    ({"reasoning": None}, TypeError, "reasoning must be one of auto, open, off, not NoneType"),
    ({"reasoning": "on"}, ValueError, "reasoning must be one of auto, open, off, not 'on'"),
    ({"on_fabricated": "fold"}, ValueError, "on_fabricated must be one of drop, cut, keep, not 'fold'"),
    ({"prefill": 3}, TypeError, "prefill must be str or bytes, not int"),
]


@pytest.mark.parametrize(("options", "error", "said"), OPTIONS)
def test_options_that_are_wrong(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        StreamScrubber([], **options)


def test_chunks_and_ends_that_are_wrong() -> None:
    scrubber = StreamScrubber([])
    wrong: list[Any] = [None, 3, ["a"], object()]
    for chunk in wrong:
        with pytest.raises(TypeError, match="feed takes str or bytes, not"):
            scrubber.feed(chunk)
    reason: Any = 3
    with pytest.raises(TypeError, match="finish_reason must be a str or None, not int"):
        scrubber.finish(reason)
    assert scrubber.feed("Hi.") != []
    scrubber.finish("stop")
    with pytest.raises(ValueError, match="feed after finish"):
        scrubber.feed("x")


class Word(str):
    """A text of a tokenizer's own type."""


def test_every_kind_of_text_and_bytes_is_taken() -> None:
    wire = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    raw = wire.encode()
    for parts in ([Word(wire[:9]), Word(wire[9:])], [bytearray(raw[:9]), memoryview(raw)[9:]], [raw[:20], wire[20:]]):
        scrubber = StreamScrubber([Tool("ping")])
        events = [event for part in parts for event in scrubber.feed(part)]  # type: ignore[arg-type]
        calls = [event for event in events + scrubber.finish("stop") if isinstance(event, ToolCall)]
        assert [call.name for call in calls] == ["ping"]


def test_half_a_surrogate_pair_before_bytes_is_replaced() -> None:
    scrubber = StreamScrubber([])
    events = scrubber.feed("a\ud83d") + scrubber.feed(b"b") + scrubber.finish("stop")
    assert "".join(event.text for event in events if hasattr(event, "text")) == "a\ufffdb"


# A tool that only stands for a call

TOOLS: Final = [{"name": "note", "parameters": {"properties": {"text": {"type": "string"}}}}]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('{"name": "note", "arguments": {"text": "a"}}', {"text": "a"}),
        ('{"name": "note", "arguments": "{\\"text\\": \\"a\\"}"}', {"text": "a"}),
        ('{"name": "note", "arguments": ""}', {}),
        ('{"name": "note", "text": "a"}', {"text": "a"}),
        ('{"call": {"name": "note", "arguments": {"text": "a"}}}', {"text": "a"}),
        ('{"note": {"text": "a"}}', {"text": "a"}),
        ('{"note": "{\\"text\\": \\"a\\"}"}', {"text": "a"}),
        ('{"name": "note", "arguments": "not json"}', None),
        ('{"name": "note", "arguments": [1]}', None),
        ('{"name": "rm", "arguments": {}}', None),
        ('{"other": {"name": "note", "arguments": {}}}', None),
        ("[1]", None),
    ],
)
def test_a_pseudo_tool_gives_way_to_the_call_in_it(arguments: str, found: dict[str, Any] | None) -> None:
    result = scrub(f'<tool_call>{{"name": "tool_call", "arguments": {arguments}}}</tool_call>', TOOLS)
    assert [call.arguments for call in result.calls] == ([] if found is None else [found])
    assert len(result.rejected) == (found is None)


def test_a_pseudo_tool_in_tags_gives_way_too() -> None:
    parts = ("name", "note"), ("arguments", '{"text": "a"}')
    inner = "".join(f'<parameter name="{key}">{value}</parameter>' for key, value in parts)
    (call,) = scrub(f'<invoke name="call_tool">{inner}</invoke>', TOOLS).calls
    assert (call.name, call.arguments) == ("note", {"text": "a"})
    assert [repair.kind for repair in call.repairs] == ["unwrapped"]
