"""Tool records of every ecosystem are read into one form, and wrong ones are refused with their place."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from streamscrub.tools import Shape, Tool, is_string_only, read_tools, types_of

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"zone": {"type": "string"}, "hours": {"type": "integer"}, "alarm": {"type": "boolean"}},
    "required": ["zone"],
}


@pytest.mark.parametrize(
    "record",
    [
        Tool("read", SCHEMA, "Reads."),
        {"name": "read", "description": "Reads.", "parameters": SCHEMA},
        {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": SCHEMA}},
        {"type": "function", "name": "read", "description": "Reads.", "parameters": SCHEMA, "strict": True},
        {"name": "read", "description": "Reads.", "input_schema": SCHEMA},
        {"name": "read", "description": "Reads.", "inputSchema": SCHEMA},
        {"toolSpec": {"name": "read", "description": "Reads.", "inputSchema": {"json": SCHEMA}}},
        {"functionDeclarations": [{"name": "read", "description": "Reads.", "parameters": SCHEMA}]},
        {"function_declarations": [{"name": "read", "description": "Reads.", "parametersJsonSchema": SCHEMA}]},
    ],
)
def test_every_record_shape_gives_the_same_tool(record: Any) -> None:
    assert read_tools([record]) == (Tool("read", SCHEMA, "Reads."),)
    assert read_tools((record,)) == (Tool("read", SCHEMA, "Reads."),)


def test_tools_that_the_provider_runs_are_passed_over() -> None:
    records = [{"type": "web_search"}, {"name": "ping"}, {"type": "file_search", "vector_store_ids": ["v"]}]
    assert read_tools(records) == (Tool("ping"),)
    assert [tool.name for tool in read_tools([{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}]) or ()] == [
        "a",
        "b",
    ]


def test_a_request_body_is_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match="its key 'tools'"):
        read_tools({"model": "m", "tools": []})


def test_unknown_tools_stay_unknown_and_none_offered_is_not_unknown() -> None:
    assert read_tools(None) is None
    assert read_tools([]) == ()


@pytest.mark.parametrize("missing", [{}, {"parameters": None}, {"description": None}])
def test_a_missing_schema_or_description_is_empty(missing: dict[str, Any]) -> None:
    assert read_tools([{"name": "ping", **missing}]) == (Tool("ping", {}, ""),)


@pytest.mark.parametrize("tools", [{}, {"name": "x"}, "x", b"x", 7, print, Tool("x"), Tool])
def test_the_argument_itself_must_be_a_list(tools: Any) -> None:
    with pytest.raises(TypeError, match=r"tools: expected a list"):
        read_tools(tools)


@pytest.mark.parametrize(
    ("record", "error", "words"),
    [
        (print, TypeError, "expected a Tool or a dict"),
        ("ping", TypeError, "expected a Tool or a dict, got 'ping'"),
        (None, TypeError, "got None"),
        ({}, ValueError, "no name"),
        ({"type": "function"}, ValueError, "no name"),
        ({"functionDeclarations": [{}]}, ValueError, "no name"),
        ({"name": " "}, ValueError, "blank"),
        ({"name": 5}, TypeError, "name must be a string, got 5"),
        ({"name": "a\ud800"}, ValueError, "surrogate"),
        ({"name": "a", "parameters": "{}"}, TypeError, "schema must be a dict"),
        ({"name": "a", "parameters": []}, TypeError, "schema must be a dict"),
        ({"name": "a", "description": 3}, TypeError, "description must be a string"),
        ({"type": "function", "function": "a"}, TypeError, "'function' must be a dict"),
        ({"type": "function", "function": {}}, ValueError, "no name"),
        (Tool(""), ValueError, "blank"),
        (Tool("a", []), TypeError, "parameters must be a JSON schema"),  # type: ignore[arg-type]
        ({"name": "ok"}, ValueError, "a second tool of the name 'ok'"),
    ],
)
def test_a_wrong_record_is_named_with_its_index(record: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=r"^tools\[1\]: ") as caught:
        read_tools([{"name": "ok"}, record])
    assert words in str(caught.value)


def test_what_was_there_is_cut_to_60_characters() -> None:
    with pytest.raises(TypeError) as caught:
        read_tools(["x" * 1000])
    assert len(str(caught.value)) < 120


def test_required_parameters_come_first_and_the_others_alphabetically() -> None:
    tool = Tool("t", {"properties": {key: {} for key in "dacb"}, "required": ["c", "zz", "a"]})
    assert tool.slots == ("c", "a", "b", "d")
    assert tool.required == ("c", "zz", "a")
    assert Tool("t").slots == ()


def test_properties_are_found_in_all_alternatives_and_behind_references() -> None:
    schema: dict[str, Any] = {
        "$defs": {"base": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}},
        "allOf": [{"$ref": "#/$defs/base"}],
        "anyOf": [
            {"properties": {"y": {"type": "string"}}, "required": ["y"]},
            {"properties": {"y": {"type": "integer"}, "z": {}}},
        ],
    }
    tool = Tool("t", schema)
    assert list(tool.properties) == ["x", "y", "z"]
    assert tool.required == ("x",)
    assert types_of(tool.properties["y"]) == {"string", "integer"}


@pytest.mark.parametrize(
    ("schema", "closed"),
    [({"additionalProperties": False}, True), ({"additionalProperties": {}}, False), ({}, False)],
)
def test_closed_means_that_additional_properties_are_forbidden(schema: dict[str, Any], closed: bool) -> None:
    assert Tool("t", schema).closed is closed


TYPES = [
    ({"type": "string"}, "string"),
    ({"type": "STRING"}, "string"),
    ({"type": ["string", "null"]}, "null string"),
    ({"type": "integer", "nullable": True}, "integer null"),
    ({"type": "dict"}, "object"),
    ({"type": "any"}, ""),
    ({"type": 5}, ""),
    ({"type": []}, ""),
    ({}, ""),
    (True, ""),
    (None, ""),
    ({"enum": ["a", "b"]}, "string"),
    ({"enum": [1, 2]}, "integer"),
    ({"enum": [1, "a", None, True, 0.5, [], {}]}, "array boolean integer null number object string"),
    ({"enum": []}, ""),
    ({"const": "a"}, "string"),
    ({"type": "string", "enum": [1]}, "string"),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "integer string"),
    ({"oneOf": [{"type": "string"}, {"const": 1}]}, "integer string"),
    ({"anyOf": [{"type": "string"}, {}]}, ""),
    ({"allOf": [{"type": "string"}, {"minLength": 3}]}, "string"),
    ({"type": "object", "anyOf": [{"required": ["a"]}]}, "object"),
    ({"properties": {}}, "object"),
    ({"items": {}}, "array"),
    ({"anyOf": "x"}, ""),
    ({"$ref": "#/$defs/a"}, "integer null"),
    ({"$ref": "#/$defs/b"}, "integer null"),
    ({"$ref": "#/$defs/a~1b%20c"}, "boolean"),
    ({"$ref": "#/$defs/none"}, ""),
    ({"$ref": "other.json#/a"}, ""),
    ({"$ref": "#/$defs/loop"}, ""),
    ({"$ref": "#/$defs/tree"}, "string"),
]
ROOT = {
    "$defs": {
        "a": {"type": ["integer", "null"]},
        "b": {"$ref": "#/$defs/a"},
        "a/b c": {"type": "boolean"},
        "loop": {"$ref": "#/$defs/loop"},
        "tree": {"anyOf": [{"type": "string"}, *[{"$ref": "#/$defs/tree"}] * 50]},
    }
}


@pytest.mark.parametrize(("schema", "types"), TYPES)
def test_types_are_collected_through_the_schema(schema: Any, types: str) -> None:
    assert types_of(schema, ROOT) == set(types.split())
    assert is_string_only(schema, ROOT) is (set(types.split()) - {"null"} == {"string"})


def test_alternatives_are_followed_to_a_depth_only() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        schema = {"anyOf": [schema]}
    assert types_of(schema) == frozenset()


def test_keys_are_found_but_for_case_and_joints_if_only_one_is_meant() -> None:
    tool = Tool("t", {"properties": {"from_line": {}, "toLine": {}, "a_b": {}, "ab": {}, "_": {}}})
    assert [tool.key(key) for key in ("from_line", "fromLine", "From-Line", "to_line", "TOLINE")] == [
        *["from_line"] * 3,
        *["toLine"] * 2,
    ]
    assert tool.key("A-B") is None
    assert tool.key("ab") == "ab"
    assert tool.key("-") is None
    assert tool.key("other") is None


def test_string_only_asks_for_declared_parameters() -> None:
    tool = Tool("t", SCHEMA)
    assert (tool.string_only("zone"), tool.string_only("hours"), tool.string_only("other")) == (True, False, False)


def test_copies_and_pickles_are_equal_and_carry_no_derived_data() -> None:
    tool = Tool("t", SCHEMA)
    assert tool.slots == ("zone", "alarm", "hours")
    for twin in (copy.deepcopy(tool), pickle.loads(pickle.dumps(tool))):
        assert twin == tool
        assert twin.slots == tool.slots
    assert hash(tool) == hash(Tool("t", {}))


def test_list_items_of_several_alternatives_are_joined() -> None:
    shape = Shape({"anyOf": [{"items": {"type": "string"}}, {"items": {"type": "integer"}}, {"type": "null"}]}, None)
    assert shape.item is not None
    assert shape.item.types == {"string", "integer"}
    assert Shape({"type": "array"}, None).item is None
    assert Shape(True, None).choices is None
