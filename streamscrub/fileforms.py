"""What the values of a grammar file must be: the kind behind each key, and the keys that a table cannot be without."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from .bodies import BODIES

_TEXT: Final = "a string"
_FLAG: Final = "true or false"
_NUMBER: Final = "a whole number"
_TABLE: Final = "a table"
_TEXTS: Final = "a list of strings"

_KINDS: Final = {
    key: kind
    for kind, keys in {
        _TEXT: "name title source syntax label of spelling prefix then recipient to reads body join thinking text "
        "visible finish type model id several error results between replayed escape demoted catalogue format "
        "system user assistant opening preamble default results_last resumed end unthought unthought_last recent "
        "dialect.exact.call dialect.exact.calls dialect.exact.result dialect.transcript.calls "
        "dialect.exact.transcript.calls dialect.exact.transcript.start render.call render.calls dialect.call "
        "dialect.calls dialect.prefix dialect.result dialect.fallback.call dialect.transcript.start "
        "frame.route.channel frame.route.recipient fence.envelope example.reasoning heading intro guide parallel "
        "reading private catalogue_rules protocol block block_line signature native required forced continuation "
        "wording.section wording.envelope wording.examples wording.example",
        _FLAG: "always needs_model special attributes chains fenced from_last demand named headed newline entities "
        "verbatim after_call repaired repeats begins literal section quoted spaced sorted unlined",
        _NUMBER: "order",
        _TABLE: "settings form options fallback transcript exact",
        _TEXTS: "bodies others headers languages reserved roles wrapper start message channel constrain rejected "
        "quotes aliases rules trimmed tags.call body.envelope pairs.envelope",
    }.items()
    for key in keys.split()
}
_NEEDED: Final = {
    "envelope": "name",
    "body": "envelope syntax",
    "pairs": "envelope key_open key_close value_close",
    "tags": "sigils",
    "tags.key": "name",
    "reasoning": "close",
    "line": "syntax",
    "frame.route": "to",
    "fence": "languages",
    "elements": "reserved",
    "dialect": "name catalogue",
    "example": "text",
}
# What a setting of a body must be. An empty string would stand everywhere.
_SETTINGS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "string": ("a string that is not empty", lambda value: isinstance(value, str) and value != ""),
    "flag": (_FLAG, lambda value: isinstance(value, bool)),
    "strings": (_TEXTS, lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value)),
}
# The bodies of a call's message, in the order in which they are tried: anything is a text.
FRAMED: Final = ("json_arguments", "tags", "text")
# Where a key takes one word of a list.
_WORDS: Final = {
    "tags.syntax": ("tags", "nested"),
    "line.syntax": ("action", "bare", "glm_line", "named_object"),
    "frame.bodies": FRAMED,
    "frame.route.to": ("reasoning", "text", "dropped", ""),
    "render.body": tuple(sorted(BODIES)),
    "dialect.body": tuple(sorted(BODIES)),
    "dialect.fallback.body": tuple(sorted(BODIES)),
    "dialect.transcript.trimmed": ("system", "user", "text", "thinking"),
    "dialect.exact.transcript.trimmed": ("system", "user", "text", "thinking"),
    "dialect.transcript.recent": ("query", "answer"),
    "dialect.exact.transcript.recent": ("query", "answer"),
    "body.syntax": tuple(sorted(BODIES)),
}
# Tables in a table.
_INNER: Final = ("dialect.fallback", "dialect.transcript", "dialect.exact", "dialect.exact.transcript")
_TABLED: Final = {
    "nested": 'a [[tags]] table with syntax = "nested" makes it',
    "pairs": "a [[pairs]] table makes it",
}
_FIELD: Final = re.compile(r"\{([a-z_]+)\}")
_WRITTEN: Final = "call calls content id index key name number string type value"
# The fields in braces that a text may have.
_FIELDS: Final = {
    key: fields.split()
    for fields, keys in {
        _WRITTEN: "render.call render.calls render.join render.form dialect.call dialect.form dialect.fallback.call "
        "dialect.fallback.form",
        "calls": "dialect.calls dialect.several wording.parallel",
        "name index": "dialect.id",
        "content id name status": "dialect.result dialect.error dialect.replayed",
        "results": "dialect.results wording.reading",
        "content": "dialect.thinking dialect.demoted dialect.transcript.system dialect.transcript.user "
        "dialect.transcript.thinking dialect.transcript.text dialect.transcript.preamble dialect.transcript.calls",
        "thinking text calls blocks": "dialect.transcript.assistant dialect.transcript.resumed",
        "results blocks": "dialect.transcript.results dialect.transcript.results_last",
        "tools": "wording.catalogue",
        "call": "wording.guide wording.protocol wording.example",
        "examples": "wording.examples",
        "thinking": "wording.private",
        "name description schema": "wording.block_line",
        "name description call": "wording.signature",
        "name": "wording.forced",
    }.items()
    for key in keys.split()
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
        yield from _wrong_body(body, data)
    if "tags" in data.get("frame", {}).get("bodies", ()) and not data.get("tags"):
        yield "frame.bodies", "tags need a [[tags]] table in this file"


def _wrong_body(table: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a body syntax says about the table that names it."""
    body, settings = BODIES[table["syntax"]], table.get("settings", {})
    if body.tabled:
        yield "body.syntax", f"{body.name} need no [[body]]: {_TABLED[body.name]}"
    elif body.table and not data.get(body.table) and "of" not in settings:
        yield "body.syntax", f"{body.name} need a [[{body.table}]] table in this file, or settings = {{ of = … }}"
    for key, value in settings.items():
        if key not in body.settings:
            yield f"body.settings.{key}", f"{body.name} has no such setting{nearest(key, body.settings)}"
        else:
            kind, fits = _SETTINGS[body.settings[key]]
            if not fits(value):
                yield f"body.settings.{key}", f"must be {kind}"


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message: the known word that was meant, or all of them."""
    words = sorted(known)
    near = get_close_matches(word, words, 1)
    if near:
        return f", did you mean {near[0]}?"
    return f"; known: {', '.join(words)}" if words else "; it has none"


def _wrong_table(table: Mapping[str, Any], section: str, where: str) -> Iterator[tuple[str, str]]:
    for key in _NEEDED.get(section, "").split():
        # What adds to the table of another file has only what it adds.
        if key not in table and "of" not in table:
            yield f"{section}.{key}", f"is missing{where}"
    for key, value in table.items():
        yield from _wrong_kind(key, section, value, where)
        if isinstance(value, dict) and f"{section}.{key}" in _INNER:
            yield from _wrong_table(value, f"{section}.{key}", where)
        yield from _wrong_words(f"{section}.{key}", value)
        yield from _wrong_fields(f"{section}.{key}", value)
        if isinstance(value, list) and f"{section}.{key}" in ("tags.key", "frame.route"):
            for one in value:
                yield from _wrong_table(one, f"{section}.{key}", where)
    for header in table.get("headers", ()):
        if "{name}" not in header and "{id}" not in header:
            yield f"{section}.headers", f"{header!r} has neither {{name}} nor {{id}}{where}"
    sigils = table.get("sigils", [["<", "</"]])
    for pair in sigils if isinstance(sigils, list) and sigils else [sigils]:
        if not _FITS[_TEXTS](pair) or len(pair) != 2 or not all(pair):
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


def _wrong_words(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """What is none of the words that the key takes."""
    for word in value if isinstance(value, list) else [value]:
        known = _WORDS.get(key)
        if known is not None and isinstance(word, str) and word not in known:
            yield key, f"{word!r} is none of {', '.join(known)}{_meant(word, known)}"


def _meant(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _wrong_fields(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Fields in braces that are not filled in there."""
    known = _FIELDS.get(key.replace("dialect.exact.", "dialect."))
    if known is None:
        return
    for inner, text in value.items() if isinstance(value, dict) else [("", value)]:
        for field in _FIELD.findall(text) if isinstance(text, str) else ():
            if field not in known:
                yield f"{key}.{inner}".rstrip("."), f"no field is named {{{field}}}{nearest(field, known)}"


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
