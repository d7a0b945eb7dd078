"""Model id -> the grammars its model writes, from the ``models`` patterns of the grammar files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from .grammar import Grammar, shipped

# What providers and converters add behind an id. None of it changes what the model writes.
_OFFERS: Final = re.compile(r":(?:free|beta|nitro|floor|online|extended|thinking|exacto|latest|cloud)\Z")
_FILES: Final = re.compile(r"\.(?:gguf|safetensors|bin|onnx)\Z|-\d{5}-of-\d{5}\Z")
_WEIGHTS: Final = re.compile(
    r"[-_.:](?:gguf|ggml|awq|gptq|exl[23]|mlx|marlin|onnx|openvino|bnb|autoround|ud|imat|i1|dynamic|quantized|quant"
    r"|(?:nv|mx)?fp(?:4|8|16|32)(?:-dynamic)?|bf16|int[48]|w\d{1,2}a\d{1,2}|\d(?:\.\d{1,2})?-?(?:bit|bpw)|4bit-dwq|dwq"
    r"|(?:iq|q)[1-8](?:_[0-9a-z]{1,3}){0,3})\Z"
)
# `us.anthropic.claude-…`: words with dots between them, before the id itself.
_DOTTED: Final = re.compile(r"(?:[a-z-]{2,16}\.){1,3}(?=[a-z])")
_GLOB: Final = re.compile(r"\[[^\]]*+\]|[*?]")

_Rank: TypeAlias = tuple[bool, int, bool, str]


def spellings(model: str) -> tuple[str, ...]:
    """All that a pattern may match: the id without what was added behind it, then without what stands before it.

    >>> spellings("OpenRouter/Anthropic/Claude-3.7:free")
    ('openrouter/anthropic/claude-3.7', 'anthropic/claude-3.7', 'claude-3.7')
    """
    plain = _without_suffixes(model.strip().lower().replace("\\", "/").strip("/"))
    parts = plain.split("/")
    found = ["/".join(parts[start:]) for start in range(len(parts))]
    bare = _DOTTED.sub("", found[-1], count=1)
    # The tag of a local registry: `qwen3:8b` is the model that others call `qwen3-8b`.
    return tuple(dict.fromkeys(word for one in (*found, bare) for word in (one, one.replace(":", "-")) if word))


def _without_suffixes(model: str) -> str:
    while True:
        shorter = model
        for pattern in (_OFFERS, _FILES, _WEIGHTS):
            shorter = pattern.sub("", shorter)
        if shorter == model or not shorter:
            return model
        model = shorter


def grammars_for(model: str, grammars: Iterable[Grammar] | None = None) -> list[tuple[Grammar, str]]:
    """The grammars whose files name this model, best first, each with its best pattern.

    A pattern that matches the id itself goes before one that only matches with the provider; of these the one with
    the longest literal part, whatever the order of the files. ``grammars`` are the shipped ones by default. An empty
    list means that no file names the model; all grammars read its output all the same.

    >>> [(grammar.name, pattern) for grammar, pattern in grammars_for("moonshotai/Kimi-K2-Instruct-GGUF")]
    [('kimi_k2', 'kimi-k2*')]
    """
    names = spellings(model)
    own = tuple(name for name in names if "/" not in name)
    found: list[tuple[_Rank, Grammar]] = []
    for grammar in shipped().values() if grammars is None else grammars:
        ranks = [_rank(pattern, own) for pattern in grammar.models if _matches(pattern, names)]
        if ranks:
            found.append((min(ranks), grammar))
    return [(grammar, rank[-1]) for rank, grammar in sorted(found, key=lambda pair: (pair[0], pair[1].name))]


def _matches(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.lower()) for name in names)


def _rank(pattern: str, own: Iterable[str]) -> _Rank:
    """The smaller, the better: matches the id itself, says more of it, says how it begins, the alphabet."""
    return not _matches(pattern, own), -len(_GLOB.sub("", pattern)), pattern.startswith("*"), pattern


def explain(model: str, grammars: Iterable[Grammar] | None = None) -> str:
    """Say which grammar files name this model, and why, a line each."""
    lines = [f"{model}: read as {spellings(model)[-1]}" if spellings(model) else "an empty model id"]
    found = grammars_for(model, grammars)
    for place, (grammar, pattern) in enumerate(found, 1):
        lines.append(f"  {place}. {grammar.name:<16} {pattern:<20} {grammar.data.get('title', '')}".rstrip())
    if not found:
        lines.append("  no grammar file names this model")
    lines.append("  every other grammar stays on: a model id only orders readings that are equally good")
    return "\n".join(lines)
