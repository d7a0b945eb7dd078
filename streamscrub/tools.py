"""What a caller offers: the tool records of every ecosystem, read into one form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from .limits import MAX_COERCE_DEPTH

# Levels of anyOf/oneOf/allOf and hops of $ref that are followed. Generated schemas need three.
MAX_SCHEMA_DEPTH: Final = 8

ANYTHING: Final[frozenset[str]] = frozenset()
# Beside the words of JSON Schema: the Python names that hand-written catalogues use.
_TYPE_WORDS: Final = {
    "string": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "array": "array",
    "object": "object",
    "null": "null",
    "str": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
}
_VALUE_TYPES: Final[dict[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
_ALTERNATIVES: Final = ("anyOf", "oneOf")
_SCHEMA_KEYS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")


def resolve_ref(schema: Any, root: Any = None) -> Any:
    """Follow local references (``#/$defs/x``) of ``schema``; what cannot be found allows anything."""
    for _ in range(MAX_SCHEMA_DEPTH):
        if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
            return schema
        schema = _pointed(schema["$ref"], root)
    return {}


def _pointed(ref: str, root: Any) -> Any:
    if not ref.startswith("#"):
        return {}
    from urllib.parse import unquote

    target = root
    for step in ref[1:].split("/")[1:]:
        step = unquote(step).replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or step not in target:
            return {}
        target = target[step]
    return target


def types_of(schema: Any, root: Any = None) -> frozenset[str]:
    """Collect the JSON types that ``schema`` allows. The empty set means anything.

    >>> sorted(types_of({"anyOf": [{"type": "integer"}, {"type": "null"}]}))
    ['integer', 'null']
    """
    return _types(schema, root, 0, set()) or ANYTHING


def _types(schema: Any, root: Any, depth: int, seen: set[int]) -> frozenset[str] | None:
    # None: this schema was counted already, so that circular unions end and shared ones cost nothing.
    schema = resolve_ref(schema, root)
    if not isinstance(schema, dict) or depth > MAX_SCHEMA_DEPTH:
        return ANYTHING
    if id(schema) in seen:
        return None
    seen.add(id(schema))
    words = schema.get("type")
    if words is not None:
        words = words if isinstance(words, list) else [words]
        known = {_TYPE_WORDS.get(word.lower(), "") if isinstance(word, str) else "" for word in words}
    elif isinstance(schema.get("enum"), list):
        known = {_VALUE_TYPES.get(type(value), "") for value in schema["enum"]}
    elif "const" in schema:
        known = {_VALUE_TYPES.get(type(schema["const"]), "")}
    else:
        known = _combined_types(schema, root, depth, seen)
    if "" in known or not known:
        return ANYTHING
    if schema.get("nullable") is True:
        known.add("null")
    return frozenset(known)


def _combined_types(schema: dict[str, Any], root: Any, depth: int, seen: set[int]) -> set[str]:
    known: set[str] = set()
    for word in _ALTERNATIVES:
        found = [_types(part, root, depth + 1, seen) for part in _listed(schema, word)]
        if ANYTHING not in found:
            known.update(*(types for types in found if types))
    for part in _listed(schema, "allOf"):
        known.update(_types(part, root, depth + 1, seen) or ANYTHING)
    if not known:
        known.update(kind for key, kind in (("properties", "object"), ("items", "array")) if key in schema)
    return known


def _listed(schema: dict[str, Any], key: str) -> list[Any]:
    parts = schema.get(key)
    return parts if isinstance(parts, list) else []


def is_string_only(schema: Any, root: Any = None) -> bool:
    """True if nothing but a string, or null beside it, fits ``schema``."""
    return types_of(schema, root) - {"null"} == {"string"}


def fits(value: Any, types: frozenset[str]) -> bool:
    """True if ``value`` is of one of the JSON ``types``: a boolean is no integer, 1.0 is one."""
    kind = _VALUE_TYPES.get(type(value))
    if not types or kind in types:
        return True
    if kind == "integer":
        return "number" in types
    return kind is None or (kind == "number" and "integer" in types and value.is_integer())


class Shape:
    """One schema, read lazily: its types, its parts, and the shapes of what it holds."""

    def __init__(self, schema: Any, root: Any) -> None:
        self.schema = resolve_ref(schema, root)
        self.root = root
        self._children: dict[str, Shape] = {}

    @cached_property
    def types(self) -> frozenset[str]:
        """The allowed JSON types; the empty set means anything."""
        return types_of(self.schema, self.root)

    @cached_property
    def string_only(self) -> bool:
        """True if nothing but a string, or null beside it, fits."""
        return self.types - {"null"} == {"string"}

    @cached_property
    def properties(self) -> dict[str, Any]:
        """The declared keys with their schemas, those of all alternatives together."""
        merged: dict[str, Any] = {}
        for part, _ in self._parts():
            declared = part.get("properties")
            if isinstance(declared, dict):
                for key, schema in declared.items():
                    merged[key] = _either(merged[key], schema) if key in merged else schema
        return merged

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The keys that every fitting object has, in the order of the schema."""
        names = (name for part, always in self._parts() if always for name in _listed(part, "required"))
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))

    @cached_property
    def item(self) -> Shape | None:
        """The shape of list items, or None where any item fits."""
        found = [part["items"] for part, _ in self._parts() if isinstance(part.get("items"), dict)]
        if not found:
            return None
        schema = found[0]
        for other in found[1:]:
            schema = _either(schema, other)
        return Shape(schema, self.root)

    @cached_property
    def choices(self) -> list[Any] | None:
        """The listed values (``enum``, ``const``), or None where the schema lists none."""
        if not isinstance(self.schema, dict):
            return None
        return [self.schema["const"]] if "const" in self.schema else _listed(self.schema, "enum") or None

    @property
    def closed(self) -> bool:
        """True if keys that are not declared are forbidden."""
        return isinstance(self.schema, dict) and self.schema.get("additionalProperties") is False

    def child(self, key: str) -> Shape | None:
        """The shape of a declared key, or None."""
        if key not in self.properties:
            return None
        if key not in self._children:
            self._children[key] = Shape(self.properties[key], self.root)
        return self._children[key]

    def fits(self, value: Any) -> bool:
        """True if ``value`` has an allowed type; what is inside it is not looked at."""
        return fits(value, self.types)

    def lists(self, value: Any) -> bool:
        """True unless the schema lists values and ``value`` is none of them."""
        # True == 1 in Python, not in JSON.
        boolean = type(value) is bool
        return self.choices is None or any(
            choice == value and (type(choice) is bool) == boolean for choice in self.choices
        )

    def accepts(self, value: Any, depth: int = 0) -> bool:
        """True if ``value`` and what it holds fit: types, listed values, required and forbidden keys."""
        if depth > MAX_COERCE_DEPTH:
            return True
        if not self.fits(value) or not self.lists(value):
            return False
        if type(value) is dict:
            members = ((self.child(key), member) for key, member in value.items())
            return (
                all(key in value for key in self.required)
                and not (self.closed and any(key not in self.properties for key in value))
                and all(shape is None or shape.accepts(member, depth + 1) for shape, member in members)
            )
        item = self.item if type(value) is list else None
        return item is None or all(item.accepts(member, depth + 1) for member in value)

    def _parts(self) -> Iterator[tuple[dict[str, Any], bool]]:
        """Every schema that stands for this one, and whether it always applies or is an alternative."""
        seen: set[int] = set()
        waiting = [(self.schema, True, 0)]
        while waiting:
            schema, always, depth = waiting.pop()
            schema = resolve_ref(schema, self.root)
            if not isinstance(schema, dict) or id(schema) in seen or depth > MAX_SCHEMA_DEPTH:
                continue
            seen.add(id(schema))
            yield schema, always
            below = [(part, always, depth + 1) for part in _listed(schema, "allOf")]
            below += [(part, False, depth + 1) for word in _ALTERNATIVES for part in _listed(schema, word)]
            waiting += reversed(below)


def _either(first: Any, second: Any) -> Any:
    return first if first == second else {"anyOf": [first, second]}


@dataclass(frozen=True, slots=True)
class Tool:
    """One offered tool: its name, the JSON schema of its arguments, a description, examples of its arguments.

    >>> tool = Tool("find", {"properties": {"limit": {"type": "integer"}, "q": {"type": "string"}}, "required": ["q"]})
    >>> tool.slots, tool.string_only("q")
    (('q', 'limit'), True)
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)
    description: str = ""
    examples: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    # Derived data, computed once when first asked for.
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[Tool], tuple[Any, ...]]:
        """Pickle what was given, not what was derived."""
        return Tool, (self.name, self.parameters, self.description, self.examples)

    @property
    def shape(self) -> Shape:
        """The schema of the arguments, as the coercion reads it."""
        shape = self._known.get("shape")
        if shape is None:
            shape = self._known["shape"] = Shape(self.parameters, self.parameters)
        return shape

    @property
    def properties(self) -> dict[str, Any]:
        """The declared parameters with their schemas."""
        return self.shape.properties

    @property
    def required(self) -> tuple[str, ...]:
        """The required parameters, in the order of the schema."""
        return self.shape.required

    @property
    def closed(self) -> bool:
        """True if the schema forbids parameters that it does not declare."""
        return self.shape.closed

    @property
    def slots(self) -> tuple[str, ...]:
        """The parameters in positional order: the required ones, then the others alphabetically."""
        slots = self._known.get("slots")
        if slots is None:
            first = [name for name in self.required if name in self.properties]
            slots = self._known["slots"] = (*first, *sorted(self.properties.keys() - set(first)))
        return slots

    def string_only(self, key: str) -> bool:
        """True if the parameter ``key`` is declared and takes nothing but strings (null aside)."""
        shape = self.shape.child(key)
        return shape is not None and shape.string_only

    def key(self, written: str) -> str | None:
        """The declared parameter that ``written`` names, exactly or but for case, ``_`` and ``-``; else None."""
        if written in self.properties:
            return written
        folded = self._known.get("folded")
        if folded is None:
            folded = self._known["folded"] = {}
            for key in self.properties:
                fold = _fold(key)
                folded[fold] = None if fold in folded else key
            folded[""] = None
        return folded.get(_fold(written))


def _fold(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()


def read_tools(tools: Any) -> tuple[Tool, ...] | None:
    """Read the tools of a request; None (nothing is known about them) stays None.

    Each entry is a ``Tool``, an OpenAI record (``{"type": "function", "function": {…}}``, or flat as in the Responses
    API), ``{"name", "parameters"}``, an Anthropic (``input_schema``), MCP (``inputSchema``) or Bedrock one
    (``toolSpec``), or a Gemini one that declares any number (``functionDeclarations``). A record with a ``type`` and no
    name is a tool that the provider runs itself; it is passed over. Examples are ``input_examples``, or the
    ``examples`` of the record or of its schema.

    >>> read_tools([{"name": "ping", "input_schema": {"type": "object"}}])
    (Tool(name='ping', parameters={'type': 'object'}, description='', examples=()),)
    """
    if tools is None:
        return None
    if isinstance(tools, (str, bytes, Mapping, type)) or not isinstance(tools, Iterable):
        inside = isinstance(tools, Mapping) and "tools" in tools
        hint = "; pass what stands under its key 'tools'" if inside else ""
        raise TypeError(f"tools: expected a list of tool records or None, got {_shown(tools)}{hint}")
    read: dict[str, Tool] = {}
    for index, record in enumerate(tools):
        try:
            found = [_read_tool(one) for one in _declared(record)]
        except (TypeError, ValueError) as error:
            raise type(error)(f"tools[{index}]: {error}") from None
        for tool in found:
            if tool.name in read:
                raise ValueError(f"tools[{index}]: a second tool of the name {_shown(tool.name)}")
            read[tool.name] = tool
    return tuple(read.values())


def _declared(record: Any) -> Iterable[Any]:
    """The tools that one record declares."""
    if not isinstance(record, Mapping):
        return (record,)
    for key in ("functionDeclarations", "function_declarations"):
        if isinstance(record.get(key), list):
            return tuple(record[key])
    if isinstance(record.get("toolSpec"), Mapping):
        return (record["toolSpec"],)
    hosted = isinstance(record.get("type"), str) and record["type"] not in ("function", "custom", "object")
    return () if hosted and not {"name", "function", *_SCHEMA_KEYS} & record.keys() else (record,)


def _read_tool(record: Any) -> Tool:
    if isinstance(record, Tool):
        _checked_name(record.name, record)
        if not isinstance(record.parameters, dict):
            raise TypeError(f"the parameters must be a JSON schema (a dict), got {_shown(record.parameters)}")
        return record
    if not isinstance(record, (dict, Mapping)):
        raise TypeError(f"expected a Tool or a dict, got {_shown(record)}")
    inner: Any = record.get("function", record)
    if not isinstance(inner, (dict, Mapping)):
        raise TypeError(f"'function' must be a dict, got {_shown(inner)}")
    name = _checked_name(inner.get("name"), record)
    schema: Any = None
    for key in _SCHEMA_KEYS:
        schema = inner.get(key)
        if schema is not None:
            break
    if isinstance(schema, Mapping) and isinstance(schema.get("json"), Mapping) and "type" not in schema:
        schema = schema["json"]  # Bedrock says in which language the schema is written
    if not isinstance(schema, (dict, Mapping, type(None))):
        raise TypeError(f"the schema must be a dict, got {_shown(schema)}")
    description = inner.get("description")
    if not isinstance(description, (str, type(None))):
        raise TypeError(f"the description must be a string, got {_shown(description)}")
    schema = schema if isinstance(schema, dict) else dict(schema or ())
    return Tool(name, schema, description or "", _examples(inner, schema))


def _examples(record: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    for listed in (record.get("input_examples"), record.get("examples"), schema.get("examples")):
        if isinstance(listed, (list, tuple)):
            return tuple(example for example in listed if isinstance(example, dict))
    return ()


def _checked_name(name: Any, record: Any) -> str:
    if name is None:
        raise ValueError(f"no name in {_shown(record)}")
    if not isinstance(name, str):
        raise TypeError(f"the name must be a string, got {_shown(name)}")
    if not name.strip():
        raise ValueError(f"the name is blank in {_shown(record)}")
    if not name.isascii() and any("\ud800" <= char <= "\udfff" for char in name):
        raise ValueError(f"the name holds a lone surrogate: {_shown(name)}")
    return name


def _shown(value: Any) -> str:
    return repr(value)[:60]
