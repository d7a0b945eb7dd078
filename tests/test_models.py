"""Model ids and the grammars they stand for: as written by every provider, whatever the order of the files."""

from __future__ import annotations

import random
import tomllib
from itertools import permutations
from pathlib import Path
from typing import Any, Final

import pytest

from streamscrub import Grammar
from streamscrub.grammar import shipped
from streamscrub.modelids import spellings
from streamscrub.models import _rank, explain, grammars_for


def best(model: str) -> str:
    found = grammars_for(model)
    return found[0][0].name if found else ""


def made(name: str, *models: str) -> Grammar:
    return Grammar(name, {"name": name, "models": list(models)}, f"{name}.toml")


TABLE: Final[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "model_ids.toml").read_text(encoding="utf-8"))
MODELS: Final = [(model, grammar) for grammar, models in TABLE["leads"].items() for model in models.split()]
TO_COME: Final = frozenset(TABLE["to_come"].split())


@pytest.mark.parametrize(("model", "expected"), MODELS)
def test_a_model_leads_to_its_grammar(model: str, expected: str) -> None:
    if expected in shipped():
        assert best(model) == expected
    else:
        # Its file is to come. Till then an older file may read it, but none that a test names as wrong.
        assert expected in TO_COME


def test_the_table_is_long_and_names_grammars() -> None:
    models = [model for model, _ in MODELS]
    assert len(models) == len(set(models)) >= 250
    assert set(TABLE["leads"]) - TO_COME <= set(shipped())
    # A grammar whose models are known has rows.
    known = {name for name, grammar in shipped().items() if grammar.models}
    assert sorted(known - set(TABLE["leads"])) == []


def test_a_file_that_has_come_is_no_longer_to_come() -> None:
    assert sorted(TO_COME & shipped().keys()) == []


@pytest.mark.parametrize(("model", "expected"), TABLE["either"].items())
def test_a_shared_form_leads_to_one_of_its_grammars(model: str, expected: list[str]) -> None:
    assert best(model) in expected


@pytest.mark.parametrize("model", TABLE["nowhere"].split())
def test_an_id_that_only_looks_alike_leads_nowhere(model: str) -> None:
    assert [(grammar.name, pattern) for grammar, pattern in grammars_for(model)] == []


@pytest.mark.parametrize(("model", "wrong"), TABLE["never"].items())
def test_an_id_is_not_caught_by_a_wide_pattern(model: str, wrong: list[str]) -> None:
    assert best(model) not in wrong


@pytest.mark.parametrize("model", [model for model, _ in MODELS] + list(TABLE["either"]))
def test_no_two_files_claim_a_model_equally(model: str) -> None:
    # Where the best two patterns said equally much, the alphabet would decide.
    own = [name for name in spellings(model) if "/" not in name]
    ranks = [_rank(pattern, own)[:-1] for _, pattern in grammars_for(model)[:2]]
    assert len(set(ranks)) == len(ranks), grammars_for(model)[:2]


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("openrouter/anthropic/claude-3.7", "claude-3.7"),
        ("OpenRouter/Anthropic/Claude-3.7:free", "claude-3.7"),
        ("anthropic/claude-sonnet-4:beta", "claude-sonnet-4"),
        ("us.anthropic.claude-sonnet-4-v1:0", "claude-sonnet-4-v1:0"),
        ("  Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8 ", "qwen3-coder-30b-a3b-instruct"),
        ("moonshotai/Kimi-K2-Instruct-GGUF", "kimi-k2-instruct"),
        ("qwen3:8b", "qwen3-8b"),
        ("qwen3-coder:30b-a3b-q4_K_M", "qwen3-coder-30b-a3b"),
        ("gpt-oss:latest", "gpt-oss"),
        ("/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "qwen2.5-7b-instruct"),
        ("C:\\models\\GLM-4.5-Air-UD-Q4_K_XL-00001-of-00002.gguf", "glm-4.5-air"),
        ("casperhansen/mistral-nemo-awq", "mistral-nemo"),
        ("deepseek-v3-AWQ-4bit", "deepseek-v3"),
        ("gemma-3-27b-it-qat-4bit-mlx", "gemma-3-27b-it-qat"),
        ("glm-4.6-nvfp4", "glm-4.6"),
        ("llama-3.3-70b-w4a16", "llama-3.3-70b"),
        ("llama-3.3-70b-instruct-4.65bpw-exl2", "llama-3.3-70b-instruct"),
        ("mistral-small-fp8-dynamic", "mistral-small"),
        ("bartowski/Qwen_Qwen3-32B-GGUF", "qwen3-32b"),
        ("accounts/fireworks/models/glm-4p5", "glm-4.5"),
        ("kimi_k2", "kimi-k2"),
        ("mlx-community/Qwen3-8B-q4", "qwen3-8b"),
    ],
)
def test_what_others_add_to_an_id_is_ignored(written: str, plain: str) -> None:
    assert plain in spellings(written)
    assert best(written) == best(plain) != ""


@pytest.mark.parametrize(
    "model", ["", " ", "/", "//", ":free", "-gguf", ".", "\\", "[", "*", "?" * 50, "\x00", "é/\ud800"]
)
def test_odd_ids_name_nothing_and_raise_nothing(model: str) -> None:
    assert grammars_for(model) == []
    assert "no grammar names this model: all grammars are on, none preferred" in explain(model)


def test_an_id_that_is_nothing_but_a_suffix_stays() -> None:
    assert spellings("fp8") == ("fp8",)
    assert spellings("-gguf") == ("-gguf",)


def test_a_name_that_ends_like_a_quantisation_stays() -> None:
    assert spellings("IQuestLab/IQuest-Q1-GGUF") == ("iquestlab/iquest-q1", "iquest-q1")


def test_what_is_too_long_for_an_id_is_not_taken_apart() -> None:
    for text in ("Qwen3-8B" + "-q4" * 9999, "/" * 9999 + "qwen3-8b"):
        assert spellings(text) == (text.lower(),)


def test_only_what_stands_before_an_id_is_an_organisation() -> None:
    assert spellings("plamo-3-nict_chat") == ("plamo-3-nict_chat", "plamo-3-nict-chat")
    assert spellings("a.b_c.model-1")[0] == "a.b_c.model-1"


def test_a_local_tag_is_tried_both_ways() -> None:
    assert spellings("qwen3:8b") == ("qwen3:8b", "qwen3-8b")


def test_the_pattern_with_the_longest_literal_part_wins() -> None:
    grammars = [made("short", "qwen*"), made("long", "qwen3-coder*"), made("middle", "qwen3-*")]
    assert [grammar.name for grammar, _ in grammars_for("qwen3-coder-30b", grammars)] == ["long", "middle", "short"]


def test_wildcards_and_classes_are_no_literal_part() -> None:
    grammars = [made("classes", "a[bcdefghijk]*"), made("marks", "a??????*"), made("plain", "ab*")]
    assert grammars_for("abcdefghij", grammars)[0][0].name == "plain"


def test_a_pattern_of_the_id_goes_before_one_of_the_provider() -> None:
    grammars = [made("provider", "some-long-provider/*"), made("own", "m*")]
    assert grammars_for("some-long-provider/m1", grammars)[0][0].name == "own"


def test_of_equal_patterns_the_one_that_says_how_the_id_begins_wins() -> None:
    grammars = [made("anywhere", "*mini*"), made("start", "mini*")]
    assert [grammar.name for grammar, _ in grammars_for("mini-1", grammars)] == ["start", "anywhere"]


def test_the_order_of_the_files_does_not_matter() -> None:
    grammars = [made("a", "x*", "xy*"), made("b", "xy*"), made("c", "*xyz*"), made("d", "xyz*")]
    expected = [("d", "xyz*"), ("c", "*xyz*"), ("a", "xy*"), ("b", "xy*")]
    for order in permutations(grammars):
        assert [(grammar.name, pattern) for grammar, pattern in grammars_for("xyz-1", order)] == expected


def test_the_order_of_the_shipped_files_does_not_matter() -> None:
    draw = random.Random(1)
    grammars = list(shipped().values())
    for model in (*(model for model, _ in MODELS), *TABLE["either"]):
        expected = grammars_for(model)
        draw.shuffle(grammars)
        assert grammars_for(model, grammars) == expected


def test_each_grammar_is_named_once_with_its_best_pattern() -> None:
    found = grammars_for("abcd", [made("one", "a*", "abc*", "*", "ab*")])
    assert [(grammar.name, pattern) for grammar, pattern in found] == [("one", "abc*")]


def test_a_pattern_may_be_written_in_upper_case() -> None:
    assert [pattern for _, pattern in grammars_for("MyModel-7B", [made("own", "MyModel*")])] == ["MyModel*"]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_pattern_of_a_file_is_reachable(name: str) -> None:
    for pattern in shipped()[name].models:
        model = pattern.replace("*", "x")
        assert name in [grammar.name for grammar, _ in grammars_for(model)], pattern


def test_what_the_scrubber_calls_spoken_is_found_here_too() -> None:
    for model in ("mimo-v2-flash", "gemini-2.5-pro", "XiaomiMiMo/MiMo-V2-Flash", "anthropic/claude-3", "gpt-oss-20b"):
        spoken = {grammar.name for grammar in shipped().values() if grammar.speaks(model)}
        assert spoken <= {grammar.name for grammar, _ in grammars_for(model)}


def test_the_explanation_names_the_file_and_the_pattern() -> None:
    lines = explain("openrouter/qwen/Qwen3-Coder:free").split("\n")
    assert lines[0] == "openrouter/qwen/Qwen3-Coder:free: read as qwen3-coder"
    assert lines[1].split()[:3] == ["1.", "qwen3_coder", "qwen3-coder*"]
    assert lines[2].split()[:3] == ["2.", "hermes", "qwen3-*"]
    assert "every other grammar stays on" in lines[-1]
    assert "empty model id" in explain(" ")
