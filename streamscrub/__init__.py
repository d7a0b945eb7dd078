"""Reads a language model's token stream as bytes and gives back visible text, reasoning and complete tool calls."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in typing, whose import would cost more than all the rest here
if TYPE_CHECKING:
    from typing import Any, Final

    from .events import (
        ArgumentsDelta,
        CallStarted,
        Dropped,
        Event,
        Reasoning,
        RejectedCall,
        Repair,
        Scrubbed,
        Text,
        ToolCall,
        calls_of,
        text_of,
    )
    from .grammar import Grammar, GrammarError
    from .scrubber import StreamScrubber
    from .stream import awrap, scrub, wrap
    from .tools import Tool

__version__ = "0.1.0"

# Where each name lives. A module loads when a name of its is first asked for, so that the import costs next to nothing.
_HOMES: Final = {
    name: home
    for home, names in {
        "events": "ArgumentsDelta CallStarted Dropped Event Reasoning RejectedCall Repair Scrubbed Text ToolCall "
        "calls_of text_of",
        "grammar": "Grammar GrammarError",
        "scrubber": "StreamScrubber",
        "stream": "awrap scrub wrap",
        "tools": "Tool",
    }.items()
    for name in names.split()
}

__all__ = [
    "ArgumentsDelta",
    "CallStarted",
    "Dropped",
    "Event",
    "Grammar",
    "GrammarError",
    "Reasoning",
    "RejectedCall",
    "Repair",
    "Scrubbed",
    "StreamScrubber",
    "Text",
    "Tool",
    "ToolCall",
    "awrap",
    "calls_of",
    "scrub",
    "text_of",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
