"""The tags of one syntax: their literals, compiled, and how a tag and one parameter are taken."""

from __future__ import annotations

import re
from typing import Final

from ..attributes import PLAIN_END, TagEnd, read_attributes
from ..reading import DEAD, DONE
from ..sentinels import Sentinels, joined, sentinels

_NAMELESS: Final = re.compile(rb"[ \t\r\n]*+=[ \t\r\n]*+>")


class Tags:
    """The literals of one tag syntax, compiled from a grammar file. All are without the end of the tag.

    ``after`` are the markers that may follow a value's closer: a sibling, the closer of the call or of what holds it,
    another opener. ``openers`` begin another call of any syntax. ``ends`` are what a call cannot reach beyond;
    ``reach`` are those and the openers of parameters.
    ``keys`` are the openers of parameters as they are read inside a call, which is a little wider. ``strange`` are the
    tags of a parameter that belongs to another syntax, ``tag_end`` is how each tag goes on.
    """

    __slots__ = (
        "after",
        "call_close",
        "call_open",
        "ends",
        "key_close",
        "key_open",
        "keys",
        "openers",
        "reach",
        "special",
        "strange",
        "tag_end",
        "value_marks",
        "wrapper_close",
    )

    def __init__(
        self,
        call_open: Sentinels,
        call_close: Sentinels,
        key_open: Sentinels,
        key_close: Sentinels,
        wrapper_close: Sentinels,
        value_marks: Sentinels,
        after: Sentinels,
        special: Sentinels,
        openers: Sentinels,
        tag_end: TagEnd = PLAIN_END,
    ) -> None:
        self.tag_end: Final = tag_end
        self.openers: Final = openers
        self.call_open: Final = call_open
        self.call_close: Final = _spaced(call_close)
        self.key_open: Final = key_open
        self.keys: Final = _spaced(key_open)
        self.key_close: Final = _spaced(key_close)
        self.wrapper_close: Final = wrapper_close
        inside = (self.keys, self.key_close, self.call_close)
        self.value_marks: Final = joined(value_marks, *inside)
        self.after: Final = joined(after, self.keys, self.call_close)
        self.ends: Final = joined(self.call_close, wrapper_close, openers)
        self.reach: Final = joined(self.keys, self.ends)
        self.special: Final = special
        self.strange: Tags | None = None  # this call with the parameters of the other syntaxes

    def __deepcopy__(self, memo: object) -> Tags:
        return self


def _spaced(tags: Sentinels) -> Sentinels:
    """The literals, and those of plain tags also with a blank before the name, as some models write them."""
    loose = [literal for literal in tags.loose if literal.startswith(b"<")]
    heads = [b"</" if literal.startswith(b"</") else b"<" for literal in loose]
    more = [head + b" " + literal[len(head) :] for head, literal in zip(heads, loose, strict=True)]
    return sentinels(tags.exact, tuple(sorted({*tags.loose, *more})))


def attributes_of(buf: bytearray, i: int, end: int, tag_end: TagEnd) -> tuple[int, int, dict[str, str]]:
    """``read_attributes``, but an equals sign without a name behind it makes a tag without a name."""
    verdict, j, found = read_attributes(buf, i, end, tag_end)
    if verdict == DEAD:
        nameless = _NAMELESS.match(buf, i, end)
        if nameless is not None:
            return DONE, nameless.end(), {}
    return verdict, j, found


def bare_tag(buf: bytearray, i: int, end: int) -> bool:
    """Is there nothing but its end behind the name of a tag, which ends at ``end``?"""
    return buf[i:end].strip() == b">"


class Value:
    """One parameter as it was read: where its text stands and what ended it."""

    __slots__ = ("attributes", "cut", "end", "implicit", "key", "opener", "start")

    def __init__(self, key: str, attributes: dict[str, str], start: int, opener: bytes = b"") -> None:
        self.key = key
        self.opener = opener  # the literal of its tag, which says how its text is to be taken
        self.attributes = attributes
        self.start = start
        self.end = start
        self.implicit = False  # ended by something else than its own closer
        self.cut = False  # ended by what may never end a value that runs
