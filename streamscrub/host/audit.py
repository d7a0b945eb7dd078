"""An append-only log of repairs: JSON lines with the verbatim block, rotated, and readable after a crash."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from ..events import Event, ToolCall
from ..records import to_record
from .reply import canonical

# Bytes after which a new file is begun, and how many old ones stay.
MAX_BYTES: Final = 16 << 20
KEEP: Final = 5

Redact = Callable[[dict[str, Any]], dict[str, Any] | None]


class AuditLog:
    """Appends one line for every repaired call: when, which model, the call, its repairs, the block before them.

    ``redact`` is the hook for secrets: it gets each record before it is written and returns what is written, or None
    for nothing. If it raises, the line says so and holds neither block nor arguments. ``hash_arguments`` writes a
    SHA-256 of the arguments instead of them; the block stays verbatim, so pass a ``redact`` as well where it may hold
    secrets. ``max_bytes`` begins a new file, ``keep`` old ones stay (``PATH.1`` is the newest of them). ``clock`` gives
    seconds since the epoch. With ``sync`` each line survives a power cut, at the cost of an fsync.

    Several processes may write to one path. A line is one write; one that a crash has torn is closed by the next.
    Raises ``ValueError`` for limits below 1, ``OSError`` if the file cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        redact: Redact | None = None,
        hash_arguments: bool = False,
        max_bytes: int = MAX_BYTES,
        keep: int = KEEP,
        sync: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if max_bytes < 1 or keep < 1:
            raise ValueError("max_bytes and keep must be at least 1")
        self.path = Path(path)
        self._redact = redact
        self._hash = hash_arguments
        self._max_bytes = max_bytes
        self._keep = keep
        self._sync = sync
        self._clock = clock

    def add(self, events: Iterable[Event], *, model: str = "", response: str = "") -> int:
        """Log the repaired calls of one response (its id is ``response``). Returns the number of lines written."""
        repaired = (event for event in events if type(event) is ToolCall and event.repairs)
        lines = [line for call in repaired if (line := self._line(call, model, response)) is not None]
        if lines:
            with _locked(self.path):
                for line in lines:
                    self._append(line)
        return len(lines)

    def _line(self, call: ToolCall, model: str, response: str) -> bytes | None:
        head = {"time": round(self._clock(), 3), "model": model, "response": response}
        record: dict[str, Any] | None = {**head, **to_record(call)}
        if self._hash:
            record = {**head, **to_record(call), "arguments": _digest(call.arguments)}
        if self._redact is not None and record is not None:
            try:
                record = self._redact(record)
                line = None if record is None else json.dumps(record, ensure_ascii=False)
            except Exception as error:  # whatever the hook does, a secret is not written and the host goes on
                kinds = [repair.kind for repair in call.repairs]
                record = {**head, "name": call.name, "kinds": kinds, "redact_failed": type(error).__name__}
                line = json.dumps(record, ensure_ascii=False)
        else:
            line = json.dumps(record, ensure_ascii=False)
        return None if line is None else line.encode("utf-8", "replace") + b"\n"

    def _append(self, line: bytes) -> None:
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(file).st_size
            if size and size + len(line) > self._max_bytes:
                os.close(file)
                file = -1
                self._rotate()
                file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
                size = os.fstat(file).st_size
            if size and _last_byte(file, size) != b"\n":
                line = b"\n" + line
            while line:
                line = line[os.write(file, line) :]
            if self._sync:
                os.fsync(file)
        finally:
            if file >= 0:
                os.close(file)

    def _rotate(self) -> None:
        """Move PATH to PATH.1, and what is in its way on by one. Killed in between, the next one goes on."""
        gaps = (number for number in range(1, self._keep) if not _numbered(self.path, number).exists())
        free = next(gaps, self._keep)
        for number in range(free, 1, -1):
            os.replace(_numbered(self.path, number - 1), _numbered(self.path, number))
        os.replace(self.path, _numbered(self.path, 1))


def read_audit(
    path: str | os.PathLike[str], report: Callable[[str], None] = lambda problem: warnings.warn(problem, stacklevel=3)
) -> Iterator[dict[str, Any]]:
    """The records of a log and of its older files, the oldest first. A file is read line by line.

    A line that is no JSON object, such as one that a crash has torn, is skipped and told to ``report``.
    """
    path = Path(path)
    suffixes = (one.suffix[1:] for one in path.parent.glob(f"{_escaped(path.name)}.*"))
    numbers = sorted((int(suffix) for suffix in suffixes if suffix.isdecimal()), reverse=True)
    for file in [*(_numbered(path, number) for number in numbers), path]:
        with suppress(FileNotFoundError), open(file, "rb") as lines:
            for number, line in enumerate(lines, 1):
                record = _parsed(line)
                if record is not None:
                    yield record
                elif line.strip():
                    torn = "" if line.endswith(b"\n") else " (the last one, torn)"
                    report(f"{file}: line {number} is no record{torn}; {len(line)} bytes were skipped")


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _digest(arguments: dict[str, Any]) -> str:
    return "sha256:" + hashlib.sha256(canonical(arguments).encode("utf-8", "replace")).hexdigest()


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _escaped(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _last_byte(file: int, size: int) -> bytes:
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes out while a line is written or a file is moved. Where there is no flock, nobody is."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
