"""Families that write calls as tags, pairs or framed messages: what their case files do not have."""

from __future__ import annotations

from typing import Any, Final

import pytest

from streamscrub import Scrubbed

from .feeding import scrub_all_ways
from .test_edges import BONN, NOOP, TOOLS

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
    (STEP, "length", "", [], [("truncated", "function")]),
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
        BEAM + CITY.replace("Bonn", "</rfl:parameter>") + "<|call|>",
        "stop",
        "",
        [("weather", {"city": "</rfl:parameter>"})],
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
