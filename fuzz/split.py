"""However a response is cut, the merged events are the same, and their spans tile the wire."""

from __future__ import annotations

from typing import Any, Final

from tests.feeding import Chunk, check_invariants, run
from tests.strategies import TOOLS

FINISH: Final = ("stop", "length", "tool_calls", None)
OFFERED: Final[tuple[list[dict[str, Any]] | None, ...]] = (TOOLS, TOOLS, [], None)


def one_input(data: bytes) -> None:
    """The first byte picks tools and finish, the next eight are chunk sizes, used in turn; the rest is the wire."""
    if len(data) < 10:
        return
    tools, finish, wire = OFFERED[data[0] & 3], FINISH[data[0] >> 2 & 3], data[9:]
    sizes = [size % 16 + 1 for size in data[1:9]]
    chunks: list[Chunk] = []
    at = turn = 0
    while at < len(wire):
        size = sizes[turn % len(sizes)]
        chunks.append(wire[at : at + size])
        at, turn = at + size, turn + 1
    whole, _ = run([wire], tools, finish)
    check_invariants(whole, wire)
    assert run(chunks, tools, finish)[0] == whole
