"""Arguments against the schema of their tool: what does not fit, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..limits import MAX_COERCE_DEPTH
from ..nudges import plain
from ..tools import Shape, Tool, read_tools

# Problems that are worth telling; a model that gets one field wrong ten times needs no more.
MAX_PROBLEMS: Final = 8
_TYPES: Final[dict[type, str]] = {
    str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object", type(None): "null",
}  # fmt: skip
# Keyword of the schema -> (type of the values it is about, what is compared, is it broken?, words).
_BOUNDS: Final[dict[str, tuple[tuple[type, ...], Callable[[Any], Any], Callable[[Any, Any], bool], str]]] = {
    "minimum": ((int, float), lambda value: value, lambda value, bound: value < bound, "must be at least"),
    "maximum": ((int, float), lambda value: value, lambda value, bound: value > bound, "must be at most"),
    "exclusiveMinimum": ((int, float), lambda value: value, lambda value, bound: value <= bound, "must be more than"),
    "exclusiveMaximum": ((int, float), lambda value: value, lambda value, bound: value >= bound, "must be less than"),
    "minLength": ((str,), len, lambda value, bound: value < bound, "must have at least this many characters:"),
    "maxLength": ((str,), len, lambda value, bound: value > bound, "must have at most this many characters:"),
    "minItems": ((list,), len, lambda value, bound: value < bound, "must have at least this many items:"),
    "maxItems": ((list,), len, lambda value, bound: value > bound, "must have at most this many items:"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One field that does not fit: its path (``"days"``, ``"tags[2].name"``, ``""`` for all arguments), and why."""

    field: str
    message: str


def validate(arguments: dict[str, Any], tool: Tool | Mapping[str, Any]) -> list[Problem]:
    """What does not fit the schema of ``tool``, at most ``MAX_PROBLEMS`` of it; an empty list if all does.

    ``tool`` is a ``Tool`` or a record of any shape.

    Looked at are types, listed values, required and forbidden keys, and bounds of numbers and lengths, down to 16
    levels. ``pattern`` and ``format`` are not: they would run expressions of unknown cost over what a model wrote.
    Raises ``TypeError`` or ``ValueError`` for a ``tool`` that is no record of one.

    >>> validate({"contents": "x"}, Tool("read_note", {"properties": {"path": {}}, "required": ["path"]}))
    [Problem(field='path', message='is missing; expected keys: path')]
    """
    found: list[Problem] = []
    for problem in _walk(arguments, _one(tool).shape, "", 0):
        found.append(problem)
        if len(found) == MAX_PROBLEMS:
            break
    return found


def _one(record: Tool | Mapping[str, Any]) -> Tool:
    found = read_tools([record]) or ()
    if len(found) != 1:
        raise ValueError(f"tool: expected the record of one tool, got {len(found)} of them")
    return found[0]


def _walk(value: Any, shape: Shape, path: str, depth: int) -> Iterator[Problem]:
    if depth > MAX_COERCE_DEPTH:
        return
    if not shape.fits(value):
        wanted = " or ".join(sorted(shape.types))
        yield Problem(path, f"must be {wanted}, not {_TYPES.get(type(value), type(value).__name__)}")
        return
    if not shape.lists(value):
        yield Problem(path, f"must be one of {_listed(shape.choices or [])}")
        return
    yield from _bounds(value, shape, path)
    if type(value) is dict:
        missing = [key for key in shape.required if key not in value]
        expected = f"; expected keys: {_listed(list(shape.properties))}" if len(missing) == len(shape.required) else ""
        for key in missing:
            yield Problem(_join(path, key), f"is missing{expected}")
        for key, member in value.items():
            inner = shape.child(key)
            if inner is not None:
                yield from _walk(member, inner, _join(path, key), depth + 1)
            elif shape.closed:
                yield Problem(_join(path, key), f"is no known key; known are {_listed(list(shape.properties))}")
    elif type(value) is list and shape.item is not None:
        for index, member in enumerate(value):
            yield from _walk(member, shape.item, f"{path}[{index}]", depth + 1)


def _bounds(value: Any, shape: Shape, path: str) -> Iterator[Problem]:
    if not isinstance(shape.schema, dict) or type(value) is bool:
        return
    for keyword, (kinds, measure, broken, words) in _BOUNDS.items():
        bound = shape.schema.get(keyword)
        if type(bound) in (int, float) and isinstance(value, kinds) and broken(measure(value), bound):
            yield Problem(path, f"{words} {bound}")


def _join(path: str, key: str) -> str:
    key = plain(key) or "?"
    return f"{path}.{key}" if path else key


def _listed(values: list[Any], most: int = 12) -> str:
    shown = ", ".join(plain(str(value)) for value in values[:most])
    return shown + (", …" if len(values) > most else "") if values else "none"
