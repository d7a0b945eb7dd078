"""Events as JSON records and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from streamscrub import ArgumentsDelta, CallStarted, Dropped, Reasoning, RejectedCall, Repair, Text, ToolCall, scrub
from streamscrub.events import Event
from streamscrub.records import from_record, to_record

CASES: Final = sorted((Path(__file__).resolve().parent / "cases").glob("*.jsonl"))
ONE_OF_EACH: Final[list[Event]] = [
    Text("Hi é", (0, 5)),
    Reasoning("Hm.", (5, 8)),
    ToolCall(
        0, "ping", {"a": [1, None]}, b"x\xff", "hermes", (8, 10), (Repair("name", "name", "p", "ping"),), "name", "i"
    ),
    RejectedCall(1, "truncated", None, None, b"y", "", (10, 11), "cut", None),
    Dropped(b"\xe2\x82", "control", (11, 13)),
    CallStarted(2, "ping", "hermes", (13, 13)),
    ArgumentsDelta(2, '{"a', (13, 13)),
]


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_a_record_is_json_and_gives_the_event_back(event: Event) -> None:
    assert from_record(json.loads(json.dumps(to_record(event)))) == event


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_events_of_all_cases_survive_the_way(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        case = json.loads(line)
        if "finish_reason" not in case or "response_template" in case:
            continue
        options = {**case.get("options", {}), "progress": True}
        for event in scrub(case["text"], case["tools"], finish_reason=case["finish_reason"], **options).events:
            assert from_record(json.loads(json.dumps(to_record(event)))) == event, case["id"]


def test_bytes_that_are_no_text_are_kept_beside_it() -> None:
    record = to_record(Dropped(b"a\xff", "control", (0, 2)))
    assert (record["raw"], record["raw_base64"]) == ("a\ufffd", "Yf8=")
    assert "raw_base64" not in to_record(Dropped("é".encode(), "control", (0, 2)))


def test_unknown_keys_are_passed_over() -> None:
    assert from_record({**to_record(ONE_OF_EACH[2]), "later": 1}) == ONE_OF_EACH[2]


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("value", [True, -1.5, [], {}, [3]])
def test_a_bad_value_is_a_value_error_that_names_the_key(event: Event, value: Any) -> None:
    for key in to_record(event):
        if (key, value) in (("repairs", []), ("arguments", {})) or (key == "raw" and "raw_base64" in to_record(event)):
            continue
        with pytest.raises(ValueError, match=rf"^{key.removesuffix('_base64')}\b|^{key}\b|^kind"):
            from_record({**to_record(event), key: value})


@pytest.mark.parametrize("record", [None, 3, "x", [], {}, {"event": "zap"}, {"event": ["text"]}, {"event": "text"}])
def test_no_record_is_a_value_error(record: Any) -> None:
    with pytest.raises(ValueError, match=r"event|text"):
        from_record(record)
