"""The verbs ``replay`` and ``tally``: saved responses through the current parser, and what they add up to."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from .console import Usage, out, plain, say, short, stdin
from .host.policies import gave_up
from .host.replaying import VERDICTS, Baseline, Result, case_of, replay_all, reread
from .host.reply import reply_of
from .host.sessions import Response, Saved, read_open, read_session, session_record
from .host.store import TallyStore
from .host.tally import Tally

# Bytes of input from which several processes are worth their start.
_MANY: Final = 4 << 20
# Seconds after which a bar is shown, and between two of its states.
_PATIENCE: Final = 1.0
_TICK: Final = 0.1
_SAID: Final = {
    "regression": "no longer resolves", "repair": "newly needs a repair", "changed": "changed",
    "handled": "now handled", "new": "new", "same": "same", "unreadable": "unreadable",
}  # fmt: skip
_NOT_WORTH_A_CASE: Final = frozenset(("same", "unreadable", "new"))


def replay_verb(args: argparse.Namespace, tools: list[Any] | None) -> int:
    """Replay the sessions; 1 if anything that resolved no longer does."""
    if {args.record, args.save_case} & {*args.files, args.baseline} - {None}:
        raise Usage("streamscrub replay: --record and --save-case need files of their own")
    jobs = args.jobs or (os.cpu_count() or 1 if _size(args.files) >= _MANY else 1)
    baseline = Baseline(_saved([args.baseline])) if args.baseline else None
    counts: Counter[str] = Counter()
    told: list[dict[str, Any]] = []
    with (
        closing(_Bar(_size(args.files))) as bar,
        _Sink(args.save_case, "a") as cases,
        _Sink(args.record, "w") as record,
    ):
        saved = (_completed(one, args, tools) for one in _saved(args.files, bar.add))
        for one, result in replay_all(saved, baseline, jobs, keep=args.record is not None):
            counts[result.verdict] += 1
            if args.json and result.verdict != "same":
                told.append(result.to_dict())
            elif result.verdict not in ("same", "new"):
                bar.clear()
                out(_row(result))
            if isinstance(one, Response):
                if cases.wanted and result.verdict not in _NOT_WORTH_A_CASE:
                    cases.write(case_of(one, result))
                if record.wanted and result.verdict != "unreadable":
                    record.write(_rerecorded(one, result))
    if args.json:
        verdicts = {verdict: counts[verdict] for verdict in VERDICTS}
        out(json.dumps({"responses": counts.total(), "verdicts": verdicts, "turns": told}, ensure_ascii=False) + "\n")
    else:
        number = counts.total()
        said = ", ".join(f"{counts[verdict]} {_SAID[verdict]}" for verdict in VERDICTS if counts[verdict]) or "nothing"
        out(f"{number} response{'s' * (number != 1)}: {said}\n")
    return int(counts["regression"] > 0)


def tally_verb(args: argparse.Namespace, tools: list[Any] | None) -> int:
    """Count the logs, add them to the file if there is one, and show what it holds."""
    if not args.db and not args.logs:
        raise Usage("streamscrub tally: nothing to count: name logs, or --db FILE")
    if args.db and not args.logs and not Path(args.db).is_file():
        raise Usage(f"streamscrub: cannot read {args.db}: No such file or directory")
    store = TallyStore(args.db) if args.db else None
    total = Tally()
    with closing(_Bar(_size(args.logs))) as bar:
        for path in args.logs:
            one = _tallied(path, args, tools, bar)
            if store is None:
                total = total.merge(one)
            elif not _with_store(store, partial(TallyStore.merge, tally=one, source=_digest(path))):
                say(sys.stderr, f"streamscrub: {short(path)} was counted before and is passed over\n")
    if store is not None:
        total = _with_store(store, TallyStore.read)
    if args.json:
        out(json.dumps(total.to_dict(), ensure_ascii=False, indent=2) + "\n")
    else:
        out(total.table())
    return 0


def _with_store(store: TallyStore, use: Callable[[TallyStore], Any]) -> Any:
    try:
        return use(store)
    except sqlite3.Error as error:
        raise Usage(f"streamscrub: cannot use {store.path}: {error}") from None


def _tallied(path: str, args: argparse.Namespace, tools: list[Any] | None, bar: _Bar) -> Tally:
    tally = Tally()
    for one in _saved([path], bar.add):
        response = _completed(one, args, tools)
        if not isinstance(response, Response):
            bar.clear()
            say(sys.stderr, f"streamscrub: {plain(response.where)}: {plain(response.problem)}, passed over\n")
            continue
        try:
            events = reread(response) if response.events is None else response.events
        except (TypeError, ValueError) as error:
            bar.clear()
            say(sys.stderr, f"streamscrub: {plain(response.where)}: {short(str(error))}, passed over\n")
            continue
        tally.add(response.model, events, gave_up(reply_of(events, response.finish_reason)))
    return tally


def _completed(one: Saved, args: argparse.Namespace, tools: list[Any] | None) -> Saved:
    """What the session does not say comes from the options of the command."""
    if not isinstance(one, Response):
        return one
    options = {**one.options, "grammars": args.grammars} if args.grammars else one.options
    return replace(
        one,
        tools=one.tools if one.tools is not None else tools,
        model=one.model or args.model or "",
        options=options,
    )


def _saved(paths: Iterable[str], told: Callable[[int], None] | None = None) -> Iterator[Saved]:
    for path in paths:
        try:
            yield from read_open(stdin(), "stdin", told) if path == "-" else read_session(path, told)
        except OSError as error:
            raise Usage(f"streamscrub: cannot read {path}: {error.strerror}") from None


def _size(paths: Iterable[str]) -> int:
    try:
        return sum(os.stat(path).st_size for path in paths if path != "-")
    except OSError as error:
        raise Usage(f"streamscrub: cannot read {error.filename}: {error.strerror}") from None


def _digest(path: str) -> str:
    """What a log is known by; "" for a pipe, which is gone when it was read."""
    if path == "-" or not Path(path).is_file():
        return ""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _rerecorded(one: Response, result: Result) -> dict[str, Any]:
    return session_record(
        one.text,
        result.events,
        tools=one.tools,
        finish_reason=one.finish_reason,
        model=one.model,
        id=one.id,
        options=one.options,
    )


def _row(result: Result) -> str:
    head = f"{result.verdict:<10} {plain(result.where)}{f' ({plain(result.id)})' if result.id else ''}\n"
    return head + "".join(f"           {short(line)}\n" for line in result.details)


class _Sink:
    """A file of JSON lines that is opened when the first is written, or nothing at all."""

    def __init__(self, path: str | None, mode: str) -> None:
        self.wanted = path is not None
        self._path = path or ""
        self._mode = mode
        self._file: IO[str] | None = None

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, record: dict[str, Any]) -> None:
        """Write one line."""
        if self._file is None:
            try:
                self._file = open(self._path, self._mode, encoding="utf-8", errors="replace")  # noqa: SIM115
            except OSError as error:
                raise Usage(f"streamscrub: cannot write {self._path}: {error.strerror}") from None
        self._file.write(json.dumps(record, ensure_ascii=False) + "\n")


class _Bar:
    """How far a long input was read, on a terminal only."""

    def __init__(self, total: int) -> None:
        self._total = max(total, 1)
        self._done = 0
        self._on = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._next = time.monotonic() + _PATIENCE
        self._shown = False

    def add(self, size: int) -> None:
        """So many bytes more were read."""
        self._done += size
        if self._on and time.monotonic() >= self._next:
            part = min(self._done / self._total, 1.0)
            say(sys.stderr, f"\r{'█' * int(part * 30):·<30} {part:4.0%}")
            self._shown, self._next = True, time.monotonic() + _TICK

    def clear(self) -> None:
        """Make room for a line."""
        if self._shown:
            say(sys.stderr, "\r\x1b[K")
            self._shown = False

    close = clear
