"""What a dialect tells the model: the tools, the syntax of a call, the rules. The words stand in the grammar files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any, Final

from ..grammar import shipped
from ..tools import Tool, read_tools
from ..writing import filled
from .forms import Form
from .records import Call, ToolResult
from .sample import example_arguments
from .signatures import interface, namespace, one_line, python_signature, slot_signature, typescript_signature


@cache
def wording() -> Mapping[str, Any]:
    """The words that all dialects share."""
    return {key: words for grammar in shipped().values() for key, words in grammar.data.get("wording", {}).items()}


def compact(value: Any) -> str:
    """JSON on one line, keys as they come."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- catalogues


def _json_line(tool: Tool) -> str:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return compact({"type": "function", "function": function})


def _json_lines(tools: tuple[Tool, ...]) -> str:
    return "\n".join(map(_json_line, tools))


def _block(tools: tuple[Tool, ...]) -> str:
    words = wording()
    lines = [
        filled(
            words["block_line"], name=tool.name, description=one_line(tool.description), schema=compact(tool.parameters)
        )
        for tool in tools
    ]
    return "\n".join([words["block"], "", *lines, ""])


def _section(lines: Iterable[str]) -> str:
    return "\n".join([wording()["section"], "", *lines, ""])


def _slots(tools: tuple[Tool, ...]) -> str:
    template = wording()["signature"]
    return _section(
        filled(template, name=tool.name, description=one_line(tool.description), call=slot_signature(tool))
        for tool in tools
    )


def _interfaces(tools: tuple[Tool, ...]) -> str:
    parts = []
    for tool in tools:
        head = [f"### {tool.name}", *([tool.description] if tool.description else [])]
        parts.append("\n".join([*head, "```ts", interface(tool), "```"]))
    return "\n\n".join(parts) + "\n"


def _xml(tools: tuple[Tool, ...]) -> str:
    out = []
    for tool in tools:
        inner = [_element("name", tool.name), _element("description", tool.description)]
        for key, schema in tool.properties.items():
            told = schema if isinstance(schema, dict) else {}
            rest = {name: value for name, value in told.items() if name not in ("type", "description")}
            parts = [_element("name", key), _element("type", _word(told.get("type", "any")))]
            parts += [_element("description", told["description"])] if isinstance(told.get("description"), str) else []
            parts += [_element("required", "true" if key in tool.required else "false")]
            parts += [_element("rules", compact(rest))] if rest else []
            inner.append(_around("parameter", parts))
        out.append(_around("tool", inner))
    return _around("tools", out)


def _word(kind: Any) -> str:
    return kind if isinstance(kind, str) else compact(kind)


def _element(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text, quote=False)}</{tag}>"


def _around(tag: str, parts: list[str]) -> str:
    return "\n".join([f"<{tag}>", *parts, f"</{tag}>"])


# Style -> the tools in it.
CATALOGUES: Final[dict[str, Callable[[tuple[Tool, ...]], str]]] = {
    "json": _json_lines,
    "block": _block,
    "interfaces": _interfaces,
    "typescript": lambda tools: _section(map(typescript_signature, tools)),
    "python": lambda tools: _section(map(python_signature, tools)),
    "pformat": _slots,
    "xml": _xml,
    "namespace": namespace,
    "native": lambda tools: "",
}


def render_catalogue(form: Form, tools: Iterable[Any], style: str | None = None) -> str:
    """The tools alone, in the dialect's style or in ``style``: one of the keys of ``CATALOGUES``.

    Raises ``ValueError`` for another style.
    """
    word = style or form.table["catalogue"]
    if word not in CATALOGUES:
        raise ValueError(f"no style of a catalogue: {word!r}; known: {', '.join(CATALOGUES)}")
    return CATALOGUES[word](read_tools(tools) or ())


# -- the prompt


def example_call(form: Form, tools: Iterable[Any], several: bool = False) -> str:
    """A call of the first tool that has parameters, with arguments that fit; or two calls. "" where none can be shown.

    Two calls are of two tools if there are two. The first example that a tool has itself is taken, if it fits.
    """
    offered = read_tools(tools) or ()
    if not offered or not form.writes:
        return ""
    shown: list[Call] = []
    first = [tool for tool in offered if tool.properties][:1]
    for tool in (*first, *(tool for tool in offered if tool not in first)):
        given = _given_examples(form, tool, offered)
        call = Call(tool.name, example_arguments(tool))
        if given:
            call = given[0]
        elif not _carries(form, call, offered):
            continue
        shown.append(call)
        if len(shown) > several:
            break
    if not shown:
        return ""
    return form.render_calls(shown if len(shown) > several else shown * 2, offered)


def _carries(form: Form, call: Call, offered: tuple[Tool, ...]) -> bool:
    try:
        form.render_calls([call], offered)
    except ValueError:  # a name or a key that this dialect cannot write
        return False
    return True


def _given_examples(form: Form, tool: Tool, offered: tuple[Tool, ...]) -> list[Call]:
    """The examples of a tool that fit its schema and that the dialect can write."""
    calls = [Call(tool.name, example) for example in tool.examples if tool.shape.accepts(example)]
    return [call for call in calls if _carries(form, call, offered)]


def render_examples(form: Form, tools: Iterable[Any]) -> str:
    """The examples that the tools bring along, each as a call in this dialect; "" if there are none."""
    offered = read_tools(tools) or ()
    if not form.writes:
        return ""
    words = wording()
    calls = [call for tool in offered for call in _given_examples(form, tool, offered)]
    shown = [filled(words["example"], call=form.render_calls([call], offered)) for call in calls]
    return filled(words["examples"], examples="\n".join(shown)) if shown else ""


def render_prompt(form: Form, tools: Iterable[Any], *, catalogue: bool = True) -> str:
    """What goes into the system prompt: the tools, how to call them, what results look like. "" without tools.

    The same tools give the same bytes. ``catalogue`` False leaves the tools out where the dialect lists them in a
    section of their own.
    """
    offered = read_tools(tools) or ()
    if not offered:
        return ""
    words, style = wording(), form.table["catalogue"]
    if style == "native":
        return str(words["native"]).strip()
    rules = [*form.table.get("rules", ())]
    call, examples = example_call(form, offered), render_examples(form, offered)
    if style == "json":
        parts = [words["heading"], words["intro"]]
        parts.append(filled(words["catalogue"], tools=render_catalogue(form, offered)))
        if call:
            parts.append(filled(words["guide"], call=call))
            parts.append(filled(words["parallel"], calls=example_call(form, offered, several=True)))
        parts += [examples] if examples else []
        results = [ToolResult("", tool.name, "…", index=place) for place, tool in enumerate(offered[:2])]
        parts.append(filled(words["reading"], results=form.render_results(results)))
        parts.append(filled(words["private"], thinking=form.render_thinking("…")))
        parts += ["## Rules", "\n".join(f"- {rule}" for rule in (*words["rules"], *rules))]
        return "\n\n".join(parts)
    parts = [filled(words["protocol"], call=call).strip(), ""]
    parts += [f"- {rule}" for rule in (*rules, words["catalogue_rules"])]
    if catalogue or not form.table.get("section"):
        parts += ["", render_catalogue(form, offered).rstrip("\n")]
    parts += ["", examples] if examples else []
    return "\n".join(parts)


def forced_choice(tool_choice: Any) -> str:
    """The sentence that a forced choice needs where no field of the request says it; "" where nothing is forced.

    ``tool_choice`` is a word (``required``, ``any``, ``auto``, ``none``) or a record of OpenAI, with ``allowed_tools``,
    of Anthropic, Gemini or Bedrock. Raises ``ValueError`` for anything else.

    >>> forced_choice({"type": "function", "function": {"name": "ping"}})
    'You must call the tool ping in this reply.'
    >>> forced_choice({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["ping", "find"]}})
    'You must call the tool ping or find in this reply.'
    """
    kind, names = choice_of(tool_choice)
    if kind != "required":
        return ""
    return filled(wording()["forced"], name=" or ".join(names)) if names else str(wording()["required"])


# The words of all providers -> what they mean.
_CHOICES: Final = {"required": "required", "any": "required", "auto": "auto", "validated": "auto", "none": "none"}


def choice_of(tool_choice: Any) -> tuple[str, tuple[str, ...]]:
    """What a choice of tools says: ``required``, ``auto`` or ``none``, and the tools that it names."""
    told: Any = {"type": "auto"} if tool_choice is None else tool_choice
    told = {"type": told} if isinstance(told, str) else told
    if isinstance(told, Mapping):
        for key in ("functionCallingConfig", "function_calling_config", "allowed_tools"):
            told = told[key] if isinstance(told.get(key), Mapping) else told
        if not told:
            return "auto", ()
        for key in ("function", "tool"):
            told = told[key] if isinstance(told.get(key), Mapping) else told
        if isinstance(told.get("name"), str):
            return "required", (told["name"],)
        words = (told.get("mode"), told.get("type"), *told)  # Bedrock has the word as the key
        word = next((word.lower() for word in words if isinstance(word, str) and word.lower() in _CHOICES), None)
        if word is not None:
            listed = told.get("allowedFunctionNames", told.get("allowed_function_names", told.get("tools")))
            records = [{"name": one} if isinstance(one, str) else one for one in listed or ()]
            return _CHOICES[word], tuple(name for one in records for name in choice_of(one)[1])
    raise ValueError(f"no choice of tools: {tool_choice!r}")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as it goes out: its messages, and the fields ``tools`` and ``tool_choice`` (None: leave them out).

    ``registry`` are the tools to read the reply with: those of the request and those that were added to it.
    """

    messages: list[dict[str, Any]]
    tools: list[Any] | None
    tool_choice: Any
    registry: tuple[Tool, ...]


def prepare(
    form: Form,
    messages: Iterable[Mapping[str, Any]],
    tools: Iterable[Any] | None,
    tool_choice: Any = "auto",
    *,
    host_renders_tool_catalogue: bool = False,
    synthesized: Iterable[Any] = (),
) -> Prepared:
    """Put what the dialect has to say at the end of the first system message, or into a new one in front.

    The native dialect rewrites nothing. Elsewhere ``tools`` and ``tool_choice`` leave the request, and a forced choice
    is said in words; with the choice ``none`` the messages stay as they are, and no call of the reply can run.
    Raises ``ValueError`` for a forced tool that is not offered. ``host_renders_tool_catalogue``: the host
    has put the block into its prompt already, so that only the forced choice is added, and the tools that were
    ``synthesized`` for this turn, such as the one that takes a structured answer. Whether a prompt looks as if it had
    the block is never guessed.
    """
    given = [dict(message) for message in messages]
    records = list(tools or ())
    added = read_tools(synthesized) or ()
    registry = (*(read_tools(records) or ()), *added)
    if not form.writes:
        return Prepared(given, [*records, *synthesized_records(added)] or None, tool_choice, registry)
    kind, named = choice_of(tool_choice)
    if not registry or kind == "none":
        return Prepared(given, None, None, ())
    offered = [tool.name for tool in registry]
    for name in named:
        if name not in offered:
            raise ValueError(f"the forced tool {name!r} is not offered; offered: {', '.join(offered)}")
    forced = forced_choice(tool_choice)
    if host_renders_tool_catalogue:
        parts = [render_catalogue(form, added).strip()] if added else []
    else:
        parts = [render_prompt(form, registry)]
    said = "\n\n".join([*parts, *([forced] if forced else [])])
    return Prepared(with_instructions(given, said), None, None, registry)


def synthesized_records(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The tools as records of a request."""
    return [json.loads(_json_line(tool)) for tool in tools]


def with_instructions(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The messages with the text at the end of the first system message, or in a new one in front."""
    if not text:
        return messages
    for place, message in enumerate(messages):
        if message.get("role") in ("system", "developer") and isinstance(message.get("content"), str):
            content = f"{message['content']}\n\n{text}" if message["content"] else text
            return [*messages[:place], {**message, "content": content}, *messages[place + 1 :]]
    return [{"role": "system", "content": text}, *messages]
