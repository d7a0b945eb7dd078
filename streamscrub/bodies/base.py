"""What a body syntax is: a reader that finds where it ends, a decoder that says what it means, a writer that inverts it.

A *body* is what stands between a call's opener and its closer. Readers are explicit state over a buffer that only
grows at its end: they look at each byte a bounded number of times, never decide on what may still change, and so give
the same answer however the stream was cut. Decoders are plain functions of the complete block.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from ..events import Repair
    from ..sentinels import Sentinels
    from ..tools import Offer

# Verdicts of a reader. MORE: the bytes so far decide nothing. DEAD: no continuation makes this a call.
# DONE: the body ends before ``reader.at``.
MORE: Final = 0
DEAD: Final = 1
DONE: Final = 2

BLANKS: Final = b" \t\r\n"
BLANK: Final = re.compile(rb"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Around:
    """What can end a body from outside.

    ``close`` are the closers of the envelope that holds the body. ``outer`` are the markers that cannot belong to it
    where its syntax is between two tokens (new openers, turn tokens); ``special`` are those of them that also end an
    open string or value.
    """

    close: Sentinels
    outer: Sentinels
    special: Sentinels


class Reader(Protocol):
    """Finds the end of one body in a growing buffer. Plain state: copyable, picklable, printable."""

    at: int  # bytes before this index were read; they will not be looked at again
    evidence: bool  # the bytes so far are a call by their form
    broken: bool  # DONE, but the body was ended from outside before its own end
    # While new bytes match nothing of this pattern, read() would return MORE and only move ``at``. None: always read.
    stop: re.Pattern[bytes] | None

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        """Read ``buf[self.at:end]``. ``final``: nothing follows. Returns MORE, DEAD or DONE."""

    def shift(self, by: int) -> None:
        """The first ``by`` bytes of the buffer are gone: subtract ``by`` from every remembered index."""


@dataclass(slots=True)
class Written:
    """A call as the model wrote it, before names are resolved and arguments are shaped.

    ``start`` and ``end`` are offsets in the body. ``arguments`` is the decoded value (anything, where the form allows
    anything). If ``texts`` is not None the arguments are keyed values still to be typed by the schema: key -> (text,
    how), where ``how`` is "text" or "json" if the form says so itself, "" if the schema decides. ``complete`` is False
    for a call that was cut. ``fault`` is why it cannot be a call ("" if it can).
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


@dataclass(frozen=True, slots=True)
class Context:
    """What a decoder may know beside the bytes: the offered tools and the settings of its grammar."""

    offer: Offer
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Body:
    """A body syntax under its name, as the grammar files refer to it.

    ``reader(start, around, offer, settings)`` makes a reader whose body begins at buffer index ``start``.
    ``decode(raw, broken, context)`` reads the complete body. ``write(name, arguments, settings)`` is its inverse.
    """

    name: str
    reader: Callable[[int, Around, Offer, dict[str, Any]], Reader]
    decode: Callable[[bytes, bool, Context], list[Written]]
    write: Callable[[str, dict[str, Any], dict[str, Any]], str]
