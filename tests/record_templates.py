"""What chat templates of models write: ``python -m tests.record_templates`` renders tests/chat_templates.jsonl.

It needs jinja2, the packages that tests/chat_templates.toml names, and for the files of others their folder in the
variable ``CHAT_TEMPLATES``; the recordings of a file that is not there are kept.
"""

from __future__ import annotations

import importlib
import json
import os
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path
from typing import Any, Final, TypeAlias

Source: TypeAlias = dict[str, Any]

_HERE: Final = Path(__file__).resolve().parent
RECORDINGS: Final = _HERE / "chat_templates.jsonl"
_FOLDER: Final = "CHAT_TEMPLATES"

_STRING: Final = {"type": "string"}
TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": "get_tide",
            "description": "Tide table for one harbour.",
            "parameters": {
                "type": "object",
                "properties": {
                    "harbor": {"type": "string", "description": "Its name."},
                    "days": {"type": "integer", "description": "How many."},
                },
                "required": ["harbor"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "save",
            "description": "Saves a note.",
            "parameters": {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Where."},
                    "body": {"type": "string", "description": "What."},
                    "size": {"type": "number", "description": "How large."},
                    "draft": {"type": "boolean", "description": "Not sent."},
                    "tags": {"type": "array", "items": _STRING, "description": "Words."},
                    "Meta": {"type": "object", "description": "More."},
                    "until": {"type": "null", "description": "Nothing."},
                },
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "ping",
            "description": "Health check.",
            "parameters": {"type": "object", "properties": {}},
        },
    },
]

_SYSTEM: Final = {"role": "system", "content": "Be brief."}
_QUERY: Final = {"role": "user", "content": "Tide in Sines?"}
_AGAIN: Final = {"role": "user", "content": "And in Póvoa, “today”?"}
_ANSWER: Final = {"role": "assistant", "content": "High tide at 07:12."}
_TIDE: Final = ("get_tide", {"harbor": "Sines", "days": 1})


def calling(number: int, *calls: tuple[str, dict[str, Any]], content: str = "", reasoning: str = "") -> dict[str, Any]:
    """A turn with calls. ``number`` is how many calls the conversation had before."""
    records = [
        {
            "id": f"functions.{name}:{number + place}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for place, (name, arguments) in enumerate(calls)
    ]
    turn: dict[str, Any] = {"role": "assistant", "content": content, "tool_calls": records}
    return {**turn, "reasoning_content": reasoning} if reasoning else turn


def result(number: int, name: str, text: str) -> dict[str, Any]:
    """The result of the call with this number."""
    return {"role": "tool", "tool_call_id": f"functions.{name}:{number}", "name": name, "content": text}


CONVERSATIONS: Final[dict[str, list[dict[str, Any]]]] = {
    "an answer": [_SYSTEM, _QUERY, _ANSWER],
    "one call": [_SYSTEM, _QUERY, calling(0, _TIDE), result(0, "get_tide", "07:12"), _ANSWER],
    "text, reasoning and two calls": [
        _SYSTEM,
        _QUERY,
        calling(0, _TIDE, ("ping", {}), content="Checking.", reasoning="Look it up."),
        result(0, "get_tide", "07:12"),
        result(1, "ping", "pong"),
        _ANSWER,
    ],
    "no system, no arguments": [_QUERY, calling(0, ("ping", {})), result(0, "ping", ""), _ANSWER],
    "texts": [
        _QUERY,
        calling(
            0, ("save", {"path": "a/b c.md", "body": "line \"one\"\n\n  line 'two' \\n {é 你好 🙂}, 12: [true]\t"})
        ),
        result(0, "save", '{"ok": true, "at": "a/b c.md"}\n\n- 1'),
        _ANSWER,
    ],
    "numbers": [_QUERY, calling(0, ("save", {"size": -0.5})), result(0, "save", "12"), _ANSWER],
    "other values": [
        _QUERY,
        calling(
            0,
            (
                "save",
                {
                    "path": "12",
                    "tags": ["x", 'y "z"', ""],
                    "draft": False,
                    "Meta": {"n": 1.5, "b": {"Z": [1, [True, None]], "a": {}}, "whole": 1.0},
                    "until": None,
                },
            ),
        ),
        result(0, "save", "[null]"),
        _ANSWER,
    ],
    "blanks at the edges": [
        {"role": "system", "content": "\nBe brief. "},
        {"role": "user", "content": " Tide in Sines?\n"},
        calling(0, _TIDE, content="\n\n Checking. \n", reasoning="\nLook it up.\n\n"),
        result(0, "get_tide", "\n07:12 \n"),
        {"role": "assistant", "content": "\n\nHigh tide at 07:12.\n"},
    ],
    "a call and no end": [
        _SYSTEM,
        _QUERY,
        calling(0, _TIDE, reasoning="Look it up."),
        result(0, "get_tide", "07:12"),
    ],
    "two calls one after the other": [
        _SYSTEM,
        _QUERY,
        calling(0, _TIDE),
        result(0, "get_tide", "07:12"),
        calling(1, ("ping", {})),
        result(1, "ping", "pong"),
        _ANSWER,
    ],
    "reasoning and a query after it": [
        _QUERY,
        calling(0, _TIDE, reasoning="Look\nit up."),
        result(0, "get_tide", "07:12"),
        {**_ANSWER, "reasoning_content": "Now I know."},
        _AGAIN,
        calling(1, ("get_tide", {"harbor": "Póvoa"}), reasoning="Once more."),
        result(1, "get_tide", "08:00"),
        _AGAIN,
        {"role": "assistant", "content": "At 08:00.", "reasoning_content": "I know\n\nthat."},
    ],
}


# Those of which the prompts are recorded, too.
ASKED: Final = ("one call", "two calls one after the other")


def sources() -> list[Source]:
    """The templates of tests/chat_templates.toml."""
    return list(tomllib.loads((_HERE / "chat_templates.toml").read_text(encoding="utf-8"))["template"])


def found(source: Source) -> Path | None:
    """The file of a template: in its package in just that version, else in the folder; None if it is in neither."""
    try:
        if version(source["package"]) == source["version"]:
            for file in files(source["package"]) or ():
                if str(file) == source["file"]:
                    return Path(str(file.locate()))
    except (PackageNotFoundError, ValueError):
        pass
    path = Path(os.environ.get(_FOLDER, ""), Path(source["file"]).name)
    return path if _FOLDER in os.environ and path.is_file() else None


@cache
def _template(path: Path) -> Any:
    """The template as transformers compiles it."""
    jinja2: Any = importlib.import_module("jinja2")
    sandbox: Any = importlib.import_module("jinja2.sandbox")
    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def refused(message: str) -> None:
        raise jinja2.TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    environment.filters["tojson"] = tojson
    environment.globals |= {"raise_exception": refused, "strftime_now": lambda form: "2026-01-02"}
    return environment.from_string(path.read_text(encoding="utf-8"))


def rendered(source: Source, path: Path, messages: list[dict[str, Any]], asking: bool = False) -> str:
    """What the template makes of a conversation, as far as it is compared. ``asking``: with the generation prompt."""
    prompt: str = source.get("prompt", "")
    text: str = _template(path).render(
        messages=[_as_taken(source, message) for message in messages],
        tools=TOOLS[-1:] if source.get("tools") else None,
        bos_token=source.get("bos", ""),
        add_generation_prompt=bool(prompt) or asking,
    )
    if "behind" in source:
        text = text.partition(source["behind"])[2]
    return text if asking else text.removesuffix(prompt)


def asked(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The beginnings of a conversation at which the model is asked for a turn."""
    return [messages[:place] for place, one in enumerate(messages) if place and one["role"] == "assistant"]


def _as_taken(source: Source, message: dict[str, Any]) -> dict[str, Any]:
    if source.get("json") and "tool_calls" in message:
        calls = [
            {**call, "function": {**call["function"], "arguments": _text(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
        message = {**message, "tool_calls": calls}
    name = source.get("reasoning", "reasoning_content")
    return {name if key == "reasoning_content" else key: value for key, value in message.items()}


def _text(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def recordings() -> list[dict[str, Any]]:
    """The lines of tests/chat_templates.jsonl."""
    return [json.loads(line) for line in RECORDINGS.read_text(encoding="utf-8").splitlines()]


def _made() -> Iterator[dict[str, Any]]:
    kept = recordings() if RECORDINGS.exists() else []
    for source in sources():
        path = found(source)
        told = {key: source[key] for key in ("dialect", "package", "version", "file")}
        if path is None:
            yield from (one for one in kept if {key: one.get(key) for key in told} == told)
            continue
        for title, messages in CONVERSATIONS.items():
            if title not in source.get("without", ()):
                line = {**told, "title": title, "text": rendered(source, path, messages)}
                if title in ASKED:
                    line["asked"] = [rendered(source, path, start, asking=True) for start in asked(messages)]
                yield line


if __name__ == "__main__":
    lines = [json.dumps(one, ensure_ascii=False) for one in _made()]
    RECORDINGS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} recordings of {len(sources())} templates")
