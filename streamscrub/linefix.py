"""Makes a JSON object of ``key: value`` lines. Only the tool's own keys tell such lines from text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Final

from .edits import Edit

_LINE: Final = re.compile(r"([^\s:\"'{}\[\],]{1,128}+)[ \t]*+:(?=[ \t]|\Z)[ \t]*+")
_OTHERWISE: Final = tuple("\"'{[|>&*!`")  # a value that begins with these is no plain text


def lines_as_object(text: str, keys: Collection[str], required: Collection[str]) -> list[Edit] | None:
    """The edits that make an object of the lines, or None if they are anything else.

    Each line that is not blank must be a key of ``keys`` that no other line has, a colon and a value; no key of
    ``required`` may be missing. A value is JSON if it begins like a string, an array or an object, else text, whose
    type the schema decides.

    >>> from .edits import applied
    >>> edits = lines_as_object("path: a.md\\nlimit: 3", ("path", "limit"), ("path",))
    >>> applied("path: a.md\\nlimit: 3", edits)
    '{"path": "a.md",\\n"limit": "3"}'
    """
    edits: list[Edit] = []
    seen: set[str] = set()
    start = 0
    for line in text.split("\n"):
        kept = line.strip(" \t\r")
        at = start + line.find(kept)
        start += len(line) + 1
        if not kept:
            continue
        found = _LINE.match(kept)
        if found is None or found[1] not in keys or found[1] in seen:
            return None
        value = kept[found.end() :]
        if not value or (value.startswith(_OTHERWISE) and not _is_json(value)):
            return None
        written = value if value.startswith(_OTHERWISE) else json.dumps(value, ensure_ascii=False)
        edits.append(Edit(at, at + len(kept), f"{'' if seen else '{'}{json.dumps(found[1])}: {written},", "lines"))
        seen.add(found[1])
    if not edits or not seen.issuperset(required):
        return None
    last = edits[-1]
    return [*edits[:-1], last._replace(after=last.after[:-1] + "}")]


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True
