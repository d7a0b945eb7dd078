"""Repair is an edit script: the edits make strict JSON of the body, and nothing else of it changes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamscrub import Repair, StreamScrubber, ToolCall, scrub
from streamscrub.edits import Edit, applied, in_bytes, moved, told
from streamscrub.limits import MAX_REPAIR_TEXT, MAX_SAME_REPAIRS
from streamscrub.repair import Unreadable, load

from .test_repair import DAMAGE, INDENTS, OBJECTS, REFUSED, TABLE, dump, same, strings

DAMAGED = st.tuples(OBJECTS, INDENTS, st.lists(st.sampled_from(sorted(DAMAGE)), min_size=1, max_size=2))


def damaged(value: dict[str, Any], indent: int | None, names: list[str]) -> str:
    text = dump(value, indent)
    for name in names:
        text = DAMAGE[name](text, value)
    return text


def check(text: str, **options: Any) -> None:
    """Whatever is read, the edits alone lead from the text to it."""
    try:
        loaded = load(text, **options)
    except Unreadable:
        return
    edits = loaded.edits
    assert bool(edits) == bool(loaded.repairs)
    assert all(one.end <= other.start for one, other in pairwise(edits))
    assert all(text[edit.start : edit.end] != edit.after for edit in edits)
    assert same(json.loads(applied(text, edits)), loaded.value)
    assert {edit.kind for edit in edits} == {repair.kind for repair in loaded.repairs}
    # A string of the text that no edit touches is a string of the value, as it stands.
    kept = strings(loaded.value)
    for start, end in whole_strings(applied(text, edits), edits):
        assert json.loads(applied(text, edits)[start:end]) in kept


def whole_strings(fixed: str, edits: tuple[Edit, ...]) -> list[tuple[int, int]]:
    """Where the strings stand in the corrected text that hold nothing of an edit."""
    spots, shift = [], 0
    for edit in edits:
        spots.append((edit.start + shift, edit.start + shift + len(edit.after)))
        shift += len(edit.after) - (edit.end - edit.start)
    found, at = [], 0
    while (start := fixed.find('"', at)) >= 0:
        end = start + 1
        while fixed[end] != '"':
            end += 2 if fixed[end] == "\\" else 1
        at = end + 1
        if not any(first <= at and start <= last for first, last in spots):
            found.append((start, at))
    return found


@pytest.mark.parametrize("text", [row[0] for row in TABLE] + REFUSED)
def test_the_edits_lead_to_what_was_read(text: str) -> None:
    check(text, markers=("<T>",), quote_tokens=("<Q>",))
    check(text, keys=("path", "body"), markers=("<T>",))


@given(DAMAGED, st.booleans())
def test_the_edits_lead_to_what_was_read_from_any_damage(
    one: tuple[dict[str, Any], int | None, list[str]], known: bool
) -> None:
    check(damaged(*one), markers=("<T>",), keys=tuple(one[0]) if known else ())


@given(text=st.text(alphabet=st.sampled_from(list("{}[]\"'“”’:,\\/*#\n a1-.eTN`<>é")), max_size=60))
def test_the_edits_lead_to_what_was_read_from_any_text(text: str) -> None:
    for one in (text, '{"a": "' + text + '"}', "{'a': '" + text + "'}", "[" + text + "]", "{a: " + text + "}"):
        check(one, keys=("a", "b"), required=("a",), markers=("<T>",), quote_tokens=("<Q>",))


# What json_repair does alone. Each row: damage far from a string that is whole, and that string.
UNTOUCHED = [
    ('{"body": "keep\\n", "n": 1,}', "keep\n"),
    ('{"body": "y\\r\\n\\n", n: 1}', "y\r\n\n"),
    ('{"body": "# x\\n", \'n\': 1}', "# x\n"),
    ('{"body": "```json\\n{}\\n```", n: 1}', "```json\n{}\n```"),
]


@pytest.mark.parametrize(("text", "kept"), UNTOUCHED)
def test_a_string_that_no_edit_touches_keeps_its_text_where_json_repair_alone_changes_it(text: str, kept: str) -> None:
    from json_repair import loads

    assert load(text).value == {"body": kept, "n": 1}
    alone = loads(text)
    assert isinstance(alone, dict)
    assert alone["body"] != kept
    assert kept.startswith(alone["body"]) or "{" in kept


# In a stream

TOOLS = [{"name": "save", "parameters": {"type": "object", "properties": {"value": {"type": "object"}}}}]
PROSE = st.sampled_from(["", "Ich schreibe es auf: ", "好的，", "a < b\n\n", "\ufeff"])


def replayed(wire: bytes, call: ToolCall) -> str:
    """The call's block with its repairs made, as far as they have a place and were told one by one."""
    out, at = [], call.span[0]
    for one in sorted((one for one in call.repairs if one.span), key=lambda one: one.span or (0, 0)):
        assert one.span is not None
        out += [wire[at : one.span[0]].decode(), one.after]
        at = one.span[1]
    return "".join([*out, wire[at : call.span[1]].decode()])


@given(
    DAMAGED,
    PROSE,
    st.integers(1, 40),
    st.sampled_from([("<tool_call>", "</tool_call>"), ("<tool_call>\n", "\n</tool_call>")]),
)
def test_the_records_of_a_call_are_the_edits_of_the_wire(
    one: tuple[dict[str, Any], int | None, list[str]], prose: str, size: int, tags: tuple[str, str]
) -> None:
    body = f'{{"name": "save", "arguments": {{"value": {damaged(*one)}}}}}'
    wire = f"{prose}{tags[0]}{body}{tags[1]}".encode()
    scrubber = StreamScrubber(TOOLS)
    events = [event for at in range(0, len(wire), size) for event in scrubber.feed(wire[at : at + size])]
    calls = [event for event in [*events, *scrubber.finish("stop")] if isinstance(event, ToolCall)]
    for call in calls:
        placed = [repair for repair in call.repairs if repair.span is not None]
        for repair in placed:
            assert repair.span is not None
            start, end = repair.span
            assert call.span[0] <= start <= end <= call.span[1]
            assert wire[start:end].decode()[:MAX_REPAIR_TEXT] == repair.before
        counts = [repair.kind for repair in call.repairs]
        if len(calls) == 1 and placed == list(call.repairs) and all(counts.count(k) < MAX_SAME_REPAIRS for k in counts):
            text = replayed(wire, call).strip()
            read = json.loads(text.removeprefix("<tool_call>").removesuffix("</tool_call>"))
            assert read["name"] == "save"
            assert same(read["arguments"], call.arguments)


@pytest.mark.parametrize(
    ("text", "told_as"),
    [
        (
            '€ <tool_call>{\'name\': "save", "arguments": {"value": {}}}</tool_call>',
            [("key_quotes", "name", "'name'", '"name"')],
        ),
        (
            '<tool_call>{"name": "save", "arguments": {"value": {"é": [1, True,],}}}</tool_call>',
            [
                ("python_literal", "arguments.value.é[1]", "True", "true"),
                ("trailing_comma", "arguments.value.é", ",", ""),
                ("trailing_comma", "arguments.value", ",", ""),
            ],
        ),
        (
            '<tool_call>{"name": "saves", "parameters": {"value": {"a": 07}}}</tool_call>',
            [("number", "arguments.value.a", "07", "7"), ("name", "name", "saves", "save")],
        ),
        (
            '<tool_call>{"name": "save", "arguments": {"value": {"a": "x\ty"}}</tool_call>',
            [("control_characters", "arguments.value.a", "\t", "\\t"), ("missing_bracket", "", "", "}")],
        ),
        (
            '<tool_call>{"name": "save", "arguments": {"value": {}}}',
            [("missing_close", "", "", "")],
        ),
        (
            '<tool_call name="save">{"value": {a: 1}}</tool_call>',
            [("key_quotes", "arguments.value.a", "a", '"a"')],
        ),
    ],
)
def test_a_repair_says_kind_place_before_and_after(text: str, told_as: list[tuple[str, str, str, str]]) -> None:
    (call,) = scrub(text, TOOLS).calls
    wire = text.encode()
    assert [(one.kind, one.where, one.before, one.after) for one in call.repairs] == told_as
    for one in call.repairs:
        assert one.span is not None
        assert wire[slice(*one.span)].decode() == one.before


def test_each_call_of_a_body_is_told_its_own_repairs() -> None:
    body = """[{"name": "save", "arguments": {"value": {}}}, {"name": 'save', "arguments": {"value": {}}}]"""
    clean, changed = scrub(f"<tool_call>{body}</tool_call>", TOOLS).calls
    assert (clean.strategy, clean.repairs) == ("clean", ())
    assert [one.kind for one in changed.repairs] == ["quotes"]


def test_a_string_of_arguments_is_told_with_what_was_wrong_inside() -> None:
    (call,) = scrub(r'<tool_call>{"name": "save", "arguments": "{\"value\": {\"a\": 1,}}"}</tool_call>', TOOLS).calls
    assert [(one.kind, one.where) for one in call.repairs] == [
        ("string_arguments", "arguments"),
        ("trailing_comma", "arguments.value"),
    ]


# The records themselves


def test_a_flood_of_one_kind_is_told_by_its_first_and_one_record_for_the_rest() -> None:
    text = "[" + "1,, " * 200 + "2,]"
    with pytest.raises(Unreadable):
        load(text)
    text = "[" + "True, " * 500 + "1]"
    loaded = load(text)
    assert len(loaded.edits) == 500
    assert len(loaded.repairs) == MAX_SAME_REPAIRS
    last = loaded.repairs[-1]
    assert last.span == (loaded.edits[MAX_SAME_REPAIRS - 1].start, loaded.edits[-1].end)
    assert last.after == "true, " * 33 + "tr"
    exact = load("[" + ", ".join(["True"] * MAX_SAME_REPAIRS) + "]")
    assert [one.span for one in exact.repairs] == [(edit.start, edit.end) for edit in exact.edits]


def test_records_are_moved_and_counted_in_bytes() -> None:
    edits = [Edit(1, 2, "b", "quotes", "x"), Edit(3, 3, ",", "missing_comma")]
    records = told("éaüx", edits)
    assert records == (Repair("quotes", "x", "a", "b", (1, 2)), Repair("missing_comma", "", "", ",", (3, 3)))
    assert [one.span for one in in_bytes(records, "éaüx".encode(), 10)] == [(12, 13), (15, 15)]
    assert [one.span for one in moved(records, 5)] == [(6, 7), (8, 8)]
    nowhere = Repair("merged")
    assert in_bytes([nowhere], "é".encode()) == moved([nowhere], 3) == [nowhere]


@given(st.binary(max_size=30), st.lists(st.integers(0, 30), max_size=4))
def test_places_in_bytes_hold_for_invalid_utf_8(raw: bytes, points: list[int]) -> None:
    text = raw.decode("utf-8", "replace")
    points = [min(point, len(text)) for point in points]
    found = in_bytes([Repair("k", span=(point, len(text))) for point in points], raw)
    for point, one in zip(points, found, strict=True):
        assert one.span is not None
        assert one.span[1] == len(raw)
        assert raw[: one.span[0]].decode("utf-8", "replace") == text[:point]
        assert raw[one.span[0] :].decode("utf-8", "replace") == text[point:]
