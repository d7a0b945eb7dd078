"""Repair as an edit script: what is put where in a text, as data. All that no edit touches stays byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from .events import Repair, Span
from .limits import MAX_REPAIR_TEXT, MAX_SAME_REPAIRS


class Edit(NamedTuple):
    """``text[start:end]`` becomes ``after``. Kind and place are those of the ``Repair`` that tells it."""

    start: int
    end: int
    after: str
    kind: str
    where: str = ""


def applied(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with the edits made. They must stand in order and must not overlap.

    >>> applied("{a: 1,}", [Edit(1, 2, '"a"', "key_quotes"), Edit(5, 6, "", "trailing_comma")])
    '{"a": 1}'
    """
    out: list[str] = []
    at = 0
    for start, end, after, _, _ in edits:
        out.append(text[at:start])
        out.append(after)
        at = end
    out.append(text[at:])
    return "".join(out)


def unedited(edits: Iterable[Edit], at: int) -> int:
    """The place in a text of what stands at ``at`` in the text with the edits made.

    >>> unedited([Edit(1, 2, '"a"', "key_quotes")], 4)
    2
    """
    grown = 0
    for edit in edits:
        if edit.start + grown >= at:
            break
        if at < edit.start + grown + len(edit.after):
            return edit.start
        grown += len(edit.after) - (edit.end - edit.start)
    return at - grown


def shifted(edits: list[Edit], by: int) -> list[Edit]:
    """The edits ``by`` further on."""
    return [Edit(start + by, end + by, after, kind, where) for start, end, after, kind, where in edits] if by else edits


def told(text: str, edits: Sequence[Edit]) -> tuple[Repair, ...]:
    """One record for each edit, with spans in characters of ``text``.

    Of a kind with too many, the last record reaches from its own edit to the end of the last one.
    """
    most = MAX_SAME_REPAIRS
    counts: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, edit in enumerate(edits):
        counts[edit.kind] = counts.get(edit.kind, 0) + 1
        last[edit.kind] = index
    seen: dict[str, int] = {}
    out: list[Repair] = []
    for index, edit in enumerate(edits):
        nth = seen[edit.kind] = seen.get(edit.kind, 0) + 1
        if nth < most or (nth == most and counts[edit.kind] == most):
            out.append(record(edit.kind, edit.where, text[edit.start : edit.end], edit.after, (edit.start, edit.end)))
        elif nth == most:
            out.append(_flood(text, edits, index, last[edit.kind]))
    return tuple(out)


def _flood(text: str, edits: Sequence[Edit], first: int, last: int) -> Repair:
    start, end = edits[first].start, edits[last].end
    after: list[str] = []
    at, size = start, 0
    for index in range(first, last + 1):
        edit = edits[index]
        after += (text[at : min(edit.start, at + MAX_REPAIR_TEXT)], edit.after)
        size += len(after[-2]) + len(after[-1])
        at = edit.end
        if size > MAX_REPAIR_TEXT:
            break
    places = {edits[index].where for index in range(first, min(last + 1, first + MAX_SAME_REPAIRS))}
    where = edits[first].where if len(places) == 1 else ""
    return record(edits[first].kind, where, text[start : start + MAX_REPAIR_TEXT], "".join(after), (start, end))


def record(kind: str, where: str, before: str, after: str, span: Span | None = None) -> Repair:
    """A record with its texts cut to length."""
    return Repair(kind, where[:MAX_REPAIR_TEXT], before[:MAX_REPAIR_TEXT], after[:MAX_REPAIR_TEXT], span)


def moved(repairs: Iterable[Repair], by: int) -> list[Repair]:
    """The records with their spans ``by`` further on."""
    return [
        one if one.span is None or not by else replace(one, span=(one.span[0] + by, one.span[1] + by))
        for one in repairs
    ]


def placed(repairs: Iterable[Repair], raw: bytes, span: Span, base: int) -> list[Repair]:
    """Repairs of a block as repairs of a call that stands at ``span`` of the wire, where it reads ``raw``.

    ``base`` is the place of the block on the wire. A change without a place stands where its text does, if that stands
    in the call once only.
    """
    out: list[Repair] = []
    lost = 0
    for one in repairs:
        found: Span | None = None
        if one.span is not None:
            found = one.span[0] + base, one.span[1] + base
            if not span[0] <= found[0] <= found[1] <= span[1]:
                found = None  # it stands in what the host had written, or between two calls
        elif one.before and len(one.before) < MAX_REPAIR_TEXT and lost < MAX_SAME_REPAIRS:
            lost += 1
            found = _only(raw, one.before.encode(), span[0])
        out.append(one if found == one.span else replace(one, span=found))
    return out


def _only(raw: bytes, text: bytes, base: int) -> Span | None:
    at = raw.find(text)
    if at < 0 or raw.find(text, at + 1) >= 0:
        return None
    return base + at, base + at + len(text)


# One code point as the "replace" handler counts them: whole, or as much of a broken one as becomes one U+FFFD.
_POINT: Final = re.compile(
    rb"[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]?|\xe0(?:[\xa0-\xbf][\x80-\xbf]?)?|\xed(?:[\x80-\x9f][\x80-\xbf]?)?"
    rb"|[\xe1-\xec\xee\xef](?:[\x80-\xbf][\x80-\xbf]?)?|\xf0(?:[\x90-\xbf][\x80-\xbf]{0,2})?"
    rb"|[\xf1-\xf3](?:[\x80-\xbf][\x80-\xbf]{0,2})?|\xf4(?:[\x80-\x8f][\x80-\xbf]{0,2})?|[\x80-\xff]"
)


def in_bytes(repairs: Sequence[Repair], raw: bytes, at: int = 0) -> list[Repair]:
    """Records with spans in characters of the text of ``raw``, as records with spans in bytes, ``at`` further on."""
    if raw.isascii():
        return moved(repairs, at)
    wanted = sorted({point for one in repairs if one.span is not None for point in one.span})
    places: dict[int, int] = {}
    try:
        text, chars, size = raw.decode(), 0, 0
        for point in wanted:
            size += len(text[chars:point].encode())
            chars, places[point] = point, size
    except UnicodeDecodeError:
        starts = [found.start() for found in _POINT.finditer(raw)]
        places = {point: starts[point] if point < len(starts) else len(raw) for point in wanted}
    return [
        one if one.span is None else replace(one, span=(places[one.span[0]] + at, places[one.span[1]] + at))
        for one in repairs
    ]
