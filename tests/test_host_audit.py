"""The audit log: one line a repaired call, verbatim, rotated, readable after a crash."""

from __future__ import annotations

import os
import random
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from streamscrub import Repair, ToolCall, scrub
from streamscrub.events import Event
from streamscrub.host import AuditLog, read_audit
from streamscrub.records import from_record

from .killing import killed_writers

BLOCK: Final = "<tool_call>{'name': 'login', 'arguments': {'token': 'hunter2',}}</tool_call>"
TOOLS: Final = [{"name": "login", "parameters": {"type": "object", "properties": {"token": {"type": "string"}}}}]


def events(text: str = BLOCK) -> list[Event]:
    return scrub(text, TOOLS).events


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_a_repaired_call_is_one_line_with_its_block_and_its_repairs(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", clock=lambda: 1764500000.1234, sync=True)
    clean = BLOCK.replace("'", '"').replace(",}", "}")
    assert log.add(events(f"Hi {BLOCK}{clean}{BLOCK}"), model="m", response="r1") == 2
    assert log.add(events(clean)) == log.add([]) == 0
    first, second = read_audit(log.path)
    assert (first["time"], first["model"], first["response"], first["raw"]) == (1764500000.123, "m", "r1", BLOCK)
    assert [repair["kind"] for repair in first["repairs"]].count("trailing_comma") == 1
    assert from_record(second) == [one for one in events(f"Hi {BLOCK}{clean}{BLOCK}") if isinstance(one, ToolCall)][2]


def test_a_block_of_any_bytes_is_verbatim(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl")
    call = ToolCall(0, "x", {"a": "\ud7ff\n"}, bytes(range(256)), "g", (0, 256), (Repair("name"),))
    log.add([call])
    (record,) = read_audit(log.path)
    assert from_record(record) == call


def test_arguments_may_be_hashed_and_the_block_stays(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", hash_arguments=True)
    log.add(events(BLOCK * 2))
    one, two = read_audit(log.path)
    assert one["arguments"] == two["arguments"]
    assert one["arguments"].startswith("sha256:")
    assert one["raw"] == BLOCK


def test_the_hook_changes_or_withholds_a_record(tmp_path: Path) -> None:
    def redact(record: dict[str, Any]) -> dict[str, Any] | None:
        return None if record["number"] else {**record, "raw": record["raw"].replace("hunter2", "***"), "arguments": {}}

    log = AuditLog(tmp_path / "a.jsonl", redact=redact)
    assert log.add(events(BLOCK * 2)) == 1
    assert "***" in lines(log.path)[0]
    log = AuditLog(tmp_path / "b.jsonl", redact=lambda record: {**record, "repairs": [], "arguments": {}, "raw": ""})
    log.add(events())
    assert "hunter2" not in (tmp_path / "b.jsonl").read_text()


@pytest.mark.parametrize("result", [ValueError("no"), {1: {2}}, object()])
def test_a_hook_that_fails_writes_no_secret(tmp_path: Path, result: Any) -> None:
    def redact(record: dict[str, Any]) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    log = AuditLog(tmp_path / "a.jsonl", redact=redact)
    assert log.add(events()) == 1
    (record,) = read_audit(log.path)
    assert record["redact_failed"] in ("ValueError", "TypeError")
    assert "trailing_comma" in record["kinds"]
    assert "hunter2" not in lines(log.path)[0]


# Crashes


def test_a_torn_last_line_is_skipped_and_reported(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl")
    log.add(events(BLOCK * 3))
    whole = log.path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in (last + 1, last + 40, len(whole) - 2):
        log.path.write_bytes(whole[:cut])
        problems: list[str] = []
        assert len(list(read_audit(log.path, problems.append))) == 2
        assert len(problems) == 1
        assert "line 3 is no record (the last one, torn)" in problems[0]
    with pytest.warns(UserWarning, match="torn"):
        list(read_audit(log.path))


def test_the_next_writer_closes_a_torn_line(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl")
    log.add(events(BLOCK * 2))
    log.path.write_bytes(log.path.read_bytes()[:-30])
    log.add(events())
    problems: list[str] = []
    assert len(list(read_audit(log.path, problems.append))) == 2
    assert len(problems) == 1
    assert "line 2 is no record;" in problems[0]


@pytest.mark.parametrize("line", [b"[" * 100_000, b"3", b"null", b"\xff\xfe", b'"x"'])
def test_lines_that_are_no_objects_are_skipped(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "a").write_bytes(line + b'\n\n{"a": 1}\n')
    problems: list[str] = []
    assert list(read_audit(tmp_path / "a", problems.append)) == [{"a": 1}]
    assert len(problems) == 1


def test_a_log_that_is_not_there_has_no_records(tmp_path: Path) -> None:
    assert list(read_audit(tmp_path / "none")) == []


# Rotation


def test_old_files_are_numbered_and_the_oldest_goes(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a[1].jsonl", max_bytes=1600, keep=2)
    for number in range(12):
        log.add(events(), response=str(number))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a[1].jsonl", "a[1].jsonl.1", "a[1].jsonl.2", "a[1].jsonl.lock",
    ]  # fmt: skip
    found = [record["response"] for record in read_audit(log.path)]
    assert found == [str(number) for number in range(12)][-len(found) :]
    assert all(path.stat().st_size <= 1600 for path in tmp_path.iterdir())


def test_a_line_that_is_larger_than_a_file_has_one_of_its_own(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a", max_bytes=10, keep=3)
    for number in range(3):
        log.add(events(), response=str(number))
    assert [record["response"] for record in read_audit(log.path)] == ["0", "1", "2"]


def test_a_rotation_that_was_killed_loses_nothing(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a", max_bytes=10, keep=3)
    for number in range(4):
        log.add(events(), response=str(number))
    os.replace(tmp_path / "a.1", tmp_path / "a.1x")  # as after the first half of a rotation: a gap
    os.replace(tmp_path / "a.2", tmp_path / "a.1")
    os.remove(tmp_path / "a.1x")
    before = [record["response"] for record in read_audit(log.path)]
    log.add(events(), response="4")
    assert [record["response"] for record in read_audit(log.path)] == [*before, "4"]


@pytest.mark.parametrize("limits", [{"max_bytes": 0}, {"keep": 0}])
def test_limits_below_one_are_refused(tmp_path: Path, limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        AuditLog(tmp_path / "a", **limits)  # type: ignore[arg-type]


# Several writers


def write_many(path: str, name: str) -> int:
    log = AuditLog(path, max_bytes=4000, keep=200)
    return sum(log.add(events(), response=f"{name}-{number}") for number in range(40))


@pytest.mark.skipif(os.name != "posix", reason="without flock a rotation by two processes may lose lines")
def test_processes_write_whole_lines_over_rotations(tmp_path: Path) -> None:
    path = str(tmp_path / "a.jsonl")
    with ProcessPoolExecutor(4) as pool:
        assert sum(pool.map(write_many, [path] * 4, "abcd")) == 160
    problems: list[str] = []
    found = [record["response"] for record in read_audit(path, problems.append)]
    assert (len(found), len(set(found)), problems) == (160, 160, [])
    for name in "abcd":
        assert [one for one in found if one[0] == name] == [f"{name}-{number}" for number in range(40)]


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_a_kill_while_writing_loses_at_most_the_line_at_hand(tmp_path: Path) -> None:
    draw = random.Random(3)
    numbers = count()
    log = AuditLog(tmp_path / "a.jsonl", max_bytes=50_000, keep=5000)

    def write(writer: int) -> None:
        call = ToolCall(0, "x", {}, b"y" * 3000, "g", (0, 3000), (Repair("name"),))
        log.add([call], response=f"{turn}-{writer}-{next(numbers)}")

    told = 0
    for turn in range(20):
        told += killed_writers(write, 2, draw.uniform(0.0, 0.05))
        problems: list[str] = []
        found = [record["response"] for record in read_audit(log.path, problems.append)]
        assert len(set(found)) == len(found)
        assert told <= len(found) <= told + 2 * (turn + 1)
        assert len(problems) <= 2 * (turn + 1)
