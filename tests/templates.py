"""Strategies for response templates, and for streams of the models that they describe."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import strategies as st

TOOLS: Final = [
    {
        "name": "find",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}, "top": {"type": "integer"}}},
    },
    {"name": "ping", "parameters": {"type": "object", "properties": {}}},
]
_SHAPES: Final = ("<{}>", "<|{}|>", "[{}]", "<<{}>>", "«{}»", "<x:{}>")
_WORDS: Final = ("muse", "act", "step", "walk", "call9", "do_it", "TOOL", "fn")
_FUNCTION: Final = {"name": "{name}", "arguments": "{content}"}


@dataclass(frozen=True)
class Spoken:
    """A template, how its model writes one call, and what stands around reasoning and at the end."""

    template: dict[str, Any]
    form: str
    think: tuple[str, str]
    end: str

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """One call in this model's form."""
        return _WRITERS[self.form](self.template["fields"]["tool_calls"], name, arguments)


def _json_call(field: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    return f"{field['open']}\n{json.dumps({'name': name, 'arguments': arguments})}\n{field['close']}"


def _json_keys(field: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    return f"{field['open']}{json.dumps({'verb': name, 'with': arguments})}{field['close']}"


def _json_list(field: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    return f"{field['open']}{json.dumps([{'tool_name': name, 'parameters': arguments}])}{field['close']}"


def _opened(field: dict[str, Any], name: str) -> str:
    return str(field["written"]).replace("NAME", name)


def _json_header(field: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    return f"{_opened(field, name)}{json.dumps(arguments)}{field['close']}"


def _lines(field: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    lines = "".join(f"{key}: {value}\n" for key, value in arguments.items())
    return f"{_opened(field, name)}\n{lines}{field['close']}"


def _tags(field: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    tags = "".join(f"<in={key}>\n{value}\n</in>\n" for key, value in arguments.items())
    return f"{_opened(field, name)}\n{tags}{field['close']}"


def _pairs(field: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    pairs = "".join(f"<k>{key}</k>\n<v>{value}</v>\n" for key, value in arguments.items())
    return f"{_opened(field, name)}\n{pairs}{field['close']}"


def _python(field: dict[str, Any], name: str, arguments: dict[str, Any]) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{field['open']}[{name}({given})]{field['close']}"


_WRITERS: Final = {
    "json_call": _json_call,
    "json_keys": _json_keys,
    "json_list": _json_list,
    "json_header": _json_header,
    "lines": _lines,
    "tags": _tags,
    "pairs": _pairs,
    "python": _python,
}
FORMS: Final = tuple(_WRITERS)


def _escape(text: str) -> str:
    return "".join(f"\\{char}" if not char.isalnum() and char not in "<>«»:" else char for char in text)


def _calls_field(form: str, open_: str, close: str) -> dict[str, Any]:
    """The field of the calls; its key ``written`` is the opener as it is written and no part of the template."""
    plain = {"open": open_, "close": close, "repeats": True}
    named = {"open_pattern": rf"\s*{_escape(open_)}(?P<name>[^>\s]+)>", "close": close, "repeats": True}
    named |= {"written": f"{open_}NAME>", "transform": {"type": "function", "function": _FUNCTION}}
    if form == "json_call":
        return {**plain, "content": "json", "transform": {"type": "function", "function": "{content}"}}
    if form == "json_keys":
        function = {"name": "{content.verb}", "arguments": "{content.with}"}
        return {**plain, "content": "json", "transform": {"type": "function", "function": function}}
    if form == "json_list":
        function = {"name": "{tool_name}", "arguments": "{parameters}"}
        transform = {"type": "function", "function": function}
        return {"open": open_, "close": close, "content": "json", "transform_each": True, "transform": transform}
    if form == "python":
        function = {"name": "{name}", "arguments": "{arguments}"}
        transform = {"type": "function", "function": function}
        field = {"open": open_, "close": close, "content": "python-call-list", "transform_each": True}
        return {**field, "transform": transform}
    if form == "json_header":
        return {**named, "content": "json"}
    if form == "lines":
        return {**named, "content": "kv-lines"}
    pattern = {
        "tags": r"<in=(?P<key>[^>\n]+)>\n?(?P<value>.*?)\n?</in>",
        "pairs": r"<k>(?P<key>.*?)</k>\s*<v>(?P<value>.*?)</v>",
    }[form]
    return {**named, "content": "xml-inline", "content_args": {"tag_pattern": pattern}}


@st.composite
def spoken(draw: st.DrawFn) -> Spoken:
    """A template of markers of its own."""
    shape = draw(st.sampled_from(_SHAPES))
    think, call, end = draw(st.permutations(_WORDS))[:3]
    marks = {word: (shape.format(word), shape.format(f"/{word}")) for word in (think, call, end)}
    form = draw(st.sampled_from(FORMS))
    thinking = {"open": marks[think][0], "close": marks[think][1], "content": "text", "repeats": True, "join": ""}
    template = {
        "version": 1,
        "defaults": {"role": "assistant"},
        "start_anchor": draw(st.sampled_from(("<bot>", "<|turn|>me\n", "Bot:"))),
        "fields": {
            draw(st.sampled_from(("thinking", "reasoning_content"))): thinking,
            "tool_calls": _calls_field(form, *marks[call]),
            "content": {"close": marks[end][0], "content": "text", "repeats": True, "join": ""},
        },
    }
    return Spoken(template, form, marks[think], marks[end][0])


_TEXT: Final = st.text("abc xyz.\n<>[]|«é", max_size=12)
_VALUE: Final = st.text("rook 'x\"{}[],;:é<", min_size=1, max_size=10).map(lambda text: "v" + text.strip())
CALLS: Final[st.SearchStrategy[tuple[str, dict[str, Any]]]] = st.one_of(
    st.just(("ping", {})),
    st.fixed_dictionaries({"q": _VALUE}, optional={"top": st.integers(0, 99)}).map(lambda found: ("find", found)),
)
PIECES: Final = st.lists(
    st.one_of(st.tuples(st.just("text"), _TEXT), st.tuples(st.just("think"), _TEXT), st.tuples(st.just("call"), CALLS)),
    max_size=5,
)


def template_of(model: Spoken) -> dict[str, Any]:
    """The template without what only the tests need."""
    fields = {
        name: {key: value for key, value in field.items() if key != "written"}
        for name, field in model.template["fields"].items()
    }
    return {**model.template, "fields": fields}


def stream_of(model: Spoken, pieces: list[tuple[str, Any]]) -> str:
    """What the model writes."""
    out = []
    for kind, what in pieces:
        if kind == "text":
            out.append(what)
        elif kind == "think":
            out.append(model.think[0] + what + model.think[1])
        else:
            out.append(model.call(*what))
    return "".join(out) + model.end
