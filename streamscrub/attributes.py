"""The inside of a tag: ``name="x" string="true">``, ``=x>``, ``/>``, in a buffer that still grows."""

from __future__ import annotations

import re
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


def read_attributes(buf: bytearray, i: int, end: int) -> tuple[int, int, dict[str, str]]:
    """Attributes from behind a tag's name to the end of the tag.

    Returns (MORE, DEAD or DONE, index behind the tag, values). ``=NAME>`` counts as ``name="NAME"``; a self-closing
    tag has the key ``"/"``; keys are in lower case. A tag is at most ``MAX_HEADER`` bytes long. With DEAD the index and
    the values are those of the part that could be read, so that a caller may forgive a missing end.
    """
    found: dict[str, str] = {}
    start = i
    equals = _EQUALS.match(buf, i, end)
    if equals is not None and equals.end() - start <= MAX_HEADER:
        found["name"] = equals.group(1).strip(b"\"'").decode("utf-8", "replace")
        if equals.group(2) == b"/>":
            found["/"] = ""
        elif not equals.group(2):
            return DEAD, equals.end(), found
        return DONE, equals.end(), found
    while True:
        close = _END.match(buf, i, end)
        if close is not None:
            if b"/" in close.group():
                found["/"] = ""
            return DONE, close.end(), found
        one = _ATTRIBUTE.match(buf, i, end)
        if one is None or one.end() - start > MAX_HEADER:
            growing = end - start <= MAX_HEADER and (
                _PREFIX.match(buf, i, end) is not None or (i == start and _EQUALS_PREFIX.match(buf, i, end) is not None)
            )
            return (MORE if growing else DEAD), i, found
        value = next((group for group in one.groups()[1:] if group is not None), b"")
        found.setdefault(one.group(1).decode("utf-8", "replace").lower(), value.decode("utf-8", "replace"))
        i = one.end()
