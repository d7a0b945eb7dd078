"""Where a tool's output ends and the protocol begins: no text inside an envelope can end it, or start a call.

This is integrity of the boundary and nothing more. It does not keep a model from following what the text says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Final, Literal, TypeAlias

from ..sentinels import NONE, Sentinels, joined, sentinels
from ..tables import Kind
from ..union import tables_for

Closers: TypeAlias = Literal["results", "reasoning", "none"]

_TAG: Final = re.compile(r"</?([A-Za-z_][\w:.-]*+)")
_RUN: Final = re.compile(r"`{3,}+")
_FENCE_LINE: Final = re.compile(r" {0,3}+(`{3,}+|~{3,}+)([^\n]*+)\Z")
_NAMED: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;"}


class Boundary:
    """The rules of one dialect: its own tags, and the tokens of all grammars.

    ``templates`` are the texts around calls and results: every tag in them is one of the dialect's own. With ``bars``
    the tokens with ASCII bars get a backslash before each bar; all else is written with its first character as a
    reference. ``closers`` says what ends that in which the texts stand: the closers of all results, those of all
    reasoning, or, for a turn of a chat template, tokens alone. ``own`` are markers of a format that no file of the
    library has.
    """

    def __init__(
        self, templates: Iterable[str], bars: bool = False, closers: Closers = "results", own: Iterable[str] = ()
    ) -> None:
        names = sorted({name for template in templates for name in _TAG.findall(template)}, key=lambda name: -len(name))
        # The end of the text counts as the end of a name: the envelope goes on with a line break or a bracket.
        tags = "|".join(map(re.escape, names))
        self._tags = re.compile(rf"</?(?:{tags})(?=[\s>/]|\Z)" if names else r"(?!)", re.IGNORECASE | re.ASCII)
        self._bars = bars
        self._marks = joined(_markers(closers), sentinels(tuple(sorted(literal.encode() for literal in own))))

    def text(self, text: str) -> str:
        """A text that stands in an envelope: each marker in it is made inert, all else stays as it is."""
        text = self._tags.sub(lambda tag: "&lt;" + tag[0][1:], text)
        return self._without_markers(text)

    def name(self, text: str) -> str:
        """A name or an id, which may stand in an attribute: the four characters of XML are escaped."""
        return self._without_markers(re.sub(r'[&<>"]', lambda char: _NAMED[char[0]], text))

    def _without_markers(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogatepass")
        marks = self._marks
        bar = b"\\\\|" if self._bars and _is_json(text) else b"\\|"  # JSON stays JSON
        out: list[bytes] = []
        done = at = 0
        while True:
            at, size = marks.find(raw, at, len(raw), True)
            if size == NONE:
                break
            if self._bars and raw.startswith(b"<|", at):
                out += [raw[done:at], raw[at : at + size].replace(b"|", bar)]
                done = at = at + size
                continue
            char = raw[at : at + 4].decode("utf-8", "ignore")[0]
            out += [raw[done:at], (_NAMED.get(char) or f"&#{ord(char)};").encode()]
            done = at = at + len(char.encode())
        return b"".join([*out, raw[done:]]).decode("utf-8", "surrogatepass") if out else text


def fenced(template: str, text: str) -> str:
    """A template whose envelope is a code fence, with fences longer than any run of backticks in ``text``."""
    longest = max((len(run) for run in _RUN.findall(text)), default=2)
    return _RUN.sub("`" * (longest + 1), template) if longest >= 3 else template


def with_closed_fence(text: str) -> str:
    """Markdown whose last code fence is closed, so that what follows is not in it.

    >>> with_closed_fence("So:\\n````md\\n```\\nx")
    'So:\\n````md\\n```\\nx\\n````'
    """
    fence = ""
    for line in text.split("\n"):
        found = _FENCE_LINE.match(line)
        if found is None:
            continue
        run, info = found[1], found[2].strip()
        if not fence:
            fence = "" if run[0] == "`" and "`" in info else run
        elif run[0] == fence[0] and len(run) >= len(fence) and not info:
            fence = ""
    return f"{text}\n{fence}" if fence else text


def run_at(text: str, at: int) -> int:
    """The length of the run of backticks at ``at``."""
    run = _RUN.match(text, at)
    return len(run[0]) if run else 0


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@cache
def _markers(closers: Closers) -> Sentinels:
    """The tokens of all grammars, which count anywhere, and these closers."""
    roles = tables_for(None, None).roles.values()
    found: list[bytes] = []
    if closers == "reasoning":
        found = [role.literal for role in roles if role.kind is Kind.UNTHINK]
    elif closers == "results":
        found = [role.literal for role in roles if role.kind is Kind.CLOSE and role.target == "result"]
    return sentinels(
        tuple(sorted({role.literal for role in roles if role.special})),
        tuple(sorted({literal.lower() for literal in found})),
    )
