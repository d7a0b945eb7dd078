"""Markers -> byte trie -> one compiled pattern and the set of proper prefixes. Nothing else knows how hold-back is found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

# Answers of ``at`` beside a length: no marker starts here; one may, but the bytes end inside it.
NONE: Final = 0
CUT: Final = -1


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


def _pattern(exact: _Node | None, loose: _Node | None) -> bytes:
    """All continuations of a place in the exact and in the folded trie, longest first, each also ending with the bytes.

    The two tries are walked together, so that branches start with distinct bytes and cannot backtrack.
    """
    places: dict[tuple[_Node | None, _Node | None], list[int]] = {}
    for byte in sorted({*(exact.next if exact else ()), *(_cases(loose) if loose else ())}):
        place = (exact.next.get(byte) if exact else None, loose.next.get(_lower(byte)) if loose else None)
        places.setdefault(place, []).append(byte)
    if not places:
        return b""
    branches = [b"[" + byte_class(bytes_) + b"]" + _pattern(*place) for place, bytes_ in places.items()]
    whole = (exact is not None and exact.whole) or (loose is not None and loose.whole)
    return b"(?:" + b"|".join([*branches, rb"\Z"]) + b")" + (b"?" if whole else b"")


def _lower(byte: int) -> int:
    return byte + 32 if 0x41 <= byte <= 0x5A else byte


def _cases(node: _Node) -> list[int]:
    return [case for byte in node.next for case in ((byte, byte - 32) if 0x61 <= byte <= 0x7A else (byte,))]


class Sentinels:
    """A set of marker literals that can be looked for in bytes that are still arriving.

    ``folded`` literals match without regard to ASCII case. Literals are 1 to 64 bytes. The pattern is the trie
    itself: branches start with distinct bytes, so it cannot backtrack, and every node matches the end of the bytes,
    so that a marker cut by the network is found as what it may become.
    """

    __slots__ = ("_loose", "_loose_prefixes", "_prefixes", "_whole", "exact", "leads", "literals", "loose", "pattern")

    def __init__(self, literals: Iterable[bytes], folded: Iterable[bytes] = ()) -> None:
        exact, loose = tuple(sorted(set(literals))), tuple(sorted({literal.lower() for literal in folded}))
        self.exact: Final = exact
        self.loose: Final = loose
        strict, folding = _Node(), _Node()
        for literal in exact:
            strict.add(literal)
        for literal in loose:
            folding.add(literal)
        self.literals: Final = (*exact, *loose)
        self.leads: Final = frozenset((*strict.next, *_cases(folding)))
        self._whole = frozenset(exact) | frozenset(loose)
        self._loose = frozenset(loose)
        self._prefixes = frozenset(literal[:size] for literal in self._whole for size in range(1, len(literal)))
        self._loose_prefixes = frozenset(literal[:size] for literal in loose for size in range(1, len(literal)))
        body = _pattern(strict, folding)
        # Nothing to find: a pattern that never matches.
        self.pattern: Final = re.compile(body[: -len(rb"|\Z)")] + b")" if body else rb"(?!)")

    def at(self, buf: bytes | bytearray, i: int, end: int, final: bool = False) -> int:
        """The length of the longest marker that starts at ``i``, or NONE, or CUT if ``buf[i:end]`` may become one."""
        found = self.pattern.match(buf, i, end)
        return NONE if found is None else self._verdict(buf, found.start(), found.end(), end, final)

    def find(self, buf: bytes | bytearray, i: int, end: int, final: bool = False) -> tuple[int, int]:
        """The first marker at or after ``i``: (index, length or CUT). (end, NONE) if there is none."""
        found = self.pattern.search(buf, i, end)
        while found is not None:
            size = self._verdict(buf, found.start(), found.end(), end, final)
            if size != NONE:
                return found.start(), size
            found = self.pattern.search(buf, found.start() + 1, end)
        return end, NONE

    def _verdict(self, buf: bytes | bytearray, start: int, stop: int, end: int, final: bool) -> int:
        word = bytes(buf[start:stop])
        if stop == end and not final and self.is_prefix(word):
            return CUT
        while word:
            if word in self._whole or word.lower() in self._loose:
                return len(word)
            word = word[:-1]
        return NONE

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
