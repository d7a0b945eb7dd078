"""Bodies in JSON, code, slots and loose objects: what is a call, what is malformed, and which repairs are told."""

from __future__ import annotations

from typing import Any

import pytest

from streamscrub import RejectedCall, StreamScrubber, Text, ToolCall
from streamscrub.bodies import BODIES
from streamscrub.bodies.base import Context
from streamscrub.jsontext import JsonReader
from streamscrub.names import Offer
from streamscrub.reading import DONE, MORE, Around
from streamscrub.tools import Tool

from .feeding import feed_all_ways
from .growth import assert_linear

TEXT = {"type": "string"}
WEATHER = Tool(
    "get_weather",
    {"type": "object", "properties": {"city": TEXT, "days": {"type": "integer"}}, "required": ["city"]},
)
NOOP = Tool("noop", {"type": "object", "properties": {}})
TOOLS = [WEATHER, NOOP]
OPEN, CLOSE = "<tool_call>", "</tool_call>"
GRAZ = '{"city":"Graz"}'


def read(text: str, finish: str = "stop") -> list[Any]:
    """``(name, arguments, kinds of repairs)`` of a call, ``(reason, name)`` of a rejected one; text as it is."""
    out: list[Any] = []
    for event in feed_all_ways(text, TOOLS, finish_reason=finish):
        if isinstance(event, ToolCall):
            out.append((event.name, event.arguments, [repair.kind for repair in event.repairs]))
        elif isinstance(event, RejectedCall):
            out.append((event.reason, event.name))
        elif isinstance(event, Text):
            out.append(event.text)
    return out


def kimi(identity: str, body: str = GRAZ) -> str:
    return f"<|tool_call_begin|>{identity}<|tool_call_argument_begin|>{body}<|tool_call_end|>"


def call(city: str, *kinds: str) -> list[Any]:
    return [("get_weather", {"city": city}, list(kinds))]


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        ("functions.ghost:0", "ghost"),
        ("ghost:0", "ghost"),
        ("functions.delete_city:3", "delete_city"),
        ("functions.call_taxi:1", "call_taxi"),
        ("decade", "decade"),
    ],
)
def test_a_name_that_is_not_offered_runs_no_other_tool(identity: str, name: str) -> None:
    assert read(kimi(identity)) == [("unknown_tool", name)]


@pytest.mark.parametrize(
    "identity",
    ["call_abc123", "toolu_01A9xZ", "3", "functions:3", "functions.:2", "chatcmpl-tool-9f8e7d", "deadbeefdeadbeef01"],
)
def test_a_nameless_id_takes_the_only_tool_that_accepts_the_object(identity: str) -> None:
    assert read(kimi(identity)) == call("Graz", "nameless")
    assert read(kimi(identity, '{"town":1}'))[0][0] == "unknown_tool"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"function":{"name":"get_weather"},"arguments":{"city":"Graz"}}', call("Graz")),
        ('{"type":"function","function":{"name":"get_weather","arguments":{"city":"Graz"}}}', call("Graz")),
        ('{"function":{"name":"get_weather"},"city":"Graz"}', call("Graz", "flattened")),
        ('{"name":"get_weather","city":"Graz"}', call("Graz", "flattened")),
        ('{"name":"get_weather","city":"Graz","foo":1}', [("malformed", "get_weather")]),
        ('{"name":"noop","foo":1}', [("malformed", "noop")]),
        ('{"name":"noop","id":"7"}', [("noop", {}, ["no_arguments"])]),
        ('{"name":"ghost","city":"Graz"}', [("unknown_tool", "ghost")]),
        ('{"name":"get_weather","arguments":[1]}', [("malformed", "get_weather")]),
        ('[{"name":"get_weather","arguments":{"city":"Graz"}}', call("Graz", "missing_bracket")),
    ],
)
def test_what_a_call_object_means(body: str, found: list[Any]) -> None:
    assert read(OPEN + body + CLOSE) == found


def test_a_foreign_key_beside_the_name_is_malformed_without_tools_too() -> None:
    scrubber = StreamScrubber()
    events = [*scrubber.feed(f'{OPEN}{{"name":"x","foo":1}}{CLOSE}'), *scrubber.finish("stop")]
    assert [event.reason for event in events if isinstance(event, RejectedCall)] == ["malformed"]


DEEPSEEK = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
DEEPSEEK_END = "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (f'{OPEN}\n```json\n{{"name":"get_weather","arguments":{GRAZ}}}\n```\n{CLOSE}', ["fence"]),
        (f'{OPEN}\n```json\n{{"name":"get_weather","arguments":{GRAZ}\n```\n{CLOSE}', ["missing_bracket", "fence"]),
        (f"{DEEPSEEK}{GRAZ}{DEEPSEEK_END}", []),
        (f"{DEEPSEEK}{GRAZ[:-1]}{DEEPSEEK_END}", ["missing_bracket", "fence"]),
    ],
)
def test_a_fence_around_a_body_is_no_part_of_it(text: str, kinds: list[str]) -> None:
    assert read(text) == call("Graz", *kinds)


def test_a_fence_never_closes_an_open_string() -> None:
    assert read(f'{OPEN}\n```json\n{{"name":"get_weather","arguments":{{"city":"Gr\n```\n{CLOSE}') == [
        ("malformed", "get_weather")
    ]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (GRAZ, call("Graz")),
        ('"{\\"city\\":\\"Graz\\"}"', call("Graz", "string_arguments")),
        ("[1]", [("malformed", "get_weather")]),
        ('"x"', [("malformed", "get_weather")]),
        ('"{\\"city\\":', [("truncated", "get_weather")]),
        ("[1", [("truncated", "get_weather")]),
    ],
)
def test_arguments_behind_a_header_without_a_closer(body: str, found: list[Any]) -> None:
    assert read(f"[TOOL_CALLS]get_weather[ARGS]{body}") == found


def test_a_malformed_array_does_not_swallow_the_text_behind_it() -> None:
    assert read("[TOOL_CALLS]get_weather[ARGS][1] Done.") == [("malformed", "get_weather"), "Done."]


def test_the_missing_bracket_of_an_array_is_a_repair_of_its_last_call() -> None:
    text = '[TOOL_CALLS][{"name":"noop","arguments":{}},{"name":"get_weather","arguments":{"city":"Graz"}}'
    assert read(text) == [("noop", {}, []), *call("Graz", "missing_bracket")]
    assert read(text + "]") == [("noop", {}, []), *call("Graz")]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('get_weather(city="Graz")', call("Graz")),
        ('get_weather(City="Graz")', call("Graz", "key")),
        ('get_weather(city="Graz", foo=1)', [("malformed", "get_weather")]),
        ('get_weather({"city":"Graz","foo":1})', [("malformed", "get_weather")]),
        ('get_weather(**{"city":"Graz","foo":1})', [("malformed", "get_weather")]),
        ("get_weather('Graz')", call("Graz")),
        ('print(print(get_weather(city="Graz")))', call("Graz")),
        ('print(get_weather(city="Graz")', [("malformed", "get_weather")]),
        ('const r = await get_weather({city: "Graz"}); // now', call("Graz")),
        ('get_weather(city="Graz")  # </tool_call', call("Graz")),
        ('get_weather(city="say "hi" now")', call('say "hi" now', "inner_quotes")),
        ('get_weather(city="""a "b" c""")', call('a "b" c')),
        ('get_weather(city=f"{x}")', [("malformed", "get_weather")]),
        ("noop(); noop()", [("noop", {}, []), ("noop", {}, [])]),
    ],
)
def test_calls_in_code(code: str, found: list[Any]) -> None:
    assert read(OPEN + code + CLOSE) == found


@pytest.mark.parametrize("text", ["{name: 'x', arguments: {y: 1,},}", '{"name": "x", "arguments":: "y", arguments:'])
def test_a_bare_key_is_whole_however_it_was_cut(text: str) -> None:
    feed_all_ways(text, None)


@pytest.mark.parametrize("arguments", [{"city": ""}, {"city": " \n"}, {"town": "Graz"}])
def test_slots_refuse_to_write_what_they_cannot_read_back(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="P-Format"):
        BODIES["pformat"].write("get_weather", arguments, {"slots": WEATHER.slots})


@pytest.mark.parametrize(
    ("syntax", "settings"),
    [
        ("json_call", {}),
        ("python_call", {}),
        ("python_call", {"style": "typescript"}),
        ("pformat", {"slots": WEATHER.slots}),
        ("loose_object", {"quotes": ('<|"|>',)}),
        ("glm_line", {}),
    ],
)
@pytest.mark.parametrize("city", ["Graz", 'a "b" | ] \\n c', "42"])
def test_what_is_written_is_read_back(syntax: str, settings: dict[str, Any], city: str) -> None:
    body = BODIES[syntax]
    raw = body.write("get_weather", {"city": city}, settings).encode()
    (written,) = body.decode(raw, "whole", Context(Offer((WEATHER,)), settings))
    arguments = written.arguments if written.texts is None else {key: text for key, (text, _) in written.texts.items()}
    assert (written.name, arguments, written.fault) == ("get_weather", {"city": city}, "")


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ('{"a": "}"} tail', 10),
        ('{"a": "say "hi" now"} tail', 21),
        ("{'a': 'it's'} tail", 13),
        ("{“a”: “b”} tail", len("{“a”: “b”}".encode())),
        ('{"a": 1, /* } */ "b": 2} tail', 24),
        ('{"a": [1, {"b": 2}} tail', 19),
        ("[] tail", 2),
    ],
)
def test_where_a_value_ends(text: str, end: int) -> None:
    raw = bytearray(text.encode())
    whole = JsonReader(0, Around())
    assert (whole.read(raw, len(raw), False), whole.at) == (DONE, end)
    bytewise, size = JsonReader(0, Around()), 1
    while bytewise.read(raw, size, False) == MORE:
        size += 1
    assert bytewise.at == end


@pytest.mark.parametrize(
    "unit",
    ["noop()\n", 'noop(a="x" # ")\n', '"', '" # b', "print(", "/* ", "x=", "1"],
)
def test_hostile_code_costs_linear_time(unit: str) -> None:
    def decode(size: int) -> None:
        raw = ("noop(b=" + unit * (size // len(unit))).encode()
        BODIES["python_call"].decode(raw, "closed", Context(Offer((NOOP,)), {}))

    assert_linear(lambda size: lambda: decode(size), repr(unit), sizes=(10_000, 50_000))
