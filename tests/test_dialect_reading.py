"""Replies read back, structured output, and the verbs ``render`` and ``convert``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from streamscrub import dialects as dialects_module
from streamscrub.cli import main
from streamscrub.dialects import (
    build_envelope_schema,
    dialect,
    parse_assistant_message,
    parse_envelope,
    use_envelope,
)
from streamscrub.host import mint_ids

from .dialect_material import PING, TIDE, TOOLS
from .test_dialects import cases_of, check

CALL: Final = '<tool_call>{"name": "get_tide", "arguments": {"harbor": "Sines"}}</tool_call>'


def ids() -> Iterator[str]:
    return mint_ids("m1")


def reply(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


# -- messages


def test_a_reply_without_a_call_is_the_same_object() -> None:
    for content in ("It is noon.", "", None, [{"type": "text", "text": "Noon."}]):
        message = reply(content)
        assert parse_assistant_message(message, TOOLS, ids=ids())[0] is message
        assert dialect("json_tag").read_message(message, TOOLS, ids=ids())[0] is message


def test_calls_become_records_with_ids_of_the_host() -> None:
    message = reply(f"<think>Hm.</think>Checking.\n{CALL}", name="m")
    read, rejected = dialect("hermes").read_message(message, TOOLS, ids=ids())
    assert rejected == []
    assert read == {
        "role": "assistant",
        "content": "Checking.",
        "name": "m",
        "reasoning_content": "Hm.",
        "tool_calls": [
            {
                "id": "m1-tool-1",
                "type": "function",
                "function": {"name": "get_tide", "arguments": '{"harbor": "Sines"}'},
            }
        ],
    }
    assert parse_assistant_message(reply(CALL), TOOLS, ids=ids())[0]["content"] is None


def test_g_only_when_nothing_structured__unless_asked() -> None:
    record = {"id": "x", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    message = reply(f"So.\n{CALL}", tool_calls=[record])
    read, rejected = parse_assistant_message(message, TOOLS, ids=ids())
    assert (read["content"], read["tool_calls"]) == ("So.", [record])
    assert [call.reason for call in rejected] == ["withheld"]
    read, rejected = parse_assistant_message(message, TOOLS, ids=ids(), append=True)
    assert [one["id"] for one in read["tool_calls"]] == ["x", "m1-tool-1"]
    assert rejected == []


@pytest.mark.parametrize("provenance", ["refusal", "failed", "promoted_reasoning", "other"])
def test_g_no_recovery_out_of_substituted_content__in_a_reply(provenance: str) -> None:
    for append in (False, True):
        read, rejected = parse_assistant_message(
            reply(CALL), TOOLS, ids=ids(), provenance=provenance, append=append, guided=True
        )
        assert read["content"] is None
        assert "tool_calls" not in read
        assert [call.reason for call in rejected] == ["withheld"]


def test_g_gate_by_offered_tools__in_a_reply() -> None:
    read, rejected = parse_assistant_message(reply(f"So.\n{CALL}"), [], ids=ids())
    assert (read["content"], read.get("tool_calls")) == ("So.", None)
    assert [call.reason for call in rejected] == ["withheld"]


def test_q_other_content_survives__in_a_reply() -> None:
    thought = {"type": "thinking", "thinking": "Hm."}
    read, _ = parse_assistant_message(reply([thought, {"type": "text", "text": CALL}]), TOOLS, ids=ids())
    assert read["content"] == [
        thought,
        {"type": "tool_use", "id": "m1-tool-1", "name": "get_tide", "input": {"harbor": "Sines"}},
    ]


def test_h_cut_call_never_runs__in_a_reply() -> None:
    read, rejected = parse_assistant_message(reply(CALL[:-20]), TOOLS, ids=ids(), finish_reason="length")
    assert "tool_calls" not in read
    assert [call.reason for call in rejected] == ["truncated"]


def test_q_thin_records__of_dialects() -> None:
    records = [one for one in vars(dialects_module).values() if dataclasses.is_dataclass(one)]
    assert len(records) >= 7
    for record in records:
        for field in dataclasses.fields(record):
            assert "Callable" not in str(field.type), (record, field.name)


def test_q_no_execution__of_dialects() -> None:
    names = dialects_module.__all__
    assert [name for name in names if name.split("_")[0] in ("run", "execute", "call", "ask", "send")] == []


# -- structured output


def test_p_envelope_schema() -> None:
    for case in cases_of("structured-schema"):
        check(case)
    schema = build_envelope_schema([])
    assert schema["properties"]["tool_calls"]["maxItems"] == 0
    assert schema["required"] == ["message", "tool_calls"]
    assert schema["additionalProperties"] is False


def test_p_envelope_parse() -> None:
    assert parse_envelope('{"message": "hi", "tool_calls": []}', TOOLS).message == "hi"
    for text in ("hello", "[]", "{}", "null", '{"message": 1, "tool_calls": []}', '{"message": "", "tool_calls": {}}',
                 '{"message": "a", "tool_calls": ["ping"]}', "", "{" * 5000, '"{}"'):  # fmt: skip
        found = parse_envelope(text, TOOLS)
        assert "backend ignored the schema" in found.error, text
        assert (found.message, found.calls) == ("", ())
    text = json.dumps(
        {
            "message": "Checking.",
            "tool_calls": [
                {"name": "getTide", "arguments": {"harbor": "Sines"}},
                {"name": "get_tide", "arguments": {"days": 1}},
                {"name": "sink_ship", "arguments": {}},
            ],
        }
    )
    for wire, repaired in ((text, False), (text[:-1] + ",}", True)):
        found = parse_envelope(wire, TOOLS)
        assert (found.message, found.repaired, found.error) == ("Checking.", repaired, "")
        assert [(call.name, call.arguments) for call in found.calls] == [("get_tide", {"harbor": "Sines"})]
        assert [(call.name, call.reason) for call in found.rejected] == [("sink_ship", "unknown_tool")]
        assert [(number, problem.field) for number, problem in found.problems] == [(1, "harbor")]


@pytest.mark.parametrize("finish", ["stop", "length", None])
def test_a_call_in_which_the_object_ends_never_runs(finish: str | None) -> None:
    """Its brackets could be added, but nobody knows what was to stand before them: 12 may have been 120."""
    tools = [
        PING,
        {"name": "find", "parameters": {"properties": {"q": {"type": "string"}, "top": {"type": "integer"}}}},
    ]
    whole = (
        '{"message": "a", "tool_calls": [{"name": "ping", "arguments": {}},'
        ' {"name": "find", "arguments": {"q": "}]}", "top": 12}}'
    )
    for end in range(len(whole)):
        envelope = parse_envelope(whole[:end], tools, finish_reason=finish)
        assert [call.name for call in envelope.calls] in ([], ["ping"])
    for rest in ("", "]", "]}"):
        calls = parse_envelope(whole + rest, tools, finish_reason=finish).calls
        assert [call.arguments for call in calls] == [{}, {"q": "}]}", "top": 12}]


def test_p_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMSCRUB_STRUCTURED", raising=False)
    assert not use_envelope(native_tools=False)
    assert use_envelope(True, native_tools=False)
    monkeypatch.setenv("STREAMSCRUB_STRUCTURED", "1")
    assert use_envelope(native_tools=False)
    assert not use_envelope(False, native_tools=False)
    assert not use_envelope(True, native_tools=True)


# -- the verbs


@pytest.fixture
def tools_file(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([TIDE, PING]), encoding="utf-8")
    return str(path)


def ran(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main([*args])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_render_writes_every_part(capsys: pytest.CaptureFixture[str], tmp_path: Path, tools_file: str) -> None:
    one = dialect("kimi")
    for part, wanted in (
        ("prompt", one.prompt([TIDE, PING])),
        ("catalogue", one.catalogue([TIDE, PING])),
        ("example", one.example([TIDE, PING])),
    ):
        assert ran(capsys, "render", part, "--dialect", "KIMI", "--tools", tools_file) == (0, wanted + "\n", "")
    given: dict[str, Any] = {
        "calls": [{"name": "ping", "arguments": {}}],
        "results": {"results": [{"name": "ping", "text": "up"}]},
        "encode": {"messages": [{"role": "user", "content": "hi"}]},
        "fold": [{"role": "user", "content": "hi"}],
        "replay": [{"role": "user", "content": "hi"}],
        "wire": [{"role": "user", "content": "hi"}],
        "transcript": [{"role": "user", "content": "hi"}],
    }
    for part, value in given.items():
        path = tmp_path / f"{part}.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        code, out, err = ran(capsys, "render", part, str(path), "--model", "moonshotai/kimi-k2", "--tools", tools_file)
        assert (code, err) == (0, "")
        assert out == one.render_calls([("ping", {})]) + "\n" if part == "calls" else "hi" in out or "up" in out
    thought = tmp_path / "thought.txt"
    thought.write_text("Hm.", encoding="utf-8")
    assert ran(capsys, "render", "thinking", str(thought), "--dialect", "xml")[1] == "<thinking>\nHm.\n</thinking>\n"
    assert ran(capsys, "render", "thinking", str(thought), "--dialect", "kimi", "--exact")[1] == (
        one.exact().render_thinking("Hm.") + "\n"
    )
    code, _, err = ran(capsys, "render", "thinking", str(thought), "--dialect", "xml", "--exact")
    assert (code, "no chat template" in err) == (2, True)


def test_render_says_what_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    for text, part, said in (
        ("{", "calls", "no JSON"),
        ("7", "results", "no list of records"),
        ("[7]", "calls", "a call is a Call"),
        ("[]", "prompt", "needs --tools"),
        ('[{"role": "user", "content": "a"}]', "transcript", "no transcript"),
    ):
        wrong.write_text(text, encoding="utf-8")
        code, out, err = ran(capsys, "render", part, str(wrong), "--dialect", "json_tag")
        assert (code, out) == (2, "")
        assert said in err
    assert "did you mean kimi?" in ran(capsys, "render", "calls", "--dialect", "kimmi")[2]
    code, out, err = ran(capsys, "render", "calls", str(wrong))
    assert (code, out, err) == (2, "", "streamscrub render calls: needs --dialect NAME, or --model ID\n")
    wrong.write_text("Hm.", encoding="utf-8")
    code, out, err = ran(capsys, "render", "thinking", str(wrong), "--model", "llama-3")
    assert (code, out) == (0, dialect("xml").render_thinking("Hm.") + "\n")
    assert err == "streamscrub: no dialect is that of llama-3: xml, for any model\n"


def test_render_takes_the_calls_or_the_results_out_of_a_conversation(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    talk: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Up?"},
        {"role": "assistant", "content": "Let me see.", "calls": [{"id": "c1", "name": "ping", "arguments": {}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "up"},
        {"role": "assistant", "content": "Yes."},
    ]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"messages": talk}), encoding="utf-8")
    one = dialect("json_tag")
    assert ran(capsys, "render", "results", str(path), "--dialect", "json_tag") == (
        0, one.render_results([{"name": "ping", "text": "up"}]), "",
    )  # fmt: skip
    assert (
        ran(capsys, "render", "calls", str(path), "--dialect", "json_tag")[1] == one.render_calls([("ping", {})]) + "\n"
    )
    path.write_text(json.dumps(talk[:2]), encoding="utf-8")
    for part in ("calls", "results"):
        code, out, err = ran(capsys, "render", part, str(path), "--dialect", "json_tag")
        assert (code, out, err) == (2, "", f"streamscrub render {part}: the conversation holds no {part}\n")


def test_convert_writes_the_reply_in_the_other_dialect(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tools_file: str
) -> None:
    path = tmp_path / "reply.txt"
    path.write_text(f"<think>Hm.</think>Checking.\n{CALL}\nDone.", encoding="utf-8")
    code, out, _ = ran(capsys, "convert", str(path), "--from", "hermes", "--to", "glm", "--tools", tools_file)
    assert code == 0
    assert out == (
        "<think>\nHm.\n</think>\nChecking.\n<tool_call>get_tide\n<arg_key>harbor</arg_key>\n"
        "<arg_value>Sines</arg_value>\n</tool_call>\nDone."
    )
    code, out, err = ran(capsys, "convert", str(path), "--to", "mistral")
    assert (code, out) == (0, 'Checking.\n[TOOL_CALLS]get_tide[ARGS]{"harbor": "Sines"}\nDone.')
    assert err == "streamscrub: left out the reasoning: mistral is no dialect and has no form for it\n"
    code, out, _ = ran(capsys, "convert", str(path), "--from", "glm.toml", "--to", "xml")
    assert (code, out) == (2, "")


def test_convert_there_and_back(capsys: pytest.CaptureFixture[str], tmp_path: Path, tools_file: str) -> None:
    path = tmp_path / "reply.txt"
    first = (
        f"Checking.\n{dialect('xml').render_calls([('ping', {}), ('get_tide', {'harbor': '</invoke>'})], [TIDE, PING])}"
    )
    path.write_text(first, encoding="utf-8")
    for to, back in (("kimi", "xml"), ("gemini", "xml"), ("pformat", "xml")):
        path.write_text(first, encoding="utf-8")
        path.write_text(ran(capsys, "convert", str(path), "--to", to, "--tools", tools_file)[1], encoding="utf-8")
        assert ran(capsys, "convert", str(path), "--from", to, "--to", back, "--tools", tools_file)[1] == first


def test_convert_leaves_out_what_could_not_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tools_file: str
) -> None:
    path = tmp_path / "reply.txt"
    path.write_text(f"So. {CALL[:-20]}", encoding="utf-8")
    code, out, err = ran(
        capsys, "convert", str(path), "--to", "xml", "--tools", tools_file, "--finish-reason", "length"
    )
    assert (code, out) == (1, "So. ")
    assert "left out get_tide: truncated" in err
    assert "nor is it a grammar" in ran(capsys, "convert", str(path), "--to", "kimmi")[2]
    path.write_text(CALL, encoding="utf-8")
    (tmp_path / "zap.toml").write_text('name = "zap"\n', encoding="utf-8")
    assert (
        "zap writes no calls: its file has no [render] with a body"
        in (ran(capsys, "convert", str(path), "--to", str(tmp_path / "zap.toml"))[2])
    )
    assert "provider's own channel" in ran(capsys, "convert", str(path), "--to", "native")[2]


def test_convert_counts_the_calls_of_the_whole_reply(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "reply.txt"
    call = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    file.write_text(f"One.\n{call}{call}\nTwo.\n{call}", encoding="utf-8")
    assert main(["convert", str(file), "--to", "kimi"]) == 0
    written = capsys.readouterr().out
    assert [f"functions.ping:{place}" in written for place in range(4)] == [True, True, True, False]


def test_render_writes_a_prompt_for_the_next_turn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"role": "user", "content": "Hi"}]), encoding="utf-8")
    for exact in ([], ["--exact"]):
        assert main(["render", "transcript", str(file), "--dialect", "qwen3", "--add-generation-prompt", *exact]) == 0
        assert capsys.readouterr().out == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert main(["render", "transcript", str(file), "--dialect", "kimi", "--add-generation-prompt"]) == 0
    assert capsys.readouterr().out.endswith("assistant<|im_middle|>")


def test_render_says_when_exact_bytes_need_the_tools(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tools_file: str
) -> None:
    file = tmp_path / "calls.json"
    file.write_text(json.dumps([{"name": "get_tide", "arguments": {"harbor": "7"}}]), encoding="utf-8")
    code, out, err = ran(capsys, "render", "calls", str(file), "--dialect", "glm", "--exact")
    assert (code, '"7"' in out) == (0, True)
    assert err == "streamscrub: without --tools texts stand in quotes: glm writes values by their types\n"
    code, out, err = ran(capsys, "render", "calls", str(file), "--dialect", "glm", "--exact", "--tools", tools_file)
    assert (code, '"7"' in out, err) == (0, False, "")
    assert ran(capsys, "render", "calls", str(file), "--dialect", "qwen3", "--exact")[2] == ""
