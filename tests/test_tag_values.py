"""Calls written as tags and pairs of tags: damaged tags, values that hold tags, cut ends, and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from streamscrub import Scrubbed, Tool, scrub
from streamscrub.bodies import pairs, tags
from streamscrub.grammar import Grammar, shipped
from streamscrub.union import tables_for

from .feeding import feed_all_ways

STRING = {"type": "string"}


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    return Tool(name, {"type": "object", "properties": properties, "required": list(required)})


WRITE_FILE = tool("write_file", ("path", "content"), path=STRING, content=STRING)
TOOLS = [
    tool("get_weather", ("city",), city=STRING, days={"type": "integer"}),
    tool("send_mail", ("to", "body"), to=STRING, body=STRING, subject=STRING),
    tool("noop"),
    WRITE_FILE,
]
GRAZ = [("get_weather", {"city": "Graz"})]
DSML = "｜DSML｜"


def reading(text: str, finish: str = "stop") -> Scrubbed:
    """What a text comes to, whole and however it is cut."""
    return Scrubbed(feed_all_ways(text, TOOLS, finish))


def calls(result: Scrubbed) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in result.calls]


def invoke(inside: str, name: str = "get_weather") -> str:
    return f'<invoke name="{name}">{inside}</invoke>'


def glm(inside: str) -> str:
    return f"<tool_call>{inside}</tool_call>"


CITY = '<parameter name="city">Graz</parameter>'
CITY_PAIR = "<arg_key>city</arg_key><arg_value>Graz</arg_value>"


@pytest.mark.parametrize("finish", ["length", "stop"])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('Ok <invoke name="get_weather"><param', "get_weather"),
        ("Ok <function=get_weather>\n<para", "get_weather"),
        (f'Ok <{DSML}invoke name="get_weather">\n<{DSML}parame', "get_weather"),
        ('Ok <invoke name="get_weather"><parameter name="ci', "get_weather"),
        ('Ok <invoke name="send_mail"><parameter name="to">a</parameter><parameter name="bo', "send_mail"),
        ('Ok <invoke name="send_mail"><parameter name="to">a</parameter><para', "send_mail"),
        (f"Ok <tool_call>get_weather{CITY_PAIR}<arg_k", "get_weather"),
        (f"Ok <tool_call>get_weather{CITY_PAIR}<arg_key>da", "get_weather"),
        ('Ok <invoke name="get_weather"><city>Gr', "get_weather"),
    ],
)
def test_a_piece_of_an_opener_is_part_of_a_truncated_call(text: str, name: str, finish: str) -> None:
    result = reading(text, finish)
    assert (result.text.strip(), result.calls) == ("Ok", [])
    assert [(one.reason, one.name) for one in result.rejected] == [("truncated", name)]


@pytest.mark.parametrize(
    "text",
    [
        f'<invoke name="get_weather">{CITY}</invoke',
        f'<invoke name="get_weather">{CITY}</inv',
        f"<tool_call>get_weather{CITY_PAIR}</tool_c",
        f'<invoke name="get_weather">{CITY}',
    ],
)
def test_a_piece_of_a_closer_completes_a_call_only_at_an_ordinary_end(text: str) -> None:
    assert calls(reading(text)) == GRAZ
    cut = reading(text, "length")
    assert (cut.text, [one.reason for one in cut.rejected]) == ("", ["truncated"])


def test_a_name_with_a_piece_of_a_key_is_truncated() -> None:
    result = reading("<tool_call>get_weather<arg_k", "length")
    assert (result.text, [one.reason for one in result.rejected]) == ("", ["truncated"])


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        # Tags with blanks, without their end, in capitals.
        ("<function=get_weather>\n< parameter = city >\nGraz\n</ parameter>\n</function>", False),
        ("<function=get_weather\n<parameter=city>\nGraz\n</parameter>\n</function>", True),
        ('<INVOKE NAME="get_weather"><PARAMETER NAME="city">Graz</PARAMETER></INVOKE>', False),
        ('<TOOL_CALL NAME="get_weather">{"city": "Graz"}</TOOL_CALL>', False),
        # Elements in place of parameters.
        (invoke('<arguments>{"city":"Graz"}</arguments>'), True),
        (invoke("<city>Graz</city>"), True),
        (invoke("<city>Graz"), True),
        # Both closers are missing.
        ("<tool_call>\n<function=get_weather>\n<parameter=city>\nGraz\n</tool_call>", True),
        ('<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Graz</minimax:tool_call>', True),
        ('<tool_call name="get_weather"><parameter name="city">Graz</tool_call>', True),
        (f'<{DSML}invoke name="get_weather"><{DSML}parameter name="city">Graz</{DSML}function_calls>', True),
        # Pairs with a tag missing, swapped, doubled, or with escapes between them.
        (glm("get_weather<arg_key>city<arg_value>Graz</arg_value>"), True),
        (glm("get_weather<arg_key>city</arg_value><arg_value>Graz</arg_value>"), True),
        (glm("get_weather<arg_key><arg_key>city</arg_key><arg_value>Graz</arg_value>"), False),
        (glm("get_weather<arg_key>city</arg_key>Graz"), True),
        (glm(r"get_weather\n<arg_key>city</arg_key>\n<arg_value>Graz</arg_value>\n"), True),
        (f"<tool_call>get_weather{CITY_PAIR}\n", True),
    ],
)
def test_damaged_tags_are_repaired(text: str, repaired: bool) -> None:
    result = reading(text)
    assert (calls(result), result.text.strip(), result.rejected) == (GRAZ, "", [])
    assert bool(result.calls[0].repairs) is repaired


@pytest.mark.parametrize(
    "text",
    ["<function=noop</function>", "<function=noop/>", glm("noop</arg_key>"), '<TOOL_CALL NAME="noop"></TOOL_CALL>'],
)
def test_a_call_without_parameters(text: str) -> None:
    result = reading(text + " ok")
    assert (calls(result), result.text.strip()) == ([("noop", {})], "ok")


def test_values_without_any_tags_of_their_own() -> None:
    result = reading(glm("get_weather<arg_key>city</arg_key>Graz<arg_key>days</arg_key>2"))
    assert calls(result) == [("get_weather", {"city": "Graz", "days": 2})]
    assert result.calls[0].repairs


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<function=get_weather>\n<parameter=>\nGraz\n</parameter>\n</function>", "get_weather"),
        ("<function=get_weather>\n<parameter ?>\nGraz\n</parameter>\n</function>", "get_weather"),
        (
            f'<{DSML}invoke name="get_weather"><{DSML}parameter name="">Graz</{DSML}parameter></{DSML}invoke>',
            "get_weather",
        ),
        (invoke("<parameter>Graz</parameter>"), "get_weather"),
        (invoke("<place>Graz</place>"), "get_weather"),
        (invoke('<arguments>{"city":"Graz"</arguments>'), "get_weather"),
        (invoke("<parameters><city>Graz</city></parameters>"), "get_weather"),
        (f'<invoke foo="x">{CITY}</invoke>', None),
        ("<function=>\n<parameter=city>\nGraz\n</parameter>\n</function>", None),
        (glm(CITY_PAIR), None),
        (glm("get_weather<arg_key></arg_key><arg_value>Graz</arg_value>"), "get_weather"),
    ],
)
def test_what_is_no_parameter_never_runs_and_never_shows(text: str, name: str | None) -> None:
    result = reading(text + "\nok")
    assert (result.calls, result.text.strip()) == ([], "ok")
    assert [(one.reason, one.name) for one in result.rejected] == [("malformed", name)]


@pytest.mark.parametrize("text", ['the <invoke foo="x"> tag', "a <function=> b", '<invoke foo="x"></invoke> t'])
def test_a_nameless_opener_alone_is_text(text: str) -> None:
    assert reading(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>get_weather{CITY_PAIR}\n" + glm("noop"),
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nGraz\n</tool_call>\n"
        "<tool_call>\n<function=noop>\n</function>\n</tool_call>",
    ],
)
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_a_missing_closer_does_not_swallow_the_next_call(text: str, finish: str) -> None:
    result = reading(text, finish)
    assert (calls(result), result.text) == ([*GRAZ, ("noop", {})], "")
    assert [repair.kind for repair in result.calls[0].repairs]


@pytest.mark.parametrize(
    ("text", "path", "content"),
    [
        (
            "<function=write_file>\n<parameter=path>\n<parameter=path>\nq\n</parameter>\n</parameter>\n"
            "<parameter=content>\nc\n</parameter>\n</function>",
            "<parameter=path>\nq\n</parameter>",
            "c",
        ),
        (
            glm(
                "write_file<arg_key>path</arg_key><arg_value>a</arg_value>"
                "<arg_key>content</arg_key><arg_value>say <arg_key>k</arg_key><arg_value>v</arg_value>"
            ),
            "a",
            "say <arg_key>k</arg_key><arg_value>v",
        ),
        (
            glm(
                "write_file<arg_key>path</arg_key><arg_value>a</arg_value>"
                "<arg_key>content</arg_key><arg_value>x</arg_key>y</arg_value>"
            ),
            "a",
            "x</arg_key>y",
        ),
    ],
)
def test_tags_inside_a_value_are_data(text: str, path: str, content: str) -> None:
    result = reading(text)
    assert calls(result) == [("write_file", {"path": path, "content": content})]
    assert result.calls[0].repairs == ()


@pytest.mark.parametrize(
    "text", [f'<invoke name="get_weather">{CITY}\nDone', f"<tool_call>get_weather{CITY_PAIR}\nDone"]
)
def test_the_last_closer_of_an_open_value_counts_at_an_ordinary_end(text: str) -> None:
    assert calls(reading(text)) == GRAZ
    assert [one.reason for one in reading(text, "length").rejected] == ["truncated"]


WRITERS = ["qwen3_coder", "claude", "dsml", "glm"]


def settings(grammar: str, known: Tool | None) -> tuple[Grammar, dict[str, Any]]:
    """What a writer is given: how the format is read and how the grammar file writes it."""
    found = tables_for(None, None)
    uses = {
        "qwen3_coder": lambda: found.roles[b"<function"].target,
        "claude": lambda: found.roles[b"<invoke"].target,
        "dsml": lambda: found.roles[f"<{DSML}invoke".encode()].target,
        "glm": lambda: next(use for use in found.roles[b"<tool_call"].target.uses if use.body.name == "pairs"),
    }
    one = shipped()[grammar]
    return one, {**uses[grammar]().settings, "form": one.data["render"]["form"], "tool": known}


ANY = tool("any_tool", text=STRING, more=STRING, maybe={"type": ["string", "null"]}, free={}, count={"type": "integer"})


@pytest.mark.parametrize("known", [ANY, None], ids=["known", "unknown"])
@pytest.mark.parametrize("grammar", WRITERS)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"text": "a", "count": 3},
        {"text": "\n two \n\n"},
        {"text": "x\r"},
        {"text": "12", "free": "12"},
        {"free": None},
        {"free": {"deep": [1, True, None, "</parameter>"]}},
        {"maybe": None},
        {"text": "end </invoke> </function> </tool_call> always"},
        {"text": "</parameter>\n</function>\n</tool_call>"},
        {"text": "</parameter></invoke>"},
        {"text": "</arg_value></tool_call>"},
        {"text": "<parameter=more>\nq\n</parameter>"},
        {"text": "\n<parameter=more>\nq\n</parameter>"},
        {"text": "<arg_key>more</arg_key><arg_value>q</arg_value>"},
        {"text": "<![CDATA[x]]>"},
        {"text": "{value} {key} {string}", "more": "{key}"},
        {"text": "\ud800"},
    ],
    ids=repr,
)
def test_what_is_written_reads_back_or_is_refused(arguments: dict[str, Any], grammar: str, known: Tool | None) -> None:
    one, given = settings(grammar, known)
    writer = pairs.write if grammar == "glm" else tags.write
    try:
        text = writer("any_tool", arguments, given)
    except ValueError:
        assert set(arguments) <= {"text", "maybe"}, "only these hold what a format cannot carry"
        return
    render = one.data["render"]
    text = render.get("calls", "{calls}").replace("{calls}", render.get("call", "{call}").replace("{call}", text))
    result = scrub(text, [known] if known else None)
    assert (calls(result), result.text.strip()) == ([("any_tool", arguments)], "")


@pytest.mark.parametrize("grammar", WRITERS)
def test_a_writer_without_the_reader_refuses_closers(grammar: str) -> None:
    one = shipped()[grammar]
    writer = pairs.write if grammar == "glm" else tags.write
    form = {"form": one.data["render"]["form"]}
    closer = {"glm": "</arg_value>", "dsml": f"</{DSML}parameter>"}.get(grammar, "</parameter>")
    assert "plain" in writer("any_tool", {"text": "plain"}, form)
    with pytest.raises(ValueError, match="cannot carry"):
        writer("any_tool", {"text": f"a {closer} b"}, form)


CODE = '<function name="write_file"><param name="path">a</param><param name="content">'


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (f"{CODE}<![CDATA[x</param></function> y]]></param></function>", "x</param></function> y"),
        (f"{CODE}\n<![CDATA[]] ]]>\n</param></function>", "]] "),
        (f'{CODE}<![CDATA[</param><param name="path">]]></param></function>', '</param><param name="path">'),
        (f"{CODE}see <![CDATA[</param></function>", "see <![CDATA["),
    ],
)
def test_a_cdata_section_is_opaque(text: str, content: str) -> None:
    assert calls(reading(text + " End.")) == [("write_file", {"path": "a", "content": content})]


def test_an_open_cdata_section_ends_at_its_first_closer_unless_the_stream_was_cut() -> None:
    text = f"{CODE}<![CDATA[x</param></function> y"
    result = reading(text)
    assert calls(result) == [("write_file", {"path": "a", "content": "<![CDATA[x"})]
    assert result.text.strip() == "y"
    assert [one.reason for one in reading(text, "length").rejected] == ["truncated"]


@pytest.mark.parametrize("lost", ["<paramname", "<param name ", "<param\u0120name"])
def test_the_blank_in_a_tag_may_be_lost(lost: str) -> None:
    text = f'<function name="get_weather">{lost}="city">Graz</param></function>'
    assert calls(reading(text)) == GRAZ


def test_an_element_around_the_parameters_is_taken_off() -> None:
    result = reading(invoke(f"<arguments>\n{CITY}\n</arguments>"))
    assert calls(result) == GRAZ
    assert [repair.kind for repair in result.calls[0].repairs] == ["unwrapped"]
    assert [one.reason for one in reading(invoke(f"<arguments>{CITY}</arg")[:-9], "length").rejected] == ["truncated"]


def test_a_tag_behind_a_header_carries_the_name() -> None:
    bar = "｜"
    head = f"<{bar}tool_calls_begin{bar}><{bar}tool_call_begin{bar}>function<{bar}tool_sep{bar}>"
    tail = f"<{bar}tool_call_end{bar}><{bar}tool_calls_end{bar}>"
    for opener, closer in (("<invoke", "</invoke>"), ("<steptml:invoke", "</steptml:invoke>")):
        inside = CITY.replace("parameter", opener[1:].replace("invoke", "parameter"))
        assert calls(reading(f'A.{head}{opener} name="get_weather">{inside}{closer}{tail}')) == GRAZ


# Each holds {} where the rest of the call stands.
STRAY = [
    '<invoke name="get_weather">\n<parameter name="city">Graz</parameter>\nWill do.\n{}</invoke>',
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nGraz\n</parameter>\nok, so\n{}</function>\n</tool_call>",
    "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Graz</arg_value>\nprose\n{}</tool_call>",
    f'<{DSML}invoke name="get_weather"><{DSML}parameter name="city">Graz</{DSML}parameter>\nprose\n{{}}</{DSML}invoke>',
]
NEXT = [
    '<invoke name="noop">\n</invoke>',
    "<tool_call>noop</tool_call>",
    '<tool_call>{"name": "noop", "arguments": {}}</tool_call>',
    f'<{DSML}invoke name="noop"></{DSML}invoke>',
]


@pytest.mark.parametrize("wire", STRAY)
def test_words_behind_the_last_parameter_are_no_part_of_it(wire: str) -> None:
    result = reading(wire.replace("{}", ""))
    assert calls(result) == GRAZ
    assert result.calls[0].repairs
    assert result.text == ""


@pytest.mark.parametrize("follows", NEXT)
@pytest.mark.parametrize("wire", STRAY)
def test_words_and_no_closer_do_not_cost_the_next_call(wire: str, follows: str) -> None:
    assert calls(reading(wire.partition("{}")[0] + follows)) == [*GRAZ, ("noop", {})]


@pytest.mark.parametrize("wire", STRAY)
def test_a_letter_behind_the_last_parameter_is_no_piece_of_a_tag(wire: str) -> None:
    cut = wire[: wire.index(">\n", wire.index("Graz")) + 1] if "<function" not in wire else wire[: wire.index("\nok")]
    assert [one.reason for one in reading(cut + "f", "length").rejected] == ["truncated"]


OPENERS = [
    ('<invoke name="get_weather">', "</invoke>"),
    ("<function=get_weather>", "</function>"),
    (f'<{DSML}invoke name="get_weather">', f"</{DSML}invoke>"),
]
BODIES = [
    '"{\\"city\\": \\"Graz\\"}"',
    '\n```json\n{"city": "Graz"}\n```\n',
    '<parameter name="city">Graz</parameter>',
    "<parameter=city>Graz</parameter>",
    '<param name="city">Graz</param>',
    f'<{DSML}parameter name="city" string="true">Graz</{DSML}parameter>',
    '<parameter name="city">Graz</parameter></parameter>',
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("opens", "closes"), OPENERS)
def test_a_call_takes_its_arguments_in_any_form(opens: str, closes: str, body: str) -> None:
    result = reading(f"{opens}{body}{closes}\nok")
    assert (calls(result), result.text.strip()) == (GRAZ, "ok")


@pytest.mark.parametrize("body", ["[1, 2]", '<value name="city">Graz</value>', "Graz"])
@pytest.mark.parametrize(("opens", "closes"), OPENERS)
def test_a_body_of_the_wrong_shape_never_runs_and_never_shows(opens: str, closes: str, body: str) -> None:
    result = reading(f"{opens}{body}{closes}ok")
    assert ([one.reason for one in result.rejected], result.calls, result.text) == (["malformed"], [], "ok")


def test_words_before_the_first_parameter_are_left_out() -> None:
    result = reading("<function=get_weather>\nI look.\n<parameter=city>\nGraz\n</parameter>\n</function>")
    assert (calls(result), result.text) == (GRAZ, "")
    assert [repair.kind for repair in result.calls[0].repairs] == ["stray_text"]


@pytest.mark.parametrize(
    "bar", [" ｜ DSML ｜ ", "｜ DSML ｜ ", "|DSML｜", "｜DSML|", "｜DSML |", " | DSML | ", "‖DSML‖", "||DSML||"]
)
def test_bars_are_read_in_every_spelling(bar: str) -> None:
    wire = f'<{bar}tool_calls>\n<{bar}invoke name="noop">\n</{bar}invoke>\n</{bar}tool_calls>'
    result = reading(wire)
    assert (calls(result), result.text) == ([("noop", {})], "")


@pytest.mark.parametrize("between", ["▁", "_", " "])
@pytest.mark.parametrize(("first", "last"), [("｜", "｜"), ("|", "|"), ("| ", " |"), ("｜", "|")])
def test_sentinels_are_read_in_every_spelling(first: str, last: str, between: str) -> None:
    def token(words: str) -> str:
        return f"<{first}{words.replace(' ', between)}{last}>"

    call = f'{token("tool call begin")}get_weather{token("tool sep")}{{"city": "Graz"}}{token("tool call end")}'
    result = reading(token("tool calls begin") + call + token("tool calls end"))
    assert (calls(result), result.text) == (GRAZ, "")


def test_a_tag_whose_name_goes_on_right_behind_the_name_ends() -> None:
    for tag in ("<parameterfoo>", "<parameters_x ", "<parametername"):
        assert reading(f'<invoke name="get_weather">{tag}{CITY}</invoke> End.').text.endswith("End.")


# The opener of a call, of a parameter, and their closers.
ONE_LINE = {
    "function": ("<function={}>", "<parameter={}>", "</parameter>", "</function>"),
    "invoke": ('<invoke name="{}">', '<parameter name="{}">', "</parameter>", "</invoke>"),
    "param": ('<function name="{}">', '<param name="{}">', "</param>", "</function>"),
    "dsml": (
        f'<{DSML}invoke name="{{}}">',
        f'<{DSML}parameter name="{{}}">',
        f"</{DSML}parameter>",
        f"</{DSML}invoke>",
    ),
}


@pytest.mark.parametrize("form", ONE_LINE)
@pytest.mark.parametrize("closed", [True, False])
def test_a_parameter_without_its_closer_ends_at_the_next_on_its_line_if_the_schema_shows_it(
    form: str, closed: bool
) -> None:
    opens, key, closer, closes = ONE_LINE[form]
    closer = closer if closed else ""
    for name, pairs_, wanted in (
        ("get_weather", [("city", "Graz"), ("days", "3")], {"city": "Graz", "days": 3}),
        ("get_weather", [("days", "3"), ("city", "Graz")], {"city": "Graz", "days": 3}),
        ("write_file", [("path", "a.md"), ("content", "x <b> y")], {"path": "a.md", "content": "x <b> y"}),
    ):
        body = "".join(key.format(one) + text for one, text in pairs_)
        result = reading(f"{opens.format(name)}{body}{closer}{closes}Done.")
        assert calls(result) == [(name, wanted)]
        assert {repair.kind for repair in result.calls[0].repairs} == {"missing_close"}
        assert result.text == "Done."


@pytest.mark.parametrize("form", ONE_LINE)
def test_a_tag_in_a_value_that_the_schema_does_not_show_to_be_the_next_is_data(form: str) -> None:
    opens, key, closer, closes = ONE_LINE[form]
    days, path, content, other = (key.format(name) for name in ("days", "path", "content", "other"))
    for name, body, values in (
        ("get_weather", f"{key.format('city')}see {days}three", {"city": f"see {days}three"}),
        ("get_weather", f"{key.format('city')}see {other}3", {"city": f"see {other}3"}),
        ("get_weather", f"{key.format('city')}see {days}3 there", {"city": f"see {days}3 there"}),
        ("write_file", f"{content}see {path}a{closer}{path}b", {"content": f"see {path}a", "path": "b"}),
        ("write_file", f"{content}see {path}a{closer} there", {"content": f"see {path}a{closer} there"}),
    ):
        assert calls(reading(f"{opens.format(name)}{body}{closer}{closes}")) == [(name, values)]


@pytest.mark.parametrize("gap", ["Ċ", "ĊĠĠ", " Ċ\n", "Ġ"])
def test_blanks_that_a_byte_level_vocabulary_leaves_between_tags_are_blanks(gap: str) -> None:
    for opens, key, closer, closes in ONE_LINE.values():
        inside = gap.join(["", key.format("city") + "Graz" + closer, key.format("days") + "3" + closer, ""])
        wire = gap.join([f"{opens.format('get_weather')}{inside}{closes}", f"{opens.format('noop')}{closes}", ""])
        result = reading(f"Ok. {wire}")
        assert calls(result) == [("get_weather", {"city": "Graz", "days": 3}), ("noop", {})]
        assert result.text == "Ok. "


def test_letters_that_are_also_leftover_blanks_stay_in_values_and_in_text() -> None:
    result = reading(invoke('<parameter name="city">ĠĊGrazĊ</parameter>') + "Ċikku")
    assert calls(result) == [("get_weather", {"city": "ĠĊGrazĊ"})]
    assert result.text == "Ċikku"
