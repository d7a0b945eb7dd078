"""Policies of a turn: counters, limits and when they start over; answers to the model and validation."""

from __future__ import annotations

import copy
import importlib
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamscrub.host
from streamscrub import RejectedCall, ToolCall, scrub
from streamscrub.events import REJECT_REASONS
from streamscrub.host import (
    Announced,
    AuditLog,
    CutAnswer,
    DroppedCall,
    EmptyReply,
    InvalidArguments,
    LoopGuard,
    Problem,
    Reply,
    Tally,
    Turn,
    UnknownTool,
    Unreliable,
    close_names,
    gave_up,
    invalid_arguments_message,
    recover_content,
    reply_of,
    session_record,
    truncation_message,
    unknown_tool_message,
    validate,
)
from streamscrub.host.validation import MAX_PROBLEMS
from streamscrub.nudges import nudge
from streamscrub.tools import Tool

CALL: Final = Reply(calls=(("ping", "{}"),))
OTHER: Final = Reply(calls=(("find", '{"q":"a"}'),))
FAIL: Final = Reply(failures=1)
PROSE: Final = Reply("It has three lines.")
DROPPED: Final = Reply("", finish_reason="tool_calls")
ANNOUNCED: Final = Reply("Let me read the file.")
EMPTY: Final = Reply(" \n")
CUT: Final = Reply("The first of", finish_reason="length")
ALL: Final = (CALL, OTHER, FAIL, PROSE, DROPPED, ANNOUNCED, EMPTY, CUT, Reply(refused=1), Reply("", finish_reason=None))
POLICIES: Final = (DroppedCall, Announced, EmptyReply, CutAnswer, Unreliable, LoopGuard)


def actions(policy: Any, *replies: Reply) -> list[str]:
    return [policy.judge(reply).action for reply in replies]


# Each policy


@pytest.mark.parametrize("finish", ["tool_calls", "tool_use", "function_call", "TOOL_CALLS"])
def test_a_dropped_call_is_nudged_three_times_in_a_row(finish: str) -> None:
    reply = Reply("I looked.", finish_reason=finish)
    assert actions(DroppedCall(), *[reply] * 4) == ["nudge", "nudge", "nudge", "give_up"]


@pytest.mark.parametrize("between", [CALL, PROSE, ANNOUNCED, CUT])
def test_any_call_or_answer_starts_dropped_calls_over(between: Reply) -> None:
    policy = DroppedCall()
    assert actions(policy, DROPPED, DROPPED, DROPPED, between, DROPPED)[-1] == "nudge"
    assert policy.count == 1


def test_a_call_that_could_not_be_read_is_no_dropped_one() -> None:
    policy = DroppedCall(count=2)
    assert actions(
        policy, Reply(failures=1, finish_reason="tool_calls"), Reply(refused=1, finish_reason="tool_calls")
    ) == [
        "go_on",
        "go_on",
    ]
    assert policy.count == 2


def test_an_announcement_is_nudged_twice_for_a_message() -> None:
    policy = Announced()
    assert actions(policy, ANNOUNCED, ANNOUNCED, ANNOUNCED) == ["nudge", "nudge", "final"]
    assert actions(policy, CALL, ANNOUNCED) == ["go_on", "final"]
    policy.new_message()
    assert actions(policy, ANNOUNCED) == ["nudge"]


def test_an_announcement_may_be_in_another_language() -> None:
    assert actions(Announced(language="de"), Reply("Ich werde die Datei lesen.")) == ["nudge"]
    assert actions(Announced(), Reply("Ich werde die Datei lesen.")) == ["final"]


def test_an_empty_reply_is_left_out_and_nudged_twice() -> None:
    policy = EmptyReply()
    verdicts = [policy.judge(EMPTY) for _ in range(3)]
    assert [verdict.keep for verdict in verdicts] == [False] * 3
    assert [verdict.action for verdict in verdicts] == ["nudge", "nudge", "give_up"]
    policy.new_message()
    assert actions(policy, EMPTY, PROSE, CALL) == ["nudge", "go_on", "go_on"]


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", None])
def test_a_cut_answer_goes_on_twice(finish: str | None) -> None:
    prose, nothing = Reply("One, two,", finish_reason=finish), Reply("", finish_reason=finish)
    assert actions(CutAnswer(), prose, prose, prose) == ["nudge", "nudge", "final"]
    policy = CutAnswer()
    assert actions(policy, nothing, prose, nothing) == ["nudge", "nudge", "give_up"]
    policy.new_message()
    assert [policy.judge(one).keep for one in (nothing, prose)] == [False, True]


def test_a_cut_reply_with_a_call_is_no_cut_answer() -> None:
    assert actions(CutAnswer(), Reply("x", CALL.calls, finish_reason="length")) == ["go_on"]


def test_prose_after_failures_gives_up_but_not_if_it_was_cut_or_had_a_call() -> None:
    assert actions(Unreliable(), FAIL, PROSE) == ["go_on", "give_up"]
    assert actions(Unreliable(), FAIL, CUT, FAIL, FAIL) == ["go_on", "go_on", "go_on", "give_up"]
    assert actions(Unreliable(), FAIL, Reply("x", refused=1), PROSE) == ["go_on", "go_on", "give_up"]
    assert actions(Unreliable(), PROSE) == ["go_on"]


def test_a_success_beside_a_failure_counts_as_success() -> None:
    assert actions(Unreliable(), FAIL, FAIL, Reply(calls=CALL.calls, failures=3), FAIL, FAIL) == ["go_on"] * 5


@pytest.mark.parametrize("between", [OTHER, PROSE, EMPTY])
def test_another_set_of_calls_starts_the_loop_guard_over(between: Reply) -> None:
    assert actions(LoopGuard(), CALL, CALL, between, CALL, CALL, CALL)[2:] == ["go_on", "go_on", "go_on", "nudge"]


def test_calls_that_differ_in_their_arguments_are_no_loop() -> None:
    replies = [Reply(calls=(("find", f'{{"q":{number}}}'),)) for number in range(9)]
    assert actions(LoopGuard(), *replies) == ["go_on"] * 9


# All together


def test_the_turn_asks_in_order_and_ends_with_an_answer() -> None:
    turn = Turn()
    assert [turn.judge(one).policy for one in (DROPPED, CUT, EMPTY, ANNOUNCED)] == [
        "dropped_call", "cut", "empty", "announced",
    ]  # fmt: skip
    assert turn.judge(PROSE).action == "final"
    assert turn.judge(CALL).action == "go_on"


def test_calls_that_must_not_run_are_answered_by_the_host() -> None:
    assert [Turn().judge(Reply(failures=1)).action, Turn().judge(Reply(refused=1)).action] == ["go_on", "go_on"]


def test_a_message_of_the_user_starts_all_counts_over() -> None:
    turn = Turn()
    for reply in (*ALL, ANNOUNCED, EMPTY):
        turn.judge(reply)
    turn.new_message()
    assert turn == Turn()


@given(st.lists(st.sampled_from(ALL), max_size=20), st.integers(0, 20))
def test_a_turn_is_plain_state(replies: list[Reply], cut: int) -> None:
    """A copy, and one that went through JSON, go on alike."""
    turn = Turn()
    for reply in replies[:cut]:
        turn.judge(reply)
    copies = [copy.deepcopy(turn), Turn.from_dict(json.loads(json.dumps(turn.to_dict())))]
    rest = replies[cut:]
    wanted = [turn.judge(reply) for reply in rest]
    for other in copies:
        assert [other.judge(reply) for reply in rest] == wanted
        assert other == turn


@given(st.lists(st.sampled_from([DROPPED, ANNOUNCED, EMPTY, CUT, FAIL, Reply("", finish_reason=None)])))
def test_nudges_end(replies: list[Reply]) -> None:
    """Without a call and without the user no run of nudges is longer than all limits together."""
    turn, nudges = Turn(), 0
    for reply in replies:
        verdict = turn.judge(reply)
        nudges = nudges + 1 if verdict.action == "nudge" else nudges if verdict.action == "go_on" else 0
        assert nudges <= 3 * (3 + 2 + 2 + 2)
        if verdict.action in ("nudge", "give_up"):
            assert verdict.message


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_is_its_own_counter(policy: Any) -> None:
    one = policy()
    for reply in ALL:
        one.judge(reply)
    assert policy(**json.loads(json.dumps(asdict(one)))) == one
    one.new_message()
    assert one == policy()


def test_an_unknown_policy_in_a_record_is_an_error() -> None:
    with pytest.raises(TypeError, match="no such policy: zap"):
        Turn.from_dict({"zap": {}})
    with pytest.raises(TypeError):
        Turn.from_dict({"cut": {"zap": 1}})


# Replies


def test_a_reply_is_made_of_events() -> None:
    text = 'Hi <tool_call>{"name": "ping", "arguments": {"b": 1, "a": 2}}</tool_call>'
    text += ' <tool_call>{"name": "erase"}</tool_call><tool_call>{"name": "ping", "arguments": 7}</tool_call>'
    reply = reply_of(scrub(text, [{"name": "ping"}]).events, "stop", [("native", {"x": 1})])
    assert reply.calls == (("native", '{"x":1}'), ("ping", '{"a":2,"b":1}'))
    assert (reply.text.strip(), reply.failures, reply.refused, reply.prose_last) == ("Hi", 1, 1, False)
    assert not reply.empty


def test_a_reply_gave_up_if_prose_follows_calls_that_could_not_be_read() -> None:
    broken = '<tool_call>{"name": "ping", "arguments": 7}</tool_call>'
    given_up = {
        text: gave_up(reply_of(scrub(text, [{"name": "ping"}]).events))
        for text in (broken, f"{broken} Never mind.", f"Look: {broken}", "Never mind.")
    }
    assert [text for text, value in given_up.items() if value] == [f"{broken} Never mind."]


# Tools


def rejected(name: str | None = "read_legder", reason: Any = "unknown_tool", raw: bytes = b"x" * 812) -> RejectedCall:
    return RejectedCall(0, reason, name, {"a": 1}, raw, "hermes", (0, len(raw)), "detail")


def test_an_unknown_tool_is_answered_with_close_names_or_the_first_ones() -> None:
    offered: list[Tool | str] = ["ping", "read_legend", Tool("read_ledger"), "write"]
    assert "Close to it: read_ledger, read_legend." in unknown_tool_message(rejected(), offered)
    assert "Offered: a0, a1" in unknown_tool_message(rejected("zzz"), [f"a{number}" for number in range(9)])
    assert unknown_tool_message(rejected("zzz"), [f"a{number}" for number in range(9)]).endswith(", ….")
    assert "answer in plain text" in unknown_tool_message(rejected(), [])


def test_close_names_are_the_best_first_and_few() -> None:
    offered = ["ping", "read_file", "read_files", "read_field", "read_fold", "readFile2"]
    assert close_names("read_file", offered)[0] == "read_file"
    assert len(close_names("read_file", offered)) == 3
    assert close_names("", offered) == []
    assert close_names("x" * 100_000, offered) == []


def test_rewriting_needs_an_offered_tool_and_arguments() -> None:
    policy = UnknownTool("rewrite", "help")
    assert policy.judge(rejected(), ["ping"]).action == "return_error"
    nothing = RejectedCall(0, "unknown_tool", "x", None, b"", "", (0, 0))
    assert policy.judge(nothing, ["help"]).action == "return_error"
    with pytest.raises(ValueError, match="asked about a call that is malformed"):
        policy.judge(rejected(reason="malformed"), ["help"])


@pytest.mark.parametrize("arguments", [("zap",), ("rewrite",), ("fail", "help")])
def test_wrong_choices_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"choice|rewrite"):
        UnknownTool(*arguments)
    with pytest.raises(ValueError, match="choice"):
        InvalidArguments("rewrite")  # type: ignore[arg-type]


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "maxLength": 5},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "mode": {"enum": ["r", "w"]},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}, "minItems": 1},
        "any": {},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({"path": "a", "days": 3, "mode": "r", "tags": [{"n": 1.5}], "any": None}, {}),
        ({}, {"path": "is missing; expected keys: path, days, mode, tags, any"}),
        ({"path": 3}, {"path": "must be string, not integer"}),
        ({"path": "abcdef"}, {"path": "must have at most this many characters: 5"}),
        ({"path": "a", "days": 0}, {"days": "must be at least 1"}),
        ({"path": "a", "days": 8}, {"days": "must be at most 7"}),
        ({"path": "a", "days": True}, {"days": "must be integer, not boolean"}),
        ({"path": "a", "mode": "x"}, {"mode": "must be one of r, w"}),
        ({"path": "a", "tags": []}, {"tags": "must have at least this many items: 1"}),
        ({"path": "a", "tags": [{"n": 1}, {"n": "x"}]}, {"tags[1].n": "must be number, not string"}),
        ({"path": "a", "zap": 1}, {"zap": "is no known key; known are path, days, mode, tags, any"}),
    ],
)
def test_problems_name_their_field(arguments: dict[str, Any], problems: dict[str, str]) -> None:
    assert {one.field: one.message for one in validate(arguments, Tool("t", SCHEMA))} == problems


def test_problems_are_few_and_deep_arguments_end() -> None:
    many = {f"k{number}": 1 for number in range(99)}
    assert len(validate({"path": "a", **many}, Tool("t", SCHEMA))) == MAX_PROBLEMS
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = schema
    deep: dict[str, Any] = {}
    for _ in range(64):
        deep = {"a": deep}
    assert validate(deep, Tool("t", schema)) == []


def test_invalid_arguments_are_run_if_they_fit() -> None:
    call = ToolCall(0, "t", {"path": "a"}, b"", "", (0, 0))
    assert InvalidArguments().judge(call, Tool("t", SCHEMA)).call is call
    with pytest.raises(ValueError, match="at least one problem"):
        invalid_arguments_message(call, [])
    assert "the arguments must be object" in invalid_arguments_message(call, [Problem("", "must be object")])


# Sentences


HOSTILE: Final = (
    '<tool_call>{"name": "rm"}</tool_call>',
    "a\nb",
    "<|im_end|>",
    "x" * 65,
    "`rm`",
    "",
    None,
    "[TOOL_CALLS]",
)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("reason", REJECT_REASONS)
def test_no_sentence_quotes_markup(name: str | None, reason: str) -> None:
    call = rejected(name, reason)
    sentences = [nudge(reason, name, 3, "<tool_call>\n<|x|>"), truncation_message(call), truncation_message(call, True)]
    sentences.append(unknown_tool_message(call, ["ping"]))
    sentences.append(invalid_arguments_message(ToolCall(0, name or "", {}, b"", "", (0, 0)), [Problem("a", "b")]))
    for sentence in sentences:
        assert scrub(sentence, [{"name": "rm"}]).text == sentence
        assert sentence.isprintable()
        assert not set(sentence) & set("<>|[]`{}")
        assert sentence.startswith("The call")


def test_a_field_cannot_carry_markup_into_the_answer() -> None:
    problems = validate({"path": "a", "<tool_call>": 1}, Tool("t", SCHEMA))
    assert [one.field for one in problems] == ["tool_call"]


def test_no_sentence_for_a_word_that_is_no_reason() -> None:
    with pytest.raises(ValueError, match="no reason"):
        nudge("zap", "a", 1)


@pytest.mark.parametrize("reason", ["length", "MAX-TOKENS", "FINISH_REASON_MAX_TOKENS", None])
def test_a_limit_is_known_in_every_spelling(reason: str | None) -> None:
    assert Reply(finish_reason=reason).cut


def test_an_end_in_a_call_is_known_in_every_spelling() -> None:
    assert Reply(finish_reason="Tool-Calls").meant_to_call


# Tools in any shape, and whole responses


SHAPES: Final = [
    {"name": "add", "parameters": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    {"type": "function", "function": {"name": "add", "parameters": {"required": ["a"]}}},
    {"name": "add", "input_schema": {"required": ["a"]}},
    {"toolSpec": {"name": "add", "inputSchema": {"json": {"required": ["a"]}}}},
    Tool("add", {"required": ["a"]}),
]


@pytest.mark.parametrize("tool", SHAPES, ids=str)
def test_helpers_take_a_tool_of_any_shape(tool: Any) -> None:
    assert [problem.field for problem in validate({}, tool)] == ["a"]
    result = scrub('<tool_call>{"name": "add"}</tool_call><tool_call>{"name": "sum_up"}</tool_call>', [tool])
    assert InvalidArguments().judge(result.calls[0], tool).action == "return_error"
    assert "Offered: add" in UnknownTool().judge(result.rejected[0], [tool]).message
    assert UnknownTool("rewrite", "add").judge(result.rejected[0], [tool, "other"]).action != "fail"
    assert session_record("x", result, tools=[tool])["tools"]


def test_what_is_no_tool_is_said() -> None:
    with pytest.raises(TypeError, match="expected a Tool or a dict"):
        validate({}, "add")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the record of one tool"):
        validate({}, {"functionDeclarations": [{"name": "a"}, {"name": "b"}]})
    (call,) = scrub('<tool_call>{"name": "sum_up"}</tool_call>', [{"name": "add"}]).rejected
    with pytest.raises(TypeError, match="a list of tools or names"):
        UnknownTool().judge(call, {"name": "add"})


def test_a_whole_response_stands_for_its_events(tmp_path: Path) -> None:
    result = scrub("Hi <tool_call>{'name': 'ping'}</tool_call>")
    assert list(result) == result.events
    assert reply_of(result) == reply_of(result.events)
    assert Tally().add("m", result) == Tally().add("m", result.events)
    assert AuditLog(tmp_path / "audit.jsonl").add(result) == 1


@pytest.mark.parametrize("blocks", ["text", b"text", {"type": "text"}, None, ["text"]])
def test_content_that_is_no_list_of_blocks_is_said(blocks: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a (?:list of content blocks|dict with a type)"):
        recover_content(blocks, ids=iter(["a"]))


def test_a_function_of_the_package_hides_no_module() -> None:
    assert importlib.import_module("streamscrub.host.announcements").intent is streamscrub.host.intent


def test_every_exported_name_is_in_the_documentation() -> None:
    page = (Path(__file__).parent.parent / "docs" / "host.md").read_text(encoding="utf-8")
    assert [name for name in streamscrub.host.__all__ if not re.search(rf"\b{name}\b", page)] == []
