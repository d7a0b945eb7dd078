"""The ways in which models spell one token: bars and word separators that differ from the tokenizer's."""

from __future__ import annotations

from typing import Final

BAR: Final = "\uff5c"
BLANK: Final = "\u2581"


def bars(literal: str) -> list[str]:
    """All bars of a tag spelled alike: fullwidth, ASCII, doubled, U+2016, with blanks."""
    if BAR not in literal:
        return [literal]
    alike = [literal.replace(BAR, other) for other in (BAR, "|", BAR * 2, "||", "\u2016", "\u2016" * 2)]
    return [*alike, literal.replace(BAR, " | ").rstrip()]


def tokens(literal: str) -> list[str]:
    """Bars and word separators of a sentinel token vary independently at each place."""
    out = [""]
    for char in literal:
        others = {BAR: (BAR, "|"), BLANK: (BLANK, "_")}.get(char, (char,))
        out = [head + other for head in out for other in others]
    return out


def spelled(literal: str, special: bool) -> list[str]:
    """All spellings of a marker; only special tokens with a word separator have several."""
    return tokens(literal) if special and BLANK in literal else [literal]


def is_special(literal: str) -> bool:
    """Tell a tokenizer's token from a tag by its shape. Closers need this; openers say it in their file."""
    return any(mark in literal for mark in ("|", BAR, "[", "]", "\u25c1"))
