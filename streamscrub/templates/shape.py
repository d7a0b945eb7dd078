"""The form of a template: its keys, its delimiters, and what its transforms make of a call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .patterns import Piece, Unfit, Way, ways

# What the fields of a message are called. Two servers take "thinking" only, published templates use all three.
REASONING: Final = ("thinking", "reasoning_content", "reasoning")
CALLS: Final = "tool_calls"
CONTENT: Final = "content"

_MAX_LITERALS: Final = 64  # of one delimiter
_MAX_FIELDS: Final = 16
_TOP: Final = frozenset(("version", "defaults", "start_anchor", "start_anchor_pattern", "fields"))
_FIELD: Final = frozenset(
    (
        "open", "open_pattern", "close", "close_pattern", "content", "content_args", "repeats", "join", "optional",
        "transform", "transform_each",
    )
)  # fmt: skip
_PARSERS: Final = ("text", "int", "float", "bool", "json", "xml-inline", "kv-lines", "python-call-list")
_PLACEHOLDER: Final = re.compile(r"\{(\w++(?:\.\w++)*+)\}")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a template. ``opens`` and ``closes`` are None where it has none."""

    name: str
    opens: list[Way] | None
    closes: list[Way] | None
    content: str
    args: Mapping[str, Any]
    transform: Any
    each: bool

    @property
    def key(self) -> str:
        """Where it stands, for messages."""
        return f"fields.{self.name}"


@dataclass(frozen=True, slots=True)
class Template:
    """A checked template: its fields, and the literals before the model's turn."""

    fields: tuple[Field, ...]
    anchors: list[str]


@dataclass(frozen=True, slots=True)
class Call:
    """Where a call's name, arguments and id come from: paths of a transform, "" for what it does not say."""

    name: str
    arguments: str
    id: str = ""


def read(template: Mapping[str, Any]) -> Template:
    """Check a template as its own reader would, and take its delimiters apart. Raises ``Unfit``."""
    if not isinstance(template, Mapping):
        raise Unfit("", f"a response template is a mapping, not {type(template).__name__}")
    _known(template, _TOP, "")
    if template.get("version", 1) != 1 or isinstance(template.get("version", 1), bool):
        raise Unfit("version", f"{str(template['version'])[:40]} is not 1, the only version that is known")
    if not isinstance(template.get("defaults", {}), Mapping):
        raise Unfit("defaults", "must be a mapping")
    fields = template.get("fields")
    if not isinstance(fields, Mapping) or not fields:
        raise Unfit("fields", "must be a mapping that is not empty")
    if len(fields) > _MAX_FIELDS:
        raise Unfit("fields", f"more than {_MAX_FIELDS} fields")
    anchor = _delimiter(template, "start_anchor", "start_anchor_pattern", "")
    if anchor is None:
        raise Unfit("start_anchor", "is missing; one of start_anchor and start_anchor_pattern must be there")
    read_fields = tuple(_field(name, one) for name, one in fields.items())
    implicit = [field.name for field in read_fields if field.opens is None]
    if len(implicit) > 1:
        raise Unfit("fields", f"{' and '.join(implicit)} have no opener; only one field may")
    return Template(read_fields, texts(anchor, "start_anchor", strip=False))


def _field(name: Any, one: Any) -> Field:
    key = f"fields.{str(name)[:60]}"
    if not isinstance(name, str) or not isinstance(one, Mapping):
        raise Unfit(key, "must be a mapping under a name")
    _known(one, _FIELD, key)
    if name not in (*REASONING, CALLS, CONTENT):
        raise Unfit(key, f"no event carries such a field; known: {', '.join((*REASONING, CONTENT, CALLS))}")
    content, args = one.get("content", "text"), one.get("content_args", {})
    if content not in _PARSERS:
        raise Unfit(f"{key}.content", f"{str(content)[:40]!r} is none of {', '.join(_PARSERS)}")
    if not isinstance(args, Mapping):
        raise Unfit(f"{key}.content_args", "must be a mapping")
    for flag in ("repeats", "optional", "transform_each"):
        if not isinstance(one.get(flag, False), bool):
            raise Unfit(f"{key}.{flag}", "must be true or false")
    if one.get("join") is not None and (not isinstance(one["join"], str) or not one.get("repeats")):
        raise Unfit(f"{key}.join", "must be a string, and needs repeats")
    transform = one.get("transform")
    if one.get("transform_each") and transform is None:
        raise Unfit(f"{key}.transform_each", "needs a transform")
    return Field(
        name,
        _delimiter(one, "open", "open_pattern", key),
        _delimiter(one, "close", "close_pattern", key),
        content,
        args,
        transform,
        bool(one.get("transform_each")),
    )


def _known(table: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise Unfit(f"{where}.{str(key)[:60]}".lstrip("."), f"unknown key; known: {', '.join(sorted(keys))}")


def _delimiter(table: Mapping[str, Any], literal: str, pattern: str, where: str) -> list[Way] | None:
    """An opener, a closer or an anchor as its ways; None if it is not there."""
    key = f"{where}.{literal if literal in table else pattern}".lstrip(".")
    if literal in table and pattern in table:
        raise Unfit(key, f"{literal} and {pattern} cannot both be there")
    if pattern in table:
        if not isinstance(table[pattern], str):
            raise Unfit(key, "must be a string")
        try:
            return ways(table[pattern])
        except Unfit as error:
            raise Unfit(key, error.problem) from None
    if literal not in table:
        return None
    found = table[literal]
    literals = [found] if isinstance(found, str) else found
    if not isinstance(literals, list) or not literals or not all(isinstance(one, str) and one for one in literals):
        raise Unfit(key, "must be a text, or a list of texts, that are not empty")
    if len(literals) > _MAX_LITERALS:
        raise Unfit(key, f"more than {_MAX_LITERALS} literals")
    return [(Piece("text", one),) for one in dict.fromkeys(literals)]


def texts(found: list[Way], key: str, *, strip: bool = True) -> list[str]:
    """The literals of a delimiter that is nothing else, without the blanks around them.

    Blanks beside a marker are judged by the rules for all grammars. Ends of the response and texts that only follow are
    no markers and left out. Raises ``Unfit`` for anything else.
    """
    out: dict[str, None] = {}
    for way in found:
        pieces = [piece for piece in way if piece.kind not in ("gap", "end", "ahead")]
        if not pieces:
            continue
        if len(pieces) > 1 or pieces[0].kind != "text":
            raise Unfit(key, "is more than a literal with blanks around it")
        text = pieces[0].text
        marker(text.strip(), key)
        out[text.strip() if strip else text] = None
    return list(out)


def marker(text: str, key: str) -> str:
    """The text, if it can be a marker."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Unfit(key, "holds a lone surrogate, which no text has") from None
    if len(text) < 2 or (text.isalpha() and len(text) < 4):
        raise Unfit(key, f"{text!r} is too short for a marker: ordinary text would be full of it")
    if size > 64:
        raise Unfit(key, f"a marker of {size} bytes; 64 are the most")
    return text


def call_of(field: Field) -> Call | None:
    """What the transform makes of a call; None if the body is the call as it stands. Raises ``Unfit``."""
    transform, key = field.transform, f"{field.key}.transform"
    if transform is None:
        return None
    outer: Mapping[str, Any] = {}
    inner = transform
    if isinstance(transform, Mapping) and "function" in transform:
        outer, inner = transform, transform["function"]
    if isinstance(inner, str) and _path(inner) == "content" and not field.each:
        return None
    if not isinstance(inner, Mapping):
        raise Unfit(key, "has no function with a name and arguments")
    name, arguments = _path(inner.get("name")), _path(inner.get("arguments"))
    if not name or not arguments:
        raise Unfit(key, "the name and the arguments of a call must each be one placeholder")
    return Call(name, arguments, _path(outer.get("id", inner.get("id"))))


def _path(value: Any) -> str:
    whole = _PLACEHOLDER.fullmatch(value) if isinstance(value, str) and len(value) <= 200 else None
    return whole.group(1) if whole is not None else ""
