"""Which dialect a run speaks: by name, by the model, by what the provider can do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final

from ..grammar import Grammar, shipped
from ..models import best_rank
from .speaking import Dialect

# The variable that names a dialect, and beats what the model would choose.
VARIABLE: Final = "STREAMSCRUB_DIALECT"
FALLBACK: Final = "xml"
NATIVE: Final = "native"
# What a provider without tool calling gets where nothing else is said.
GUIDED: Final = "json_tag"


@cache
def dialects() -> dict[str, Dialect]:
    """All dialects by name."""
    found: dict[str, Dialect] = {}
    for grammar in shipped().values():
        for table in grammar.data.get("dialect", ()):
            found[table["name"]] = Dialect(grammar, table)
    return dict(sorted(found.items()))


def from_name(name: str) -> Dialect | None:
    """The dialect of this name or alias, in any case, with blanks around it; None if there is none.

    >>> from_name("  XML "), from_name("nope")
    (Dialect('xml'), None)
    """
    known = dialects()
    word = name.strip().lower()
    if word in known:
        return known[word]
    return next((one for one in known.values() if word in one.aliases), None)


def dialect(name: str | Path | Grammar) -> Dialect:
    """The same, for a name that has to be one, or the dialect of a grammar file of your own.

    A path of a TOML file is a ``Path``, or a text that ends in ``.toml``; its dialect reads its own format beside all
    shipped ones. Raises ``ValueError`` that lists the near names, or for a file that holds no dialect or several, and
    ``GrammarError`` for one that is wrong.
    """
    if isinstance(name, Grammar):
        return _own(name)
    if isinstance(name, Path) or name.endswith(".toml"):
        return _own(Grammar.load(name))
    found = from_name(name)
    if found is None:
        known = [*dialects(), *(alias for one in dialects().values() for alias in one.aliases)]
        near = get_close_matches(name.strip().lower(), known, 3, 0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(dialects())}"
        raise ValueError(f"unknown dialect {name!r}; {hint}")
    return found


def _own(grammar: Grammar) -> Dialect:
    tables = grammar.data.get("dialect", ())
    if len(tables) != 1:
        raise ValueError(f"{grammar.file}: holds {len(tables) or 'no'} [[dialect]], one is needed")
    return Dialect(grammar, tables[0])


def preferred_for_model(model: str) -> Dialect:
    """The dialect for a model of this id, ``xml`` where none here is that of its family.

    >>> preferred_for_model("deepseek-r1-distill-qwen-32b"), preferred_for_model("llama-3.3-70b")
    (Dialect('qwen3'), Dialect('xml'))
    """
    ranks = [(rank, one.name) for one in dialects().values() if (rank := best_rank(one.models, model)) is not None]
    return dialects()[min(ranks)[1] if ranks else FALLBACK]


def select(
    name: str = "auto", *, supports_tools: bool = True, model: str = "", environment: Mapping[str, str] | None = None
) -> Dialect:
    """The dialect of a run; ask once and keep it.

    ``auto`` is ``native`` where the provider supports tool calling, else ``json_tag``; ``model`` is the dialect of the
    model ``model``. Any other word is a name. The variable ``STREAMSCRUB_DIALECT`` beats ``auto`` and ``model``, not a
    name. Raises ``ValueError`` for a name that is none, wherever it stands.

    >>> select("auto", supports_tools=False, environment={}), select("pformat")
    (Dialect('json_tag'), Dialect('pformat'))
    """
    word = name.strip().lower()
    if word not in ("auto", "model"):
        return dialect(name)
    override = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    if override and override.lower() != "auto":
        return dialect(override)
    if word == "model":
        return preferred_for_model(model)
    return dialect(NATIVE if supports_tools else GUIDED)
