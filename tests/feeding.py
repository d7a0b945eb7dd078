"""Runs a text through a scrubber in every way it can be cut, which no test can avoid.

``feed_all_ways`` is the one door: it feeds a text whole, by characters, by fours, as single bytes and at random cuts,
asserts that all ways agree after every prefix, checks what must hold for any input, and returns the merged events.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

from streamscrub import StreamScrubber
from streamscrub.events import (
    ArgumentsDelta,
    CallStarted,
    Dropped,
    Event,
    Reasoning,
    RejectedCall,
    Scrubbed,
    Text,
    ToolCall,
)

Chunk: TypeAlias = str | bytes
# Where a merged stream stands: events, kind of the last, bytes covered, size of the last. With equal events at the end,
# equal marks at every prefix mean equal events at every prefix: only the last event of a merged list can still grow.
Mark: TypeAlias = tuple[int, str, int, int]

# Texts longer than this are cut in fewer ways, to keep the suite quick.
LONG: Final = 4096
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def wire_of(text: Chunk) -> bytes:
    """The wire bytes of a text: surrogate pairs are joined, a lone surrogate is EF BF BD."""
    if isinstance(text, bytes):
        return text
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.encode("utf-8")


class Merger:
    """Joins what chunking may split: adjacent Text, Reasoning, Dropped of one kind, ArgumentsDelta of one call."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._parts: list[Any] = []
        self._size = 0
        self._end = 0  # of the last event that covers bytes

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            if not isinstance(event, (CallStarted, ArgumentsDelta)):
                self._end = event.span[1]
            if self._events and _joins(self._events[-1], event):
                last = self._events[-1]
                self._events[-1] = replace(last, span=(last.span[0], event.span[1]))
                self._parts.append(_content(event))
                self._size += len(_content(event))
            else:
                self._close()
                self._events.append(event)
                self._parts = [_content(event)]
                self._size = len(_content(event))

    def _close(self) -> None:
        """Write the collected content into the last event."""
        if len(self._parts) > 1:
            last = self._events[-1]
            if isinstance(last, Dropped):
                self._events[-1] = replace(last, raw=b"".join(self._parts))
            elif isinstance(last, (Text, Reasoning, ArgumentsDelta)):
                self._events[-1] = replace(last, text="".join(self._parts))
            self._parts = ["".join(self._parts) if isinstance(self._parts[0], str) else b"".join(self._parts)]

    def mark(self) -> Mark:
        if not self._events:
            return 0, "", 0, 0
        last = self._events[-1]
        return len(self._events), type(last).__name__, self._end, self._size

    def events(self) -> list[Event]:
        self._close()
        return list(self._events)


def _joins(last: Event, event: Event) -> bool:
    if type(last) is not type(event):
        return False
    if isinstance(last, (Text, Reasoning)):
        return True
    if isinstance(last, Dropped) and isinstance(event, Dropped):
        return last.kind == event.kind
    if isinstance(last, ArgumentsDelta) and isinstance(event, ArgumentsDelta):
        return last.number == event.number
    return False


def _content(event: Event) -> str | bytes:
    if isinstance(event, (Text, Reasoning, ArgumentsDelta)):
        return event.text
    return event.raw if isinstance(event, Dropped) else b""


def merged(events: Iterable[Event]) -> list[Event]:
    """``events`` with everything joined that chunking may split."""
    merger = Merger()
    merger.add(events)
    return merger.events()


def equal_parts(text: Chunk, size: int) -> list[Chunk]:
    """``text`` in pieces of ``size``."""
    return [text[i : i + size] for i in range(0, len(text), size)]


def random_parts(text: Chunk, seed: int, most: int = 12) -> list[Chunk]:
    """``text`` in pieces of 1 to ``most``, the same for the same seed."""
    draw = random.Random(seed)
    parts: list[Chunk] = []
    at = 0
    while at < len(text):
        size = draw.randint(1, most)
        parts.append(text[at : at + size])
        at += size
    return parts


def ways_to_cut(text: Chunk) -> Iterator[tuple[str, list[Chunk]]]:
    """(what it is, the pieces) for every way in which a text is run."""
    wire = wire_of(text)
    seed = zlib.crc32(wire)
    short = len(wire) <= LONG
    if short:
        yield "single bytes", list(equal_parts(wire, 1))
    yield "whole", [text] if text else []
    if isinstance(text, str):
        yield "fours", equal_parts(text, 4)
        if short:
            yield "characters", equal_parts(text, 1)
            yield "random characters", random_parts(text, seed)
            yield "whole bytes", [wire]
            yield "random bytes, short", random_parts(wire, seed + 1, 4)
    yield "random bytes", random_parts(wire, seed + 2, 40)


def run(
    chunks: Iterable[Chunk],
    tools: Any = None,
    finish_reason: str | None = "stop",
    *,
    wire: bytes | None = None,
    **options: Any,
) -> tuple[list[Event], dict[int, Mark]]:
    """Feed ``chunks`` to a new scrubber: (merged events, wire offset -> where the events stood after that prefix).

    With ``wire`` the bytes held back are compared with those that no event covers yet.
    """
    scrubber = StreamScrubber(tools, **options)
    merger = Merger()
    marks: dict[int, Mark] = {}
    offset, torn = 0, ""
    for chunk in chunks:
        merger.add(scrubber.feed(chunk))
        if isinstance(chunk, str):
            # A high surrogate at the end of a delta may find its partner in the next; it is no byte yet.
            chunk, torn = torn + chunk, ""
            if chunk and "\ud800" <= chunk[-1] <= "\udbff":
                chunk, torn = chunk[:-1], chunk[-1]
        offset += len(wire_of(chunk))
        marks[offset] = mark = merger.mark()
        if wire is not None and not torn:
            assert scrubber.held == wire[mark[2] : offset], f"held after {offset} bytes"
    merger.add(scrubber.finish(finish_reason))
    assert scrubber.finish(finish_reason) == [], "the second finish returned events"
    assert scrubber.held == b"", "something is held after the finish"
    return merger.events(), marks


def feed_all_ways(text: Chunk, tools: Any = None, finish_reason: str | None = "stop", **options: Any) -> list[Event]:
    """The merged events of ``text``, after asserting that no way of cutting it changes them."""
    wire = wire_of(text)
    expected: list[Event] | None = None
    marks: dict[int, Mark] = {}
    first = ""
    for way, chunks in ways_to_cut(text):
        check = wire if way == "single bytes" else None
        events, seen = run(chunks, tools, finish_reason, wire=check, **options)
        if expected is None:
            expected, first, marks = events, way, seen
            check_invariants(events, wire)
            continue
        if events != expected:
            raise AssertionError(f"{way} and {first} differ: {_difference(events, expected)}\nwire: {wire[:400]!r}")
        for offset, mark in seen.items():
            other = marks.setdefault(offset, mark)
            assert mark == other, f"after {offset} bytes {wire[:offset][-60:]!r}: {way} {mark}, {first} {other}"
    assert expected is not None
    return expected


def scrub_all_ways(text: Chunk, tools: Any = None, finish_reason: str | None = "stop", **options: Any) -> Scrubbed:
    """``feed_all_ways`` with the views of a ``Scrubbed``."""
    return Scrubbed(feed_all_ways(text, tools, finish_reason, **options))


def prefix_events(
    text: Chunk, tools: Any = None, finish_reason: str | None = "stop", **options: Any
) -> list[list[Event]]:
    """The merged events after each prefix of the wire bytes, before any finish; item 0 is the empty prefix.

    Quadratic on purpose: it keeps every list and compares each with a scrubber that got the prefix in one piece.
    """
    wire = wire_of(text)
    scrubber = StreamScrubber(tools, **options)
    so_far: list[Event] = []
    after: list[list[Event]] = [[]]
    for offset in range(1, len(wire) + 1):
        so_far.extend(scrubber.feed(wire[offset - 1 : offset]))
        in_one = merged(StreamScrubber(tools, **options).feed(wire[:offset]))
        so_far = merged(so_far)
        assert so_far == in_one, f"after {offset} bytes: {_difference(so_far, in_one)}"
        after.append(list(so_far))
    whole = merged([*so_far, *scrubber.finish(finish_reason)])
    check_invariants(whole, wire)
    return after


def _difference(events: list[Event], expected: list[Event]) -> str:
    for index, (left, right) in enumerate(zip(events, expected, strict=False)):
        if left != right:
            return f"event {index}:\n  {left!r}\n  {right!r}"
    return f"{len(events)} and {len(expected)} events: {(events + expected)[min(len(events), len(expected)) :][:2]!r}"


def check_invariants(events: list[Event], wire: bytes) -> None:
    """What holds for every input: the spans tile the wire, raw is the wire, strings encode, numbers count."""
    at = 0
    numbers: list[int] = []
    started: list[int] = []
    for event in events:
        start, end = event.span
        if isinstance(event, (CallStarted, ArgumentsDelta)):
            # It stands where its block starts; what leads to the block may still be held.
            assert at <= start == end <= len(wire), f"a progress event out of place: {event!r}"
            if isinstance(event, CallStarted):
                started.append(event.number)
                _assert_encodes(event.name)
            else:
                _assert_encodes(event.text)
            continue
        assert start == at, f"a gap or an overlap at {at}: {event!r}"
        piece = wire[start:end]
        at = end
        if isinstance(event, (Text, Reasoning)):
            assert event.text, f"an empty event: {event!r}"
            assert event.text == piece.decode("utf-8", "replace"), f"the text is not the wire's: {event!r} {piece!r}"
            _assert_encodes(event.text)
            continue
        assert event.raw == piece, f"raw is not the wire's: {event!r} {piece!r}"
        assert piece or not wire, f"an event without bytes: {event!r}"
        if isinstance(event, (ToolCall, RejectedCall)):
            numbers.append(event.number)
            _check_call(event)
    assert at == len(wire), f"the events end at {at} of {len(wire)}"
    assert sorted(numbers) == list(range(len(numbers))), f"numbers {numbers}"
    assert set(started) <= set(numbers), f"announced {started}, reported {numbers}"
    assert len(started) == len(set(started)), f"announced twice: {started}"


def _check_call(event: ToolCall | RejectedCall) -> None:
    _assert_encodes(event.name, event.model_id, event.grammar)
    if event.arguments is not None:
        assert isinstance(event.arguments, dict), f"arguments are no object: {event!r}"
        json.dumps(event.arguments, ensure_ascii=False, allow_nan=False).encode("utf-8")
    if isinstance(event, ToolCall):
        assert event.name, f"a call without a name: {event!r}"
        for repair in event.repairs:
            _assert_encodes(repair.kind, repair.where, repair.before, repair.after)
    else:
        _assert_encodes(event.detail)


def _assert_encodes(*texts: str | None) -> None:
    for text in texts:
        if text is not None:
            text.encode("utf-8")
