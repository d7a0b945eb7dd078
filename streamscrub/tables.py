"""What the machine asks about markers: what each does, and the forms that have none. Built by ``union``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal

from .attributes import TagEnd
from .blocks import Envelope
from .frames import Frame
from .reading import NOTHING
from .sentinels import Sentinels


class Kind(IntEnum):
    """What a marker does where it stands. Where two files claim one marker, the lower kind has it."""

    OPEN = 0  # opens a call envelope
    TAG = 1  # opens a call whose tag carries its name
    WRAP = 2  # opens a section around calls
    UNWRAP = 3  # closes one
    CLOSE = 4  # closes a call; an orphan where it stands alone
    KEY = 5  # opens a parameter; text where it stands alone
    THINK = 6
    UNTHINK = 7
    CONTROL = 8
    TURN = 9  # opens a turn of another role
    RESULT = 10
    FRAME = 11
    SIGIL = 12  # the start of any tag of a special syntax
    ANSWER = 13  # opens or closes a wrapper around the answer


@dataclass(frozen=True, slots=True, eq=False)
class Sigil:
    """How a tag of a special syntax goes on. ``section``: a wrapper around calls opens or closes;
    None: it is none."""

    tag_end: TagEnd
    closing: bool
    section: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """A marker with what it does and whose it is.

    ``target`` depends on the kind: an ``Envelope`` (OPEN), a ``Use`` (TAG), a ``Frame`` (FRAME), the closers of a
    result (RESULT), the file's table (THINK), "open" or "close" (ANSWER), "result" (a CLOSE that ends one), a
    ``Sigil`` (SIGIL, and KEY of a special syntax).
    """

    kind: Kind
    literal: bytes
    special: bool
    grammar: str
    target: Any = None
    attributes: bool = False  # its tag may carry attributes, and is not at its end yet
    unclosed: bytes = b""  # a body that begins with one of these needs no closer

    def bound(self, target: Any) -> Role:
        """The same role with what it leads to."""
        return Role(self.kind, self.literal, self.special, self.grammar, target, self.attributes, self.unclosed)


@dataclass(frozen=True, slots=True)
class Line:
    """A markerless form that starts a line."""

    syntax: str
    grammar: str
    start: str = ""
    then: str = ""
    others: tuple[str, ...] = ()  # addressees that are no tools: a line of one of these is markup, what follows is text


@dataclass(slots=True, eq=False)
class Tables:
    """Markers with their roles, envelopes, lines and fences of a set of grammars."""

    marks: Sentinels = NOTHING  # all markers
    special: Sentinels = NOTHING  # openers that are tokens
    specials: Sentinels = NOTHING  # all tokens
    roles: dict[bytes, Role] = field(default_factory=dict)
    stop: re.Pattern[bytes] = re.compile(rb"(?!)")  # in bytes: where text has to be looked at
    lead: re.Pattern[str] = re.compile(r"(?!)")  # in text: characters that take a delta off the fast way
    lines: tuple[Line, ...] = ()
    words: Sentinels = NOTHING  # line starts that are literal words
    # What a fence of this language holds: calls, reasoning or a result.
    fences: dict[str, Envelope | Literal["reasoning", "result"]] = field(default_factory=dict)
    bare: Envelope | None = None
    sections: dict[str, Envelope] = field(default_factory=dict)  # by grammar: calls as JSON, right inside its section
    headed: bool = False  # a name may stand before a token that follows it in a header, with no opener before it
    ends: frozenset[bytes] = frozenset()  # tokens that end a section which the prompt opened
    reserved: frozenset[str] | None = None  # elements are on if this is a set
    frames: tuple[Frame, ...] = ()
    own: tuple[bytes, ...] = ()  # what stands before the model's own turn
    opened: bool = False  # the response begins inside a reasoning section: always for the named or chosen
    label: bytes = b""  # what may stand first in a section that the prompt has opened
    stripped: str = ""  # the frame whose tokens may be missing, because the model is known to use it

    def role(self, word: bytes) -> Role:
        """The role of a marker as it stands on the wire."""
        return self.roles.get(word) or self.roles.get(word.lower()) or self.roles[self.marks.template(word)]

    def of_own_turn(self, prompt: bytes) -> bytes:
        """What follows the last place where the model's turn begins; all of it if there is none."""
        return prompt[max((prompt.rfind(mark) + len(mark) for mark in self.own if mark in prompt), default=0) :]

    def __deepcopy__(self, memo: object) -> Tables:
        return self
