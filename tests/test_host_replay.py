"""Sessions in every form, their replay, and the verbs replay and tally."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamscrub import scrub
from streamscrub.cli import main
from streamscrub.host import (
    Baseline,
    Response,
    Result,
    Tally,
    TallyStore,
    Unreadable,
    read_lines,
    read_session,
    replay,
    replay_all,
    replay_batch,
    session_record,
)
from streamscrub.host.replaying import VERDICTS, case_of, compare
from streamscrub.host.sessions import Outcome, Saved, Seen, outcome_of

ROOT: Final = Path(__file__).resolve().parent.parent
PING: Final = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
OPENAI: Final = {"type": "function", "function": PING}
CALL: Final = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
DAMAGED: Final = "<tool_call>{'name': 'ping', 'arguments': {}}</tool_call>"


def saved(*values: Any) -> list[Saved]:
    return list(read_lines([json.dumps(value) for value in values]))


def one(*values: Any) -> Response:
    (response,) = saved(*values)
    assert isinstance(response, Response)
    return response


def record(text: str | bytes, read_as: str | None = None, **more: Any) -> dict[str, Any]:
    """A record of ``text`` that was read as ``read_as`` would be now."""
    events = scrub(text if read_as is None else read_as, [PING]).events
    return session_record(text, events, tools=[PING], **more)


# Sessions


def test_our_record_gives_everything_back() -> None:
    events = scrub(f"Hi {CALL}", [PING], model="m").events
    response = one(
        session_record(
            f"Hi {CALL}", events, tools=[PING], finish_reason=None, model="m", id="7", options={"recover": True}
        )
    )
    assert response == Response(
        f"Hi {CALL}", [PING], {"recover": True}, None, "m", "7", outcome_of(events), tuple(events), "line:1"
    )


def test_a_record_of_bytes_keeps_them() -> None:
    assert one(session_record(b"a\xff", [])).text == b"a\xff"
    assert one(session_record("a", [])).text == "a"


CHOICE: Final = {"message": {"role": "assistant", "content": CALL}, "finish_reason": "stop"}
PARTS: Final = [{"type": "text", "text": CALL[:9]}, {"type": "image_url"}, {"type": "output_text", "text": CALL[9:]}]


@pytest.mark.parametrize(
    "log",
    [
        {"choices": [CHOICE], "model": "m", "tools": [OPENAI]},
        {"id": "x", "object": "chat.completion", "model": "m", "choices": [CHOICE], "functions": [PING]},
        {"choices": [{"text": CALL, "finish_reason": "stop"}], "model": "m", "tools": [OPENAI]},
        {"request": {"tools": [OPENAI]}, "response": {"model": "m", "choices": [CHOICE]}},
        {
            "custom_id": "1",
            "tools": [OPENAI],
            "response": {"status_code": 200, "body": {"model": "m", "choices": [CHOICE]}},
        },
        {
            "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": CALL}],
            "tools": [OPENAI],
            "model": "m",
        },
        {"messages": [{"role": "assistant", "content": PARTS}], "tools": [OPENAI], "model": "m"},
        {"model": "m", "tools": [OPENAI], "messages": [], "response": {"model": "m", "choices": [CHOICE]}},
        [{"choices": [CHOICE], "model": "m", "tools": [OPENAI]}],
    ],
    ids=range(9),
)
def test_a_call_in_the_content_of_a_log_is_now_handled(log: Any, tmp_path: Path) -> None:
    result = replay(one(log))
    assert (result.verdict, result.details, result.model) == ("handled", ("ping {} now resolves",), "m")
    (tmp_path / "log.json").write_text(json.dumps(log, indent=2))
    assert [replay(one).verdict for one in read_session(tmp_path / "log.json")] == ["handled"]


def test_a_conversation_may_be_a_list_or_lines_of_messages(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "x"},
        {"role": "user", "content": CALL},
        {"role": "assistant", "content": "One."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "content": "y"},
    ]
    for form in (json.dumps(messages, indent=1), "\n".join(map(json.dumps, messages))):
        (tmp_path / "log").write_text(form)
        found = [one for one in read_session(tmp_path / "log") if isinstance(one, Response)]
        assert [one.text for one in found] == ["One.", ""]
        assert [one.options for one in found] == [{}, {"recover": False}]


def test_text_beside_structured_calls_is_not_searched() -> None:
    for extra in ({"tool_calls": [{"id": "1"}]}, {"function_call": {"name": "x"}}):
        choice = {"message": {"content": CALL, **extra}, "finish_reason": "tool_calls"}
        result = replay(one({"choices": [choice], "tools": [OPENAI]}))
        assert result.verdict == "same"
        assert result.outcome is not None
        assert result.outcome.rejected == (("withheld", "ping"),)
    content = [{"type": "text", "text": CALL}, {"type": "tool_use", "id": "1", "name": "ping", "input": {}}]
    assert one({"role": "assistant", "content": content, "stop_reason": "tool_use"}).options == {"recover": False}


def test_choices_and_streamed_chunks_are_told_apart() -> None:
    found = saved({"id": "x", "choices": [CHOICE, CHOICE]})
    assert [one.id for one in found if isinstance(one, Response)] == ["x", "x/1"]
    lines = [
        f"data: {json.dumps({'id': 'c', 'model': 'm', 'choices': [{'index': index, 'delta': {'content': piece}}]})}"
        for index, piece in ((0, "a"), (1, "b"), (0, "c"))
    ]
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
    found = list(read_lines([*lines, f"data: {json.dumps(end)}", "data: [DONE]", ""]))
    assert [(one.text, one.finish_reason, one.id) for one in found if isinstance(one, Response)] == [
        ("ac", "length", "c"), ("b", None, "c/1"),
    ]  # fmt: skip


def test_lines_that_carry_no_data_are_passed_over(tmp_path: Path) -> None:
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]}
    lines = [": ping", "event: message", f"data: {json.dumps(chunk)}", "", "id: 7", "data: [DONE]"]
    (tmp_path / "log.ndjson").write_text("\n".join(lines))
    for found in (list(read_session(tmp_path / "log.ndjson")), list(read_lines(lines))):
        assert [one.text for one in found if isinstance(one, Response)] == ["a"]
        assert len(found) == 1


def test_a_file_of_lines_may_begin_with_something_else(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(f'{{"type": "meta"}}\n{json.dumps(record("a"))}\n')
    first, second = read_session(tmp_path / "log.jsonl")
    assert isinstance(first, Unreadable)
    assert isinstance(second, Response)


@pytest.mark.parametrize(
    "text", ["Hello.", '{"name": "ping", "arguments": {}}', "", "[]", "3", '{"a":\n1}', "a\xff\n{}"]
)
def test_any_other_file_is_the_text_of_one_response(tmp_path: Path, text: str) -> None:
    (tmp_path / "wire").write_bytes(text.encode("latin-1"))
    (response,) = read_session(tmp_path / "wire")
    assert isinstance(response, Response)
    assert (response.text, response.recorded) == (text.encode("latin-1"), None)
    assert replay(response).verdict == "new"


def test_lines_that_cannot_be_read_are_told_and_passed_over(tmp_path: Path) -> None:
    lines = [
        json.dumps(record("a")),
        "{",
        "3",
        json.dumps({**record("a"), "events": [{"event": "zap"}]}),
        '{"streamscrub": 1',
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    found = list(read_session(tmp_path / "log"))
    assert [(one.where.rpartition(":")[2], one.problem) for one in found if isinstance(one, Unreadable)] == [
        ("2", "no JSON that can be read"), ("3", "a JSON value of no known form"),
        ("4", "event: none of text, reasoning, call, rejected, dropped, started, delta: 'zap'"),
        ("5", "no JSON that can be read, torn"),
    ]  # fmt: skip
    assert len(found) == 5


def test_wrong_options_of_a_record_are_unreadable_and_not_raised() -> None:
    for more in (
        {"options": {"zap": 1}},
        {"options": {"grammars": ["none"]}},
        {"tools": 3},
        {"tools": [3]},
        {"options": 3},
    ):
        assert replay(saved({**record("a"), **more})[0]).verdict == "unreadable", more


KEYS: Final = (
    "text", "events", "choices", "message", "messages", "content", "role", "delta", "response", "tools",
    "options", "expect", "finish_reason", "streamscrub", "calls", "index", "id", "body", "text_base64", "event",
    "span",
)  # fmt: skip


def containers(inner: Any) -> Any:
    values = st.one_of(inner, st.sampled_from(["assistant", "stop"]))
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), values, max_size=5))


leaves: Any = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
json_values: Any = st.recursive(leaves, containers, max_leaves=12)


@settings(max_examples=200)
@given(st.lists(json_values, max_size=4))
def test_no_log_raises(values: list[Any]) -> None:
    for found in saved(*values):
        assert replay(found).verdict in VERDICTS


def test_cases_are_sessions_too() -> None:
    path = ROOT / "tests" / "cases" / "tinytools.jsonl"
    found = list(read_session(path))
    assert len(found) > 100
    lost = [result for _, result in replay_all(found) if result.verdict in ("regression", "unreadable")]
    assert lost == []


def test_a_case_that_needs_a_template_is_unreadable() -> None:
    assert isinstance(saved({"text": "a", "finish_reason": "stop", "response_template": {}})[0], Unreadable)


@pytest.mark.parametrize("levels", [150, 400, 900, 100_000])
def test_deep_values_are_read_or_told(levels: int) -> None:
    deep = "[" * levels + "]" * levels
    event = (
        f'{{"event": "call", "number": 0, "name": "x", "arguments": {{"a": {deep}}}, "grammar": "", "strategy": "", '
    )
    event += '"repairs": [], "model_id": null, "span": [0, 1], "raw": "x"}'
    for line in (
        deep,
        f'{{"text": "a", "tools": [{deep}]}}',
        f'{{"text": "a", "events": [{event}]}}',
        f'{{"response": {deep}}}',
    ):
        assert all(replay(found).verdict in ("unreadable", "regression") for found in read_lines([line]))
        results = [result for _, result in replay_all(read_lines([line] * 3), jobs=2)]
        assert len(results) == 3


def test_odd_logs_are_told_apart() -> None:
    assert len(saved([[{"choices": [CHOICE]}]] * 300)) == 300  # many brackets, few levels
    nested: Any = {"choices": [CHOICE]}
    for _ in range(6):
        nested = [nested]
    assert saved(nested) == [Unreadable("line:1", "too many wrappers")]
    assert saved({"choices": [{"message": {"content": 3}}]}) == [
        Unreadable("line:1", "a message whose content is no text")
    ]
    assert saved({"id": "c", "choices": [3, {"delta": 3}, {"delta": {"content": "a"}, "finish_reason": "stop"}]}) == [
        Response("a", id="c", recorded=Outcome(), where="line:1")
    ]
    late = [{"choices": [CHOICE]}] * 8 + [3]
    assert isinstance(saved(late)[-1], Unreadable)


def test_surrogates_do_not_get_through() -> None:
    text = "a\ud800b"
    for log in (record(text, model="\ud800"), {"choices": [{"message": {"content": text}}], "model": "\ud800"}):
        response = one(log)
        assert (response.text, response.model) == ("a\ufffdb", "\ufffd")


# Comparing


def seen(name: str = "ping", start: int = 0, repaired: bool | None = False, arguments: str = "{}") -> Seen:
    return Seen(name, arguments, repaired, (start, start + 10))


def outcome(*calls: Seen, text: str | None = "", rejected: Any = ()) -> Outcome:
    return Outcome(calls, rejected, text, "")


@pytest.mark.parametrize(
    ("before", "now", "verdict", "detail"),
    [
        (outcome(), outcome(), "same", ""),
        (outcome(seen()), outcome(seen()), "same", ""),
        (outcome(seen()), outcome(), "regression", "ping {} no longer resolves"),
        (outcome(seen()), outcome(rejected=[("malformed", "ping")]), "regression", "rejected now: malformed ping"),
        (outcome(seen(), seen()), outcome(seen()), "regression", "no longer resolves"),
        (outcome(seen()), outcome(seen(repaired=True)), "repair", "now needs a repair"),
        (outcome(seen(repaired=True)), outcome(seen()), "changed", "no longer needs a repair"),
        (outcome(), outcome(seen()), "handled", "ping {} now resolves"),
        (outcome(rejected=[("malformed", "ping")]), outcome(seen()), "handled", "now resolves"),
        (outcome(seen()), outcome(seen(arguments='{"a":1}')), "changed", 'ping {} is now ping {"a":1}'),
        (outcome(seen()), outcome(seen("find")), "changed", "is now find"),
        (outcome(seen()), outcome(seen("find", 50)), "regression", "no longer resolves"),
        (outcome(seen("find", 50)), outcome(seen(), seen("look", 50)), "changed", "find {} is now look {}"),
        (outcome(text="a b"), outcome(text="a c"), "changed", "text: differs from character 2 on: 'b', now 'c'"),
        (outcome(text="a"), outcome(text="ab"), "changed", "from character 1 on: '', now 'b'"),
        (outcome(text=None), outcome(text="ab"), "same", ""),
        (outcome(rejected=[("malformed", "x")]), outcome(rejected=[("truncated", None)]), "changed", "now truncated"),
        (outcome(rejected=None), outcome(rejected=[("truncated", None)]), "same", ""),
    ],
)  # fmt: skip
def test_what_differs_is_named(before: Outcome, now: Outcome, verdict: str, detail: str) -> None:
    if before.rejected is not None:
        before = Outcome(before.calls, tuple(before.rejected), before.text, before.reasoning)
    if now.rejected is not None:
        now = Outcome(now.calls, tuple(now.rejected), now.text, now.reasoning)
    found, details = compare(before, now)
    assert found == verdict
    assert detail in "\n".join(details)
    assert bool(details) == (verdict != "same")


def test_a_replay_of_what_was_just_recorded_is_the_same() -> None:
    texts = [CALL, DAMAGED, f"<think>Hm.</think>Hi {CALL} there", "<tool_call>{", CALL * 3, "é\r\n"]
    assert [replay(one(record(text))).verdict for text in texts] == ["same"] * 6


def test_a_baseline_is_found_by_the_text_in_order() -> None:
    baseline = Baseline(saved(record(CALL), record("Hi", CALL), record("Hi")))
    plain = Response("Hi")
    assert [len(found.calls) for found in (baseline.find(plain), baseline.find(plain)) if found] == [1, 0]
    assert baseline.find(Response("other")) is None
    assert baseline.find(Unreadable("x", "y")) is None
    results = [result for _, result in replay_all([Response(CALL, [PING])], baseline)]
    assert [result.verdict for result in results] == ["same"]


def test_processes_give_the_same_in_the_same_order() -> None:
    work = saved(*[record(f"{number} {CALL}", id=str(number)) for number in range(150)], {"no": 1})
    alone = [result for _, result in replay_all(work)]
    together = [result for _, result in replay_all(work, jobs=2)]
    assert alone == together
    assert [result.id for result in together][:150] == [str(number) for number in range(150)]
    assert all(result.events == () for result in together)
    kept = [result for _, result in replay_all(work[:40], jobs=2, keep=True)]
    assert all(result.events for result in kept)


def test_a_result_is_json() -> None:
    result = replay(one(record(CALL)))
    assert json.loads(json.dumps(result.to_dict()))["calls"] == [{"name": "ping", "arguments": {}, "repaired": False}]
    assert Result("unreadable").to_dict()["calls"] == []


# Other engines


def test_a_batch_is_a_dict_of_columns() -> None:
    lines = [
        json.dumps(record(DAMAGED, id="a", model="m")),
        "{",
        json.dumps([{"role": "assistant", "content": "Hi"}] * 2),
    ]
    out = replay_batch({"value": lines}, column="value")
    assert out == {
        "verdict": ["same", "unreadable", "same", "same"],
        "id": ["a", "", "", ""],
        "model": ["m", "", "", ""],
        "calls": [1, 0, 0, 0],
        "repaired": [1, 0, 0, 0],
        "rejected": [0, 0, 0, 0],
        "details": ["", "no JSON that can be read", "", ""],
    }


def test_a_batch_may_be_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": [json.dumps(record(CALL))] * 3})
    assert list(pandas.DataFrame(replay_batch(frame))["verdict"]) == ["same"] * 3


def test_a_small_run_on_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray.data")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(record(CALL, id=str(n))) + "\n" for n in range(20)))
    code = (
        "import sys, ray, ray.data; from streamscrub.host import replay_batch;"
        "ray.init(num_cpus=1, log_to_driver=False);"
        "print(sorted(row['verdict'] for row in ray.data.read_text(sys.argv[1]).map_batches(replay_batch).take_all()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "log.jsonl")],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert ran.stdout.splitlines()[-1:] == [str(["same"] * 20)], ran.stderr[-2000:]


# The verbs


class Ran:
    def __init__(self, capsys: pytest.CaptureFixture[str], *argv: str) -> None:
        self.code = main(list(argv))
        self.out, self.err = capsys.readouterr()


def session(path: Path, *records: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return str(path)


def test_replay_tells_each_kind_and_exits_1_on_a_regression(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    clean_before = session_record(DAMAGED, scrub(CALL, [PING]).events, tools=[PING])
    path = session(
        tmp_path / "s.jsonl",
        record(CALL),
        record("gone", CALL, id="r9"),
        clean_before,
        record(CALL, "x"),
        record("a", "b"),
    )
    ran = Ran(capsys, "replay", path)
    assert ran.code == 1
    assert ran.out.splitlines() == [
        f"regression {path}:2 (r9)",
        "           ping {} no longer resolves",
        f"repair     {path}:3",
        "           ping {} now needs a repair",
        f"handled    {path}:4",
        "           ping {} now resolves",
        f"changed    {path}:5",
        "           text: differs from character 0 on: 'b', now 'a'",
        "5 responses: 1 no longer resolves, 1 newly needs a repair, 1 changed, 1 now handled, 1 same",
    ]
    assert Ran(capsys, "replay", session(tmp_path / "t.jsonl", record(CALL))).code == 0


def test_replay_in_json_has_the_turns_that_differ(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ran = Ran(capsys, "replay", "--json", session(tmp_path / "s", record(CALL), record("gone", CALL)))
    shown = json.loads(ran.out)
    assert (ran.code, shown["responses"], shown["verdicts"]["regression"]) == (1, 2, 1)
    assert [turn["details"] for turn in shown["turns"]] == [["ping {} no longer resolves"]]
    assert list(shown["verdicts"]) == list(VERDICTS)


def test_replay_records_a_baseline_and_compares_with_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "wire.txt").write_text(f"Hi {CALL}")
    session(tmp_path / "tools.json", [PING])  # type: ignore[arg-type]
    old = str(tmp_path / "old.jsonl")
    plain = ["replay", str(tmp_path / "wire.txt"), "--tools", str(tmp_path / "tools.json")]
    assert Ran(capsys, *plain, "--record", old, "--model", "m").out == "1 response: 1 new\n"
    assert Ran(capsys, *plain, "--baseline", old).out == "1 response: 1 same\n"
    assert Ran(capsys, "replay", old).out == "1 response: 1 same\n"
    assert json.loads(Path(old).read_text())["model"] == "m"
    (tmp_path / "tools.json").write_text("[]")
    ran = Ran(capsys, *plain, "--baseline", old)
    assert (ran.code, ran.out.splitlines()[1]) == (
        1,
        "           ping {} no longer resolves; rejected now: unknown_tool ping",
    )


def test_replay_can_be_restricted_to_a_grammar(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert Ran(capsys, "replay", session(tmp_path / "s", record(CALL)), "--grammar", "mistral").code == 1


def test_replay_saves_cases_that_are_sessions_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    path = session(tmp_path / "s", record(CALL), record("gone", CALL, model="m"), record(CALL, "x"))
    for _ in range(2):
        Ran(capsys, "replay", path, "--save-case", str(cases))
    lost, handled, *again = [json.loads(line) for line in cases.read_text().splitlines()]
    assert [lost, handled] == again
    assert lost["expect"] == {
        "text": "", "reasoning": "", "calls": [{"name": "ping", "arguments": {}}], "rejected": [], "repaired": False,
    }  # fmt: skip
    assert (lost["options"], lost["origin"], lost["contested"]) == ({"model": "m"}, f"{path}:2", False)
    assert handled["expect"]["calls"] == [{"name": "ping", "arguments": {}}]
    keys = json.loads((ROOT / "tests" / "cases" / "bugs.jsonl").read_text(encoding="utf-8").split("\n")[0]).keys()
    assert keys <= lost.keys()
    assert Ran(capsys, "replay", str(cases)).out.endswith("4 responses: 2 no longer resolves, 2 same\n")


def test_a_case_of_bytes_and_of_an_unrecorded_outcome_can_be_written() -> None:
    response = Response(b"\xff", recorded=Outcome((Seen("ping", "{}"),)))
    case = case_of(response, replay(response))
    assert (case["text"], case["expect"]["repaired"], case["expect"]["text"]) == ("\ufffd", None, "\ufffd")


def test_many_files_go_over_processes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paths = [session(tmp_path / f"s{n}", *[record(f"{n} {k} {CALL}") for k in range(40)]) for n in range(3)]
    assert Ran(capsys, "replay", "--jobs", "2", *paths).out == "120 responses: 120 same\n"


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["replay"], "required: SESSION"),
        (["replay", "none"], "cannot read none: No such file or directory"),
        (["replay", "S", "--baseline", "none"], "cannot read none: No such file or directory"),
        (["replay", "S", "--record", "S"], "need files of their own"),
        (["replay", "S", "--save-case", "none/x"], "cannot write none/x: No such file or directory"),
        (["replay", "S", "--jobs", "0"], "'0' is no number above 0"),
        (["replay", "."], "cannot read .: Is a directory"),
        (["tally"], "nothing to count"),
        (["tally", "none"], "cannot read none: No such file or directory"),
        (["tally", "--db", "none.db"], "cannot read none.db: No such file or directory"),
        (["tally", "--db", "S"], "file is not a database"),
        (["tally", "--db", "none/t.db", "S"], "cannot use none/t.db: unable to open database file"),
    ],
)
def test_wrong_use_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    session(tmp_path / "S", record("gone", CALL))
    ran = Ran(capsys, *argv)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert problem in ran.err
    assert (tmp_path / "S").stat().st_size > 100


def test_tally_counts_logs_and_shows_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = session(tmp_path / "s", record(CALL, model="a"), record(DAMAGED, model="b"), record(f"{CALL}<|im_end|>"))
    (tmp_path / "s").write_text((tmp_path / "s").read_text() + "{\n")
    ran = Ran(capsys, "tally", path, "--model", "c")
    assert ran.err == f"streamscrub: {path}:4: no JSON that can be read, passed over\n"
    rows = [line.split() for line in ran.out.splitlines()]
    assert [(row[0], row[2], row[3], row[-1]) for row in rows[1:]] == [
        ("b", "1", "0", "0%"), ("a", "1", "1", "100%"), ("c", "1", "1", "100%"), ("all", "3", "2", "67%"),
    ]  # fmt: skip
    assert json.loads(Ran(capsys, "tally", "--json", path).out)["a"]["calls"] == 1


def test_tally_passes_over_what_has_wrong_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = {**record(CALL), "events": None, "options": {"reasoning": "loud"}}
    ran = Ran(capsys, "tally", session(tmp_path / "s", bad, record(CALL, model="m")))
    assert "reasoning must be one of auto, open, off" in ran.err
    assert [line.split()[0] for line in ran.out.splitlines()] == ["model", "m"]


def test_tally_counts_what_was_recorded_and_reads_what_was_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = {"choices": [CHOICE], "model": "m", "tools": [OPENAI]}
    broken = '<tool_call>{"name": "ping", "arguments": 7}</tool_call> Sorry.'
    path = session(tmp_path / "s", record("gone", CALL, model="m"), log, record(broken, model="m"))
    counts = json.loads(Ran(capsys, "tally", "--json", path).out)["m"]
    assert (counts["responses"], counts["calls"], counts["given_up"]) == (3, 2, 1)


@pytest.mark.skipif(os.name != "posix", reason="named pipes are POSIX")
def test_a_session_may_come_out_of_a_pipe(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for content, wanted in ((json.dumps(record(CALL)), "1 same"), (f"Hi {CALL}", "1 new"), ("\n\n", "1 new")):
        reading, writing = os.pipe()
        os.write(writing, content.encode())
        os.close(writing)
        assert Ran(capsys, "replay", f"/dev/fd/{reading}").out == f"1 response: {wanted}\n"
        os.close(reading)


def test_tally_adds_each_log_once_to_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, db = session(tmp_path / "s", record(CALL, model="a")), str(tmp_path / "t.db")
    first = Ran(capsys, "tally", "--db", db, path)
    again = Ran(capsys, "tally", "--db", db, path)
    assert (first.err, again.err) == ("", f"streamscrub: {path} was counted before and is passed over\n")
    assert first.out == again.out == Ran(capsys, "tally", "--db", db).out
    assert TallyStore(db).read() == Tally.from_dict(json.loads(Ran(capsys, "tally", "--db", db, "--json").out))


@pytest.mark.skipif(os.name != "posix", reason="pseudo terminals are POSIX")
def test_a_bar_is_shown_for_a_long_input_on_a_terminal_only(tmp_path: Path) -> None:
    path = session(tmp_path / "s", *[record(f"{number} {CALL * 4}") for number in range(300)])
    code = (
        "import sys, streamscrub.host_verbs as verbs; verbs._PATIENCE = verbs._TICK = 0.0;"
        "from streamscrub.cli import main; sys.exit(main(['replay', sys.argv[1]]))"
    )
    ours, theirs = os.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as ran:
        os.close(theirs)
        shown = b""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                some = os.read(ours, 65536)
            except OSError:  # the other side has gone
                break
            shown += some
        out, _ = ran.communicate(timeout=60)
    os.close(ours)
    assert out.decode() == "300 responses: 300 same\n"
    assert "100%" in shown.decode()
    assert shown.endswith(b"\r\x1b[K")


# Standard input, and files that are no session


def test_standard_input_is_a_session(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    line = json.dumps(record(CALL, model="m")).encode()

    def given() -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(line)))

    given()
    assert Ran(capsys, "replay", "-").out.startswith("1 response: ")
    given()
    assert json.loads(Ran(capsys, "tally", "--json", "-").out)["m"]["responses"] == 1
    given()
    assert "only once" in Ran(capsys, "tally", "-", "-").err
    given()
    assert "cannot both be read from stdin" in Ran(capsys, "tally", "--tools", "-", "-").err


@pytest.mark.parametrize("verb", ["parse", "scrub"])
def test_what_other_verbs_write_is_no_session_and_the_way_to_one_is_told(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    response = tmp_path / "response.txt"
    response.write_text(CALL, encoding="utf-8")
    made = tmp_path / "made.jsonl"
    more = ["--calls", str(made)] if verb == "scrub" else []
    ran = Ran(capsys, verb, str(response), *more)
    if verb == "parse":
        made.write_text(ran.out, encoding="utf-8")
        made = made.rename(tmp_path / "made.json")
    told = Ran(capsys, "tally", str(made))
    assert "streamscrub replay RESPONSE --record FILE, passed over" in told.err
    assert "streamscrub replay RESPONSE --record FILE" in Ran(capsys, "replay", str(made)).out
