"""Families that write calls as tags, pairs or framed messages: what their case files do not have."""

from __future__ import annotations

from typing import Any, Final

import pytest

from streamscrub import CallStarted, Scrubbed, StreamScrubber, ToolCall

from .feeding import scrub_all_ways
from .test_edges import _STRING, BONN, NOOP, TOOLS, tool

Calls = list[tuple[str, dict[str, Any]]]
Row = tuple[str, str, str, Calls, list[tuple[str, str | None]]]

HORIZON: Final = (
    "<ifm|tool_calls>\n<ifm|tool_call>weather\n<ifm|arg_key>city</ifm|arg_key>\n<ifm|arg_value>Bonn</ifm|arg_value>\n"
)
PLAMO: Final = (
    "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>weather<|plamo:end_tool_name:plamo|>"
    "<|plamo:begin_tool_arguments:plamo|>"
)
STEP: Final = "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
HY: Final = "<tool_call:x1>weather<tool_sep:x1><arg_key:x1>city</arg_key:x1><arg_value:x1>Bonn</arg_value:x1>"
ATEM: Final = '<atem:invoke name="weather"><atem:parameter name="city">Bonn</atem:parameter></atem:invoke>'
MUSE: Final = "<|start|>assistant to=weather<|message|>"
BEAM: Final = "<|start|>assistant to=weather<|channel|>analysis <|constrain|>xml<|message|>"
CITY: Final = '<rfl:parameter name="city">\nBonn\n</rfl:parameter>'

K3: Final = '<|open|>tools<|sep|><|open|>call tool="weather" index="1"<|sep|>'


def argument(key: str, value: str, kind: str = "string") -> str:
    return f'<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'


BONN_K3: Final = argument("city", "Bonn")
END_K3: Final = "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>"

NS: Final = "]<]minimax[>["
M3: Final = f'{NS}<tool_call>\n{NS}<invoke name="weather">'
END_M3: Final = f"{NS}</invoke>\n{NS}</tool_call>"


def element(key: str, value: str) -> str:
    return f"{NS}<{key}>{value}{NS}</{key}>"


BONN_M3: Final = element("city", "Bonn")

# text, finish reason, visible text, calls, rejected
ROWS: Final[list[Row]] = [
    (
        "See <seed:tool_call> and </seed:tool_call> there.",
        "stop",
        "See <seed:tool_call> and </seed:tool_call> there.",
        [],
        [],
    ),
    ("<seed:tool_call>\n<function=noop>\n</function>", "length", "", [NOOP], []),
    ("<dots_function_call></dots_function_call>", "stop", "", [], []),
    (
        '<dots_function_call>[{"name": "noop"}, {"name": "weather", "arguments": {"city": "Bonn"}}]',
        "stop",
        "",
        [NOOP, BONN],
        [],
    ),
    (HORIZON, "stop", "", [BONN], []),
    (HORIZON, "length", "", [], [("truncated", "weather")]),
    (
        HORIZON.replace("weather", "nope") + "</ifm|tool_call></ifm|tool_calls>",
        "stop",
        "",
        [],
        [("unknown_tool", "nope")],
    ),
    (PLAMO + '{"city": "Bonn"}<|plamo:end_tool_request:plamo|>', "stop", "", [BONN], []),
    (PLAMO + '{"city": "Bonn"}', "length", "", [], [("truncated", "weather")]),
    (STEP, "length", "", [], [("truncated", None)]),
    (STEP + '<steptml:invoke name="noop">\n</steptml:invoke>', "length", "", [NOOP], []),
    # Any suffix, also one that is cut.
    (HY + "</tool_call:x1>", "stop", "", [BONN], []),
    (HY + "</tool_call:", "stop", "", [BONN], []),
    (HY + "</tool_call:", "length", "", [], [("truncated", "weather")]),
    (HY.replace("<arg_key:x1>", "") + "</tool_call:x1>", "stop", "", [BONN], []),
    ("The <tool_call:x1> tag and <tool_call: too.", "stop", "The <tool_call:x1> tag and <tool_call: too.", [], []),
    # A message to a tool: its words are no text, and it comes to a call or a rejection.
    (MUSE + ATEM + " So.<|eom|>", "stop", "", [BONN], []),
    (MUSE + ATEM.replace("weather", "noop") + ATEM + "<|eom|>", "stop", "", [("noop", {"city": "Bonn"}), BONN], []),
    (MUSE + '<atem:parameter name="city">Bonn</atem:parameter><|eom|>', "stop", "", [BONN], []),
    (MUSE + '{"city": "Bonn"}<|eot|>', "stop", "", [BONN], []),
    (MUSE + "<atem:function_calls>", "length", "", [], [("truncated", "weather")]),
    (MUSE + "<atem:function_calls></atem:function_calls><|eom|>Ok.", "stop", "Ok.", [], [("malformed", "weather")]),
    (
        MUSE + "<atem:function_calls><|start|>assistant to=user<|message|>Ok.",
        "stop",
        "Ok.",
        [],
        [("malformed", "weather")],
    ),
    ("<|start|>assistant to=developer<|message|>Psst " + ATEM, "stop", "", [], []),
    ("<|start|>assistant to=self<|message|>Hm " + ATEM + "<|eom|>", "stop", "", [], []),
    (BEAM + CITY + "<|call|>", "stop", "", [BONN], []),
    (BEAM + CITY, "length", "", [], [("truncated", "weather")]),
    (
        BEAM + CITY.replace("Bonn", "</rfl:parameter> x") + "<|call|>",
        "stop",
        "",
        [("weather", {"city": "</rfl:parameter> x"})],
        [],
    ),
    # XTML: missing tags, ends of tags and sections, values that hold its tokens.
    (K3 + BONN_K3 + END_K3 + "So.", "stop", "So.", [BONN], []),
    (K3 + BONN_K3, "stop", "", [BONN], []),
    (K3 + BONN_K3 + "<|close|>ca", "length", "", [], [("truncated", "weather")]),
    (K3 + BONN_K3 + "<|close|>call", "length", "", [], [("truncated", "weather")]),
    (
        K3 + BONN_K3.replace("<|close|>argument<|sep|>", "") + argument("days", "2", "number") + END_K3,
        "stop",
        "",
        [("weather", {"city": "Bonn", "days": 2})],
        [],
    ),
    (K3.removesuffix("<|sep|>") + (BONN_K3 + END_K3).replace("argument<|sep|>", "argument"), "stop", "", [BONN], []),
    (
        K3 + argument("city", "<|close|>argument<|sep|> <|open|> x") + END_K3,
        "stop",
        "",
        [("weather", {"city": "<|close|>argument<|sep|> <|open|> x"})],
        [],
    ),
    (K3 + BONN_K3 + K3.removeprefix("<|open|>tools<|sep|>") + BONN_K3 + END_K3, "stop", "", [BONN, BONN], []),
    (K3 + argument("a&quot;&amp;&lt;", "x") + END_K3, "stop", "", [("weather", {'a"&&lt;': "x"})], []),
    ("<|open|>response<|sep|>A <|open|>foo<|sep|> b.", "stop", "A b.", [], []),
    ('Ok.<|open|>message role="user"<|sep|>And?', "stop", "Ok.", [], []),
    ("Ok <|close|>mess", "stop", "Ok", [], []),
    # Elements: missing closers and tokens, a foreign form of parameters, values that hold tags, pieces at the end.
    (M3 + BONN_M3 + END_M3 + "So.", "stop", "So.", [BONN], []),
    (M3 + BONN_M3, "stop", "", [BONN], []),
    (M3 + BONN_M3, "length", "", [], [("truncated", "weather")]),
    (M3 + BONN_M3 + f"{NS}</invo", "stop", "", [BONN], []),
    (M3 + BONN_M3 + f"{NS}<da", "stop", "", [], [("truncated", "weather")]),
    (M3 + f"{NS}<city>Bonn{NS}</tool_call>So.", "stop", "So.", [BONN], []),
    (M3 + f"{NS}<city>Bonn{NS}<days>2{END_M3}", "stop", "", [("weather", {"city": "Bonn", "days": 2})], []),
    (
        M3 + f"{NS}<city>Bonn</city>{NS}<days>2</days>{END_M3}",
        "stop",
        "",
        [("weather", {"city": "Bonn", "days": 2})],
        [],
    ),
    (M3 + f'{NS}<parameter name="city">Bonn{NS}</parameter>{END_M3}', "stop", "", [BONN], []),
    (M3 + '{"city": "Bonn"}' + END_M3, "stop", "", [BONN], []),
    (M3 + "Bonn" + END_M3, "stop", "", [], [("malformed", "weather")]),
    (
        M3 + element("city", "<b></city> ]<] & &lt;") + END_M3,
        "stop",
        "",
        [("weather", {"city": "<b></city> ]<] & &lt;"})],
        [],
    ),
    (M3 + f"{NS}<city>Bo" + M3 + BONN_M3 + END_M3, "stop", "", [BONN], [("truncated", "weather")]),
    (M3 + f"{NS}<a>" * 200 + END_M3, "stop", "", [], [("malformed", "weather")]),
    (M3.replace(NS, NS + "\n") + BONN_M3.replace(NS, NS + " ") + END_M3, "stop", "", [BONN], []),
    (f"The {NS} token", "stop", "The token", [], []),
    # Elements named like a tool, cut.
    ('<tool_calls>\n<weather city="Bo', "length", "", [], [("truncated", "weather")]),
    ('A <weather city="Bo', "length", "A", [], [("truncated", "weather")]),
    ('A <weather city="Bo', "stop", 'A <weather city="Bo', [], []),
    ('A <weather town="Bo', "length", 'A <weather town="Bo', [], []),
    (BEAM + CITY.removesuffix("\n</rfl:parameter>") + "<|end|>", "stop", "", [BONN], []),
]


def check(result: Scrubbed, visible: str, calls: Calls, rejected: list[tuple[str, str | None]]) -> None:
    assert [(call.name, call.arguments) for call in result.calls] == calls
    assert [(one.reason, one.name) for one in result.rejected] == rejected
    assert result.text.strip() == visible


@pytest.mark.parametrize(("text", "finish", "visible", "calls", "rejected"), ROWS)
def test_it_is_read(text: str, finish: str, visible: str, calls: Calls, rejected: list[tuple[str, str | None]]) -> None:
    check(scrub_all_ways(text, TOOLS, finish), visible, calls, rejected)


def test_a_message_of_tags_without_parameters_needs_no_repair() -> None:
    (call,) = scrub_all_ways(BEAM.replace("weather", "noop") + "<|call|>", TOOLS, "stop").calls
    assert (call.name, call.arguments, call.repairs, call.grammar) == ("noop", {}, (), "beam")


NESTED: Final = [
    tool(
        "log",
        0,
        tags={"type": "array", "items": _STRING},
        meta={"type": "object"},
        stops={
            "type": "array",
            "items": {"type": "object", "properties": {"name": _STRING, "at": {"type": "integer"}}},
        },
        note=_STRING,
    )
]


@pytest.mark.parametrize(
    ("inside", "arguments"),
    [
        (element("tags", element("item", "a") + element("item", "7")), {"tags": ["a", "7"]}),
        (element("tags", "a") + element("tags", "b"), {"tags": ["a", "b"]}),
        (element("tags", "a"), {"tags": ["a"]}),
        (element("tags", '["a"]'), {"tags": ["a"]}),
        (element("tags", "") + element("meta", "\n") + element("note", ""), {"tags": [], "meta": {}, "note": ""}),
        (element("meta", element("a", element("b", "1") + element("c", "x"))), {"meta": {"a": {"b": 1, "c": "x"}}}),
        (element("meta", element("a", "1") + element("a", "2")), {"meta": {"a": [1, 2]}}),
        (element("meta", "so " + element("a", "1")), {"meta": {"a": 1, "$text": "so"}}),
        (element("meta", element("l", element("item", "1"))), {"meta": {"l": [1]}}),
        (
            element("stops", element("item", element("name", "7") + element("at", "7"))),
            {"stops": [{"name": "7", "at": 7}]},
        ),
        (element("stops", element("name", "A") + element("at", "7")), {"stops": [{"name": "A", "at": 7}]}),
        (element("note", "a") + element("note", "b"), {"note": "b"}),
        (element("NOTE", "7"), {"note": "7"}),
        (f"{NS}<meta/>", {"meta": {}}),
    ],
)
def test_elements_are_values_by_the_schema_or_a_guess(inside: str, arguments: dict[str, Any]) -> None:
    (call,) = scrub_all_ways(f'{NS}<invoke name="log">{inside}{NS}</invoke>', NESTED, "stop").calls
    assert call.arguments == arguments


def test_elements_without_a_schema_are_guessed() -> None:
    inside = element("a", element("item", "1") + element("item", "x")) + element("b", "true") + element("b", "y")
    (call,) = scrub_all_ways(f'{NS}<invoke name="log">{inside}{NS}</invoke>', None, "stop").calls
    assert (call.arguments, call.repairs) == ({"a": [1, "x"], "b": [True, "y"]}, ())


def test_a_call_in_a_message_is_announced_once() -> None:
    for text in (MUSE + ATEM + "<|eom|>", BEAM + CITY + "<|call|>", MUSE + '{"city": "Bonn"}<|eom|>'):
        for size in (1, 1000):
            scrubber = StreamScrubber(TOOLS, progress=True)
            events = [event for i in range(0, len(text), size) for event in scrubber.feed(text[i : i + size])]
            numbers = [event.number for event in events if isinstance(event, CallStarted | ToolCall)]
            assert numbers == [0, 0], text
