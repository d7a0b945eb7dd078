"""Reads the JSON that models write: strictly where it is JSON, repaired where one reading is certain, else not at all.

The ladder: strict JSON, raw control characters, one redundant wrapper, the tolerant walk of ``jsonfix``, then
``json_repair`` on a meter, the tool's own parameter names as anchors, lines of a key and a value. Each rung counts only
if strict JSON comes out of it, and every change is an edit of the text: what no edit touches stays as it is. A string
that never closes is never closed by guessing.
(Longer than most modules: the rungs share their options and are of no use alone.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, SupportsIndex

from .edits import Edit, applied, record, shifted, told, unedited
from .events import Repair
from .jsonfix import SPLIT, Fixed, Stuck, TooDeep, TooMuch, Work, fix, mend
from .limits import MAX_DEPTH, MAX_PYTHON, MAX_REPAIR, MAX_SAME_REPAIRS, REPAIR_READS
from .linefix import lines_as_object
from .repeats import Repeated, once, repeats

_BLANKS: Final = " \t\r\n"
_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_STRUCTURE: Final = re.compile(r'"(?:[^"\\]++|\\(?:.|\Z))*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
_STRINGS: Final = re.compile(r'"((?:[^"\\]++|\\(?:.|\Z))*+)(?:"|\Z)', re.DOTALL)
_BEGINS: Final = re.compile(r"[{\[,:][ \t\r\n]*+\Z")
_COLON: Final = re.compile(r"[ \t\r\n]*+:")
_FENCE: Final = re.compile(r"`{3,}+[\w+-]*+[ \t]*+\r?\n?")
_TAG: Final = re.compile(r"<(syntax|block|code|json)>", re.IGNORECASE)
_ANCHOR: Final = re.compile(r'[{,][ \t\r\n]*+"([^"\\]{1,128}+)"[ \t\r\n]*+:[ \t\r\n]*+')
_WORDS: Final = re.compile(r'[^\s{}\[\],:"]++')  # all that JSON does not write itself
# A bare text that may be a string; one that looks like a number or (the start of) a literal is a value of another kind.
_BARE: Final = re.compile(r"(?![0-9][\w.]*+\Z)\w(?:[\w .:/@+?!%&$~-]*+)\Z")
_FOREIGN: Final = re.compile(r"[^\w\s.:/@+?!%&$~\[\]{},-]")
_LITERALS: Final = ("true", "false", "null", "none", "nan", "nil", "infinity", "undefined")
_ESCAPED: Final = re.compile(r'(?:[\[{]|\\[nrt]|[ \t\r\n])++\\"')
_SHAPE: Final = re.compile(r"[\[\]{},]")
_MANY: Final = 20_000  # control characters, after which each string with some is one edit
_CONTROLS: Final = re.compile(r"[\x00-\x1f]++")
_SPELT: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_WRAPPERS: Final = frozenset(("fence", "wrapper", "braces"))


class Unreadable(ValueError):
    """Nothing certain can be read. The text is one line that says why."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A value, and what was changed to read it: nothing if and only if it was strict JSON.

    ``edits`` make strict JSON of the text, ``repairs`` tell them, with spans in characters of the text.
    """

    value: Any
    repairs: tuple[Repair, ...] = ()
    strategy: str = "clean"
    edits: tuple[Edit, ...] = ()


@dataclass(slots=True)
class _Read:
    """What a rung has read: the value, and the edits that make JSON of its text."""

    value: Any
    edits: list[Edit] = field(default_factory=list)
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class _Wants:
    keys: frozenset[str]
    required: frozenset[str]
    closed: bool
    envelope: frozenset[str]
    markers: re.Pattern[str] | None
    tokens: re.Pattern[str] | None
    max_depth: int


def load(
    text: str,
    *,
    keys: Collection[str] = (),
    required: Collection[str] = (),
    closed: bool = False,
    envelope: Collection[str] = (),
    markers: Collection[str] = (),
    quote_tokens: Collection[str] = (),
    max_depth: int = MAX_DEPTH,
) -> Loaded:
    """Read one JSON value. Raises ``Unreadable``.

    ``keys`` are the parameter names of the tool, ``required`` those that must be there, ``closed`` says that it takes
    no others; ``envelope`` are keys that may stand around the arguments. They decide where quotes leave two readings.
    ``markers`` are template tokens to drop and ``quote_tokens`` tokens that stand for a quote, both outside strings.

    >>> load('{"days": 3, "metric": True,}').value
    {'days': 3, 'metric': True}
    """
    return _load(text, _wants(keys, required, closed, envelope, markers, quote_tokens, max_depth))


def complete(text: str) -> bool:
    """True if ``text`` is one bracketed value by its structure: every bracket closed, none of them in a string.

    >>> complete('{"a": "}"}'), complete('{"a": "}"')
    (True, False)
    """
    text = text.strip(_BLANKS)
    return _end(text, 0, len(text)) == len(text) > 0


@lru_cache(maxsize=64)
def _any_of(literals: tuple[str, ...]) -> re.Pattern[str] | None:
    ordered = sorted(filter(None, literals), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None


def _wants(
    keys: Collection[str],
    required: Collection[str],
    closed: bool,
    envelope: Collection[str],
    markers: Collection[str],
    quote_tokens: Collection[str],
    max_depth: int,
) -> _Wants:
    return _Wants(
        frozenset(keys),
        frozenset(required),
        closed,
        frozenset(envelope),
        _any_of(tuple(markers)),
        _any_of(tuple(quote_tokens)),
        max_depth,
    )


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number - number != 0.0:
        raise ValueError("a number out of range")
    return number


_STRICT: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
_ONCE: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse, object_pairs_hook=once)
_RAW: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse, strict=False)


def _decode(decoder: json.JSONDecoder, text: str, max_depth: int) -> Any:
    """Decode, or raise ``ValueError``; never recurses deeper than ``max_depth``."""
    if text.count("[") + text.count("{") > max_depth and _deeper(text, max_depth):
        raise ValueError(f"nested deeper than {max_depth} levels")
    try:
        return decoder.decode(text)
    except (json.JSONDecodeError, Repeated):
        raise
    except (ValueError, RecursionError):  # more digits than Python converts; a caller at the end of its stack
        raise ValueError("a number out of range, or no JSON number") from None


def _deeper(text: str, limit: int) -> bool:
    """Whether ``text`` is nested deeper than ``limit`` levels."""
    depth = 0
    for token in _STRUCTURE.finditer(text):
        char = text[token.start()]
        if char in "[{":
            depth += 1
            if depth > limit:
                return True
        elif char in "]}":
            depth = max(depth - 1, 0)
    return False


def _load(text: str, wants: _Wants) -> Loaded:
    start = len(text) - len(text.lstrip(_BLANKS))
    body = text.strip(_BLANKS)
    if not body:
        raise Unreadable("empty")
    read = _plain(body, wants)
    peeled: list[Edit] = []
    if read is None:
        left, right, peeled = _peel(body)
        start += left
        read = _below(body[left:right], wants, bool(peeled))
        peeled = shifted(peeled, start - left)
    edits = shifted(read.edits, start)
    if not edits and not peeled:
        return Loaded(read.value)
    before = [edit for edit in peeled if edit.end <= start]
    edits = [*before, *edits, *peeled[len(before) :]]
    wrapped = any(edit.kind in _WRAPPERS for edit in edits)
    strategy = read.strategy or ("wrapper" if wrapped else "json")
    return Loaded(read.value, (*told(text, edits), *_repeated(text, edits, wants)), strategy, tuple(edits))


def _repeated(text: str, edits: list[Edit], wants: _Wants) -> Iterator[Repair]:
    """Records of the keys that stand twice in what the edits make of the text."""
    if any(edit.kind == "repeated" for edit in edits):
        return
    made = applied(text, edits)
    try:
        _decode(_ONCE, made, wants.max_depth)
    except Repeated:
        for one in repeats(made)[:MAX_SAME_REPAIRS]:
            span = unedited(edits, one.start), unedited(edits, one.end)
            yield record(one.kind, one.where, made[one.start : one.end], one.after, span)


def _below(body: str, wants: _Wants, peeled: bool) -> _Read:
    """Everything below the wrappers."""
    if peeled and (plain := _plain(body, wants)) is not None:
        return plain
    if _ESCAPED.match(body) and (unescaped := _unescaped(body, wants)) is not None:
        return unescaped
    return _damaged(body, wants)


def _plain(body: str, wants: _Wants) -> _Read | None:
    """Strict JSON, or strict but for raw control characters in its strings."""
    try:
        return _Read(_decode(_ONCE, body, wants.max_depth))
    except Repeated:
        return _Read(_decode(_STRICT, body, wants.max_depth), repeats(body))
    except json.JSONDecodeError as error:
        at = error.pos
    except ValueError:
        return None
    if not "\x00" <= body[at : at + 1] < " ":
        return None
    try:
        value = _decode(_RAW, body, wants.max_depth)
    except ValueError:
        return None
    if not isinstance(value, dict | list):
        return None
    if len(body) <= MAX_PYTHON:  # small enough to say in which string each of them stands
        try:
            return _Read(value, fix(body, max_depth=wants.max_depth).edits)
        except Stuck:
            return None
    return _Read(value, list(_raw_controls(body)))


def _raw_controls(body: str) -> Iterator[Edit]:
    many = len(_CONTROLS.findall(body)) > _MANY
    for string in _STRINGS.finditer(body):
        if many and _CONTROLS.search(body, string.start(1), string.end(1)):
            content = _CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], string[1])
            yield Edit(string.start(1), string.end(1), content, "control_characters")
            continue
        for found in _CONTROLS.finditer(body, string.start(1), string.end(1)):
            yield Edit(found.start(), found.end(), json.dumps(found[0])[1:-1], "control_characters")


def _unescaped(body: str, wants: _Wants) -> _Read | None:
    """A value that was escaped once too often, as if it stood in a string."""
    try:
        text = _decode(_RAW, f'"{body}"', len(body))
        value = _decode(_STRICT, text, wants.max_depth)
        edits = [
            Edit(found.start(), found.end(), json.loads(f'"{found[0]}"'), "escape") for found in _SPELT.finditer(body)
        ]
    except ValueError:
        return None
    return _Read(value, edits) if applied(body, edits) == text else None


def _peel(text: str) -> tuple[int, int, list[Edit]]:
    """Where the value stands inside a fence and a tag pair of no meaning, and the edits that take both off.

    A closing fence may stand alone: its opening one was taken for a part of the format.
    """
    openers: list[Edit] = []
    closers: list[Edit] = []
    start, end = 0, len(text)
    for _ in range(2):
        fence = _FENCE.match(text, start, end)
        first, last = start, end
        if text.endswith("```", fence.end() if fence else start, end):
            kind, start = "fence", fence.end() if fence else start
            while end > start and text[end - 1] == "`":
                end -= 1
        elif (tag := _TAG.match(text, start, end)) and text[:end].lower().endswith(f"</{tag[1].lower()}>", tag.end()):
            kind, start, end = "wrapper", tag.end(), end - len(tag[0]) - 1
        else:
            break
        if start > first:
            openers.append(Edit(first, start, "", kind))
        closers.insert(0, Edit(end, last, "", kind))
        while start < end and text[start] in _BLANKS:
            start += 1
        while start < end and text[end - 1] in _BLANKS:
            end -= 1
    return start, end, openers + closers


def _damaged(body: str, wants: _Wants) -> _Read:
    """Everything below the wrappers: the tolerant walk, ``json_repair``, the anchors, lines."""
    reasons: list[Stuck] = []
    fixed, value = None, None
    work = Work()
    for lenient in (False, True):
        try:
            fixed = fix(
                body,
                lenient=lenient,
                markers=wants.markers,
                tokens=wants.tokens,
                max_depth=wants.max_depth,
                work=work,
            )
            value = _decode(_STRICT, fixed.text, wants.max_depth)
            break
        except (TooDeep, TooMuch) as error:
            raise Unreadable(str(error)) from None
        except Stuck as error:
            fixed = None
            reasons.append(error)
        except ValueError as error:
            raise Unreadable(_line(error)) from None
    if fixed is not None and not _doubtful(fixed, value, wants):
        return _Read(value, fixed.edits)
    regular = not reasons or not reasons[0].open_string
    if fixed is None and regular and (loose := _loose(body, wants)) is not None:
        return loose
    try:
        anchored = _anchored(body, wants, work)
    except TooMuch as error:
        raise Unreadable(str(error)) from None
    if anchored is not None:
        if fixed is not None and not fixed.doubt and not wants.closed and anchored.value != value:
            raise Unreadable("its quotes leave two readings")
        return anchored
    if fixed is not None:
        raise Unreadable("its quotes leave two readings")
    if (lined := _lined(body, wants)) is not None:
        return lined
    opened = [reason for reason in reasons if reason.open_string]
    raise Unreadable(_line((opened or reasons)[0]))


def _line(error: ValueError) -> str:
    return " ".join(str(error).split())


def _doubtful(fixed: Fixed, value: Any, wants: _Wants) -> bool:
    """Whether quotes inside strings may have cut the value at the wrong place."""
    return fixed.doubt or (fixed.inner and bool(wants.keys) and (_foreign(value, wants) or _lacking(value, wants)))


def _foreign(value: Any, wants: _Wants) -> bool:
    """Whether a key stands where only keys of the tool or its envelope belong."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            continue
        for key, inner in item.items():
            if key in wants.keys:
                continue
            if key not in wants.envelope:
                return True
            if isinstance(inner, dict) and any(name not in wants.keys for name in inner):
                return True
    return False


def _lacking(value: Any, wants: _Wants) -> bool:
    """Whether a required key is missing from the arguments, be they in an envelope or not."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            outer = [
                inner for key, inner in item.items() if key in wants.envelope - wants.keys and isinstance(inner, dict)
            ]
            if not all(wants.required <= arguments.keys() for arguments in outer or [item]):
                return True
    return False


# Structure


def _end(text: str, start: int, end: int) -> int:
    """Where the bracketed value at ``start`` ends by its structure, or -1."""
    if text[start : start + 1] not in ("{", "["):
        return -1
    stack: list[str] = []
    for token in _STRUCTURE.finditer(text, start, end):
        char = text[token.start()]
        if char in "[{":
            stack.append("}" if char == "{" else "]")
        elif char != '"':
            if stack.pop() != char:
                return -1
            if not stack:
                return token.end()
    return -1


# json_repair, on a meter


class _Spent(Exception):
    """The reads are used up."""


class Metered(str):
    """A text that counts how often it is read, and raises when that is too often.

    ``json_repair`` reads character by character, so this bounds its time without a thread or a signal.
    """

    left: list[int]

    def __new__(cls, text: str, left: list[int]) -> Metered:
        made = super().__new__(cls, text)
        made.left = left
        return made

    def _pay(self, reads: int) -> None:
        self.left[0] -= reads
        if self.left[0] < 0:
            raise _Spent

    def __getitem__(self, index: SupportsIndex | slice) -> str:
        found = super().__getitem__(index)
        self._pay(1 + len(found) // 64)
        return Metered(found, self.left) if isinstance(index, slice) else found

    def __add__(self, other: str) -> str:
        self._pay(1 + len(self) // 64)
        return Metered(super().__add__(other), self.left)

    def __radd__(self, other: str) -> str:
        self._pay(1 + len(self) // 64)
        return Metered(str.__add__(other, str(self)), self.left)

    def __iter__(self) -> Iterator[str]:
        for char in super().__iter__():
            self._pay(1)
            yield char

    def find(self, *args: Any) -> int:
        self._pay(1 + len(self) // 1024)
        return super().find(*args)


def _loose(body: str, wants: _Wants) -> _Read | None:
    """What ``json_repair`` makes of it, if that keeps every string, every word and the outer shape."""
    if len(body) > MAX_REPAIR or not complete(body) or _deeper(body, wants.max_depth):
        return None
    from json_repair import repair_json  # slow to import, and rarely needed

    try:
        # What stands in whole strings is not its business: it would not always leave it alone.
        hidden = _STRINGS.sub(_hidden, body)
        regular = _regular(hidden) if _regular(body) is not None else None
        if regular is None:
            return None
        found = repair_json(Metered(hidden, [REPAIR_READS * len(body)]), return_objects=True, skip_json_loads=True)
        value = _decode(_STRICT, json.dumps(found, ensure_ascii=False), wants.max_depth)
        if not isinstance(value, dict if body[0] == "{" else list):
            return None
        bare = _faithful(hidden, value, *regular)
        if bare is None:
            return None
        same, fixed = (
            fix(text, markers=wants.markers, tokens=wants.tokens, bare=bare, max_depth=wants.max_depth)
            for text in (hidden, body)
        )
        if json.dumps(_decode(_STRICT, same.text, wants.max_depth)) != json.dumps(value):
            return None
        value = _decode(_STRICT, fixed.text, wants.max_depth)
    except (Exception, RecursionError):  # whatever it runs into, this rung has no answer
        return None
    if (wants.keys or wants.closed) and _foreign(value, wants):
        return None
    return _Read(value, fixed.edits, "loose")


def _hidden(string: re.Match[str]) -> str:
    """A string of the same length that says nothing; a key as it is."""
    return string[0] if _COLON.match(string.string, string.end()) else f'"{"x" * len(string[1])}"'


def _regular(body: str) -> tuple[list[str], str, str] | None:
    """The strings of ``body``, all its words and its brackets and commas, in order.

    None if a stray quote makes the end of a string a guess, or anything but words stands outside strings.
    """
    work = Work()
    quoted: list[str] = []
    shape: list[str] = []
    words: list[str] = []
    at = 0
    for string in _STRINGS.finditer(body):
        outside = body[at : string.start()]
        before, after = outside.rstrip(_BLANKS)[-1:], _SPACE.match(body, string.end())
        if (
            _FOREIGN.search(outside)
            or before not in tuple("{[,:")
            or after is None
            or body[after.end() : after.end() + 1] not in tuple(",:}]")
        ):
            return None
        content = applied(string[1], mend(string[1], 0, len(string[1]), "", work))
        quoted.append(_decode(_STRICT, f'"{content}"', len(body)))
        words += (*_WORDS.findall(outside), *_WORDS.findall(quoted[-1]))
        shape += _SHAPE.findall(outside)
        at = string.end()
    outside = body[at:]
    if _FOREIGN.search(outside):
        return None
    return quoted, "".join(words + _WORDS.findall(outside)), "".join(shape + _SHAPE.findall(outside))


def _faithful(body: str, value: Any, quoted: list[str], words: str, shape: str) -> dict[int, int] | None:
    """Where the strings stand that ``value`` has and ``body`` has without quotes, start -> end.

    None if ``value`` does not have the strings of ``body`` in order, or anything is lost.
    """
    read: list[str] = []
    found: dict[int, int] = {}
    cursor = taken = 0
    for item in _flat(value):
        if not isinstance(item, str):
            read += _WORDS.findall(json.dumps(item))
            continue
        read += _WORDS.findall(item)
        if taken < len(quoted) and item == quoted[taken]:
            taken += 1
            continue
        bare = _BARE.match(item) and not any(literal.startswith(item.lower()) for literal in _LITERALS)
        cursor = _stands(body, item, cursor) if bare else -1
        if cursor < 0:
            return None
        found[cursor] = cursor + len(item)
        cursor += len(item)
    kept = _regular(json.dumps(value, ensure_ascii=False))
    same_words = words.casefold() == "".join(read).casefold()
    return found if taken == len(quoted) and same_words and kept is not None and kept[2] == shape else None


def _stands(body: str, word: str, at: int) -> int:
    """Where ``word`` stands next in the place of a key or value, or -1."""
    at = body.find(word, at)
    while at >= 0 and not _BEGINS.search(body, max(at - 64, 0), at):
        at = body.find(word, at + 1)
    return at


def _flat(value: Any) -> Iterator[Any]:
    """All keys and scalars, in the order in which they were written."""
    stack = [iter([value])]
    while stack:
        for item in stack[-1]:
            if isinstance(item, dict):
                stack.append(iter([part for pair in item.items() for part in (_Key(pair[0]), pair[1])]))
                break
            if isinstance(item, list):
                stack.append(iter(item))
                break
            yield item
        else:
            stack.pop()


class _Key(str):
    """A key, so that it is told from a container."""

    __slots__ = ()


# Anchors


def _anchored(body: str, wants: _Wants, work: Work) -> _Read | None:
    """Cut the values out between the tool's own parameter names, in a flat object that may stand in an envelope."""
    if not wants.keys:
        return None
    names = wants.keys | wants.envelope
    found = [match for match in _ANCHOR.finditer(body) if match[1] in names]
    if not found or found[0].start() != 0:
        return None
    edits: list[Edit] = []
    seen: list[set[str]] = [set()]
    path = ""
    arguments = seen[0]  # the keys of the object that holds the tool's own
    odd = index = 0
    while index < len(found):
        anchor = found[index]
        name = anchor[1]
        if len(seen) == 2 and name not in wants.keys:
            seen.pop()
        if name in seen[-1]:
            return None  # twice: one of the two is text
        seen[-1].add(name)
        start = anchor.end()
        index += 1
        if index < len(found) and found[index].start() == start and body[start] == "{":
            if name not in wants.envelope or len(seen) == 2:
                return None
            path = f"{name}."
            arguments = set()
            seen.append(arguments)
            continue
        while index < len(found) and not _cuts(body, start, found[index], len(seen), wants):
            index += 1
        last = index == len(found)
        leaves = len(seen) if last else len(seen) == 2 and found[index][1] not in wants.keys
        piece = body[start:] if last else body[start : found[index].start()]
        for _ in range(leaves):
            piece = piece.rstrip(_BLANKS)
            if not piece.endswith("}"):
                return None
            piece = piece[:-1]
        try:
            work.spend(1)
            inside, unpaired = _value(piece.rstrip(_BLANKS), wants, work)
        except TooMuch:
            raise
        except ValueError:
            return None
        odd += unpaired
        if unpaired and last:
            return None  # its last quote may be one of the text
        where = (path if len(seen) == 2 else "") + name
        edits += [one._replace(kind="anchored", where=where) for one in shifted(inside, start)]
    if odd > 1 or not wants.required <= arguments or not edits:
        return None
    try:
        value = _decode(_STRICT, applied(body, edits), wants.max_depth)
    except ValueError:
        return None
    return _Read(value, edits, "anchored")


def _lined(body: str, wants: _Wants) -> _Read | None:
    """The object that lines of a key and a value mean."""
    edits = lines_as_object(body, wants.keys, wants.required) if wants.keys else None
    try:
        return _Read(_decode(_STRICT, applied(body, edits), wants.max_depth), edits, "loose") if edits else None
    except ValueError:
        return None


def _cuts(body: str, start: int, anchor: re.Match[str], depth: int, wants: _Wants) -> bool:
    """Whether the value that begins at ``start`` ends before ``anchor``. Only a string may hold anchors."""
    if body[start] != '"':
        return True
    if body[anchor.start()] != ",":
        return False
    at = anchor.start() - 1
    leaves = depth == 2 and anchor[1] not in wants.keys
    while at > start and body[at] in (_BLANKS + "}" if leaves else _BLANKS):
        at -= 1
    return at > start and body[at] == '"'


def _value(piece: str, wants: _Wants, work: Work) -> tuple[list[Edit], bool]:
    """One value between anchors: the edits that make strict JSON of it, whether it holds an odd quote."""
    try:
        _decode(_STRICT, piece, wants.max_depth)
        return [], False
    except ValueError:
        pass
    if piece[:1] == '"' == piece[-1:] and len(piece) > 1:
        raw = piece[1:-1]
        if (len(raw) - len(raw.rstrip("\\"))) % 2 or SPLIT.search(raw):
            raise Stuck("a string never closes", open_string=True)
        quotes = re.sub(r"\\.", "", raw, flags=re.DOTALL).count('"')
        return mend(piece, 1, len(piece) - 1, "", work), quotes % 2 == 1
    fixed = fix(f"[{piece}]", markers=wants.markers, tokens=wants.tokens, max_depth=wants.max_depth + 1, work=work)
    return shifted(fixed.edits, -1), False
