"""Model ids and the grammars they stand for: as written by every provider, whatever the order of the files."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from streamscrub import Grammar
from streamscrub.grammar import shipped
from streamscrub.modelids import spellings
from streamscrub.models import explain, grammars_for


def best(model: str) -> str:
    found = grammars_for(model)
    return found[0][0].name if found else ""


def made(name: str, *models: str) -> Grammar:
    return Grammar(name, {"name": name, "models": list(models)}, f"{name}.toml")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-4", "claude"),
        ("deepseek-chat", "deepseek"),
        ("deepseek-v3", "deepseek"),
        ("deepseek-v3.1", "deepseek"),
        ("deepseek-v3.2-exp", "dsml"),
        ("deepseek-v4", "dsml"),
        ("devstral-small", "mistral"),
        ("gemini-2.5-pro", "gemini_tool_code"),
        ("gemma-3-27b", "gemini_tool_code"),
        ("gemma-4-31b", "gemma"),
        ("glm-4.6", "glm"),
        ("glm-5", "glm"),
        ("gpt-oss-120b", "harmony"),
        ("hermes-3-llama-3.1-8b", "hermes"),
        ("kimi-k2-thinking", "kimi_k2"),
        ("llama-3.1-8b-instruct", "llama"),
        ("llama-4-scout", "pythonic"),
        ("mimo-v2-flash", "mimo"),
        ("minicpm5-2b", "minicpm5"),
        ("minimax-m1-80k", "minimax_m1"),
        ("minimax-m2.5", "minimax_m2"),
        ("mistral-large", "mistral"),
        ("qwen2.5-72b-instruct", "hermes"),
        ("qwen3-235b-a22b", "hermes"),
        ("qwen3-coder-480b", "qwen3_coder"),
        ("qwq-32b", "hermes"),
    ],
)
def test_a_model_is_known(model: str, expected: str) -> None:
    assert best(model) == expected


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
    assert "no grammar file names this model" in explain(model)


def test_an_id_that_is_nothing_but_a_suffix_stays() -> None:
    assert spellings("fp8") == ("fp8",)
    assert spellings("-gguf") == ("-gguf",)


def test_a_local_tag_is_tried_both_ways() -> None:
    assert spellings("qwen3:8b") == ("qwen3:8b", "qwen3-8b")


def test_the_pattern_with_the_longest_literal_part_wins() -> None:
    grammars = [made("short", "qwen*"), made("long", "qwen3-coder*"), made("middle", "qwen3-*")]
    assert [grammar.name for grammar, _ in grammars_for("qwen3-coder-30b", grammars)] == ["long", "middle", "short"]


def test_wildcards_and_classes_are_no_literal_part() -> None:
    grammars = [made("classes", "a[bcdefghijk]*"), made("marks", "a??????*"), made("plain", "ab*")]
    assert grammars_for("abcdefghij", grammars)[0][0].name == "plain"


def test_a_pattern_of_the_id_goes_before_one_of_the_provider() -> None:
    assert [grammar.name for grammar, _ in grammars_for("meta-llama/Llama-4-Scout")] == ["pythonic", "llama"]
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
    for model in ("qwen3-coder", "deepseek-v3.2", "mimo-v2-flash", "ling-3-lite", "meta-llama/llama-3.2-3b"):
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
