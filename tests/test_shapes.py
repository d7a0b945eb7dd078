"""Arguments get the shape of the schema where they have one reading for it; every change is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamscrub.shapes import accepts, coerce, declared, type_texts
from streamscrub.tools import Tool

from .growth import assert_linear

INT: dict[str, Any] = {"type": "integer"}
NUM: dict[str, Any] = {"type": "number"}
BOOL: dict[str, Any] = {"type": "boolean"}
STR: dict[str, Any] = {"type": "string"}
OBJ: dict[str, Any] = {"type": "object"}
LIST: dict[str, Any] = {"type": "array"}
NULLABLE_STR: dict[str, Any] = {"type": ["string", "null"]}
NULLABLE_INT: dict[str, Any] = {"anyOf": [INT, {"type": "null"}]}
UNION: dict[str, Any] = {"anyOf": [INT, STR]}
ENUM: dict[str, Any] = {"enum": [1, 2]}
INTS = {"type": "array", "items": INT}
NUMS = {"type": "array", "items": NUM}
STRS = {"type": "array", "items": STR}
OBJS = {"type": "array", "items": {"type": "object", "properties": {"n": INT}, "required": ["n"]}}
NESTED = {"type": "object", "properties": {"n": INT, "deep": {"type": "object", "properties": {"on": BOOL}}}}
HUGE = "9" * 10_000


def tool(schema: Any, required: bool = True) -> Tool:
    return Tool("t", {"type": "object", "properties": {"v": schema}, "required": ["v"] if required else []})


# The value comes out as the second entry; SAME means unchanged and without a repair.
SAME: Any = object()
VALUES: dict[str, tuple[Any, list[tuple[Any, Any]]]] = {
    "integer": (
        INT,
        [
            (7, SAME),
            (0, SAME),
            (-7, SAME),
            (7.0, SAME),
            (7.5, SAME),
            (True, SAME),
            (None, SAME),
            ([7], SAME),
            ({"a": 7}, SAME),
            (float("inf"), SAME),
            ("7", 7),
            (" 7\n", 7),
            ("-7", -7),
            ("+7", 7),
            ("07", 7),
            ("007", 7),
            ("-007", -7),
            ("7.0", 7),
            ("1e3", 1000),
            ("12345678901234567890", 12345678901234567890),
            ("", SAME),
            (" ", SAME),
            ("7.5", SAME),
            ("seven", SAME),
            ("7 days", SAME),
            ("2026-01-15", SAME),
            ("0x10", SAME),
            ("1_000", SAME),
            ("1,000", SAME),
            ("٣", SAME),
            ("²", SAME),
            ("true", SAME),
            ("True", SAME),
            ("null", SAME),
            ("NaN", SAME),
            ("Infinity", SAME),
            ("[7]", SAME),
            ('"7"', SAME),
            ("--7", SAME),
            ("- 7", SAME),
            ("1e400", SAME),
            (HUGE, SAME),
            ("yes", SAME),
        ],
    ),
    "number": (
        NUM,
        [
            (0.5, SAME),
            (7, SAME),
            (True, SAME),
            ("0.5", 0.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("07.5", 7.5),
            ("7", 7),
            ("1e3", 1000.0),
            ("1E-3", 0.001),
            ("-0.0", -0.0),
            ("1e999", SAME),
            ("1e", SAME),
            (".", SAME),
            ("1.2.3", SAME),
            ("1,5", SAME),
            ("5%", SAME),
            ("inf", SAME),
            ("nan", SAME),
            (float("-inf"), SAME),
            ("one", SAME),
        ],
    ),
    "boolean": (
        BOOL,
        [
            (True, SAME),
            (1, SAME),
            (0, SAME),
            ("true", True),
            ("false", False),
            (" true ", True),
            ("True", True),
            ("False", False),
            ("TRUE", True),
            ("FALSE", False),
            ("yes", SAME),
            ("no", SAME),
            ("on", SAME),
            ("1", SAME),
            ("0", SAME),
            ("tRUE", SAME),
            ("", SAME),
            ("None", SAME),
            ([], SAME),
        ],
    ),
    "string": (
        STR,
        [
            ("7", SAME),
            ("007", SAME),
            ("true", SAME),
            ("null", SAME),
            ("", SAME),
            ("  x ", SAME),
            ('{"a": 1}', SAME),
            ("[1]", SAME),
            (7, "7"),
            (-12, "-12"),
            (12345678901234567890, "12345678901234567890"),
            (10**5000, SAME),
            (0.5, SAME),
            (7.0, SAME),
            (True, SAME),
            (None, SAME),
            (["x"], SAME),
            ({"a": 1}, SAME),
        ],
    ),
    "nullable string": (NULLABLE_STR, [("null", SAME), (None, SAME), ("7", SAME), (7, "7")]),
    "string enum": ({"enum": ["1", "2"]}, [("1", SAME), (1, "1"), (3, SAME), ("3", SAME)]),
    "nullable integer": (
        NULLABLE_INT,
        [("7", 7), ("null", None), ("None", None), (None, SAME), ("x", SAME), ("", SAME), (True, SAME)],
    ),
    "union with string": (
        UNION,
        [("7", SAME), ("x", SAME), (7, SAME), (True, SAME), (None, SAME), (0.5, SAME)],
    ),
    "integer or boolean": ({"type": ["integer", "boolean"]}, [("7", 7), ("true", True), ("True", True), ("x", SAME)]),
    "enum of integers": (ENUM, [("2", 2), (2, SAME), ("x", SAME)]),
    "anything": ({}, [("7", SAME), (7, SAME), ("[1]", SAME), (None, SAME), ("True", SAME)]),
    "unreadable schema": ({"type": "file"}, [("7", SAME), (7, SAME)]),
    "list": (
        LIST,
        [
            ([], SAME),
            ([1, "x"], SAME),
            ("[1, 2]", [1, 2]),
            ("['a','b']", ["a", "b"]),
            ("('a', 'b')", ["a", "b"]),
            ("[True, None]", [True, None]),
            ("[1, 2,]", [1, 2]),
            ("['it\\'s', \"q\"]", ["it's", "q"]),
            ("[]", []),
            ("x", ["x"]),
            (7, [7]),
            (True, [True]),
            ({"a": 1}, [{"a": 1}]),
            ("a, b", SAME),
            ("a\nb", SAME),
            ("[1, 2", SAME),
            ("[a, b]", SAME),
            ("{x", SAME),
            ("[,]", SAME),
            ("[1,,]", SAME),
            ("[1 2]", SAME),
            ("[f(1)]", SAME),
            ("[NaN]", SAME),
            ("", SAME),
            (" \t", SAME),
            (None, SAME),
            (float("nan"), SAME),
        ],
    ),
    "list of integers": (
        INTS,
        [
            ([1, 2], SAME),
            (3, [3]),
            ("3", [3]),
            ("03", [3]),
            (["1", "2"], [1, 2]),
            ([1, "x"], SAME),
            (["07", None], [7, None]),
            ('[1, "2"]', [1, 2]),
            ("['1']", [1]),
            ("x", SAME),
            (True, SAME),
            (0.5, SAME),
            ([["1"]], SAME),
            ("1,2", SAME),
        ],
    ),
    "list of numbers": (NUMS, [(0.5, [0.5]), ("0.5", [0.5]), (7, [7])]),
    "list of strings": (
        STRS,
        [
            (["a"], SAME),
            ("a", ["a"]),
            ("42", ["42"]),
            (42, ["42"]),
            ([1, "a"], ["1", "a"]),
            ('["x","y"]', ["x", "y"]),
            ("['tin', 'jar']", ["tin", "jar"]),
            (True, SAME),
            ({"a": 1}, SAME),
        ],
    ),
    "list of objects": (
        OBJS,
        [
            ([{"n": 1}], SAME),
            ([{"n": "1"}], [{"n": 1}]),
            ({"n": 1}, [{"n": 1}]),
            ({"m": 1}, SAME),
            ({"n": {}}, SAME),
            ('{"n": 1}', [{"n": 1}]),
            ("[{'n': 1}]", [{"n": 1}]),
            (['{"n": "1"}'], [{"n": 1}]),
            ("x", SAME),
            (5, SAME),
        ],
    ),
    "object": (
        OBJ,
        [
            ({}, SAME),
            ('{"a": 1}', {"a": 1}),
            ("{'a': True, 'b': None}", {"a": True, "b": None}),
            ('{query: "inbox",}', {"query": "inbox"}),
            ("{a: {b: [1,],},}", {"a": {"b": [1]}}),
            ('{"a": 1', SAME),
            ('{"a": }', SAME),
            ("{'a'}", SAME),
            ("{}", {}),
            ("[1]", SAME),
            ("x", SAME),
            ("hello world", SAME),
            ([1], SAME),
            (1, SAME),
            (None, SAME),
            ("{'a': '\\x41\\u00e9\\n\\d'}", {"a": "Aé\n\\d"}),
        ],
    ),
    "nested object": (
        NESTED,
        [
            ({"n": "7", "other": "7"}, {"n": 7, "other": "7"}),
            ({"deep": {"on": "True"}}, {"deep": {"on": True}}),
            ({"deep": '{"on": "true"}'}, {"deep": {"on": True}}),
            ('{"n": "07"}', {"n": 7}),
            ({"n": None}, SAME),
            ({"N": "7"}, SAME),
        ],
    ),
}
ROWS = [(name, schema, value, wanted) for name, (schema, rows) in VALUES.items() for value, wanted in rows]

ROW_IDS = [f"{row[0]}-{ascii(row[2])[:30] if type(row[2]) is not int else index}" for index, row in enumerate(ROWS)]


def same(first: Any, second: Any) -> bool:
    return repr(first) == repr(second)


@pytest.mark.parametrize(("schema", "value", "wanted"), [row[1:] for row in ROWS], ids=ROW_IDS)
def test_a_value_is_coerced_only_if_it_has_one_reading(schema: Any, value: Any, wanted: Any) -> None:
    arguments = {"v": value}
    shaped, repairs = coerce(arguments, tool(schema))
    if wanted is SAME:
        assert shaped is arguments
        assert repairs == []
    else:
        assert same(shaped["v"], wanted)
        assert repairs
        assert all(repair.where.startswith("arguments.v") for repair in repairs)
    again, none = coerce(shaped, tool(schema))
    assert again is shaped
    assert none == []


# text, how, schema, value, kinds of the repairs
TEXTS: list[tuple[str, str, Any, Any, str]] = [
    (" 007 ", "", STR, " 007 ", ""),
    ("null", "", STR, "null", ""),
    ("null", "", NULLABLE_STR, "null", ""),
    ("True", "", STR, "True", ""),
    ('"x"', "", STR, '"x"', ""),
    ("", "", STR, "", ""),
    ("line\n", "", STR, "line\n", ""),
    (" 7 ", "", INT, 7, ""),
    ("07", "", INT, 7, "coerced"),
    ("six", "", INT, "six", ""),
    ("", "", INT, "", ""),
    (" \n", "", INT, "", ""),
    ("2026-01-15", "", INT, "2026-01-15", ""),
    (HUGE, "", INT, HUGE, ""),
    ('"7"', "", INT, 7, "coerced"),
    ("2.5", "", INT, 2.5, ""),
    ("0.5", "", NUM, 0.5, ""),
    ("1e999", "", NUM, "1e999", ""),
    ("NaN", "", NUM, "NaN", ""),
    ("true", "", BOOL, True, ""),
    ("True", "", BOOL, True, "python_literal"),
    ("yes", "", BOOL, "yes", ""),
    ("null", "", NULLABLE_INT, None, ""),
    ("None", "", NULLABLE_INT, None, "python_literal"),
    ("9", "", UNION, 9, ""),
    ("9am", "", UNION, "9am", ""),
    ("2.5", "", UNION, "2.5", ""),
    (" 9am ", "", UNION, " 9am ", ""),
    ("null", "", UNION, "null", ""),
    ("1", "", {"enum": ["1", 2]}, "1", ""),
    ("2", "", {"enum": ["1", 2]}, 2, ""),
    ("2", "", ENUM, 2, ""),
    ('["a"]', "", STRS, ["a"], ""),
    ("['tin', 'jar']", "", STRS, ["tin", "jar"], "python_literal"),
    ("a", "", STRS, ["a"], "coerced"),
    ("[1]", "", STRS, ["1"], "coerced"),
    ("3", "", INTS, [3], "coerced"),
    ("a, b", "", STRS, "a, b", ""),
    ("[{'name': 'Ida', 'email': None}]", "", LIST, [{"name": "Ida", "email": None}], "python_literal"),
    ('{"a": [1]}', "", OBJ, {"a": [1]}, ""),
    ("{'a': 1}", "", OBJ, {"a": 1}, "python_literal"),
    ("hello world", "", OBJ, "hello world", ""),
    ("7", "", {}, 7, ""),
    ("x", "", {}, "x", ""),
    ("12", "text", INT, "12", ""),
    ("null", "text", STR, "null", ""),
    ("2024", "text", STR, "2024", ""),
    ('["a"]', "text", STR, '["a"]', ""),
    ('["a"]', "text", STRS, ["a"], "coerced"),
    ("['a']", "text", STRS, ["a"], "python_literal"),
    ('{"n": "7"}', "text", NESTED, {"n": 7}, "coerced coerced"),
    ("a", "text", STRS, "a", ""),
    ("12 &amp;", "text", UNION, "12 &amp;", ""),
    ("[1]", "text", {"type": ["array", "string"]}, "[1]", ""),
    ("7", "json", STR, 7, ""),
    ("x", "json", STR, "x", ""),
    ("12", "json", INT, 12, ""),
    ("True", "json", BOOL, True, "python_literal"),
    ("true", "json", BOOL, True, ""),
    ('"a"', "json", STR, "a", ""),
    ('["mud"]', "json", STRS, ["mud"], ""),
    ("null", "json", STR, None, ""),
]


@pytest.mark.parametrize(("text", "how", "schema", "value", "kinds"), TEXTS)
def test_a_keyed_text_is_typed_by_its_format_or_by_the_schema(
    text: str, how: str, schema: Any, value: Any, kinds: str
) -> None:
    typed, repairs = type_texts({"v": (text, how)}, tool(schema))
    assert same(typed, {"v": value})
    assert " ".join(repair.kind for repair in repairs) == kinds
    if not how:
        assert coerce(typed, tool(schema)) == (typed, [])


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), (" true", True), ("x", "x"), ("[1]", [1]), ("", ""), ("null", None), ("07", "07"), ('"q"', "q")],
)
def test_without_a_schema_a_text_is_json_or_itself(text: str, value: Any) -> None:
    assert type_texts({"v": (text, "")}, None) == ({"v": value}, [])
    assert type_texts({"v": (text, "")}, Tool("t")) == ({"v": value}, [])
    assert type_texts({"v": (text, "text")}, None) == ({"v": text}, [])


def test_there_are_200_rows_of_values() -> None:
    assert len(ROWS) + len(TEXTS) >= 200
    assert len(ROWS) >= 200


def test_null_for_an_optional_parameter_that_excludes_it_is_left_out() -> None:
    assert coerce({"v": None}, tool(INT, required=False))[0] == {}
    assert [repair.kind for repair in coerce({"v": None}, tool(INT, required=False))[1]] == ["null_omitted"]
    assert type_texts({"v": ("null", "")}, tool(INT, required=False))[0] == {}
    assert type_texts({"v": ("null", "")}, tool(STR, required=False))[0] == {"v": "null"}
    for schema, required in [(INT, True), (NULLABLE_INT, False), ({}, False), (NULLABLE_STR, False)]:
        assert coerce({"v": None}, tool(schema, required)) == ({"v": None}, [])
    assert coerce({"other": None}, tool(INT))[0] == {"other": None}
    assert coerce({"v": None, "V": 1}, tool(INT, required=False)) == ({"v": None, "V": 1}, [])


def test_keys_are_repaired_if_one_declared_key_is_meant_and_absent() -> None:
    two = Tool("t", {"properties": {"from_line": INT, "path": STR}})
    shaped, repairs = coerce({"PATH": "a", "fromLine": "7", "other": 1}, two)
    assert list(shaped.items()) == [("path", "a"), ("from_line", 7), ("other", 1)]
    assert [(repair.kind, repair.where, repair.before) for repair in repairs] == [
        ("key", "arguments.path", "PATH"),
        ("key", "arguments.from_line", "fromLine"),
        ("coerced", "arguments.from_line", '"7"'),
    ]
    for arguments in ({"path": "a", "Path": "b"}, {"PATH": "a", "Path": "b"}):
        assert coerce(arguments, two) == (arguments, [])
    assert type_texts({"From-Line": ("7", "")}, two)[0] == {"from_line": 7}


def test_an_invented_wrapper_is_taken_off_if_its_content_fits() -> None:
    ping = Tool("ping", {"properties": {"host": STR, "count": INT}, "required": ["host"]})
    echo = {"type": "object", "properties": {"host": "r1"}, "required": ["host"]}
    wrapped: list[dict[str, Any]] = [echo, {"param": {"host": "r1"}}, {"args": {"Host": "r1"}}]
    for arguments in wrapped:
        shaped, repairs = coerce(arguments, ping)
        assert shaped == {"host": "r1"}
        assert repairs[0].kind == "unwrapped"
        assert coerce(shaped, ping) == (shaped, [])
    assert coerce({"args": {"host": "r1", "count": "2"}}, ping)[0] == {"host": "r1", "count": 2}
    kept: list[dict[str, Any]] = [
        {"args": {"other": 1}},
        {"args": {"count": 1}},
        {"args": {}},
        {"args": {"host": "r1"}, "x": 1},
        {"args": {"host": "r1"}, "count": 1},
        {"properties": {"host": "r1"}, "x": 1},
        {"args": "host"},
    ]
    for arguments in kept:
        assert coerce(arguments, ping) == (arguments, [])
    relay = Tool("relay", {"properties": {"input": OBJ, "host": STR}})
    assert coerce({"input": {"host": "r3"}}, relay) == ({"input": {"host": "r3"}}, [])


def test_keys_with_a_stated_type_keep_their_values() -> None:
    two = Tool("t", {"properties": {"size": INT, "finish": STR}})
    assert type_texts({"size": ("12", "text"), "finish": ("7", "json")}, two) == ({"size": "12", "finish": 7}, [])
    assert coerce({"size": "12", "finish": 7}, two, fixed=["size", "Finish"]) == ({"size": "12", "finish": 7}, [])


def test_the_path_of_a_repair_leads_to_the_value() -> None:
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": NESTED}}}
    _, repairs = coerce({"v": {"rows": [{"n": 1}, {"deep": {"on": "TRUE"}}]}}, tool(schema))
    assert [(repair.where, repair.before, repair.after) for repair in repairs] == [
        ("arguments.v.rows[1].deep.on", '"TRUE"', "true")
    ]


def test_an_object_for_a_list_of_objects_is_its_one_element_if_it_fits_once_coerced() -> None:
    cell = {"type": "object", "properties": {"z": INT}, "required": ["z"]}
    row = {"type": "object", "properties": {"k": INT, "n": {"type": "array", "items": cell}}, "required": ["k"]}
    offered = Tool("put", {"properties": {"rows": {"type": "array", "items": row}}})
    shaped, repairs = coerce({"rows": {"k": "1", "n": {"z": "2"}}}, offered)
    assert shaped == {"rows": [{"k": 1, "n": [{"z": 2}]}]}
    paths = ["arguments.rows", "arguments.rows[0].k", "arguments.rows[0].n", "arguments.rows[0].n[0].z"]
    assert [repair.where for repair in repairs] == paths
    for other in ({"k": "x"}, {"n": {"z": 2}}, {"k": "1", "n": {"z": "x"}}):
        assert coerce({"rows": other}, offered) == ({"rows": other}, [])


def test_the_given_arguments_are_never_changed() -> None:
    arguments = {"v": {"n": "7", "deep": {"on": "true", "s": "\ud800"}}, "V2": None}
    before = repr(arguments)
    coerce(arguments, tool(NESTED))
    assert repr(arguments) == before


def test_lone_surrogates_are_replaced_everywhere_and_told() -> None:
    arguments: dict[str, Any] = {"v": "a\ud800", "k\udfff": [{"x": ["\ud83c", 1]}], "ok": "\U0001f33e"}
    for offered in (None, tool(STR), tool(OBJ)):
        shaped, repairs = coerce(arguments, offered)
        assert shaped == {"v": "a\ufffd", "k\ufffd": [{"x": ["\ufffd", 1]}], "ok": "\U0001f33e"}
        assert {repair.kind for repair in repairs} == {"surrogate"}
        assert len(repairs) == 3
        assert all(text.encode() for repair in repairs for text in (repair.where, repair.before, repair.after))
        assert coerce(shaped, offered) == (shaped, [])
    assert coerce({"v": '["\\ud800"]'}, tool(STRS))[0] == {"v": ["\ufffd"]}
    assert type_texts({"v": ('"\\ud800"', "")}, None)[0] == {"v": "\ufffd"}
    assert coerce({"v": "['\\ud83c\\udf3e']"}, tool(STRS))[0] == {"v": ["\U0001f33e"]}


def test_references_and_alternatives_are_followed() -> None:
    offered = Tool(
        "t",
        {
            "$defs": {"node": {"type": "object", "properties": {"n": INT, "next": {"$ref": "#/$defs/node"}}}},
            "properties": {"v": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        },
    )
    shaped, _ = coerce({"v": {"next": {"next": {"n": "7"}}}}, offered)
    assert shaped == {"v": {"next": {"next": {"n": 7}}}}


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def test_values_are_coerced_to_a_depth_and_left_alone_below() -> None:
    offered = Tool(
        "t",
        {
            "$defs": {"v": {"type": ["array", "integer"], "items": {"$ref": "#/$defs/v"}}},
            "properties": {"v": {"$ref": "#/$defs/v"}},
        },
    )
    assert coerce({"v": nested(15, "7")}, offered)[0] == {"v": nested(15, 7)}
    assert coerce({"v": nested(16, "7")}, offered) == ({"v": nested(16, "7")}, [])
    deep = {"v": nested(5000, "\ud800")}
    assert coerce(deep, None)[1][0].kind == "surrogate"
    coerce({"v": nested(5000, "7")}, offered)
    assert accepts(offered, {"v": nested(5000, 7)})
    for text in ("[" * 100_000, "[" * 60 + "]" * 60, "[" * 5000 + "]" * 5000, "(" * 5000 + ")" * 5000):
        assert coerce({"v": text}, tool(LIST)) == ({"v": text}, [])
        type_texts({"v": (text, "")}, tool(LIST))


@pytest.mark.parametrize(
    "text",
    [
        "9" * 2**20,
        "-" * 2**20,
        "9" * 2**20 + "x",
        "0." + "9" * 2**20,
        "1e" + "9" * 2**20,
        "[" + "1," * 2**19,
        "['" + "a" * 2**20,
        "{a:" * 2**18,
        " " * 2**20,
        " " * 2**20 + "x",
        '"' * 2**20,
        "\\" * 2**20,
        "[" + '"\\u' * 2**18,
        "x," * 2**19,
        "é" * 2**20,
    ],
    ids=lambda text: repr(text[:4]),
)
@pytest.mark.parametrize("schema", [INT, NUM, BOOL, STRS, OBJ, UNION, NULLABLE_INT, {}])
def test_a_megabyte_neither_raises_nor_takes_long(text: str, schema: Any) -> None:
    def read(size: int) -> None:
        coerce({"v": text[:size]}, tool(schema))
        type_texts({"v": (text[:size], "")}, tool(schema))

    assert_linear(lambda size: lambda: read(size), repr(text[:4]), sizes=(2**18,))


def test_cost_grows_with_the_size_only() -> None:
    assert_linear(lambda count: lambda: coerce({"v": ["7"] * count}, tool(INTS)), "items", sizes=(5_000,))


@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        ({"v": 1}, True),
        ({"v": 1.0}, True),
        ({"v": True}, False),
        ({"v": "1"}, False),
        ({"v": 1, "s": "b"}, True),
        ({"v": 1, "s": "c"}, False),
        ({"v": 1, "o": {"n": 1}}, True),
        ({"v": 1, "o": {}}, False),
        ({"v": 1, "o": {"n": 1, "x": 1}}, False),
        ({"v": 1, "o": {"n": "1"}}, False),
        ({"v": 1, "l": [1, 2]}, True),
        ({"v": 1, "l": [1, None]}, False),
        ({"v": 1, "c": True}, True),
        ({"v": 1, "c": 1}, False),
        ({"v": 1, "other": 1}, False),
        ({"V": 1}, False),
        ({}, False),
    ],
)
def test_a_schema_accepts_what_is_declared_complete_and_fits(arguments: dict[str, Any], accepted: bool) -> None:
    closed = {"type": "object", "properties": {"n": INT}, "required": ["n"], "additionalProperties": False}
    offered = Tool(
        "t",
        {
            "type": "object",
            "properties": {
                "v": INT,
                "s": {"type": "string", "enum": ["a", "b"]},
                "o": closed,
                "l": INTS,
                "c": {"const": True},
            },
            "required": ["v"],
        },
    )
    assert accepts(offered, arguments) is accepted
    assert accepts(Tool("ping"), {})


def test_declared_asks_for_the_keys_only() -> None:
    offered = Tool("t", {"properties": {"from_line": INT}, "required": ["from_line"]})
    assert declared(offered, {"fromLine": "x"})
    assert declared(offered, {})
    assert not declared(offered, {"from_line": 1, "x": 1})


SCALARS = st.sampled_from([INT, NUM, BOOL, STR, NULLABLE_STR, NULLABLE_INT, UNION, ENUM, {}, {"enum": ["1", "x"]}])
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.dictionaries(st.sampled_from(["a", "B_", "args"]), inner, max_size=3).map(
            lambda properties: {"type": "object", "properties": properties, "required": list(properties)[:1]}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
    ),
    max_leaves=6,
)
WORDS = [
    "7",
    "07",
    "true",
    "None",
    "null",
    "",
    " ",
    "[1]",
    '["1"]',
    "['a']",
    '{"a": "1"}',
    "{a: '7'}",
    "x",
    "a,b",
    '"1"',
]
VALUE = st.recursive(
    st.one_of(st.sampled_from([*WORDS, "\ud800", '["\\ud800"]']), st.none(), st.booleans(), st.integers(), st.floats()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "A", "b", "args", "\udc00"]), inner, max_size=3),
    ),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "A", "b", "B_", "args", "properties", "type"]), VALUE, max_size=4)
TOOLS = st.builds(
    lambda properties, required: Tool("t", {"properties": properties, "required": required}),
    st.dictionaries(st.sampled_from(["a", "b", "B_", "args"]), SCHEMAS, max_size=3),
    st.lists(st.sampled_from(["a", "b"]), max_size=2),
)


@given(ARGUMENTS, TOOLS)
def test_coercing_twice_is_coercing_once(arguments: dict[str, Any], offered: Tool) -> None:
    before = repr(arguments)
    shaped, repairs = coerce(arguments, offered)
    assert coerce(shaped, offered) == (shaped, [])
    assert coerce(shaped, offered)[0] is shaped
    assert (shaped is arguments) is (repairs == [])
    assert repr(arguments) == before
    json.dumps(shaped, ensure_ascii=False).encode()


@given(
    st.dictionaries(st.sampled_from(["a", "A", "b", "B_", "args"]), st.text() | st.sampled_from(WORDS), max_size=4),
    TOOLS,
)
def test_typed_texts_need_no_coercion(texts: dict[str, str], offered: Tool) -> None:
    typed, _ = type_texts({key: (text, "") for key, text in texts.items()}, offered)
    assert coerce(typed, offered) == (typed, [])


@given(ARGUMENTS, TOOLS)
def test_accepted_arguments_are_left_alone(arguments: dict[str, Any], offered: Tool) -> None:
    shaped, _ = coerce(arguments, offered)
    if accepts(offered, shaped):
        assert declared(offered, shaped)
        assert coerce(shaped, offered)[1] == []
