"""Reads a language model's token stream as bytes and gives back visible text, reasoning and complete tool calls."""

from __future__ import annotations

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
