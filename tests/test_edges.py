"""Edges that the case files do not have: cut ends, damaged frames, openers without a body, quoted tokens."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, Final

import pytest

from streamscrub import StreamScrubber, awrap, scrub, wrap
from streamscrub.reading import plain_run
from streamscrub.sentinels import sentinels

from .feeding import scrub_all_ways

_STRING: Final = {"type": "string"}


def tool(name: str, required: int = 0, **parameters: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": parameters, "required": list(parameters)[:required]}
    return {"name": name, "description": "", "parameters": schema}


TOOLS: Final = [
    tool("weather", 1, city=_STRING, days={"type": "integer"}),
    tool("memo", 2, title=_STRING, body=_STRING),
    tool("noop"),
]
CALL: Final = "<|channel|>commentary to=functions.noop<|message|>"
BONN: Final = ("weather", {"city": "Bonn"})
NOOP: Final[tuple[str, dict[str, Any]]] = ("noop", {})

Row = tuple[str, str, str, list[tuple[str, dict[str, Any]]], list[tuple[str, str | None]]]

# text, finish reason, visible text, calls, rejected
ROWS: Final[list[Row]] = [
    # A stream that ends inside an opener, a header, a body or a closer.
    ("<tool_call>{", "length", "", [], []),
    ("<tool_call>{", "stop", "<tool_call>{", [], []),
    ("<tool_call>\n<f", "length", "", [], []),
    ('<tool_call name="weather">\n{', "length", "", [], [("truncated", "weather")]),
    ('<tool_call>{"name":"noop","arguments":{}}</tool', "length", "", [], [("truncated", "noop")]),
    ('<tool_call>{"name":"noop","arguments":{}}</tool', "stop", "", [NOOP], []),
    ("[TOOL_CALLS]weather[AR", "length", "", [], [("truncated", None)]),
    ("<|tool_call_begin|>functions.noop:0<|tool_call_arg", "stop", "", [], [("truncated", None)]),
    ("weather/city>Bo", "length", "", [], [("truncated", "weather")]),
    ("weather/city>Bonn\n", "length", "", [BONN], []),
    ('{"name":"weather","arguments":{"city":"Bonn"}}', "length", "", [], [("truncated", "weather")]),
    ('function_call:{"name":"weather","arguments":{"city":"Bo', "length", "", [], [("truncated", "weather")]),
    ("<|tool_call>call:noop{}<tool_call|><tool_call", "stop", "", [NOOP], []),
    ('```tool_code\nprint(weather(city="Bonn"))\n``', "length", "", [], [("truncated", "weather")]),
    ("<weather><city>Bonn</city>\nThe rest.", "stop", "<weather><city>Bonn</city>\nThe rest.", [], []),
    # Openers that carry the name, and names without a body.
    ('<tool_call name="weather"><parameter name="city">Bonn</parameter></tool_call>', "stop", "", [BONN], []),
    ('<tool_call name="noop"/>', "stop", "", [NOOP], []),
    ('<tool_call><parameter name="city">Bonn</parameter></tool_call> ok', "stop", "ok", [], [("malformed", None)]),
    ("<|tool_call_begin|>functions.noop:0<|tool_call_end|>", "stop", "", [NOOP], []),
    ('[TOOL_CALLS]weather[CALL_ID]abc123XYZ{"city":"Bonn"}', "stop", "", [BONN], []),
    ('<minimax:tool_call>{"name":"noop"}</minimax:tool_call>', "stop", "", [NOOP], []),
    ('<｜tool_call｜>{"name":"noop"}<｜tool_call｜> Done.', "stop", "Done.", [NOOP], []),
    ("```tool_call\nnoop[]\n```", "stop", "", [NOOP], []),
    ('```tool_call\n<invoke name="noop"></invoke>\n```\nok', "stop", "ok", [NOOP], []),
    ('<tool_calls>\n<weather city="Bonn"/>\n<noop/>\n</tool_calls>', "stop", "", [BONN, NOOP], []),
    ("<noop/> is a tag.", "stop", "<noop/> is a tag.", [], []),
    # Tokens that stand alone, other turns, results.
    ("ok <｜tool▁sep｜>now <|tool_call_argument_begin|>then", "stop", "ok now then", [], []),
    ("Hi.[INST] more [/INST]", "stop", "Hi.", [], []),
    ("<|im_start|>assistant\nMore.", "stop", "More.", [], []),
    ("<|channel|>ana", "length", "", [], []),
    ("Hi. <|channel|>fin", "stop", "Hi. ", [], []),
    ("Hi. <|start|>assi", "length", "Hi. ", [], []),
    ("Hi. <|start|>assistant t", "length", "Hi. ", [], []),
    ("Hi. <|start|>assistant\n", "stop", "Hi. ", [], []),
    # A recipient that the stream cut: of a message that is no call, or of a call.
    ("Hi. <|start|>assistant to=sel", "length", "Hi. ", [], []),
    ("Hi. <|start|>assistant to=us", "stop", "Hi. ", [], []),
    ("Hi. <|channel|>commentary to=assis", "stop", "Hi. ", [], []),
    ("Hi. <|start|>assistant to=noo", "stop", "Hi. ", [], [("truncated", None)]),
    ("Hi. <|start|>assistant to=noop<|mess", "stop", "Hi. ", [], [("truncated", "noop")]),
    ("<|channel|>Noon.", "stop", "Noon.", [], []),
    ("<|start|>assistant<i>" + 400 * "a", "stop", "<i>" + 400 * "a", [], []),
    ("```tool_code\nnoop()\n```\n```tool_outputs\npong\n```\nok", "stop", "ok", [NOOP], []),
    ("Looking<tool_call>\n<function=noop>\n</function>\n</tool_call>", "stop", "Looking", [NOOP], []),
    # Frames.
    (f"{CALL}{{}}<|start|>assistant<|channel|>final<|message|>ok<|return|>", "stop", "ok", [NOOP], []),
    (f"{CALL}{{}}<|call|>assistant<|channel|>final<|message|>ok<|end|>", "stop", "ok", [NOOP], []),
    (f"{CALL}<|message|>{{}}<|call|>", "stop", "", [NOOP], []),
    (CALL, "stop", "", [], [("truncated", "noop")]),
    (f"`{CALL}{{}}<|call|>` now", "stop", f"`{CALL}{{}}<|call|>` now", [], []),
    ('<|channel|>commentary to=functions.weather json{"city":"Bonn"}<|call|>', "stop", "", [BONN], []),
    (' to=functions.weather<|channel|>commentary<|message|>{"city":"Bonn"}<|call|>', "stop", "", [BONN], []),
    ("<|channel|>finalHello<|return|>", "stop", "Hello", [], []),
    ("Hi <|channel|> there", "stop", "Hi there", [], []),
]


@pytest.mark.parametrize(("text", "finish", "visible", "calls", "rejected"), ROWS, ids=[repr(row[:2]) for row in ROWS])
def test_it_is_read(
    text: str,
    finish: str,
    visible: str,
    calls: list[tuple[str, dict[str, Any]]],
    rejected: list[tuple[str, str | None]],
) -> None:
    result = scrub_all_ways(text, TOOLS, finish)
    assert result.text == visible
    assert [(call.name, call.arguments) for call in result.calls] == calls
    assert [(one.reason, one.name) for one in result.rejected] == rejected


@pytest.mark.parametrize("options", [{"model": "gpt-oss-20b"}, {"prefill": "<|start|>assistant"}], ids=str)
def test_frames_are_read_without_their_tokens_where_they_are_expected(options: dict[str, Any]) -> None:
    wire = 'analysisLook.assistantcommentary to=functions.weather json{"city":"Bonn"}assistantfinalDone.'
    result = scrub_all_ways(wire, TOOLS, "stop", **options)
    assert (result.reasoning, result.text) == ("Look.", "Done.")
    assert [(call.name, call.arguments) for call in result.calls] == [BONN]
    assert scrub_all_ways(wire, TOOLS, "stop").text == wire


@pytest.mark.parametrize("options", [{"model": "gemini-2.5-pro"}, {"grammars": ["gemini_tool_code"]}], ids=str)
def test_a_thinking_fence_ends_with_its_own_run(options: dict[str, Any]) -> None:
    result = scrub_all_ways("```thinking\na\n```py\nx\n```\nb\n```\nHi", TOOLS, "stop", **options)
    assert (result.reasoning, result.text) == ("a\n```py\nx\n```\nb\n", "Hi")


def test_a_closer_in_a_string_of_a_draft_that_completes_is_data() -> None:
    draft = '<tool_call>{"name":"memo","arguments":{"title":"t","body":"x </think> y"}}</tool_call>'
    result = scrub_all_ways(f"<think>a{draft}b</think>c", TOOLS, "stop")
    assert (result.reasoning, result.text, result.calls) == (f"a{draft}b", "c", [])


def test_a_mention_of_a_token_does_not_end_a_section() -> None:
    result = scrub_all_ways("<think>z [TOOL_CALLS] is</think>b", TOOLS, "stop")
    assert (result.reasoning, result.text, result.rejected) == ("z  is", "b", [])


def test_a_block_over_the_limit_keeps_its_name_however_it_was_cut() -> None:
    wire = f'<tool_call>{{"name":"memo","arguments":{{"title":"{"x" * 300}","body":"y"}}}}</tool_call>ok'
    result = scrub_all_ways(wire, TOOLS, "stop", max_call_bytes=200)
    assert [(one.reason, one.name) for one in result.rejected] == [("too_large", "memo")]
    assert result.text == "ok"


def test_what_cannot_be_iterated_is_refused_at_once() -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match="awrap"):
        wrap(nothing)
    with pytest.raises(TypeError, match="wrap takes others"):
        awrap(nothing)


@pytest.mark.parametrize("reason", ["error", "incomplete", "length", None])
def test_an_open_block_is_cut_unless_the_model_stopped_by_itself(reason: str | None) -> None:
    wire = '<tool_call>{"name":"noop","arguments":{}}'
    assert [one.reason for one in scrub_all_ways(wire, TOOLS, reason).rejected] == ["truncated"]
    assert [call.name for call in scrub_all_ways(wire, TOOLS, "STOP").calls] == ["noop"]


@pytest.mark.parametrize("size", [100, 140, 144, 150, 160, 300])
@pytest.mark.parametrize("gap", [1, 256, 257, 400])
def test_a_long_key_and_a_wide_gap_are_judged_alike_however_they_are_cut(size: int, gap: int) -> None:
    scrub_all_ways(
        f"<tool_call>memo<arg_key>{'k' * size}</arg_key>{' ' * gap}<arg_value>v</arg_value></tool_call>", TOOLS
    )


def test_an_opener_that_only_words_follow_does_not_run() -> None:
    result = scrub_all_ways('You may write <invoke name="memo"> there.', TOOLS)
    assert (result.text, result.calls) == ("You may write there.", [])
    assert [(one.reason, one.name) for one in result.rejected] == [("malformed", "memo")]
    assert [one.reason for one in scrub_all_ways('<invoke name="noop"> then words', TOOLS).rejected] == ["malformed"]
    assert [call.name for call in scrub_all_ways('<invoke name="noop">\nThen words', TOOLS).calls] == ["noop"]


INTERPRETER: Final = [tool("code_interpreter", 1, code=_STRING)]


@pytest.mark.parametrize(("finish", "runs"), [("stop", True), ("length", False)])
def test_code_behind_the_python_tag_is_for_the_interpreter(finish: str, runs: bool) -> None:
    code = 'rows = [{"a": 1}]\nprint(rows)'
    result = scrub_all_ways(f"Adding up.<|python_tag|>{code}", INTERPRETER, finish)
    assert result.text == "Adding up."
    assert [call.arguments for call in result.calls] == ([{"code": code}] if runs else [])
    assert [one.reason for one in result.rejected] == ([] if runs else ["truncated"])


def test_code_ends_at_any_token_and_needs_an_interpreter() -> None:
    wire = "<|python_tag|>print(1)<|eom_id|>\nDone."
    result = scrub_all_ways(wire, INTERPRETER)
    assert (result.calls[0].arguments, result.text) == ({"code": "print(1)"}, "Done.")
    assert scrub_all_ways(wire, TOOLS).text == "print(1)\nDone."


@pytest.mark.parametrize("key", ["function", "tool_call"])
def test_a_pseudo_tool_may_hold_the_call_one_level_down(key: str) -> None:
    inner = {"name": "memo", "arguments": {"title": "t", "body": "b"}}
    wire = json.dumps({"name": "call_tool", "arguments": {key: inner}})
    result = scrub_all_ways(f"<tool_call>{wire}</tool_call>", TOOLS)
    assert [(call.name, call.arguments) for call in result.calls] == [("memo", inner["arguments"])]


@pytest.mark.parametrize("marker", ["◁x", "«x", "<«", "⟦tool"])
def test_a_marker_beyond_ascii_is_seen_in_a_delta_of_text(marker: str) -> None:
    run = plain_run((), sentinels((marker.encode(),)))
    assert run.loud(f"a{marker}") is not None
    assert run.loud("a") is None


def test_an_object_of_a_client_library_is_refused_with_what_to_pass() -> None:
    chunk = SimpleNamespace(choices=[])
    wrongs: list[Any] = [chunk, {"choices": []}]
    for wrong in wrongs:
        with pytest.raises(TypeError, match=r"pass the text of its delta, choices\[0\]\.delta\.content"):
            StreamScrubber().feed(wrong)
    with pytest.raises(TypeError, match=r"choices\[0\]\.delta\.content"):
        list(wrap(wrongs))
    with pytest.raises(TypeError, match="pass the text of its message to scrub"):
        wrap(wrongs[0])
    with pytest.raises(TypeError, match="wrap reads an iterable of deltas"):
        scrub(["a", "b"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pass the text of the delta"):
        StreamScrubber().feed(3)  # type: ignore[arg-type]


# What may stand behind an object without a marker

BARE: Final = '{"name": "ping", "arguments": {}}'


@pytest.mark.parametrize(
    ("text", "calls", "visible"),
    [
        (f"{BARE};{BARE}\nok", 2, "ok"),
        (f"{BARE};\n {BARE}", 2, ""),
        (f"{BARE};\nok", 0, f"{BARE};\nok"),
        (f"{BARE}<|im_end|>", 1, ""),
        (f"{BARE} <|im_end|>", 1, ""),
        (f"{BARE}<tool_call>{BARE}</tool_call>", 2, ""),
        (f"{BARE}\rok", 1, "ok"),
        (f"{BARE}\r\nok", 1, "ok"),
        ('[{"name": "x"}]\nok', 0, '[{"name": "x"}]\nok'),
        ("[]\nok", 0, "[]\nok"),
    ],
)
def test_what_may_stand_behind_a_bare_object(text: str, calls: int, visible: str) -> None:
    result = scrub_all_ways(text, [{"name": "ping", "parameters": {}}])
    assert [call.name for call in result.calls] == ["ping"] * calls
    assert result.text == visible
    assert result.rejected == []
