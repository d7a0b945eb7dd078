"""The nine guarantees, each a property over all cases and over texts made to break it, with all grammars on."""

from __future__ import annotations

import copy
import json
import pickle
import zlib
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.literals import marker_literals
from streamscrub import StreamScrubber, scrub
from streamscrub.events import ArgumentsDelta, CallStarted, Dropped, Event, Reasoning, Text, ToolCall
from streamscrub.limits import MAX_HEADER

from . import naive
from .feeding import check_invariants, feed_all_ways, merged, prefix_events, random_parts, run, scrub_all_ways, wire_of
from .strategies import (
    TOOLS,
    byte_streams,
    calls,
    composed,
    finish_reasons,
    harmless_texts,
    responses,
    surrogate_texts,
    tool_lists,
)
from .test_cases import all_cases

LONGEST_MARKER: Final = max((len(literal.encode()) for literal in marker_literals()), default=64)
SPECIAL: Final = tuple(
    literal
    for literal in marker_literals()
    if (literal.startswith("<|") and literal.endswith("|>")) or (literal.startswith("<｜") and literal.endswith("｜>"))
)


# G1 chunk independence, strong form


@given(responses(), tool_lists(), finish_reasons())
def test_g1_the_events_do_not_depend_on_the_cut(text: str, tools: Any, finish: str | None) -> None:
    feed_all_ways(text, tools, finish)


@given(responses(8), tool_lists())
def test_g1_the_events_after_every_prefix_depend_on_the_prefix_alone(text: str, tools: Any) -> None:
    prefix_events(text[:300], tools)


@given(responses(), st.sampled_from(["auto", "open", "off"]), st.booleans(), finish_reasons())
def test_g1_holds_for_progress_events_and_reasoning_modes(
    text: str, reasoning: str, progress: bool, finish: str | None
) -> None:
    feed_all_ways(text, TOOLS, finish, reasoning=reasoning, progress=progress)


@given(responses(), st.sampled_from(["drop", "cut", "keep"]), st.booleans())
def test_g1_holds_for_the_other_options(text: str, fabricated: str, recover: bool) -> None:
    feed_all_ways(text, TOOLS, on_fabricated=fabricated, recover=recover)


def test_g1_progress_changes_no_other_event() -> None:
    for case in all_cases()[::7]:
        plain, _ = run([case["text"]], case["tools"], case["finish_reason"], **case["options"])
        told, _ = run([case["text"]], case["tools"], case["finish_reason"], progress=True, **case["options"])
        assert quiet(told) == quiet(plain), case["id"]


def quiet(events: list[Event]) -> list[Event]:
    """The events that are neither progress nor calls, whose numbers progress may change."""
    return merged(event for event in events if isinstance(event, (Text, Reasoning, Dropped)))


# G2 no leak


@given(st.lists(responses(3), max_size=4), st.sampled_from(SPECIAL or ("<|im_end|>",)), tool_lists())
def test_g2_no_special_marker_is_shown_outside_protected_code(parts: list[str], marker: str, tools: Any) -> None:
    text = marker.join(part.replace("`", "'").replace("~", "-") for part in parts)
    result = scrub_all_ways(text, tools)
    assert [event for event in result.events if isinstance(event, Text) and marker in event.text] == []


@given(composed())
def test_g2_no_byte_of_a_block_is_shown(segments: list[naive.Segment]) -> None:
    text, reading = naive.compose(segments)
    assert reading.text == scrub_all_ways(text, TOOLS).text


@given(calls(), st.data())
def test_g2_a_call_cut_anywhere_shows_nothing_of_itself(call: naive.Call, data: st.DataObject) -> None:
    block = naive.write(call)
    cut = data.draw(st.integers(1, len(block)))
    result = scrub_all_ways("Looking. " + block[:cut], TOOLS, "length")
    shown = result.text.removeprefix("Looking. ")
    # Up to two characters of a marker at the end are text: nobody can tell `<` from a marker cut after one byte.
    assert block[:cut].endswith(shown)
    assert len(shown) <= 2


# G3 nothing lost, nothing doubled


@given(byte_streams(), tool_lists(), finish_reasons())
def test_g3_the_spans_tile_the_wire(data: bytes, tools: Any, finish: str | None) -> None:
    feed_all_ways(data, tools, finish)  # which checks the tiling


@given(responses(), tool_lists())
def test_g3_the_pieces_joined_are_the_input(text: str, tools: Any) -> None:
    wire = wire_of(text)
    events, _ = run([wire], tools)
    pieces = []
    for event in events:
        assert not isinstance(event, (CallStarted, ArgumentsDelta))
        pieces.append(event.text.encode() if isinstance(event, (Text, Reasoning)) else event.raw)
    assert wire == b"".join(pieces)


# G4 exactly once


@given(composed())
def test_g4_each_call_is_reported_once_and_in_order(segments: list[naive.Segment]) -> None:
    text, reading = naive.compose(segments)
    result = scrub_all_ways(text, TOOLS)
    assert reading.calls == [(call.name, call.arguments) for call in result.calls]
    assert list(range(len(reading.calls))) == [call.number for call in result.calls]


@given(composed())
def test_g4_the_library_and_the_naive_program_read_the_same(segments: list[naive.Segment]) -> None:
    text, reading = naive.compose(segments)
    naively = naive.scrub(text)
    assert reading == naively
    result = scrub(text, TOOLS)
    assert (naively.text, naively.reasoning.split(), naively.calls) == (
        result.text,
        result.reasoning.split(),
        [(call.name, call.arguments) for call in result.calls],
    )


@given(responses(), tool_lists(), finish_reasons())
def test_g4_batch_and_stream_agree(text: str, tools: Any, finish: str | None) -> None:
    streamed, _ = run(list(text), tools, finish)
    assert streamed == merged(scrub(text, tools, finish_reason=finish).events)


# G5 plain text is untouched


@given(harmless_texts(), finish_reasons())
def test_g5_text_without_markup_passes_byte_for_byte(text: str, finish: str | None) -> None:
    result = scrub_all_ways(text, TOOLS, finish)
    assert text == result.text
    assert all(isinstance(event, Text) for event in result.events)


@given(surrogate_texts(), tool_lists(), finish_reasons())
def test_g5_surrogates_join_or_are_replaced_at_the_same_place(text: str, tools: Any, finish: str | None) -> None:
    feed_all_ways(text, tools, finish)


def test_g5_a_surrogate_pair_cut_over_two_deltas_joins() -> None:
    scrubber = StreamScrubber()
    events = [*scrubber.feed("a\ud83d"), *scrubber.feed("\ude00b"), *scrubber.finish("stop")]
    assert [Text("a\U0001f600b", (0, 6))] == merged(events)


@pytest.mark.parametrize(
    "case", [c for c in all_cases() if c["family"] == "plain" and c.get("exact")], ids=lambda c: c["id"]
)
def test_g5_benign_cases_pass_without_their_tools_too(case: dict[str, Any]) -> None:
    if case["expect"]["text"] == case["text"]:
        assert case["text"] == scrub_all_ways(case["text"], [], case["finish_reason"], **case["options"]).text


# G6 earliest release


@given(harmless_texts())
def test_g6_plain_text_is_not_held_beyond_the_longest_marker(text: str) -> None:
    scrubber = StreamScrubber(TOOLS)
    for character in text:
        scrubber.feed(character)
        assert len(scrubber.held) < LONGEST_MARKER + MAX_HEADER


def test_g6_a_delta_without_a_lead_is_shown_at_once() -> None:
    scrubber = StreamScrubber(TOOLS)
    for delta in ("The ", "answ", "er, ", "is 4", "2 an", "d a ", "half"):
        assert delta == "".join(event.text for event in scrubber.feed(delta) if isinstance(event, Text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a < b", "a < b"),
        ("a <zz", "a <zz"),
        ("x<tool_box", "x<tool_box"),
        ("see array[0] ", "see array[0] "),
        ("in `code` we", "in `code` we"),
        ("```python\nprint(1)\nx", "```python\nprint(1)\nx"),
        ("one\ntwo", "one\ntwo"),
    ],
)
def test_g6_what_can_be_no_markup_any_more_is_released(text: str, shown: str) -> None:
    released = [[event for event in events if isinstance(event, Text)] for events in prefix_events(text, TOOLS)]
    assert shown == "".join(event.text for event in released[-1])


# G7 linear: tests/test_limits.py


@given(responses(), tool_lists())
def test_g7_what_is_held_is_what_no_event_covers(text: str, tools: Any) -> None:
    run(list(text), tools, wire=wire_of(text))


# G8 no crash


@given(st.binary(max_size=200), finish_reasons())
def test_g8_no_bytes_raise(data: bytes, finish: str | None) -> None:
    feed_all_ways(data, TOOLS, finish)


@pytest.mark.parametrize("chunk", [None, 1, ["a"], {"text": "a"}])
def test_g8_feeding_another_type_is_a_type_error(chunk: Any) -> None:
    with pytest.raises(TypeError):
        StreamScrubber().feed(chunk)


def test_g8_feeding_after_the_finish_is_a_value_error() -> None:
    scrubber = StreamScrubber()
    scrubber.finish("stop")
    with pytest.raises(ValueError, match="finish"):
        scrubber.feed("a")


@pytest.mark.parametrize("tools", ["find", 3, [3], [{"nonsense": 1}], [{"name": 5}], {"name": "find"}])
def test_g8_bad_tool_records_are_named(tools: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        StreamScrubber(tools)


def test_g8_an_unknown_grammar_names_the_near_one() -> None:
    with pytest.raises(ValueError, match="hermes"):
        StreamScrubber(grammars=["hermse"])


@pytest.mark.parametrize(
    "options",
    [{"reasoning": "loud"}, {"on_fabricated": "burn"}, {"max_call_bytes": -1}, {"prefill": 3}, {"grammars": 3}],
)
def test_g8_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        StreamScrubber(**options)


# G9 never run what was not asked


@given(calls(), st.data())
def test_g9_a_truncated_call_is_never_a_call(call: naive.Call, data: st.DataObject) -> None:
    block = naive.write(call)
    body_end = len(block) - len(call.form.close)
    cut = data.draw(st.integers(1, max(1, body_end - 40)))
    for finish in ("length", None):
        result = scrub_all_ways(block[:cut], TOOLS, finish)
        assert [c for c in result.calls if c.arguments != call.arguments] == []


@given(calls().filter(lambda call: "```" not in naive.write(call) and "~~~" not in naive.write(call)))
def test_g9_a_call_in_a_language_fence_is_never_a_call(call: naive.Call) -> None:
    text = f"Like this:\n```text\n{naive.write(call)}\n```\nDone."
    result = scrub_all_ways(text, TOOLS)
    assert text == result.text
    assert result.calls == []


@given(calls().filter(lambda call: call.form.open.startswith("<tool_call") and "think>" not in naive.write(call)))
def test_g9_a_soft_call_inside_closed_reasoning_is_never_a_call(call: naive.Call) -> None:
    result = scrub_all_ways(f"<think>Maybe {naive.write(call)} or not.</think>No.", TOOLS)
    assert result.text == "No."
    assert result.calls == []


@given(calls())
def test_g9_a_name_that_was_not_offered_is_never_a_call(call: naive.Call) -> None:
    other = [{"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
    for tools in (other, []):
        assert scrub_all_ways(naive.write(call), tools).calls == []


@given(responses(), st.sampled_from(["stop", "length"]))
def test_g9_no_call_has_a_name_that_was_not_offered(text: str, finish: str) -> None:
    offered = {tool["name"] for tool in TOOLS}
    assert {call.name for call in scrub_all_ways(text, TOOLS, finish).calls} <= offered
    assert scrub_all_ways(text, [], finish).calls == []
    assert scrub_all_ways(text, TOOLS, finish, recover=False).calls == []


@given(responses())
def test_repairs_are_told(text: str) -> None:
    for call in scrub_all_ways(text, TOOLS).calls:
        assert call.repaired == bool(call.repairs)
        if not call.repairs:
            assert call.name.encode() in call.raw


# A scrubber is a value


@given(responses(), st.integers(0, 400))
def test_a_copy_made_anywhere_goes_on_alike(text: str, at: int) -> None:
    scrubber = StreamScrubber(TOOLS)
    before = scrubber.feed(text[:at])
    twins = [copy.deepcopy(scrubber), pickle.loads(pickle.dumps(scrubber)), scrubber]
    endings = [merged([*before, *twin.feed(text[at:]), *twin.finish("stop")]) for twin in twins]
    check_invariants(endings[0], wire_of(text))
    assert endings[0] == endings[1] == endings[2]


def test_the_same_stream_twice_gives_the_same_events() -> None:
    for case in all_cases()[:: 1 + zlib.crc32(b"twice") % 5]:
        once, again = (repr(scrub(case["text"], case["tools"]).events) for _ in range(2))
        assert once == again


def test_arguments_are_plain_json() -> None:
    for case in all_cases():
        for event in scrub(case["text"], case["tools"], finish_reason=case["finish_reason"], **case["options"]).events:
            if isinstance(event, ToolCall):
                assert event.arguments == json.loads(json.dumps(event.arguments, allow_nan=False))


STRING_PIECES = st.sampled_from(
    (
        *('\\"', "\\\\", "\\n", "\\", '"', "<", "</", "</tool", "a", "plain words ", "'", "\n"),
        *("\u00e9", "\u4e2d\uff5c", "\U0001f600", "\ud83d", "\ude00", "\u201c", "\u20ac{"),
    )
)


@settings(max_examples=300)
@given(st.lists(STRING_PIECES, max_size=30), st.integers(0, 2**32), st.sampled_from(["", '"}}</tool_call> end']))
def test_g1_inside_a_long_string_deltas_may_end_anywhere(pieces: list[str], seed: int, rest: str) -> None:
    """Escapes, quotes, closers and surrogates halved by deltas, where most deltas go by unread."""
    text = '<tool_call>{"name": "ping", "arguments": {"note": "' + "".join(pieces) + rest
    whole, _ = run([text])
    for most in (1, 2, 3, 5, 9):
        assert run(random_parts(text, seed, most), wire=wire_of(text))[0] == whole
