"""What the verbs of the command line share: wrong use, and writing to streams that may be anything."""

from __future__ import annotations

import json
import sys
from io import BytesIO
from typing import IO, Any, Final

SHOWN: Final = 200  # characters of one value in a message
# What the verb `render` can write.
PARTS: Final = (
    "prompt", "catalogue", "example", "calls", "results", "thinking", "encode", "fold", "replay", "transcript", "wire",
)  # fmt: skip


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
