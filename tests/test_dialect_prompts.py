"""What a dialect teaches: catalogues, examples that fit, forced choices, requests as they go out."""

from __future__ import annotations

import json
import pickle
import re
from typing import Any, Final

import pytest
from hypothesis import given, settings

from streamscrub import scrub
from streamscrub.dialects import Dialect, answer_tool, dialect, dialects, example_arguments, forced_choice
from streamscrub.dialects.prompts import CATALOGUES
from streamscrub.dialects.signatures import (
    interface,
    namespace,
    python_signature,
    rules_of,
    slot_signature,
    typescript_signature,
)
from streamscrub.host import validate
from streamscrub.tools import Tool, read_tools

from .dialect_material import PING, TALK, TEXTUAL, TIDE, TOOLS, named, objects
from .test_dialects import cases_of, check

IN_BAND: Final = [one for one in TEXTUAL if one.table["catalogue"] == "json"]
TICKET: Final = {
    "type": "object",
    "properties": {
        "subject": {"type": "string", "minLength": 3, "description": "What it\nis about."},
        "urgency": {"type": "string", "enum": ["now", "later"]},
        "code": {"type": "string", "pattern": r"^[A-Z]{2}\d{3}$", "maxLength": 5},
        "due": {"type": "string", "format": "date"},
        "watchers": {"type": "array", "items": {"type": "string", "format": "email"}, "maxItems": 3},
        "routing": {
            "type": "object",
            "properties": {"desk": {"type": "string"}, "attempts": {"type": "integer", "minimum": 1}},
            "required": ["desk"],
            "additionalProperties": False,
        },
        "parts": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
        },
        "when-ever": {"type": ["integer", "null"], "default": 4},
    },
    "required": ["subject", "urgency", "routing"],
}


@pytest.mark.parametrize("one", IN_BAND, ids=named)
def test_k_in_band_prompt(one: Dialect) -> None:
    text = one.prompt(TOOLS)
    head, _, rest = text.partition("<tools>\n")
    assert head.startswith("# Tools\n")
    assert "\n</tools>\n" in rest
    assert re.search(r"\{(?:tools|calls?|results|thinking|content|name|id|index)\}", text) is None
    assert all(tool["name"] in text for tool in TOOLS)
    assert [rule for rule in one.table["rules"] if f"- {rule}" not in text] == []
    assert one.prompt([]) == ""


@pytest.mark.parametrize("one", IN_BAND, ids=named)
def test_k_catalogue_line(one: Dialect) -> None:
    lines = one.catalogue(TOOLS).split("\n")
    assert [json.loads(line)["function"]["name"] for line in lines] == [tool["name"] for tool in TOOLS]
    assert lines == [json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False) for line in lines]


@pytest.mark.parametrize("one", TEXTUAL, ids=named)
def test_k_format_guide_per_dialect(one: Dialect) -> None:
    for several, names in ((False, ["get_tide"]), (True, ["get_tide", "ping"])):
        example = one.example(TOOLS, several=several)
        read = one.parse(example, TOOLS)
        assert ([call.name for call in read.calls], read.rejected, read.text.strip()) == (names, [], "")
        assert all(not call.repaired for call in read.calls)
    assert one.example(TOOLS) in one.prompt(TOOLS)


def test_k_full_parameter_rules_in_the_prompt() -> None:
    for case in cases_of("named_tag-catalogue"):
        check(case)
    assert interface(Tool("open-ticket", TICKET)) == "\n".join(
        [
            "interface OpenTicketArgs {",
            "  subject: string; // What it is about.; at least 3 characters",
            '  urgency: "now" | "later";',
            r"  code?: string; // at most 5 characters; pattern ^[A-Z]{2}\d{3}$",
            "  due?: string; // format date",
            "  watchers?: string[]; // at most 3 items; each: format email",
            "  routing: { // no other keys",
            "    desk: string;",
            "    attempts?: integer; // minimum 1",
            "  };",
            "  parts?: {",
            "    n: number;",
            "  }[];",
            '  "when-ever"?: integer | null; // default 4',
            "}",
        ]
    )


@settings(max_examples=max(200, settings().max_examples))
@given(schema=objects())
def test_k_example_fits_the_schema(schema: dict[str, Any]) -> None:
    tool = Tool("open_ticket", schema)
    arguments = example_arguments(tool)
    assert validate(arguments, tool) == []
    assert all(re.search(*pair) for pair in patterned(arguments, schema))
    assert example_arguments(tool) == arguments
    one = dialect("named_tag")
    call = one.parse(one.example([tool]), [tool]).calls[0]
    assert json.dumps(call.arguments) == json.dumps(arguments)


def patterned(value: Any, schema: Any) -> list[tuple[str, str]]:
    """(pattern, text) of all texts whose schema has a pattern."""
    if isinstance(value, str) and "pattern" in schema:
        return [(schema["pattern"], value)]
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return [pair for key, item in value.items() if key in known for pair in patterned(item, known[key])]
    if isinstance(value, list) and "items" in schema:
        return [pair for item in value for pair in patterned(item, schema["items"])]
    return []


@pytest.mark.parametrize("one", TEXTUAL, ids=named)
@settings(max_examples=settings().max_examples // 5)
@given(schema=objects())
def test_the_example_of_every_dialect_is_read_back_and_fits(one: Dialect, schema: dict[str, Any]) -> None:
    tool = Tool("open_ticket", schema)
    (call,) = one.parse(one.example([tool]), [tool]).calls
    assert validate(call.arguments, tool) == []


def test_k_signature_catalogues() -> None:
    for case in cases_of("pformat-catalogue", "python-catalogue", "typescript-catalogue"):
        check(case)
    tool = Tool("open_ticket", TICKET)
    assert slot_signature(tool) == (
        "open_ticket[0|<subject>|1|<urgency>|2|<routing>|3|<code>|4|<due>|5|<parts>|6|<watchers>|7|<when-ever>]"
    )
    assert typescript_signature(tool).startswith("function open_ticket(args: {subject: string, urgency: ")
    assert python_signature(tool) == "def open_ticket(args: dict) -> str"
    assert python_signature(Tool("my tool")) == '# unsupported tool name: "my tool"'
    assert python_signature(Tool("f", {"properties": {"class": {}}})) == "def f(args: dict) -> str"
    either = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    few = Tool("f", {"properties": {"a": {"enum": ["x", 1, None]}, "b": either}})
    assert python_signature(few) == 'def f(a: Literal["x", 1, None] = None, b: str | int = None) -> str'
    assert typescript_signature(few) == 'function f(a?: "x" | 1 | null, b?: string | number): string;'


def test_a_tool_that_a_dialect_cannot_write_is_no_example() -> None:
    odd = {"name": "my tool", "parameters": {"properties": {"a b": {"type": "string"}}, "required": ["a b"]}}
    for one in TEXTUAL:
        assert one.parse(one.example([odd, PING]), [odd, PING]).calls != []
        assert "my tool" in one.prompt([odd])


@pytest.mark.parametrize("one", TEXTUAL, ids=named)
def test_the_examples_of_a_tool_are_shown_in_the_syntax_of_the_dialect(one: Dialect) -> None:
    given = [{"harbor": "Faro", "days": 7}, {"harbor": "Lagos"}, {"harbor": 5}, {"days": 1}, "Faro"]
    tool = {"name": "get_tide", "input_schema": TIDE["parameters"], "input_examples": given}
    text = one.prompt([tool, PING])
    shown = re.findall("<example>\n(.*?)\n</example>", text, re.DOTALL)
    read = [call.arguments for example in shown for call in one.parse(example, [tool, PING]).calls]
    assert read == given[:2]
    assert one.parse(one.example([tool, PING]), [tool, PING]).calls[0].arguments == given[0]
    assert text == one.prompt([{**tool, "input_examples": given[:2]}, PING])
    assert "<example" not in one.prompt([{**tool, "input_examples": given[2:]}, PING])
    assert "<example" not in dialect("native").prompt([tool])


def test_examples_are_found_where_schemas_and_providers_put_them() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "examples": [{"a": 1}, 3]}
    for record in (
        {"name": "f", "input_schema": schema},
        {"type": "function", "function": {"name": "f", "parameters": schema}},
        {"name": "f", "parameters": {}, "examples": [{"a": 1}]},
        Tool("f", {}, "", ({"a": 1},)),
    ):
        (tool,) = read_tools([record]) or ()
        assert tool.examples == ({"a": 1},)
        assert pickle.loads(pickle.dumps(tool)).examples == tool.examples


@pytest.mark.parametrize(
    "pattern",
    [
        "^[^x]y$", "a.c", "^[^0-9]+$", r"^\W$", r"^\s\d\w$", "^[a-f]{3}$", "^(?:x|y)z?$", "^[^axz0_ -]$", r"^[\d]+$",
        r"^v\d+\.\d+$", "^(a|b)(c)?$", r"^\w+@\w+\.org$",
    ],
)  # fmt: skip
def test_an_example_fits_its_pattern(pattern: str) -> None:
    tool = Tool("f", {"properties": {"s": {"type": "string", "pattern": pattern}}, "required": ["s"]})
    assert re.search(pattern, example_arguments(tool)["s"])


@pytest.mark.parametrize(
    ("schema", "holds"),
    [
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, lambda value: 0 < value < 1),
        ({"type": "integer", "maximum": -3}, lambda value: value <= -3),
        ({"type": "integer", "minimum": 4, "multipleOf": 5}, lambda value: value >= 4 and value % 5 == 0),
        (
            {"type": "object", "minProperties": 2, "properties": {"a": {}, "b": {}, "c": {}}},
            lambda value: len(value) >= 2,
        ),
        ({"type": "array", "minItems": 2, "items": {"type": "boolean"}}, lambda value: len(value) == 2),
    ],
)
def test_an_example_keeps_its_limits(schema: dict[str, Any], holds: Any) -> None:
    tool = Tool("f", {"properties": {"v": schema}, "required": ["v"]})
    value = example_arguments(tool)["v"]
    assert holds(value), value
    assert validate({"v": value}, tool) == []


def test_rules_are_said_in_words() -> None:
    assert rules_of({"exclusiveMinimum": 0, "multipleOf": 5}) == ["more than 0", "a multiple of 5"]
    assert rules_of({"anyOf": [{"type": "string", "maxLength": 4}, {"type": "null"}]}) == [
        "as string: at most 4 characters"
    ]


def test_the_inventory_of_gpt_oss() -> None:
    assert namespace(read_tools([TIDE, PING]) or ()) == (
        "## functions\n\nnamespace functions {\n\n// Tide table for one harbour.\ntype get_tide = (_: {\n"
        "harbor: string,\ndays?: number,\nmetric?: boolean,\n}) => any;\n\n// Health check.\n"
        "type ping = () => any;\n\n} // namespace functions"
    )
    assert dialect("harmony").catalogue([PING], "namespace").startswith("## functions\n")


def test_every_style_lists_every_tool_in_every_dialect() -> None:
    for style in ("json", "block", "interfaces", "typescript", "python", "pformat", "xml", "namespace"):
        text = dialect("xml").catalogue(TOOLS, style)
        assert all(tool["name"] in text for tool in TOOLS)
    assert "<required>true</required>" in dialect("xml").catalogue([TIDE], "xml")
    with pytest.raises(ValueError, match="no style of a catalogue: 'yaml'"):
        dialect("xml").catalogue(TOOLS, "yaml")


def test_k_json_tag_block() -> None:
    for case in cases_of("json_tag-catalogue"):
        check(case)
    schema = json.dumps(TIDE["parameters"], separators=(",", ":"))
    text = dialect("json_tag").prompt([TIDE])
    assert f"- **get_tide**: Tide table for one harbour.\n  Parameters: `{schema}`" in text
    assert dialect("json_tag").prepare([], [TIDE]).tools is None


def test_k_native_block() -> None:
    text = dialect("native").prompt(TOOLS)
    assert text.startswith("## Tool Use Protocol\n")
    assert text.count(".") == 3
    assert not any(tool["name"] in text for tool in TOOLS)
    assert dialect("native").catalogue(TOOLS) == ""


def test_k_forced_choice_in_words() -> None:
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    one = dialect("json_tag")
    for choice in ({"type": "function", "function": {"name": "ping"}}, {"type": "tool", "name": "ping"}):
        made = one.prepare(talk, [TIDE, PING], choice)
        assert made.messages[0]["content"].endswith("\n\nYou must call the tool ping in this reply.")
        assert (made.tools, made.tool_choice) == (None, None)
    assert one.prepare(talk, [PING], "required").messages[0]["content"].endswith("at least one tool in this reply.")
    assert one.prepare(talk, [PING], {"type": "any"}).messages == one.prepare(talk, [PING], "required").messages
    words: list[Any] = ["none", {"type": "none"}, {"functionCallingConfig": {"mode": "NONE"}}, {"mode": "none"}, "NONE"]
    for word in words:
        made = one.prepare(talk, [PING], word)
        assert (made.messages, made.tools, made.tool_choice, made.registry) == (talk, None, None, ())
        (call,) = one.parse(one.render_calls([("ping", {})]), made.registry).rejected
        assert call.reason == "unknown_tool"
    with pytest.raises(ValueError, match="the forced tool 'pong' is not offered; offered: ping"):
        one.prepare(talk, [PING], {"name": "pong"})
    assert one.prepare(talk, [], "auto").messages == talk
    native = dialect("native").prepare(talk, [PING], "required")
    assert (native.messages, native.tools, native.tool_choice) == (talk, [PING], "required")
    assert forced_choice("auto") == forced_choice(None) == ""
    with pytest.raises(ValueError, match="no choice of tools"):
        forced_choice("sometimes")


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("ANY", "at least one tool"), ({"mode": "ANY"}, "at least one tool"), ({"any": {}}, "at least one tool"),
        ({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["ping"]}}, "the tool ping"),
        ({"function_calling_config": {"mode": "any", "allowed_function_names": ["a", "b"]}}, "the tool a or b"),
        ({"functionCallingConfig": {"mode": "AUTO"}}, ""), ({"auto": {}}, ""), ({}, ""), ("VALIDATED", ""),
        ({"tool": {"name": "ping"}}, "the tool ping"), ({"type": "function", "name": "ping"}, "the tool ping"),
        ({"type": "any", "disable_parallel_tool_use": True}, "at least one tool"),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "ping"}]}, "tool ping"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"name": "ping"}]}}, ""),
    ],
)  # fmt: skip
def test_a_choice_is_read_in_the_words_of_every_provider(choice: Any, said: str) -> None:
    sentence = forced_choice(choice)
    assert said in sentence
    assert bool(said) == bool(sentence)


def test_k_host_renders_tool_catalogue() -> None:
    one = dialect("json_tag")
    talk = [{"role": "system", "content": f"Mine.\n\n{one.prompt([PING])}"}, {"role": "user", "content": "hi"}]
    assert one.prepare(talk, [PING], host_renders_tool_catalogue=True).messages == talk
    forced = one.prepare(talk, [PING], "required", host_renders_tool_catalogue=True).messages[0]["content"]
    assert forced == f"{talk[0]['content']}\n\nYou must call at least one tool in this reply."
    # Without the flag the block is added, whatever the prompt looks like.
    assert one.prepare(talk, [PING]).messages[0]["content"].count("## Tool Use Protocol") == 2
    assert one.prepare(talk[1:], [PING]).messages[0]["role"] == "system"


def test_k_structured_output_fallback_tool() -> None:
    answer = answer_tool({"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]})
    one = dialect("pformat")
    made = one.prepare([], [PING], host_renders_tool_catalogue=True, synthesized=[answer])
    said = made.messages[0]["content"]
    assert "Call as: `give_answer[0|<total>]`" in said
    assert "ping" not in said
    read = one.parse("<tool_call>give_answer[0|7]</tool_call>", made.registry)
    assert [(call.name, call.arguments) for call in read.calls] == [("give_answer", {"total": 7})]
    native = dialect("native").prepare([], [PING], synthesized=[answer])
    assert native.tools is not None
    assert [native.tools[0], native.tools[1]["function"]["name"]] == [PING, "give_answer"]


@pytest.mark.parametrize("one", TEXTUAL, ids=named)
def test_k_prefix_stability(one: Dialect) -> None:
    assert one.prompt(TOOLS) == one.prompt(json.loads(json.dumps(TOOLS)))
    talk = [*TALK, {"role": "user", "content": "And tomorrow?"}, *TALK[2:]]
    # Everything up to a whole turn renders to the same bytes when the conversation grows.
    ends = [at for at in range(1, len(talk) + 1) if at == len(talk) or talk[at]["role"] != "tool"]
    whole = one.encode(talk, TOOLS)
    for end in ends:
        part = one.encode(talk[:end], TOOLS)
        assert part == whole[: len(part)]
        if "transcript" in one.table and end > 1:
            assert one.transcript(talk, TOOLS).startswith(one.transcript(talk[:end], TOOLS)) or one.name == "gemma"


def test_a_prompt_that_a_model_repeats_runs_no_result_and_leaks_no_marker() -> None:
    """The block is text about markup: read as a reply it holds its example calls and nothing else."""
    for one in dialects().values():
        for call in scrub(one.prompt(TOOLS), TOOLS).calls:
            assert call.name in ("get_tide", "ping")


# -- schemas that nobody should write


def _itself(parts: int) -> dict[str, Any]:
    names = "abcdefgh"[:parts]
    node = {"type": "object", "properties": {name: {"$ref": "#/$defs/node"} for name in names}, "required": [*names]}
    either = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/either"}, "minItems": at} for at in range(parts)]}
    both: dict[str, Any] = {"allOf": [{"$ref": "#/$defs/both"} for _ in range(parts)]}
    properties = {name: {"$ref": f"#/$defs/{name}"} for name in ("node", "either", "both")}
    return {
        "$defs": {"node": node, "either": either, "both": both},
        "type": "object",
        "properties": properties,
        "required": [*properties],
    }


def test_a_schema_that_holds_itself_several_times_is_cheap() -> None:
    tools = [{"name": "grow", "parameters": _itself(8)}]
    assert len(json.dumps(example_arguments(Tool("grow", _itself(8))))) < 20_000
    for one in dialects().values():
        assert len(one.prompt(tools)) < 100_000
    for style in CATALOGUES:
        assert len(dialect("xml").catalogue(tools, style)) < 50_000


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        # Matched by trying, the first two would take longer than the world has been there.
        (r"^(\w+\s?)*!$", "!"), ("^(a|a)+$", "a"), (r"^v\d+(\.\d+)*$", "v1.1"), ("^[a-p]+$", "a"),
        ("((((a{200}){200}){200}){200})", "q" * 60), ("(", "q" * 60), (r"^\w+$", "q" * 60), ("^(?=q)", "q" * 60),
    ],
)  # fmt: skip
def test_no_pattern_of_a_schema_runs_without_a_bound(pattern: str, found: str) -> None:
    key = "q" * 60
    schema = {"properties": {key: {"type": "string", "pattern": pattern}}, "required": [key]}
    made = example_arguments(Tool("find", schema))[key]
    assert made == found or (found == "!" and made.endswith("!"))


def test_what_a_schema_says_of_itself_is_taken_only_if_it_fits() -> None:
    told = {
        "a": {"type": "integer", "default": "soon"},
        "b": {"type": "integer", "examples": ["soon", 3]},
        "c": {"anyOf": [{"type": "null"}]},
        "d": {"type": "boolean", "default": True},
    }
    assert example_arguments(Tool("f", {"properties": told, "required": [*told]})) == {
        "a": 1, "b": 3, "c": None, "d": True,
    }  # fmt: skip
