"""Response templates: what compiles reads as it says, however the stream is cut; the rest is refused with a reason."""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamscrub import Grammar, GrammarError, StreamScrubber, scrub
from streamscrub.cli import _run_examples, main
from streamscrub.events import Scrubbed
from streamscrub.grammar import shipped
from streamscrub.templates.patterns import Unfit, ways
from streamscrub.writing import write_calls

from .feeding import feed_all_ways, scrub_all_ways
from .growth import assert_linear
from .templates import FORMS, PIECES, TOOLS, Spoken, spoken, stream_of, template_of
from .test_cases import CASES, collapsed, differences

TEMPLATES: Final[dict[str, dict[str, Any]]] = json.loads((CASES / "templates.json").read_text(encoding="utf-8"))
ANCHOR: Final = "<bot>"


def cases() -> list[dict[str, Any]]:
    lines = (CASES / "response_template.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    grammar = Grammar.from_response_template(case["response_template"])
    options = {"grammars": [grammar], "prefill": case["prefix"], **case["options"]}
    result = Scrubbed(feed_all_ways(case["text"], case["tools"], case["finish_reason"], **options))
    assert differences(case, result) == {} or case["contested"], result.events


# -- templates in use


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_in_use_passes_its_own_check(name: str) -> None:
    runs, problems = _run_examples(Grammar.from_response_template(TEMPLATES[name], f"my_{name}"))
    assert problems == []
    assert runs > 100


@pytest.mark.parametrize("name", TEMPLATES)
def test_calls_of_a_template_in_use_come_back(name: str) -> None:
    grammar = Grammar.from_response_template(TEMPLATES[name], f"my_{name}")
    calls: list[tuple[str, dict[str, Any]]] = [("find", {"q": "a b", "top": 3}), ("ping", {})]
    text = write_calls(grammar, calls, TOOLS)
    result = scrub_all_ways(text, TOOLS, grammars=[grammar], reasoning="off")
    assert [(call.name, call.arguments) for call in result.calls] == calls
    assert result.text.strip() == ""


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_in_use_survives_the_way_there_and_back(name: str) -> None:
    grammar = Grammar.from_response_template(TEMPLATES[name], f"my_{name}")
    again = Grammar.from_response_template(json.loads(json.dumps(grammar.to_response_template())), f"my_{name}")
    for example in (*grammar.examples, *again.examples):
        text, finish = example["text"], example.get("finish", "stop")
        for end in range(len(text) + 1):
            one = scrub(text[:end], TOOLS, finish_reason=finish, grammars=[grammar])
            assert one.events == scrub(text[:end], TOOLS, finish_reason=finish, grammars=[again]).events


def test_the_whole_prompt_may_be_the_prefill() -> None:
    grammar = Grammar.from_response_template(TEMPLATES["qwen2"])
    prompt = "<|im_start|>user\nWhat is <think>?<|im_end|>\n<|im_start|>assistant\n"
    result = scrub("Noon.", grammars=[grammar], prefill=prompt)
    assert (result.text, result.reasoning) == ("Noon.", "")
    result = scrub("Noon?</think>Noon.", grammars=[grammar], prefill=f"{prompt}<think>\n")
    assert (result.text, result.reasoning) == ("Noon.", "Noon?")


def test_messages_of_a_shipped_format_are_read_by_it() -> None:
    grammar = Grammar.from_response_template(TEMPLATES["inkling"], "my_inkling")
    assert grammar.data["needs"] == ["inkling"]
    assert set(grammar.data) == {"name", "title", "needs", "turn", "render", "example"}
    text = (
        "find<|content_thinking|>Look.<|end_message|><|message_model|><|content_text|>Looking.<|end_message|>"
        '<|message_model|>find<|content_invoke_tool_json|>{"name": "find", "args": {"q": "a"}}<|end_message|>'
    )
    prompt = "<|message_user|><|content_text|>Where is it?<|end_message|><|message_model|>"
    result = scrub_all_ways(text.removeprefix("find"), TOOLS, grammars=[grammar], prefill=prompt)
    assert (result.reasoning, result.text) == ("Look.", "Looking.")
    assert [(call.name, call.arguments, call.repairs) for call in result.calls] == [("find", {"q": "a"}, ())]
    # What is written is the template that its authors publish, but for keys that say nothing.
    written, known = grammar.to_response_template(), TEMPLATES["inkling"]
    for name, field in known["fields"].items():
        assert {key: written["fields"][name].get(key) for key in field if key != "content_args"} == {
            key: value for key, value in field.items() if key != "content_args"
        }
    assert written["start_anchor"] == known["start_anchor"]


def test_messages_of_a_shipped_format_cannot_mean_something_else() -> None:
    other = copy.deepcopy(TEMPLATES["inkling"])
    other["fields"]["content"]["open_pattern"] = other["fields"]["thinking"]["open_pattern"]
    with pytest.raises(GrammarError, match="inkling reads these messages as something else"):
        Grammar.from_response_template(other)


def test_a_list_of_calls_comes_back_as_one() -> None:
    grammar = Grammar.from_response_template(TEMPLATES["cohere"], "my_cohere")
    assert again(grammar).data == grammar.data
    text = write_calls(grammar, [("find", {"q": "a"}), ("ping", {})], TOOLS)
    opener, closer = "<|START_ACTION|>", "<|END_ACTION|>"
    assert json.loads(text.removeprefix(opener).removesuffix(closer)) == [
        {"tool_name": "find", "parameters": {"q": "a"}}, {"tool_name": "ping", "parameters": {}},
    ]  # fmt: skip


def test_tags_and_pairs_of_a_shipped_format_are_read_by_it() -> None:
    for name, needed in (("xai", "xai"), ("glm", "glm"), ("hunyuan", "hunyuan"), ("iquest_q1", "iquest_q1")):
        grammar = Grammar.from_response_template(shipped()[name].to_response_template(ANCHOR), f"my_{name}")
        assert needed in grammar.data["needs"]
        text = write_calls(grammar, [("find", {"q": "a"})], TOOLS)
        (call,) = scrub_all_ways(text, TOOLS, grammars=[grammar, "hermes"]).calls
        assert (call.name, call.arguments, call.repairs) == ("find", {"q": "a"}, ())


def test_a_response_may_begin_in_reasoning() -> None:
    grammar = Grammar.from_response_template(TEMPLATES["ernie"])
    for text in ("Hm.</think>Noon.", "<think>Hm.</think>Noon."):
        result = scrub_all_ways(text, grammars=[grammar])
        assert (result.text, result.reasoning) == ("Noon.", "Hm.")
    assert scrub("Noon.", grammars=[grammar], prefill="<think>\n\n</think>\n\n").text == "Noon."


def test_beside_others_a_template_does_not_decide_how_a_response_begins() -> None:
    grammar = Grammar.from_response_template(TEMPLATES["ernie"])
    with_all = [*shipped().values(), grammar]
    assert scrub("Noon.</think>One.", grammars=with_all).reasoning == "Noon."  # it was chosen
    assert scrub("Noon.").text == "Noon."


def test_a_template_speaks_beside_all_grammars() -> None:
    grammar = Grammar.from_response_template(template(tool_calls=call_field()))
    text = '<act>{"name": "ping", "arguments": {}}</act><tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    result = scrub_all_ways(text, TOOLS, grammars=[*shipped().values(), grammar])
    assert [call.grammar for call in result.calls] == ["response_template", "hermes"]


def test_a_shipped_opener_cannot_mean_something_else() -> None:
    field = call_field(open_pattern=r"<tool_call>(?P<name>\w+)\n", transform=NAMED)
    grammar = Grammar.from_response_template(template(tool_calls=field))
    assert len(scrub("<tool_call>ping\n{}</act>", TOOLS, grammars=[grammar]).calls) == 1
    with pytest.raises(GrammarError, match="opens calls of tool_call already"):
        scrub("", grammars=[grammar, "hermes"])


HEADERS: Final = {
    r'<act (?P<name>\w+) id="(?P<id>\w+)">': '<act find id="c1">',
    r'<act id="(?P<id>\w+)" name="(?P<name>\w+)">': '<act id="c1" name="find">',
    r"<act:(?P<name>\w+)\|[^>]*>": "<act:find|c1>",
    r"<act>(?P<id>functions\.(?P<name>\w+):\d+)\n": "<act>functions.find:1\n",
    r"<act>(?P<name>[^:]+):\d+\s*": "<act>find:1 ",
    r'<act (?P<id>\w+)" n="(?P<name>\w+)">': '<act c1" n="find">',
}


@pytest.mark.parametrize("pattern", HEADERS)
def test_a_header_may_hold_an_id(pattern: str) -> None:
    transform = {"id": "{id}", **NAMED}
    grammar = Grammar.from_response_template(template(tool_calls=call_field(open_pattern=pattern, transform=transform)))
    text = f'Look. {HEADERS[pattern]}{{"q": "a"}}</act>'
    for one in (grammar, again(grammar)):
        (call,) = scrub_all_ways(text, TOOLS, grammars=[one]).calls
        assert (call.name, call.arguments, call.repairs) == ("find", {"q": "a"}, ())
        assert call.model_id in ("c1", "functions.find:1", "find:1")
        assert _run_examples(one)[1] == []


def test_a_name_may_be_captured_under_any_name() -> None:
    transform = {"call_id": "x", "function": {"name": "{tool}", "arguments": "{content}"}, "id": "{ref}"}
    field = call_field(open_pattern=r"<act (?P<ref>\d+)\|(?P<tool>\w+)>", transform=transform)
    grammar = Grammar.from_response_template(template(tool_calls=field))
    (call,) = scrub_all_ways('<act 7|find>{"q": "a"}</act>', TOOLS, grammars=[grammar]).calls
    assert (call.name, call.arguments, call.model_id) == ("find", {"q": "a"}, "7")


def test_repeated_tags_make_a_list() -> None:
    field = call_field(
        open_pattern=r"<act=(?P<name>\w+)>",
        content="xml-inline",
        content_args={"tag_pattern": "<p=(?P<key>[^>]+)>(?P<value>.*?)</p>", "merge_duplicates": True},
        transform=NAMED,
    )
    grammar = Grammar.from_response_template(template(tool_calls=field))
    assert again(grammar).data == grammar.data
    item = {"type": "array", "items": {"type": "integer"}}
    tool = {"name": "sum", "parameters": {"type": "object", "properties": {"of": item, "by": {"type": "string"}}}}
    text = "<act=sum><p=of>1</p><p=by>a</p><p=of>2</p></act>"
    (call,) = scrub_all_ways(text, [tool], grammars=[grammar]).calls
    assert call.arguments == {"of": [1, 2], "by": "a"}
    assert call.repairs == ()


def test_a_soft_header_in_prose_is_text() -> None:
    field = call_field(open_pattern=r"<act (?P<name>\w+)>", transform=NAMED)
    grammar = Grammar.from_response_template(template(tool_calls=field))
    text = "Write <act thing> before the object."
    assert scrub_all_ways(text, TOOLS, grammars=[grammar]).text == text


def test_lines_that_are_none_are_no_call() -> None:
    field = call_field(open_pattern=r"<act (?P<name>\w+)>\n", content="kv-lines", transform=NAMED)
    grammar = Grammar.from_response_template(template(tool_calls=field))
    (rejected,) = scrub_all_ways("<act find>\nq: a\nand more\n</act>", TOOLS, grammars=[grammar]).rejected
    assert (rejected.reason, rejected.name) == ("malformed", "find")


# -- generated templates


def read_by(model: Spoken, pieces: list[tuple[str, Any]]) -> dict[str, Any]:
    return {
        "text": "".join(what for kind, what in pieces if kind == "text"),
        "reasoning": "".join(what for kind, what in pieces if kind == "think"),
        "calls": [what for kind, what in pieces if kind == "call"],
    }


def squeezed(text: str) -> str:
    """White space beside markup is judged by the rules for all grammars."""
    return "".join(text.split())


@given(model=spoken(), pieces=PIECES)
def test_a_stream_is_read_as_its_template_says(model: Spoken, pieces: list[tuple[str, Any]]) -> None:
    grammar = Grammar.from_response_template(template_of(model))
    # Values that look like markup of the form itself are a matter of the body syntaxes, which have tests of their own.
    pieces = [(kind, plain(what) if kind == "call" and model.form in BARE else what) for kind, what in pieces]
    result = scrub_all_ways(stream_of(model, pieces), TOOLS, grammars=[grammar])
    expected = read_by(model, pieces)
    assert [(call.name, call.arguments) for call in result.calls] == expected["calls"]
    assert result.rejected == []
    assert squeezed(result.text) == squeezed(expected["text"])
    assert squeezed(result.reasoning) == squeezed(expected["reasoning"])


BARE: Final = ("lines", "tags", "pairs")


def plain(call: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    name, arguments = call
    kept = {key: value.replace("<", "") if isinstance(value, str) else value for key, value in arguments.items()}
    return name, kept


@given(model=spoken(), pieces=PIECES)
def test_template_to_grammar_to_template_reads_the_same(model: Spoken, pieces: list[tuple[str, Any]]) -> None:
    grammar = Grammar.from_response_template(template_of(model))
    text = stream_of(model, pieces)
    for end in (len(text), len(text) * 2 // 3, len(text) // 3):
        for finish in ("stop", "length"):
            one = scrub(text[:end], TOOLS, finish_reason=finish, grammars=[grammar])
            assert one.events == scrub(text[:end], TOOLS, finish_reason=finish, grammars=[again(grammar)]).events


@given(model=spoken(), pieces=PIECES, data=st.data())
def test_a_damaged_stream_is_read_alike_however_it_is_cut(
    model: Spoken, pieces: list[tuple[str, Any]], data: st.DataObject
) -> None:
    grammar = Grammar.from_response_template(template_of(model))
    text = stream_of(model, pieces) + stream_of(model, [("call", ("find", {"q": "vx"}))])
    for _ in range(data.draw(st.integers(1, 3))):
        start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        moved = data.draw(st.integers(0, len(text)))
        text = data.draw(st.sampled_from((text[:start] + text[end:], text[:moved] + text[start:end] + text[moved:])))
    scrub_all_ways(text[:2000], TOOLS, data.draw(st.sampled_from(("stop", "length"))), grammars=[grammar])


@given(model=spoken())
def test_a_generated_template_passes_its_own_check(model: Spoken) -> None:
    grammar = Grammar.from_response_template(template_of(model))
    for example in grammar.examples:
        result = scrub(example["text"], finish_reason=example.get("finish", "stop"), grammars=[grammar])
        assert [{"name": call.name, "arguments": call.arguments} for call in result.calls] == example["calls"]


def test_the_strategy_covers_every_content() -> None:
    assert len(FORMS) == 8


def again(grammar: Grammar) -> Grammar:
    return Grammar.from_response_template(json.loads(json.dumps(grammar.to_response_template())), grammar.name)


# -- what is refused

WHOLE: Final = {"type": "function", "function": "{content}"}
NAMED: Final = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}


def call_field(**more: Any) -> dict[str, Any]:
    field: dict[str, Any] = {"open": "<act>", "close": "</act>", "content": "json", "transform": WHOLE, **more}
    if "open_pattern" in more:
        del field["open"]
    if "close_pattern" in more:
        del field["close"]
    return field


def template(**fields: Any) -> dict[str, Any]:
    return {"start_anchor": ANCHOR, "fields": {"content": {}, **fields}}


def tags_field(pattern: Any, **more: Any) -> dict[str, Any]:
    args = {"tag_pattern": pattern, **more}
    return call_field(open_pattern=r"<act (?P<name>\w+)>", content="xml-inline", content_args=args, transform=NAMED)


TAG: Final = "<p=(?P<key>[^>]+)>(?P<value>.*?)</p>"
REFUSED: Final[list[tuple[Any, str, str]]] = [
    ([], "", "a mapping, not list"),
    ({}, "fields", "not empty"),
    ({"fields": {"content": {}}}, "start_anchor", "is missing"),
    ({"start_anchor": "<bot>", "start_anchor_pattern": "x", "fields": {"content": {}}}, "start_anchor", "both"),
    ({**template(), "version": 2}, "version", "only version"),
    ({**template(), "regions": {}}, "regions", "unknown key"),
    ({**template(), "defaults": 1}, "defaults", "mapping"),
    ({**template(), "start_anchor_pattern": "<bot>.*", "start_anchor": None}, "start_anchor", "both"),
    ({"start_anchor_pattern": "<bot>.*x", "fields": {"content": {}}}, "start_anchor", "more than a literal"),
    (template(content={"opens": "<a>"}), "fields.content.opens", "unknown key"),
    (template(content={"content": "yaml"}), "fields.content.content", "is none of"),
    (template(content={"content": "json"}), "fields.content.content", "visible text is text"),
    (template(content={"close": ""}), "fields.content.close", "not empty"),
    (template(content={"close": []}), "fields.content.close", "not empty"),
    (template(content={"close": "x"}), "fields.content.close", "too short"),
    (template(content={"close": "end"}), "fields.content.close", "too short"),
    (template(content={"close": "<" + "x" * 80}), "fields.content.close", "64 are the most"),
    (template(content={"close": "<\ud800>"}), "fields.content.close", "surrogate"),
    (template(content={"close_pattern": "(<e>)\\1"}), "fields.content.close_pattern", "back-reference"),
    (template(citations={"open": "<c>", "close": "</c>"}), "fields.citations", "no event carries"),
    (template(thinking={}), "fields", "have no opener"),
    ({"start_anchor": "<bot>", "fields": {"thinking": {}}}, "fields.thinking.open", "would take the answer"),
    (template(thinking={"open": "<m>", "content": "json"}), "fields.thinking.content", "reasoning is text"),
    (template(thinking={"open": "<m>", "join": ""}), "fields.thinking.join", "needs repeats"),
    (template(thinking={"open": "<m>", "repeats": 1}), "fields.thinking.repeats", "true or false"),
    (template(thinking={"open_pattern": "[^<]*<m>"}), "fields.thinking.open", "more than a literal"),
    (template(thinking={"open_pattern": "(?i)<m>"}), "fields.thinking.open_pattern", "flags"),
    (template(thinking={"open_pattern": "<m>(?<=x)"}), "fields.thinking.open_pattern", "look-behind"),
    (template(thinking={"open_pattern": "<m>(?!x)"}), "fields.thinking.open_pattern", "negative look-around"),
    (template(thinking={"open_pattern": "(?:<m>)+"}), "fields.thinking.open_pattern", "repeated group"),
    (template(thinking={"open_pattern": "(<m>"}), "fields.thinking.open_pattern", "no regular expression"),
    (template(thinking={"open_pattern": "[abcd][abcd][abcd]"}), "fields.thinking.open_pattern", "more than 16"),
    (template(thinking={"open_pattern": r"\b<m>"}), "fields.thinking.open_pattern", "word boundaries"),
    (template(tool_calls=call_field(content="text")), "fields.tool_calls.content", "no arguments"),
    (template(tool_calls=call_field(transform={"function": {"name": "run", "arguments": "{content}"}})),
     "fields.tool_calls.transform", "one placeholder"),
    (template(tool_calls=call_field(transform={"function": 3})), "fields.tool_calls.transform", "has no function"),
    (template(tool_calls=call_field(transform=NAMED)), "fields.tool_calls.transform", "is no key"),
    (template(tool_calls=call_field(transform=None, transform_each=True)),
     "fields.tool_calls.transform_each", "needs a transform"),
    (template(tool_calls=call_field(content_args={"lax": True})), "fields.tool_calls.content_args.lax", "no such"),
    (template(tool_calls=call_field(content_args={"string_delims": [["<q>", "</q>"]]})),
     "fields.tool_calls.content_args.string_delims", "the same"),
    (template(tool_calls=call_field(open_pattern=r"<act .*>")), "fields.tool_calls.open_pattern", "free text"),
    (template(tool_calls=call_field(open_pattern=r"(?P<name>\w+)\(", transform=NAMED)),
     "fields.tool_calls.open_pattern", "begin with a literal"),
    (template(tool_calls=call_field(open_pattern=r"<act (?P<tool>\w+)>", transform=NAMED)),
     "fields.tool_calls.transform", "must take the name from the opener"),
    (template(tool_calls=call_field(open_pattern=r"<act (?P<name>\w+) (?P<id>\w+) (?P<x>\w+)>", transform=NAMED)),
     "fields.tool_calls.open_pattern", "more than the name and the id"),
    (template(tool_calls=call_field(open_pattern=r"<act (?P<name>\w+)=>", transform=NAMED)),
     "fields.tool_calls.open_pattern", "could be part of the name"),
    (template(tool_calls=call_field(open_pattern=r"<act (?P<name>\w+)[^>]*>", transform=NAMED)),
     "fields.tool_calls.open_pattern", "free text behind the name"),
    (template(tool_calls=call_field(open_pattern=r"<act (?P<name>\w+)>|<do>", transform=NAMED)),
     "fields.tool_calls.open_pattern", "different headers"),
    (template(tool_calls=call_field(content="python-call-list", transform=NAMED, transform_each=False)),
     "fields.tool_calls.transform", "itself"),
    (template(tool_calls=call_field(content="kv-lines")), "fields.tool_calls.open_pattern", "captures no name"),
    (template(tool_calls=call_field(content="kv-lines", open_pattern=r"<act (?P<name>\w+)>", close_pattern=r"\Z",
                                    transform=NAMED)), "fields.tool_calls.close", "needs a closer"),
    (template(tool_calls=tags_field(None)), "fields.tool_calls.content_args.tag_pattern", "must be a pattern"),
    (template(tool_calls=tags_field("<p>(?P<value>.*?)</p>")),
     "fields.tool_calls.content_args.tag_pattern", "groups key and value"),
    (template(tool_calls=tags_field("<p=(?P<key>\\w+)[^>]*>(?P<value>.*?)</p>")),
     "fields.tool_calls.content_args.tag_pattern", "free text"),
    (template(tool_calls=tags_field(TAG, value_parser={"name": "xml-inline"})),
     "fields.tool_calls.content_args.value_parser", "values inside values"),
    (template(tool_calls=tags_field(TAG, value_parser={"args": 5})),
     "fields.tool_calls.content_args.value_parser.args", "plain values"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "key", "problem"), REFUSED, ids=[f"{key}-{problem}" for _, key, problem in REFUSED])
def test_what_has_no_linear_reading_is_refused_by_name(bad: Any, key: str, problem: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_response_template(bad)
    assert caught.value.key.startswith(key)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 400


def test_free_text_before_a_marker_is_refused() -> None:
    with pytest.raises(GrammarError, match=r"fields\.thinking\.open: is more than a literal"):
        Grammar.from_response_template(template(thinking={"open_pattern": "<muse>[^<]*<deep>", "close": "</deep>"}))


def test_a_shipped_name_is_taken() -> None:
    with pytest.raises(GrammarError, match="is the name of a shipped grammar"):
        Grammar.from_response_template(template(), "hermes")
    with pytest.raises(TypeError, match="string that is not empty"):
        Grammar.from_response_template(template(), "")


# Grammars that a template cannot say, and why.
UNWRITTEN: Final = {
    "apertus": "keyed_call is no content", "beam": "is no marker", "chat": "neither reasoning nor calls",
    "code": "no marker and a list", "cohere_cofl": "typed_values is no content",
    "elements": "neither reasoning nor calls", "functionary": "is no marker",
    "gemini_tool_code": "no marker and a list", "gigachat3": "only a text may be looked ahead for",
    "json": "is no marker", "k2_horizon": "the type of a value", "kimi_k3": "is no marker", "llama": "several objects",
    "mimo": "escaped values", "minicpm5": "escaped values", "minimax_m1": "several objects",
    "minimax_m3": "nested is no content", "muse": "names the tool twice", "native": "neither reasoning nor calls",
    "olmo3": "no marker and a list",
    "pformat": "pformat is no content", "plamo3": "longer than a marker", "pythonic": "no marker and a list",
    "react": "is no marker", "results": "neither reasoning nor calls", "step3": "69 bytes",
    "tool_call": "neither reasoning nor calls",
}  # fmt: skip


@pytest.mark.parametrize("grammar", shipped().values(), ids=lambda grammar: grammar.name)
def test_a_shipped_grammar_writes_a_template_or_says_why_not(grammar: Grammar) -> None:
    if grammar.name in UNWRITTEN:
        with pytest.raises(GrammarError, match=UNWRITTEN[grammar.name]):
            grammar.to_response_template("<|im_start|>assistant\n")
        return
    written = grammar.to_response_template("<|im_start|>assistant\n")
    compiled = Grammar.from_response_template(written, f"my_{grammar.name}")
    # A template knows of no model: what it states holds for its own.
    own = any(one.get("needs_model") for one in grammar.data.get("reasoning", ()))
    model = {"model": grammar.models[0].rstrip("*")} if own else {}
    for example in grammar.examples:
        options = {"finish_reason": example.get("finish", "stop"), **model, **example.get("options", {})}
        if not own and "model" in options:
            continue
        one = scrub(example["text"], example.get("tools"), grammars=[grammar], **options)
        two = scrub(example["text"], example.get("tools"), grammars=[compiled], **options)
        assert [(call.name, call.arguments) for call in one.calls] == [(c.name, c.arguments) for c in two.calls]
        assert [call.reason for call in one.rejected] == [call.reason for call in two.rejected]
        assert (one.text, one.reasoning) == (two.text, two.reasoning)


def test_a_grammar_that_does_not_say_where_turns_begin_needs_to_be_told() -> None:
    with pytest.raises(GrammarError, match="start_anchor"):
        shipped()["hermes"].to_response_template()
    assert shipped()["hermes"].to_response_template(["<a>", "<b>"])["start_anchor"] == ["<a>", "<b>"]


# -- hostile templates


NESTED: dict[str, Any] = {}
for _ in range(2000):
    NESTED = {"function": NESTED}
HOSTILE: Final[dict[str, Any]] = {
    "a long pattern": template(thinking={"open_pattern": "<m>" * 100_000}),
    "a catastrophic pattern": template(thinking={"open_pattern": "(?:(?:a+)+)+<m>"}),
    "deep groups": template(thinking={"open_pattern": "(" * 400 + "<m>" + ")" * 400}),
    "groups in groups": template(thinking={"open_pattern": "(" * 60 + "<m>" + ")" * 60}),
    "many alternatives": template(thinking={"open_pattern": "|".join(f"<{n}>" for n in range(150))}),
    "alternatives in a row": template(thinking={"open_pattern": "(?:a|b)" * 140}),
    "a large repeat": template(thinking={"open_pattern": "<m>" + "x{1000000}" * 5}),
    "a large class": template(thinking={"open_pattern": "[" + "".join(chr(n) for n in range(200, 900)) + "]<m>"}),
    "many literals": template(content={"close": [f"<e{n}>" for n in range(100_000)]}),
    "a long literal": template(content={"close": "<" + "e" * 1_000_000 + ">"}),
    "many fields": {"start_anchor": "<bot>", "fields": {f"f{n}": {} for n in range(100_000)}},
    "a long key": template(content={"k" * 1_000_000: 1}),
    "a deep transform": template(tool_calls=call_field(transform=NESTED)),
    "a long placeholder": template(
        tool_calls=call_field(transform={"name": "{" + "a." * 500_000 + "a}", "arguments": "{b}"})
    ),
    "wrong types": template(tool_calls={"open": 3, "close": {}, "content": [], "transform": 5}),
    "no text": template(content={"close": [None]}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_template_is_refused(what: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_response_template(HOSTILE[what])
    assert len(str(caught.value)) < 1000


JUNK: Final = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 2),
        st.text("<>/|()[]{}?P:=\\\\swd.*+^$ \n{}nametag", max_size=24),
        st.sampled_from(("json", "xml-inline", "kv-lines", "python-call-list", "text", "{content}", "{name}")),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("open", "close", "name")), inner),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a template."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for key, one in inner for below in places(one, (*path, key)))][bool(not path) :]


@settings(max_examples=500)
@given(name=st.sampled_from(sorted(TEMPLATES)), data=st.data())
def test_a_wrong_template_is_a_grammar_error_and_nothing_else(name: str, data: st.DataObject) -> None:
    wrong = copy.deepcopy(TEMPLATES[name])
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(wrong)))
        at = wrong
        for key in path[:-1]:
            at = at[key]
        if data.draw(st.booleans()):
            at[path[-1]] = data.draw(JUNK)
        elif isinstance(at, dict):
            at[data.draw(st.sampled_from(("open", "open_pattern", "close_pattern", "content", "transform")))] = at.pop(
                path[-1]
            )
    try:
        grammar = Grammar.from_response_template(wrong)
        json.dumps(grammar.data)
        scrub_all_ways("a <tool_call>x</tool_call> <think>b", TOOLS, grammars=[grammar])
    except GrammarError:
        return
    with suppress(GrammarError):
        grammar.to_response_template()


def test_a_long_template_costs_time_in_proportion() -> None:
    def refuse(size: int) -> None:
        names = {"name": "{" + "a." * size + "a}", "arguments": "{b}"}
        with pytest.raises(GrammarError):
            Grammar.from_response_template(template(tool_calls=call_field(transform=names)))

    assert_linear(lambda size: lambda: refuse(size), "a placeholder", sizes=(50_000,))


def test_a_pattern_that_would_run_away_is_only_read() -> None:
    """The tag pattern would take quadratic time as a regular expression; here it becomes literals."""
    pattern = r"<p=(?P<key>[^>]+)>\s*(?P<value>.*?)\s*</p>"
    grammar = Grammar.from_response_template(template(tool_calls=tags_field(pattern)))

    def feed(size: int) -> None:
        text = "<act find>" + "<p=q>" * size
        scrubber = StreamScrubber(TOOLS, grammars=[grammar])
        for at in range(0, len(text), 64):
            scrubber.feed(text[at : at + 64])
        scrubber.finish("length")

    assert_linear(lambda size: lambda: feed(size), "keys without an end", sizes=(5_000,))


def test_a_pattern_becomes_pieces() -> None:
    found = ways(r"\s*(?:<w>\s*)?<f=(?P<name>[^>]+)>(?=x)$")
    assert [[(piece.kind, piece.text) for piece in way] for way in found] == [
        [("gap", ""), ("text", "<f="), ("field", "name"), ("text", ">"), ("ahead", "x"), ("end", "")],
        [("gap", ""), ("text", "<w>"), ("gap", ""), ("text", "<f="), ("field", "name"), ("text", ">"),
         ("ahead", "x"), ("end", "")],
    ]  # fmt: skip
    with pytest.raises(Unfit, match="only a text"):
        ways("a(?=.*)")
    with pytest.raises(Unfit, match="pieces"):
        ways("(?:a.)" * 1 + ".b" * 80)
    assert [way[0].text for way in ways("x{1,3}")] == ["x", "xx", "xxx"]


# -- files and the command line


def test_a_tokenizer_file_is_a_grammar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"model_max_length": 1, "response_template": TEMPLATES["qwen2"]}), encoding="utf-8")
    assert Grammar.load(path).name == "response_template"
    assert scrub("<think>a</think>b", grammars=[str(path)]).reasoning == "a"
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.startswith("ok   response_template")
    wire = tmp_path / "wire.txt"
    wire.write_text("<think>a</think>b", encoding="utf-8")
    assert main(["scrub", str(wire), "--grammar", str(path)]) == 0
    assert capsys.readouterr().out == "b"
    assert main(["grammars", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == Grammar.load(path).data
    alone = tmp_path / "template.json"
    alone.write_text(json.dumps(TEMPLATES["qwen2"]), encoding="utf-8")
    assert Grammar.load(alone).data == Grammar.load(path).data


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "is no JSON"),
        ("[1]", "is not there"),
        ('{"response_schema": {"type": "object"}}', "response_schema is an older format"),
        ('{"response_template": 3}', "a mapping, not int"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_file_without_a_template_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, problem: str
) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(GrammarError, match=problem):
        Grammar.load(path)
    assert main(["check", str(path)]) == 1
    assert "FAIL" in capsys.readouterr().out


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer_config.json"
    path.write_bytes(b" " * (8 * 1024 * 1024 + 1))
    with pytest.raises(GrammarError, match="larger than"):
        Grammar.load(path)


def test_a_compiled_template_travels() -> None:
    grammar = Grammar.from_response_template(TEMPLATES["gemma4"])
    scrubber = StreamScrubber(TOOLS, grammars=[grammar])
    scrubber.feed("<|tool_call>call:fi")
    other = copy.deepcopy(scrubber)
    events = other.feed('nd{q:<|"|>a<|"|>}<tool_call|>')
    assert [event for event in events if type(event).__name__ == "ToolCall"]


# -- against the parser of the format's authors


def reference(template: dict[str, Any], text: str, prefix: str, tools: list[Any]) -> dict[str, Any]:
    parser: Any = importlib.import_module("transformers.utils.chat_parsing")
    found: dict[str, Any] = parser.parse_response(text, template, prefix=prefix, tools=tools)
    return found


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(model=spoken(), pieces=PIECES)
def test_the_reference_parser_reads_the_same(model: Spoken, pieces: list[tuple[str, Any]]) -> None:
    """For what is well formed. The classes of difference are listed in docs/response-templates.md."""
    pytest.importorskip("transformers.utils.chat_parsing")
    pieces = [(kind, plain(what) if kind == "call" and model.form in BARE else what) for kind, what in pieces]
    if model.form == "json_list":
        pieces = pieces[: next((n + 1 for n, (kind, _) in enumerate(pieces) if kind == "call"), len(pieces))]
    if model.form == "python":
        pieces = pieces[: next((n + 1 for n, (kind, _) in enumerate(pieces) if kind == "call"), len(pieces))]
    compiled, text = template_of(model), stream_of(model, pieces)
    theirs = reference(compiled, text, "", TOOLS)
    ours = scrub(text, TOOLS, grammars=[Grammar.from_response_template(compiled)])
    calls = theirs.get("tool_calls", [])
    assert [(call.name, call.arguments) for call in ours.calls] == [
        (call["function"]["name"], call["function"]["arguments"]) for call in calls
    ]
    assert squeezed(ours.text) == squeezed(theirs.get("content", ""))
    assert squeezed(ours.reasoning) == squeezed(theirs.get("thinking", theirs.get("reasoning_content", "")))


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_the_reference_parser_on_the_cases(case: dict[str, Any]) -> None:
    """Where the two differ the case says so in its note, or the difference is of a class that the page lists."""
    pytest.importorskip("transformers.utils.chat_parsing")
    tools = [{"type": "function", "function": tool} for tool in case["tools"] or ()]
    try:
        theirs = reference(case["response_template"], case["text"], case["prefix"], tools)
    except ValueError:
        assert case["expect"]["rejected"] or case["expect"]["repaired"] or "string" in case["phenomenon"]
        return
    calls = [{"name": one["function"]["name"], "arguments": one["function"]["arguments"]}
             for one in theirs.get("tool_calls", [])]  # fmt: skip
    if case["expect"]["rejected"]:
        assert calls != case["expect"]["calls"]
    else:
        assert calls == case["expect"]["calls"]
    assert collapsed(theirs.get("content", "")) in collapsed(case["expect"]["text"]) or case["contested"]


# These write a list of calls behind one opener, which the reference parser hands out as a list in the list.
LISTS: Final = {"apriel", "cohere", "granite", "lfm2", "nemotron", "phi4"}


def written() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Of each grammar that has a template and writes calls: its name, the template, and a call as it writes it."""
    for grammar in shipped().values():
        with suppress(ValueError):
            template = grammar.to_response_template(ANCHOR)
            yield grammar.name, template, write_calls(grammar, [("find", {"q": "a b", "top": 3})], TOOLS)


@pytest.mark.slow
def test_the_reference_parser_reads_what_grammars_write() -> None:
    pytest.importorskip("transformers.utils.chat_parsing")
    tools = [{"type": "function", "function": tool} for tool in TOOLS]
    for name, template, text in written():
        (call,) = reference(template, text, "", tools)["tool_calls"]
        if name in LISTS:
            (call,) = call
        assert call["function"] == {"name": "find", "arguments": {"q": "a b", "top": 3}}, name


def test_most_grammars_have_a_template_and_write_calls() -> None:
    assert len(list(written())) > 20
