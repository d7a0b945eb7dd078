"""The worked examples of every grammar file: alone, with all others on, and in every pair; each at every cut."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Final

import pytest

from fuzz.literals import GRAMMARS as FOLDER
from streamscrub import Grammar, GrammarError, StreamScrubber, scrub
from streamscrub.events import Scrubbed
from streamscrub.grammar import shipped

from .feeding import scrub_all_ways
from .test_cases import collapsed

GRAMMARS: Final = {path.stem: Grammar.load(path) for path in sorted(FOLDER.glob("*.toml"))}
EXAMPLES: Final = [(stem, example) for stem, grammar in GRAMMARS.items() for example in grammar.examples]


def check(example: dict[str, Any], result: Scrubbed) -> None:
    """Compare with what the example states; what it does not state is not compared, but for calls and rejections."""
    assert [(c.name, c.arguments) for c in result.calls] == [
        (c["name"], c["arguments"]) for c in example.get("calls", [])
    ]
    assert [call.reason for call in result.rejected] == example.get("rejected", [])
    if "visible" in example:
        assert collapsed(result.text) == collapsed(example["visible"])
    if "reasoning" in example:
        assert collapsed(result.reasoning) == collapsed(example["reasoning"])
    if "repaired" in example:
        assert any(call.repairs for call in result.calls) == example["repaired"]


def settings_of(example: dict[str, Any]) -> dict[str, Any]:
    return {"tools": example.get("tools"), "finish_reason": example.get("finish", "stop"), **example.get("options", {})}


def name_of(value: Any) -> str:
    return str(value["title"] if isinstance(value, dict) else value)


@pytest.mark.parametrize(("stem", "example"), EXAMPLES, ids=name_of)
def test_an_example_holds_with_all_grammars_on(stem: str, example: dict[str, Any]) -> None:
    check(example, scrub_all_ways(example["text"], **settings_of(example)))


@pytest.mark.parametrize(("stem", "example"), EXAMPLES, ids=name_of)
def test_an_example_holds_with_its_grammar_alone(stem: str, example: dict[str, Any]) -> None:
    check(example, scrub_all_ways(example["text"], **{"grammars": [GRAMMARS[stem].name], **settings_of(example)}))


@pytest.mark.parametrize(("stem", "example"), EXAMPLES, ids=name_of)
def test_an_example_holds_at_every_cut_in_two(stem: str, example: dict[str, Any]) -> None:
    text, settings = example["text"], settings_of(example)
    whole = scrub(text, **settings)
    for at in range(1, len(text)):
        halves = scrub_in_two(text, at, settings)
        assert (halves.text, halves.reasoning) == (whole.text, whole.reasoning)
        assert (halves.calls, halves.rejected) == (whole.calls, whole.rejected)


def scrub_in_two(text: str, at: int, settings: dict[str, Any]) -> Scrubbed:
    options = {key: value for key, value in settings.items() if key not in ("tools", "finish_reason")}
    scrubber = StreamScrubber(settings["tools"], **options)
    return Scrubbed([*scrubber.feed(text[:at]), *scrubber.feed(text[at:]), *scrubber.finish(settings["finish_reason"])])


@pytest.mark.parametrize("stem", sorted(GRAMMARS))
def test_the_examples_of_every_pair_hold(stem: str) -> None:
    for one, other in combinations(sorted(GRAMMARS), 2):
        if one != stem:
            continue
        names = [GRAMMARS[one].name, GRAMMARS[other].name]
        for example in (*GRAMMARS[one].examples, *GRAMMARS[other].examples):
            check(example, scrub(example["text"], **{"grammars": names, **settings_of(example)}))


@pytest.mark.parametrize("stem", sorted(GRAMMARS))
def test_every_file_says_what_it_is(stem: str) -> None:
    grammar = GRAMMARS[stem]
    assert grammar.name == stem
    assert grammar.examples
    assert {"title", "source"} <= grammar.data.keys()
    titles = [example["title"] for example in grammar.examples]
    assert len(titles) == len(set(titles)) <= 12


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_file_is_valid_and_read_in_two_parts_that_make_the_whole(name: str) -> None:
    grammar = shipped()[name]
    whole = Grammar.load(FOLDER / grammar.file)
    assert whole.data == grammar.data
    assert grammar.data is grammar.data  # the rest of the file is parsed once
    assert set(whole.data) - set(grammar.reads) <= {"render", "dialect", "wording", "example"}


# Separators that begin with what a name may hold, too.


@pytest.mark.parametrize("separator", [":", "::", "=>", "=", "...", "/", "#", "~>", "@", "args", "->", ", "])
def test_a_separator_may_begin_as_a_name_does(separator: str) -> None:
    source = f"""
name = "mine"
[[envelope]]
name = "mine"
open = ["<<call>>"]
close = ["<</call>>"]
chains = true
headers = ["{{name}}{separator}"]
separators = ["{separator}"]
[[body]]
envelope = ["mine"]
syntax = "json_arguments"
headed = true
"""
    mine = Grammar.parse(source.encode(), "mine.toml")
    text = f'<<call>>find_it{separator}{{"q": "a"}} ping {separator} {{}}<</call>>.'
    result = scrub_all_ways(text, grammars=[mine])
    assert [(call.name, call.arguments) for call in result.calls] == [("find_it", {"q": "a"}), ("ping", {})]
    assert (result.text, result.calls[0].repairs) == (".", ())


def test_an_opener_that_carries_a_name_without_a_body_for_it_raises_nothing() -> None:
    source = b"""
name = "mine"
envelope = [{ name = "mine", open = ["<my:call>"], close = ["</my:call>"], attributes = true }]
body = [{ envelope = ["mine"], syntax = "json_call" }]
"""
    mine = Grammar.parse(source, "mine.toml")
    call = '<my:call name="x">{"name": "find", "arguments": {}}</my:call>'
    assert [one.name for one in scrub_all_ways(call, grammars=[mine]).calls] == ["find"]
    assert scrub_all_ways('<my:call name="x"/>', grammars=[mine]).calls == []


def test_loading_a_name_says_how_a_shipped_grammar_is_chosen() -> None:
    with pytest.raises(GrammarError, match=r"shipped grammar, as in grammars=\['hermes'\]"):
        Grammar.load("hermes")
