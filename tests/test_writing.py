"""What a grammar writes is read back: the same calls, with the grammar alone and with all of them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from fuzz.literals import strings_of
from streamscrub import scrub
from streamscrub.grammar import Grammar, shipped
from streamscrub.writing import write_calls

from .feeding import scrub_all_ways
from .test_rules import is_marker

_STRING: Final = {"type": "string"}
TOOLS: Final = [
    {
        "name": "find",
        "parameters": {
            "type": "object",
            "properties": {"q": _STRING, "top": {"type": "integer"}, "opts": {"type": "object"}},
        },
    },
    {"name": "ping", "parameters": {"type": "object", "properties": {}}},
]
WRITERS: Final = [grammar for grammar in shipped().values() if "body" in grammar.data.get("render", {})]
VALUES: Final = (
    "rook", "two\nlines\n", " blanks ", "a \"quoted\" 'word'", "{\"a\": [1, \"}\"]}", "C:\\new\\table", "é 你好 🙂",
    "12", "true", "a, b: c]", "<b>x</b> & &lt;", "```py\nx\n```", "</q>", "|", "name(a=1)", "<!-- -->", "null",
)  # fmt: skip


def read(text: str, grammar: Grammar | None = None) -> list[tuple[str, Any]]:
    result = scrub(text, TOOLS, grammars=None if grammar is None else [grammar])
    assert result.rejected == []
    return [(call.name, call.arguments) for call in result.calls]


def markers_of(grammar: Grammar) -> list[str]:
    return sorted(
        {literal for _, literal in strings_of(dict(grammar.data)) if is_marker(literal) and len(literal) < 40}
    )


@pytest.mark.parametrize("grammar", WRITERS, ids=lambda grammar: grammar.name)
def test_two_calls_come_back_however_they_are_cut(grammar: Grammar) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("find", {"q": 'a "b" {c}\nd', "top": 3}), ("ping", {})]
    text = write_calls(grammar, calls, TOOLS)
    result = scrub_all_ways(text, TOOLS, "stop")
    assert [(call.name, call.arguments) for call in result.calls] == calls
    assert result.text.strip() == ""
    assert read(text, grammar) == calls


@pytest.mark.parametrize("grammar", WRITERS, ids=lambda grammar: grammar.name)
def test_a_value_comes_back_or_cannot_be_written(grammar: Grammar) -> None:
    """A format without escapes refuses the values that it would read as something else."""
    carried = 0
    for value in (*VALUES, *markers_of(grammar)):
        calls = [("find", {"q": value})]
        try:
            text = write_calls(grammar, calls, TOOLS)
        except ValueError:
            continue
        carried += 1
        assert read(text) == calls, text
        assert read(text, grammar) == calls, text
    assert carried >= len(VALUES) // 2


def test_a_grammar_without_calls_says_so() -> None:
    with pytest.raises(ValueError, match="writes no calls"):
        write_calls(shipped()["chat"], [("ping", {})])
