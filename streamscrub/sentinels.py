"""Markers -> byte trie -> one compiled pattern and the set of proper prefixes. Nothing else knows how hold-back is found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

# Answers of ``at`` beside a length: no marker starts here; one may, but the bytes end inside it.
NONE: Final = 0
CUT: Final = -1


def _folded(byte: int) -> bytes:
    """One letter in both cases, as a pattern."""
    char = bytes([byte])
    return b"[" + char.lower() + char.upper() + b"]" if char.isalpha() else re.escape(char)


def byte_class(members: Iterable[int]) -> bytes:
    """The inside of a character class that holds exactly these bytes."""
    return b"".join(b"\\x%02x" % member for member in sorted(members))


class _Node:
    """A trie node. Recursion over it is as deep as the longest marker, never as deep as the input."""

    __slots__ = ("next", "whole")

    def __init__(self) -> None:
        self.next: dict[tuple[int, bool], _Node] = {}
        self.whole = False

    def pattern(self) -> bytes:
        """All continuations, longest first, each node also ending at the end of the bytes."""
        if not self.next:
            return b""
        branches = [
            (_folded(byte) if folded else re.escape(bytes([byte]))) + node.pattern()
            for (byte, folded), node in self.next.items()
        ]
        return b"(?:" + b"|".join([*branches, rb"\Z"]) + b")" + (b"?" if self.whole else b"")


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
        root = _Node()
        for literal, fold in [*((word, False) for word in exact), *((word, True) for word in loose)]:
            node = root
            for byte in literal:
                node = node.next.setdefault((byte, fold and bytes([byte]).isalpha()), _Node())
            node.whole = True
        self.literals: Final = (*exact, *loose)
        self.leads: Final = frozenset(byte for byte, _ in root.next) | frozenset(
            byte - 32 for byte, fold in root.next if fold and 97 <= byte <= 122
        )
        self._whole = frozenset(exact) | frozenset(loose)
        self._loose = frozenset(loose)
        self._prefixes = frozenset(literal[:size] for literal in self._whole for size in range(1, len(literal)))
        self._loose_prefixes = frozenset(literal[:size] for literal in loose for size in range(1, len(literal)))
        body = root.pattern()
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
