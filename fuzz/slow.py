"""Searches for inputs that cost more than linear time: ``python -m fuzz.slow --seconds 60``.

Markers of all grammar files, whole and cut, are joined at random, repeated to two lengths and timed. Where four times
the length costs far more than four times the time, the piece is timed again at larger sizes, and kept if it is still
steep. Nothing about the formats is known here: what hurts a parser is mostly its own literals in the wrong order.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import random
import sys
import time
from typing import Final

from streamscrub import StreamScrubber
from tests.strategies import BLANKS, FENCES, JSON_PIECES, NOISE, STOCK, TOOLS

from . import CORPUS
from .literals import marker_literals

# Four times the length: linear is 4, quadratic 16.
STEEP: Final = 8.0


def pieces() -> list[str]:
    """What the inputs are made of."""
    whole = [*marker_literals(), *STOCK]
    cut = [literal[:-1] for literal in whole if len(literal) > 2]
    return [*whole, *cut, *JSON_PIECES, *FENCES, *BLANKS, *NOISE]


def candidate(parts: list[str], draw: random.Random) -> tuple[str, str]:
    """(what stands once at the start, what is repeated)."""
    opener = "".join(draw.choice(parts) for _ in range(draw.choice((0, 0, 1, 2, 4))))
    return opener, "".join(draw.choice(parts) for _ in range(draw.choice((1, 1, 2, 3, 5))))


def seconds_for(opener: str, filler: str, size: int, delta: int, repeats: int = 2) -> float:
    text = opener + filler * (size // len(filler) + 1)
    best = float("inf")
    gc.disable()
    for _ in range(repeats):
        scrubber = StreamScrubber(TOOLS)
        start = time.perf_counter()
        for at in range(0, len(text), delta):
            scrubber.feed(text[at : at + delta])
        scrubber.finish("stop")
        best = min(best, time.perf_counter() - start)
    gc.enable()
    return best


def slope(opener: str, filler: str, size: int, delta: int) -> float:
    """The time for four times ``size`` over that for ``size``."""
    small = max(seconds_for(opener, filler, size, delta), 0.0005)
    return seconds_for(opener, filler, 4 * size, delta) / small


def search(seconds: float, seed: int) -> int:
    draw = random.Random(seed)
    parts = pieces()
    tried, found, end = 0, 0, time.monotonic() + seconds
    worst = (0.0, "", "")
    while time.monotonic() < end:
        opener, filler = candidate(parts, draw)
        delta = draw.choice((4, 4, 64, 1 << 20))
        tried += 1
        steep = slope(opener, filler, 4_000, delta)
        worst = max(worst, (steep, opener, filler))
        if steep > STEEP and min(slope(opener, filler, size, delta) for size in (8_000, 16_000)) > STEEP:
            found += 1
            keep(opener, filler)
            print(f"x{steep:.1f} for x4, deltas of {delta}: {opener!r} + {filler!r} ...")
    print(f"{tried} tried, {found} steep; steepest at first sight x{worst[0]:.1f}: {worst[1]!r} + {worst[2]!r}")
    return found


def keep(opener: str, filler: str) -> None:
    folder = CORPUS / "slow"
    folder.mkdir(exist_ok=True)
    data = f"{opener}\x00{filler}".encode("utf-8", "surrogatepass")
    (folder / f"found-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.slow", description="Search for super-linear inputs.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    return int(search(options.seconds, options.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
