"""What a reader is: explicit state over a buffer that only grows at its end, which finds where a body ends.

Readers look at each byte a bounded number of times and never decide on what may still change. So they give the same
answer however the stream was cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Protocol, cast

from .limits import MAX_BLANKS
from .sentinels import CUT, Sentinels, byte_class, sentinels

# Verdicts of a reader. MORE: the bytes so far decide nothing. DEAD: no continuation makes this a call.
# DONE: the body ends before ``reader.at``.
MORE: Final = 0
DEAD: Final = 1
DONE: Final = 2

BLANKS: Final = b" \t\r\n"
BLANK: Final = re.compile(rb"[ \t\r\n]*+")
# Blanks between tags: U+0120 and U+010A are a blank and a newline that a byte-level vocabulary leaves behind.
GAP: Final = re.compile(rb"(?:[ \t\r\n]++|\xc4[\x8a\xa0])*+")
GAP_CUT: Final = re.compile(rb"\xc4\Z")

NOTHING: Final = sentinels(())


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """What can end a body from outside, and what its strings may be quoted with.

    ``close`` are the closers of the envelope that holds the body. ``outer`` are the markers that cannot belong to it
    between two of its tokens (openers, turn tokens, foreign closers); ``special`` are the tokenizer's own among the
    openers, ``control`` its tokens that carry nothing, ``calls`` what opens a call. ``quotes`` are tokens that a model
    writes instead of a quotation mark.
    """

    close: Sentinels = NOTHING
    outer: Sentinels = NOTHING
    special: Sentinels = NOTHING
    quotes: Sentinels = NOTHING
    control: Sentinels = NOTHING
    calls: Sentinels = NOTHING
    leads: frozenset[int] = field(init=False)  # the first bytes of what may end a body; made when first asked for

    def __getattr__(self, name: str) -> frozenset[int]:
        if name != "leads":
            raise AttributeError(name)
        leads = self.close.leads | self.outer.leads | self.quotes.leads
        object.__setattr__(self, "leads", leads)
        return leads

    def __deepcopy__(self, memo: object) -> Around:
        return self


TAIL: Final = 3  # bytes of a marker that may wait for the next delta; one that has begun further is read at once


class Run:
    """How to run over what decides nothing: ``match`` does it in bytes.

    The others look at a whole delta of text. ``loud`` finds what may decide something, or be an escape that needs
    a closer look. ``quiet`` matches a delta in which nothing decides; its group is an escape or a marker
    that has only begun, at most ``TAIL`` ASCII characters, which must be looked at once more with the next delta.
    """

    __slots__ = ("_made_of", "loud", "match", "quiet")

    def __init__(self, stops: frozenset[int], markers: Sentinels, escape: bool) -> None:
        self._made_of = (stops, markers, escape)
        halts = stops | markers.leads | ({0x5C} if escape else set())
        plain = b"[^" + byte_class(halts) + b"]*+" if halts else rb"[\s\S]*+"
        steps = [rb"\\[\s\S]"] if escape else []
        leads = markers.leads - stops
        if leads:
            steps.append(b"(?!" + markers.near + b")[" + byte_class(leads) + b"]")
        pattern = re.compile(plain + (b"(?:(?:" + b"|".join(steps) + b")" + plain + b")*+" if steps else b""))
        # It matches nothing at all if need be, so there always is a match.
        self.match: Final = cast("Callable[..., re.Match[bytes]]", pattern.match)

        text = f"[^{_chars(halts)}]*+" if halts else r"[\s\S]*+"
        near = markers.near_in_text()
        # Every branch of the search begins with a character of its own, so that it skips what lies between them.
        loud = [r"\\(?:\\|\Z)", *near] if escape else [*near]
        for stop in sorted(stops | {lead for lead in leads if lead >= 0x80}):
            one = f"[{_chars([stop])}]"
            loud.append(rf"{one}(?<!\\{one})" if escape else one)
        passing = [r"\\[\s\S]"] if escape else []
        looked_at = {lead for lead in leads if lead < 0x80}
        if looked_at:
            passing.append(f"(?!{'|'.join(near)})[{_chars(looked_at)}]")
        delta = text + (f"(?:(?:{'|'.join(passing)}){text})*+" if passing else "")
        self.loud: Final = re.compile("|".join(loud) or r"(?!)").search
        short = {literal[0] for literal in markers.literals if len(literal) <= TAIL}
        begun = ["", r"\\"] if escape else [""]
        if looked_at - short:
            begun.append(rf"[{_chars(looked_at - short)}][\x00-\x7f]{{0,{TAIL - 1}}}")
        self.quiet: Final = re.compile(f"{delta}({'|'.join(begun)})").fullmatch

    def __reduce__(self) -> tuple[object, ...]:
        return (plain_run, self._made_of)

    def __deepcopy__(self, memo: object) -> Run:
        return self


def _chars(members: Iterable[int]) -> str:
    """The inside of a character class for bytes; one beyond ASCII may be part of any character there."""
    members = sorted(members)
    beyond = [r"\x80-\U0010ffff"] if members and members[-1] >= 0x80 else []
    return "".join([f"\\x{member:02x}" for member in members if member < 0x80] + beyond)


def plain_run(stops: Iterable[int], markers: Sentinels, escape: bool = False) -> Run:
    """The ``Run`` over bytes which are neither in ``stops`` nor can begin one of ``markers``.

    A lead byte is run over if no marker stands there and none can still arrive; with ``escape`` a backslash takes the
    byte after it along. Possessive, so it never backtracks.
    """
    return _plain_run(frozenset(stops), markers, escape)


_plain_run: Final = lru_cache(maxsize=256)(Run)


class Reader(Protocol):
    """Finds the end of one body in a growing buffer. Plain state: copyable, picklable, printable."""

    at: int  # bytes before this index were read
    evidence: bool  # the bytes so far are a call by their form
    broken: bool  # DONE, but the body was ended from outside before its own end
    # If this pattern matches from ``at`` to the end of the bytes, read() would return MORE and only move ``at`` there.
    run: Run | None

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        """Read ``buf[self.at:end]``. ``final``: nothing follows. Returns MORE, DEAD or DONE."""

    def shift(self, by: int) -> None:
        """The first ``by`` bytes of the buffer are gone: subtract ``by`` from every remembered index."""

    @property
    def keep(self) -> int:
        """The lowest index of the buffer that may still be looked at."""


FENCE_RUN: Final = re.compile(rb"(?:```+\w*+|~~~+)")
FENCE_CUT: Final = re.compile(rb"(?:`{1,2}|~{1,2})\Z")
_LEADING: Final = b"])"  # brackets that a token may begin with
PADDING: Final = re.compile(rb"[ \t\r\n,;\])}]*+")  # behind a body, besides fence runs and tokens


def padding_end(buf: bytearray, i: int, end: int, around: Around, final: bool) -> int:
    """Where the padding from ``i`` on ends: before a bracket that begins a token, or may."""
    run = PADDING.match(buf, i, end)
    stop = run.end() if run is not None else i
    if (
        stop > i
        and buf[stop - 1] in _LEADING
        and (around.outer.at(buf, stop - 1, end, final) or around.close.at(buf, stop - 1, end, final))
    ):
        return stop - 1
    return stop


def behind_tokens(buf: bytearray, i: int, end: int, around: Around, close: Sentinels) -> tuple[int, int]:
    """What follows a complete body and its padding: tokens that carry nothing are padding before a closer.

    DONE: one of the closers, at this index. MORE: the bytes end in such tokens, or in a piece of one or of a fence run.
    DEAD: something else.
    """
    k, size = i, 0
    while k - i <= MAX_BLANKS:
        if FENCE_CUT.match(buf, k, end) is not None:
            return MORE, k
        size = around.control.at(buf, k, end) if close.literals else 0
        if size <= 0:
            break
        k += size
        while (run := PADDING.match(buf, k, end)) is not None and run.end() > k:
            fence = FENCE_RUN.match(buf, run.end(), end)
            k = fence.end() if fence is not None else run.end()
        if k == end:
            return MORE, k
        size = close.at(buf, k, end)
        if size != 0:
            return (MORE if size == CUT else DONE), k
    return (MORE if size == CUT else DEAD), k


class UntilCloser:
    """Runs to the closer of the envelope or to a marker that cannot belong to the block."""

    __slots__ = ("_around", "at", "broken", "evidence", "run")

    def __init__(self, start: int, around: Around) -> None:
        self.at = start
        self.evidence = True
        self.broken = True
        self.run: Run | None = None
        self._around = around

    def shift(self, by: int) -> None:
        self.at -= by

    @property
    def keep(self) -> int:
        return self.at

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        close, closing = self._around.close.find(buf, self.at, end, final)
        other, opening = self._around.special.find(buf, self.at, end, final)
        self.at = min(close, other)
        if self.at < end and (closing > 0 if close <= other else opening > 0):
            return DONE
        return MORE


def nested(reader: Reader | None) -> Iterator[Reader]:
    """The reader, then those that run inside it."""
    while reader is not None:
        yield reader
        reader = getattr(reader, "inner", None)
