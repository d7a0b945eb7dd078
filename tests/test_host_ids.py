"""Ids, the gate of recovery, content blocks and structured calls."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamscrub import RejectedCall, ToolCall, scrub
from streamscrub.host import AdapterIds, dispatches, fill_ids, mint_ids, read_structured, recover_content
from streamscrub.limits import MAX_CALL_BYTES

PING: Final = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
NOTE: Final = {
    "name": "note",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
    },
}
CALL: Final = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("prefix", ["", " ", "\n"])
def test_a_blank_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        mint_ids(prefix)


def test_an_id_that_is_taken_is_passed_over() -> None:
    calls = scrub(CALL * 2, [PING]).calls
    assert [one.id for one in dispatches(calls, mint_ids("m"), {"m-tool-1"})] == ["m-tool-2", "m-tool-3"]
    assert fill_ids([{}], mint_ids("m"), ["m-tool-1"]) == [{"id": "m-tool-2"}]


def test_ids_that_ran_out_are_an_error() -> None:
    with pytest.raises(ValueError, match="no ids are left"):
        dispatches(scrub(CALL, [PING]).calls, iter(()))


def test_records_are_copied_and_ids_that_are_set_are_left_alone() -> None:
    given_records: list[dict[str, Any]] = [{"id": "call_1", "x": 1}, {"id": "call_1"}, {"id": ""}]
    before = copy.deepcopy(given_records)
    filled = fill_ids(given_records, mint_ids("m"))
    assert given_records == before
    assert filled == [{"id": "call_1", "x": 1}, {"id": "call_1"}, {"id": "m-tool-1"}]


@given(st.lists(st.integers(0, 5), max_size=8))
def test_no_id_comes_twice_in_a_conversation(sizes: list[int]) -> None:
    ids = AdapterIds()
    minted: list[str] = []
    for size in sizes:
        ids = pickle.loads(pickle.dumps(ids))
        slots = ids.response()
        minted += [next(slots) for _ in range(size)]
    assert len(set(minted)) == len(minted)


def test_ten_thousand_ids_are_different() -> None:
    ids = mint_ids("run-1")
    assert len({next(ids) for _ in range(10_000)}) == 10_000


# Content blocks


def test_content_without_calls_comes_back_as_it_was() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "a"},
        {"type": "image"},
        {"type": "text", "text": "b", "cache": 1},
    ]
    assert recover_content(blocks, [PING], ids=mint_ids("m")) == (blocks, [])


def test_a_call_over_two_text_blocks_is_one_call() -> None:
    blocks = [{"type": "text", "text": f"Hi. {CALL[:20]}"}, {"type": "text", "text": CALL[20:]}]
    kept, _ = recover_content(blocks, [PING], ids=mint_ids("m"))
    assert [block["type"] for block in kept] == ["text", "tool_use"]
    assert kept[0]["text"] == "Hi. "


def test_a_structured_call_withholds_the_ones_in_the_text() -> None:
    structured = {"type": "tool_use", "id": "toolu_1", "name": "ping", "input": {}}
    kept, rejected = recover_content([{"type": "text", "text": CALL}, structured], [PING], ids=mint_ids("m"))
    assert kept == [structured]
    assert [one.reason for one in rejected] == ["withheld"]


def test_a_cut_call_is_told_and_leaves_no_markup() -> None:
    kept, rejected = recover_content(
        [{"type": "text", "text": f"Hi. {CALL[:40]}"}], [PING], ids=mint_ids("m"), finish_reason="length"
    )
    assert kept == [{"type": "text", "text": "Hi. "}]
    assert [one.reason for one in rejected] == ["truncated"]


def test_the_blocks_that_were_given_are_not_changed() -> None:
    blocks = [{"type": "text", "text": CALL}]
    recover_content(blocks, [PING], ids=mint_ids("m"))
    assert blocks == [{"type": "text", "text": CALL}]


# Structured calls


def structured(arguments: Any, finish: str | None = "tool_calls", **more: Any) -> list[ToolCall | RejectedCall]:
    record = {"id": "1", "function": {"name": "note", "arguments": arguments}, **more}
    return read_structured([record], [NOTE], finish_reason=finish)


@pytest.mark.parametrize(
    ("arguments", "wanted", "kinds"),
    [
        ('{"a": 1}', {"a": 1}, []),
        ({"a": 1}, {"a": 1}, []),
        ('{"a": "1"}', {"a": 1}, ["coerced"]),
        ("{'a': 1,}", {"a": 1}, ["key_quotes", "trailing_comma"]),
        ('"{\\"a\\": 1}"', {"a": 1}, ["string_arguments"]),
        ('{"a": 1}</tool_call>', {"a": 1}, ["leaked_token"]),
        ('<tool_call>{"a": 1}</tool_call>', {"a": 1}, ["leaked_token", "leaked_token"]),
        ('{"a": 1}<|im_end|>', {"a": 1}, ["leaked_token"]),
        ('{"a": 1, "b": "x\n"}', {"a": 1, "b": "x\n"}, ["control_characters"]),
        ("", {}, ["no_arguments"]),
        (None, {}, ["no_arguments"]),
    ],
)
def test_structured_arguments_are_repaired(arguments: Any, wanted: dict[str, Any], kinds: list[str]) -> None:
    (call,) = structured(arguments)
    assert isinstance(call, ToolCall)
    assert (call.arguments, [repair.kind for repair in call.repairs]) == (wanted, kinds)
    assert bool(call.repairs) == (call.strategy != "clean")


@pytest.mark.parametrize(
    "arguments", ["hello", "7", "[1]", '{"a": 1} and more', '{"b": "open', "null and", "}{", '{"a":' * 99]
)
def test_structured_arguments_that_are_no_object_are_malformed_and_never_empty(arguments: str) -> None:
    (call,) = structured(arguments)
    assert isinstance(call, RejectedCall)
    assert (call.reason, call.name, call.raw) == ("malformed", "note", arguments.encode())


def test_several_objects_in_one_string_are_several_calls_with_numbers_of_their_own() -> None:
    events = structured('{"a": 1}{"a": 2}') + structured('{}{"a": 3}')
    assert [event.arguments for event in events] == [{"a": 1}, {"a": 2}, {"a": 3}]
    twice: list[dict[str, Any]] = [
        {"name": "note", "arguments": '{"a": 1} {"a": 2}'},
        {"name": "note", "input": {"a": 3}},
    ]
    assert [event.number for event in read_structured(twice, [NOTE])] == [0, 1, 2]


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", None])
def test_only_the_last_structured_call_is_suspect(finish: str | None) -> None:
    records = [{"name": "note", "arguments": "{'a': 1}"}, {"name": "note", "arguments": "{'a': 1}"}]
    first, last = read_structured(records, [NOTE], finish_reason=finish)
    assert isinstance(first, ToolCall)
    assert isinstance(last, RejectedCall)
    assert last.reason == "truncated"


def test_structured_names_are_resolved_or_unknown() -> None:
    records: list[dict[str, Any]] = [
        {"name": "functions.note", "arguments": '{"a": 1}'},
        {"name": "erase"},
        {"input": {}},
    ]
    called, unknown, nameless = read_structured(records, [NOTE])
    assert isinstance(called, ToolCall)
    assert called.corrected_from == "functions.note"
    assert isinstance(unknown, RejectedCall)
    assert isinstance(nameless, RejectedCall)
    assert (unknown.reason, nameless.reason) == ("unknown_tool", "malformed")


def test_a_huge_structured_call_is_too_large_and_a_marked_one_malformed() -> None:
    (huge,) = structured('{"b": "' + "x" * MAX_CALL_BYTES + '"}')
    (marked,) = structured('{"a": 1}', invalid=True)
    assert isinstance(huge, RejectedCall)
    assert isinstance(marked, RejectedCall)
    assert (huge.reason, marked.reason) == ("too_large", "malformed")


@given(st.text(max_size=60) | st.none() | st.dictionaries(st.text(max_size=5), st.integers(), max_size=3))
def test_no_structured_arguments_raise(arguments: Any) -> None:
    for finish in ("stop", "length"):
        for event in structured(arguments, finish):
            assert isinstance(event.raw, bytes)
