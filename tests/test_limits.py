"""Hostile inputs: unclosed blocks, fillers that tempt a scanner to look twice, depth, huge values, broken encodings."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from fuzz.literals import marker_literals
from streamscrub import StreamScrubber, scrub
from streamscrub.events import Dropped, Event, RejectedCall, Text, ToolCall
from streamscrub.limits import MAX_CALL_BYTES, MAX_CALLS, MAX_DEPTH, MAX_HEADER, MAX_NAME

from .feeding import check_invariants, feed_all_ways, merged, random_parts, run, scrub_all_ways, wire_of
from .growth import assert_linear
from .strategies import TOOLS

MIB: Final = 1 << 20

# Fillers that make a scanner start something again and again.
FILLERS: Final = (
    "<",
    "<|",
    "</",
    "<｜",
    "`",
    "``` ",
    "\n```\n",
    "\n```python\n",
    '{"',
    '{"a":',
    "[",
    "[[",
    '["',
    "(",
    "<tool_call>",
    "</tool_call>",
    "<tool_call",
    "<tool_cal ",
    "<tool_call>{",
    '<tool_call>{"name": "find", "arguments": {}}',
    "<tool_call>\n<function=find>",
    "<function=find><parameter=q>",
    "<parameter=q>",
    "</parameter>",
    "<arg_key>q</arg_key>",
    "<tool_call>find\n<arg_key>q</arg_key>\n<arg_value>",
    '<invoke name="find">',
    '<parameter name="q">',
    "<function_calls>",
    '<|DSML|invoke name="find">',
    "<think>",
    "</think>",
    "<think></think>",
    "<find>",
    "<find><q>",
    "</find>",
    "<q></q>",
    "function_call:",
    "function_call:{",
    'function_call:{"name": "find", ',
    "\n{",
    '\n{"name": "find"',
    '\n{"name": "find", "arguments": {"q": "a"}} and\n',
    "\n[find(",
    "\n[find(q='a'), ",
    "\nfind{",
    "\nAction: find\n",
    "Action: find\nAction Input: {",
    "Observation:",
    "<tool_response>",
    "[TOOL_CALLS]",
    "[TOOL_CALLS]find[ARGS]",
    "[TOOL_CALLS][{",
    "[ARGS]",
    "<|im_start|>",
    "<|im_end|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>functions.find:0",
    "<|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>{",
    "<|channel|>",
    "<|start|>assistant",
    "<|channel|>commentary to=functions.find<|message|>",
    "<|channel|>analysis<|message|>a",
    "<|python_tag|>",
    "<|python_tag|>find(",
    "<tool_call>find[0|",
    "<tool_call>find(",
    "<![CDATA[",
    "&lt;",
    '\\"',
    '"',
    " ",
    "\n",
    "\r\n",
    "\t\n",
    "a\n",
    "a ",
    "x=",
    "find",
    "find ",
    "ping()\n",
    "tool_code",
    "~~~",
    "> ",
    "- ```\n",
    "<|<｜[`{",
    "｜",
    "\U0001f600",
    "\ud800",
)
# The same after an opener that makes them an argument.
OPENERS: Final = (
    '<tool_call>{"name": "find", "arguments": {"q": "',
    "<tool_call>\n<function=find>\n<parameter=q>\n",
    "<think>",
    "```python\n",
    "\n{",
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="find">\n<｜DSML｜parameter name="q" string="true">',
    "<tool_call>find\n<arg_key>q</arg_key>\n<arg_value>",
    '[TOOL_CALLS]find[ARGS]{"q": "',
    '<|channel|>commentary to=functions.find<|message|>{"q": "',
)


def stream(text: str, size: int = 4) -> None:
    scrubber = StreamScrubber(TOOLS)
    for at in range(0, len(text), size):
        scrubber.feed(text[at : at + size])
    scrubber.finish("stop")


def repeated(filler: str, size: int, opener: str = "") -> str:
    return opener + (filler * (size // len(filler) + 1))[:size]


# T3 a block that is never closed


@pytest.mark.parametrize(
    "opener",
    [
        '<tool_call>{"name": "find", "arguments": {"q": "',
        "<tool_call>\n<function=find>\n<parameter=q>\n",
        '<function_calls>\n<invoke name="find">\n<parameter name="q">',
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument_begin|>{"q": "',
    ],
)
def test_t3_a_block_that_is_never_closed_is_reported_once_and_not_kept(opener: str) -> None:
    chunk = "all work and no play " * 3121
    StreamScrubber(TOOLS)  # the tables of the grammars are built once a process
    tracemalloc.start()
    try:
        scrubber = StreamScrubber(TOOLS)
        reported = list(scrubber.feed(opener))
        for _ in range(32 * MIB // len(chunk)):
            events = scrubber.feed(chunk)
            reported += [event for event in events if not isinstance(event, Dropped)]
            assert len(scrubber.held) <= MAX_CALL_BYTES + MAX_HEADER
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    reported += [event for event in scrubber.finish("stop") if not isinstance(event, Dropped)]
    calls = [event for event in reported if isinstance(event, RejectedCall)]
    assert [call.reason for call in calls] == ["too_large"]
    assert [event for event in reported if isinstance(event, (ToolCall, Text))] == []
    assert peak <= 2.5 * MAX_CALL_BYTES + 2 * MIB


def test_t3_a_smaller_limit_is_obeyed_at_every_cut() -> None:
    text = "Hi " + '<tool_call>{"name": "find", "arguments": {"q": "' + "x" * 300 + '"}}</tool_call> there'
    result = scrub_all_ways(text, TOOLS, max_call_bytes=200)
    assert [call.reason for call in result.rejected] == ["too_large"]
    assert result.calls == []
    assert scrub_all_ways(text, TOOLS, max_call_bytes=2000).rejected == []


def test_t3_reasoning_and_fences_are_not_held() -> None:
    for opener in ("<think>", "```python\n", "~~~xml\n", ""):
        scrubber = StreamScrubber(TOOLS)
        scrubber.feed(opener)
        for _ in range(200):
            scrubber.feed("some words that go on\n" * 40)
            assert len(scrubber.held) <= 64 + MAX_HEADER


# T4 the time is linear in the bytes


@pytest.mark.parametrize("filler", FILLERS)
def test_t4_a_filler_costs_linear_time(filler: str) -> None:
    def run_at(size: int) -> Callable[[], None]:
        text = repeated(filler, size)
        return lambda: stream(text)

    assert_linear(run_at, repr(filler))


@pytest.mark.parametrize("opener", OPENERS)
def test_t4_fillers_in_an_open_block_cost_linear_time(opener: str) -> None:
    for filler in (
        "<",
        "</",
        '"',
        '\\"',
        "{",
        "a ",
        "\n",
        "</tool_call>",
        "</parameter>",
        "<parameter=q>",
        "</arg_value>",
        '"}}',
        "`",
    ):

        def run_at(size: int, filler: str = filler) -> Callable[[], None]:
            text = repeated(filler, size, opener)
            return lambda: stream(text, 16)

        assert_linear(run_at, f"{opener!r} + {filler!r}")


def test_t4_near_misses_of_all_markers_cost_linear_time() -> None:
    for kind in range(3):

        def run_at(size: int, kind: int = kind) -> Callable[[], None]:
            words = [[word[:-1], word[:-1] + "x", word[: len(word) // 2]][kind] for word in marker_literals()]
            text = repeated("".join(words) or "<tool_cal", size)
            return lambda: stream(text)

        # Several rounds over all markers even at the small size, which would else be a stretch that costs less.
        assert_linear(run_at, f"near misses {kind}", sizes=(20_000,))


@pytest.mark.parametrize("filler", ["<", "<tool_call>", "`", '{"', "<think>", "a ", "\n{"])
def test_t4_one_chunk_costs_linear_time(filler: str) -> None:
    def run_at(size: int) -> Callable[[], None]:
        text = repeated(filler, size)
        return lambda: stream(text, len(text))

    assert_linear(run_at, f"one chunk of {filler!r}")


@pytest.mark.parametrize("filler", FILLERS)
def test_t4_what_is_held_stays_below_the_limits(filler: str) -> None:
    scrubber = StreamScrubber(TOOLS, max_call_bytes=4096)
    for _ in range(3000):
        scrubber.feed(filler)
        assert len(scrubber.held) <= 4096 + 2 * MAX_HEADER + len(filler.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    "filler", ["<", "<|", "</", "[", "a ", "x=", "(", '"', "&lt;", "<tool_cal ", "｜", "array[0] ", "> "]
)
def test_t4_prose_is_held_no_longer_than_a_marker(filler: str) -> None:
    scrubber = StreamScrubber(TOOLS)
    for _ in range(500):
        scrubber.feed("w" + filler)
        assert len(scrubber.held) <= 64


@pytest.mark.parametrize("filler", FILLERS)
def test_t4_fillers_hold_every_guarantee(filler: str) -> None:
    for count in (1, 2, 7):
        for finish in ("stop", "length"):
            feed_all_ways(filler * count, TOOLS, finish)
            feed_all_ways(f"a{filler * count}b", TOOLS, finish)


# T7 depth


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


DEEP: Final = (
    "[",
    '{"a":',
    "(",
    '["',
    '<invoke name="find">',
    "<q>",
    "<find>",
    "<tool_call>[",
    "-",
    "not ",
    "lambda:",
    "{",
)


@pytest.mark.parametrize("piece", DEEP)
@pytest.mark.parametrize(
    "around",
    [
        ("", ""),
        ('<tool_call>{"name": "find", "arguments": ', "}</tool_call>"),
        ("<tool_call>\n<function=find>\n<parameter=limit>\n", "\n</parameter>\n</function>\n</tool_call>"),
        ("[find(q=", ")]"),
        ("```json\n", "\n```"),
        ("<|python_tag|>find(q=", ")"),
    ],
)
def test_t7_depth_neither_raises_nor_costs(piece: str, around: tuple[str, str]) -> None:
    def deep(length: int) -> str:
        return around[0] + piece * (length // len(piece)) + around[1]

    def read(text: str, size: int) -> list[Event]:
        scrubber = StreamScrubber(TOOLS)
        events: list[Event] = []
        for at in range(0, len(text), size):
            events += scrubber.feed(text[at : at + size])
        return events + scrubber.finish("stop")

    text = deep(100_000)
    for size in (len(text), 16_384):
        events = read(text, size)
        check_invariants(merged(events), wire_of(text))
        assert all(depth_of(event.arguments) <= MAX_DEPTH for event in events if isinstance(event, ToolCall))
    assert_linear(lambda length: lambda: read(deep(length), 16_384), repr(piece), sizes=(25_000,))


@pytest.mark.parametrize(("depth", "calls"), [(MAX_DEPTH - 2, 1), (MAX_DEPTH + 2, 0)])
def test_t7_arguments_deeper_than_the_limit_are_malformed(depth: int, calls: int) -> None:
    tool = {"name": "find", "parameters": {"type": "object", "properties": {"q": {}}}}
    text = '<tool_call>{"name": "find", "arguments": {"q": ' + "[" * depth + "]" * depth + "}}</tool_call>"
    result = scrub_all_ways(text, [tool])
    assert calls == len(result.calls)
    assert ["malformed"] * (1 - calls) == [call.reason for call in result.rejected]


# T8 blow-up


BLOW_UPS: Final = (
    '{"limit": ' + "9" * 100_000 + "}",
    '{"limit": 1e999999}',
    '{"limit": -1e999999}',
    '{"limit": NaN}',
    '{"limit": Infinity}',
    '{"q": "' + "\\u0041" * 20_000 + '"}',
    '{"q": "' + "\\ud83d\\ude00" * 5_000 + '"}',
    "{" + '"q": "a", ' * 20_000 + '"q": "b"}',
    '{"limit": 0x' + "f" * 5000 + "}",
    '{"limit": ' + "1_" * 5000 + "1}",
)


@pytest.mark.parametrize("arguments", BLOW_UPS, ids=lambda text: text[:24])
def test_t8_a_value_never_grows_beyond_its_text(arguments: str) -> None:
    for around in ('<tool_call>{"name": "find", "arguments": %s}</tool_call>', "[TOOL_CALLS]find[ARGS]%s", "%s"):
        text = around.replace("%s", arguments)
        events, _ = run([text], TOOLS)
        check_invariants(events, wire_of(text))
        for event in events:
            if isinstance(event, ToolCall):
                written = json.dumps(event.arguments, allow_nan=False)
                assert len(written) <= 3 * len(event.raw)


@pytest.mark.parametrize("index", ["999999999", "-1", "1e9", "9" * 5000])
def test_t8_a_positional_index_allocates_nothing(index: str) -> None:
    scrub_all_ways(f"<tool_call>find[{index}|x]</tool_call>", TOOLS)


def test_t8_numbers_out_of_json_are_never_passed_on_silently() -> None:
    for number in ("NaN", "Infinity", "-Infinity", "1e999999"):
        text = f'<tool_call>{{"name": "find", "arguments": {{"q": "a", "limit": {number}}}}}</tool_call>'
        result = scrub_all_ways(text, TOOLS)
        assert all(call.repairs for call in result.calls)
        assert len(result.calls) + len(result.rejected) == 1


def test_t8_calls_beyond_the_limit_are_rejected() -> None:
    block = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>\n'
    events, _ = run([block * (MAX_CALLS + 20)], TOOLS)
    assert len([event for event in events if isinstance(event, ToolCall)]) == MAX_CALLS
    assert {"too_many"} == {event.reason for event in events if isinstance(event, RejectedCall)}
    few = scrub_all_ways(block * 5, TOOLS, max_calls=2)
    assert (len(few.calls), [call.reason for call in few.rejected]) == (2, ["too_many"] * 3)


def test_t8_a_name_beyond_the_limit_is_no_name() -> None:
    for size in (MAX_NAME + 1, 5000):
        name = "f" * size
        for text in (
            f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>',
            f"<tool_call>\n<function={name}>\n</function>\n</tool_call>",
        ):
            assert scrub_all_ways(text, TOOLS).calls == []


# T9 surrogates


@pytest.mark.parametrize("half", ["\\ud800", "\\udc00", "\\ud83d\\u0041", "\\ude00\\ud83d", "\ud800"])
def test_t9_lone_surrogates_are_replaced_in_arguments_and_names(half: str) -> None:
    for text in (
        f'<tool_call>{{"name": "find", "arguments": {{"q": "a{half}b"}}}}</tool_call>',
        f'<tool_call>{{"name": "find", "arguments": {{"q{half}": "a"}}}}</tool_call>',
        f'<tool_call>{{"name": "fi{half}nd", "arguments": {{}}}}</tool_call>',
        f"<tool_call>\n<function=find>\n<parameter=q>\na{half}b\n</parameter>\n</function>\n</tool_call>",
        f"[find(q='a{half}b')]",
        f"<think>{half}</think>{half}",
    ):
        for tools in (TOOLS, None):
            feed_all_ways(text, tools)


def test_t9_a_lone_surrogate_in_an_argument_is_told() -> None:
    result = scrub_all_ways('<tool_call>{"name": "find", "arguments": {"q": "a\\ud800b"}}</tool_call>', TOOLS)
    assert [call.arguments for call in result.calls] == [{"q": "a\ufffdb"}]
    assert all(call.repairs for call in result.calls)


# T10 broken encodings


BROKEN: Final = (
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xf0\x9f\x98",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x80\x80",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\x85",
    "｜".encode()[:2],
    "▁".encode()[1:],
)


def places(piece: bytes) -> Iterator[bytes]:
    yield piece
    yield b"a" + piece + b"b"
    yield piece + b"<tool_call>"
    yield b"<" + piece + b"tool_call>"
    yield b'<tool_call>{"name": "find", "arguments": {"q": "' + piece + b'"}}</tool_call>' + piece
    yield b"<tool_call>\n<function=find>\n<parameter=q>\n" + piece + b"\n</parameter>\n</function>\n</tool_call>"
    yield b"<think>" + piece + b"</think>"
    yield b"```python\n" + piece + b"\n```"
    yield "<｜DSML".encode() + piece + "｜tool_calls>".encode()


@pytest.mark.parametrize("piece", BROKEN)
def test_t10_broken_utf8_is_replaced_at_the_same_place_whatever_the_cut(piece: bytes) -> None:
    for data in places(piece):
        for finish in ("stop", "length"):
            feed_all_ways(data, TOOLS, finish)


def test_t10_bytes_and_their_decoded_text_give_the_same() -> None:
    text = "Nø ｜ ▁ \U0001f600 <｜DSML｜x> \x00\ufeff"
    for seed in range(20):
        assert run(random_parts(text.encode(), seed, 3), TOOLS)[0] == run([text], TOOLS)[0]


def test_t10_nul_and_byte_order_mark_are_text() -> None:
    assert scrub_all_ways("\ufeffa\x00b").text == "\ufeffa\x00b"


def test_a_scrubber_is_made_of_any_tool_shape_and_reads_alike() -> None:
    name, parameters = "find", {"type": "object", "properties": {"q": {"type": "string"}}}
    shapes: list[dict[str, Any]] = [
        {"name": name, "parameters": parameters},
        {"type": "function", "function": {"name": name, "parameters": parameters}},
        {"name": name, "input_schema": parameters},
        {"name": name, "inputSchema": parameters},
    ]
    text = '<tool_call>{"name": "find", "arguments": {"q": "a"}}</tool_call>'
    assert [[call.arguments for call in scrub(text, [shape]).calls] for shape in shapes] == [[{"q": "a"}]] * 4


def test_wrappers_in_an_open_section_cost_no_recursion() -> None:
    for wrapper in ("<|tool_calls_section_begin|>", "<|open|>tools<|sep|>"):
        result = scrub("<think>x" + wrapper * 3000, [])
        assert (result.text, result.calls, result.reasoning) == ("", [], "x")
