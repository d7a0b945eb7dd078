"""Markers -> one compiled pattern and the set of their proper prefixes. Nothing else knows how hold-back is found."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

# Answers of ``at`` beside a length: no marker starts here; one may, but the bytes end inside it.
NONE: Final = 0
CUT: Final = -1

# Parts of a marker that are not the same each time: what a checkpoint hangs on its tokens, blanks between two tokens.
_PARTS: Final = {b"{suffix}": re.compile(rb"[\w.-]{1,24}+"), b"{blanks}": re.compile(rb"[ \t\r\n]{0,16}+")}
_MOST: Final = 24  # bytes of such a part
_SPLIT: Final = re.compile(b"(" + b"|".join(map(re.escape, _PARTS)) + b")")

_NEAR: Final = 4  # bytes of a marker in the pattern; enough to tell it from text, few enough to compile at once


def byte_class(members: Iterable[int]) -> bytes:
    """The inside of a character class that holds exactly these bytes."""
    return b"".join(b"\\x%02x" % member for member in sorted(members))


def _one_of(members: list[int]) -> bytes:
    """A pattern of these bytes. A class takes longer to compile than a literal."""
    return b"\\x%02x" % members[0] if len(members) == 1 else b"[" + byte_class(members) + b"]"


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


def _places(exact: _Node | None, loose: _Node | None) -> dict[tuple[_Node | None, _Node | None], list[int]]:
    """Where the next byte leads from a place in the exact and in the folded trie, with the bytes that lead there.

    The two tries are walked together, so that branches start with distinct bytes and cannot backtrack.
    """
    places: dict[tuple[_Node | None, _Node | None], list[int]] = {}
    if (exact is not None and exact.whole) or (loose is not None and loose.whole):
        return places
    for byte in sorted({*(exact.next if exact else ()), *(_cases(loose) if loose else ())}):
        place = (exact.next.get(byte) if exact else None, loose.next.get(_lower(byte)) if loose else None)
        places.setdefault(place, []).append(byte)
    return places


def _pattern(exact: _Node | None, loose: _Node | None, depth: int) -> bytes:
    """The next ``depth`` bytes of a place in both tries, each also ending with the bytes."""
    after: dict[bytes, list[int]] = {}
    for place, bytes_ in (_places(exact, loose) if depth else {}).items():
        after.setdefault(_pattern(*place, depth - 1), []).extend(bytes_)
    branches = [_one_of(bytes_) + more for more, bytes_ in after.items()]
    return b"(?:" + b"|".join([*branches, rb"\Z"]) + b")" if branches else b""


def _text_pattern(exact: _Node | None, loose: _Node | None, depth: int) -> str:
    """``_pattern`` over text, where a byte beyond ASCII may be part of any character there."""
    after: dict[str, list[int]] = {}
    beyond = []
    for place, bytes_ in (_places(exact, loose) if depth else {}).items():
        if ascii_ := [byte for byte in bytes_ if byte < 0x80]:
            after.setdefault(_text_pattern(*place, depth - 1), []).extend(ascii_)
        else:
            beyond = [r"[^\x00-\x7f]"]
    branches = [_one_of(ascii_).decode() + more for more, ascii_ in after.items()] + beyond
    return "(?:" + "|".join([*branches, r"\Z"]) + ")" if branches else ""


def _begins_one(word: bytes, literals: tuple[bytes, ...]) -> bool:
    """Is ``word`` a proper prefix of one of the sorted ``literals``? The first one behind it is the one to ask."""
    place = bisect_right(literals, word)
    return place < len(literals) and literals[place].startswith(word)


def _lower(byte: int) -> int:
    return byte + 32 if 0x41 <= byte <= 0x5A else byte


def _cases(node: _Node) -> list[int]:
    return [case for byte in node.next for case in ((byte, byte - 32) if 0x61 <= byte <= 0x7A else (byte,))]


class _Elastic:
    """A marker with parts that vary, cut into pieces."""

    __slots__ = ("head", "longest", "pieces", "template")

    def __init__(self, template: bytes) -> None:
        self.template: Final = template
        self.pieces: Final = tuple(piece for piece in _SPLIT.split(template) if piece)
        self.head: Final = self.pieces[0]
        self.longest: Final = sum(_MOST if piece in _PARTS else len(piece) for piece in self.pieces)

    def at(self, word: bytes) -> int:
        """The length of the marker that ``word`` begins with, or NONE, or CUT if ``word`` ends inside it."""
        i, end = 0, len(word)
        for piece in self.pieces:
            part = _PARTS.get(piece)
            if part is None:
                here = word[i : i + len(piece)]
                if here != piece:
                    return CUT if piece.startswith(here) and i + len(here) == end else NONE
                i += len(piece)
                continue
            found = part.match(word, i)
            i = found.end() if found is not None else i
            if i == end:
                return CUT
            if found is None:
                return NONE
        return i


class Sentinels:
    """A set of marker literals that can be looked for in bytes that are still arriving.

    ``folded`` literals match without regard to ASCII case. Literals are 1 to 64 bytes. What may be one is found by a
    pattern of the first bytes, whose every place also matches the end of the bytes; what it is, by the sets of whole
    literals, and by their order for what may become one. So a marker cut by the network is held.

    A literal may hold ``{suffix}`` (1 to 24 letters, digits, ``_``, ``.`` and ``-``) and ``{blanks}`` (up to 16). Its
    first four bytes are the same each time.
    """

    __slots__ = (
        "_compiled", "_elastic", "_folded", "_given", "_longest", "_near", "_plain", "_plain_loose", "_short", "_sizes",
        "_whole", "exact", "leads", "literals", "loose",
    )  # fmt: skip

    exact: tuple[bytes, ...]
    loose: tuple[bytes, ...]
    literals: tuple[bytes, ...]
    leads: frozenset[int]
    _plain: tuple[bytes, ...]
    _plain_loose: tuple[bytes, ...]
    _whole: frozenset[bytes]
    _folded: frozenset[bytes]
    _short: tuple[int, ...]  # lengths of the literals, the longest first: of those shorter than a head,
    _sizes: dict[bytes, tuple[int, ...]]  # and by their heads, with the short ones
    _longest: int
    # By their first bytes: the markers with parts that vary, each with whether its case counts.
    _elastic: dict[bytes, list[tuple[_Elastic, bool]]]

    def __init__(
        self, literals: Iterable[bytes], folded: Iterable[bytes] = (), parts: tuple[Sentinels, ...] = ()
    ) -> None:
        self._given = (tuple(literals), tuple(folded), parts)
        self._near: bytes | None = None
        self._compiled: re.Pattern[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        # Of the many sets of a grammar most are never asked for, so all that follows from the literals is made late.
        if name in ("exact", "loose", "literals"):
            self._gather()
        elif name in Sentinels.__slots__:
            self._derive()
        else:
            raise AttributeError(name)
        return getattr(self, name)

    def _gather(self) -> None:
        literals, folded, parts = self._given
        exact, loose = set(literals), {literal.lower() for literal in folded}
        for part in parts:
            exact.update(part.exact)
            loose.update(part.loose)
        self.exact, self.loose = tuple(sorted(exact)), tuple(sorted(loose))
        self.literals = (*self.exact, *self.loose)

    def _derive(self) -> None:
        exact, loose = self.exact, self.loose
        self.leads = frozenset(
            b"".join([literal[:1] + literal[:1].swapcase() for literal in loose] + [literal[:1] for literal in exact])
        )
        self._plain = tuple(literal for literal in exact if not _SPLIT.search(literal))
        self._plain_loose = tuple(literal for literal in loose if not _SPLIT.search(literal))
        self._whole = frozenset(self._plain)
        self._folded = frozenset(self._plain_loose)
        plain = (*self._plain, *self._plain_loose)
        self._short = tuple(sorted({len(literal) for literal in plain if len(literal) < _NEAR}, reverse=True))
        sizes: dict[bytes, set[int]] = {}
        for literal in plain:
            if len(literal) >= _NEAR:
                sizes.setdefault(literal[:_NEAR].lower(), set(self._short)).add(len(literal))
        self._sizes = {head: tuple(sorted(some, reverse=True)) for head, some in sizes.items()}
        varying = [(_Elastic(literal), True) for literal in exact if _SPLIT.search(literal)]
        varying += [(_Elastic(literal), False) for literal in loose if _SPLIT.search(literal)]
        self._elastic = {}
        for one, strict in varying:
            self._elastic.setdefault(one.head[:_NEAR].lower(), []).append((one, strict))
        self._longest = max([*map(len, plain), *(one.longest for one, _ in varying)], default=0)

    @property
    def near(self) -> bytes:
        """A pattern of where a marker may start, by its first bytes. It never matches if there is no marker."""
        if self._near is None:
            self._near = self.within(_NEAR)
        return self._near

    def within(self, depth: int) -> bytes:
        """The same by this many first bytes: the fewer, the sooner compiled, and the more often it is wrong."""
        return _pattern(*self._tries(), depth)[: -len(rb"|\Z)")] + b")" if self.literals else rb"(?!)"

    def near_in_text(self) -> list[str]:
        """``near`` for a piece of text: a branch for each character that a marker begins with, ASCII alone."""
        return [
            f"{_one_of([byte]).decode()}{_text_pattern(*place, _NEAR - 1)}"
            for place, bytes_ in _places(*self._tries()).items()
            for byte in bytes_
            if byte < 0x80
        ]

    def _tries(self) -> tuple[_Node, _Node]:
        strict, folding = _Node(), _Node()
        for literal in self.exact:
            strict.add(_SPLIT.split(literal)[0])
        for literal in self.loose:
            folding.add(_SPLIT.split(literal)[0])
        return strict, folding

    def at(self, buf: bytes | bytearray, i: int, end: int, final: bool = False) -> int:
        """The length of the longest marker that starts at ``i``, or NONE, or CUT if ``buf[i:end]`` may become one."""
        if i >= end or buf[i] not in self.leads:
            return NONE
        word = bytes(buf[i : min(end, i + self._longest)])
        if not final and i + len(word) == end and self.is_prefix(word):
            return CUT
        stretch = self._stretch(word)[0] if self._elastic else NONE
        folded = word.lower() if self._folded else b""
        most = len(word)
        for size in self._sizes.get(word[:_NEAR].lower(), self._short):
            if size <= stretch:
                break
            if size <= most and (word[:size] in self._whole or folded[:size] in self._folded):
                return size
        return max(stretch, NONE)

    def _stretch(self, word: bytes) -> tuple[int, bytes]:
        """The longest marker with parts that vary at the start of ``word``, or that it may become: (size, literal)."""
        found = (NONE, b"")
        for one, strict in self._elastic.get(word[:_NEAR].lower(), ()):
            size = one.at(word if strict else word.lower())
            if size > found[0] or (size == CUT and found[0] == NONE):
                found = (size, one.template)
        return found

    def template(self, word: bytes) -> bytes:
        """The literal whose marker ``word`` is, where that has parts that vary."""
        return self._stretch(word)[1]

    @property
    def sample(self) -> bytes:
        """One of the markers as it stands on the wire."""
        plain = (*self._plain, *self._plain_loose)
        return plain[0] if plain else _SPLIT.sub(b"x", self.literals[0])

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
        return (
            _begins_one(word, self._plain)
            or _begins_one(word.lower(), self._plain_loose)
            or (bool(self._elastic) and self._begins_elastic(word))
        )

    def _begins_elastic(self, word: bytes) -> bool:
        key = word[:_NEAR].lower()
        if len(key) < _NEAR:
            return any(
                one.at(word if strict else word.lower()) == CUT
                for head, some in self._elastic.items()
                if head.startswith(key)
                for one, strict in some
            )
        return any(one.at(word if strict else word.lower()) == CUT for one, strict in self._elastic.get(key, ()))

    def __reduce__(self) -> tuple[object, ...]:
        return (sentinels, (self.exact, self.loose))

    def __deepcopy__(self, memo: object) -> Sentinels:
        return self


@lru_cache(maxsize=1024)
def sentinels(literals: tuple[bytes, ...], folded: tuple[bytes, ...] = ()) -> Sentinels:
    """The ``Sentinels`` of these literals, built once a process."""
    return Sentinels(literals, folded)


@lru_cache(maxsize=1024)
def joined(*parts: Sentinels) -> Sentinels:
    """All the literals of these."""
    return Sentinels((), (), parts)
