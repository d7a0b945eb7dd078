"""Every registered reasoning form: closed, opened by the prompt, without its opener, ended by a call, doubled, cut."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from streamscrub import ToolCall
from streamscrub.events import Scrubbed
from streamscrub.grammar import shipped

from .feeding import scrub_all_ways

FORMS: Final[list[dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "reasoning_forms.toml").read_text(encoding="utf-8")
)["form"]
# Registered names that stand for no form of their own.
NO_FORM: Final = {
    "vllm": {"hf": "a template of the tokenizer", "minimax_m2_append_think": "no split: reasoning='off'"},
    "sglang": {"response_template": "a template of the tokenizer", "minimax-append-think": "no split: reasoning='off'"},
}
NAMES: Final = {"vllm": 42, "sglang": 36}
# Grammars of the table whose files are still to come. A file that has come must leave this set.
TO_COME: Final[frozenset[str]] = frozenset()
TOOLS: Final = [
    {"name": "find", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}
]


def there(form: dict[str, Any], key: str = "needs") -> bool:
    """Has the file come that this form, or its call, belongs to?"""
    return key not in form or form[key] in shipped()


def each(*keys: str) -> pytest.MarkDecorator:
    """The forms whose files have come, if they have these keys."""
    rows = [form for form in FORMS if there(form) and all(key in form for key in keys)]
    return pytest.mark.parametrize("form", rows, ids=lambda form: form["name"])


def around(form: dict[str, Any]) -> tuple[str, str, str, str]:
    """Opener and closer of the reasoning, and what stands around the answer."""
    return form.get("open", "<think>"), form.get("close", "</think>"), form.get("answer", ""), form.get("end", "")


def read(form: dict[str, Any], text: str, finish_reason: str = "stop", **options: Any) -> Scrubbed:
    return scrub_all_ways(text, TOOLS, finish_reason, **{**form.get("options", {}), **options})


def told(result: Scrubbed) -> tuple[str, str, list[str], list[str]]:
    """Reasoning, text, calls and rejections, blanks at the ends aside."""
    calls = [f"{call.name} {call.arguments['q']}" for call in result.calls]
    return result.reasoning.strip(), result.text.strip(), calls, [call.reason for call in result.rejected]


def test_every_registered_name_has_a_row() -> None:
    for server, number in NAMES.items():
        named = [form["name"] for form in FORMS if server in form.get("servers", ())]
        assert len(named) == len(set(named))
        assert len(named) + len(NO_FORM[server]) == number, server


def test_a_file_that_has_come_is_no_longer_to_come() -> None:
    assert sorted(TO_COME & shipped().keys()) == []
    wanted = {form[key] for form in FORMS for key in ("needs", "call_needs") if key in form}
    assert wanted - shipped().keys() <= TO_COME <= wanted


@each()
def test_a_closed_section_and_an_answer(form: dict[str, Any]) -> None:
    opens, closes, answer, end = around(form)
    assert told(read(form, f"{opens}Look it up.{closes}{answer}Noon.{end}")) == ("Look it up.", "Noon.", [], [])


@each()
def test_an_empty_section(form: dict[str, Any]) -> None:
    opens, closes, answer, end = around(form)
    assert told(read(form, f"{opens}{closes}{answer}Noon.{end}")) == ("", "Noon.", [], [])


@each("prefill")
def test_a_section_that_the_prompt_has_opened(form: dict[str, Any]) -> None:
    _, closes, answer, end = around(form)
    text = f"{form.get('first', '')}Look it up.{closes}{answer}Noon.{end}"
    assert told(read(form, text, prefill=form["prefill"])) == ("Look it up.", "Noon.", [], [])


@each("prefill")
def test_a_section_that_the_caller_says_is_open(form: dict[str, Any]) -> None:
    _, closes, answer, end = around(form)
    text = f"{form.get('first', '')}Look it up.{closes}{answer}Noon.{end}"
    assert told(read(form, text, reasoning="open")) == ("Look it up.", "Noon.", [], [])


@each("prefill")
def test_a_model_that_writes_the_opener_of_the_prompt_again(form: dict[str, Any]) -> None:
    opens, closes, answer, end = around(form)
    text = f"{form.get('again', opens)}Look it up.{closes}{answer}Noon.{end}"
    assert told(read(form, text, prefill=form["prefill"])) == ("Look it up.", "Noon.", [], [])
    assert told(read(form, text, reasoning="open")) == ("Look it up.", "Noon.", [], [])


@each("opens")
def test_a_model_whose_prompt_always_opens_the_section(form: dict[str, Any]) -> None:
    opens, closes, answer, end = around(form)
    rest = f"Look it up.{closes}{answer}Noon.{end}"
    for text in (rest, opens + rest):
        assert told(read(form, text, model=form["opens"])) == ("Look it up.", "Noon.", [], [])
    # What the prompt itself says counts more, and so does the caller.
    assert told(read(form, "Noon.", model=form["opens"], prefill="<think>\n\n</think>\n\n")) == ("", "Noon.", [], [])
    assert told(read(form, "Noon.", model=form["opens"], reasoning="off")) == ("", "Noon.", [], [])


@each()
def test_only_a_closer(form: dict[str, Any]) -> None:
    # Nobody said that the section was open, so what was shown stays text; the closer is never shown.
    _, closes, answer, end = around(form)
    if form.get("words"):
        return  # a sentence or a fence is text where it closes nothing
    reasoning, text, calls, rejected = told(read(form, f"Look it up.{closes}{answer}Noon.{end}"))
    assert (reasoning, text.replace("\n", ""), calls, rejected) == ("", "Look it up.Noon.", [], [])


@each()
def test_a_doubled_opener_or_closer_counts_once(form: dict[str, Any]) -> None:
    opens, closes, answer, end = around(form)
    if form.get("words"):
        return
    for start, stop in ((opens + form.get("again", opens), closes), (opens, closes + closes)):
        assert told(read(form, f"{start}Look it up.{stop}{answer}Noon.{end}")) == ("Look it up.", "Noon.", [], [])


@each("call")
def test_a_call_behind_a_closed_section(form: dict[str, Any]) -> None:
    if not there(form, "call_needs"):
        return
    opens, closes, _, _ = around(form)
    result = read(form, f"{opens}Look it up.{closes}{form['call']}")
    assert told(result) == ("Look it up.", "", ["find rook"], [])
    assert not result.calls[0].repairs


@each("call")
def test_a_call_ends_a_section_without_its_closer(form: dict[str, Any]) -> None:
    if not there(form, "call_needs"):
        return
    opens, _, _, _ = around(form)
    ways: list[tuple[str, dict[str, Any]]] = [(f"{opens}Look it up.{form['call']}", {})]
    if "prefill" in form:
        ways.append((f"{form.get('first', '')}Look it up.{form['call']}", {"prefill": form["prefill"]}))
    for text, options in ways:
        result = read(form, text, **options)
        assert told(result) == ("Look it up.", "", ["find rook"], [])
        # A call that only words open might be a draft until the end of the stream; a token says that it is none.
        held = ["unclosed_reasoning"] if form.get("held") else []
        assert [repair.kind for repair in result.calls[0].repairs] == held
        if held:
            assert told(read(form, text, "length", **options))[1:] == ("", [], [])


@each("call")
def test_a_draft_in_a_closed_section_never_runs(form: dict[str, Any]) -> None:
    if not there(form, "call_needs") or not form.get("held"):
        return
    opens, closes, answer, end = around(form)
    result = read(form, f"{opens}Maybe {form['call']} or not.{closes}{answer}Noon.{end}")
    assert result.text.strip() == "Noon."
    assert not [event for event in result.events if isinstance(event, ToolCall)]
    assert result.reasoning.strip() == f"Maybe {form['call']} or not."


@each()
def test_a_section_that_is_cut(form: dict[str, Any]) -> None:
    opens, closes, _, _ = around(form)
    for finish in ("length", "stop"):
        assert told(read(form, f"{opens}Look it up.", finish)) == ("Look it up.", "", [], [])
    # A piece of the closer is never visible text.
    mark = closes.strip()
    for at in range(1, len(mark)):
        result = read(form, f"{opens}Look it up.{mark[:at]}", "length")
        assert result.reasoning.strip().startswith("Look it up.")
        assert (result.text, result.calls, result.rejected) == ("", [], [])


@each()
def test_a_section_whose_opener_is_cut(form: dict[str, Any]) -> None:
    opens, *_ = around(form)
    mark = opens.strip()
    for at in range(3, len(mark)):
        result = read(form, mark[:at], "length")
        # A recipient that was cut could have been a tool.
        assert (result.calls, [call.name for call in result.rejected if call.reason != "truncated"]) == ([], [])
        # A word of the header is no answer, and one or two characters of a token are nothing yet.
        if mark.startswith("<") and not mark[:at].endswith(("<", "<|")):
            assert result.text == ""


@each()
def test_reasoning_that_is_switched_off_is_text(form: dict[str, Any]) -> None:
    opens, closes, answer, end = around(form)
    if closes.strip().startswith("</") and not answer:
        text = f"{opens}Look it up.{closes}\n\nNoon.{end}"
        assert read(form, text, reasoning="off").text == text


def test_a_server_that_puts_the_opener_into_the_content() -> None:
    # Two registered parsers split nothing: they write the opener before the whole output.
    text = "<think>Look it up.</think>\n\nNoon."
    assert scrub_all_ways(text, TOOLS, reasoning="off").text == text
    assert told(scrub_all_ways(text, TOOLS)) == ("Look it up.", "Noon.", [], [])
