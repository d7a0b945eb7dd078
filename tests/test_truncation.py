"""Every case that holds a call, cut at every offset: a call whose block was cut is never run, and nothing raises."""

from __future__ import annotations

import random
import zlib
from typing import Any, Final

import pytest

from streamscrub import scrub
from streamscrub.events import ToolCall

from .feeding import check_invariants, merged, wire_of
from .test_cases import all_cases

# Longer texts are cut at this many places, drawn from a fixed seed.
MOST_CUTS: Final = 160
# Case id -> why a cut may give a call that the whole text does not give.
DOCUMENTED: Final[dict[str, str]] = {
    "tinytools-invoke-016": "a value that holds the call's own closer: cut there, it looks complete",
    "vllm-qwen3_coder-quirk-012": "the same with another tag",
}

WITH_CALLS: Final = [case for case in all_cases() if case["expect"]["calls"] or case["expect"]["rejected"]]


def offsets(text: str) -> list[int]:
    """Where a text is cut."""
    everywhere = list(range(len(text)))
    if len(everywhere) <= MOST_CUTS:
        return everywhere
    return sorted(random.Random(zlib.crc32(text.encode())).sample(everywhere, MOST_CUTS))


def same(call: ToolCall, whole: ToolCall) -> bool:
    """The call of a cut text is that of the whole one; only what follows its last bracket may be missing from raw."""
    return (call.name, call.arguments) == (whole.name, whole.arguments) and whole.raw.startswith(call.raw)


@pytest.mark.parametrize("case", WITH_CALLS, ids=lambda case: case["id"])
def test_no_cut_call_is_run(case: dict[str, Any]) -> None:
    text, tools, options = case["text"], case["tools"], case["options"]
    whole = scrub(text, tools, finish_reason="stop", **options).calls
    for offset in offsets(text):
        result = scrub(text[:offset], tools, finish_reason="length", **options)
        check_invariants(merged(result.events), wire_of(text[:offset]))
        if case["id"] in DOCUMENTED:
            continue
        where = f"cut at {offset}: ...{text[max(0, offset - 40) : offset]!r}"
        assert len(result.calls) <= len(whole), f"{where}: {result.calls!r}"
        for call, expected in zip(result.calls, whole, strict=False):
            assert same(call, expected), f"{where}:\n{call!r}\nis not\n{expected!r}"


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "content_filter", None])
def test_every_reason_of_a_cut_is_one(reason: str | None) -> None:
    for case in WITH_CALLS[::5]:
        text = case["text"][: len(case["text"]) * 2 // 3]
        expected = scrub(text, case["tools"], finish_reason="length", **case["options"])
        assert expected == scrub(text, case["tools"], finish_reason=reason, **case["options"]), case["id"]


@pytest.mark.parametrize("reason", ["tool-calls", "END_TURN", "FINISH_REASON_STOP", "eos_token", "complete"])
def test_every_ordinary_reason_is_one(reason: str) -> None:
    for case in WITH_CALLS[::5]:
        expected = scrub(case["text"], case["tools"], finish_reason="stop", **case["options"])
        assert expected == scrub(case["text"], case["tools"], finish_reason=reason, **case["options"]), case["id"]


def test_the_documented_ids_exist() -> None:
    assert set() == DOCUMENTED.keys() - {case["id"] for case in all_cases()}
