"""Calls in formats without escapes, written so that they read back as what they were."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..shapes import type_texts
from ..tools import Tool
from .base import Settings, Written, dumped, hardened


def filled(form: str, key: str, value: str) -> str:
    """The form with both fields filled in; a value may hold what looks like a field."""
    before, _, after = form.partition("{value}")
    return before.replace("{key}", key) + value + after


def carried(
    name: str,
    arguments: dict[str, Any],
    settings: Settings,
    compose: Callable[[dict[str, str]], str],
    read: Callable[[str], Written] | None,
    stated: Callable[[Any], str],
    closers: tuple[str, ...],
) -> str:
    """A call in a format without escapes, made so that it reads back as these arguments.

    Each value is written in the first spelling that does. ``stated`` says how the format has it typed; without ``read``
    a value must not hold one of the ``closers``.
    """
    tool: Tool | None = settings.get("tool")

    def same(text: str, wanted: dict[str, Any]) -> bool:
        if read is None:
            return True
        call = read(text)
        if call.name != name or call.fault or not call.complete or call.repairs:
            return False
        return _equal(type_texts(call.texts, tool)[0] if call.texts is not None else call.arguments, wanted)

    texts: dict[str, str] = {}
    for key, value in arguments.items():
        how = stated(value)
        for text in _spellings(value, how, settings):
            typed = "json" if isinstance(text, Encoded) else how
            safe = read is not None or not any(closer.lower() in text.lower() for closer in closers)
            kept = read is not None or _equal(type_texts({key: (text, typed)}, tool)[0], {key: value})
            if safe and kept and same(compose({key: text}), {key: value}):
                texts[key] = text
                break
        else:
            raise ValueError(f"this format cannot carry the value of {key!r} in a call of {name!r}")
    whole = compose(texts)
    if not same(whole, arguments):
        raise ValueError(f"this format cannot carry the call of {name!r}")
    return whole


class Encoded(str):
    """JSON without a bracket in its strings, for the form whose attribute says that it is JSON."""

    __slots__ = ()


def _spellings(value: Any, how: str, settings: Settings) -> list[str]:
    """The texts that may stand for a value, the plainest first: itself, with entities, as JSON.

    Without a schema a string is JSON first, so that it is not read as a number.
    """
    form: Mapping[str, str] = settings["form"]
    encoded = dumped(value, settings)
    last: list[str] = [Encoded(hardened(encoded))] if "json" in form else []
    if settings.get("hard") and last and last[0] != encoded:
        return last
    if not isinstance(value, str):
        return [encoded, *last]
    plain = [value, html.escape(value, quote=False)]
    if "cdata" in form and re.search(r"[<&\r\n]", value) and "]]>" not in value:
        plain.insert(0, form["cdata"].replace("{value}", value))
    if how:
        return plain + last
    return [*plain, encoded, *last] if "tool" in settings else [encoded, *plain, *last]


def _equal(one: Any, other: Any) -> bool:
    """Equal as JSON, where 1 and true differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
