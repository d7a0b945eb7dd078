"""Markers -> one compiled pattern and the set of their proper prefixes. Nothing else knows how hold-back is found."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

# Answers of ``at`` beside a length: no marker starts here; one may, but the bytes end inside it.
NONE: Final = 0
CUT: Final = -1

_NEAR: Final = 4  # bytes of a marker in the pattern; enough to tell it from text, few enough to compile at once


def byte_class(members: Iterable[int]) -> bytes:
    """The inside of a character class that holds exactly these bytes."""
    return b"".join(b"\\x%02x" % member for member in sorted(members))


class _Node:
    """A trie node of the first bytes of markers."""

    __slots__ = ("next", "whole")

    def __init__(self) -> None:
        self.next: dict[int, _Node] = {}
        self.whole = False

    def add(self, literal: bytes) -> None:
        """Add the first bytes of a marker, as many as the pattern looks at."""
        node = self
        for byte in literal[:_NEAR]:
            after = node.next.get(byte)
            if after is None:
                after = node.next[byte] = _Node()
            node = after
        node.whole = node.whole or len(literal) <= _NEAR


def _pattern(exact: _Node | None, loose: _Node | None, depth: int) -> bytes:
    """The next ``depth`` bytes of a place in the exact and in the folded trie, each also ending with the bytes.

    The two tries are walked together, so that branches start with distinct bytes and cannot backtrack.
    """
    whole = (exact is not None and exact.whole) or (loose is not None and loose.whole)
    if whole or depth == 0:
        return b""
    places: dict[tuple[_Node | None, _Node | None], list[int]] = {}
    for byte in sorted({*(exact.next if exact else ()), *(_cases(loose) if loose else ())}):
        place = (exact.next.get(byte) if exact else None, loose.next.get(_lower(byte)) if loose else None)
        places.setdefault(place, []).append(byte)
    branches = [b"[" + byte_class(bytes_) + b"]" + _pattern(*place, depth - 1) for place, bytes_ in places.items()]
    return b"(?:" + b"|".join([*branches, rb"\Z"]) + b")"


def _begins_one(word: bytes, literals: tuple[bytes, ...]) -> bool:
    """Is ``word`` a proper prefix of one of the sorted ``literals``? The first one behind it is the one to ask."""
    place = bisect_right(literals, word)
    return place < len(literals) and literals[place].startswith(word)


def _spellings(head: bytes) -> set[bytes]:
    """One or two bytes in all cases."""
    return {first + second for first in {head[:1], head[:1].upper()} for second in {head[1:], head[1:].upper()}}


def _lower(byte: int) -> int:
    return byte + 32 if 0x41 <= byte <= 0x5A else byte


def _cases(node: _Node) -> list[int]:
    return [case for byte in node.next for case in ((byte, byte - 32) if 0x61 <= byte <= 0x7A else (byte,))]


class Sentinels:
    """A set of marker literals that can be looked for in bytes that are still arriving.

    ``folded`` literals match without regard to ASCII case. Literals are 1 to 64 bytes. What may be one is found by a
    pattern of the first bytes, whose every place also matches the end of the bytes; what it is, by the sets of whole
    literals, and by their order for what may become one. So a marker cut by the network is held.
    """

    __slots__ = (
        "_compiled", "_folded", "_longest", "_near", "_sizes", "_whole", "exact", "leads", "literals", "loose",
        "seconds",
    )  # fmt: skip

    def __init__(self, literals: Iterable[bytes], folded: Iterable[bytes] = ()) -> None:
        exact, loose = tuple(sorted(set(literals))), tuple(sorted({literal.lower() for literal in folded}))
        self.exact: Final = exact
        self.loose: Final = loose
        self.literals: Final = (*exact, *loose)
        heads = {literal[:2] for literal in exact}
        heads |= {case for literal in loose for case in _spellings(literal[:2])}
        self.leads: Final = frozenset(head[0] for head in heads)
        # What may follow each lead byte; a lead that is a marker by itself is not in it.
        alone = {head[0] for head in heads if len(head) == 1}
        self.seconds: Final = {
            lead: frozenset(head[1] for head in heads if head[0] == lead) for lead in self.leads - alone
        }
        self._near: bytes | None = None
        self._compiled: re.Pattern[bytes] | None = None
        self._whole = frozenset(exact)
        self._folded = frozenset(loose)
        self._sizes = tuple(sorted({len(literal) for literal in self.literals}, reverse=True))
        self._longest = self._sizes[0] if self._sizes else 0

    @property
    def near(self) -> bytes:
        """A pattern of where a marker may start, by its first bytes. It never matches if there is no marker."""
        if self._near is None:
            strict, folding = _Node(), _Node()
            for literal in self.exact:
                strict.add(literal)
            for literal in self.loose:
                folding.add(literal)
            self._near = _pattern(strict, folding, _NEAR)[: -len(rb"|\Z)")] + b")" if self.literals else rb"(?!)"
        return self._near

    def at(self, buf: bytes | bytearray, i: int, end: int, final: bool = False) -> int:
        """The length of the longest marker that starts at ``i``, or NONE, or CUT if ``buf[i:end]`` may become one."""
        if i >= end or buf[i] not in self.leads:
            return NONE
        word = bytes(buf[i : min(end, i + self._longest)])
        if not final and i + len(word) == end and self.is_prefix(word):
            return CUT
        folded = word.lower() if self._folded else b""
        for size in self._sizes:
            if size <= len(word) and (word[:size] in self._whole or folded[:size] in self._folded):
                return size
        return NONE

    def find(self, buf: bytes | bytearray, i: int, end: int, final: bool = False) -> tuple[int, int]:
        """The first marker at or after ``i``: (index, length or CUT). (end, NONE) if there is none."""
        near = self._compiled
        if near is None:
            near = self._compiled = re.compile(self.near)
        found = near.search(buf, i, end)
        while found is not None:
            size = self.at(buf, found.start(), end, final)
            if size != NONE:
                return found.start(), size
            found = near.search(buf, found.start() + 1, end)
        return end, NONE

    def is_prefix(self, word: bytes) -> bool:
        """True if ``word`` is a proper prefix of a marker."""
        return _begins_one(word, self.exact) or _begins_one(word.lower(), self.loose)

    def __reduce__(self) -> tuple[object, ...]:
        return (sentinels, (self.exact, self.loose))

    def __deepcopy__(self, memo: object) -> Sentinels:
        return self


@lru_cache(maxsize=256)
def sentinels(literals: tuple[bytes, ...], folded: tuple[bytes, ...] = ()) -> Sentinels:
    """The ``Sentinels`` of these literals, built once a process."""
    return Sentinels(literals, folded)


def joined(*parts: Sentinels) -> Sentinels:
    """All the literals of these."""
    exact = {literal for part in parts for literal in part.exact}
    loose = {literal for part in parts for literal in part.loose}
    return sentinels(tuple(sorted(exact)), tuple(sorted(loose)))
