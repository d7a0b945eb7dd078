"""A grammar file loads or raises GrammarError, and a grammar that loads reads any text without raising."""

from __future__ import annotations

import tempfile
from pathlib import Path

from streamscrub import Grammar, GrammarError, scrub
from tests.strategies import TOOLS


def one_input(data: bytes) -> None:
    """The input is the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzzed.toml"
        path.write_bytes(data)
        try:
            grammar = Grammar.load(path)
            scrub("a <tool_call>{} <b> [x] {", TOOLS, grammars=[grammar])
        except GrammarError as error:
            if "fuzzed.toml" not in str(error):
                raise AssertionError(f"the error does not name the file: {error}") from error
