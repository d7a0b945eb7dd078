"""The ways in which models spell one token: bars and word separators that differ from the tokenizer's."""

from __future__ import annotations

from typing import Final

BAR: Final = "\uff5c"
BLANK: Final = "\u2581"


# What stands for the two bars of a tag, and for those of a sentinel token.
_DOUBLE: Final = "\u2016"
_ALIKE: Final = (BAR, "|", BAR * 2, "||", _DOUBLE, _DOUBLE * 2, " | ", f" {BAR} ")
_MIXED: Final = (
    *((BAR, "|"), ("|", BAR), (BAR, " |"), ("|", " |"), (BAR, f" {BAR}")),
    *((f"{BAR} ", f" {BAR}"), ("| ", " |")),
)
_TOKEN_BARS: Final = ((BAR, BAR), ("|", "|"), (BAR, "|"), ("|", BAR), ("| ", " |"), (f"{BAR} ", f" {BAR}"))


def bars(literal: str) -> list[str]:
    """All spellings of the two bars of a tag: fullwidth, ASCII, doubled, U+2016, mixed, with blanks."""
    if literal.count(BAR) != 2:
        return [literal]
    head, name, tail = literal.split(BAR)
    pairs = (*((one, one) for one in _ALIKE), *_MIXED)
    return [(head + first + name + second + tail).rstrip() for first, second in pairs]


def tokens(literal: str) -> list[str]:
    """All spellings of sentinel tokens: their bars, and what stands between their words, alike in all of a literal."""
    head, *rest = literal.split(BAR)
    if not rest or len(rest) % 2:
        return [literal]
    inner = list(zip(rest[::2], rest[1::2], strict=True))
    return [
        head + "".join(first + name.replace(BLANK, between) + second + tail for name, tail in inner)
        for first, second in _TOKEN_BARS
        for between in (BLANK, "_", " ")
    ]


def spelled(literal: str, special: bool) -> list[str]:
    """All spellings of a marker; only special tokens with a word separator have several."""
    return tokens(literal) if special and BLANK in literal else [literal]


def is_special(literal: str) -> bool:
    """Tell a tokenizer's token from a tag by its shape. Closers need this; openers say it in their file."""
    return any(mark in literal for mark in ("|", BAR, "[", "]", "\u25c1"))
