"""What the verbs of the command line share: wrong use, and writing to streams that may be anything."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from io import BytesIO
from typing import IO, Any, Final

from .events import Repair

SHOWN: Final = 200  # characters of one value in a message
# What the verb `render` can write.
PARTS: Final = (
    "prompt", "catalogue", "example", "calls", "results", "thinking", "encode", "fold", "replay", "transcript", "wire",
)  # fmt: skip

# Kinds of repairs that are counted and not told one by one: small edits of the notation.
SYNTAX: Final = frozenset(
    (
        "quotes", "key_quotes", "inner_quotes", "control_characters", "escape", "stray_escape", "trailing_comma",
        "missing_comma", "missing_bracket", "surplus_bracket", "missing_colon", "surplus_colon", "comment",
        "python_literal", "number", "leaked_token", "braces", "lines", "json_repair", "surrogate",
    )
)  # fmt: skip
_PIECE: Final = 32  # characters of a text before or after a repair
_MOST: Final = 12  # repairs that are told one by one


class Usage(Exception):
    """Wrong use, said in one line."""


def say(stream: IO[str] | None, text: str, encoding: str = "") -> None:
    """Write at once, whatever the encoding of the terminal lacks."""
    if stream is None:
        return
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(text)
        stream.flush()
    else:
        stream.flush()
        buffer.write(text.encode(encoding or getattr(stream, "encoding", None) or "utf-8", "replace"))
        buffer.flush()


def out(text: str) -> None:
    """Text and JSON are UTF-8 wherever they go."""
    say(sys.stdout, text, "utf-8")


def plain(text: str) -> str:
    """``text`` on one line that no terminal takes for a command."""
    return "".join(
        char if char.isprintable() else json.dumps(char)[1:-1] if char < " " else f"\\u{ord(char):04x}" for char in text
    )


def short(value: Any, most: int = SHOWN) -> str:
    text = plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= most else text[: most - 1] + "…"


def stdin() -> Any:
    """Standard input as a binary file; one that somebody put there, or none, as what it holds."""
    buffer = getattr(sys.stdin, "buffer", None)
    return buffer or BytesIO(sys.stdin.read().encode("utf-8", "replace") if sys.stdin else b"")


def told(repairs: Iterable[Repair]) -> str:
    """What was changed, on one line: each change of meaning with its texts, edits of the notation as a number.

    >>> told([Repair("quotes"), Repair("name", "name", "Tide", "tide"), Repair("coerced", "arguments.n", '"3"', "3")])
    'name: Tide -> tide; n: "3" -> 3; syntax: 1 edit (quotes)'
    """
    edits: Counter[str] = Counter()
    said: list[str] = []
    for one in repairs:
        if one.kind in SYNTAX:
            edits[one.kind] += 1
        else:
            said.append(_change(one))
    said = list(dict.fromkeys(said))
    if len(said) > _MOST:
        said[_MOST:] = [f"{len(said) - _MOST} more"]
    if edits:
        number = edits.total()
        said.append(f"syntax: {number} edit{'s' * (number > 1)} ({', '.join(edits)})")
    return "; ".join(said)


def _change(one: Repair) -> str:
    where, before, after = (
        short(text, _PIECE) for text in (one.where.removeprefix("arguments."), one.before, one.after)
    )
    if one.kind == "coerced":
        return f"{where}: {before} -> {after}"
    head = one.kind if where in ("", "name", "arguments", after) else f"{one.kind} ({where})"
    if not before:
        return f"{head}: {after}" if after else head
    return f"{head}: {before} -> {after or 'nothing'}"
