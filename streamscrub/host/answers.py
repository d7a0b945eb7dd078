"""What to tell the model about a call that was not run: ready sentences, as pure functions of the call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..events import RejectedCall, ToolCall
from ..names import normal_form
from ..nudges import quoted
from ..tools import Tool, read_tools
from .validation import Problem

# Names that an answer lists when nothing is close; more would push the task out of a small context.
MAX_LISTED: Final = 8
# Close names that an answer lists.
MAX_CLOSE: Final = 3
# Similarity (0 to 100) from which a name counts as close: half of its letters are in place.
CLOSE_ENOUGH: Final = 50


def truncation_message(call: RejectedCall, repeat: bool = False) -> str:
    """Tell the model that its call was cut and not run.

    ``repeat``: the same tool was cut before in this run, so sending the same shape once more would fail again.
    """
    name = quoted(call.name)
    size = len(call.raw)
    if repeat:
        return (
            f"{name} was cut off again, after {size} bytes. It was not run. Do not send it in this form again: it "
            "does not fit into one reply. Take another way, such as several small steps or a shorter content."
        )
    return (
        f"{name} was cut off after {size} bytes. It was not run, and nothing was changed. Send it again in smaller "
        "pieces."
    )


def unknown_tool_message(call: RejectedCall, offered: Iterable[Tool | Mapping[str, Any] | str]) -> str:
    """Tell the model that there is no such tool, with the offered names that are close to what it wrote.

    ``offered`` are tools, records of any shape, or just their names.
    """
    names = names_of(offered)
    said = f"{quoted(call.name)} was not run: there is no tool of this name."
    if not names:
        return f"{said} No tools are offered; answer in plain text."
    near = close_names(call.name or "", names)
    if near:
        return f"{said} Close to it: {', '.join(near)}. Call one of the offered tools."
    more = ", …" if len(names) > MAX_LISTED else ""
    return f"{said} Offered: {', '.join(names[:MAX_LISTED])}{more}."


def names_of(offered: Iterable[Tool | Mapping[str, Any] | str]) -> list[str]:
    """The names of offered tools. Raises ``TypeError`` or ``ValueError`` for what is no tool record."""
    if isinstance(offered, str | bytes | Mapping):
        raise TypeError(f"offered: expected a list of tools or names, got {type(offered).__name__}")
    found: list[str] = []
    for one in offered:
        found += [one] if isinstance(one, str) else [tool.name for tool in read_tools([one]) or ()]
    return found


def close_names(written: str, offered: Sequence[str], most: int = MAX_CLOSE) -> list[str]:
    """At most ``most`` of the offered names that resemble what was written, the best first.

    >>> close_names("read_files", ["write_note", "read_file", "ping"])
    ['read_file']
    """
    from rapidfuzz.fuzz import ratio
    from rapidfuzz.process import extract

    needle = normal_form(written[:128])
    forms = {name: normal_form(name) for name in offered}
    found = extract(needle, forms, scorer=ratio, score_cutoff=CLOSE_ENOUGH, limit=most)
    return [name for _, score, name in found if score]


def invalid_arguments_message(call: ToolCall, problems: Sequence[Problem]) -> str:
    """Tell the model which fields of its arguments do not fit. Raises ``ValueError`` if none is given."""
    if not problems:
        raise ValueError("invalid_arguments_message needs at least one problem")
    told = "; ".join(f"{one.field or 'the arguments'} {one.message}" for one in problems)
    return f"{quoted(call.name)} was not run, its arguments do not fit: {told}. Correct this and call again."
