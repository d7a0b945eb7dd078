"""A body never raises or costs seconds, and a call without a repair has its arguments on the wire as strict JSON."""

from __future__ import annotations

import json
import time

from streamscrub import ToolCall, scrub
from tests.strategies import TOOLS


def one_input(data: bytes) -> None:
    """The input is the body of a call, or its arguments if the first byte is odd."""
    body = data[1:].decode("utf-8", "replace").replace("<", "(").replace("[TOOL", "(TOOL")
    if data and data[0] & 1:
        body = f'{{"name": "save_note", "arguments": {body}}}'
    started = time.perf_counter()
    result = scrub(f"<tool_call>{body}</tool_call>", TOOLS)
    assert time.perf_counter() - started < 5, "slow"
    for call in result.calls:
        json.dumps(call.arguments, allow_nan=False).encode()
        assert call.name in {tool["name"] for tool in TOOLS}
        if body.lstrip().startswith(("{", "[")) and call.arguments and not call.repairs:
            assert stands_on_the_wire(call), call


def stands_on_the_wire(call: ToolCall) -> bool:
    """True if a strict JSON object with these arguments begins at one of the braces of the raw block."""
    raw = call.raw.decode("utf-8", "replace")
    for at in (index for index, character in enumerate(raw) if character == "{"):
        try:
            if json.JSONDecoder().raw_decode(raw, at)[0] == call.arguments:
                return True
        except (ValueError, RecursionError):
            continue
    return False
