"""Forms between markers of one model family: JSON, Python or value tags, with answer and thought in wrappers."""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

import pytest

from streamscrub import Dropped, Reasoning, RejectedCall, StreamScrubber, Text, ToolCall
from streamscrub.events import Scrubbed
from streamscrub.grammar import shipped
from streamscrub.writing import write_calls

from .feeding import feed_all_ways, scrub_all_ways

_STRING: Final = {"type": "string"}
TOOLS: Final = [
    {
        "name": "find",
        "parameters": {
            "type": "object",
            "properties": {
                "q": _STRING,
                "top": {"type": "integer"},
                "tags": {"type": "array", "items": _STRING},
                "opts": {"type": "object"},
            },
        },
    },
    {"name": "ping", "parameters": {"type": "object", "properties": {}}},
]
Call: TypeAlias = tuple[str, dict[str, Any]]
FIND: Final[Call] = ("find", {"q": "rook", "top": 3})
PING: Final[Call] = ("ping", {})


def _python(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


# The grammar that writes the calls, what closes its block, and the markers around a thought.
FORMS: Final = {
    "apertus": ("<|tools_suffix|>", ("<|inner_prefix|>", "<|inner_suffix|>")),
    "cohere": ("<|END_ACTION|>", ("<|START_THINKING|>", "<|END_THINKING|>")),
    "cohere_cofl": ("</cofl:tool_calls>", ("<|START_THINKING|>", "<|END_THINKING|>")),
    "granite": ("", ("<think>", "</think>")),
    "granite_20b_fc": ("", ("<think>", "</think>")),
    "inkling": ("<|end_message|>", ("<|message_model|><|content_thinking|>", "<|end_message|>")),
    "internlm": ("<|action_end|>", ("<think>", "</think>")),
    "gigachat3": ("", ("<think>", "</think>")),
    "functiongemma": ("<end_function_call>", ("<think>", "</think>")),
    "lfm2": ("<|tool_call_end|>", ("<think>", "</think>")),
    "lmstudio": ("[END_TOOL_REQUEST]", ("<think>", "</think>")),
    "longcat": ("\n</longcat_tool_call>", ("<longcat_think>", "</longcat_think>")),
    "nemotron": ("</TOOLCALL>", ("<think>", "</think>")),
    "olmo3": ("\n</function_calls>", ("<think>", "</think>")),
    "phi4": ("", ("<think>", "</think>")),
    "solar_open": ("<|tool_call:end|><|calls|>", ("<|think|>", "<|end|>")),
    "xai": ("</xai:function_call>", ("<think>", "</think>")),
}


def written(form: str, *calls: Call) -> str:
    return write_calls(shipped()[form], calls, TOOLS)


def calls_in(result: Scrubbed) -> list[Call]:
    return [(call.name, call.arguments) for call in result.calls]


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("form", FORMS)
def test_prose_around_calls_and_a_thought_before_them(form: str) -> None:
    opened, closed = FORMS[form][1]
    result = scrub_all_ways(f"{opened}Hm.{closed}Look. {written(form, FIND, PING)}\nSent.", TOOLS)
    assert (words(result.text), result.reasoning) == ("Look. Sent.", "Hm.")
    assert calls_in(result) == [FIND, PING]
    assert not any(call.repairs for call in result.calls)
    assert result.rejected == []


@pytest.mark.parametrize("form", FORMS)
def test_two_blocks_with_words_between(form: str) -> None:
    result = scrub_all_ways(f"{written(form, PING)}\nThen:\n{written(form, FIND)}\nEnd.", TOOLS)
    assert (words(result.text), calls_in(result)) == ("Then: End.", [PING, FIND])


@pytest.mark.parametrize("form", FORMS)
def test_an_unknown_name_costs_no_other_call(form: str) -> None:
    result = scrub_all_ways(written(form, ("nope", {"x": 1}), PING), TOOLS)
    assert calls_in(result) == [PING]
    assert [(call.reason, call.name) for call in result.rejected] == [("unknown_tool", "nope")]
    assert result.text.strip() == ""


@pytest.mark.parametrize("form", FORMS)
def test_fenced_calls_are_text(form: str) -> None:
    text = f"```json\n{written(form, FIND)}\n```"
    result = scrub_all_ways(text, TOOLS)
    assert (result.text, result.calls) == (text, [])


# Those whose block is one line and has no wrapper of its own.
@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"internlm", "longcat", "olmo3", "solar_open", "xai"}))
def test_calls_in_an_inline_span_are_text(form: str) -> None:
    text = f"Write `{written(form, FIND)}` so."
    result = scrub_all_ways(text, TOOLS)
    assert (result.text, result.calls) == (text, [])


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_closer_is_a_repair_and_with_length_a_cut(form: str) -> None:
    closer = FORMS[form][0]
    block = written(form, FIND)
    text = block.removesuffix(closer)
    assert scrub_all_ways(text, TOOLS).calls[0].arguments == FIND[1]
    cut = scrub_all_ways(text, TOOLS, "length")
    if closer and form != "cohere_cofl":  # there the wrapper's closer is cut, and the call is whole
        assert [call.reason for call in cut.rejected] == ["truncated"]
        assert cut.calls == []
        assert scrub_all_ways(text, TOOLS).calls[0].repairs
    else:
        assert calls_in(cut) == [FIND]


@pytest.mark.parametrize("form", FORMS)
def test_a_call_cut_anywhere_never_runs(form: str) -> None:
    block = written(form, PING, FIND)
    for at in range(len(block)):
        scrubber = StreamScrubber(TOOLS)
        result = Scrubbed([*scrubber.feed(block[:at]), *scrubber.finish("length")])
        assert calls_in(result) in ([], [PING], [PING, FIND])
        assert not any(marker in result.text for marker in ("find", "ping", "{"))


@pytest.mark.parametrize("form", FORMS)
def test_deep_values_come_through(form: str) -> None:
    call = ("find", {"q": "C:\\x", "tags": ["a, b", "é]"], "opts": {"k": {"z": [1, None, {"y": "}"}]}, "t": True}})
    assert calls_in(scrub_all_ways(written(form, call), TOOLS)) == [call]


# Thoughts


def test_a_section_goes_on_behind_a_call_where_its_file_says_so() -> None:
    text = 'Ask.<|tools_prefix|>[{"ping": {}}]<|tools_suffix|>Wait.<|tools_prefix|>[{"ping": {}}]<|tools_suffix|>So.'
    result = scrub_all_ways(f"<|inner_prefix|>{text}<|inner_suffix|>Done.", TOOLS)
    assert (result.reasoning, result.text, calls_in(result)) == ("Ask.Wait.So.", "Done.", [PING, PING])
    other = scrub_all_ways(f"<think>{text}", TOOLS)
    assert (other.reasoning, other.text) == ("Ask.", "Wait.So.")


def test_a_token_of_several_formats_ends_only_its_own_sections() -> None:
    assert scrub_all_ways("<|think|>a<|end|>b", TOOLS).text == "b"
    plain = scrub_all_ways("<think>a<|end|>b</think>c", TOOLS)
    assert (plain.reasoning, plain.text) == ("ab", "c")
    prompt = {"reasoning": "open"}
    assert scrub_all_ways("a<|end|>b", TOOLS, **prompt).text == ""
    assert scrub_all_ways("a<|end|>b", TOOLS, model="solar-open-100b", **prompt).text == "b"
    assert scrub_all_ways("a<|end|>b", TOOLS, grammars=["solar_open"], **prompt).text == "b"


@pytest.mark.parametrize("model", [None, "granite-3.2-8b-instruct"])
def test_sentences_delimit_only_for_their_model(model: str | None) -> None:
    text = "Here's my thought process: Short.\nHere's my response: Noon."
    result = scrub_all_ways(text, TOOLS, model=model)
    expected = (" Short.\n", "Noon.") if model else ("", text)
    assert (result.reasoning, result.text) == expected


# Openers that mean several things


def test_a_message_without_its_kind_is_text_or_dropped() -> None:
    assert scrub_all_ways("<|message_model|>Hello there.<|end_message|>", TOOLS).text == "Hello there."
    assert scrub_all_ways("<|message_model|>ping<|end_message|>", TOOLS).text == "ping"
    assert scrub_all_ways("<|message_model|>pi", TOOLS).text == "pi"
    cut = scrub_all_ways("<|message_model|>pi", TOOLS, "length")
    assert (cut.text, cut.rejected) == ("", [])


def test_a_name_before_a_header_token_belongs_to_the_call() -> None:
    body = '<|content_invoke_tool_json|>{"name": "ping", "args": {}}<|end_message|>'
    assert calls_in(result := scrub_all_ways(f"ping{body}", TOOLS)) == [PING]
    assert result.text == ""
    assert scrub_all_ways(f"pong{body}", TOOLS).text == "pong"
    assert scrub_all_ways("ping<|content_text|>Hi.", TOOLS).text == "pingHi."
    (cut,) = scrub_all_ways("find<|content_invoke_tool_json|>", TOOLS, "length").rejected
    assert (cut.reason, cut.name) == ("truncated", "find")


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ('<|tool_call|>[{"name": "ping", "arguments": {}}]', False),
        ('<|tool_call|>{"name": "ping", "arguments": {}}', True),
        ('<tool_call>[{"name": "ping", "arguments": {}}]', True),
        ('<function_call>{"name": "ping", "arguments": {}}', False),
        ('<function_call>{"name": "ping", "arguments": {}}</function_call>', False),
        ('<|tool_calls|>[{"name": "ping", "arguments": {}}]', False),
    ],
)
def test_bodies_that_need_no_closer(text: str, repaired: bool) -> None:
    result = scrub_all_ways(f"{text} Done.", TOOLS)
    assert (words(result.text), calls_in(result)) == ("Done.", [PING])
    assert bool(result.calls[0].repairs) is repaired


def test_the_closer_of_a_released_bracket_tag_is_text_on_its_line() -> None:
    text = "Between [TOOL_REQUEST] and [END_TOOL_REQUEST], that is."
    assert scrub_all_ways(text, TOOLS).text == text


# Bodies


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"find": {"q": "a"}}', [("find", {"q": "a"})]),
        ('[{"ping": null}, {"find": "{\\"q\\": \\"a\\"}"}]', [PING, ("find", {"q": "a"})]),
        ('[{"ping": {}, "find": {"q": "a"}}]', [PING, ("find", {"q": "a"})]),
        ('[{"name": "find", "arguments": {"q": "a"}}]', [("find", {"q": "a"})]),
        ("[{'find': {'q': 'a',},}]", [("find", {"q": "a"})]),
        ('[{"find": {"q": "say "a" now"}}]', [("find", {"q": 'say "a" now'})]),
        ("[]", []),
    ],
)
def test_objects_keyed_by_the_name(body: str, expected: list[Call]) -> None:
    result = scrub_all_ways(f"<|tools_prefix|>{body}<|tools_suffix|>x", TOOLS)
    assert (calls_in(result), result.text, result.rejected) == (expected, "x", [])


def cofl(values: str) -> str:
    return f'<cofl:tool_call id="7" name="find">{values}</cofl:tool_call>'


@pytest.mark.parametrize(
    ("values", "arguments"),
    [
        ('<cofl:value name="q" type="raw">12</cofl:value>', {"q": "12"}),
        ('<cofl:value name="q" type="raw"> a\n</cofl:value>', {"q": " a\n"}),
        ('<cofl:value name="q" type="raw">a</cofl:value></cofl:value>', {"q": "a</cofl:value>"}),
        ('<cofl:value name="q" type="raw">a </cofl:tool_call> b</cofl:value>', {"q": "a </cofl:tool_call> b"}),
        ('<cofl:value name="top" type="json">4</cofl:value>', {"top": 4}),
        ('<cofl:tool_param name="q" type="raw">a</cofl:tool_param>', {"q": "a"}),
        ('<cofl:value name="tags" type="list"></cofl:value>', {"tags": []}),
        ('<cofl:value name="opts" type="dict"/>', {"opts": {}}),
        ('<cofl:value name="q">a</cofl:value>\n<cofl:value name="top">2</cofl:value>\n', {"q": "a", "top": 2}),
        ('{"q": "a"}', {"q": "a"}),
    ],
)
def test_value_tags(values: str, arguments: dict[str, Any]) -> None:
    result = scrub_all_ways(f"{cofl(values)} ok", TOOLS)
    assert (calls_in(result), result.text) == ([("find", arguments)], "ok")
    assert result.calls[0].model_id == "7"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ('<cofl:value type="raw">a</cofl:value>', "malformed"),
        ('<cofl:value name="tags" type="list"><cofl:value type="raw">a</cofl:value></cofl:value>words', "malformed"),
        ("words", ""),
        ('<cofl:value name="opts" type="dict">' * 70 + "</cofl:value>" * 70, "malformed"),
    ],
)
def test_value_tags_that_make_no_call(values: str, reason: str) -> None:
    result = scrub_all_ways(cofl(values), TOOLS)
    assert result.calls == []
    assert [call.reason for call in result.rejected] == ([reason] if reason else [])


def test_a_value_without_its_closer_ends_with_the_call() -> None:
    (call,) = scrub_all_ways(cofl('<cofl:value name="q" type="raw">rook'), TOOLS).calls
    assert (call.arguments, [repair.kind for repair in call.repairs]) == ({"q": "rook"}, ["missing_tag"])


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("call:ping", [PING]),
        ('call:find{q:<|"|>a<|"|>}call:ping{}', [("find", {"q": "a"}), PING]),
        ('call:find{q:<|"|>a<|"|>}\n,call:ping', [("find", {"q": "a"}), PING]),
    ],
)
def test_loose_calls_in_one_block(block: str, expected: list[Call]) -> None:
    result = scrub_all_ways(f"<|tool_call>{block}<tool_call|>x", TOOLS)
    assert (calls_in(result), result.text) == (expected, "x")


def test_quote_tokens_of_another_format_are_data() -> None:
    gemma = '<|tool_call>call:find{q:<|"|>a <escape> b<|"|>}<tool_call|>'
    other = '<start_function_call>call:find{q:<escape>a <|"|> b<escape>}<end_function_call>'
    assert calls_in(scrub_all_ways(gemma, TOOLS)) == [("find", {"q": "a <escape> b"})]
    assert calls_in(scrub_all_ways(other, TOOLS)) == [("find", {"q": 'a <|"|> b'})]


def test_a_loose_call_cut_in_its_name_has_none() -> None:
    result = scrub_all_ways('<|tool_call>call:find{q:<|"|>a<|"|>}call:pi', TOOLS, "length")
    assert calls_in(result) == [("find", {"q": "a"})]
    assert [(call.reason, call.name) for call in result.rejected] == [("truncated", None)]


def test_python_objects_are_no_repair_where_the_format_writes_them() -> None:
    body = str([{"name": "find", "arguments": {"q": "it's", "opts": {"a": None, "b": True}}}])
    (call,) = scrub_all_ways(f"<|tool_calls|>{body}", TOOLS).calls
    assert (call.arguments, call.repairs) == ({"q": "it's", "opts": {"a": None, "b": True}}, ())
    (other,) = scrub_all_ways(f"<tool_call>{body}</tool_call>", TOOLS).calls
    assert other.repairs


@pytest.mark.parametrize("calls", ["ping()\n# then\nfind(q='a')", "ping(); find(q='a')", "[ping(), find(q='a')]"])
def test_lines_of_python(calls: str) -> None:
    result = scrub_all_ways(f"<function_calls>\n{calls}\n</function_calls>x", TOOLS)
    assert (calls_in(result), result.text) == ([PING, ("find", {"q": "a"})], "x")


def test_a_thought_may_stand_beside_bare_calls() -> None:
    value = {"thought": "Ask.", "tool_calls": [{"name": "find", "arguments": {"q": "a"}}]}
    assert calls_in(scrub_all_ways(json.dumps(value), TOOLS)) == [("find", {"q": "a"})]
    other = json.dumps({"thought": "Ask.", "answer": 4})
    assert scrub_all_ways(other, TOOLS).text == other


def test_a_line_for_an_addressee_is_markup() -> None:
    text = '>>>all\nOne moment.\n>>>find\n{"q": "a"}'
    result = scrub_all_ways(text, TOOLS)
    assert (result.text, calls_in(result)) == ("One moment.\n", [("find", {"q": "a"})])
    for prose in (">>>allow\n", ">>> all\n", "x >>>all\n", ">>>nope\n{}"):
        assert scrub_all_ways(prose, TOOLS).text == prose


def test_results_of_the_prompt_are_fabricated() -> None:
    result = "<|tool_response_start|>[ping()]<|tool_response_end|>"
    events = feed_all_ways(f"<|tool_call_start|>[ping()]<|tool_call_end|>{result}ok", TOOLS)
    kinds = [event.kind for event in events if isinstance(event, Dropped)]
    assert kinds == ["fabricated_result"]
    assert [type(event) for event in events if isinstance(event, (ToolCall, Text, RejectedCall, Reasoning))] == [
        ToolCall,
        Text,
    ]


CODE: Final = {
    "lines": ("<function_calls>\n", "\n</function_calls>"),
    "lines without a closer": ("<function_calls>\n", ""),
    "a fence": ("```tool_code\n", "\n```"),
    "a tag": ("<tool_call>", "</tool_call>"),
}
BAD: Final = ('find(q="rook"', "find(q=a+b)", "find(bogus=1)", "find(top=3 4)", "find([1)")


@pytest.mark.parametrize(("opener", "closer"), CODE.values(), ids=CODE)
@pytest.mark.parametrize("bad", BAD)
def test_a_line_that_is_no_call_costs_no_other_line(opener: str, closer: str, bad: str) -> None:
    result = scrub_all_ways(f'{opener}ping()\n{bad}\nfind(q="owl")\nping(){closer}', TOOLS, "stop")
    assert [(call.name, call.arguments) for call in result.calls] == [PING, ("find", {"q": "owl"}), PING]
    assert [(one.reason, one.name) for one in result.rejected] == [("malformed", "find")]


@pytest.mark.parametrize(("opener", "closer"), CODE.values(), ids=CODE)
@pytest.mark.parametrize(
    "text",
    [
        'find(q="a\nping()\nb',
        'find(q="print("x"\nping()\n',
        "find(bogus=1, q='''a\nping()\nb''')",
        'find(q=a+b, x="c"\nping()\n")',
        "find(top=\nping()\n",
        "find(q='a',\nping()\n",
    ],
)
def test_a_line_that_may_belong_to_the_call_before_it_does_not_run(opener: str, closer: str, text: str) -> None:
    assert scrub_all_ways(opener + text + closer, TOOLS, "stop").calls == []


def test_a_bad_call_in_a_list_costs_no_other() -> None:
    result = scrub_all_ways("<|tool_call_start|>[ping(), find(bogus=1), ping()]<|tool_call_end|>", TOOLS, "stop")
    assert [call.name for call in result.calls] == ["ping", "ping"]
    assert [(one.reason, one.name) for one in result.rejected] == [("malformed", "find")]


SECTIONS: Final = {
    "dsml": ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    "minimax_m3": ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
    "deepseek": ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    "kimi_k2": ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
}


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize("form", ["{0}", "\n{0}\n{1}\n", "[{0}, {1}]", "\n```json\n{0}\n```\n", "{0} and words"])
def test_a_call_as_json_right_inside_a_section_is_a_call(name: str, form: str) -> None:
    opener, closer = SECTIONS[name]
    body = form.format('{"name": "find", "arguments": {"q": "rook", "top": 3}}', '{"name": "ping", "arguments": {}}')
    result = scrub_all_ways(f"Now.{opener}{body}{closer} Done.", TOOLS, "stop")
    assert [(call.name, call.arguments, call.grammar) for call in result.calls] == [
        (*FIND, name), *[(*PING, name)] * ("{1}" in form),
    ]  # fmt: skip
    assert (result.text, result.rejected) == ("Now. Done.", [])


@pytest.mark.parametrize("name", SECTIONS)
def test_an_object_in_a_section_that_is_no_call_is_rejected_and_words_are_dropped(name: str) -> None:
    opener, closer = SECTIONS[name]
    for body, finish, reasons in (
        ('{"name": "fly", "arguments": {}}', "stop", [("unknown_tool", "fly")]),
        ('{"q": 1}', "stop", [("malformed", None)]),
        ('{"name": "find", "arguments": {"q": "ro}}', "stop", [("malformed", "find")]),
        ("{q} or [1]", "stop", []),
    ):
        result = scrub_all_ways(f"{opener}\n{body}\n{closer}Done.", TOOLS, finish)
        assert [(one.reason, one.name) for one in result.rejected] == reasons
        assert (result.text, result.calls) == ("Done.", [])
    cut = scrub_all_ways(f'{opener}{{"name": "find", "arguments": {{"q": "ro', TOOLS, "length")
    assert [(one.reason, one.name) for one in cut.rejected] == [("truncated", "find")]


@pytest.mark.parametrize("rest", ["]~b]user\nHi", "]<]minimax[>[</tool_call>"])
def test_a_bracket_that_begins_a_token_is_no_padding_of_a_body(rest: str) -> None:
    result = scrub_all_ways(f'[TOOL_CALLS][{{"name": "ping", "arguments": {{}}}}]{rest}', TOOLS, "stop")
    assert [(call.name, call.repairs) for call in result.calls] == [("ping", ())]
    assert result.text == ""


def test_a_message_to_a_tool_that_takes_text_is_its_only_required_string() -> None:
    text = {"type": "object", "properties": {"cmd": _STRING, "n": {"type": "integer"}}, "required": ["cmd"]}
    tools = [*TOOLS, {"name": "run", "parameters": text}]
    opener, ends = "<|message_model|>{}<|content_invoke_tool_text|>", "<|end_message|>"
    for name, body, finish, calls, rejected in (
        ("run", "ls {x}\n</tool_call>", "stop", [("run", {"cmd": "ls {x}\n</tool_call>"})], []),
        ("run", '{"name": "run", "args": {"cmd": "ls"}}', "stop", [("run", {"cmd": "ls"})], []),
        ("ping", "", "stop", [PING], []),
        ("find", "rook", "stop", [], [("malformed", "find")]),
        ("fly", "away", "stop", [], [("unknown_tool", "fly")]),
    ):
        result = scrub_all_ways(opener.format(name) + body + ends + "Ok", tools, finish)
        assert [(call.name, call.arguments) for call in result.calls] == calls
        assert [(one.reason, one.name) for one in result.rejected] == rejected
        assert result.text == "Ok"
    cut = scrub_all_ways(opener.format("run") + "ls", tools, "length")
    assert [(one.reason, one.name) for one in cut.rejected] == [("truncated", "run")]
    words = scrub_all_ways("<|message_model|>run<|content_invoke_tool_json|>ls<|end_message|>", tools, "stop")
    assert [(one.reason, one.name) for one in words.rejected] == [("malformed", "run")]
