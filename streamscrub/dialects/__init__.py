"""The other half: dialects that teach a model its tools, write calls, results and history, and read them back.

``docs/dialects.md`` shows a conversation. Nothing here calls a model or runs a tool.
"""

from __future__ import annotations

from .choice import dialect, dialects, from_name, preferred_for_model, select
from .envelope import Envelope, answer_tool, build_envelope_schema, parse_envelope, use_envelope
from .history import cut_before, pair_tool_cycles, read_wire, wire
from .messages import after_refusal, parse_assistant_message, tools_unsupported
from .prompts import Prepared, forced_choice
from .records import AssistantToolCalls, Call, Chat, ToolResult, ToolResults, TranscriptEntry, entries_of
from .sample import example_arguments
from .speaking import Dialect

__all__ = [
    "AssistantToolCalls", "Call", "Chat", "Dialect", "Envelope", "Prepared", "ToolResult", "ToolResults",
    "TranscriptEntry", "after_refusal", "answer_tool", "build_envelope_schema", "cut_before", "dialect", "dialects",
    "entries_of", "example_arguments", "forced_choice", "from_name", "pair_tool_cycles", "parse_assistant_message",
    "parse_envelope", "preferred_for_model", "read_wire", "select", "tools_unsupported", "use_envelope", "wire",
]  # fmt: skip
