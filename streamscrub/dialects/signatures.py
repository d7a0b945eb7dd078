"""Tools as signatures: Python, TypeScript with all its rules as comments, P-Format slots."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator
from typing import Any, Final

from ..tools import Tool, resolve_ref

# Levels and properties of a nested object that a signature shows; below that it is only an object.
MAX_DEPTH: Final = 4
MAX_PROPERTIES: Final = 16
# Types in one type. A schema that holds itself several times would be written as a tree.
_MOST_TYPES: Final = 400
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*+")
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*+", re.ASCII)
# Words that no parameter of a TypeScript function can be named.
_RESERVED: Final = frozenset(
    """
    break case catch class const continue debugger default delete do else enum export extends false finally for
    function if import in instanceof new null return super switch this throw true try typeof var void while with
    """.split()  # noqa: SIM905
)
_PYTHON: Final = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "dict",
    "array": "list",
}  # fmt: skip
_TYPESCRIPT: Final = {**{word: word for word in _PYTHON}, "integer": "number", "array": "unknown[]"}
# Keyword of a schema -> what its comment says.
_RULES: Final = {
    "minItems": "at least {} items", "maxItems": "at most {} items", "minimum": "minimum {}", "maximum": "maximum {}",
    "exclusiveMinimum": "more than {}", "exclusiveMaximum": "less than {}", "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters", "maxLength": "at most {} characters", "pattern": "pattern {}",
    "format": "format {}", "minProperties": "at least {} keys", "maxProperties": "at most {} keys",
}  # fmt: skip
_FLAGS: Final = {("uniqueItems", True): "no item twice", ("additionalProperties", False): "no other keys"}


class Types:
    """The words for types in one language: ``python`` or ``typescript``; ``exact`` keeps ``integer`` apart."""

    def __init__(self, root: Any, language: str, exact: bool = False) -> None:
        self._root = root
        self._python = language == "python"
        self._words = dict(_PYTHON if self._python else _TYPESCRIPT)
        self._any = "Any" if self._python else "unknown"
        self._left = _MOST_TYPES
        if exact:
            self._words["integer"] = "integer"

    def word(self, schema: Any, depth: int = 0) -> str:
        """The type of a schema on one line.

        >>> Types({}, "typescript").word({"type": "array", "items": {"enum": ["a", "b"]}})
        'Array<"a" | "b">'
        """
        schema = resolve_ref(schema, self._root)
        self._left = self._left - 1 if depth else _MOST_TYPES
        if not isinstance(schema, dict) or depth > MAX_DEPTH + 4 or self._left < 0:
            return self._any
        if isinstance(schema.get("enum"), list) or "const" in schema:
            return self._listed([schema["const"]] if "const" in schema else schema["enum"])
        for key in ("anyOf", "oneOf"):
            if isinstance(schema.get(key), list) and schema[key]:
                return " | ".join(dict.fromkeys(self.word(part, depth + 1) for part in schema[key]))
        if isinstance(schema.get("allOf"), list) and schema["allOf"]:
            return self.word(schema["allOf"][0], depth + 1)
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return " | ".join(dict.fromkeys(self.word({**schema, "type": kind}, depth + 1) for kind in kinds))
        if kinds is None:
            kinds = "object" if "properties" in schema else "array" if "items" in schema else ""
        if kinds == "array":
            return self._array(schema, depth)
        if kinds == "object" and not self._python:
            return self._object(schema, depth)
        return self._words.get(str(kinds), self._any)

    def _listed(self, values: list[Any]) -> str:
        if self._python:
            return f"Literal[{', '.join(_python(value) for value in values)}]"
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values) or self._any

    def _array(self, schema: dict[str, Any], depth: int) -> str:
        if not isinstance(schema.get("items"), dict):
            return self._words["array"]
        return self.of_items(self.word(schema["items"], depth + 1))

    def of_items(self, item: str) -> str:
        """The type of a list of these."""
        if self._python:
            return f"list[{item}]"
        return f"Array<{item}>" if re.search(r"[\s|]", item) else f"{item}[]"

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties or depth >= MAX_DEPTH or len(properties) > MAX_PROPERTIES:
            return "object"
        required = schema.get("required") or ()
        parts = (
            f"{key_of(key)}{'' if key in required else '?'}: {self.word(part, depth + 1)}"
            for key, part in properties.items()
        )
        return "{" + ", ".join(parts) + "}"


def key_of(key: str) -> str:
    """A key as TypeScript writes it."""
    return key if _IDENTIFIER.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _python(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def one_line(text: str) -> str:
    """Text for the rest of a line."""
    return " ".join(text.split())


def python_signature(tool: Tool) -> str:
    """``def name(key: type, other: type = None) -> str  # description``."""
    types = Types(tool.parameters, "python")
    if all(key.isidentifier() and not keyword.iskeyword(key) for key in tool.slots):
        parts = [
            f"{key}: {types.word(tool.properties[key])}{'' if key in tool.required else ' = None'}"
            for key in tool.slots
        ]
    else:
        parts = ["args: dict"]
    return _line(tool, f"def {tool.name}({', '.join(parts)}) -> str", "#")


def typescript_signature(tool: Tool) -> str:
    """``function name(key: type, other?: type): string;  // description``."""
    types = Types(tool.parameters, "typescript")
    if all(_IDENTIFIER.fullmatch(key) and key not in _RESERVED for key in tool.slots):
        parts = [
            f"{key}{'' if key in tool.required else '?'}: {types.word(tool.properties[key])}" for key in tool.slots
        ]
    else:
        parts = [f"args: {types.word({**tool.parameters, 'type': 'object'})}"]
    return _line(tool, f"function {tool.name}({', '.join(parts)}): string;", "//")


def _line(tool: Tool, signature: str, comment: str) -> str:
    if not _NAME.fullmatch(tool.name):
        return f"{comment} unsupported tool name: {json.dumps(tool.name)}"
    said = one_line(tool.description)
    return f"{signature}  {comment} {said}" if said else signature


def slot_signature(tool: Tool) -> str:
    """``name[0|<key>|1|<other>]``.

    >>> slot_signature(Tool("find", {"properties": {"q": {}}}))
    'find[0|<q>]'
    """
    return f"{tool.name}[{'|'.join(f'{place}|<{key}>' for place, key in enumerate(tool.slots))}]"


def rules_of(schema: Any) -> list[str]:
    """What a schema asks of a value beside its type, in words.

    >>> rules_of({"type": "array", "maxItems": 3, "items": {"minimum": 1}})
    ['at most 3 items', 'each: minimum 1']
    """
    if not isinstance(schema, dict):
        return []
    found = [words.format(schema[key]) for key, words in _RULES.items() if type(schema.get(key)) in (int, float, str)]
    found += [words for (key, value), words in _FLAGS.items() if schema.get(key) is value]
    if isinstance(schema.get("items"), dict):
        found += [f"each: {rule}" for rule in rules_of(schema["items"])]
    for word in ("anyOf", "oneOf"):
        for part in schema.get(word) or ():
            rules = rules_of(part)
            if rules:
                found.append(f"as {part.get('type', 'one kind')}: {', '.join(rules)}")
    if "default" in schema:
        found.append(f"default {json.dumps(schema['default'], ensure_ascii=False)}")
    return [one_line(rule) for rule in found]


def interface(tool: Tool) -> str:
    """The arguments as a TypeScript interface; every rule that a call is checked against is in it."""
    words = re.split(r"[^A-Za-z0-9]+", tool.name)
    title = "".join(word[:1].upper() + word[1:] for word in words) or "Tool"
    schema = resolve_ref(tool.parameters, tool.parameters)
    lines = [f"interface {title}Args {{", *_members(tool, schema, 1), "}"]
    closed = isinstance(schema, dict) and schema.get("additionalProperties") is False
    return "\n".join([lines[0] + (" // no other keys" if closed else ""), *lines[1:]])


def _members(tool: Tool, schema: Any, depth: int, around: tuple[int, ...] = ()) -> Iterator[str]:
    """The lines of an object. ``around`` are the ids of the objects that it stands in: none is written in itself."""
    pad = "  " * depth
    types = Types(tool.parameters, "typescript", exact=True)
    top = depth == 1
    properties = tool.properties if top else schema.get("properties", {})
    required = tool.required if top else schema.get("required") or ()
    for key, part in properties.items():
        part = resolve_ref(part, tool.parameters)
        head = f"{pad}{key_of(key)}{'' if key in required else '?'}: "
        inner, closer = _nested(part, tool)
        if inner is not None and depth <= MAX_DEPTH and id(inner) not in around:
            yield f"{head}{{{_comment(part)}"
            yield from _members(tool, inner, depth + 1, (*around, id(inner)))
            yield f"{pad}{closer};"
        else:
            yield f"{head}{types.word(part)};{_comment(part)}"


def _nested(part: Any, tool: Tool) -> tuple[Any, str]:
    """The object in a property, or in each item of it, and how its lines end."""
    for closer in ("}", "}[]"):
        if isinstance(part, dict) and isinstance(part.get("properties"), dict) and part["properties"]:
            return part, closer
        part = resolve_ref(part.get("items"), tool.parameters) if isinstance(part, dict) else None
    return None, ""


def _comment(part: Any) -> str:
    said = one_line(str(part.get("description") or "")) if isinstance(part, dict) else ""
    told = "; ".join([*([said] if said else []), *rules_of(part)])
    return f" // {told}" if told else ""


def namespace(tools: tuple[Tool, ...]) -> str:
    """The tools as types of a namespace, as the prompts of gpt-oss list them."""
    out = ["## functions", "", "namespace functions {", ""]
    for tool in tools:
        types = Types(tool.parameters, "typescript")
        out += [f"// {line}" for line in tool.description.splitlines()]
        if not tool.properties:
            out += [f"type {tool.name} = () => any;", ""]
            continue
        out.append(f"type {tool.name} = (_: {{")
        for key, part in tool.properties.items():
            part = resolve_ref(part, tool.parameters)
            if isinstance(part, dict) and part.get("description"):
                out += [f"// {line}" for line in str(part["description"]).splitlines()]
            rules = rules_of(part)
            note = f" // {', '.join(rule.replace('default ', 'default: ', 1) for rule in rules)}" if rules else ""
            out.append(f"{key_of(key)}{'' if key in tool.required else '?'}: {types.word(part)},{note}")
        out += ["}) => any;", ""]
    return "\n".join([*out, "} // namespace functions"])
