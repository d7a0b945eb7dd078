"""The rows of repair, names and coercion: one test a row, and the tables behind them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.repairs import DAMAGE, PAGE, measured, with_library, with_streamscrub
from streamscrub import RejectedCall, Scrubbed, StreamScrubber, Tool, ToolCall, scrub
from streamscrub.edits import applied
from streamscrub.names import Offer
from streamscrub.repair import Unreadable, load
from streamscrub.shapes import accepts, coerce, type_texts

from .test_repair import DAMAGE as WAYS
from .test_repair import INDENTS, OBJECTS, dump, same

STR: dict[str, Any] = {"type": "string"}
INT: dict[str, Any] = {"type": "integer"}
TOOLS = [
    {"name": "read_ledger", "parameters": {"type": "object", "properties": {"ledger": STR}}},
    {
        "name": "edit_note",
        "parameters": {
            "type": "object",
            "properties": {"path": STR, "find": STR, "replace": STR},
            "required": ["path", "find", "replace"],
        },
    },
    {
        "name": "tide",
        "parameters": {
            "type": "object",
            "properties": {"days": INT, "dry": {"type": "boolean"}, "ports": {"type": "array"}},
        },
    },
    {"name": "run", "parameters": {"type": "object", "properties": {"code": STR}, "required": ["code"]}},
]


def wire(body: str, name: str = "") -> str:
    return f'<tool_call name="{name}">\n{body}\n</tool_call>' if name else f"<tool_call>\n{body}\n</tool_call>"


def one(text: str, tools: Any = TOOLS, **options: Any) -> ToolCall:
    (call,) = scrub(text, tools, **options).calls
    return call


def tide(arguments: str) -> str:
    return wire(f'{{"name": "tide", "arguments": {arguments}}}')


# C. Repair


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("{'days': 1,}", {"days": 1}),
        ("{days: 1}", {"days": 1}),
        ('{"dry": True}', {"dry": True}),
        ('{"ports": ["a\nb"]}', {"ports": ["a\nb"]}),
        (r'{"ports": ["\d+ km"]}', {"ports": [r"\d+ km"]}),
        ('{"days": 1, // one\n "dry": false /* no */}', {"days": 1, "dry": False}),
        ("{\"ports': ['a', \"b\"]}", {"ports": ["a", "b"]}),
    ],
)
def test_c_json_repair(body: str, arguments: dict[str, Any]) -> None:
    assert one(tide(body)).arguments == one(wire(body, "tide")).arguments == arguments


@pytest.mark.parametrize("body", ['{"days":', '{"days": 1', '{"ports": ["a'])
def test_c_json_repair__refuses_what_is_cut(body: str) -> None:
    for text in (f'<tool_call>{{"name": "tide", "arguments": {body}', f'<tool_call name="tide">{body}'):
        for reason in ("stop", "length"):
            result = scrub(text, TOOLS, finish_reason=reason)
            assert result.calls == []
            assert [call.reason for call in result.rejected] == ["truncated"]


def test_c_json_repair__refuses_text_behind_the_value() -> None:
    with pytest.raises(Unreadable):
        load('{"days": 1} and so on')


@pytest.mark.parametrize(
    "body",
    [
        '```json\n{"path": "a", "find": "b", "replace": "c"}\n```',
        '```\n{"path": "a", "find": "b", "replace": "c"}\n```',
        '<syntax>{"path": "a", "find": "b", "replace": "c"}</syntax>',
        '<block>\n{"path": "a", "find": "b", "replace": "c"}\n</block>',
        '<code>{"path": "a", "find": "b", "replace": "c"}</code>',
        '<json>\n{"path": "a", "find": "b", "replace": "c"}</json>',
        '{"path": "a"}\n{"find": "b", "replace": "c"}',
        '{"path": "a"}{"find": "b"}{"replace": "c"}',
        "path: a\nfind: b\nreplace: c",
        '\n  path:  a\r\n  find : b\n\n  replace: "c"\n',
        "```yaml\npath: a\nfind: b\nreplace: c\n```",
    ],
)
def test_c_split_objects_wrappers(body: str) -> None:
    call = one(wire(body, "edit_note"))
    assert call.arguments == {"path": "a", "find": "b", "replace": "c"}
    assert call.strategy in ("wrapper", "merged", "loose")


@pytest.mark.parametrize(
    "opened",
    [
        "<function=edit_note>{}</function>",
        '<invoke name="edit_note">{}</invoke>',
        '<tool_call name="edit_note">{}</tool_call>',
    ],
)
def test_c_split_objects_wrappers__lines_in_every_tag(opened: str) -> None:
    value = 'say: "x" \\ <b> // é'
    wire = opened.replace("{}", f"\npath: a.md\nfind: {value}\nreplace: 3\n")
    for size in (1, 4, len(wire)):
        scrubber = StreamScrubber(TOOLS)
        events = [event for at in range(0, len(wire), size) for event in scrubber.feed(wire[at : at + size])]
        (call,) = [event for event in events + scrubber.finish("stop") if isinstance(event, ToolCall)]
        assert call.arguments == {"path": "a.md", "find": value, "replace": "3"}
        assert [(repair.kind, repair.before) for repair in call.repairs] == [
            ("lines", "path: a.md"), ("lines", f"find: {value}"), ("lines", "replace: 3"),
        ]  # fmt: skip
    for end in range(len(wire) - len("</tool_call>") - 8):
        assert scrub(wire[:end], TOOLS, finish_reason="length").calls == []


@pytest.mark.parametrize(
    "body",
    [
        "path: a\nfind: b",  # a required key is missing
        "path: a\nfind: b\nreplace: c\nand more",
        "path: a\nfind: b\nreplace:",
        "path: a\nfind: b\nreplace: |\n  c",
        "path: a\nfind: b\nfind: d\nreplace: c",
        "path: a\nfind: b\nreplace: c\nwhy: d",  # no parameter of the tool
        'path: a\nfind: "b\nreplace: c',
        "path: a\nfind: [NaN]\nreplace: c",
    ],
)
def test_c_split_objects_wrappers__lines_that_leave_a_doubt_are_none(body: str) -> None:
    result = scrub(wire(body, "edit_note"), TOOLS)
    assert result.calls == []
    assert [(call.reason, call.name) for call in result.rejected] == [("malformed", "edit_note")]


def test_c_split_objects_wrappers__lines_need_a_key_of_the_tool() -> None:
    for body, name in (("The note: a.md", "edit_note"), ("days: 1", "edit_note"), ("path: a", "unknown")):
        result = scrub(wire(body, name), TOOLS)
        assert result.calls == []
        assert body in result.text
    assert one(wire('days: 2\ndry: true\nports: ["a"]', "tide")).arguments == {"days": 2, "dry": True, "ports": ["a"]}
    assert scrub(wire("days: many", "tide"), TOOLS).rejected[0].reason == "malformed"


def test_c_split_objects_wrappers__leave_a_parameter_of_that_name_alone() -> None:
    assert scrub('<tool_call name="run"><code>{"a": 1}</code></tool_call>', TOOLS).calls == []
    objects = wire('{"days": 1}\n{"days": 2}', "tide")
    assert [call.arguments for call in scrub(objects, TOOLS).calls] == [{"days": 1}, {"days": 2}]


ANCHORED = [
    (
        '{"path":"z","find":"print("a")\nnext","replace":"print("b")\nlast"}',
        ("z", 'print("a")\nnext', 'print("b")\nlast'),
    ),
    ('{"path":"z","find":"5" pipe","replace":"x"}', ("z", '5" pipe', "x")),
    ('{"path":"z","find":"a\n"b"\nc","replace":""}', ("z", 'a\n"b"\nc', "")),
    ('{"path":"z","find":"x = {"k": "v"}","replace":"y"}', None),  # the braces look like the end
    ('{"path":"z","find":"f("a", "b")","replace":"g("a")\n"}', ("z", 'f("a", "b")', 'g("a")\n')),
    ('{"path":"z","find":"a","replace":"5" pipe"}', None),  # the last quote may be one of the text
    ('{"path":"z","find":"5" pipe"}', None),  # a required key is missing
    ('{"path":"z","find":"5" pipe","find":"b","replace":"x"}', None),  # a key twice: one of the two is text
    ('{"path":"z","find":"say "replace": "x"","replace":"y"}', ("z", 'say "replace": "x"', "y")),
]


@pytest.mark.parametrize(("body", "values"), ANCHORED)
def test_c_schema_anchored_extraction(body: str, values: tuple[str, str, str] | None) -> None:
    for text in (wire(body, "edit_note"), wire(f'{{"name": "edit_note", "arguments": {body}}}')):
        result = scrub(text, TOOLS)
        assert [tuple(call.arguments.values()) for call in result.calls] == ([values] if values else [])
        assert [call.reason for call in result.rejected] == ([] if values else ["malformed"])


@given(st.lists(st.text(alphabet='ab ".,:{\n', max_size=12), min_size=3, max_size=3))
def test_c_schema_anchored_extraction__never_invents_a_value(values: list[str]) -> None:
    body = "{" + ", ".join(f'"{k}": "{v}"' for k, v in zip(("path", "find", "replace"), values, strict=True)) + "}"
    for call in scrub(wire(body, "edit_note"), TOOLS).calls:
        read = call.arguments
        assert set(read) == {"path", "find", "replace"}
        # Every character that was written stands in one of the values or between two of them.
        assert [len(value) for value in read.values()] == [len(value) for value in values] or '"' in "".join(values)


def test_c_stringified_arguments() -> None:
    call = one(wire(r'{"name": "tide", "arguments": "{\"days\":1}"}'))
    assert call.arguments == {"days": 1}
    assert [repair.kind for repair in call.repairs] == ["string_arguments"]
    twice = json.dumps({"name": "tide", "arguments": json.dumps(json.dumps({"days": 1}))})
    assert one(wire(twice)).arguments == {"days": 1}
    thrice = json.dumps({"name": "tide", "arguments": json.dumps(json.dumps(json.dumps({"days": 1})))})
    assert scrub(wire(thrice), TOOLS).rejected[0].reason == "malformed"


def test_c_leaked_delimiters_in_an_arguments_blob() -> None:
    assert load('{"days":1}</tool_call>', markers=("</tool_call>",)).value == {"days": 1}
    assert {repair.kind for repair in load('{"days":1}</tool_call>', markers=("</tool_call>",)).repairs} == {
        "leaked_token"
    }
    assert one(wire('{"name": "tide", "arguments": {"days": 1}}</tool_call>')).arguments == {"days": 1}


@pytest.mark.parametrize("arguments", ['"hello"', "5", "true", '"[1]"', "[1]", '{"days": ???}'])
def test_c_invalid_not_fatal(arguments: str) -> None:
    result = scrub(tide(arguments), TOOLS)
    assert result.calls == []
    (rejected,) = result.rejected
    assert (rejected.reason, rejected.name) == ("malformed", "tide")
    assert rejected.arguments is None
    assert arguments.encode() in rejected.raw
    assert rejected.detail


@pytest.mark.parametrize(
    "body", ['{"name": ???}', '{"name": "tide", "arguments": {', '{"name": "tide", "arguments": "x"}', "{]"]
)
def test_c_malformed_block_never_leaks(body: str) -> None:
    result = scrub(f"before {wire(body)}after", TOOLS)
    assert result.calls == []
    assert "name" not in result.text or body == "{]"
    assert result.text.startswith("before ")
    assert result.text.endswith("after")


# The strict mode: a wire text for every kind of repair

KINDS = {
    "anchored": wire('{"path":"z","find":"5" pipe","replace":"x"}', "edit_note"),
    "name": wire('{"name": "tides", "arguments": {}}'),
    "nameless": "<|tool_calls_section_begin|><|tool_call_begin|>0<|tool_call_argument_begin|>"
    '{"ledger": "a"}<|tool_call_end|><|tool_calls_section_end|>',
    "merged": wire('{"path": "a"}\n{"find": "b", "replace": "c"}', "edit_note"),
    "wrapper": wire('<json>{"days": 1}</json>', "tide"),
    "fence": wire('```json\n{"days": 1}\n```', "tide"),
    "braces": wire('{{"name": "tide", "arguments": {}}}'),
    "unwrapped": tide('{"args": {"days": 1}}'),
    "missing_close": '<tool_call>{"name": "tide", "arguments": {}}',
    "stray_text": '<invoke name="tide"><parameter name="days">1</parameter> so\n</invoke>',
    "missing_tag": "<tool_call>tide\n<arg_key>days</arg_key>\n1</arg_value>\n</tool_call>",
    "coerced": tide('{"days": "1"}'),
    "unclosed_reasoning": '<think>so <tool_call>{"name": "tide", "arguments": {}}</tool_call>',
    "quotes": tide("{\"ports\": ['a']}"),
    "key_quotes": tide("{days: 1}"),
    "inner_quotes": tide('{"ports": ["say "a" now"]}'),
    "control_characters": tide('{"ports": ["a\n"]}'),
    "escape": tide(r'{"ports": ["\d x"]}'),
    "stray_escape": tide(r'{"days": \n1}'),
    "trailing_comma": tide('{"days": 1,}'),
    "missing_comma": tide('{"days": 1 "dry": true}'),
    "missing_colon": tide('{"days" 1}'),
    "surplus_colon": tide('{"days":: 1}'),
    "missing_bracket": wire('{"name": "tide", "arguments": {"days": 1}'),
    "surplus_bracket": wire('{"name": "tide", "arguments": {"days": 1}}}'),
    "comment": tide('{"days": 1 /* one */}'),
    "python_literal": tide('{"dry": True}'),
    "number": tide('{"days": 01}'),
    "json_repair": tide('{"ports": [a, b c]}'),
    "lines": wire("days: 1", "tide"),
    "repeated": tide('{"days": 1, "days": 2}'),
    "no_arguments": wire('{"name": "tide", "arguments": null}'),
    "string_arguments": tide('"{}"'),
    "flattened": wire('{"name": "tide", "days": 1}'),
    "key": tide('{"Days": 1}'),
    "code": "<|start|>assistant<|channel|>commentary to=functions.run <|constrain|>code<|message|>print(1)<|call|>",
    "null_omitted": tide('{"days": null}'),
    "surrogate": tide(r'{"ports": ["\ud800"]}'),
}


def documented_kinds() -> dict[str, tuple[str, str]]:
    """Kind -> the texts before and after that the page shows."""
    page = PAGE.read_text(encoding="utf-8").partition("\n## Kinds\n")[2].partition("\n## ")[0].replace("\\|", "|")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (?:no texts|(.*) → (.*)) \|$", page, re.MULTILINE)
    words = {"nothing": "", "a newline": "\n", "": ""}
    return {kind: (words.get(before, before[1:-1]), words.get(after, after[1:-1])) for kind, before, after in rows}


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_shows_what_stood_before_and_stands_now(kind: str) -> None:
    found = {(repair.before, repair.after) for repair in one(KINDS[kind]).repairs if repair.kind == kind}
    assert documented_kinds()[kind] in found


def test_every_kind_has_a_wire_text() -> None:
    # A token between those of a body ends it where the format has closers: it leaks into blobs only.
    assert sorted(KINDS) == sorted(documented_kinds().keys() - {"leaked_token"})


@pytest.mark.parametrize("kind", KINDS)
def test_the_strict_mode_rejects_every_kind_of_repair(kind: str) -> None:
    call = one(KINDS[kind])
    assert kind in {repair.kind for repair in call.repairs}
    result = scrub(KINDS[kind], TOOLS, strict=True)
    assert result.calls == []
    (rejected,) = result.rejected
    assert (rejected.reason, rejected.name) == ("malformed", call.name)
    assert rejected.detail.startswith("needs a repair")
    assert rejected.raw == call.raw


# The table of damage


@pytest.mark.parametrize("name", DAMAGE)
def test_no_damaged_call_is_accepted_as_another(name: str) -> None:
    assert measured(name, 12, with_streamscrub).wrong == []


def test_the_page_has_the_table_and_nothing_wrong_in_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w ,]+) \| [^|\n]+ \| (\d+%) \| 0 \| ", page.replace("`\\|`", ""), re.MULTILINE))
    assert set(rows) == set(DAMAGE)
    assert "| **all** | 1120 calls | **89%** | **0** |" in page
    assert sum(share == "100%" for share in rows.values()) >= 19


@pytest.mark.parametrize(
    "name", ["trailing commas", "raw newlines", "inner quotes", "missing comma", "surplus brackets"]
)
def test_certain_damage_is_always_recovered(name: str) -> None:
    assert measured(name, 12, with_streamscrub).recovered == 12


def test_json_repair_alone_accepts_other_calls() -> None:
    assert len(measured("inner quotes", 12, with_library("json_repair")).wrong) > 3


# Idempotence


@given(value=OBJECTS, indent=INDENTS, way=st.sampled_from(sorted(WAYS)))
def test_repairing_the_repaired_text_changes_nothing(value: dict[str, Any], indent: int | None, way: str) -> None:
    text = WAYS[way](dump(value, indent), value)
    try:
        loaded = load(text, markers=("<T>",))
    except Unreadable:
        return
    again = load(applied(text, loaded.edits), markers=("<T>",))
    assert again.repairs == ()
    assert same(again.value, loaded.value)


def test_coercing_twice_is_coercing_once() -> None:
    tool = Tool("t", {"properties": {"n": INT, "l": {"type": "array", "items": INT}, "o": {"type": "object"}}})
    first, changes = coerce({"N": "07", "l": "3", "o": "{'a': True}"}, tool)
    assert [one.kind for one in changes] == ["key", "coerced", "coerced", "coerced", "python_literal"]
    assert coerce(first, tool) == (first, [])


# D. Names


def damaged_name(written: str) -> Scrubbed:
    return scrub(wire(json.dumps({"name": written, "arguments": {"ledger": "a"}})), TOOLS)


@pytest.mark.parametrize(
    "written",
    [
        'read_ledger" parameter=',
        "functions.read_ledger",
        "tools.read_ledger",
        "Read Ledger",
        "readLedger",
        "ReadLedger",
        "READ_LEDGER",
        "read-ledger",
        "read_ledger_tool",
        "read_ledgerread_ledger",
        "read_ledger</name>",
    ],
)
def test_d_damaged_names__table(written: str) -> None:
    (call,) = damaged_name(written).calls
    assert call.name == "read_ledger"


def test_d_fuzzy_match_to_offered_tools__table() -> None:
    assert damaged_name("read_ledgers").calls[0].name == "read_ledger"
    assert damaged_name("reed_legder").rejected[0].reason == "unknown_tool"
    assert damaged_name("delete_universe").rejected[0].reason == "unknown_tool"
    tie = [{"name": "list_ports"}, {"name": "list_posts"}]
    assert scrub(wire('{"name": "list_pots", "arguments": {}}'), tie).rejected[0].reason == "unknown_tool"


def test_d_correction_is_visible__table() -> None:
    (call,) = damaged_name("read_ledgers").calls
    (repair,) = call.repairs
    assert (repair.kind, repair.where, repair.before, repair.after) == ("name", "name", "read_ledgers", "read_ledger")
    assert repair.span is not None
    assert wire(json.dumps({"name": "read_ledgers", "arguments": {}})).encode()[slice(*repair.span)] == b"read_ledgers"
    assert call.strategy == "name"


@pytest.mark.parametrize(
    "pseudo", ["tool_call", "tool_calls", "call_tool", "use_tool", "function_call", "tool_use", "invoke", "invoke_tool"]
)
def test_d_pseudo_tool_unwrap__table(pseudo: str) -> None:
    inner = {"name": "read_ledger", "arguments": {"ledger": "a"}}
    call = one(wire(json.dumps({"name": pseudo, "arguments": inner})))
    assert (call.name, call.arguments) == ("read_ledger", {"ledger": "a"})
    assert "unwrapped" in {repair.kind for repair in call.repairs}
    unknown = scrub(wire(json.dumps({"name": pseudo, "arguments": {"name": "nothing", "arguments": {}}})), TOOLS)
    assert [(call.reason, call.name) for call in unknown.rejected] == [("unknown_tool", pseudo)]
    offered = [*TOOLS, {"name": pseudo, "parameters": {"type": "object"}}]
    assert one(wire(json.dumps({"name": pseudo, "arguments": inner})), offered).name == pseudo


# Pairs: offered, then what is written for each of them. "!" before a name: unknown.
PAIRS = """
read_file write_file: read_fil read_files raed_file readfile read_flie red_file !reat_fiel rite_fle !file_read
delete_file delete_files: delete_fil !delete_filed delete_filess !delete_filer DeleteFiles delete-file !del_file
list_ports list_posts: !list_pots list_portss list_postss !list_porst list_port list_Ports !list_poets
get_lamp set_lamp: !let_lamp gt_lamp !met_lamp get_lampe set_lampp !put_lamp !et_lamp
get_lamp: !set_lamp get_lam get_lammp gett_lamp !put_lamp !get_lantern gat_lamp
lock_gate: !unlock_gate lok_gate lock_gat lock_gates !log_gate loock_gate
activate_key: !deactivate_key activate_ky aktivate_key activate_keys activte_key !inactivate_key
install_pkg uninstall_pkg: instal_pkg uninstal_pkg uninstall_pkgs !installed_pkgs
sensor_1 sensor_2: !sensor_3 !sensor_12 !sensor !sensors sensors_1 senser_2 !sensor_
sensor_1: !sensor_2 !sensor_11 sensr_1 sensors_1 !sensor2
ping: !pin pinf pingg !pnif !pong2 Ping PING !pi !ingp
ping ring: !sing !xing ping_tool RING ringg !pring
a b: !c !ab A !aa_b
add_row add_rows add_column: add_rowss add_columns add_colum !add_rwo add_roe ADD_ROW !add
search_web search_docs: search_wb search_doc serch_web search_docz !search !search_wiki !web_search
run_shell: run_shel runn_shell !rm_shell run_shells ran_shel2 runShell !run
größe_lesen: größe_lessen grösse_lesen !groesse_lesn GRÖSSE_LESEN größe-lesen
open_vent: open_vents opn_vent !close_vent !open_ opne_vent open_went pen_ven
print_label: print_labels pront_label !paint_table printlabel !sprint_labels2
fetch_url fetch_urls: !fetch_urll fetch_url fetch_urls fetch_ur fetchURL !fetch_urlx
""".strip().splitlines()


def pairs() -> list[tuple[list[str], str, bool]]:
    rows = []
    for line in PAIRS:
        offered, written = line.split(": ")
        rows += [(offered.split(), word.lstrip("!"), not word.startswith("!")) for word in written.split()]
    return rows


@pytest.mark.parametrize(("offered", "written", "known"), pairs())
def test_a_near_miss_resolves_to_one_tool_or_to_none(offered: list[str], written: str, known: bool) -> None:
    found = {Offer(tuple(map(Tool, names))).resolve(written).name for names in (offered, offered[::-1])}
    assert len(found) == 1
    assert (found <= set(offered)) is known, found


def test_there_are_120_pairs() -> None:
    assert len(pairs()) >= 120


@pytest.mark.parametrize(("offered", "written", "known"), pairs())
def test_an_exact_name_is_never_changed(offered: list[str], written: str, known: bool) -> None:
    if written not in offered:
        resolution = Offer((*map(Tool, offered), Tool(written))).resolve(written)
        assert (resolution.name, resolution.repairs) == (written, ())
    for name in offered:
        assert Offer(tuple(map(Tool, offered))).resolve(name).repairs == ()


# E. Coercion (the 200 rows of values and schemas stand in test_shapes.py)


def test_e_argument_shapes() -> None:
    tool = Tool(
        "t",
        {
            "properties": {
                "b": {"type": ["string", "null"]},
                "a": {"type": ["boolean", "null"]},
                "c": {"anyOf": [STR]},
            },
            "required": ["c"],
        },
    )
    assert [key for key in tool.properties if tool.string_only(key)] == ["b", "c"]
    assert tool.slots == ("c", "a", "b")


@pytest.mark.parametrize(
    ("schema", "strings"),
    [
        ({"enum": ["a", "b"]}, True),
        ({"enum": [1, 2]}, False),
        ({"enum": ["a", None]}, True),
        ({"const": "a"}, True),
        ({"const": 1}, False),
        ({"type": "string"}, True),
        ({"type": ["string", "null"]}, True),
        ({"type": ["string", "integer"]}, False),
        ({"anyOf": [STR, {"type": "null"}]}, True),
        ({"oneOf": [STR, INT]}, False),
        ({"allOf": [STR, {"minLength": 1}]}, True),
        ({}, False),
        ({"type": "null"}, False),
    ],
)
def test_e_is_string_only_schema(schema: dict[str, Any], strings: bool) -> None:
    assert Tool("t", {"properties": {"v": schema}}).string_only("v") is strings


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("42", INT, 42),
        ("0071", STR, "0071"),
        ("hello world", {"type": "object"}, "hello world"),
        ("", STR, ""),
        (" ", INT, ""),
        ("null", STR, "null"),
        (" a\n", STR, " a\n"),
        ("true", {"type": "boolean"}, True),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('"q"', STR, '"q"'),
    ],
)
def test_e_string_verbatim_else_json(text: str, schema: dict[str, Any], value: Any) -> None:
    tool = Tool("t", {"properties": {"v": schema}})
    assert type_texts({"v": (text, "")}, tool)[0] == {"v": value}


@pytest.mark.parametrize(
    ("value", "schema", "shaped"),
    [
        ("3", INT, 3),
        ("true", {"type": "boolean"}, True),
        ("a", {"type": "array", "items": STR}, ["a"]),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
        ("seven", INT, "seven"),
        ("yes", {"type": "boolean"}, "yes"),
        (7, STR, "7"),
        (0.5, STR, 0.5),
    ],
)
def test_e_shape_coercion(value: Any, schema: dict[str, Any], shaped: Any) -> None:
    arguments, repairs = coerce({"v": value}, Tool("t", {"properties": {"v": schema}}))
    assert arguments == {"v": shaped}
    assert [(repair.where, repair.kind) for repair in repairs] == (
        [("arguments.v", "coerced")] if shaped != value else []
    )


def test_a_coerced_value_has_its_place_on_the_wire() -> None:
    text = tide('{"days": "31"}')
    (repair,) = one(text).repairs
    assert repair.span is not None
    assert text.encode()[slice(*repair.span)] == b'"31"'
    assert (repair.before, repair.after) == ('"31"', "31")
    doubtful = one(tide('{"days": "1", "ports": ["1"]}')).repairs
    assert [repair.span for repair in doubtful] == [None]


def test_what_repair_guessed_must_fit_the_schema() -> None:
    result = scrub(tide('{"ports": [a b], "days": some}'), TOOLS)
    assert [type(event) for event in result.events] == [RejectedCall]
    assert accepts(Tool("t", {"properties": {"days": INT}}), {"days": 1})


# Time: 1 MB of anything is read or refused with a bounded number of steps


MEGABYTE = 1 << 20
FLOODS = [
    "1,],[",
    '"a", ',
    '",',
    "'a', ",
    '{"k": 1} ',
    "True, ",
    ".5, ",
    "// c\n",
    '"""',
    "“a”, ",
    "}",
    ",",
    '{"a": <T> ',
    "x y, ",
]


@pytest.mark.parametrize("unit", FLOODS)
@pytest.mark.parametrize(("before", "after"), [("[", "1]"), ('{"path": "p", "body": "x "y" ', '"}'), ("{'a': '", "'}")])
def test_a_megabyte_takes_no_more_steps_than_are_allowed(
    unit: str, before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamscrub import jsonfix
    from streamscrub.limits import MAX_REPAIR_STEPS

    made: list[jsonfix.Work] = []
    begin = jsonfix.Work.__init__

    def counted(work: jsonfix.Work, steps: int = MAX_REPAIR_STEPS) -> None:
        begin(work, steps)
        made.append(work)

    monkeypatch.setattr(jsonfix.Work, "__init__", counted)
    text = before + unit * (MEGABYTE // len(unit)) + after
    try:
        loaded = load(text, keys=("path", "body"), required=("path",), markers=("<T>",))
    except Unreadable:
        loaded = None
    assert loaded is None or json.loads(applied(text, loaded.edits)) == loaded.value
    assert len(made) <= 2
    assert all(work.left >= -MAX_REPAIR_STEPS // 100 for work in made)


ESCAPED = wire(r"{\"name\": \"tide\", \"arguments\": {\"ports\": [\"a \\\"b\\\"\\n\"]}}") + 'He said "so".'


@pytest.mark.parametrize(
    "text",
    [*KINDS.values(), wire('<code>\n{"days": 1}</code>', "tide"), ESCAPED, "é " + KINDS["quotes"] + KINDS["fence"]],
)
def test_repairs_and_their_places_do_not_depend_on_the_cut(text: str) -> None:
    whole = [event for event in scrub(text, TOOLS).events if isinstance(event, ToolCall | RejectedCall)]
    assert whole
    for size in (1, 3, 7):
        scrubber = StreamScrubber(TOOLS)
        data = text.encode()
        events = [event for at in range(0, len(data), size) for event in scrubber.feed(data[at : at + size])]
        events += scrubber.finish("stop")
        assert [event for event in events if isinstance(event, ToolCall | RejectedCall)] == whole


def test_a_body_escaped_once_too_often_is_read() -> None:
    assert one(ESCAPED).arguments == {"ports": ['a "b"\n']}
    assert scrub(ESCAPED, TOOLS).text.strip() == 'He said "so".'


# A key that stands twice

LEDGER = [{"name": "note", "parameters": {"properties": {"text": STR, "n": INT}}}, {"name": "rm", "parameters": {}}]


@pytest.mark.parametrize(
    "text",
    [
        wire('{"name": "note", "arguments": {"text": "a", "text": "b"}}'),
        wire("{'name': 'note', 'arguments': {'text': 'a', 'text': 'b',}}"),
        wire('{"name": "note", "text": "a", "text": "b"}'),
        wire('{"text": "a", "text": "b"}', "note"),
        '<invoke name="note"><parameter name="text">a</parameter><parameter name="text">b</parameter></invoke>',
        "<tool_call>note<arg_key>text</arg_key><arg_value>a</arg_value>"
        "<arg_key>text</arg_key><arg_value>b</arg_value></tool_call>",
        '<|tool_call>call:note{text:<|"|>a<|"|>,text:<|"|>b<|"|>}<tool_call|>',
    ],
)
def test_of_a_repeated_parameter_the_last_counts_and_the_lost_one_is_told(text: str) -> None:
    (call,) = scrub(text, LEDGER).calls
    assert call.arguments == {"text": "b"}
    (told,) = [repair for repair in call.repairs if repair.kind == "repeated"]
    assert (told.where.removeprefix("arguments."), told.before.strip('"')) == ("text", "a")
    assert [rejected.reason for rejected in scrub(text, LEDGER, strict=True).rejected] == ["malformed"]
    same = text.replace(">b<", ">a<").replace("'b'", "'a'").replace('"b"', '"a"')
    assert all(repair.kind != "repeated" for repair in scrub(same, LEDGER).calls[0].repairs)


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "note", "arguments": {"text": "a"}, "name": "rm"}',
        "{'name': 'note', 'arguments': {'text': 'a'}, 'name': 'rm'}",
        '{"name": "note", "arguments": {"text": "a"}, "arguments": {"text": "b"}}',
        '{"function": {"name": "note", "name": "rm", "arguments": {}}}',
        '[{"name": "rm", "name": "note", "parameters": {}}]',
    ],
)
def test_a_call_with_two_names_or_two_objects_is_none(body: str) -> None:
    result = scrub(wire(body), LEDGER)
    assert result.calls == []
    assert [(rejected.reason, "twice" in rejected.detail) for rejected in result.rejected] == [("malformed", True)]


@given(
    st.recursive(
        st.integers(0, 3) | st.sampled_from(["", "a", '"', "\\", "{", "é,"]),
        lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=4),
    ),
    st.sampled_from([None, 1]),
)
def test_repeats_are_edits_that_keep_what_is_read(pairs: Any, indent: int | None) -> None:
    def text_of(value: Any) -> str:
        if isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
            return "{" + ", ".join(f"{json.dumps(key)}: {text_of(item)}" for key, item in value) + "}"
        if isinstance(value, list):
            return "[" + ",\n".join(map(text_of, value)) + "]"
        return json.dumps(value, ensure_ascii=False)

    text = text_of(pairs) if isinstance(pairs, list) else f"[{text_of(pairs)}]"
    loaded = load(text)
    assert loaded.value == json.loads(text)
    made = applied(text, loaded.edits)
    assert json.loads(made) == loaded.value
    objects: list[list[tuple[str, Any]]] = []
    json.loads(text, object_pairs_hook=objects.append)
    assert bool(loaded.edits) <= any(len(dict(one)) < len(one) for one in objects)
