"""A template's regular expressions, read and never run: a pattern becomes a few sequences of simple pieces."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

_MAX_PATTERN: Final = 1000  # characters; published patterns are under 120
_MAX_WAYS: Final = 16  # alternatives a pattern may stand for
_MAX_PIECES: Final = 64
_MAX_DEPTH: Final = 24  # groups in groups
_MAX_TIMES: Final = 4  # repeats of one character that are written out

_parser: Any = importlib.import_module("re._parser")
_CLASSES: Final = ("LITERAL", "NOT_LITERAL", "ANY", "IN")


class Unfit(ValueError):
    """A template, or a part of one, that has no linear reading. ``key`` says where it stands."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}" if key else problem)
        self.key = key
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a pattern.

    "text" is exactly this text; "gap" blanks or nothing; "run" anything up to what follows; "field" a named group, with
    the names inside it; "start" and "end" the ends of the response; "ahead" a text that follows and is not taken.
    """

    kind: Literal["text", "gap", "run", "field", "start", "end", "ahead"]
    text: str = ""
    inside: tuple[str, ...] = ()


Way: TypeAlias = tuple[Piece, ...]

_GAP: Final = Piece("gap")
_RUN: Final = Piece("run")


def ways(pattern: str) -> list[Way]:
    """All sequences that a pattern stands for, at most 16. Raises ``Unfit`` (with an empty key) for any other."""
    if len(pattern) > _MAX_PATTERN:
        raise Unfit("", f"the pattern is longer than {_MAX_PATTERN} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = _parser.parse(pattern)
    except (ValueError, OverflowError, RecursionError) as error:
        raise Unfit("", f"is no regular expression: {str(error) or type(error).__name__}") from None
    except _parser.error as error:
        raise Unfit("", f"is no regular expression: {error}") from None
    if parsed.state.flags & ~(_parser.SRE_FLAG_UNICODE | _parser.SRE_FLAG_DOTALL):
        raise Unfit("", "flags in a pattern are not read")
    names = {number: name for name, number in parsed.state.groupdict.items()}
    found = [joined(way) for way in _walk(parsed, names, _MAX_DEPTH)]
    return list(dict.fromkeys(found))


def joined(pieces: Iterable[Piece]) -> Way:
    """The same with neighbours of one kind made one."""
    out: list[Piece] = []
    for piece in pieces:
        if out and piece.kind == out[-1].kind and piece.kind in ("text", "gap", "run"):
            out[-1] = Piece(piece.kind, out[-1].text + piece.text)
        elif piece.kind != "text" or piece.text:
            out.append(piece)
    return tuple(out)


def _walk(operations: Any, names: dict[int, str], depth: int) -> list[Way]:
    if depth == 0:
        raise Unfit("", "groups are nested too deep")
    out: list[Way] = [()]
    for operation, argument in operations:
        choices = _choices(str(operation), argument, names, depth)
        if len(out) * len(choices) > _MAX_WAYS:
            raise Unfit("", f"the pattern stands for more than {_MAX_WAYS} alternatives")
        out = [joined(before + choice) for before in out for choice in choices]
        if any(len(way) > _MAX_PIECES for way in out):
            raise Unfit("", f"the pattern has more than {_MAX_PIECES} pieces")
    return out


def _choices(operation: str, argument: Any, names: dict[int, str], depth: int) -> list[Way]:
    """What one operation of a parsed pattern may stand for."""
    if operation in _CLASSES:
        return _once(operation, argument)
    if operation in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeated(argument, names, depth)
    if operation == "BRANCH":
        return [way for branch in argument[1] for way in _walk(branch, names, depth - 1)]
    if operation == "SUBPATTERN":
        number, added, removed, inner = argument
        if added or removed:
            raise Unfit("", "flags in a pattern are not read")
        found = _walk(inner, names, depth - 1)
        if number not in names:
            return found
        inside = {piece.text for way in found for piece in way if piece.kind == "field"}
        return [(Piece("field", names[number], tuple(sorted(inside))),)]
    if operation == "AT":
        if "BEGINNING" in str(argument):
            return [(Piece("start"),)]
        if "END" in str(argument):
            return [(Piece("end"),)]
        raise Unfit("", "word boundaries are not read")
    if operation == "ASSERT" and argument[0] == 1:
        return [_ahead(way) for way in _walk(argument[1], names, depth - 1)]
    what = {"ASSERT": "look-behind", "ASSERT_NOT": "a negative look-around", "GROUPREF": "a back-reference"}
    raise Unfit("", f"{what.get(operation, operation.lower().replace('_', ' '))} is not read")


def _once(operation: str, argument: Any) -> list[Way]:
    """One character: of a few that are known, of the blanks, or any."""
    if operation == "LITERAL":
        return [(Piece("text", chr(argument)),)]
    if operation != "IN":
        return [(_RUN,)]
    members = [(str(kind), value) for kind, value in argument]
    if all(_is_blank(*member) for member in members):
        return [(_GAP,)]
    if len(members) <= _MAX_WAYS and all(kind == "LITERAL" for kind, _ in members):
        return [(Piece("text", chr(value)),) for _, value in members]
    return [(_RUN,)]


def _is_blank(kind: str, value: Any) -> bool:
    return str(value) == "CATEGORY_SPACE" if kind == "CATEGORY" else kind == "LITERAL" and chr(value).isspace()


def _repeated(argument: Any, names: dict[int, str], depth: int) -> list[Way]:
    """A repeat: blanks, any text, one character a few times, or a group that may be missing."""
    least, most, inner = argument
    if len(inner) == 1 and str(inner[0][0]) in _CLASSES:
        operation, argument = str(inner[0][0]), inner[0][1]
        members = [("LITERAL", argument)] if operation == "LITERAL" else argument if operation == "IN" else []
        if members and all(_is_blank(str(kind), value) for kind, value in members):
            return [(_GAP,)]
        if operation != "LITERAL":
            return [(_RUN,)]
        if most <= _MAX_TIMES:
            return [joined([Piece("text", chr(argument) * times)]) for times in range(least, most + 1)]
    if most != 1:
        raise Unfit("", "a repeated group is not read")
    return [*([()] if least == 0 else []), *_walk(inner, names, depth - 1)]


def _ahead(way: Way) -> Way:
    if all(piece.kind == "end" for piece in way):
        return way
    if [piece.kind for piece in way if piece.kind != "gap"] != ["text"]:
        raise Unfit("", "only a text may be looked ahead for")
    return tuple(Piece("ahead", piece.text) if piece.kind == "text" else piece for piece in way)
