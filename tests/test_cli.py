"""The command line: in a process of its own for what a pipe shows, in this one for the rest."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

import streamscrub
from streamscrub import Repair, cli, console
from streamscrub.cli import main
from streamscrub.grammar import shipped

ROOT: Final = Path(__file__).resolve().parent.parent
TOOL: Final = {"name": "find", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}
CALL: Final = '<tool_call>{"name": "find", "arguments": {"q": "a"}}</tool_call>'
DAMAGED: Final = "<tool_call>{'name': 'find', 'arguments': {'q': 'a',}}</tool_call>"
UNKNOWN: Final = '<tool_call>{"name": "erase", "arguments": {}}</tool_call>'

Run: TypeAlias = Callable[..., "Ran"]


class Ran:
    """What one run of the command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Stdin:
    """Standard input with the given bytes."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr(cli, "_is_given", lambda number: False)
    monkeypatch.setenv("COLUMNS", "80")

    def runs(*argv: str, stdin: str | bytes = b"") -> Ran:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", Stdin(data))
        code = main(list(argv))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return runs


@pytest.fixture
def tools(tmp_path: Path) -> str:
    return written(tmp_path / "tools.json", [TOOL])


def written(path: Path, content: Any) -> str:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# scrub


def test_scrub_prints_the_text_and_nothing_else(run: Run, tools: str, tmp_path: Path) -> None:
    ran = run("scrub", "--tools", tools, "--calls", str(tmp_path / "calls"), stdin=f"Look: {CALL} done.\n")
    assert (ran.code, ran.out, ran.err) == (0, "Look: done.\n", "")


def test_scrub_keeps_text_without_markup_byte_for_byte(run: Run) -> None:
    text = "\ufeff a < b\r\n\tarray[0]\r\n\n  <custom>é日本</custom> \n"
    assert run("scrub", stdin=text).out == text


def test_scrub_writes_calls_and_rejected_calls_as_lines(run: Run, tools: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    run("scrub", "--tools", tools, "--calls", str(calls), stdin=DAMAGED + UNKNOWN)
    call, rejected = records(calls)
    assert (call["number"], call["name"], call["arguments"]) == (0, "find", {"q": "a"})
    assert "rejected" not in call
    (quotes,) = [repair for repair in call["repairs"] if repair["kind"] == "quotes" and repair["where"] != "name"]
    assert (quotes["where"], quotes["before"], quotes["after"]) == ("arguments.q", "'a'", '"a"')
    assert (DAMAGED + UNKNOWN).encode()[slice(*quotes["span"])] == b"'a'"
    assert (call["raw"], call["span"], call["grammar"]) == (DAMAGED, [0, len(DAMAGED)], "hermes")
    assert (rejected["rejected"], rejected["name"], rejected["raw"]) == ("unknown_tool", "erase", UNKNOWN)


def test_scrub_tells_repairs_and_rejections_on_stderr_with_the_mark(run: Run, tools: str, tmp_path: Path) -> None:
    err = run("scrub", "--tools", tools, "--calls", str(tmp_path / "calls"), stdin=DAMAGED + UNKNOWN).err
    repaired, rejected = err.splitlines()
    assert repaired == "↺ repaired find [json]: syntax: 6 edits (key_quotes, quotes, trailing_comma)"
    assert rejected.startswith("↺ rejected erase: unknown_tool, ")


def test_a_remark_shows_what_was_before_and_what_is_now(run: Run, tmp_path: Path) -> None:
    told = written(
        tmp_path / "t.json", [{"name": "get_tide", "parameters": {"properties": {"n": {"type": "integer"}}}}]
    )
    for text, words in (
        (
            "<tool_call>{'name': 'getTides', 'arguments': {'n': '3',}}</tool_call>",
            'name: getTides -> get_tide; n: "3" -> 3; syntax: 6 edits (key_quotes, quotes, trailing_comma)',
        ),
        ('<tool_call>{"name": "get_tide", "arguments": {"N": 1}}</tool_call>', "key: N -> n"),
        ('<tool_call>{"name": "get_tide", "arguments": null}</tool_call>', "no_arguments: null -> {}"),
        ('<tool_call>{"name": "get_tide", "n": 1}</tool_call>', "flattened: n"),
        ('<tool_call>{"name": "get_tide", "arguments": {"n": 1}}', "missing_close"),
    ):
        assert run("parse", "--blocks", "--tools", told, stdin=text).out.splitlines()[-1].partition("]: ")[2] == words


def test_many_repairs_are_told_on_a_short_line() -> None:
    line = console.told(Repair("key", f"arguments.{place}{'k' * 90}", "A" * 90, "a") for place in range(40))
    assert len(line) < 1500
    assert line.endswith("; 28 more")
    assert console.told([]) == ""
    assert console.told([Repair("coerced", "arguments.n", '""', "null")]) == 'n: "" -> null'
    assert console.told([Repair("null_omitted", "arguments.n", "null")]) == "null_omitted (n): null -> nothing"


def test_an_unknown_finish_reason_is_told(run: Run, tmp_path: Path) -> None:
    cut = CALL[:-12]
    for verb in (["scrub", "--calls", str(tmp_path / "calls")], ["parse"], ["explain"], ["convert", "--to", "xml"]):
        assert "no known finish reason: 'lenght', read as a cut; did you mean length?" in (
            run(*verb, "--finish-reason", "lenght", stdin=cut).err
        )
        for word in ("length", "FINISH_REASON_STOP", "tool-calls", "content_filter"):
            assert "finish reason" not in run(*verb, "--finish-reason", word, stdin=CALL).err


def test_scrub_says_when_calls_went_nowhere(run: Run, tools: str) -> None:
    assert run("scrub", "--tools", tools, stdin=CALL).err == (
        "streamscrub: 1 call read and not written (--calls FILE, or 3>FILE)\n"
    )
    assert "2 calls read" in run("scrub", "--tools", tools, stdin=CALL * 2).err


def test_scrub_shows_reasoning_on_stderr_if_asked(run: Run) -> None:
    text = "<think>Easy.</think>Noon."
    assert run("scrub", stdin=text).err == ""
    ran = run("scrub", "--show-reasoning", stdin=text)
    assert (ran.out, ran.err) == ("Noon.", "Easy.")


def test_a_remark_begins_its_own_line_behind_reasoning(run: Run) -> None:
    for reasoning in ("Easy.", "Easy.\n"):
        ran = run("scrub", "--show-reasoning", stdin=f"<think>{reasoning}</think>{DAMAGED}")
        assert ran.err.startswith("Easy.\n↺ repaired")
    assert run("scrub", "--show-reasoning", stdin=f"<think>Easy.</think>{CALL}").err.startswith("Easy.\nstreamscrub: 1")


def test_scrub_reads_a_file(run: Run, tmp_path: Path) -> None:
    assert run("scrub", written(tmp_path / "text", "Hello.")).out == "Hello."
    assert run("scrub", "-", stdin="Hello.").out == "Hello."


def test_scrub_reads_bytes_that_are_no_text(run: Run) -> None:
    assert run("scrub", stdin=b"a\xff\xfeb\xe2\x82").out == "a\ufffd\ufffdb\ufffd"


def test_scrub_of_nothing_is_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("scrub")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["scrub"]) == 0


def test_scrub_reads_a_standard_input_of_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello."))
    assert main(["scrub"]) == 0
    assert capsys.readouterr().out == "Hello."


def test_scrub_writes_to_a_standard_output_of_text(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdin", Stdin(b"Hello."))
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["scrub"]) == 0
    assert out.getvalue() == "Hello."


# Options


def test_a_cut_call_is_truncated_by_the_finish_reason(run: Run, tools: str) -> None:
    cut = CALL.removesuffix("</tool_call>")
    assert run("parse", "--tools", tools, stdin=cut).json["counts"]["tool_calls"] == 1
    ran = run("parse", "--tools", tools, "--finish-reason", "length", stdin=cut).json
    assert (ran["calls"], ran["rejected"][0]["rejected"]) == ([], "truncated")


def test_no_recover_withholds(run: Run, tools: str) -> None:
    assert run("parse", "--no-recover", "--tools", tools, stdin=CALL).json["rejected"][0]["rejected"] == "withheld"


def test_strict_refuses_repairs(run: Run, tools: str) -> None:
    assert run("parse", "--strict", "--tools", tools, stdin=DAMAGED).json["rejected"][0]["rejected"] == "malformed"
    assert len(run("parse", "--strict", "--tools", tools, stdin=CALL).json["calls"]) == 1


def test_reasoning_can_be_open_or_off(run: Run) -> None:
    assert run("parse", "--reasoning", "open", stdin="Hm.</think>Yes.").json["reasoning"] == "Hm."
    assert run("parse", "--reasoning", "off", stdin="<think>Hm.</think>Yes.").json["text"] == "<think>Hm.</think>Yes."


def test_prefill_sets_the_state_and_shows_nothing(run: Run) -> None:
    ran = run("parse", "--prefill", "<think>", stdin="Hm.</think>Yes.").json
    assert (ran["reasoning"], ran["text"]) == ("Hm.", "Yes.")


def test_on_fabricated_cuts(run: Run, tools: str) -> None:
    text = "One.\n<tool_response>x</tool_response>\nTwo."
    assert "Two." in run("parse", "--tools", tools, stdin=text).json["text"]
    assert "Two." not in run("parse", "--tools", tools, "--on-fabricated", "cut", stdin=text).json["text"]


def test_grammars_can_be_restricted(run: Run, tools: str) -> None:
    assert run("parse", "--grammar", "mistral", "--tools", tools, stdin=CALL).json["text"] == CALL
    argv = ["--grammar", "mistral", "--grammar", "hermes"]
    assert len(run("parse", *argv, "--tools", tools, stdin=CALL).json["calls"]) == 1


@pytest.mark.parametrize(
    "content",
    [
        [TOOL],
        [{"type": "function", "function": TOOL}],
        [{"type": "function", **TOOL}],
        [{"name": "find", "input_schema": TOOL["parameters"]}],
        [{"name": "find", "inputSchema": TOOL["parameters"]}],
        TOOL,
        {"type": "function", "function": TOOL},
        {"model": "m", "messages": [], "tools": [{"type": "function", "function": TOOL}]},
        {"functions": [TOOL]},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "find", "inputSchema": TOOL["parameters"]}]}},
        "\ufeff" + json.dumps([TOOL]),
    ],
    ids=lambda content: json.dumps(content)[:40],
)
def test_a_tools_file_may_have_any_shape(run: Run, tmp_path: Path, content: Any) -> None:
    ran = run("parse", "--tools", written(tmp_path / "t.json", content), stdin=CALL + UNKNOWN).json
    assert ([call["name"] for call in ran["calls"]], len(ran["rejected"])) == (["find"], 1)


@pytest.mark.parametrize(("content", "calls"), [("null", 1), ('{"tools": null}', 1), ("[]", 0), ('{"tools": []}', 0)])
def test_null_means_unknown_tools_and_an_empty_list_none(run: Run, tmp_path: Path, content: str, calls: int) -> None:
    ran = run("parse", "--tools", written(tmp_path / "t.json", content), stdin=CALL).json
    assert ran["counts"]["tool_calls"] == calls


def test_the_tools_may_come_from_stdin(run: Run, tmp_path: Path) -> None:
    ran = run("parse", "--tools", "-", written(tmp_path / "text", UNKNOWN), stdin=json.dumps([TOOL]))
    assert ran.json["rejected"][0]["rejected"] == "unknown_tool"


# parse


def test_parse_gives_one_json_result(run: Run, tools: str) -> None:
    text = f"<think>Hm.</think>Look.\n{DAMAGED}\n{UNKNOWN}"
    ran = run("parse", "--tools", tools, stdin=text)
    assert list(ran.json) == ["text", "reasoning", "calls", "rejected", "dropped", "counts"]
    assert (ran.json["text"], ran.json["reasoning"]) == ("Look.\n", "Hm.")
    (call,) = ran.json["calls"]
    assert {
        "event",
        "number",
        "name",
        "arguments",
        "grammar",
        "strategy",
        "repairs",
        "model_id",
        "span",
        "raw",
    } == call.keys()
    assert (call["strategy"], call["raw"]) == ("json", DAMAGED)
    assert {"event", "kind", "span", "raw"} == ran.json["dropped"][0].keys()
    assert ran.json["counts"] == {"tool_calls": 1, "repaired": 1, "parse_failures": 0, "gave_up": 0}
    assert ran.err == ""


def test_parse_counts_what_could_not_be_read(run: Run, tools: str) -> None:
    broken = '<tool_call>{"name": "find", "arguments": 7}</tool_call>'
    assert run("parse", "--tools", tools, stdin=broken + UNKNOWN + CALL).json["counts"] == {
        "tool_calls": 1, "repaired": 0, "parse_failures": 1, "gave_up": 0,
    }  # fmt: skip


def test_the_spans_of_a_result_tile_the_text(run: Run, tools: str) -> None:
    text = f"{DAMAGED}\n{CALL}{UNKNOWN}</tool_call>"
    ran = run("parse", "--tools", tools, stdin=text).json
    spans = sorted(one["span"] for key in ("calls", "rejected", "dropped") for one in ran[key])
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(one[1] == other[0] for one, other in pairwise(spans))


def test_a_span_stands_on_one_line_of_the_result(run: Run, tools: str) -> None:
    ran = run("parse", "--tools", tools, stdin=f"Look.\n{DAMAGED}")
    assert f'"span": [6, {6 + len(DAMAGED)}]' in ran.out
    assert ran.json["calls"][0]["span"] == [6, 6 + len(DAMAGED)]


def test_parse_blocks_shows_each_block_exactly_beside_its_call(run: Run, tools: str) -> None:
    text = f"Look.\n{DAMAGED}\n{UNKNOWN}"
    assert run("parse", "--raw", "--tools", tools, stdin=text).out == (
        run("parse", "--blocks", "--tools", tools, stdin=text).out
    )
    out = run("parse", "--blocks", "--tools", tools, stdin=f"Look.\n{DAMAGED}\n{UNKNOWN}").out.splitlines()
    assert out[0] == f"--- call 0, bytes 6 to {6 + len(DAMAGED)}, hermes"
    assert out[1:3] == [DAMAGED, '=> find {"q": "a"}']
    assert out[3].startswith("↺ repaired find [json]: ")
    assert out[5] == UNKNOWN
    assert out[6].startswith("↺ rejected erase: unknown_tool")


# explain


def test_explain_shows_every_stretch_with_its_span(run: Run, tools: str) -> None:
    text = f"<think>Hm.</think>Look.\n{DAMAGED}\n{UNKNOWN}{CALL}"
    out = run("explain", "--tools", tools, stdin=text).out
    rows = [tuple(found) for found in re.findall(r"(?m)^ *(\d+) +(\d+)  (\w+)", out)]
    assert [kind for _, _, kind in rows] == [
        "markup", "reasoning", "markup", "text", "repaired", "markup", "rejected", "call",
    ]  # fmt: skip
    assert [int(start) for start, _, _ in rows] == [0] + [int(end) for _, end, _ in rows[:-1]]
    assert int(rows[-1][1]) == len(text)
    assert "Look.⏎" in out
    assert '= find {"q": "a"}' in out
    assert "↺ syntax: 6 edits (key_quotes, quotes, trailing_comma) [json]" in out
    assert "= unknown_tool" in out
    assert "= delimiter" in out


def test_explain_wraps_at_the_width_of_the_terminal(run: Run) -> None:
    out = run("explain", stdin="word " * 100 + "x" * 300 + "日本" * 60).out
    assert max(cli._cells(line) for line in out.splitlines()) <= 80
    assert "".join(line[22:] for line in out.splitlines()).count("日") == 60


def test_explain_has_colours_only_on_a_terminal_that_wants_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"<think>Hm.</think>{CALL}"
    assert "\x1b" not in run("explain", stdin=text).out
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "\x1b[32m<tool_call>" in run("explain", stdin=text).out
    assert "\x1b" not in run("explain", "--no-color", stdin=text).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("explain", stdin=text).out


def test_explain_lets_no_control_character_through(run: Run) -> None:
    out = run("explain", stdin="a\x1b[2Jb\x07c\x9bd\x7f\r\n\tend").out
    assert all(char == "\n" or char.isprintable() for char in out)
    assert "\\u001b[2J" in out
    assert "\\r⏎" in out


def test_explain_chunk_shows_what_came_out_and_what_is_held(run: Run, tools: str) -> None:
    text = f"Hi. {CALL}"
    lines = run("explain", "--tools", tools, "--chunk", "7", stdin=text).out.splitlines()
    assert len(lines) == -(-len(text) // 7) + 1
    assert lines[0] == "    1 |Hi. <to| text |Hi. |   held 3: <to"
    assert "held" in lines[1]
    assert ' call find {"q": "a"}' in lines[-2]
    assert lines[-1].startswith("  end |stop|")


def test_explain_chunk_cuts_bytes_that_are_no_text(run: Run) -> None:
    lines = run("explain", "--chunk", "1", stdin=b"a\xff<").out.splitlines()
    assert len(lines) == 4
    assert lines[2].endswith("held 1: <")


def test_explain_of_nothing_is_nothing(run: Run) -> None:
    assert run("explain").out == ""


# grammars


def test_grammars_lists_all_files(run: Run) -> None:
    out = run("grammars").out
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == list(shipped())
    assert "qwen3-coder*" in out


def test_grammars_shows_one_file(run: Run) -> None:
    assert run("grammars", "hermes").out == (ROOT / "grammars" / "hermes.toml").read_text(encoding="utf-8")
    assert run("grammars", str(ROOT / "grammars" / "glm.toml")).out.startswith('name   = "glm"')


def test_grammars_writes_the_page_of_all_formats(run: Run) -> None:
    page = run("grammars", "--markdown").out
    section = run("grammars", "hermes", "--markdown").out
    assert page.startswith("# Wire formats\n")
    assert section.startswith("## `hermes`\n")
    assert section in page
    glm = run("grammars", str(ROOT / "grammars" / "glm.toml"), "--markdown").out
    assert glm.startswith("## `glm`\n")
    assert glm in page


def test_grammars_explains_the_choice_for_a_model(run: Run) -> None:
    assert "1. qwen3_coder" in run("grammars", "--model", "qwen/qwen3-coder:free").out
    assert "no grammar names this model: all grammars are on, none preferred" in run("grammars", "--model", "").out


def test_grammars_says_when_responses_start_in_reasoning_and_how_to_undo_it(run: Run) -> None:
    told = run("grammars", "--model", "Qwen/QwQ-32B").out
    assert "responses start inside the reasoning: opened_for 'qwq-32b' of think" in told
    assert "pass prefill='</think>'" in told
    assert "inside the reasoning" not in run("grammars", "--model", "qwen3-coder").out


# check

EXAMPLE: Final = """
name = "mine"
[[envelope]]
name = "mine"
open = ["<<call>>"]
close = ["<</call>>"]
[[body]]
envelope = ["mine"]
syntax = "json_call"
order = 10
[[example]]
title = "one"
text = 'Look. <<call>>{"name": "find", "arguments": {"n": 1}}<</call>>'
"""


def spoken(text: str) -> str:
    return f'name = "mine"\n[[dialect]]\nname = "x"\ncatalogue = "json"\n{text}\n[[example]]\ntext = ""'


def envelope(content: str) -> str:
    """A file whose only envelope is this."""
    return f'name = "mine"\n[[envelope]]\n{content}\n[[example]]\ntext = ""'


def body(content: str) -> str:
    """A file with a good envelope and this body."""
    return envelope(f'name = "x"\nopen = ["<<x>>"]\n[[body]]\n{content}')


def checked(run: Run, tmp_path: Path, more: str) -> Ran:
    return run("check", written(tmp_path / "mine.toml", EXAMPLE + more))


def test_check_runs_a_file_at_every_cut(run: Run, tmp_path: Path) -> None:
    ran = checked(run, tmp_path, 'calls = [{name = "find", arguments = {n = 1}}]\nvisible = "Look. "\nrepaired = false')
    assert ran.code == 0
    assert re.fullmatch(r"ok   mine +1 examples, (\d+) runs\n", ran.out)
    assert int(ran.out.split()[-2]) == 2 * (len('Look. <<call>>{"name": "find", "arguments": {"n": 1}}<</call>>') + 7)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("", "calls: expected []"),
        ('calls = [{name = "find", arguments = {n = 2}}]', "calls: expected"),
        ('calls = [{name = "find", arguments = {n = 1.0}}]', "calls: expected"),
        ('calls = [{name = "find", arguments = {n = true}}]', "calls: expected"),
        ('calls = [{name = "find"}]', "every call has a name and arguments in the example 'one'"),
        (
            'calls = [{name = "find", arguments = {n = 1}}]\nvisible = "Look."',
            'visible: expected "Look.", found "Look. "',
        ),
        ('calls = [{name = "find", arguments = {n = 1}}]\nreasoning = "x"', 'reasoning: expected "x", found ""'),
        ('calls = [{name = "find", arguments = {n = 1}}]\nrepaired = true', "repaired: expected true"),
        ('calls = [{name = "find", arguments = {n = 1}}]\nrejected = ["malformed"]', "rejected: expected"),
        ('calls = [{name = "find", arguments = {n = 1}}]\noptions = {modle = "x"}', "the example itself is wrong"),
        ('calls = [{name = "find", arguments = {n = 1}}]\ntools = 3', "the example itself is wrong: TypeError"),
        (
            'calls = [{name = "find", arguments = {n = 1}}]\n[[example]]\ntitle = "two"',
            "example.text: is missing in the example 'two'",
        ),
    ],
)
def test_check_says_what_differs_in_one_line(run: Run, tmp_path: Path, more: str, problem: str) -> None:
    ran = checked(run, tmp_path, more)
    assert ran.code == 1
    assert ran.out.startswith("FAIL mine")
    assert problem in ran.out
    assert ran.out.count("\n") == 1


def test_check_shows_every_failure_if_asked(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(EXAMPLE + 'calls = []\n[[example]]\ntext = "Noon."\nvisible = "no"\n', encoding="utf-8")
    (first,) = run("check", str(path)).out.splitlines()
    assert first.endswith(" (and 3 more, see --all)")
    ran = run("check", "--all", str(path))
    assert ran.code == 1
    assert [line.split()[:2] for line in ran.out.splitlines()] == [["FAIL", "mine"]] * 4
    assert ran.out.startswith(first.removesuffix(" (and 3 more, see --all)") + "\n")


def test_check_honours_finish_tools_and_options(run: Run, tmp_path: Path) -> None:
    more = """calls = []
rejected = ["unknown_tool"]
tools = []
[[example]]
title = "cut"
text = '<<call>>{"name": "find", "argu'
finish = "length"
rejected = ["truncated"]
[[example]]
title = "withheld"
text = '<<call>>{"name": "find", "arguments": {}}<</call>>'
options = {recover = false}
rejected = ["withheld"]
"""
    assert checked(run, tmp_path, more).code == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('name = "mine"', "has no examples"),
        ("name = 1", "mine.toml: name: is missing or no string"),
        ("[", "mine.toml: is no TOML"),
        ('name = "mine"\nmodles = []', "did you mean models?"),
        ('name = "mine"\n[envelope]\nname = "x"', "envelope: must be a list of tables: [[envelope]]"),
        (envelope('name = "x"\nopens = ["<<x>>"]'), "envelope.opens: unknown key, did you mean open?"),
        (envelope('open = ["<<x>>"]'), "envelope.name: is missing"),
        (envelope('name = "x"\nopen = "<<x>>"'), "envelope.open: must be a list of strings"),
        (envelope('name = "x"\nspecial = "yes"'), "envelope.special: must be true or false"),
        (envelope('name = "x"\nheaders = ["to:"]'), "envelope.headers: 'to:' has neither {name} nor {id}"),
        (body('syntax = "json_call"'), "body.envelope: is missing"),
        (body('envelope = "x"\nsyntax = "json_call"'), "body.envelope: must be a list of strings"),
        (body('envelope = ["xx"]\nsyntax = "json_call"'), "no [[envelope]] here is named 'xx', did you mean x?"),
        (body('envelope = ["y"]\nsyntax = "json_call"'), "no [[envelope]] here is named 'y'; list the file"),
        (body('envelope = ["x"]\nsyntax = "json"'), "body.syntax: 'json' is none of glm_line, json_arguments"),
        (body('envelope = ["x"]'), "body.syntax: is missing"),
        (body('envelope = ["x"]\nsyntax = "tags"'), "body.syntax: tags need a [[tags]] table"),
        (body('envelope = ["x"]\nsyntax = "json_call"\norder = "1"'), "body.order: must be a whole number"),
        (body('envelope = ["x"]\nsyntax = "typed_values"'), "body.syntax: typed_values need a [[tags]] table"),
        (
            body('envelope = ["x"]\nsyntax = "nested"'),
            'nested need no [[body]]: a [[tags]] table with syntax = "nested"',
        ),
        (body('envelope = ["x"]\nsyntax = "pairs"'), "pairs need no [[body]]: a [[pairs]] table makes it"),
        (
            body(
                'envelope = ["x"]\nsyntax = "tags"\nsettings = { of = "claude" }\n[[tags]]\nsigils = [["<z:", "</z:"]]'
            ),
            "body.settings.of: no grammar here named 'claude' has [[tags]]; list it in needs",
        ),
        (
            body('envelope = ["x"]\nsyntax = "json_call"\nsettings = { name_key = 3 }'),
            "body.settings.name_key: must be",
        ),
        (
            body('envelope = ["x"]\nsyntax = "json_call"\nsettings = { nam_key = "x" }'),
            "body.settings.nam_key: json_call has no such setting, did you mean name_key?",
        ),
        (
            body('envelope = ["x"]\nsyntax = "pformat"\nsettings = { x = 1 }'),
            "pformat has no such setting; it has none",
        ),
        ('name = "mine"\n[[line]]\nsyntax = "nope"', "line.syntax: 'nope' is none of action, bare, glm_line"),
        ('name = "mine"\n[[line]]\nsyntax = "acton"', "did you mean action?"),
        (
            'name = "mine"\n[render]\ncall = "<x>{nmae}</x>"',
            "render.call: no field is named {nmae}, did you mean name?",
        ),
        ('name = "mine"\n[render.form]\nvalue = "{vaule}"', "render.form.value: no field is named {vaule}"),
        (
            'name = "mine"\n[[dialect]]\nname = "x"\ncatalogue = "json"\nresult = "<r>{contents}</r>"',
            "dialect.result: no field is named {contents}, did you mean content?",
        ),
        (
            'name = "mine"\n[[dialect]]\nname = "x"\ncatalogue = "json"\ntranscript = { assistant = "{txt}" }',
            "dialect.transcript.assistant: no field is named {txt}, did you mean text?",
        ),
        (
            'name = "mine"\n[[dialect]]\nname = "x"\ncatalogue = "json"\nexact.transcript.resumed = "{txt}"',
            "dialect.exact.transcript.resumed: no field is named {txt}, did you mean text?",
        ),
        (
            'name = "mine"\n[[dialect]]\nname = "x"\ncatalogue = "json"\nid = "{nmae}:{index}"',
            "dialect.id: no field is named {nmae}, did you mean name?",
        ),
        (
            'name = "mine"\n[wording]\nguide = "{calls}"',
            "wording.guide: no field is named {calls}, did you mean call?",
        ),
        ('name = "mine"\n[frame]\nbodies = ["tags"]', "frame.bodies: tags need a [[tags]] table in this file"),
        ('name = "mine"\n[frame]\nroute = [{ channel = "x" }]', "frame.route.to: is missing"),
        ('name = "mine"\n[[pairs]]\nof = "gml"\n[[example]]\ntext = ""', "pairs.of: no grammar here named 'gml'"),
        ('name = "mine"\n[[tags]]\nsigils = [["<z:", ""]]', "tags.sigils: must be a list of pairs"),
        (
            envelope('name = "x"\nopen = ["<<x>>"]\nheaders = ["{name}=="]\nseparators = ["=="]'),
            "envelope.headers: 'x' has no [[body]] with headed = true",
        ),
        ('name = "mine"\n[[tags]]\nsigils = ["<", "</"]', "tags.sigils: must be a list of pairs"),
        ('name = "mine"\n[[tags]]\nsigils = [["<", "</"]]\nkey = [{}]', "tags.key.name: is missing"),
        ('name = "mine"\n[[tags]]\ncall = ["x"]', "tags.sigils: is missing"),
        ('name = "mine"\n[[pairs]]\nenvelope = ["x"]', "pairs.key_open: is missing"),
        ('name = "mine"\n[[reasoning]]\nopen = ["<x>"]', "reasoning.close: is missing"),
        ('name = "mine"\n[frame]\nstart = "<|x|>"', "frame.start: must be a list of strings"),
        ('name = "mine"\n[[fence]]\nlanguages = ["x"]', "fence: needs an envelope, or reads"),
        (
            'name = "mine"\n[[fence]]\nlanguages = ["x"]\nenvelope = "x"\n[[example]]\ntext = ""',
            "fence.envelope: no [[envelope]] here is named 'x'",
        ),
        ('name = "mine"\n[render]\nbody = "json"', "render.body: 'json' is none of glm_line"),
        (spoken("exact = 1"), "dialect.exact: must be a table"),
        (spoken("exact = { spacd = true }"), "dialect.exact.spacd: unknown key, did you mean spaced?"),
        (spoken("exact = { spaced = 1 }"), "dialect.exact.spaced: must be true or false"),
        (spoken("exact = { call = 1 }"), "dialect.exact.call: must be a string"),
        (spoken("exact.transcript.strat = ''"), "dialect.exact.transcript.strat: unknown key, did you mean start?"),
        (spoken("exact.transcript.start = 1"), "dialect.exact.transcript.start: must be a string"),
        (spoken("exact.transcript.recent = 'qery'"), "'qery' is none of query, answer; did you mean query?"),
        (spoken("transcript.trimmed = ['user', 'texts']"), "'texts' is none of system, user, text, thinking"),
        (spoken("transcript.trimmed = 'user'"), "dialect.transcript.trimmed: must be a list of strings"),
        ('name = "mine"\nneeds = ["hermez"]\n[[example]]\ntext = ""', "needs: 'hermez' is no grammar of the library"),
        ('name = "mine"\n[[example]]\ntext = ""\ncalls = [{}]', "every call has a name and arguments in example 1"),
        (
            'name = "mine"\n[[envelope]]\nname = "x"\nopen = ["<tool_call>"]\n[[example]]\ntext = ""',
            "<tool_call>: opens calls of tool_call already: list it in needs and name its envelope 'tool_call'",
        ),
        (
            'name = "mine"\n[[envelope]]\nname = "x"\nopen = ["<invoke"]\n[[example]]\ntext = ""',
            "<invoke: opens calls of claude already: list it in needs",
        ),
    ],
)
def test_check_refuses_a_file_that_is_no_grammar(run: Run, tmp_path: Path, content: str, problem: str) -> None:
    ran = run("check", written(tmp_path / "mine.toml", content))
    assert (ran.code, ran.out.count("\n")) == (1, 1)
    assert ran.out.startswith("FAIL mine")
    assert problem in ran.out


def test_check_takes_names_and_files_and_fails_if_one_does(run: Run, tmp_path: Path) -> None:
    ran = run("check", "hermes", written(tmp_path / "mine.toml", EXAMPLE), "pformat")
    assert [line.split()[:2] for line in ran.out.splitlines()] == [
        ["ok", "hermes"],
        ["FAIL", "mine"],
        ["ok", "pformat"],
    ]
    assert ran.code == 1


def test_check_prints_one_line_for_each_grammar(run: Run) -> None:
    names = ["dsml", "harmony", "hermes"]  # the wheel is checked with all of them
    ran = run("check", *names)
    assert [line.split()[1] for line in ran.out.splitlines()] == names
    assert [line for line in ran.out.splitlines() if line.startswith("FAIL")] == []
    assert ran.code == 0


# demo


def test_the_demo_is_instant_and_fits_a_terminal_of_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    ran = run("demo", "--fast")
    assert sum(slept) == 0
    assert ran.code == 0
    assert max(cli._cells(line) for line in ran.out.splitlines()) <= 80
    assert "\x1b" not in ran.out
    assert " Left, a chat UI that strips tags by regex " in ran.out
    assert ran.out.splitlines()[-1] == "It ran 1 call that was only quoted, and missed 2 of 2 real calls."


def test_the_demo_shows_the_leak_on_the_left_and_none_on_the_right(run: Run) -> None:
    rows = [line.partition(" │ ") for line in run("demo", "--fast").out.splitlines() if " │" in line]
    left, right = ("\n".join(row[side].rstrip() for row in rows) for side in (0, 2))
    assert "<think>" in left
    assert "parameter" in left
    assert "[call get_tide_table ↺ repaired]" in right
    assert "[call set_reminder]" in right
    assert "```xml" in right
    for marker in ("<think>", "tool_response", "DSML", "im_end"):
        assert marker not in right


def test_the_demo_begins_with_the_whole_stream_and_what_was_dropped_of_it(run: Run) -> None:
    shown = run("demo", "--fast").out.partition("The same, delta by delta.")[0]
    text = "".join(line[11:].removesuffix("⏎") for line in shown.splitlines() if line[10:11] == " ")
    for piece in ("Tide first, then a reminder.", "{'name': 'get_tides_table', 'arguments'", '{"high_water": "06:12"}'):
        assert piece in text
    assert "dropped    ⏎\n           <tool_response>⏎\n" in shown
    assert "= a result that the model made up\n" in shown


def test_the_calls_of_the_demo_are_json_with_their_repairs(run: Run) -> None:
    out = run("demo", "--fast").out
    blocks = [block for block in out.split("\n\n") if block.lstrip().startswith("{")]
    calls = [json.loads(block.partition("↺")[0]) for block in blocks]
    assert [call["name"] for call in calls] == ["get_tide_table", "set_reminder"]
    assert calls[0]["arguments"] == {"harbor": "Skagen", "days": 2, "metric": True}
    told = blocks[0].partition("↺ repaired: ")[2].replace("\n", " ")
    assert told.startswith('name: get_tides_table -> get_tide_table; days: "2" -> 2; syntax: 10 edits (')
    assert "↺" not in blocks[1]


def test_the_demo_takes_about_ten_seconds_and_its_speed_can_be_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.delenv("STREAMSCRUB_DEMO_SPEED", raising=False)
    run("demo")
    assert 7 <= sum(slept) <= 11
    assert max(slept) < 0.2
    slept.clear()
    monkeypatch.setenv("STREAMSCRUB_DEMO_SPEED", "10")
    run("demo")
    assert sum(slept) < 1.1


@pytest.mark.parametrize("speed", ["0", "fast", "-1", "nan", "1e9"])
def test_a_speed_that_is_none_is_wrong_use(run: Run, monkeypatch: pytest.MonkeyPatch, speed: str) -> None:
    monkeypatch.setenv("STREAMSCRUB_DEMO_SPEED", speed)
    ran = run("demo")
    assert (ran.code, ran.err) == (2, f"streamscrub demo: STREAMSCRUB_DEMO_SPEED={speed!r} is no number above 0\n")


@pytest.mark.skipif(os.name != "posix", reason="the live view needs a terminal that knows cursor moves")
def test_on_a_terminal_the_rows_are_redrawn_to_the_same_picture(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [line for line in run("demo", "--fast").out.splitlines() if " │" in line][2:]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    screen = drawn(run("demo", "--fast", "--no-color").out)
    start = next(place for place, line in enumerate(screen) if line.startswith("───")) + 1
    assert screen[start : start + len(plain)] == plain
    monkeypatch.setenv("LINES", "10")
    assert "\x1b[" not in run("demo", "--fast", "--no-color").out
    monkeypatch.setenv("LINES", "40")
    monkeypatch.setenv("COLUMNS", "40")
    narrow = "\n".join(drawn(run("demo", "--fast", "--no-color").out)[2:]).partition('\n{"name": ')[0]
    assert max(map(cli._cells, narrow.splitlines())) <= 40


def drawn(out: str) -> list[str]:
    """The screen after ``out``, as a terminal shows it."""
    screen, at, column = [""], 0, 0
    for token in re.findall(r"\x1b\[\d*[A-Z]|\r|\n|[^\x1b\r\n]+", out):
        if token == "\n":
            at, column = at + 1, 0
            screen += [""] * (at + 1 - len(screen))
        elif token == "\r":
            column = 0
        elif token.startswith("\x1b"):
            count, move = int(token[2:-1] or 1), token[-1]
            if move == "K":
                screen[at] = screen[at][:column]
            else:
                at += count if move == "B" else -count
        else:
            screen[at] = screen[at][:column] + token
            column += len(token)
    return screen


# Files and options in any order


@pytest.mark.parametrize(
    "argv",
    [
        ("render", "results", "FILE", "--dialect", "hermes"),
        ("render", "results", "--dialect", "hermes", "FILE"),
        ("render", "--dialect", "hermes", "results", "FILE"),
        ("render", "--dialect=hermes", "results", "--exact", "FILE"),
        ("render", "results", "--dialect", "hermes", "--", "FILE"),
        ("render", "results", "--dialect", "hermes", "-"),
        ("render", "results", "--dialect", "hermes"),
        ("render", "--dialect", "hermes", "results"),
    ],
    ids=" ".join,
)
def test_the_file_of_render_stands_anywhere(run: Run, tmp_path: Path, argv: tuple[str, ...]) -> None:
    results = '[{"name": "ping", "text": "up"}]'
    path = written(tmp_path / "results.json", results)
    ran = run(*(path if word == "FILE" else word for word in argv), stdin="" if "FILE" in argv else results)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "<tool_response>\nup\n</tool_response>\n"


def test_the_files_of_every_verb_stand_anywhere(run: Run, tools: str, tmp_path: Path) -> None:
    path = written(tmp_path / "reply.txt", CALL)
    for verb in (["scrub"], ["parse"], ["explain"], ["convert", "--to", "hermes"], ["replay"], ["tally"]):
        before, behind = run(*verb, path, "--tools", tools), run(*verb, "--tools", tools, path)
        assert (before.code, before.out, before.err) == (behind.code, behind.out, behind.err)
        assert before.code == 0
    assert run("replay", path, "--json", path).json["responses"] == 2
    assert run("grammars", "hermes", "--markdown").out == run("grammars", "--markdown", "hermes").out


# Wrong use


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ([], "are required: {scrub,"),
        (["zap"], "invalid choice: 'zap'"),
        (["scrub", "--zap"], "unrecognized arguments: --zap"),
        (["scrub", "--reasoning", "loud"], "invalid choice: 'loud'"),
        (["scrub", "--on-fabricated", "run"], "invalid choice: 'run'"),
        (["scrub", "--grammar", "hermez"], "unknown grammar 'hermez'; did you mean hermes"),
        (["scrub", "--grammar", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["scrub", "--tools", "none.json"], "cannot read none.json: No such file or directory"),
        (["scrub", "--tools", "-"], "cannot both be read from stdin"),
        (["scrub", "none.txt"], "cannot read none.txt: No such file or directory"),
        (["scrub", "."], "cannot read .: Is a directory"),
        (["scrub", "--calls", "-"], "--calls needs a file of its own"),
        (["scrub", "--calls", "none/calls"], "cannot write none/calls: No such file or directory"),
        (["explain", "--chunk", "0"], "'0' is no number above 0"),
        (["explain", "--chunk", "x"], "'x' is no number above 0"),
        (["grammars", "hermez"], "unknown grammar 'hermez'"),
        (["grammars", "hermes", "--model", "x"], "two questions"),
        (["grammars", "--markdown", "--model", "x"], "two questions"),
        (["grammars", "none.toml"], "no such file: none.toml"),
        (["check", "none.toml"], "no such file: none.toml"),
        (["check", "hermez"], "unknown grammar 'hermez'"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_one_clear_line_and_exit_2(run: Run, tmp_path: Path, argv: list[str], problem: str) -> None:
    ran = run(*argv)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert problem in ran.err
    assert ran.err.startswith("streamscrub")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("3", "holds no list of tools"),
        ('{"tools": {}}', "holds no list of tools"),
        ("[3]", "tools[0]: expected a Tool or a dict, got 3"),
        ("[{}]", "t.json: tools[0]: no name"),
        ("{}", "tools[0]: no name"),
        ('[{"name": "a"}, {"name": "a"}]', "a second tool of the name"),
    ],
    ids=lambda content: content[:30],
)
def test_a_bad_tools_file_is_one_clear_line(run: Run, tmp_path: Path, content: str, problem: str) -> None:
    calls = tmp_path / "calls"
    calls.write_text("kept")
    ran = run("scrub", "--calls", str(calls), "--tools", written(tmp_path / "t.json", content), stdin="x")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert problem in ran.err
    assert calls.read_text() == "kept"


def test_help_and_version(run: Run) -> None:
    assert run("--version").out == f"streamscrub {streamscrub.__version__}\n"
    for verb in ([], ["scrub"], ["parse"], ["explain"], ["grammars"], ["check"], ["replay"], ["tally"], ["demo"]):
        ran = run(*verb, "--help")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("usage: streamscrub")


# What a model writes


HOSTILE: Final = [
    b"\xff" * 300,
    b"\x00\x1b]0;title\x07",
    b"<tool_call>" * 200,
    b"<tool_call>{" + b'"a":{' * 500,
    '<tool_call>{"name": "\ud800\u001b[31m", "arguments": {}}'.encode("utf-8", "surrogatepass"),
    b'<tool_call>{"name": "\\u001b[31mx", "arguments": {"\\ud800": "\\udfff"}}</tool_call>',
    b'<tool_call>{"name": "find", "arguments": {"n": ' + b"9" * 5000 + b"}}</tool_call>",
    b"[TOOL_CALLS]" * 50 + b"<|channel|>" * 50 + b"<think>" * 50,
    "｜DSML｜<｜DSML｜invoke name=".encode(),
]


@pytest.mark.parametrize("wire", HOSTILE, ids=lambda wire: repr(wire[:24]))
@pytest.mark.parametrize("verb", [["scrub"], ["parse"], ["parse", "--raw"], ["explain"], ["explain", "--chunk", "3"]])
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_what_a_model_writes_is_no_error(run: Run, tmp_path: Path, verb: list[str], wire: bytes, finish: str) -> None:
    calls = ["--calls", str(tmp_path / "calls")] if verb == ["scrub"] else []
    ran = run(*verb, "--finish-reason", finish, *calls, stdin=wire)
    assert ran.code == 0
    assert "Traceback" not in ran.err
    if verb == ["parse"]:
        assert ran.json["counts"].keys() == {"tool_calls", "repaired", "parse_failures", "gave_up"}
    if verb[0] == "explain":
        assert "\x1b" not in ran.out
    assert "\x1b" not in ran.err


def test_a_defect_of_the_library_is_one_line_and_no_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, chunk: bytes) -> None:
        raise IndexError("boom")

    monkeypatch.setattr(streamscrub.StreamScrubber, "feed", broken)
    ran = run("scrub", stdin="x")
    assert ran.code == 70
    assert re.fullmatch(r"streamscrub: internal error at test_cli\.py:\d+, please report it: IndexError.*\n", ran.err)


def test_an_interrupt_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object, chunk: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(streamscrub.StreamScrubber, "feed", interrupted)
    ran = run("scrub", stdin="x")
    assert (ran.code, ran.err) == (130, "")


def test_a_terminal_that_lacks_characters_gets_question_marks(
    run: Run, tools: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    err = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stderr", err)
    assert run("scrub", "--tools", tools, "--calls", str(tmp_path / "calls"), stdin=DAMAGED).code == 0
    assert err.buffer.getvalue().startswith(b"? repaired find")


# Pipes


def start(*argv: str, **options: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    environment.pop("MAKEFLAGS", None)
    environment |= options.pop("env", {})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "streamscrub", *argv], env=environment, **{**pipes, **options})


def test_text_arrives_before_stdin_closes_without_waiting_for_a_newline() -> None:
    with start("scrub") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for piece in (b"Hello, ", b"wor", b"ld <b", b">. "):
            process.stdin.write(piece)
            process.stdin.flush()
            assert os.read(process.stdout.fileno(), 100)
        out, err = process.communicate(b"Bye.", timeout=60)
    assert (out[-4:], err, process.returncode) == (b"Bye.", b"", 0)


def test_calls_and_remarks_arrive_before_stdin_closes(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    with start("scrub", "--calls", str(calls)) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(DAMAGED.encode())
        process.stdin.flush()
        assert process.stderr.readline().decode().startswith("↺ repaired find")
        assert records(calls)[0]["name"] == "find"
        process.communicate(timeout=60)


def test_a_code_point_cut_over_two_writes_is_whole() -> None:
    with start("scrub") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"a\xe2\x82")
        process.stdin.flush()
        assert os.read(process.stdout.fileno(), 100) == b"a"
        out, _ = process.communicate(b"\xac", timeout=60)
    assert out == "€".encode()


@pytest.mark.skipif(os.name != "posix", reason="descriptors are handed down by number on POSIX only")
def test_calls_go_to_descriptor_3_if_it_is_open(tmp_path: Path) -> None:
    wire = written(tmp_path / "wire", f"Look. {CALL}")
    calls = tmp_path / "calls"
    command = f'"{sys.executable}" -m streamscrub scrub "{wire}" 3>"{calls}"'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(["sh", "-c", command], capture_output=True, env=environment, timeout=60, check=True)
    assert (ran.stdout, ran.stderr) == (b"Look. ", b"")
    assert [record["name"] for record in records(calls)] == ["find"]


@pytest.mark.skipif(os.name != "posix", reason="descriptors are handed down by number on POSIX only")
def test_the_job_server_of_make_is_left_alone(tmp_path: Path) -> None:
    wire = written(tmp_path / "wire", CALL)
    calls = tmp_path / "calls"
    command = f'"{sys.executable}" -m streamscrub scrub "{wire}" 3>"{calls}"'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MAKEFLAGS": " -j --jobserver-auth=3,4"}
    ran = subprocess.run(["sh", "-c", command], capture_output=True, env=environment, timeout=60, check=True)
    assert b"1 call read and not written" in ran.stderr
    assert calls.read_bytes() == b""


@pytest.mark.skipif(os.name != "posix", reason="descriptors are handed down by number on POSIX only")
def test_a_descriptor_that_is_closed_or_only_read_is_not_given(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        assert not cli._is_given(writing)  # Python's own descriptors are not handed down
        os.set_inheritable(writing, True)
        os.set_inheritable(reading, True)
        assert cli._is_given(writing)
        assert not cli._is_given(reading)
    finally:
        os.close(reading)
        os.close(writing)
    assert not cli._is_given(writing)


@pytest.mark.skipif(os.name != "posix", reason="pipes break differently elsewhere")
@pytest.mark.parametrize("verb", ["scrub", "parse", "explain"])
def test_a_reader_that_goes_away_is_no_error(verb: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    wire = written(tmp_path / "wire", "some text\n" * 20_000)
    with start(verb, wire, stdout=writing) as process:
        os.close(writing)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full, start("parse", written(tmp_path / "wire", "x"), stdout=full) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err == b"streamscrub: the output: No space left on device\n"


def test_python_dash_m_runs_the_command() -> None:
    with start("--version") as process:
        out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == (f"streamscrub {streamscrub.__version__}\n".encode(), 0)


def test_wrong_use_exits_with_2_from_the_shell() -> None:
    with start("zap") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count(b"\n")) == (2, b"", 1)
