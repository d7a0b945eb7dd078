"""The texts that are timed, made from fixed seeds, and the tools they call."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

SIZE: Final = 100_000
DELTA: Final = 4

TOOLS: Final[list[dict[str, Any]]] = [
    {
        "name": "write_file",
        "description": "Write a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "body": {"type": "string"}},
            "required": ["path", "body"],
        },
    },
    {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
    {"name": "list_files", "parameters": {"type": "object", "properties": {}}},
]

# Roots and endings of some four hundred words, so that deltas repeat as rarely as in real prose.
_ROOTS: Final = """
harbour water signal market garden window letter winter bridge copper record season silver timber summer
engine valley morning lantern village current station meadow pattern measure journey shelter quarter kitchen
compass weather surface balance chamber whisper channel gravel marble orchard pepper ribbon saddle tunnel
velvet wander anchor basket candle dragon escape fabric gather hollow island jacket kettle ladder magnet
needle oyster parcel quiver rocket sponge thread umbrella vessel walnut
"""
_ENDINGS: Final = ("", "s", "ed", "ing", "er", "ly")
_SMALL: Final = """
the a of and to in that it is was for on with as at by from or but not this which when who all one
"""
SMALL: Final = _SMALL.split()
VOCABULARY: Final = [root + ending for root in _ROOTS.split() for ending in _ENDINGS]


def prose(size: int) -> str:
    """Plain English: sentences of several hundred distinct words, a newline about every 400 characters."""
    draw = random.Random(7)
    parts: list[str] = []
    written = line = 0
    while written < size:
        count = draw.randint(6, 18)
        words = [draw.choice(SMALL if draw.random() < 0.5 else VOCABULARY) for _ in range(count)]
        if count > 12:
            words[count // 2] += ","
        sentence = " ".join(words).capitalize() + ". "
        line += len(sentence)
        if line > 400:
            sentence, line = sentence[:-1] + "\n", 0
        parts.append(sentence)
        written += len(sentence)
    return "".join(parts)[:size]


def markdown(size: int) -> str:
    """Headings, lists, links, inline code and fenced code between paragraphs."""
    draw = random.Random(11)
    text = prose(size)
    parts: list[str] = []
    at = written = 0
    while written < size:
        length = draw.randint(150, 500)
        word = draw.choice(VOCABULARY)
        block = draw.choice(
            (
                f"\n## {word.capitalize()}\n\n",
                f"\n- `{word}[0]` and [a link](https://example.org/{word})\n- **bold** < {draw.randint(1, 99)}\n\n",
                f"\n```python\n{python_code(draw, 6)}```\n\n",
                f" Use `{word}` here; see array[{draw.randint(0, 9)}]. ",
            )
        )
        piece = text[at : at + length] + block
        at = (at + length) % (size // 2)
        parts.append(piece)
        written += len(piece)
    return "".join(parts)[:size]


def python_code(draw: random.Random, lines: int) -> str:
    """Code with quotes, brackets and backslashes."""
    out = []
    for _ in range(lines):
        a, b = draw.choice(VOCABULARY), draw.choice(VOCABULARY)
        out.append(
            draw.choice(
                (
                    f'    {a}["{b}"] = "{a} {b}"\n',
                    f"    if {a} < {draw.randint(0, 99)} and not {b}:\n",
                    f"    print(f\"{{{a}}}: {{{b}!r}}\\n\", end='')\n",
                    f"    return {{'{a}': [{b}, {draw.randint(0, 999)}]}}\n",
                )
            )
        )
    return "".join(out)


def code(size: int) -> str:
    """Python code of ``size`` characters."""
    draw = random.Random(13)
    return "".join(python_code(draw, 10) for _ in range(size // 200 + 1))[:size]


def jsx(size: int) -> str:
    """Quote-heavy markup, of the kind that models write into files: a tag or a quote in every fifth delta."""
    draw = random.Random(17)
    parts: list[str] = []
    written = 0
    while written < size:
        a, b = draw.choice(VOCABULARY), draw.choice(VOCABULARY)
        line = draw.choice(
            (
                f'  <div className="{a} {b}" onClick={{() => set("{a}")}}>\n',
                f"    <span id='{a}'>{{{b}.map((x) => <li key={{x.id}}>{{x}}</li>)}}</span>\n",
                f'    {{{a} < 3 && <p title="{b}">"{a}"</p>}}\n',
                "  </div>\n",
            )
        )
        parts.append(line)
        written += len(line)
    return "".join(parts)[:size]


def json_call(body: Callable[[int], str]) -> Callable[[int], str]:
    """A call with ``body`` as a JSON string; ``size`` counts the wire characters of the string."""

    def text(size: int) -> str:
        inside = json.dumps(body(size))[1:-1][:size]
        while inside.endswith("\\"):
            inside = inside[:-1]
        return f'<tool_call>{{"name":"write_file","arguments":{{"path":"a","body":"{inside}"}}}}</tool_call>'

    return text


def parameter_call(body: Callable[[int], str]) -> Callable[[int], str]:
    """A call with ``body`` as the value of a parameter tag."""

    def text(size: int) -> str:
        return (
            "<tool_call>\n<function=write_file>\n<parameter=path>\na\n</parameter>\n<parameter=body>\n"
            f"{body(size)}\n</parameter>\n</function>\n</tool_call>"
        )

    return text


def invoke_call(body: Callable[[int], str]) -> Callable[[int], str]:
    """A call with ``body`` as the value of a named parameter of an invoke block."""

    def text(size: int) -> str:
        return (
            '<function_calls>\n<invoke name="write_file">\n<parameter name="path">a</parameter>\n'
            f'<parameter name="body">{body(size)}</parameter>\n</invoke>\n</function_calls>'
        )

    return text


@dataclass(frozen=True)
class Workload:
    """A row of the table: a text for any size, and the most it may cost of the baseline."""

    name: str
    text: Callable[[int], str]
    target: float
    calls: int = 0


WORKLOADS: Final = (
    Workload("prose", prose, 3.0),
    Workload("markdown with code", markdown, float("inf")),
    Workload("JSON argument, plain", json_call(prose), 1.5, 1),
    Workload("JSON argument, code with escaped quotes", json_call(code), 1.5, 1),
    Workload("XML parameter, plain", parameter_call(prose), 2.0, 1),
    Workload("XML parameter, quote-heavy JSX", parameter_call(jsx), 2.0, 1),
    Workload("XML invoke, plain", invoke_call(prose), 2.0, 1),
    Workload("XML invoke, quote-heavy JSX", invoke_call(jsx), 2.0, 1),
)

FILLERS: Final = (
    "<",
    "<|",
    "</",
    "[",
    "`",
    '{"',
    "<tool_call>",
    "<tool_cal ",
    "</tool_call>",
    "<think>",
    "function_call:{",
    "\n{",
    "\n```\n",
    "<function=write_file><parameter=body>",
    "</parameter>",
    '<invoke name="write_file">',
    "<write_file>",
    "<|tool_call_begin|>",
    "[TOOL_CALLS]",
    "<|channel|>",
)
UNCLOSED: Final = '<tool_call>{"name":"write_file","arguments":{"path":"a","body":"'
