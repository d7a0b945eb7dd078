"""The curated cases: tests/cases/*.jsonl, each run in every way it can be cut, with all grammars on."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from streamscrub.events import Scrubbed

from .feeding import feed_all_ways

CASES: Final = Path(__file__).resolve().parent / "cases"
# These two files have schemas of their own and are read by the tests of what they are about.
OTHER_SCHEMA: Final = {"render.jsonl", "response_template.jsonl"}

# Case id -> why the case and the contract cannot both be right. Run and reported, not failed.
DISPUTED: Final[dict[str, str]] = {}


@dataclass
class Outcomes:
    """What became of the cases that do not fail: group -> counts, and the ids that differ."""

    passed: Counter[str] = field(default_factory=Counter)
    differing: dict[str, list[str]] = field(default_factory=dict)


OUTCOMES: Final = Outcomes()


@cache
def all_cases() -> tuple[dict[str, Any], ...]:
    """Every case of the common schema, in the order of the files."""
    return tuple(
        json.loads(line)
        for path in sorted(CASES.glob("*.jsonl"))
        if path.name not in OTHER_SCHEMA
        for line in path.read_text(encoding="utf-8").split("\n")
        if line.strip()
    )


def run_case(case: dict[str, Any]) -> Scrubbed:
    return Scrubbed(feed_all_ways(case["text"], case["tools"], case["finish_reason"], **case.get("options", {})))


def collapsed(text: str) -> str:
    return " ".join(text.split())


def differences(case: dict[str, Any], result: Scrubbed) -> dict[str, tuple[Any, Any]]:
    """What differs: aspect -> (expected, actual)."""
    expect = case["expect"]
    exact = case.get("exact", False)
    pairs: dict[str, tuple[Any, Any]] = {
        aspect: (expect[aspect], actual) if exact else (collapsed(expect[aspect]), collapsed(actual))
        for aspect, actual in (("text", result.text), ("reasoning", result.reasoning))
    }
    pairs["calls"] = (
        [(call["name"], typed(call["arguments"])) for call in expect["calls"]],
        [(call.name, typed(call.arguments)) for call in result.calls],
    )
    pairs["rejected"] = (
        [entry["reason"] for entry in expect["rejected"]],
        [call.reason for call in result.rejected],
    )
    if len(expect["rejected"]) == len(result.rejected):
        named = [(e["name"], r.name) for e, r in zip(expect["rejected"], result.rejected, strict=True) if e["name"]]
        pairs["names"] = ([name for name, _ in named], [name for _, name in named])
    if expect["repaired"] is not None:
        pairs["repaired"] = (expect["repaired"], any(call.repairs for call in result.calls))
    return {aspect: pair for aspect, pair in pairs.items() if pair[0] != pair[1]}


def typed(value: Any) -> Any:
    """A value that is only equal to one of the same JSON types: in Python True == 1 == 1.0."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, value


def group_of(case: dict[str, Any]) -> str:
    """Why a case may differ, or "" if it may not."""
    if case["contested"]:
        return "contested"
    return "disputed" if case["id"] in DISPUTED else ""


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    result = run_case(case)  # the guarantees hold for every case, also for those whose outcome is only reported
    differing = differences(case, result)
    group = group_of(case)
    if not group:
        report = "".join(
            f"\n{what}: expected {a!r}\n{' ' * len(what)}  actual   {b!r}" for what, (a, b) in differing.items()
        )
        assert not differing, f"{case['note']}\ntext: {case['text']!r}{report}\nevents: {result.events!r}"
    elif differing:
        OUTCOMES.differing.setdefault(group, []).append(case["id"])
    else:
        OUTCOMES.passed[group] += 1


def test_ids_are_distinct() -> None:
    repeated = [id_ for id_, count in Counter(case["id"] for case in all_cases()).items() if count > 1]
    assert repeated == []


def test_the_lists_name_what_exists() -> None:
    assert set() == DISPUTED.keys() - {case["id"] for case in all_cases()}


def summary_lines() -> list[str]:
    """For the end of the test run: how the cases came out that do not fail."""
    lines = []
    for group in ("contested", "disputed"):
        differing = OUTCOMES.differing.get(group, [])
        if differing or OUTCOMES.passed[group]:
            lines.append(f"cases, {group}: {OUTCOMES.passed[group]} as expected, {len(differing)} differ")
            if differing:
                lines.append("  differ: " + " ".join(differing))
    return lines
