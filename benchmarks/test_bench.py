"""The same workloads for pytest-benchmark: ``pytest benchmarks --benchmark-enable``. Not part of ``make test``."""

from __future__ import annotations

from typing import Any

import pytest

from streamscrub import StreamScrubber, scrub

from .measure import baseline, deltas_of, stream
from .workloads import FILLERS, SIZE, TOOLS, WORKLOADS, Workload, prose


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_stream(benchmark: Any, workload: Workload) -> None:
    benchmark.group = workload.name
    benchmark(stream, deltas_of(workload.text(SIZE)))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_baseline(benchmark: Any, workload: Workload) -> None:
    benchmark.group = workload.name
    benchmark(baseline, deltas_of(workload.text(SIZE)))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_one_shot(benchmark: Any, workload: Workload) -> None:
    benchmark.group = workload.name
    benchmark(scrub, workload.text(SIZE), TOOLS)


@pytest.mark.parametrize("filler", FILLERS)
def test_hostile(benchmark: Any, filler: str) -> None:
    benchmark.group = "hostile, 20 kB"
    benchmark(stream, deltas_of((filler * 20_000)[:20_000]))


def test_blocks_of_four_kilobytes(benchmark: Any) -> None:
    benchmark(stream, deltas_of(prose(SIZE), 4096))


def test_next_construction(benchmark: Any) -> None:
    benchmark(StreamScrubber, TOOLS)
