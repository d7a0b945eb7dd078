"""Whatever stands in an argument, a call that is written in full comes back equal, once, with nothing of it shown."""

from __future__ import annotations

import json
import re
from typing import Final

from streamscrub import scrub
from tests.strategies import TOOLS

AROUND: Final = (
    ('<tool_call>{"name": "save_note", "arguments": ', "}</tool_call>"),
    ("<|tool_calls_section_begin|><|tool_call_begin|>functions.save_note:0<|tool_call_argument_begin|>",
     "<|tool_call_end|><|tool_calls_section_end|>"),
    ("[TOOL_CALLS]save_note[ARGS]", ""),
    ("<|channel|>commentary to=functions.save_note<|constrain|>json<|message|>", "<|call|>"),
)  # fmt: skip
# A closer in a string, followed by a special opener, is the real one by the rules. A careful writer escapes closers.
CLOSERS: Final = re.compile(r"<(?=/|[|｜/]*tool[▁_-]?call|\|(?:call|end|return)\|)", re.I)


def one_input(data: bytes) -> None:
    """The first byte picks the envelope, the rest is the argument."""
    value = data[1:].decode("utf-8", "replace")
    opener, closer = AROUND[data[0] % len(AROUND)] if data else AROUND[0]
    arguments = CLOSERS.sub(r"\\u003c", json.dumps({"body": value}, ensure_ascii=False))
    result = scrub(f"On it. {opener}{arguments}{closer}", TOOLS)
    assert [("save_note", {"body": value}, ())] == [(c.name, c.arguments, c.repairs) for c in result.calls], result
    assert result.text.strip() == "On it.", result
