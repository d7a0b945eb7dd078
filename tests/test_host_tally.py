"""The tally and its SQLite file: counting, merging, many writers, and a kill at any point."""

from __future__ import annotations

import json
import os
import pickle
import random
import sqlite3
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamscrub import StreamScrubber, scrub
from streamscrub.events import REJECT_REASONS, Event
from streamscrub.host import Counts, Tally, TallyStore
from streamscrub.host.tally import COUNTERS, MAX_MODELS, OTHERS, counts_of

from .killing import killed_writers

PING: Final = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
CLEAN: Final = '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
TEXT: Final = (
    f"{CLEAN}<tool_call>{{'name': 'pings', 'arguments': {{}}}}</tool_call><|im_end|><|im_end|> and "
    '<tool_call>{"name": "erase"}</tool_call><tool_call>{"name": "ping", "arguments": 7}</tool_call><|im_end|>'
)

counts: Any = st.builds(Counts, *[st.integers(0, 1000)] * len(COUNTERS))
tallies: Any = st.builds(Tally, st.dictionaries(st.text(max_size=6), counts, max_size=4))


def test_one_response_is_counted() -> None:
    found = counts_of(scrub(TEXT, [PING]).events, given_up=True)
    wanted = Counts(1, 2, 1, 1, rejected_unknown_tool=1, rejected_malformed=1, given_up=1, leaked=2)
    assert found == wanted
    assert (found.clean, found.failures, found.rejected) == (1, 1, {"unknown_tool": 1, "malformed": 1})


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_counts_do_not_depend_on_the_cut(size: int) -> None:
    scrubber = StreamScrubber([PING])
    events: list[Event] = []
    for at in range(0, len(TEXT), size):
        events += scrubber.feed(TEXT[at : at + size])
    assert counts_of([*events, *scrubber.finish("stop")]) == counts_of(scrub(TEXT, [PING]).events)


def test_every_reason_has_a_counter() -> None:
    assert [name.removeprefix("rejected_") for name in COUNTERS if name.startswith("rejected_")] == list(REJECT_REASONS)
    assert tuple(field for field in Counts.__slots__) == COUNTERS


@settings(max_examples=40)
@given(tallies, tallies, tallies)
def test_merging_adds_up_in_any_order(one: Tally, two: Tally, three: Tally) -> None:
    assert one.merge(two).merge(three) == three.merge(one.merge(two))
    assert one.merge(two).total == one.total + two.total
    assert one.merge(Tally()) == one


@settings(max_examples=40)
@given(tallies)
def test_a_tally_survives_json(tally: Tally) -> None:
    assert Tally.from_dict(json.loads(json.dumps(tally.to_dict()))) == tally
    assert all(0 <= one["rate"] <= 100 or one["repaired"] > one["calls"] for one in tally.to_dict().values())


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", None])
def test_a_count_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="m: calls is no count"):
        Tally.from_dict({"m": {"calls": value}})


def test_model_ids_that_somebody_makes_up_are_bounded() -> None:
    tally = Tally({str(number): Counts(1) for number in range(MAX_MODELS)})
    tally.add("one more", [])
    tally.add("and more", [])
    assert len(tally.models) == MAX_MODELS + 1
    assert tally.models[OTHERS].responses == 2


def test_the_summary_of_nothing_is_no_rate() -> None:
    assert Counts(responses=3).summary == Counts(rejected_unknown_tool=1).summary == "no calls"
    assert Counts(rejected_malformed=1).summary == "0/1 clean (0%)"


def test_the_table_has_the_least_reliable_first() -> None:
    tally = Tally({"good": Counts(1, 4), "bad": Counts(2, 8, 2, 1, rejected_truncated=2), "": Counts(1)})
    tally.give_up("bad")
    assert tally.table().splitlines() == [
        "model      responses  calls  clean  repaired  names  rejected  cut  given up  leaked  rate",
        "bad                2      8      6         2      1         2    2         1       0   60%",
        "(unknown)          1      0      0         0      0         0    0         0       0     -",
        "good               1      4      4         0      0         0    0         0       0  100%",
        "all                4     12     10         2      1         2    2         1       0   71%",
        "  bad: rejected as truncated 2",
    ]
    assert Tally().table().count("\n") == 1


# The file


def test_a_store_keeps_what_it_was_given(tmp_path: Path) -> None:
    store = TallyStore(tmp_path / "tally.db")
    added = store.add("m", scrub(TEXT, [PING]).events)
    store.merge(Tally({"m": Counts(1, 5), "é\ud800".encode("utf-8", "replace").decode(): Counts(1)}))
    assert store.read().models["m"] == added + Counts(1, 5)
    assert store.read() == pickle.loads(pickle.dumps(store)).read()
    assert repr(store).startswith("TallyStore('")


def test_a_source_is_counted_once(tmp_path: Path) -> None:
    store = TallyStore(tmp_path / "tally.db")
    tally = Tally({"m": Counts(1)})
    assert [store.merge(tally, "a"), store.merge(tally, "a"), store.merge(tally, "b")] == [True, False, True]
    assert store.read().models["m"].responses == 2


def test_an_error_in_between_changes_nothing(tmp_path: Path) -> None:
    store = TallyStore(tmp_path / "tally.db")
    store.merge(Tally({"m": Counts(1)}))
    with pytest.raises(OverflowError):
        store.merge(Tally({"m": Counts(5), "n": Counts(2**70)}))  # more than a file can hold
    assert store.read().models["m"].responses == 1


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        TallyStore(tmp_path / "text").read()
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE counts_of_sheep (number INTEGER)")
    with pytest.raises(sqlite3.DatabaseError, match="layout"):
        TallyStore(tmp_path / "other.db").read()
    with closing(sqlite3.connect(tmp_path / "new.db")) as newer:
        newer.execute("PRAGMA user_version = 9")
    with pytest.raises(sqlite3.DatabaseError, match="layout 9"):
        TallyStore(tmp_path / "new.db").read()


def add_many(path: str, name: str, times: int) -> int:
    store = TallyStore(path)
    for _ in range(times):
        store.merge(Tally({name: Counts(1, 2), "all": Counts(1)}))
    return times


def test_processes_write_at_the_same_time(tmp_path: Path) -> None:
    path = str(tmp_path / "tally.db")
    with ProcessPoolExecutor(4) as pool:
        done = list(pool.map(add_many, [path] * 8, [f"m{number % 3}" for number in range(8)], [25] * 8))
    found = TallyStore(path).read()
    assert found.models["all"].responses == sum(done) == 200
    assert sum(counts.calls for counts in found.models.values()) == 400


def test_threads_share_one_store(tmp_path: Path) -> None:
    store = TallyStore(tmp_path / "tally.db")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: store.merge(Tally({"m": Counts(1)})), range(80)))
    assert store.read().models["m"].responses == 80


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_a_kill_at_any_point_leaves_whole_transactions(tmp_path: Path) -> None:
    path = str(tmp_path / "tally.db")
    draw = random.Random(5)
    numbers = count()

    def write(writer: int) -> None:
        both = Tally({"a": Counts(1, 3), "b": Counts(1, 3)})
        TallyStore(path).merge(both, f"{turn}-{writer}-{next(numbers)}")

    told = 0
    for turn in range(20):
        told += killed_writers(write, 2, draw.uniform(0.0, 0.1))
        models = TallyStore(path).read().models
        assert models["a"] == models["b"]  # both rows of a transaction or none
        assert models["a"].calls == 3 * models["a"].responses
        # What was told to be written is there, and at most what each killed writer had at hand.
        assert told <= models["a"].responses <= told + 2 * (turn + 1)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert file.execute("SELECT count(*) FROM seen").fetchone() == (models["a"].responses,)
