"""The page of all wire formats, written from their grammar files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .grammar import Grammar, shipped, with_needed
from .writing import write_calls

_SYNTAXES: Final = {
    "json_call": "JSON with the name and the arguments",
    "json_arguments": "the arguments as a JSON object, behind the name",
    "keyed_call": "JSON objects whose only key is the name",
    "tags": "tags around the call and around each parameter",
    "nested": "elements named after the parameters, which nest",
    "typed_values": "value tags that say their type and may nest",
    "pairs": "a tag around each key and one around each value",
    "python_call": "Python or TypeScript calls",
    "pformat": "the name and numbered slots",
    "loose_object": "the name and an object with bare keys",
    "glm_line": "a line with the tool, a parameter and its value",
    "key_lines": "a line for each key and its value, behind the name",
    "text": "plain text, the value of the only parameter",
}
_HEAD: Final = """\
# Wire formats

Written from the files in [`grammars/`](../grammars) by `make formats`: change a file, not this page.

All formats are read at once. A format is read in more forms than it is written in: tokens also with ASCII, fullwidth
or doubled bars, tags in any case, calls without their closer, and what [repairs.md](repairs.md) lists. The examples of
each file run as tests. `streamscrub grammars --model ID` says which formats a model stands for.

**Body** is how a call is written, and the envelope it stands in: its opener and closer, which a link leads to if they
belong to another file. **Before the body** is the header between the opener and the body. **With** are the formats
that come along when this one is chosen. **Never text** are tokens that are taken out wherever they stand, **No text
behind markup** only directly behind reasoning, a call or another token. **A turn of others** ends the response.
"""
# The calls that every format writes on this page.
_CALLS: Final[list[tuple[str, dict[str, Any]]]] = [("find", {"q": "rook", "top": 3}), ("ping", {})]
_TOOLS: Final = [
    {
        "name": "find",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}, "top": {"type": "integer"}}},
    },
    {"name": "ping", "parameters": {"type": "object", "properties": {}}},
]
_TOLD: Final = (("reasoning", "reasoning"), ("visible", "text"))
_WIDTH: Final = 120


def formats_page(grammars: Iterable[Grammar] | None = None) -> str:
    """The page as Markdown: a list of the formats, then a section each. The shipped ones by default."""
    chosen = list(shipped().values() if grammars is None else grammars)
    listed = "".join(f"- {_link(grammar.name)}: {grammar.data.get('title', '')}\n" for grammar in chosen)
    return "\n".join([_HEAD, listed, *(format_section(grammar) for grammar in chosen)])


def format_section(grammar: Grammar) -> str:
    """What one file says, as a section of the page."""
    file = f"grammars/{grammar.file}"
    link = f" ([`{file}`](../{file}))" if grammar.name in shipped() else ""
    lines = [f"## `{grammar.name}`\n", f"{grammar.data.get('title', '')}{link}\n"]
    lines += [_item(word, parts) for word, parts in _facts(grammar) if parts]
    text, what = _example(grammar)
    if text:
        lines.append(f"\n{what}:\n\n{_fenced(text)}")
    if grammar.examples:
        lines.append("\nTested:\n")
        lines += [f"- {one.get('title', '')}: {_code(one['text'])} gives {_outcome(one)}" for one in grammar.examples]
    return "\n".join(lines) + "\n"


def _facts(grammar: Grammar) -> Iterator[tuple[str, list[str]]]:
    """What stands in a file, in words: (what it is, the pieces)."""
    data = grammar.data
    if data.get("models"):
        yield "Models", _codes(grammar.models)
    if data.get("source"):
        yield "Source", [str(data["source"])]
    if data.get("notes"):
        notes = data["notes"]
        yield "Notes", [notes if isinstance(notes, str) else " ".join(notes)]
    if data.get("needs"):
        yield "With", [_link(name) for name in data["needs"]]
    for one in data.get("envelope", ()):
        if one.get("open"):
            yield "A call opens with", _codes(one["open"])
        if one.get("close"):
            yield "A call closes with", _codes(one["close"])
    headers = [header for key in ("envelope", "body") for one in data.get(key, ()) for header in one.get("headers", ())]
    if headers:
        yield "Before the body", _codes(headers)
    for one in data.get("body", ()):
        yield "Body", [f"{_SYNTAXES.get(one['syntax'], one['syntax'])}, in {_places(grammar, one['envelope'])}"]
    for one in data.get("pairs", ()):
        if one.get("envelope"):
            yield "Body", [f"{_SYNTAXES['pairs']}, in {_places(grammar, one['envelope'])}"]
        yield (
            "Tags",
            _codes(
                word for key, value in one.items() if key.endswith(("_open", "_close", "separator")) for word in value
            ),
        )
    for one in data.get("tags", ()):
        yield from _tag_facts(one, data["tags"])
    yield from _other_facts(data)


def _tag_facts(one: Mapping[str, Any], every: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    sigils = list(one.get("sigils", ())) or [pair for other in every for pair in other.get("sigils", ())]
    openers = list(dict.fromkeys(pair[0] for pair in sigils)) or ["<"]
    if "of" in one:
        yield "Tags of", [_link(one["of"])]
    if one.get("sigils"):
        yield "Tags begin with", _codes(openers)
    yield "A call's tag", _codes(one.get("call", ()))
    yield "A parameter's tag", _codes(key["name"] for key in one.get("key", ()))
    yield "A wrapper's tag", _codes(one.get("wrapper", ()))


def _other_facts(data: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for one in data.get("section", ()):
        yield "Around calls", _codes([*one.get("open", ()), *one.get("close", ())])
    for one in data.get("reasoning", ()):
        yield "Reasoning opens with", _codes(word + one.get("label", "") for word in one.get("open", ()))
        yield "Reasoning closes with", _codes(one.get("close", ()))
        yield "Always opened by the prompt of", _codes(one.get("opened_for", ()))
    for one in data.get("answer", ()):
        yield "Around the answer", _codes([*one.get("open", ()), *one.get("close", ())])
    frame = data.get("frame", {})
    tokens = [word for key in ("start", "channel", "constrain", "message", "ends") for word in frame.get(key, ())]
    yield "Messages between", _codes(tokens)
    routes = [
        f"{_code(one.get('channel') or 'to=' + one['recipient'])} is {one['to'] or 'dropped'}"
        for one in frame.get("route", ())
    ]
    yield "Messages to", routes
    for one in data.get("line", ()):
        starts = [*one.get("start", ()), *filter(None, [one.get("then")])]
        yield "Lines", [f"{_code(one['syntax'])}{' with ' + ' and '.join(_codes(starts)) if starts else ''}"]
    for one in data.get("fence", ()):
        yield f"Fences of {'calls' if 'envelope' in one else one['reads']}", _codes(one["languages"])
    for one in data.get("result", ()):
        yield "A made-up result", _codes([*one.get("open", ()), *one.get("close", ())])
    control = data.get("control", {})
    yield "Never text", _codes(control.get("tokens", ()))
    yield "No text behind markup", _codes(control.get("after_markup", ()))
    yield "A turn of others", _codes(data.get("turn", {}).get("open", ()))
    yield "Never a tool's element", _codes(data.get("elements", {}).get("reserved", ()))


def _places(grammar: Grammar, envelopes: Iterable[str]) -> str:
    """The names of envelopes, as links where another file owns them."""
    own = {one["name"] for one in grammar.data.get("envelope", ())}
    holders: dict[str, list[Grammar]] = {}
    for other in shipped().values():
        for one in other.data.get("envelope", ()):
            if one.get("open") or one.get("close"):
                holders.setdefault(one["name"], []).append(other)
    found = []
    for name in envelopes:
        owner = _owner(holders.get(name, [grammar]))
        found.append(_code(name) if name in own or owner == grammar.name else f"[{_code(name)}](#{owner})")
    return " and ".join(found)


def _owner(holders: list[Grammar]) -> str:
    """Of the files that have markers of one envelope, the one that comes along with the others and needs none."""
    names = {grammar.name for grammar in holders}
    for grammar in holders:
        if not names & {one.name for one in with_needed((grammar,))} - {grammar.name}:
            return grammar.name
    return min(names)


def _example(grammar: Grammar) -> tuple[str, str]:
    """A text of this format, and what it shows."""
    try:
        return write_calls(grammar, _CALLS, _TOOLS).strip("\n"), "Two calls, as they are written"
    except ValueError:
        for one in grammar.examples:
            return str(one["text"]).strip("\n"), str(one.get("title", "")).capitalize() or "An example"
    return "", ""


def _outcome(example: Mapping[str, Any]) -> str:
    """What an example says that its text is read as."""
    calls = [
        _code(f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}")
        for call in example.get("calls", ())
    ]
    rejected = [f"a call rejected as {reason}" for reason in example.get("rejected", ())]
    told = [f"the {word} {_code(example[key])}" for key, word in _TOLD if example.get(key)]
    return " and ".join([*calls, *rejected, *told]) or "nothing"


def _link(name: str) -> str:
    return f"[{_code(name)}](#{name})"


def _code(word: str) -> str:
    """``word`` as a code span, whatever backticks and newlines it holds."""
    word = word.replace("\n", "\\n").replace("\r", "\\r")
    runs = {len(run) for run in re.findall("`+", word)}
    mark = "`" * next(size for size in range(1, len(word) + 2) if size not in runs)
    pad = " " if word.startswith(("`", " ")) or word.endswith(("`", " ")) else ""
    return f"{mark}{pad}{word}{pad}{mark}"


def _codes(words: Iterable[str]) -> list[str]:
    return [_code(word) for word in dict.fromkeys(words)]


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _item(word: str, parts: list[str]) -> str:
    """One fact as an item of a list, in rows that break between its pieces."""
    rows = [f"- **{word}:**"]
    for place, part in enumerate(parts, 1):
        part += "," if place < len(parts) else ""
        if len(rows[-1]) + len(part) + 1 > _WIDTH:
            rows.append(" ")
        rows[-1] += " " + part
    return "\n".join(rows)
