"""Keys that an object of JSON has more than once: the last counts, and what is lost is told."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from .edits import Edit
from .limits import MAX_REPAIR_TEXT

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]', re.DOTALL)


@dataclass(slots=True)
class _Open:
    """An open bracket: the present key or index, and where the values of an object's keys stand."""

    path: str
    is_object: bool
    key: str = ""
    index: int = 0
    value: int = -1
    values: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def where(self) -> str:
        if not self.is_object:
            return f"{self.path}[{self.index}]"[:MAX_REPAIR_TEXT]
        return (f"{self.path}.{self.key}" if self.path else self.key)[:MAX_REPAIR_TEXT]


class Repeated(ValueError):
    """A key stands twice in one object."""


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object for a JSON decoder. Raises ``Repeated`` if a key stands twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Repeated
    return made


def repeats(text: str) -> list[Edit]:
    """The edits that put the last value of a key in the place of others before it. ``text`` is strict JSON.

    >>> [edit[:3] for edit in repeats('{"a": 1, "b": {}, "a": 2}')]
    [(6, 7, '2')]
    """
    edits: list[Edit] = []
    stack: list[_Open] = []
    for token in _TOKEN.finditer(text):
        mark, at = token[0], token.start()
        frame = stack[-1] if stack else None
        if mark in "{[":
            stack.append(_Open(frame.where() if frame is not None else "", mark == "{"))
        elif frame is None:
            continue
        elif mark == ":":
            frame.value = token.end()
        elif mark in ",}]":
            if frame.is_object and frame.value >= 0:
                value = text[frame.value : at]
                start, end = at - len(value.lstrip()), frame.value + len(value.rstrip())
                frame.values.setdefault(frame.key, []).append((start, end))
                frame.value = -1
            frame.index += 1
            if mark != ",":
                edits += _lost(text, frame)
                stack.pop()
        elif frame.is_object and frame.value < 0:
            frame.key = json.loads(mark, strict=False)
    return _outermost(edits)


def _lost(text: str, frame: _Open) -> list[Edit]:
    edits: list[Edit] = []
    for key, places in frame.values.items():
        if len(places) > 1:
            frame.key = key
            after, where = text[slice(*places[-1])], frame.where()
            lost = [place for place in places[:-1] if text[slice(*place)] != after]
            edits += [Edit(start, end, after, "repeated", where) for start, end in lost]
    return edits


def _outermost(edits: list[Edit]) -> list[Edit]:
    """The edits in order, without those inside others."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept
