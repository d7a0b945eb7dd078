"""Words that only mention markup, and streams that end where markup is not at its end: each at every chunking."""

from __future__ import annotations

from typing import Any, Final

import pytest

from streamscrub import Scrubbed

from .feeding import scrub_all_ways

TEXT: Final = {"type": "string"}
TOOLS: Final[list[dict[str, Any]]] = [
    {
        "name": "run_cmd",
        "parameters": {
            "type": "object",
            "properties": {"cmd": TEXT, "timeout": {"type": "integer"}},
            "required": ["cmd"],
        },
    },
    {"name": "list_jobs", "parameters": {"type": "object", "properties": {}}},
    {
        "name": "save_doc",
        "parameters": {"type": "object", "properties": {"path": TEXT, "text": TEXT}, "required": ["path", "text"]},
    },
]
CALL: Final = '{"name": "run_cmd", "arguments": {"cmd": "x"}}'
RUN: Final = ("run_cmd", {"cmd": "x"})
FENCE: Final = "```"


def read(text: str, finish: str = "stop", tools: Any = TOOLS, **options: Any) -> Scrubbed:
    return scrub_all_ways(text, tools, finish, **options)


def calls(result: Scrubbed) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in result.calls]


def reasons(result: Scrubbed) -> list[tuple[str, str | None]]:
    return [(one.reason, one.name) for one in result.rejected]


# What may stand behind a body and still belong to its block.
OPENED: Final = {
    "JSON in a tag": "<tool_call>" + CALL,
    "JSON in a fence in a tag": f"<tool_call>\n{FENCE}json\n{CALL}",
    "JSON behind a name": '<tool_call name="run_cmd">{"cmd": "x"}',
    "JSON in an invoke": '<invoke name="run_cmd">{"cmd": "x"}',
    "JSON in a function tag": '<function=run_cmd>{"cmd": "x"}',
    "parameters": '<invoke name="run_cmd"><parameter name="cmd">x</parameter>',
    "pairs": "<tool_call>run_cmd<arg_key>cmd</arg_key><arg_value>x</arg_value>",
    "Kimi": '<|tool_call_begin|>functions.run_cmd:0<|tool_call_argument_begin|>{"cmd": "x"}',
    "DeepSeek": f'<｜tool▁call▁begin｜>function<｜tool▁sep｜>run_cmd\n{FENCE}json\n{{"cmd": "x"}}',
    "DSML": '<｜DSML｜invoke name="run_cmd">{"cmd": "x"}',
}
JSON: Final = [name for name in OPENED if name not in ("parameters", "pairs")]


@pytest.mark.parametrize("piece", ["", "\n", "<|", "<|im_e", "<|im_end|>", "\n<|im_end|>\n"])
@pytest.mark.parametrize("form", OPENED)
def test_a_block_whose_padding_was_cut_is_not_run(form: str, piece: str) -> None:
    result = read(OPENED[form] + piece, "length")
    assert reasons(result) == [("truncated", "run_cmd")]
    assert not result.calls
    assert not result.text


@pytest.mark.parametrize("piece", ["`", "\n`", "\n``", "\n~", f"\n{FENCE}", "\n~~~\n", f"\n{FENCE}\n<|im"])
@pytest.mark.parametrize("form", JSON)
def test_nor_one_cut_in_a_fence_run(form: str, piece: str) -> None:
    result = read(OPENED[form] + piece, "length")
    assert reasons(result) == [("truncated", "run_cmd")]
    assert not result.text


@pytest.mark.parametrize(
    "text",
    [
        f"{FENCE}json\n{CALL}\n`",
        f"{FENCE}json\n{CALL}\n``",
        f"{FENCE}\n{CALL}\n`",
        f"~~~json\n{CALL}\n~~",
        CALL + "<|",
        CALL + " <|im_e",
        f'Action:\n{FENCE}json\n[{{"tool_name": "run_cmd", "parameters": {{"cmd": "x"}}}}]\n``',
    ],
)
def test_nor_a_form_without_a_marker_that_was_cut_at_its_end(text: str) -> None:
    result = read(text, "length")
    assert reasons(result) == [("truncated", "run_cmd")]
    assert not result.text


def test_with_an_ordinary_end_the_same_blocks_are_calls() -> None:
    for opened in OPENED.values():
        for piece in ("", "\n", "<|im_end|>", "<|im_e"):
            result = read(opened + piece)
            assert calls(result) == [RUN], opened + piece
            assert not result.text


@pytest.mark.parametrize("closer", ["</tool_call>", "<|im_end|></tool_call>", "\n<|im_end|>\n```\n</tool_call>"])
def test_tokens_that_carry_nothing_are_padding_before_the_closer(closer: str) -> None:
    result = read(f"<tool_call>{CALL}{closer}ok")
    assert calls(result) == [RUN]
    assert not result.calls[0].repairs
    assert result.text == "ok"


OPENERS: Final = ["<function=list_jobs>", '<invoke name="list_jobs">', '<｜DSML｜invoke name="list_jobs">']


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("opener", OPENERS)
def test_words_behind_an_opener_make_no_call_of_a_tool_that_needs_nothing(opener: str, finish: str) -> None:
    result = read(f"In that dialect {opener} opens a call.\nMore follows.", finish)
    assert reasons(result) == [("malformed", "list_jobs")]
    assert not result.calls
    assert result.text == "In that dialect opens a call.\nMore follows."


@pytest.mark.parametrize(
    ("opener", "closer"),
    [(OPENERS[0], "</function>"), (OPENERS[1], "</invoke>"), (OPENERS[2], "</｜DSML｜invoke>")],
)
def test_words_before_the_closer_on_their_line_belong_to_the_block(opener: str, closer: str) -> None:
    result = read(f"{opener}please{closer}ok")
    assert reasons(result) == [("malformed", "list_jobs")]
    assert result.text == "ok"
    for nothing in ("", " ", "\n"):
        assert calls(read(f"{opener}{nothing}{closer}ok")) == [("list_jobs", {})]
    assert calls(read(f"{opener}\nSome words.")) == [("list_jobs", {})]


@pytest.mark.parametrize("word", ["invoke", "function", "tool_call"])
def test_two_tags_without_a_name_are_words(word: str) -> None:
    text = f"The <{word}> <parameter> tags are described in chapter 4.\n\nMore text follows here."
    assert read(text).text == text
    assert read(text, "length").text == text


def test_a_parameter_without_a_name_is_words_behind_a_mention() -> None:
    result = read('Use <invoke name="run_cmd"> <parameter> tags.\nMore.')
    assert reasons(result) == [("malformed", "run_cmd")]
    assert result.text == "Use <parameter> tags.\nMore."
    result = read('<invoke name="run_cmd"><parameter>ls</parameter></invoke>ok')
    assert reasons(result) == [("malformed", "run_cmd")]
    assert result.text == "ok"


@pytest.mark.parametrize("opener", ["<tool_call>", '<tool_call name="run_cmd">', "<invoke>", '<invoke name="nobody">'])
def test_a_whole_opener_alone_on_its_line_is_dropped_at_the_end(opener: str) -> None:
    assert read(f"Words.\n{opener}").text == "Words.\n"
    assert read(f"Words.\n{opener}\n").text == "Words.\n"
    assert read(f"Words {opener}").text == f"Words {opener}"


def test_without_tools_the_object_is_whole_only_at_an_ordinary_end() -> None:
    text = '{"name": "q", "arguments": {"a": 1}}'
    assert reasons(read(text, "length", None)) == [("truncated", "q")]
    assert calls(read(text, "stop", None)) == [("q", {"a": 1})]


BEFORE_OBSERVATION: Final = [
    f"<tool_call>{CALL}</tool_call>",
    f"[TOOL_CALLS][{CALL}]",
    '<invoke name="run_cmd"><parameter name="cmd">x</parameter></invoke>',
    CALL,
    f"{FENCE}tool_call\n{CALL}\n{FENCE}",
    '<|tool_call_begin|>functions.run_cmd:0<|tool_call_argument_begin|>{"cmd": "x"}<|tool_call_end|>',
]


@pytest.mark.parametrize("call", BEFORE_OBSERVATION)
def test_an_observation_counts_only_behind_an_action(call: str) -> None:
    answer = "Observation: it rained.\nSo stay in."
    result = read(f"{call}\n{answer}")
    assert calls(result) == [RUN]
    assert result.text == answer
    result = read(f'Action: run_cmd\nAction Input: {{"cmd": "x"}}\n{answer}')
    assert calls(result) == [RUN]
    assert not result.text


@pytest.mark.parametrize("limit", range(20, 120, 7))
def test_the_name_of_a_call_that_is_too_large_depends_on_its_first_bytes_only(limit: int) -> None:
    body = '{"path": "p", "text": "' + "x" * 120 + '"}'
    for text in (
        f"<|tool_call_begin|>functions.save_doc:0<|tool_call_argument_begin|>{body}<|tool_call_end|>",
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>save_doc\n{FENCE}json\n{body}\n{FENCE}<｜tool▁call▁end｜>",
        f'<tool_call>{{"name": "save_doc", "arguments": {body}}}</tool_call>',
        f'<invoke name="save_doc">{body}</invoke>',
        f"<|channel|>commentary to=functions.save_doc<|message|>{body}<|call|>",
        f"{FENCE}tool_call\n" + f'{{"name": "save_doc", "arguments": {body}}}\n{FENCE}',
    ):
        for one in read(text, max_call_bytes=limit).rejected:
            assert one.reason == "too_large"


def test_a_key_without_its_end_is_malformed_where_the_call_has_one() -> None:
    assert reasons(read("<tool_call>list_jobs<arg_key></tool_call>")) == [("malformed", "list_jobs")]
    assert reasons(read("<tool_call>run_cmd<arg_key>cmd</tool_call>", "length")) == [("malformed", "run_cmd")]
    assert reasons(read("<tool_call>run_cmd<arg_key>cm", "length")) == [("truncated", "run_cmd")]


QUOTED: Final = [
    "<｜DSML｜tool_calls>",
    "</｜DSML｜tool_calls>",
    "</｜DSML｜invoke>",
    '<｜DSML｜invoke name="list_jobs">',
    '<|DSML|parameter name="x">',
    '<｜DSML｜parameter name="x" string="true">',
    "<｜DSML｜",
    "<|channel>thought",
    "<|channel>",
    "<|channel|>",
    "<|start|>assistant",
    "<|im_start|>user",
    "<|im_end|>",
    "<|tool_calls_section_begin|>",
]


@pytest.mark.parametrize("tag", QUOTED)
def test_a_tag_alone_in_an_inline_span_is_text(tag: str) -> None:
    for text in (f"Say `{tag}` ok", f"`{tag}` x", f"Say ``{tag}`` ok.\nMore."):
        result = read(text)
        assert result.text == text
        assert not result.calls
        assert not result.rejected


def test_only_a_wrapper_around_calls_makes_words_no_answer() -> None:
    result = read('Words <｜DSML｜parameter name="cmd" string="true">x</｜DSML｜parameter> more')
    assert result.text == "Words x more"
    assert read("Words <｜DSML｜ more words").text == "Words more words"
    assert read("Words </｜DSML｜invoke> more").text == "Words more"
    opened = "Words.\n<｜DSML｜tool_calls>\nno <｜DSML｜parameter> words </｜DSML｜parameter> here"
    assert read(opened).text == "Words.\n"
    assert read(opened + "</｜DSML｜tool_calls>\nMore.").text == "Words.\nMore."


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize(
    ("token", "cut"),
    [
        ("<|im_end|>\n", "<|im_start|>us"),
        ("", "<|im_start|>assist"),
        ("", "<|start_header_id|>assist"),
        ("", "<start_of_turn>mo"),
        ("", "<|turn>us"),
        ("", "]~b]a"),
        ("", "<|channel|>anal"),
        ("", "<|start|>assist"),
        ("", "<|start|>assistant<|channel|>commentary to"),
        ("", "<|start|>assistant<|channel|>commentary to="),
        ("", "<|start|>assistant to="),
        ("", "<|start|>assistant t"),
        ("", "<|start|>assistant "),
        ("", "<|channel|>analysis"),
        ("", "<|channel|>commentary "),
    ],
)
def test_a_header_that_the_end_cuts_is_dropped(token: str, cut: str, finish: str) -> None:
    result = read(f"Hi.{token}{cut}", finish)
    assert result.text.rstrip() == "Hi."
    assert not result.rejected
    result = read(f"<think>Hm.{cut}", finish)
    assert not result.text
    assert result.reasoning == "Hm."


@pytest.mark.parametrize("token", ["<|channel|>", "<|start|>"])
def test_the_opener_of_a_frame_that_words_follow_is_only_mentioned(token: str) -> None:
    result = read(f"<think>The {token} token is not needed.</think>No call.")
    assert result.text == "No call."
    assert result.reasoning == "The  token is not needed."
    assert read(f"The {token} token opens a frame. More text.").text == "The token opens a frame. More text."
    assert read(f"Two tokens: {token}, and another.\nMore.").text == "Two tokens: , and another.\nMore."
    result = read(f"The {token} token.\n<tool_call>{CALL}</tool_call>")
    assert calls(result) == [RUN]
    framed = f"<|channel|>analysis<|message|>A {token} token.<|end|><|start|>assistant<|channel|>final<|message|>Hi."
    assert read(framed).reasoning == "A  token."
    assert read(framed).text == "Hi."
    final = f"<|channel|>final<|message|>A {token} token and <tool_call>{CALL}</tool_call>."
    assert not read(final).calls
    call = '<think>Now. <|channel|>commentary to=functions.run_cmd<|message|>{"cmd": "x"}<|call|>'
    assert calls(read(call)) == [RUN]
    assert not read("Hi.<|start|>user<|message|>Now what?").text.removeprefix("Hi.")


BODIES: Final = {
    "tool_call": [CALL, 'run_cmd(cmd="x")', '<invoke name="run_cmd"><parameter name="cmd">x</parameter></invoke>'],
    "tool_code": ['run_cmd(cmd="x")', 'print(run_cmd(cmd="x"))', CALL],
    "invoke": [CALL],
}


@pytest.mark.parametrize("run", ["```", "````", "~~~", "~~~~", "``````"])
@pytest.mark.parametrize("language", BODIES)
def test_a_call_fence_is_closed_by_a_run_of_its_kind_that_is_as_long(language: str, run: str) -> None:
    for body in BODIES[language]:
        for closing in (run, run + run[:1]):
            result = read(f"{run}{language}\n{body}\n{closing}\nok then")
            assert calls(result) == [RUN]
            assert not result.rejected
            assert result.text == "ok then"
    result = read(f"{run}{language}\n{BODIES[language][0]}\n", "length")
    assert reasons(result) == [("truncated", "run_cmd")]


def test_the_run_that_closes_a_result_may_be_longer() -> None:
    text = f"{FENCE}tool_outputs\nall fine\n{FENCE}`\nDone."
    assert read(text).text == "Done."


@pytest.mark.parametrize(
    "behind",
    [
        "",
        "\n",
        "<|im_end|>",
        " <|im_end|>\n",
        "</tool_call>",
        "</tool_call>\n",
        "</tool_call></think>",
    ],
)
def test_a_line_value_ends_where_markup_stands_behind_it(behind: str) -> None:
    for value in ("ls", "a </b> c", "grep -c '</tool_call>' f", "x < y", "cat <<EOF"):
        result = read(f"run_cmd/cmd>{value}{behind}")
        assert calls(result) == [("run_cmd", {"cmd": value})]
        assert not result.text.strip()
        result = read(f'run_cmd/{{"cmd": "a <tool_call> {value}"}}{behind}')
        assert calls(result) == [("run_cmd", {"cmd": f"a <tool_call> {value}"})]
        assert not result.text.strip()


def test_lines_in_one_block_are_several_calls() -> None:
    result = read("<tool_call>run_cmd/cmd>a\nrun_cmd/cmd>b\nlist_jobs/{}\n</tool_call>ok")
    assert calls(result) == [("run_cmd", {"cmd": "a"}), ("run_cmd", {"cmd": "b"}), ("list_jobs", {})]
    assert result.text == "ok"


def test_another_call_is_no_part_of_a_line() -> None:
    result = read(f"Hi\nrun_cmd/cmd>a <tool_call>{CALL}</tool_call>")
    assert calls(result) == [RUN]
    assert result.text == "Hi\nrun_cmd/cmd>a "
    result = read(f"<tool_call>run_cmd/cmd>a <tool_call>{CALL}</tool_call>")
    assert calls(result) == [RUN]
    assert reasons(result) == [("truncated", "run_cmd")]
    assert reasons(read("run_cmd/cmd>l", "length")) == [("truncated", "run_cmd")]
    assert reasons(read('run_cmd/{"cmd": "l', "length")) == [("truncated", "run_cmd")]


@pytest.mark.parametrize("words", ["Now prose.", "prose", "- more", "Then it is done."])
def test_words_behind_code_make_the_block_malformed(words: str) -> None:
    result = read(f'<tool_call>run_cmd(cmd="x")\n{words}</tool_call>ok')
    assert reasons(result) == [("malformed", "run_cmd")]
    assert not result.calls
    assert result.text == "ok"
    result = read(f'<tool_call>run_cmd(cmd="x")\nlist_jobs()\n{words}</tool_call>')
    assert calls(result) == [RUN]
    assert reasons(result) == [("malformed", "list_jobs")]


@pytest.mark.parametrize("body", ['run_cmd(cmd="x")', "run_cmd[0|x]", CALL])
@pytest.mark.parametrize("next_", [f"<tool_call>{CALL}</tool_call>", '<invoke name="list_jobs"></invoke>'])
def test_another_opener_closes_a_complete_body(body: str, next_: str) -> None:
    for finish in ("stop", "length"):
        result = read(f"<tool_call>{body}\n{next_}", finish)
        assert len(result.calls) == 2
        assert calls(result)[0] == RUN
    result = read(f"<tool_call>run_cmd[0|x] words\n{next_}")
    assert len(result.calls) == 1
    assert reasons(result) == [("malformed", "run_cmd")]


@pytest.mark.parametrize("word", ["<function-name>", "<invoke>", "<parameter>", "<think>", "<function>", "<invoker>"])
def test_a_placeholder_in_json_is_malformed_and_nothing_of_it_is_shown(word: str) -> None:
    text = f'Write <tool_call>{{"name": {word}, "arguments": <args-json-object>}}</tool_call> please'
    result = read(text)
    assert reasons(result) == [("malformed", None)]
    assert result.text == "Write please"
    assert not result.reasoning
    listed = f'<tool_call>{{"name": "run_cmd", "arguments": {{"cmd": [{word}]}}}}</tool_call>ok'
    assert read(listed).text == "ok"
    assert not read(listed).calls
    missing = f'<tool_call>{{"name": "run_cmd", "arguments": {{"cmd": "a"}}\n<tool_call>{CALL}</tool_call>'
    assert calls(read(missing))[-1:] == [RUN]


@pytest.mark.parametrize(
    "text", ['print("</tool_call>")', 'a "</tool_call>" b', 'f("</tool_call>", "</tool_call>")\nreturn']
)
def test_a_closer_between_quotes_that_were_not_escaped_is_data(text: str) -> None:
    raw = text.replace("\n", "\\n")
    for opener, body in (
        ('<tool_call name="save_doc">\n', f'{{"path": "p", "text": "{raw}"}}\n'),
        ("<tool_call>", f'{{"name": "save_doc", "arguments": {{"path": "p", "text": "{raw}"}}}}'),
    ):
        result = read(f"{opener}{body}</tool_call>x")
        assert result.text == "x"
        for _, arguments in calls(result):
            assert arguments == {"path": "p", "text": text}
        assert len(result.calls) + len(result.rejected) == 1


def test_a_missing_bracket_is_still_repaired_at_the_closer() -> None:
    result = read('<tool_call>{"name": "run_cmd", "arguments": {"cmd": "x"</tool_call> and "more".')
    assert calls(result) == [RUN]
    assert result.text == 'and "more".'


@pytest.mark.parametrize(
    "text",
    ["analysis of the sample shows lime.", "final answer: 5", "finally it works", "analysis", "commentary track one"],
)
def test_a_sentence_that_begins_with_the_word_of_a_channel_is_text(text: str) -> None:
    result = read(text, model="gpt-oss-20b")
    assert result.text == text
    assert not result.reasoning


def test_words_of_channels_without_tokens_are_read_where_they_are_glued() -> None:
    result = read("analysisWe add.assistantfinalFour.", model="gpt-oss-20b")
    assert (result.reasoning, result.text) == ("We add.", "Four.")
    result = read("analysiswe add.assistantfinalFour.", model="gpt-oss-20b")
    assert (result.reasoning, result.text) == ("we add.", "Four.")
    result = read('commentary to=functions.run_cmd json{"cmd": "x"}', model="gpt-oss-20b")
    assert calls(result) == [RUN]


def test_an_empty_list_between_tokens_is_dropped() -> None:
    for text in (
        "<|python_start|>[]<|python_end|>x",
        f"{FENCE}tool_code\n[]\n{FENCE}\nx",
        "<tool_call>[]</tool_call>x",
    ):
        assert read(text).text == "x"
    assert read("[]\nx").text == "[]\nx"


def test_every_wrapper_of_tags_in_a_namespace_is_dropped() -> None:
    invoke = '<invoke name="run_cmd"><parameter name="cmd">x</parameter></invoke>'
    for word in ("function_calls", "tool_calls"):
        result = read(f"<atem:{word}>\n{invoke}\n</atem:{word}>ok")
        assert calls(result) == [RUN]
        assert result.text == "ok"


def test_padding_in_a_message_to_a_tool_waits_for_its_call() -> None:
    text = ' to=run_cmd<|message|><atem:function_calls>\n<atem:invoke name=}"x">\n42</atem:invoke>\nwords'
    assert reasons(read(text, prefill="<|start|>assistant")) == [("truncated", "run_cmd")]


SECTION = "]<]minimax[>["
SECTIONS = [
    '<|open|>tools<|sep|><|open|>call tool="list_jobs" index="1"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
    '<｜DSML｜tool_calls><｜DSML｜invoke name="list_jobs"></｜DSML｜invoke></｜DSML｜tool_calls>',
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.list_jobs:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    "<|tool_calls_section_end|>",
    f'{SECTION}<tool_call>{SECTION}<invoke name="list_jobs">{SECTION}</invoke>{SECTION}</tool_call>',
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>list_jobs<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
]


@pytest.mark.parametrize("ticks", ["`", "``", "```"])
@pytest.mark.parametrize("block", SECTIONS)
def test_a_section_with_its_calls_in_an_inline_span_is_text(block: str, ticks: str) -> None:
    text = f"The {ticks}{block}{ticks} form."
    result = read(text)
    assert (result.text, result.calls, result.rejected) == (text, [], [])


@pytest.mark.parametrize("tail", ["]", "]<", "]<]mini", SECTION, SECTION + "<", SECTION + "</inv"])
@pytest.mark.parametrize("finish", ["stop", "length", None])
def test_a_piece_of_a_shared_token_cuts_the_call_unless_the_model_stopped(tail: str, finish: str | None) -> None:
    wire = f'{SECTION}<tool_call>\n{SECTION}<invoke name="run_cmd">\n{SECTION}<cmd>x{SECTION}</cmd>\n{tail}'
    result = read(wire, finish)  # type: ignore[arg-type]
    if finish == "stop":
        assert calls(result) == [RUN]
    else:
        assert [(one.reason, one.name) for one in result.rejected] == [("truncated", "run_cmd")]


def test_a_token_does_not_take_the_bracket_of_the_next_marker() -> None:
    result = read(f"<mm:think>plan{SECTION}</mm:think>Hi")
    assert (result.reasoning, result.text) == ("plan", "Hi")
    result = read(f"{SECTION}<mm:think>plan{SECTION}</mm:think>Hi")
    assert (result.reasoning, result.text) == ("plan", "Hi")


@pytest.mark.parametrize("tag", ["<｜DSML｜tool_calls>", "<|DSML|tool_calls>", f"{SECTION}<tool_call>"])
def test_a_wrapper_that_is_only_mentioned_in_reasoning_is_dropped_whole(tag: str) -> None:
    result = read(f"<think>use {tag} then wait</think>Hi")
    assert (result.reasoning, result.text) == ("use  then wait", "Hi")


@pytest.mark.parametrize("token", ["<|tool_call|>", "<ifm|tool_call>", "<|tool_call_start|>", "[TOOL_CALLS]"])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_words_behind_a_token_are_no_name(token: str, finish: str) -> None:
    result = read(f"The token {token} comes first.", finish)
    assert (result.text.split(), result.calls, result.rejected) == (["The", "token", "comes", "first."], [], [])


def test_a_tag_of_tokens_with_an_unknown_name_is_a_call_by_its_form() -> None:
    result = read('See <｜DSML｜invoke name="x"> then.')
    assert [(one.reason, one.name) for one in result.rejected] == [("unknown_tool", "x")]
    assert result.text.split() == ["See", "then."]


def test_closers_of_pairs_are_no_text() -> None:
    result = read(f"Fine.\n<tool_call>{CALL}</tool_call>\n</arg_value>\nBye")
    assert (calls(result), result.text.split()) == ([RUN], ["Fine.", "Bye"])


@pytest.mark.parametrize(
    "opener",
    ["<tool_call>", "<iquest_tool_call>", "<tool_call:opensource>", '<cofl:tool_call id="0" name="', '<invoke name="'],
)
def test_a_name_that_the_end_cut_is_truncated_whatever_its_opener(opener: str) -> None:
    result = read(f"{opener}run_c", "length")
    assert [(one.reason, one.name) for one in result.rejected] == [("truncated", None)]


def test_a_python_set_is_a_list() -> None:
    result = read("<|tool_call_start|>[save_doc(path='p', text={'a', 'b'})]<|tool_call_end|>", tools=None)
    assert calls(result) == [("save_doc", {"path": "p", "text": ["a", "b"]})]


@pytest.mark.parametrize(
    "tag",
    [
        f'{SECTION}<invoke name="list_jobs">',
        '<|open|>call tool="x" index="1"<|sep|>',
        '<|open|>argument key="k" type="string"<|sep|>',
        "<|close|>call<|sep|>",
    ],
)
def test_a_lone_tag_of_tokens_in_an_inline_span_is_text(tag: str) -> None:
    text = f"Use `{tag}` here. Then more."
    result = read(text)
    assert (result.text, result.calls, result.rejected) == (text, [], [])


LISTED: Final = '{"name": "list_jobs", "arguments": {}}'


@pytest.mark.parametrize("opener", ["[TOOL_CALLS]", "<tool_call>", "<|tool_call|>"])
@pytest.mark.parametrize(
    "words", ["Now prose.", "- one\n- two", "“Done.”", "(see)", "`x` it is", "<b>x</b>", "Über", "กข"]
)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_words_behind_a_call_in_a_list_end_a_list_without_its_bracket(opener: str, words: str, finish: str) -> None:
    result = read(f"{opener}[{CALL},\n{LISTED}\n\n{words}", finish)
    assert calls(result) == [RUN, ("list_jobs", {})]
    assert result.text == words
    assert [repair.kind for repair in result.calls[0].repairs] == []
    assert "missing_bracket" in [repair.kind for repair in result.calls[1].repairs]


def test_what_may_still_be_a_list_of_calls_is_one() -> None:
    assert calls(read(f"[TOOL_CALLS][{CALL} {LISTED}, {CALL}] ok")) == [RUN, ("list_jobs", {}), RUN]
    assert reasons(read(f"[TOOL_CALLS][{CALL}", "length")) == [("truncated", "run_cmd")]


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_an_opener_with_a_lone_name_at_the_end_is_text_if_soft_and_cut_if_a_token(finish: str) -> None:
    """Where a name may stand first. With an ordinary end a soft opener was only mentioned."""
    for opener in ("<tool_call>", "<iquest_tool_call>", "<function_calls>"):
        result = read(f"Hi {opener}list_jobs", finish)
        cut = finish == "length"
        assert result.text == ("Hi " if cut else f"Hi {opener}list_jobs")
        assert (result.calls, reasons(result)) == ([], [("truncated", None)] * cut)
    for opener in ("<ifm|tool_call>", "<|tool_call|>", "<｜tool▁call▁begin｜>", "<|tool_call_start|>"):
        result = read(f"Hi {opener}list_jobs", finish)
        assert (result.text, result.calls, reasons(result)) == ("Hi ", [], [("truncated", None)])


@pytest.mark.parametrize("opener", ["<xai:function_call", '<cofl:tool_call id="0"', "<tool_call", "<longcat_tool_call"])
def test_words_behind_a_soft_opener_with_a_name_are_words(opener: str) -> None:
    for name in ("list_jobs", "run_cmd", "nothing"):
        for rest in (" is a tag.", " words\nmore", "\nwords"):
            text = f'The {opener} name="{name}">{rest}'
            result = read(text)
            assert (result.text, result.calls, result.rejected) == (text, [], [])


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("function call<|rol", "function call"),
        ("A function call<|role_sep|", "A function call"),
        ("list_jobs<|content_inv", "list_jobs"),
        ("to=list_jobs<|chan", "to=list_jobs"),
        ("call ]<]mini", "call "),
        ("<|channel|>final<|message|>Hi.<|end|>assistant<|chan", "Hi."),
        ("function call<|", "function call<|"),
        ("list_jobs<|what", "list_jobs<|what"),
    ],
)
def test_the_start_of_a_token_behind_held_words_is_no_text(text: str, visible: str, finish: str) -> None:
    assert read(text, finish).text == visible


@pytest.mark.parametrize(
    "text",
    [
        '<invoke name="run_cmd"><parameter name="cmd">' + 40 * "x" + '<parameter name="days">3</invoke> ok',
        f'<｜DSML｜function_calls>\n{CALL}\n```json\n[{{"name": "run//_cmd", "arguments": {{}}}}]\n```\n</｜',
        f"[TOOL_CALLS][{CALL}, {CALL}]\n</",
        f"<tool_call>[{CALL[:-1]}{8 * ' '}}} and</tool_call> x",
        '<invoke name="run_cmd"><parameter name="cmd">' + 20 * " " + "<![CDATA[</parameter>]]></parameter></invoke> ok",
    ],
)
def test_a_block_that_is_too_large_is_the_same_however_it_is_cut(text: str) -> None:
    for finish in ("stop", "length"):
        for limit in (32, 48, 64):
            scrub_all_ways(text, TOOLS, finish, max_call_bytes=limit)


@pytest.mark.parametrize(
    "text",
    [
        '`><|start|>assistant to=ping<|message|><atem:function_calls><atem:invoke="ping">\n',
        '`x<|start|>assistant to=ping<|message|><function_calls>\n<invoke name="ping">\n</invoke>\n</function_calls>\n',
        'a `b<|start|>assistant to=functions.ping<|message|><tool_call>{"name": "ping"}</tool_call>\n',
    ],
)
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_backtick_before_a_message_to_a_tool_reads_alike_at_every_cut(text: str, finish: str) -> None:
    scrub_all_ways(text, [{"name": "ping", "parameters": {}}], finish_reason=finish)


@pytest.mark.parametrize("blanks", range(7))
@pytest.mark.parametrize("body", ['{"name": "ping", "arguments": {}}', "{", '[{"name": "ping"', "```json\n{}"])
@pytest.mark.parametrize("words", ["", ">", "so"])
def test_an_object_on_a_line_of_its_own_in_a_section_reads_alike_at_every_cut(
    blanks: int, body: str, words: str
) -> None:
    text = "<|tool_calls_section_begin|>" + words + "\n" + " " * blanks + body
    for finish in ("stop", "length"):
        scrub_all_ways(text, [{"name": "ping", "parameters": {}}], finish_reason=finish)
        scrub_all_ways(text + "<|tool_calls_section_end|>x", [{"name": "ping", "parameters": {}}], finish_reason=finish)
