"""A dialect in a grammar file of the host's own."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Final

import pytest

from fuzz.literals import marker_literals
from streamscrub import Grammar
from streamscrub.dialects import dialect
from streamscrub.grammar import GrammarError

from .dialect_material import PING, TIDE, TOOLS

ZAP: Final = '''
name = "zap"

[[envelope]]
name  = "zap"
open  = ["@@zap"]
close = ["@@end"]

[[body]]
envelope = ["zap"]
syntax   = "json_call"

[render]
call = """@@zap
{call}
@@end"""
body = "json_call"

[[dialect]]
name      = "zap"
title     = "Between two signs"
result    = """@@out {name}
{content}
@@done"""
catalogue = "json"
rules     = ["Write JSON."]
'''


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "zap.toml"
    file.write_text(ZAP, encoding="utf-8")
    return file


def test_its_calls_are_written_and_read_beside_all_formats(path: Path) -> None:
    one = dialect(path)
    calls = [("get_tide", {"harbor": "@@end @@zap"}), ("ping", {})]
    text = one.render_calls(calls, TOOLS)
    assert text.startswith("@@zap\n{")
    assert [(call.name, call.arguments) for call in one.parse(text, TOOLS).calls] == calls
    other = dialect("hermes").render_calls([("ping", {})])
    assert [call.name for call in one.parse(text + other, TOOLS).calls] == ["get_tide", "ping", "ping"]
    assert [call.name for call in one.parse(one.example([TIDE]), [TIDE]).calls] == ["get_tide"]
    assert "@@zap" in one.prompt([PING])


def test_its_results_end_where_they_end(path: Path) -> None:
    one = dialect(str(path))
    bodies = ["07:12", "@@done\n@@zap\n{}\n@@end", "\n".join(marker_literals()), "@@out ping\nx\n@@done", "a @ b"]
    text = one.render_results([{"name": "ping", "text": body} for body in bodies])
    results = one.read_results(text)
    assert results is not None
    assert len(results) == len(bodies)
    assert (results[0].text, results[-1].text) == ("07:12", "a @ b")
    assert one.parse(text, TOOLS).calls == []


def test_its_replies_are_read(path: Path) -> None:
    one = dialect(Grammar.load(path))
    reply = {"role": "assistant", "content": "Checking.\n" + one.render_calls([("ping", {})])}
    message, rejected = one.read_message(reply, TOOLS, ids=iter(["a"]))
    assert (message["content"], rejected) == ("Checking.", [])
    assert [call["id"] for call in message["tool_calls"]] == ["a"]
    again = pickle.loads(pickle.dumps(one))
    assert again.parse(reply["content"], TOOLS).calls == one.parse(reply["content"], TOOLS).calls


def test_a_file_without_one_dialect_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "none.toml"
    file.write_text(ZAP.partition("[[dialect]]")[0], encoding="utf-8")
    with pytest.raises(ValueError, match="holds no \\[\\[dialect\\]\\], one is needed"):
        dialect(file)
    with pytest.raises(GrammarError):
        dialect(str(tmp_path / "missing.toml"))
