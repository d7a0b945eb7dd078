"""Worked examples made from the form of a compiled template, so that it can be checked like any other grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..bodies import BODIES


def examples(data: Mapping[str, Any], settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One for each kind of thing that is read: reasoning, a call, a cut call.

    ``settings`` are those of the body that writes a call, where the data has none of its own.
    """
    out: list[dict[str, Any]] = []
    begins = any(one.get("begins") for one in data.get("reasoning", ()))
    for one in data.get("reasoning", ()):
        if one.get("close") and one.get("open") and not begins:
            text = f"{one['open'][0]}Which?{one['close'][0]}Noon."
            out.append({"title": "reasoning", "text": text, "reasoning": "Which?", "visible": "Noon.", "calls": []})
    render = data.get("render", {})
    if render:
        lead = next((one["close"][0] for one in data.get("reasoning", ()) if begins and one.get("close")), "")
        text = lead + _call_text(data, render, settings)
        call = {"name": "find", "arguments": {"q": "rook"}}
        cut = text[: text.index("rook") + 2]
        out.append({"title": "a call", "text": text, "calls": [call]})
        out.append({"title": "a cut call", "text": cut, "finish": "length", "calls": [], "rejected": ["truncated"]})
    if not out:
        out.append({"title": "text", "text": "Noon.", "visible": "" if begins else "Noon.", "calls": []})
    return out


def _call_text(data: Mapping[str, Any], render: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """One call as the form writes it."""
    settings: dict[str, Any] = {**given, "form": render.get("form", {})}
    for one in data.get("body", ()):
        settings |= {**one.get("settings", {}), **{key: one[key] for key in ("quotes",) if key in one}}
    body = BODIES[render["body"]].write("find", {"q": "rook"}, settings)
    text = str(render.get("call", "{call}")).replace("{name}", "find").replace("{index}", "0").replace("{call}", body)
    return str(render.get("calls", "{calls}")).replace("{calls}", text)
