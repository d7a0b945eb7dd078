"""What the values of a grammar file must be: the kind behind each key, and the keys that a table cannot be without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_TEXT: Final = "a string"
_FLAG: Final = "true or false"
_NUMBER: Final = "a whole number"
_TABLE: Final = "a table"
_TEXTS: Final = "a list of strings"

_KINDS: Final = {
    key: kind
    for kind, keys in {
        _TEXT: "name title source syntax label of spelling prefix then recipient to reads body join thinking text "
        "visible finish model id several error results between replayed escape demoted catalogue format "
        "system user assistant preamble render.call render.calls dialect.call dialect.calls dialect.prefix "
        "dialect.result dialect.fallback.call dialect.transcript.start frame.route.channel fence.envelope "
        "example.reasoning heading intro guide parallel reading private catalogue_rules protocol block "
        "block_line signature native required forced continuation wording.section wording.envelope",
        _FLAG: "always needs_model special attributes chains fenced from_last demand named headed newline entities "
        "after_call repaired literal section",
        _NUMBER: "order",
        _TABLE: "settings form options fallback transcript",
        _TEXTS: "headers languages reserved roles wrapper start message channel constrain rejected quotes aliases "
        "rules tags.call body.envelope pairs.envelope",
    }.items()
    for key in keys.split()
}
_NEEDED: Final = {
    "envelope": "name",
    "body": "envelope syntax",
    "pairs": "envelope key_open key_close value_open value_close",
    "tags": "sigils",
    "tags.key": "name",
    "reasoning": "close",
    "line": "syntax",
    "fence": "languages",
    "elements": "reserved",
    "dialect": "name catalogue",
    "example": "text",
}
_FITS: Final = {
    _TEXT: lambda value: isinstance(value, str),
    _FLAG: lambda value: isinstance(value, bool),
    _NUMBER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    _TABLE: lambda value: isinstance(value, dict),
    _TEXTS: lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
}


def wrong_values(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, problem) for everything in a file whose keys are known that is not what its key says."""
    for key, value in data.items():
        tables = value if isinstance(value, list) else [value]
        if all(isinstance(table, dict) for table in tables):
            for place, table in enumerate(tables, 1):
                yield from _wrong_table(table, key, _named(table, key, place))
        else:
            yield from _wrong_kind(key, "", value, "")
    for body in data.get("body", ()):
        if body["syntax"] == "tags" and "tags" not in data and "of" not in body.get("settings", {}):
            yield "body.syntax", "tags need a [[tags]] table in this file, or settings = { of = … }"


def _wrong_table(table: Mapping[str, Any], section: str, where: str) -> Iterator[tuple[str, str]]:
    for key in _NEEDED.get(section, "").split():
        # What adds to the table of another file has only what it adds.
        if key not in table and "of" not in table:
            yield f"{section}.{key}", f"is missing{where}"
    for key, value in table.items():
        yield from _wrong_kind(key, section, value, where)
        if isinstance(value, dict) and f"{section}.{key}" in ("dialect.fallback", "dialect.transcript"):
            yield from _wrong_table(value, f"{section}.{key}", where)
        if isinstance(value, list) and f"{section}.{key}" in ("tags.key", "frame.route"):
            for one in value:
                yield from _wrong_table(one, f"{section}.{key}", where)
    for header in table.get("headers", ()):
        if "{name}" not in header and "{id}" not in header:
            yield f"{section}.headers", f"{header!r} has neither {{name}} nor {{id}}{where}"
    for pair in table.get("sigils", ()):
        if not _FITS[_TEXTS](pair) or len(pair) != 2:
            yield (
                f"{section}.sigils",
                f"must be a list of pairs, what stands before an opening and a closing tag{where}",
            )
    if section == "fence" and "envelope" not in table and table.get("reads") not in ("reasoning", "result"):
        yield "fence", f'needs an envelope, or reads = "reasoning" or "result"{where}'
    if section == "example":
        for call in table.get("calls", ()):
            if not isinstance(call, dict) or not _FITS[_TEXT](call.get("name")) or "arguments" not in call:
                yield "example.calls", f"every call has a name and arguments{where}"


def _wrong_kind(key: str, section: str, value: Any, where: str) -> Iterator[tuple[str, str]]:
    full = f"{section}.{key}".lstrip(".")
    kind = _KINDS.get(full) or _KINDS.get(key)
    if kind is not None and not _FITS[kind](value):
        yield full, f"must be {kind}{where}"


def _named(table: Mapping[str, Any], section: str, place: int) -> str:
    """Which of several examples it is; the others are told apart by their key."""
    if section != "example":
        return ""
    title = table.get("title")
    return f" in the example {title!r}" if isinstance(title, str) else f" in example {place}"
