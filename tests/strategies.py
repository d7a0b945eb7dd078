"""Hypothesis strategies: texts made of the markers of all grammar files, whole and cut, JSON, calls and noise."""

from __future__ import annotations

import json
from typing import Any, Final

from hypothesis import strategies as st

from fuzz.literals import marker_literals

from . import naive

TOOLS: Final[list[dict[str, Any]]] = [
    {
        "name": "find",
        "description": "Find a word.",
        "parameters": {
            "type": "object",
            "properties": {"q": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["q"],
        },
    },
    {"name": "ping", "description": "Answer.", "parameters": {"type": "object", "properties": {}}},
    dict(naive.TOOL),
]

# What every grammar set must live with, whatever its files list.
STOCK: Final = (
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "<function=find>",
    "<parameter=q>",
    "</parameter>",
    "</function>",
    '<invoke name="find">',
    '<parameter name="q">',
    "</invoke>",
    "<|im_end|>",
    "<|custom|>",
    "function_call:",
    "Action: find",
    "Observation:",
    "[TOOL_CALLS]",
    "[find(q='a')]",
    "find",
    "ping",
    "functions.find:0",
    "<find>",
    "</find>",
    "<q>",
    "</q>",
    "to=functions.find",
)
FENCES: Final = ("```", "```python\n", "```json\n", "```tool_call\n", "~~~xml\n", "`", "``", "\n```\n")
JSON_PIECES: Final = (
    '{"name": "find", "arguments": {"q": "a"}}',
    '{"name": "find", "arguments": {',
    '{"q": "a"}',
    '{"q": "a", }',
    '{"tool_calls": [',
    '"name"',
    '"arguments":',
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    '\\"',
    "\\u00e9",
    "\\ud800",
    ":",
    ",",
    "null",
    "True",
    "1e9",
    "NaN",
    "'",
)
BLANKS: Final = ("\n", "\n\n", " ", "\t", "\r\n", "\n  ")
NOISE: Final = (
    "a",
    "the word ",
    "é",
    "｜",
    "▁",
    "\U0001f600",
    "\x00",
    "\ufeff",
    "\x85",
    "\u2028",
    "<",
    "</",
    "<|",
    "|>",
    ">",
    "(",
    ")",
)


def literals() -> tuple[str, ...]:
    """The markers of the grammar files and the stock, none twice."""
    return tuple(dict.fromkeys((*marker_literals(), *STOCK)))


@st.composite
def cut_literals(draw: st.DrawFn) -> str:
    """A marker that lacks its end, or its start, or has one character changed."""
    literal = draw(st.sampled_from(literals()))
    at = draw(st.integers(1, max(1, len(literal) - 1)))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return literal[at:]
    if kind == 1:
        return literal[: at - 1] + draw(st.sampled_from(["x", " ", "<", "\n"])) + literal[at:]
    return literal[:at]


def json_values(depth: int = 6) -> st.SearchStrategy[Any]:
    """Values that JSON can write."""
    leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | plain_text() | st.floats(-1e9, 1e9)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain_text(8), inner, max_size=3),
        max_leaves=depth,
    )


def plain_text(most: int = 20) -> st.SearchStrategy[str]:
    """Any text that encodes."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=most)


@st.composite
def whole_calls(draw: st.DrawFn) -> str:
    """A well-formed call in one of the forms of the oracle, or a near miss of one."""
    call = draw(calls())
    text = naive.write(call)
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return text[: draw(st.integers(1, len(text)))]
    if kind == 1:
        at = draw(st.integers(0, len(text) - 1))
        return text[:at] + text[at + 1 :]
    return text


def pieces() -> st.SearchStrategy[str]:
    """One piece of a hostile response."""
    return st.one_of(
        st.sampled_from(literals()),
        cut_literals(),
        st.sampled_from(JSON_PIECES),
        st.sampled_from((*FENCES, *BLANKS, *NOISE)),
        whole_calls(),
        st.builds(lambda value: json.dumps(value, ensure_ascii=False), json_values()),
        plain_text(),
    )


def responses(most: int = 14) -> st.SearchStrategy[str]:
    """A response made of everything that may go wrong."""
    return st.lists(pieces(), max_size=most).map("".join)


def surrogate_texts() -> st.SearchStrategy[str]:
    """Texts with lone and paired surrogates among markers."""
    halves = st.sampled_from(["\ud83d", "\ude00", "\ud83d\ude00", "\ud800", "\udfff"])
    return st.lists(st.one_of(halves, pieces(), st.text(max_size=3)), max_size=10).map("".join)


def byte_streams() -> st.SearchStrategy[bytes]:
    """Bytes that are no UTF-8, among markers: raw bytes, and pieces with a byte lost."""

    def torn(text: str, at: int) -> bytes:
        data = text.encode("utf-8")
        at %= len(data) + 1
        return data[:at] + data[at + 1 :]

    part = st.one_of(st.binary(max_size=4), st.builds(torn, pieces(), st.integers(0, 999)), pieces().map(str.encode))
    return st.lists(part, max_size=10).map(b"".join)


def tool_lists() -> st.SearchStrategy[list[dict[str, Any]] | None]:
    """Offered, none offered, unknown."""
    return st.sampled_from([TOOLS, TOOLS, TOOLS, [], None])


def finish_reasons() -> st.SearchStrategy[str | None]:
    return st.sampled_from(["stop", "length", "tool_calls", None])


# Text without markup. Each piece is harmless wherever it stands and whatever stands around it.
HARMLESS: Final = (
    "plain words",
    "A sentence, with a comma; and more.",
    "a < b",
    "array[0]",
    "x[1:2]",
    "f(x)",
    "50 % of it",
    "naïve café",
    "日本語の文",
    "\U0001f600",
    "| a | b |",
    "1 < 2 and 3 > 2",
    "the set {1, 2}",
    "tab\there",
    "e-mail@example.org",
    "C:\\path\\file",
    'it\'s "quoted"',
    "# heading",
    "- item",
    "\x00",
    "\ufeff",
    "if (a && b) { c(); }",
    "<b>bold</b>",
    "&lt;",
    "https://example.org/a?b=c&d=e#f",
)
JOINTS: Final = (" ", " ", "\n", "\n\n", "\r\n", "  ", "\t", " \n")


@st.composite
def harmless_texts(draw: st.DrawFn, most: int = 8) -> str:
    """Text in which nothing is markup."""
    parts: list[str] = [draw(st.sampled_from(("", " ", "\n", "\t\r\n")))]
    for piece in draw(st.lists(st.sampled_from(HARMLESS), max_size=most)):
        parts += [piece, draw(st.sampled_from(JOINTS))]
    return "".join(parts)


def _words(most: int = 6) -> st.SearchStrategy[str]:
    """Visible text between blocks: words with blanks around them, or blanks alone."""
    word = st.sampled_from(("Looking", "now.", "naïve", "日本", "a < b", "x", "12,", "so:"))
    return st.builds(
        lambda before, words, after: before + " ".join(words) + after,
        st.sampled_from(("", " ", "\n", "\n\n")),
        st.lists(word, max_size=most),
        st.sampled_from(("", " ", "\n")),
    )


def _tag_texts() -> st.SearchStrategy[str]:
    """A string argument for a form without escapes: no markup, and no newline at its edges."""
    alphabet = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<>&`[]{}\u2028\u2029\x85")
    return (
        st.lists(st.text(alphabet, min_size=1, max_size=12), max_size=3)
        .map("\n".join)
        .filter(lambda text: text == text.strip() and "CDATA" not in text)
    )


def _json_texts(form: naive.Form) -> st.SearchStrategy[str]:
    """A string argument for a form with escapes: anything, its own closer included."""
    part = st.one_of(
        plain_text(12), st.sampled_from(('"', "\\", "\n", "{", "}", "[", "```", form.close, "</think>", "<b>"))
    )
    return st.lists(part, max_size=5).map("".join)


@st.composite
def calls(draw: st.DrawFn) -> naive.Call:
    """One well-formed call of the oracle's tool."""
    form = draw(st.sampled_from(naive.FORMS))
    text = _json_texts(form) if form.json_strings else _tag_texts()
    value = {
        "path": text,
        "body": text,
        "lines": st.integers(-(10**9), 10**9),
        "tags": st.lists(_tag_texts().filter(bool), max_size=3),
    }
    keys = draw(st.lists(st.sampled_from(sorted(value)), unique=True, max_size=4))
    return naive.Call(form, "save_note", {key: draw(value[key]) for key in keys})


@st.composite
def composed(draw: st.DrawFn) -> list[naive.Segment]:
    """Segments of a well-formed response: maybe a thought, then words and calls in turn."""
    segments: list[naive.Segment] = []
    if draw(st.booleans()):
        segments.append(naive.Thought(draw(_words().filter(str.strip))))
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            segments.append(naive.Words(draw(_words().filter(bool))))
        segments.append(draw(calls()))
    if draw(st.booleans()):
        segments.append(naive.Words(draw(_words().filter(bool))))
    return segments
