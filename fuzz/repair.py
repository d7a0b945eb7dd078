"""A body never raises or costs seconds, gives an object or no call, and is not touched if it is strict JSON."""

from __future__ import annotations

import json
import time

from streamscrub import scrub
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
        assert bool(call.repairs) or strict(body), call


def strict(body: str) -> bool:
    """True if the body is made of strict JSON values: then, and only then, a call needs no repair."""
    decoder = json.JSONDecoder()
    at = 0
    try:
        while body[at:].strip(" \t\r\n,;"):
            at += len(body[at:]) - len(body[at:].lstrip(" \t\r\n,;"))
            at = decoder.raw_decode(body, at)[1]
    except ValueError:
        # Other bodies of the same envelope (tags, calls, lone names) are no JSON at all.
        return not body.lstrip().startswith(("{", "["))
    return True
