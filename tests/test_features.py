"""The acceptance examples of the feature table, each test named after its row (see tests/features.py)."""

from __future__ import annotations

import ast
import dataclasses
import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from streamscrub import RejectedCall, ToolCall, host, scrub
from streamscrub.cli import main
from streamscrub.events import REJECT_REASONS, Scrubbed
from streamscrub.host import (
    AdapterIds,
    AuditLog,
    Dispatch,
    InvalidArguments,
    LoopGuard,
    Reply,
    Tally,
    Turn,
    UnknownTool,
    dispatches,
    fill_ids,
    may_recover,
    mint_ids,
    read_audit,
    read_lines,
    read_structured,
    recover_content,
    replay,
    reply_of,
    truncation_message,
    validate,
)
from streamscrub.host.sessions import Response
from streamscrub.tools import Tool

from . import features

ROOT: Final = Path(__file__).resolve().parent.parent
PING: Final = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
LEDGER: Final = {
    "name": "read_ledger",
    "parameters": {
        "type": "object",
        "properties": {"ledger": {"type": "string"}, "since": {"type": "string"}},
        "required": ["ledger"],
    },
}


@cache
def cases() -> dict[str, dict[str, Any]]:
    path = ROOT / "tests" / "cases" / "dialects.jsonl"
    return {case["id"]: case for line in path.read_text(encoding="utf-8").splitlines() for case in [json.loads(line)]}


def read(name: str) -> Scrubbed:
    """A case of tests/cases/dialects.jsonl, read; its calls and rejections are what it expects."""
    case = cases()[name]
    result = scrub(case["text"], case["tools"], finish_reason=case["finish_reason"], **case["options"])
    expect = case["expect"]
    assert [{"name": call.name, "arguments": call.arguments} for call in result.calls] == expect["calls"]
    assert [call.reason for call in result.rejected] == [one["reason"] for one in expect["rejected"]]
    assert " ".join(result.text.split()) == " ".join(expect["text"].split())
    return result


def tag(name: str, arguments: Any = None) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments or {}})}</tool_call>"


# The page


def test_the_page_of_features_is_up_to_date() -> None:
    assert features.PAGE.read_text(encoding="utf-8") == features.page(), "run python -m tests.features"


def test_every_row_of_a_complete_section_has_a_test() -> None:
    known = features.tests()
    rows = [(section, row) for section in features.COMPLETE for row in features.ROWS[section][1]]
    assert [row for section, row in rows if features.slug(section, row) not in known] == []


def test_no_test_is_named_after_a_row_that_is_not_there() -> None:
    slugs = {features.slug(section, row) for section, (_, rows) in features.ROWS.items() for row in rows}
    mine = {name for name, places in features.tests().items() if any("test_features.py" in one for one in places)}
    about_rows = {name for name in mine if len(name.split("_")[1]) == 1 and name.split("_")[1].upper() in features.ROWS}
    assert about_rows <= slugs


# Repair and coercion, as far as they are the host's; the rest is in tests/test_repair_tables.py


def test_c_leaked_delimiters_in_an_arguments_blob() -> None:
    record = {"function": {"name": "read_ledger", "arguments": '{"ledger": "a"}</tool_call>'}}
    (call,) = read_structured([record], [LEDGER])
    assert isinstance(call, ToolCall)
    assert (call.arguments, call.repaired) == ({"ledger": "a"}, True)


def test_c_invalid_not_fatal() -> None:
    (call,) = read_structured([{"function": {"name": "read_ledger", "arguments": "hello"}}], [LEDGER])
    assert isinstance(call, RejectedCall)
    assert (call.reason, call.arguments, call.raw) == ("malformed", None, b"hello")
    assert call.detail


def test_e_validation_result() -> None:
    tool = Tool("read_note", {"properties": {"path": {"type": "string"}, "line": {}}, "required": ["path"]})
    (problem,) = validate({"contents": "x"}, tool)
    assert (problem.field, problem.message) == ("path", "is missing; expected keys: path, line")


# Names


@pytest.mark.parametrize("written", ['terminal" parameter="x', "functions.terminal", "Terminal", "tools.terminal"])
def test_d_damaged_names(written: str) -> None:
    (call,) = scrub(tag(written), [{"name": "terminal"}]).calls
    assert (call.name, call.corrected_from) == ("terminal", written)
    read("dialects-recover-129")


@pytest.mark.parametrize("written", ["functions.read_file", "Read File", "readFile", "read-file"])
def test_d_damaged_names__in_any_spelling(written: str) -> None:
    assert scrub(tag(written), [{"name": "read_file"}]).calls[0].name == "read_file"


def test_d_fuzzy_match_to_offered_tools() -> None:
    read("dialects-named-117")
    assert [call.reason for call in read("dialects-named-118").rejected] == ["unknown_tool"]
    tie = scrub(tag("read_nots"), [{"name": "read_note"}, {"name": "read_nodes"}, {"name": "read_nots_"}])
    assert [call.name for call in tie.calls] == ["read_nots_"]
    tie = scrub(tag("read_noXe"), [{"name": "read_note"}, {"name": "read_nome"}])
    assert [call.reason for call in tie.rejected] == ["unknown_tool"]


def test_d_correction_is_visible() -> None:
    (call,) = scrub(tag("read_notes"), [{"name": "read_note"}]).calls
    assert (call.corrected_from, call.repaired, call.name) == ("read_notes", True, "read_note")
    assert scrub(tag("read_note"), [{"name": "read_note"}]).calls[0].corrected_from is None


@pytest.mark.parametrize("pseudo", ["tool_call", "call_tool", "use_tool", "function_call", "invoke"])
def test_d_pseudo_tool_unwrap(pseudo: str) -> None:
    text = tag(pseudo, {"name": "read_ledger", "arguments": {"ledger": "a"}})
    (call,) = scrub(text, [LEDGER]).calls
    assert (call.name, call.arguments) == ("read_ledger", {"ledger": "a"})
    assert scrub(text, [LEDGER, {"name": pseudo}]).calls[0].name == pseudo
    assert scrub(tag(pseudo, {"name": "nothing"}), [LEDGER]).calls == []
    read("dialects-named-116")


# Ids


def test_f_parser_mints_no_ids() -> None:
    assert "id" not in {field.name for field in dataclasses.fields(ToolCall)}
    text = '<tool_call>{"name": "ping", "arguments": {}, "id": "call_9ab"}</tool_call>'
    (call,) = scrub(text, [PING]).calls
    assert call.model_id == "call_9ab"
    assert scrub(tag("ping"), [PING]).calls[0].model_id is None


def test_f_host_side_minting() -> None:
    calls = scrub(tag("ping") * 2, [PING]).calls
    assert [one.id for one in dispatches(calls, mint_ids("m7"))] == ["m7-tool-1", "m7-tool-2"]


def test_f_adapter_minting() -> None:
    ids = AdapterIds(seq=3)
    records: list[dict[str, Any]] = [{"id": "text-3-0"}, {"id": ""}, {"id": None}, {}]
    minted = [record["id"] for record in fill_ids(records, ids.response())]
    assert minted == ["text-3-0", "text-3-1", "text-3-2", "text-3-3"]
    assert next(ids.response()) == "text-4-0"


def test_f_every_recovered_call_gets_an_id_before_it_runs() -> None:
    ids = AdapterIds()
    turns = [dispatches(scrub(tag("ping") * 3, [PING]).calls, ids.response()) for _ in range(2)]
    seen = [one.id for turn in turns for one in turn]
    assert all(seen)
    assert len(set(seen)) == 6
    for blank in ("", "  "):
        with pytest.raises(ValueError, match="without an id"):
            Dispatch(blank, turns[0][0].call)


# The gate


def test_g_gate_by_offered_tools() -> None:
    read("dialects-recover-126")
    read("dialects-recover-127")
    fence = '```json\n{"name": "ping", "arguments": {}}\n```'
    assert len(scrub(fence, [PING]).calls) == 1
    assert scrub(fence, [LEDGER]).calls == []


def test_g_reachable_not_dead_code() -> None:
    log = {
        "choices": [
            {"message": {"role": "assistant", "content": f"One moment. {tag('ping')}"}, "finish_reason": "stop"}
        ],
        "tools": [{"type": "function", "function": PING}],
    }
    (saved,) = read_lines([json.dumps(log)])
    result = replay(saved)
    assert result.outcome is not None
    assert [call.name for call in result.outcome.calls] == ["ping"]


@pytest.mark.parametrize("provenance", ["refusal", "failed", "promoted_reasoning", "other"])
def test_g_no_recovery_out_of_substituted_content(provenance: str) -> None:
    allowed = may_recover(offered=True, structured=False, provenance=provenance)
    result = scrub(f"No. {tag('ping')}", [PING], recover=allowed)
    assert (result.text, result.calls, [one.reason for one in result.rejected]) == ("No. ", [], ["withheld"])
    with pytest.raises(ValueError, match="provenance"):
        may_recover(offered=True, structured=False, provenance="rumour")


def test_g_reasoning_is_never_run() -> None:
    result = scrub(f"<think>I could call {tag('ping')} now.</think>Done.", [PING])
    assert (result.calls, result.text) == ([], "Done.")
    assert tag("ping") in result.reasoning
    read("dialects-glm-012")


def test_g_only_when_nothing_structured() -> None:
    found = {
        (guided, offered, structured): may_recover(offered=offered, structured=structured, guided=guided)
        for guided, offered, structured in product((False, True), repeat=3)
    }
    assert [key for key, allowed in found.items() if allowed] == [
        (False, True, False), (True, True, False), (True, True, True),
    ]  # fmt: skip


# Truncation


def test_h_cut_call_never_runs() -> None:
    result = read("dialects-named-122")
    assert [(one.reason, one.name) for one in result.rejected] == [("truncated", "save_note")]
    text = f"a {tag('ping', {'q': 'x'})}"
    for end in range(3, len(text)):
        assert scrub(text[:end], [PING], finish_reason="length").calls == [], end


def test_h_earlier_complete_calls_run() -> None:
    read("dialects-kimi-032")
    read("dialects-named-123")


def test_h_suspect_last_call() -> None:
    read("dialects-harmony-075")
    read("dialects-harmony-073")


def test_h_suspect_last_call__of_a_provider() -> None:
    whole = {"id": "1", "function": {"name": "ping", "arguments": "{}"}}
    open_ended = {"id": "2", "function": {"name": "ping", "arguments": '{"a": "b'}}
    marked = {"id": "3", "invalid": True, "function": {"name": "ping", "arguments": "{}"}}
    for last in (open_ended, marked):
        first, second = read_structured([whole, last], [PING], finish_reason="length")
        assert isinstance(first, ToolCall)
        assert isinstance(second, RejectedCall)
        assert second.reason == "truncated"
    assert isinstance(read_structured([whole], [PING], finish_reason="length")[0], ToolCall)


def test_h_ordinary_stop_closer_missing() -> None:
    text = tag("ping").removesuffix("</tool_call>")
    (call,) = scrub(text, [PING]).calls
    assert [repair.kind for repair in call.repairs] == ["missing_close"]
    (rejected,) = scrub(text, [PING], finish_reason="length").rejected
    assert rejected.reason == "truncated"


def test_h_answer_to_the_model() -> None:
    text = '<tool_call>{"name": "save_note", "arguments": {"body": "abc'
    (call,) = scrub(text, [{"name": "save_note"}], finish_reason="length").rejected
    first, again = truncation_message(call), truncation_message(call, repeat=True)
    assert "save_note" in first
    assert "not run" in first
    assert "smaller pieces" in first
    assert "again" in again
    assert "Do not send it in this form" in again
    assert f"{len(call.raw)} bytes" in first


# Turn policies: the acceptance examples; the rest is in tests/test_host_policies.py


def test_i_dropped_tool_call() -> None:
    turn = Turn()
    actions = [turn.judge(Reply("", finish_reason="tool_calls")).action for _ in range(4)]
    assert actions == ["nudge", "nudge", "nudge", "give_up"]


def test_i_announced_no_call() -> None:
    assert Turn().judge(Reply("Let me read the file.")).action == "nudge"
    assert Turn().judge(Reply("Let me know if you need more.")).action == "final"
    assert Turn().judge(Reply("Shall I go on?")).action == "final"


def test_i_empty_reply() -> None:
    turn = Turn()
    verdicts = [turn.judge(Reply("")) for _ in range(3)]
    assert [(one.action, one.policy, one.keep) for one in verdicts] == [
        ("nudge", "empty", False), ("nudge", "empty", False), ("give_up", "empty", False),
    ]  # fmt: skip


def test_i_cut_off_answer() -> None:
    verdict = Turn().judge(Reply("The first of the three", finish_reason="length"))
    assert (verdict.action, verdict.policy) == ("nudge", "cut")
    assert "Continue" in verdict.message


def test_i_unreliable_model() -> None:
    fail, ok = Reply(failures=1), Reply(calls=(("ping", "{}"),))
    turn = Turn()
    assert [turn.judge(one).action for one in (fail, fail, fail)] == ["go_on", "go_on", "give_up"]
    turn = Turn()
    assert [turn.judge(one).action for one in (fail, ok, fail)] == ["go_on", "go_on", "go_on"]
    assert turn.judge(Reply("I cannot do this.")).policy == "unreliable"


def test_i_unknown_tool_policy() -> None:
    (call,) = scrub(tag("read_legder_x"), [LEDGER]).rejected
    answer = UnknownTool().judge(call, [Tool("read_ledger"), Tool("help")])
    assert answer.action == "return_error"
    assert "read_ledger" in answer.message
    answer = UnknownTool("rewrite", "help").judge(call, ["read_ledger", "help"])
    assert answer.call is not None
    assert (answer.action, answer.call.name, answer.call.corrected_from) == ("run", "help", "read_legder_x")
    assert UnknownTool("fail").judge(call, ["help"]).action == "fail"


def test_i_invalid_arguments_policy() -> None:
    tool = Tool("read_ledger", LEDGER["parameters"])  # type: ignore[arg-type]
    (call,) = scrub(tag("read_ledger", {"since": "May"}), [tool]).calls
    answer = InvalidArguments().judge(call, tool)
    assert answer.action == "return_error"
    assert "ledger is missing" in answer.message
    assert InvalidArguments("fail").judge(call, tool).action == "fail"


def test_i_same_parser_under_every_provider() -> None:
    text = f"Now. <think>Hm.</think> {tag('pings')} Then."
    openai = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    anthropic = {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    chunks = [
        {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": piece}}]}
        for piece in (text[:9], text[9:])
    ]
    chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    sessions: list[list[Any]] = [[openai], [anthropic], chunks, [{"streamscrub": 1, "text": text}]]
    outcomes = []
    for lines in sessions:
        (saved,) = read_lines([json.dumps(line) for line in lines])
        assert isinstance(saved, Response)
        outcomes.append(replay(dataclasses.replace(saved, tools=[PING])).outcome)
    assert outcomes[0] is not None
    assert outcomes[0].calls[0].name == "ping"
    assert outcomes[1:] == outcomes[:1] * 3


# Visibility

QUOTES: Final = "<tool_call>{'name': 'read_ledger', 'arguments': {'ledger': 'a'}}</tool_call>"


def test_o_repair_marks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (call,) = scrub(QUOTES, [LEDGER]).calls
    assert call.repaired
    assert {repair.kind for repair in call.repairs} == {"quotes", "key_quotes"}
    assert call.raw == QUOTES.encode()
    (tmp_path / "wire").write_text(QUOTES)
    main(["parse", "--raw", str(tmp_path / "wire")])
    assert "↺ repaired read_ledger" in capsys.readouterr().out


def test_o_raw_view(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "wire").write_text(f"Hi. {QUOTES}")
    main(["parse", "--raw", str(tmp_path / "wire")])
    assert f"\n{QUOTES}\n=> read_ledger" in capsys.readouterr().out


def test_o_strategy_of_a_repair(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "wire").write_text(QUOTES)
    main(["parse", str(tmp_path / "wire")])
    assert json.loads(capsys.readouterr().out)["calls"][0]["strategy"] == "json"
    assert scrub(tag("ping"), [PING]).calls[0].strategy == "clean"
    assert scrub(tag("pings"), [PING]).calls[0].strategy == "name"


def test_o_reliability_tally() -> None:
    clean, repaired = scrub(tag("ping"), [PING]).events, scrub(tag("pings"), [PING]).events
    failed = scrub('<tool_call>{"name": "ping", "arguments": 7}</tool_call>', [PING]).events
    tally = Tally()
    for events in [clean] * 6 + [repaired] * 2 + [failed] * 2:
        tally.add("m", events)
    counts = tally.models["m"]
    assert (counts.calls, counts.repaired, counts.name_corrected, counts.failures) == (8, 2, 2, 2)
    assert counts.summary == "6/10 clean (60%)"
    assert Tally.from_dict(json.loads(json.dumps(tally.to_dict()))) == tally
    assert Tally().total.rate == 100.0


def test_o_counts_in_the_json_envelope(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "wire").write_text('<tool_call>{"name": "ping", "arguments": 7}</tool_call> I give up.')
    main(["parse", str(tmp_path / "wire")])
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert counts == {"tool_calls": 0, "repaired": 0, "parse_failures": 1, "gave_up": 1}


def test_o_audit_log(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", hash_arguments=True)
    assert log.add(scrub(f"{tag('ping')}{QUOTES}").events, model="m") == 1
    (record,) = read_audit(log.path)
    assert (record["raw"], record["model"]) == (QUOTES, "m")
    assert record["arguments"].startswith("sha256:")


def test_o_replay(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = scrub(tag("ping"), [PING]).events
    record = host.session_record("<tool_call>{", before, tools=[PING])
    (tmp_path / "session.jsonl").write_text(json.dumps(record) + "\n")
    assert main(["replay", str(tmp_path / "session.jsonl")]) == 1
    assert capsys.readouterr().out.startswith("regression")


def test_o_diagnostics() -> None:
    (rejected,) = scrub('<tool_call>{"arguments": {"a": 1}}</tool_call>', [PING]).rejected
    assert (rejected.reason, rejected.name, rejected.detail) == ("malformed", None, "no name")
    read("dialects-hermes-019")


# Boundaries


def test_q_other_content_survives() -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    image = {"type": "image", "source": {"data": "x"}}
    text = {"type": "text", "text": tag("ping")}
    kept, rejected = recover_content([thinking, text], [PING], ids=mint_ids("m1"))
    call = {"type": "tool_use", "id": "m1-tool-1", "name": "ping", "input": {}}
    assert (kept, rejected) == ([thinking, call], [])
    prose = {"type": "text", "text": "Look. "}
    kept, _ = recover_content([thinking, prose, image, text], [PING], ids=mint_ids("m2"))
    assert kept == [thinking, prose, image, {**call, "id": "m2-tool-1"}]


def sources() -> list[ast.AST]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "streamscrub").rglob("*.py")]


def test_q_no_execution() -> None:
    names = {node.id for tree in sources() for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert names & {"exec", "eval"} == set()
    imported = {
        alias.name
        for tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported & {"subprocess", "asyncio", "threading", "socket"} == set()
    assert [name for name in host.__all__ if name.split("_")[0] in ("run", "execute", "call", "ask")] == []


def test_q_thin_records() -> None:
    records: list[Any] = [getattr(host, name) for name in host.__all__]
    records = [one for one in records if dataclasses.is_dataclass(one)]
    assert len(records) >= 10
    for record in records:
        for field in dataclasses.fields(record):
            assert "Callable" not in str(field.type), (record, field.name)


# Beyond the table


def test_r_withheld_calls() -> None:
    (rejected,) = scrub(tag("ping"), [PING], recover=False).rejected
    assert rejected.reason == "withheld"
    assert "plain text" in rejected.nudge
    tally = Tally()
    tally.add("m", [rejected])
    assert tally.models["m"].rejected == {"withheld": 1}
    assert reply_of([rejected]).refused == 1


def test_r_loop_guard() -> None:
    guard, same = LoopGuard(), Reply(calls=(("ping", "{}"), ("find", '{"q":"a"}')))
    turned = Reply(calls=same.calls[::-1])
    assert [guard.judge(one).action for one in (same, turned, same, same)] == ["go_on", "go_on", "nudge", "give_up"]


# Sentences


def test_every_reason_has_a_sentence() -> None:
    sentences = [RejectedCall(0, reason, "ping", None, b"x", "", (0, 1)).nudge for reason in REJECT_REASONS]
    assert len(set(sentences)) == len(REJECT_REASONS)
    assert all(one.startswith("ping ") and one.endswith(".") for one in sentences)
