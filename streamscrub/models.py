"""Model id -> the grammars its model writes, from the ``models`` patterns of the grammar files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from .grammar import Grammar, shipped
from .modelids import spellings

_GLOB: Final = re.compile(r"\[[^\]]*+\]|[*?]")

Rank: TypeAlias = tuple[bool, int, bool, str]


def grammars_for(model: str, grammars: Iterable[Grammar] | None = None) -> list[tuple[Grammar, str]]:
    """The grammars whose files name this model, best first, each with its best pattern.

    A pattern that matches the id itself goes before one that only matches with the provider; of these the one with
    the longest literal part, whatever the order of the files. ``grammars`` are the shipped ones by default. An empty
    list means that no file names the model; all grammars read its output all the same.

    >>> [(grammar.name, pattern) for grammar, pattern in grammars_for("moonshotai/Kimi-K2-Instruct-GGUF")]
    [('kimi_k2', 'kimi-k2*')]
    """
    found: list[tuple[Rank, Grammar]] = []
    for grammar in shipped().values() if grammars is None else grammars:
        rank = best_rank(grammar.models, model)
        if rank is not None:
            found.append((rank, grammar))
    return [(grammar, rank[-1]) for rank, grammar in sorted(found, key=lambda pair: (pair[0], pair[1].name))]


def best_rank(patterns: Iterable[str], model: str) -> Rank | None:
    """How well the best of these patterns names the model, the smaller the better; None if none does."""
    names = spellings(model)
    own = tuple(name for name in names if "/" not in name)
    return min((_rank(pattern, own) for pattern in patterns if _matches(pattern, names)), default=None)


def _matches(pattern: str, names: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.lower()) for name in names)


def _rank(pattern: str, own: Iterable[str]) -> Rank:
    """The smaller, the better: matches the id itself, says more of it, says how it begins, the alphabet."""
    return not _matches(pattern, own), -len(_GLOB.sub("", pattern)), pattern.startswith("*"), pattern


def explain(model: str, grammars: Iterable[Grammar] | None = None) -> str:
    """Say which grammar files name this model, and why, a line each, and whether its responses start in reasoning."""
    lines = [f"{model}: read as {spellings(model)[-1]}" if spellings(model) else "an empty model id"]
    chosen = list(shipped().values() if grammars is None else grammars)
    found = grammars_for(model, chosen)
    for place, (grammar, pattern) in enumerate(found, 1):
        lines.append(f"  {place}. {grammar.name:<16} {pattern:<20} {grammar.reads.get('title', '')}".rstrip())
    for grammar in chosen:
        opening = grammar.opening(model)
        if opening is not None:
            pattern, close = opening
            lines.append(f"  responses start inside the reasoning: opened_for {pattern!r} of {grammar.name}")
            lines.append(f"  where the server has taken it out already, pass prefill={close!r}")
    if found:
        lines.append("  every other grammar stays on; of readings that are equally good the model's own go first")
    else:
        lines.append("  no grammar names this model: all grammars are on, none preferred")
    return "\n".join(lines)
