"""A tally that stays: in a SQLite file which any number of processes may write, and which a kill cannot harm."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from os import PathLike, fspath
from typing import Final

from ..events import Event
from ..names import encodable
from .tally import COUNTERS, Counts, Tally, counts_of

# Seconds that a writer waits for the others. One write takes a few milliseconds.
PATIENCE: Final = 30.0
# The layout of the file, in its ``user_version``.
LAYOUT: Final = 1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS counts (
  model TEXT NOT NULL, counter TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (model, counter)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (source TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
"""
_ADD: Final = (
    "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (model, counter) DO UPDATE SET value = value + excluded.value"
)


class TallyStore:
    """Counts by model in one SQLite file.

    The object is only a path: it may be shared by threads, survive a fork and be pickled. Each operation opens the
    file, does one transaction and closes it (a few milliseconds). A transaction is there whole or not at all, so the
    file is right after a kill at any point. With a power cut the last transactions may be missing.

    Raises ``sqlite3.Error`` if the file cannot be written or is none of ours.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = fspath(path)

    def __repr__(self) -> str:
        return f"TallyStore({self.path!r})"

    def add(self, model: str, events: Iterable[Event], given_up: bool = False) -> Counts:
        """Count one response of ``model``, and return what was added."""
        counts = counts_of(events, given_up)
        self.merge(Tally({model: counts}))
        return counts

    def merge(self, tally: Tally, source: str = "") -> bool:
        """Add a tally in one transaction. With ``source`` (a digest, a run id) it is added only the first time.

        Returns False if that source was counted already.
        """
        rows = [
            (encodable(model), name, getattr(counts, name))
            for model, counts in tally.models.items()
            for name in COUNTERS
            if getattr(counts, name)
        ]
        with self._open() as file:
            if source and not file.execute("INSERT OR IGNORE INTO seen VALUES (?)", (source,)).rowcount:
                return False
            file.executemany(_ADD, rows)
        return True

    def read(self) -> Tally:
        """What was counted so far."""
        found: dict[str, dict[str, int]] = {}
        with self._open() as file:
            for model, counter, value in file.execute("SELECT model, counter, value FROM counts"):
                if counter in COUNTERS:  # a newer version may count more
                    found.setdefault(model, {})[counter] = value
        return Tally({model: Counts(**counts) for model, counts in found.items()})

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction that is committed at the end, and rolled back by any error."""
        with closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as file:
            _patiently(lambda: _prepare(file))
            _patiently(lambda: file.execute("BEGIN IMMEDIATE"))
            try:
                yield file
            except BaseException:
                file.execute("ROLLBACK")
                raise
            file.execute("COMMIT")


def _prepare(file: sqlite3.Connection) -> None:
    # With WAL readers never wait. NORMAL: no fsync a write; what was committed survives the process, not a power cut.
    if file.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        file.execute("PRAGMA journal_mode = WAL")
    file.execute("PRAGMA synchronous = NORMAL")
    (layout,) = file.execute("PRAGMA user_version").fetchone()
    if layout == LAYOUT:
        return
    if layout or file.execute("SELECT count(*) FROM sqlite_master WHERE name NOT IN ('counts', 'seen')").fetchone()[0]:
        raise sqlite3.DatabaseError(f"no tally of this version (layout {layout}, expected {LAYOUT})")
    file.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {LAYOUT}; COMMIT;")


def _patiently(attempt: Callable[[], object]) -> None:
    """Try again while the file is locked: on the change to WAL SQLite does not wait by itself."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            attempt()
            return
        except sqlite3.OperationalError as error:
            if not any(word in str(error) for word in ("locked", "busy")) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
