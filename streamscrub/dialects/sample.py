"""Arguments that fit a tool's schema, for the example call of a prompt."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, Final

from ..limits import MAX_COERCE_DEPTH
from ..tools import Tool, fits, resolve_ref, types_of

_ALTERNATIVES: Final = ("anyOf", "oneOf")
_FORMATS: Final = {
    "date": "2025-06-30", "date-time": "2025-06-30T12:00:00Z", "time": "12:00:00Z", "email": "name@example.org",
    "uri": "https://example.org/", "url": "https://example.org/", "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "hostname": "example.org", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "duration": "PT1H",
}  # fmt: skip
_LONGEST: Final = 200  # characters of a text that a schema makes long
_MOST: Final = 20  # items of a list that a schema makes long
# Values in one example. A schema that holds itself twice asks for 2^depth of them.
_VALUES: Final = 500
# Characters that a pattern is tried on, and its repeats without an end: so many may cost that power of the length.
_TRIED: Final = 64
_REPEATS: Final = 3


def example_arguments(tool: Tool) -> dict[str, Any]:
    """The required arguments of a call, and one more if nothing is required, with values that the schema accepts.

    The same tool gives the same arguments always.

    >>> example_arguments(Tool("find", {"properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}))
    {'n': 3}
    """
    value = _Sampler(tool.parameters).object(_merged(tool.parameters, tool.parameters), 0)
    if not value and tool.properties:
        key, schema = next(iter(tool.properties.items()))
        value[key] = _Sampler(tool.parameters).value(schema, key, 1)
    return value


def _merged(schema: Any, root: Any, depth: int = 0, seen: set[int] | None = None) -> dict[str, Any]:
    """The schema with its ``allOf`` parts and its first alternative in one table. ``seen`` are the ids of the parts."""
    schema = resolve_ref(schema, root)
    seen = set() if seen is None else seen
    if not isinstance(schema, dict) or depth > MAX_COERCE_DEPTH or id(schema) in seen:
        return {}
    seen.add(id(schema))
    out = {key: value for key, value in schema.items() if key not in ("allOf", *_ALTERNATIVES)}
    parts = [part for part in schema.get("allOf") or () if isinstance(part, dict)]
    for word in _ALTERNATIVES:
        parts += [part for part in schema.get(word) or () if types_of(part, root) != {"null"}][:1]
    for part in parts:
        for key, value in _merged(part, root, depth + 1, seen).items():
            if key == "properties" and isinstance(out.get(key), dict):
                out[key] = {**out[key], **value}
            elif key == "required" and isinstance(out.get(key), list):
                out[key] = [*out[key], *value]
            else:
                out.setdefault(key, value)
    return out


class _Sampler:
    """Values for the schemas of one tool."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._left = _VALUES

    def value(self, schema: Any, key: str, depth: int, nth: int = 0) -> Any:
        """A value that fits; ``nth`` asks for another one than those before."""
        table = _merged(schema, self._root)
        self._left -= 1
        if "const" in table:
            return table["const"]
        types = types_of(table, self._root) or types_of(schema, self._root)
        for listed in (table.get("enum"), table.get("examples")):
            fitting = [one for one in listed if fits(one, types)] if isinstance(listed, list) else []
            if fitting:
                return fitting[nth % len(fitting)]
        default = table.get("default")
        if default is not None and nth == 0 and fits(default, types):
            return default
        for kind in ("object", "array", "string", "integer", "number", "boolean", "null"):
            if kind in types:
                break
        else:
            kind = "string"
        match kind:
            case "object":
                return self.object(table, depth)
            case "array":
                return self._array(table, key, depth)
            case "string":
                return _text(table, key, nth)
            case "integer" | "number":
                return _number(table, kind == "integer", nth)
            case "boolean":
                return nth == 0
            case _:
                return None

    def object(self, table: dict[str, Any], depth: int) -> dict[str, Any]:
        """An object with its required keys, and as many others as it must have."""
        if depth > MAX_COERCE_DEPTH or self._left < 0:
            return {}
        properties = table.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        names = [name for name in table.get("required") or () if isinstance(name, str)]
        least = table.get("minProperties")
        others = (name for name in properties if name not in names)
        if isinstance(least, int):
            names += islice(others, max(least - len(names), 0))
        return {name: self.value(properties.get(name, {}), name, depth + 1) for name in dict.fromkeys(names)}

    def _array(self, table: dict[str, Any], key: str, depth: int) -> list[Any]:
        least, most = table.get("minItems"), table.get("maxItems")
        size = min(max(least if isinstance(least, int) else 1, 1), _MOST)
        if isinstance(most, int):
            size = min(size, most)
        if depth > MAX_COERCE_DEPTH or self._left < 0:
            return []
        distinct = table.get("uniqueItems") is True
        return [self.value(table.get("items", {}), key, depth + 1, at if distinct else 0) for at in range(size)]


def _number(table: dict[str, Any], whole: bool, nth: int) -> int | float:
    low, high = _bound(table, "minimum"), _bound(table, "maximum")
    above, below = _bound(table, "exclusiveMinimum"), _bound(table, "exclusiveMaximum")
    step = _bound(table, "multipleOf") or 1
    step = step if step > 0 else 1
    value: int | float = 1
    if low is not None:
        value = max(value, low)
    if above is not None and value <= above:
        value = above + step
    if high is not None:
        value = min(value, high)
    if below is not None and value >= below:
        value = below - step
    if above is not None and below is not None and not above < value < below:
        value = (above + below) / 2
    if "multipleOf" in table or whole:
        # Up to the next multiple, or down if that is too much.
        up = -(-value // step) * step
        fits = (high is None or up <= high) and (below is None or up < below)
        value = up if fits else value // step * step
    value += nth * step if high is None or value + nth * step <= high else 0
    return int(value) if whole or (isinstance(value, float) and value.is_integer()) else value


def _bound(table: dict[str, Any], key: str) -> int | float | None:
    bound = table.get(key)
    return bound if type(bound) in (int, float) else None


def _text(table: dict[str, Any], key: str, nth: int) -> str:
    least, most = table.get("minLength"), table.get("maxLength")
    word = re.sub(r"[^\w]+", " ", key).strip() or "text"
    text = _FORMATS.get(str(table.get("format")), word if nth == 0 else f"{word} {nth + 1}")
    pattern = table.get("pattern")
    if isinstance(pattern, str):
        text = _patterned(pattern, text)
    if isinstance(least, int) and len(text) < least:
        text = (text + "x" * min(least, _LONGEST))[: max(least, len(text))]
    return text[:most] if isinstance(most, int) and most >= 0 else text


def _patterned(pattern: str, text: str) -> str:
    """The text, or one that the pattern accepts. Patterns come with the tools: none runs whose cost is not bounded."""
    from importlib import import_module

    parser: Any = import_module("re._parser")
    try:
        parts = parser.parse(pattern)
        cheap = _repeats(parts) <= _REPEATS
        tried = [one for one in (text, re.sub(r"\W", "", text)) if len(one) <= _TRIED and cheap]
        found = next((one for one in tried if re.search(pattern, one)), None)
        if found is not None:
            return found
        made = _made(parts, 0)
        return made if not cheap or len(made) > _TRIED or re.search(pattern, made) else text
    except (re.error, ValueError, RecursionError, OverflowError):
        return text


def _repeats(parts: Any, inside: bool = False) -> int:
    """How many repeats of a pattern can share out a text among them; one in another is too many."""
    count = 0
    for operation, argument in parts:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            most = int(argument[1])
            count += most > 1
            if inside and most > 1:
                return _REPEATS + 1
            count += _repeats(argument[2], inside or most > 1)
        elif name == "SUBPATTERN":
            count += _repeats(argument[3], inside)
        elif name == "BRANCH":
            count += sum(_repeats(branch, inside) for branch in argument[1])
            count += _REPEATS + 1 if inside else 0
        elif name not in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT"):
            return _REPEATS + 1
    return count


def _made(parts: Any, depth: int) -> str:
    """A text that the pattern of a schema accepts, made from its parts; ``ValueError`` for other parts, or too long."""
    out: list[str] = []
    for operation, argument in parts:
        name = str(operation)
        if name == "LITERAL":
            out.append(chr(argument))
        elif name == "ANY":
            out.append("x")
        elif name == "NOT_LITERAL":
            out.append("x" if argument != ord("x") else "y")
        elif name == "IN":
            out.append(_member(argument))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = argument
            out.append(_repeated(_made(inner, depth + 1), min(least or min(int(most), 1), _LONGEST)))
        elif name == "SUBPATTERN":
            out.append(_made(argument[3], depth + 1))
        elif name == "BRANCH":
            out.append(_made(argument[1][0], depth + 1))
        elif name != "AT":
            raise ValueError(name)
    return "".join(out)


def _repeated(text: str, times: int) -> str:
    if len(text) * times > _LONGEST * _MOST:
        raise ValueError("too long")
    return text * times


def _member(members: Any) -> str:
    """A character of a class."""
    if str(members[0][0]) == "NEGATE":
        for char in "axz0_ -":
            if not any(_holds(member, char) for member in members[1:]):
                return char
        raise ValueError("NEGATE")
    kind, value = members[0]
    match str(kind):
        case "LITERAL":
            return chr(value)
        case "RANGE":
            return chr(value[0])
        case "CATEGORY":
            return {"CATEGORY_DIGIT": "1", "CATEGORY_WORD": "a", "CATEGORY_SPACE": " "}.get(str(value), "-")
        case _:
            raise ValueError(str(kind))


def _holds(member: Any, char: str) -> bool:
    kind, value = member
    match str(kind):
        case "LITERAL":
            return bool(ord(char) == value)
        case "RANGE":
            return bool(value[0] <= ord(char) <= value[1])
        case _:
            return True
