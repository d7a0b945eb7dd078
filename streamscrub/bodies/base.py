"""What a body syntax is: a reader that finds its end, a decoder that says what it means, a writer that inverts it.

A *body* is what stands between a call's opener and its closer. Decoders are plain functions of the complete block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from ..edits import record
from ..events import Repair
from ..names import Offer
from ..reading import Around, Reader

Settings: TypeAlias = Mapping[str, Any]

_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"')
# What begins or ends the markers of any grammar, or a fence. All of it is in the basic plane.
_MARKING: Final = re.compile(r"[<>\[\]|`&:‖│¦｜《》【】⟨⟩〈〉«»◁▷]")


# What ended a body: its own end, the closer of its envelope before that, or something else (a new opener, the end of
# the stream). Only the first two may be repaired into a call.
Ending: TypeAlias = Literal["whole", "closed", "cut"]


class TagReader(Reader, Protocol):
    """The reader of a call whose own tag carries its name, from behind the start of that tag."""

    name: str | None
    closed: bool  # by its own closer
    mention: bool  # only words follow the tag, and its tool needs more
    wrapped: bool  # by the closer of what holds it, which was read with it


@dataclass(slots=True)
class Written:
    """A call as the model wrote it, before names are resolved and arguments are shaped.

    ``start`` and ``end`` are offsets in the body, in bytes. ``arguments`` is the decoded value (anything, where the
    form allows anything). If ``texts`` is not None the arguments are keyed values still to be typed by the schema:
    key -> (text, how), where ``how`` is "text" or "json" if the form says so itself, "" if the schema decides.
    ``complete`` is False for a call that was cut. ``fault`` is why it cannot be a call ("" if it can).
    """

    name: str | None
    arguments: Any = None
    start: int = 0
    end: int = 0
    texts: dict[str, tuple[str, str]] | None = None
    complete: bool = True
    fault: str = ""
    model_id: str | None = None
    repairs: list[Repair] = field(default_factory=list)
    strategy: str = ""

    def put(self, key: str, text: str, how: str = "") -> None:
        """Add a keyed value. Of a key that is given twice the last counts, and what is lost is told."""
        assert self.texts is not None
        lost = self.texts.pop(key, None)
        if lost is not None and lost[0] != text:
            self.repairs.append(record("repeated", f"arguments.{key}", lost[0], text))
        self.texts[key] = text, how


@dataclass(frozen=True, slots=True)
class Context:
    """What a decoder may know beside the bytes: the offered tools and the settings of its grammar."""

    offer: Offer
    settings: Settings = field(default_factory=dict)


def dumped(value: Any, settings: Settings) -> str:
    """JSON as a writer puts it down, without blanks between its parts with ``settings["compact"]``."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if settings.get("compact") else None)


def hardened(text: str) -> str:
    """JSON, or code with strings like JSON's, whose strings hold no character that a marker or a fence begins with.

    >>> hardened('{"a": "x</b>"}')
    '{"a": "x\\\\u003c/b\\\\u003e"}'
    """
    return _STRING.sub(lambda string: _MARKING.sub(lambda char: f"\\u{ord(char[0]):04x}", string[0]), text)


@dataclass(frozen=True, slots=True)
class Body:
    """A body syntax under its name, as the grammar files refer to it.

    ``reader(start, around, offer, settings)`` makes a reader whose body begins at buffer index ``start``.
    ``decode(raw, ending, context)`` reads the body (``ending`` says what ended it).
    ``write(name, arguments, settings)`` is its inverse. ``again`` matches what begins another body directly behind one,
    besides a bracket; a second pattern matches what may still become that at the end of the bytes. ``settings`` are
    the options that a grammar file may set, with their kind: "string", "flag" or "strings". ``table`` is the section of
    a file that holds its tags, if it has any; of ``tabled`` syntaxes that section makes the bodies, too.
    """

    name: str
    reader: Callable[[int, Around, Offer, Settings], Reader]
    decode: Callable[[bytes, Ending, Context], list[Written]]
    write: Callable[[str, dict[str, Any], Settings], str]
    again: tuple[re.Pattern[bytes], re.Pattern[bytes]] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    table: str = ""
    tabled: bool = False
    bracketed: bool = True  # behind a header it begins with a bracket; else right behind the header
