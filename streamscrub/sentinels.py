"""Markers -> one compiled pattern and the set of their proper prefixes. Nothing else knows how hold-back is found."""

from __future__ import annotations

import re
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
    """A trie node. Recursion over it is as deep as the longest marker, never as deep as the input."""

    __slots__ = ("next", "whole")

    def __init__(self) -> None:
        self.next: dict[int, _Node] = {}
        self.whole = False

    def add(self, literal: bytes) -> None:
        node = self
        for byte in literal:
            node = node.next.setdefault(byte, _Node())
        node.whole = True


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


def _lower(byte: int) -> int:
    return byte + 32 if 0x41 <= byte <= 0x5A else byte


def _cases(node: _Node) -> list[int]:
    return [case for byte in node.next for case in ((byte, byte - 32) if 0x61 <= byte <= 0x7A else (byte,))]


class Sentinels:
    """A set of marker literals that can be looked for in bytes that are still arriving.

    ``folded`` literals match without regard to ASCII case. Literals are 1 to 64 bytes. What may be one is found by a
    pattern of the first bytes of the trie, whose every node also matches the end of the bytes; what it is, by the sets
    of whole literals and of their proper prefixes. So a marker cut by the network is held as what it may become.
    """

    __slots__ = (
        "_longest", "_loose", "_loose_prefixes", "_near", "_prefixes", "_sizes", "_whole", "exact", "leads", "literals",
        "loose", "near", "seconds",
    )  # fmt: skip

    def __init__(self, literals: Iterable[bytes], folded: Iterable[bytes] = ()) -> None:
        exact, loose = tuple(sorted(set(literals))), tuple(sorted({literal.lower() for literal in folded}))
        self.exact: Final = exact
        self.loose: Final = loose
        self.literals: Final = (*exact, *loose)
        strict, folding = _Node(), _Node()
        for literal in exact:
            strict.add(literal)
        for literal in loose:
            folding.add(literal)
        self.leads: Final = frozenset((*strict.next, *_cases(folding)))
        # What may follow each lead byte.
        self.seconds: Final = {
            lead: frozenset(
                byte
                for literal in self.literals
                for byte in ({literal[1]} if literal in exact else {literal[1], literal[1:2].upper()[0]})
                if lead in (literal[0], literal[:1].upper()[0] if literal in loose else literal[0])
            )
            for lead in self.leads
            if not any(len(literal) == 1 for literal in self.literals if literal[0] == lead)
        }
        # Where a marker may start, by its first bytes; never matches if there is none.
        self.near: Final = _pattern(strict, folding, _NEAR)[: -len(rb"|\Z)")] + b")" if self.literals else rb"(?!)"
        self._near: re.Pattern[bytes] | None = None
        self._whole = frozenset(exact)
        self._loose = frozenset(loose)
        self._prefixes = frozenset(literal[:size] for literal in exact for size in range(1, len(literal)))
        self._loose_prefixes = frozenset(literal[:size] for literal in loose for size in range(1, len(literal)))
        self._sizes = tuple(sorted({len(literal) for literal in self.literals}, reverse=True))
        self._longest = self._sizes[0] if self._sizes else 0

    def at(self, buf: bytes | bytearray, i: int, end: int, final: bool = False) -> int:
        """The length of the longest marker that starts at ``i``, or NONE, or CUT if ``buf[i:end]`` may become one."""
        if i >= end or buf[i] not in self.leads:
            return NONE
        word = bytes(buf[i : min(end, i + self._longest)])
        if not final and i + len(word) == end and self.is_prefix(word):
            return CUT
        folded = word.lower() if self._loose else b""
        for size in self._sizes:
            if size <= len(word) and (word[:size] in self._whole or folded[:size] in self._loose):
                return size
        return NONE

    def find(self, buf: bytes | bytearray, i: int, end: int, final: bool = False) -> tuple[int, int]:
        """The first marker at or after ``i``: (index, length or CUT). (end, NONE) if there is none."""
        near = self._near
        if near is None:
            near = self._near = re.compile(self.near)
        found = near.search(buf, i, end)
        while found is not None:
            size = self.at(buf, found.start(), end, final)
            if size != NONE:
                return found.start(), size
            found = near.search(buf, found.start() + 1, end)
        return end, NONE

    def is_prefix(self, word: bytes) -> bool:
        """True if ``word`` is a proper prefix of a marker."""
        return word in self._prefixes or word.lower() in self._loose_prefixes

    def __reduce__(self) -> tuple[object, ...]:
        return (sentinels, (self.exact, self.loose))

    def __deepcopy__(self, memo: object) -> Sentinels:
        return self


@lru_cache(maxsize=256)
def sentinels(literals: tuple[bytes, ...], folded: tuple[bytes, ...] = ()) -> Sentinels:
    """The ``Sentinels`` of these literals, built once a process."""
    return Sentinels(literals, folded)
