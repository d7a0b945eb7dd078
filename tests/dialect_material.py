"""Tools, conversations and texts for the tests of the dialects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

from fuzz.literals import marker_literals
from streamscrub.dialects import Dialect, dialects

_STRING: Final = {"type": "string"}
TIDE: Final = {
    "name": "get_tide",
    "description": "Tide table for one harbour.",
    "parameters": {
        "type": "object",
        "properties": {"harbor": _STRING, "days": {"type": "integer"}, "metric": {"type": "boolean"}},
        "required": ["harbor"],
    },
}
PING: Final = {"name": "ping", "description": "Health check.", "parameters": {"type": "object", "properties": {}}}
FIND: Final = {
    "name": "find",
    "parameters": {
        "type": "object",
        "properties": {
            "q": _STRING,
            "top": {"type": "integer"},
            "part": {"type": "number"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": _STRING},
            "opts": {"type": "object"},
            "note": {"type": ["string", "null"]},
        },
    },
}
TOOLS: Final[list[dict[str, Any]]] = [TIDE, PING, FIND]
TEXTUAL: Final = [one for one in dialects().values() if one.writes]
EXACT: Final = [one.exact() for one in TEXTUAL if one.has_exact]
TALK: Final[list[dict[str, Any]]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Tide in Sines?"},
    {
        "role": "assistant",
        "thinking": "Look it up.",
        "content": "Checking.",
        "calls": [
            {"id": "call_1", "name": "get_tide", "arguments": {"harbor": "Sines", "days": 1}},
            {"id": "call_2", "name": "ping", "arguments": {}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "name": "get_tide", "content": "07:12"},
    {"role": "tool", "tool_call_id": "call_2", "name": "ping", "content": "pong"},
    {"role": "assistant", "content": "High tide at 07:12."},
]


def named(one: Dialect) -> str:
    return f"{one.name}-exact" if one.is_exact else one.name


def pieces() -> Iterator[str]:
    """Markers of all grammars, what all dialects write, and what stands around such things."""
    yield from marker_literals()
    for one in TEXTUAL:
        yield one.render_calls([("ping", {}), ("find", {"q": "a"})], TOOLS)
        yield one.render_results([{"name": "ping", "text": "pong"}, {"name": "find", "text": "x", "is_error": True}])
        yield one.render_thinking("Hm.")
    yield from (
        "\n", " ", "a", "ping", "{}", '{"q": "a"}', "```", "```py\n", "````", "\\", "&lt;", "<", "</", ">", "[", "]",
        '"', "'", "|", "]<", "<|", " to=functions.ping", "Action: ping\nAction Input: {}\n", "\r\n", "é", "🙂",
        "\ud800",
    )  # fmt: skip


PIECES: Final = tuple(dict.fromkeys(pieces()))
_HARMLESS: Final = st.text(st.characters(codec="utf-8"), max_size=12)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text out of such pieces, perhaps with its ends cut off."""
    text = "".join(draw(st.lists(st.sampled_from(PIECES) | _HARMLESS, max_size=6)))
    if draw(st.booleans()):
        start = draw(st.integers(0, len(text)))
        text = text[start : draw(st.integers(start, len(text)))]
    return text


def strings() -> st.SearchStrategy[str]:
    return texts().map(lambda text: text.encode("utf-8", "replace").decode())


_VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "q": strings(),
    "top": st.integers(-(10**12), 10**12),
    "part": st.floats(allow_nan=False, allow_infinity=False),
    "deep": st.booleans(),
    "tags": st.lists(strings(), max_size=3),
    "opts": st.dictionaries(
        strings(),
        st.none() | st.booleans() | st.integers(-9, 9) | strings() | st.lists(strings(), max_size=2),
        max_size=3,
    ),
    "note": st.none() | strings(),
}


@st.composite
def calls(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """One call or more, with values that hold markers."""
    found: list[tuple[str, dict[str, Any]]] = []
    for _ in range(draw(st.integers(1, 3))):
        keys = draw(st.lists(st.sampled_from(sorted(_VALUES)), unique=True, max_size=4))
        found.append(("find", {key: draw(_VALUES[key]) for key in keys}) if keys else ("ping", {}))
    return found


def _string_schemas() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.just({"type": "string"}),
        st.integers(0, 30).map(lambda size: {"type": "string", "minLength": size, "maxLength": size + 5}),
        st.sampled_from(["date", "date-time", "email", "uri", "uuid"]).map(
            lambda word: {"type": "string", "format": word}
        ),
        st.lists(st.sampled_from(["now", "soon", "later"]), min_size=1, unique=True).map(lambda words: {"enum": words}),
        st.sampled_from([r"^[A-Z]{2}\d{3}$", r"^(?:left|right)$", r"^v\d+(\.\d+)*$", "^[^ ]+$"]).map(
            lambda pattern: {"type": "string", "pattern": pattern}
        ),
    )


def _number_schemas() -> st.SearchStrategy[dict[str, Any]]:
    def schema(kind: str, low: int, size: int, open_ends: bool) -> dict[str, Any]:
        if open_ends:
            return {"type": kind, "exclusiveMinimum": low, "exclusiveMaximum": low + size + 2}
        return {"type": kind, "minimum": low, "maximum": low + size}

    return st.builds(
        schema, st.sampled_from(["integer", "number"]), st.integers(-99, 99), st.integers(0, 9), st.booleans()
    )


def schemas(depth: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of values, with all limits that a prompt can show."""
    leaves = (
        _string_schemas() | _number_schemas() | st.sampled_from([{"type": "boolean"}, {"const": "x"}, {"type": "null"}])
    )
    if depth == 0:
        return leaves
    inner = schemas(depth - 1)
    return leaves | st.one_of(
        st.builds(
            lambda item, least, more: {"type": "array", "items": item, "minItems": least, "maxItems": least + more},
            inner,
            st.integers(0, 3),
            st.integers(0, 2),
        ),
        objects(depth - 1),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
        st.builds(lambda a, b: {"allOf": [a, b]}, objects(0), objects(0)),
        inner.map(lambda part: {**part, "type": [part["type"], "null"]} if isinstance(part.get("type"), str) else part),
    )


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Schemas of arguments."""
    names = draw(st.lists(st.sampled_from(["harbor", "days", "zip-code", "a", "item_count", "é"]), unique=True))
    properties = {name: draw(schemas(depth)) for name in names}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema["required"] = [name for name in names if draw(st.booleans())]
    if depth and draw(st.booleans()):
        schema["additionalProperties"] = False
    return schema
