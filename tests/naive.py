"""The naive program that the library is equivalent to, for responses that are well formed: wait for all, then cut.

``scrub`` below is what one writes first: hold the whole response, look for the earliest opener with ``str.find``, read
the block, go on behind it. It is slow, shows nothing before the end, knows no damage, and a reader understands it at
once. Everything the library adds (release at the earliest byte, any cut, repair, hostile input) must not change what
this program says about a response that ``compose`` built. Nothing here imports the engine.

``compose`` goes the other way: from known segments to a response and to what must come out of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Arguments: TypeAlias = dict[str, Any]

# One tool is enough for the oracle: a text, a number and a list, so that every form has a typed value to read.
TOOL: Final = {
    "name": "save_note",
    "description": "Store a note.",
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "body": {"type": "string"},
            "lines": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    },
}
TEXTS: Final = {"path", "body"}


@dataclass(frozen=True)
class Form:
    """How one wire format writes a call, as plainly as it can be said."""

    name: str
    open: str
    close: str
    write: Callable[[str, Arguments], str]
    read: Callable[[str], tuple[str, Arguments]]
    json_strings: bool  # strings are escaped, so they may hold anything


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _typed(key: str, text: str) -> Any:
    return text if key in TEXTS else json.loads(text)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_object(name: str, arguments: Arguments) -> str:
    return "\n" + _dumps({"name": name, "arguments": arguments}) + "\n"


def _read_object(body: str) -> tuple[str, Arguments]:
    record = json.loads(body)
    return record["name"], record["arguments"]


def _tag_form(name: str, call: tuple[str, str], key: tuple[str, str], ends: tuple[str, str]) -> Form:
    """A format that writes ``call[0] NAME call[1]`` and a pair of tags for each argument."""

    def write(tool: str, arguments: Arguments) -> str:
        pairs = "".join(f"{key[0]}{k}{key[1]}{_plain(v)}{ends[0]}\n" for k, v in arguments.items())
        return f"\n{call[0]}{tool}{call[1]}\n{pairs}{ends[1]}\n"

    def read(body: str) -> tuple[str, Arguments]:
        head, _, rest = body.partition(call[0])[2].partition(call[1])
        found = re.findall(re.escape(key[0]) + "(.*?)" + re.escape(key[1]) + "(.*?)" + re.escape(ends[0]), rest, re.S)
        return head, {k: _typed(k, v) for k, v in found}

    return Form(name, *WRAPPERS[name], write, read, False)


WRAPPERS: Final = {
    "qwen3_coder": ("<tool_call>", "</tool_call>"),
    "claude_xml": ("<function_calls>", "</function_calls>"),
    "deepseek_dsml": ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
    "minimax_m2": ("<minimax:tool_call>", "</minimax:tool_call>"),
}


def _write_glm(name: str, arguments: Arguments) -> str:
    pairs = "".join(f"<arg_key>{k}</arg_key>\n<arg_value>{_plain(v)}</arg_value>\n" for k, v in arguments.items())
    return f"{name}\n{pairs}"


def _read_glm(body: str) -> tuple[str, Arguments]:
    found = re.findall("<arg_key>(.*?)</arg_key>\n<arg_value>(.*?)</arg_value>", body, re.S)
    return body.split("\n", 1)[0], {k: _typed(k, v) for k, v in found}


def _write_kimi(name: str, arguments: Arguments) -> str:
    return f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{_dumps(arguments)}<|tool_call_end|>"


def _read_kimi(body: str) -> tuple[str, Arguments]:
    head, _, rest = body.partition("<|tool_call_argument_begin|>")
    return head.rpartition("functions.")[2].partition(":")[0], json.loads(rest.removesuffix("<|tool_call_end|>"))


def _write_deepseek(name: str, arguments: Arguments) -> str:
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{_dumps(arguments)}<｜tool▁call▁end｜>"


def _read_deepseek(body: str) -> tuple[str, Arguments]:
    head, _, rest = body.partition("<｜tool▁sep｜>")
    return head.removeprefix("<｜tool▁call▁begin｜>"), json.loads(rest.removesuffix("<｜tool▁call▁end｜>"))


FORMS: Final = (
    Form("hermes", "<tool_call>", "</tool_call>", _write_object, _read_object, True),
    _tag_form("qwen3_coder", ("<function=", ">"), ("<parameter=", ">"), ("</parameter>", "</function>")),
    _tag_form("claude_xml", ('<invoke name="', '">'), ('<parameter name="', '">'), ("</parameter>", "</invoke>")),
    _tag_form(
        "deepseek_dsml",
        ('<｜DSML｜invoke name="', '">'),
        ('<｜DSML｜parameter name="', '">'),
        ("</｜DSML｜parameter>", "</｜DSML｜invoke>"),
    ),
    _tag_form("minimax_m2", ('<invoke name="', '">'), ('<parameter name="', '">'), ("</parameter>", "</invoke>")),
    Form("glm45", "<tool_call>", "</tool_call>", _write_glm, _read_glm, False),
    Form("kimi_k2", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", _write_kimi, _read_kimi, True),
    Form("deepseek_v31", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", _write_deepseek, _read_deepseek, True),
)


@dataclass(frozen=True)
class Words:
    """Visible text. It must hold no markup."""

    text: str


@dataclass(frozen=True)
class Thought:
    """A closed reasoning section. It must hold no markup."""

    text: str


@dataclass(frozen=True)
class Call:
    """One call, in one form."""

    form: Form
    name: str
    arguments: Arguments


Segment: TypeAlias = Words | Thought | Call


@dataclass
class Reading:
    """What a response says: visible text, reasoning, calls."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Arguments]] = field(default_factory=list)


def write(segment: Segment) -> str:
    """The wire text of a segment."""
    if isinstance(segment, Words):
        return segment.text
    if isinstance(segment, Thought):
        return f"<think>{segment.text}</think>"
    return segment.form.open + segment.form.write(segment.name, segment.arguments) + segment.form.close


def compose(segments: list[Segment]) -> tuple[str, Reading]:
    """The wire text of ``segments`` and what must come out of it."""
    reading = Reading()
    for index, segment in enumerate(segments):
        if isinstance(segment, Words):
            text = segment.text
            if index and not isinstance(segments[index - 1], Words):
                text = _behind_block(reading.text, text)
            elif not text.strip() and not reading.text and index + 1 < len(segments):
                text = ""  # blanks at the very start, a block follows
            reading.text += text
        elif isinstance(segment, Thought):
            reading.reasoning += segment.text
        else:
            reading.calls.append((segment.name, segment.arguments))
    return "".join(map(write, segments)), reading


def _behind_block(shown: str, text: str) -> str:
    """The blanks behind a block are shown only if without them two words would glue."""
    if shown and not shown[-1].isspace():
        return text
    return text.lstrip(" \t\r\n")


def scrub(response: str) -> Reading:
    """Read a whole, well-formed response: the earliest opener, its block, and on from behind it."""
    reading = Reading()
    at = 0
    behind = False  # a block ended here
    while True:
        starts = [(response.find(opener, at), opener) for opener in ("<think>", *(form.open for form in FORMS))]
        start, opener = min(((i, word) for i, word in starts if i >= 0), default=(len(response), ""))
        text = response[at:start]
        if behind:
            text = _behind_block(reading.text, text)
        elif opener and not text.strip():
            text = ""
        reading.text += text
        if not opener:
            return reading
        body_start = start + len(opener)
        if opener == "<think>":
            end = response.index("</think>", body_start)
            reading.reasoning += response[body_start:end]
            at = end + len("</think>")
        else:
            at = _read_block(response, body_start, opener, reading)
        behind = True


def _read_block(response: str, start: int, opener: str, reading: Reading) -> int:
    """Read the block whose body begins at ``start``; where the text goes on.

    Several forms share an opener. The right one is the one that can read the body up to one of its closers: the
    nearest first, the next one if the closer turns out to stand inside a string.
    """
    forms = [form for form in FORMS if form.open == opener]
    end = response.find(forms[0].close, start)
    while end >= 0:
        body = response[start:end]
        for form in forms:
            try:
                name, arguments = form.read(body)
            except (ValueError, KeyError, TypeError):
                continue
            if form.write(name, arguments) == body:
                reading.calls.append((name, arguments))
                return end + len(form.close)
        end = response.find(forms[0].close, end + 1)
    raise ValueError(f"no form reads the block at {start}: {response[start : start + 60]!r}")
