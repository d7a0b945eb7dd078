"""Times two things in turn and takes the least of each, so that a busy machine hurts both alike."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamscrub import Event, StreamScrubber, ToolCall

from .workloads import DELTA, TOOLS, UNCLOSED

ROOT: Final = Path(__file__).resolve().parent.parent
_LEADS: Final = re.compile("[<\\[`{~\n]")


@dataclass(slots=True)
class Kept:
    """The event of the baseline."""

    text: str
    span: tuple[int, int]


def deltas_of(text: str, size: int = DELTA) -> list[str]:
    """New strings, so that none carries a cached hash."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def baseline(deltas: Sequence[str]) -> int:
    """The least that any scrubber must do with a delta: one class search, one event with a span built and kept."""
    search = _LEADS.search
    kept: list[Kept] = []
    at = leads = 0
    for delta in deltas:
        if search(delta) is not None:
            leads += 1
        end = at + len(delta)
        kept.append(Kept(delta, (at, end)))
        at = end
    return len(kept) + leads


def stream(deltas: Sequence[str]) -> list[Event]:
    """Feed all deltas and keep all events."""
    scrubber = StreamScrubber(TOOLS)
    feed = scrubber.feed
    events: list[Event] = []
    for delta in deltas:
        events += feed(delta)
    events += scrubber.finish("stop")
    return events


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def least(*functions: Callable[[], object], repeats: int = 15) -> list[float]:
    """The least seconds of each function over ``repeats`` rounds that run them in turn."""
    best = [float("inf")] * len(functions)
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeats):
            for index, function in enumerate(functions):
                best[index] = min(best[index], timed(function))
    finally:
        gc.enable()
    return best


def calls_in(text: str) -> int:
    """How many calls come out, so that no row times a failure."""
    return sum(isinstance(event, ToolCall) for event in stream(deltas_of(text)))


def fresh(code: str, processes: int = 7) -> float:
    """The least of the number that ``code`` prints in a new interpreter."""
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT) for _ in range(processes)]
    return min(float(run.stdout) for run in runs)


def import_seconds() -> float:
    """The import of the package in a new interpreter, beyond the bare interpreter."""
    return fresh("import time; a = time.perf_counter(); import streamscrub; print(time.perf_counter() - a)")


def modules_seconds() -> float:
    """What the first use of ``StreamScrubber`` loads."""
    return fresh(
        "import time, streamscrub; a = time.perf_counter(); streamscrub.StreamScrubber; print(time.perf_counter() - a)"
    )


def first_construction_seconds() -> float:
    """The first scrubber of a process, all grammars on."""
    return fresh(
        "import time; from streamscrub import StreamScrubber\n"
        f"tools = {TOOLS!r}\n"
        "a = time.perf_counter(); StreamScrubber(tools).feed('a'); print(time.perf_counter() - a)"
    )


def next_construction_seconds() -> float:
    """Every further scrubber with the same tools."""
    StreamScrubber(TOOLS)
    return least(lambda: StreamScrubber(TOOLS), repeats=200)[0]


def unclosed_peak(mebibytes: int = 32) -> tuple[int, int]:
    """(peak bytes allocated, most bytes held) of a block that never closes, fed in deltas of four bytes."""
    tracemalloc.start()
    scrubber = StreamScrubber(TOOLS)
    scrubber.feed(UNCLOSED)
    feed = scrubber.feed
    held = 0
    for _ in range(mebibytes * 16):
        for _ in range((1 << 16) // DELTA):
            feed(b"abcd")
        held = max(held, len(scrubber.held))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, held
