"""How cost grows with size: ratios within one run, never seconds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def spent(work: Callable[[], object], repeats: int = 3) -> float:
    """The least seconds of a few runs, collector off."""
    best = float("inf")
    gc.disable()
    try:
        for _ in range(repeats):
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
    finally:
        gc.enable()
    return best


def assert_linear(
    work_at: Callable[[int], Callable[[], object]],
    what: str,
    allowed: float = 7.0,
    sizes: tuple[int, ...] = (5_000, 20_000),
) -> None:
    """Four times the size costs about four times the time. Quadratic work would show sixteen; the margin is for a
    busy machine. The small sizes come first, so that a bad input fails in seconds and not in minutes."""
    for size in sizes:
        for attempt in range(3):
            small, large = (spent(work_at(one), 1 + attempt) for one in (size, 4 * size))
            # Below a few milliseconds the clock and the neighbours on the machine dominate.
            if large <= allowed * max(small, 0.005):
                break
        else:
            times = f"{small * 1e3:.1f} ms, four times that {large * 1e3:.1f} ms, x{large / small:.1f}"
            raise AssertionError(f"{what}: {size} {times}")
