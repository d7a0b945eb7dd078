"""The inside of a tag: ``name="x" string="true">``, ``=x>``, ``/>``, in a buffer that still grows."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from .limits import MAX_BLANKS, MAX_HEADER, MAX_NAME
from .reading import DEAD, DONE, MORE

# Some tokenizers leave their own blank (U+0120) in a tag.
_BLANK: Final = rb"(?:[ \t\r\n]|\xc4\xa0)*+"
_EQUALS: Final = re.compile(
    _BLANK + rb"=" + _BLANK + rb"""("[^"<>]*+"|'[^'<>]*+'|(?:[^\s<>,"'/]|/(?!>))++)[ \t\r\n]*+(/?>|(?=<))"""
)
_EQUALS_PREFIX: Final = re.compile(
    _BLANK + rb"(?:=" + _BLANK + rb"""(?:"[^"<>]*+"?|'[^'<>]*+'?|[^\s<>,"']*+)[ \t\r\n]*+/?)?(?:\xc4)?\Z"""
)
_ATTRIBUTE: Final = re.compile(
    _BLANK + rb"""([\w.:-]++)[ \t\r\n]*+=[ \t\r\n]*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>|/]++))(?=[\s/>|<\xc4])"""
)
_PREFIX: Final = re.compile(
    _BLANK
    + rb"""(?:[\w.:-]++[ \t\r\n]*+(?:=[ \t\r\n]*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s"'<>|/]*+)[ \t\r\n]*+)?)?"""
    rb"""(?:/?\|?|\xc4)\Z"""
)
# The end of a closing tag behind its name, and the tag of a child without attributes, each also as the stream cuts it.
TAG_END: Final = re.compile(rb"[ \t\r\n]{0,%d}+/?>" % MAX_BLANKS)
TAG_END_CUT: Final = re.compile(rb"[ \t\r\n]{0,%d}+/?\Z" % MAX_BLANKS)
CHILD: Final = re.compile(rb"<([A-Za-z_][\w.-]{0,%d}+)[ \t\r\n]{0,%d}+>" % (MAX_NAME, MAX_BLANKS))
CHILD_CUT: Final = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,%d}+[ \t\r\n]{0,%d}+)?\Z" % (MAX_NAME, MAX_BLANKS))
_END: Final = re.compile(_BLANK + rb"/?\|?>")
# The rest of a tag of a special syntax behind the start of its name, and the same as the stream cuts it.
SIGIL_TAG: Final = re.compile(rb"[ \t]*+[\w:]*+[ \t]*+(?:[^<>\n\r]{0,%d}?>|\|(?=\s))?" % MAX_HEADER)
SIGIL_CUT: Final = re.compile(rb"[^<>\n\r]{0,%d}+\|?\Z" % MAX_HEADER)


def _begun(literals: tuple[bytes, ...]) -> bytes:
    """A pattern of all proper prefixes of these, the empty one included, at the end of the bytes."""
    branches = []
    for literal in literals:
        branch = b""
        for place in range(len(literal) - 2, -1, -1):
            branch = re.escape(literal[place : place + 1]) + (b"(?:" + branch + b")?+" if branch else b"")
        branches.append(branch)
    return b"(?:" + b"|".join([*branches, b""]) + rb")\Z"


class TagEnd:
    """How the tags of a syntax end: with a bracket, or with a token of their own.

    ``opener`` is the end behind attributes, ``closer`` the one behind the name of a closing tag, ``rest`` all behind
    the name of any tag; each with what it may become. A token may be missing where one of ``starts`` begins a tag.
    """

    __slots__ = ("closer", "closer_cut", "opener", "opener_cut", "rest", "rest_cut", "starts")

    def __init__(self, tokens: tuple[bytes, ...] = (), starts: tuple[bytes, ...] = ()) -> None:
        self.starts = starts
        self.opener = _END
        self.opener_cut: re.Pattern[bytes] | None = None
        self.closer, self.closer_cut = TAG_END, TAG_END_CUT
        self.rest, self.rest_cut = SIGIL_TAG, SIGIL_CUT
        if tokens:
            blanks = rb"[ \t\r\n]{0,%d}+" % MAX_BLANKS
            token = b"(?:" + b"|".join(map(re.escape, tokens)) + b")"
            start = b"(?=" + b"|".join(map(re.escape, starts)) + b")"
            self.opener = re.compile(blanks + token)
            self.opener_cut = re.compile(blanks + _begun(tokens))
            self.closer = re.compile(blanks + b"(?:" + token + b"|" + start + b")")
            self.closer_cut = re.compile(blanks + _begun((*tokens, *starts)))
            self.rest = re.compile(rb"[^<>\n\r]{0,%d}?" % MAX_HEADER + token)
            self.rest_cut = re.compile(rb"[^<>\n\r]{0,%d}+" % MAX_HEADER + _begun(tokens))


ending_by: Final = lru_cache(maxsize=64)(TagEnd)
PLAIN_END: Final = ending_by((), ())


def read_attributes(buf: bytearray, i: int, end: int, tag_end: TagEnd = PLAIN_END) -> tuple[int, int, dict[str, str]]:
    """Attributes from behind a tag's name to the end of the tag.

    Returns (MORE, DEAD or DONE, index behind the tag, values). ``=NAME>`` counts as ``name="NAME"``; a self-closing
    tag has the key ``"/"``; keys are in lower case. A tag is at most ``MAX_HEADER`` bytes long. With DEAD the index and
    the values are those of the part that could be read, so that a caller may forgive a missing end.
    """
    found: dict[str, str] = {}
    start = i
    equals = _EQUALS.match(buf, i, end) if tag_end is PLAIN_END else None
    if equals is not None and equals.end() - start <= MAX_HEADER:
        found["name"] = equals.group(1).strip(b"\"'").decode("utf-8", "replace")
        if equals.group(2) == b"/>":
            found["/"] = ""
        elif not equals.group(2):
            return DEAD, equals.end(), found
        return DONE, equals.end(), found
    while True:
        close = tag_end.opener.match(buf, i, end)
        if close is not None:
            if b"/" in close.group():
                found["/"] = ""
            return DONE, close.end(), found
        one = _ATTRIBUTE.match(buf, i, end)
        if one is None or one.end() - start > MAX_HEADER:
            growing = end - start <= MAX_HEADER and (
                _PREFIX.match(buf, i, end) is not None
                or (i == start and _EQUALS_PREFIX.match(buf, i, end) is not None)
                or (tag_end.opener_cut is not None and tag_end.opener_cut.match(buf, i, end) is not None)
            )
            return (MORE if growing else DEAD), i, found
        value = next((group for group in one.groups()[1:] if group is not None), b"")
        found.setdefault(one.group(1).decode("utf-8", "replace").lower(), value.decode("utf-8", "replace"))
        i = one.end()
