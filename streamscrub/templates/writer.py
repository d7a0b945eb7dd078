"""A grammar file -> a response template, where one can say it: the other direction, taken from the written form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..spellings import spelled
from .patterns import Unfit

_CALL: Final = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
_ALL: Final = {"content_args": {"strip": False}, "repeats": True, "join": ""}  # every piece of a text counts
_MAX_WAYS: Final = 16  # alternatives of a pattern that is read back
_LINE: Final = re.compile(r"[ \t]*+\n[ \t\n]*+")
_GIVEN: Final = {"value": "(?P<value>.*?)", "string": "(?:true|false)"}
_FIELDS: Final = re.compile(r"\{(name|key|value|index|string)\}")


def write_template(
    data: Mapping[str, Any], needed: Iterable[Mapping[str, Any]], anchors: Iterable[str] = ()
) -> dict[str, Any]:
    """The template of a grammar, whose data and needed grammars are given. Raises ``Unfit`` for what it cannot say.

    ``anchors`` are the literals before the model's turn, where the grammar does not state them.
    """
    return _Writer(data, list(needed)).build(list(anchors))


class _Writer:
    """Reads the sections of the grammar and of those it needs."""

    def __init__(self, data: Mapping[str, Any], needed: list[Mapping[str, Any]]) -> None:
        self.data = data
        self.files = [data, *needed]
        self.render: Mapping[str, Any] = data.get("render", {})
        self.fields: dict[str, dict[str, Any]] = {}

    def build(self, anchors: list[str]) -> dict[str, Any]:
        frame = next((one["frame"] for one in self.files if "frame" in one), None)
        if frame is not None and str(self.render.get("call", "")).startswith(tuple(frame.get("start", ()))):
            self._messages(frame)
            anchors = anchors or [start + role for start in frame["start"] for role in frame["roles"]]
        elif any(one.get("shared") for one in self._all("envelope")):
            self._typed()
        else:
            self._reasoning()
            if self.render:
                self._calls()
            elif not self.fields:
                raise Unfit("render", "reads neither reasoning nor calls that it could write")
            self._content()
        anchors = anchors or self.data.get("turn", {}).get("own", [])
        if not anchors:
            raise Unfit("turn.own", "the grammar does not say what stands before the model's turn; give start_anchor")
        return {"version": 1, "defaults": {"role": "assistant"}, "start_anchor": _one(anchors), "fields": self.fields}

    def _all(self, section: str) -> Iterator[Mapping[str, Any]]:
        return (one for file in self.files for one in file.get(section, ()))

    def _reasoning(self) -> None:
        found = list(self.data.get("reasoning", ())) or list(self._all("reasoning"))
        opens = [literal + one.get("label", "") for one in found for literal in one.get("open", ())]
        closes = [literal for one in found for literal in one.get("close", ())]
        if not found:
            return
        field: dict[str, Any] = {"open": _one(opens)}
        if any(one.get("begins") for one in found):
            field = {"open_pattern": f"(?:{'|'.join(['^', *map(_escaped, opens)])})"}
        self.fields["thinking"] = {**field, **({"close": _one(closes)} if closes else {}), "content": "text"}
        self.fields["thinking"] |= _ALL

    def _content(self) -> None:
        tokens = list(self.data.get("control", {}).get("tokens", []))
        tokens += [literal for one in self._all("result") if one.get("special") for literal in one.get("open", ())]
        self.fields["content"] = {**({"close": _one(tokens)} if tokens else {}), "content": "text", **_ALL}

    def _messages(self, frame: Mapping[str, Any]) -> None:
        """Messages with headers: one field for each channel that is read, one for the recipients."""
        if not frame.get("channel") or "{name}" not in str(self.render["call"]):
            raise Unfit("frame", "its messages are told apart by something else than channels and recipients")
        channel, message, ends = frame["channel"][0], frame["message"][0], _one(frame["ends"])
        for name, kind in (("thinking", "reasoning"), ("content", "text")):
            routes = [one["channel"] for one in frame["route"] if one.get("to") == kind and "channel" in one]
            if routes:
                opens = _one([f"{channel}{route}{message}" for route in routes])
                self.fields[name] = {"open": opens, "close": ends, "content": "text", **_ALL}
        before, _, _ = str(self.render["call"]).partition("{name}")
        header = re.escape(before[before.index(channel) :])
        self.fields["tool_calls"] = {
            "open_pattern": f"{header}(?P<name>[^\\s<]+).*?{re.escape(message)}",
            "close": ends,
            "content": "json",
            "repeats": True,
            "transform": _CALL,
        }

    def _typed(self) -> None:
        """Messages whose kind is a token behind the words of a header: one field for each kind."""
        shared = next(one for one in self._all("envelope") if one.get("shared"))
        calls = shared["separators"]
        reasoning = next(iter(self._all("reasoning")))
        starts = "|".join(re.escape(one) for one in shared["open"] if one not in calls)
        kinds = {"thinking": reasoning["open"], "content": reasoning["close"], "tool_calls": calls[:1]}
        for name, tokens in kinds.items():
            opener = f"(?:{starts})?[^<]*{_any(tokens)}"
            self.fields[name] = {"open_pattern": opener, "close": _one(shared["close"][:1]), "repeats": True}
        self.fields["thinking"] |= _ALL
        self.fields["content"] |= _ALL
        self.fields["tool_calls"] |= {key: value for key, value in self._json_call().items() if "pattern" not in key}

    # -- calls

    def _calls(self) -> None:
        body = self.render.get("body", "")
        writes = {
            "json_call": self._json_call,
            "json_arguments": self._json_arguments,
            "tags": self._tags,
            "pairs": self._pairs,
            "loose_object": self._loose,
            "python_call": self._python,
            "key_lines": self._lines,
        }
        if body not in writes:
            raise Unfit("render.body", f"{body or 'nothing'} is no content that a template knows")
        field = {**writes[body](), "repeats": True}
        if "(?P<id>" in field.get("open_pattern", ""):
            field["transform"] = {"id": "{id}", **field["transform"]}
        self.fields["tool_calls"] = field

    def _around(self, key: str, field: str) -> tuple[str, str]:
        """What stands before and behind a field of a text of [render]."""
        before, _, after = str(self.render.get(key, field)).partition(field)
        return before, after

    def _delimiters(self, opener: str, before: str, after: str) -> dict[str, Any]:
        """Opener and closer of a call, with the wrapper around all calls as far as it is there.

        ``opener`` is a pattern, ``before`` and ``after`` are the texts up to the name and behind the call.
        """
        head, closes = before.lstrip().rstrip("\n"), after.strip()
        self._starts(head)
        heads, closers = self._alike("open", head), self._alike("close", closes) if closes else []
        field: dict[str, Any] = {}
        wrapper, unwrapper = (text.strip() for text in self._around("calls", "{calls}"))
        if len(heads) * (1 + bool(wrapper)) > _MAX_WAYS:
            raise Unfit("envelope.open", "too many openers for one pattern")
        optional = f"(?:{_escaped(wrapper)}\\s*)?" if wrapper else ""
        field["open_pattern"] = f"\\s*{optional}{_any(heads)}{opener.removeprefix(_escaped(head))}"
        if unwrapper:
            field["close_pattern"] = f"{_any(closers)}(?:\\s*{_escaped(unwrapper)})?"
        elif closers:
            field["close_pattern"] = _any(closers)
        else:
            field["close_pattern"] = f"(?={_any(heads)})|\\Z"
        return field

    def _alike(self, key: str, literal: str) -> list[str]:
        """The literal, and those that this grammar itself lists beside it."""
        own = self.data.get("envelope", ())
        names = {one["name"] for one in own if literal in one.get(key, ())}
        return list(
            dict.fromkeys([literal, *(more for one in own if one["name"] in names for more in one.get(key, ()))])
        )

    def _starts(self, opener: str) -> None:
        """A template needs a marker, and forms without one have none."""
        openers = [literal for one in self._all("envelope") for literal in one.get("open", ())]
        openers += [sigils[0] for one in self._all("tags") for sigils in one.get("sigils", ())]
        words = tuple(word.lower() for literal in openers for word in spelled(literal, True))
        if not opener or not opener.lower().startswith(words):
            raise Unfit("render.call", f"{opener[:30]!r} is no marker that opens a call")

    def _json_call(self) -> dict[str, Any]:
        before, after = (text.strip() for text in self._around("call", "{call}"))
        settings: Mapping[str, str] = next((one.get("settings", {}) for one in self._bodies("json_call")), {})
        own = {key.removesuffix("_key"): word for key, word in settings.items() if key in ("name_key", "arguments_key")}
        keys = {"name": "name", "arguments": "arguments", **own}
        args = {"content": "json", **self._json_args("json_call")}
        if not before:
            delimiters = self._listed("several objects behind one opener are no JSON")
            call: Any = {key: f"{{{word}}}" for key, word in keys.items()}
            args["transform_each"] = True
        else:
            delimiters = self._delimiters(_escaped(before), before, after)
            call = {key: f"{{content.{word}}}" for key, word in keys.items()} if own else "{content}"
        return {**delimiters, **args, "transform": {"type": "function", "function": call}}

    def _listed(self, otherwise: str) -> dict[str, Any]:
        """Opener and closer of a list of all calls in brackets."""
        before, after = (text.strip() for text in self._around("calls", "{calls}"))
        opener, bracket, rest = before.rpartition("[")
        if not bracket or rest or not opener.strip() or not after.startswith("]"):
            raise Unfit("render.calls", otherwise)
        self._starts(before)
        closer = after[1:].strip()
        return {"open": _one(self._alike("open", opener.strip())), **({"close": closer} if closer else {})}

    def _bodies(self, syntax: str) -> list[Mapping[str, Any]]:
        own = [one for one in self.data.get("body", ()) if one["syntax"] == syntax]
        return own or [one for one in self._all("body") if one["syntax"] == syntax]

    def _json_args(self, syntax: str, **more: Any) -> dict[str, Any]:
        quotes = [quote for one in self._bodies(syntax) for quote in one.get("quotes", ())]
        args = {**more, **({"string_delims": [[quote, quote] for quote in quotes]} if quotes else {})}
        return {"content_args": args} if args else {}

    def _headed(self) -> tuple[str, str, str]:
        """A call template with a name in it: the pattern of its opener, and the texts around the call."""
        before, after = self._around("call", "{call}")
        if "{name}" not in before:
            raise Unfit("render.call", "has no name before the call")
        return _pattern(before.strip()), _head(before), after

    def _json_arguments(self) -> dict[str, Any]:
        delimiters = self._delimiters(*self._headed())
        return {**delimiters, "content": "json", **self._json_args("json_arguments"), "transform": _CALL}

    def _lines(self) -> dict[str, Any]:
        settings: Mapping[str, str] = next((one.get("settings", {}) for one in self._bodies("key_lines")), {})
        args = {"line_sep": settings.get("between", "\n"), "kv_sep": settings.get("after_key", ":")}
        opener, before, after = self._headed()
        after = after.removeprefix(args["line_sep"])
        delimiters = self._delimiters(opener, before, after)
        return {**delimiters, "content": "kv-lines", "content_args": args, "transform": _CALL}

    def _loose(self) -> dict[str, Any]:
        before, after = (text.strip() for text in self._around("call", "{call}"))
        delimiters = self._delimiters(f"{_escaped(before)}call:(?P<name>[\\w.-]+)", before, after)
        args = self._json_args("loose_object", unquoted_keys=True)
        return {**delimiters, "content": "json", **args, "transform": _CALL}

    def _python(self) -> dict[str, Any]:
        field = self._listed("is no marker and a list in brackets")
        function = {"name": "{name}", "arguments": "{arguments}"}
        transform = {"type": "function", "function": function}
        return {**field, "content": "python-call-list", "transform_each": True, "transform": transform}

    def _tags(self) -> dict[str, Any]:
        if any(one.get("entities") for tags in self._all("tags") for one in (tags, *tags.get("key", ()))):
            raise Unfit("tags.entities", "a template has no word for escaped values")
        form, (before, after) = self.render["form"], self._around("call", "{call}")
        opener = f"{before}{form['call_open']}".strip()
        closer = f"{form['call_close']}{after}"
        delimiters = self._delimiters(_pattern(opener), _head(opener), closer)
        return {**delimiters, **_tag_content(form["value"])}

    def _pairs(self) -> dict[str, Any]:
        if any(one.get("type_open") for one in self._all("pairs")):
            raise Unfit("pairs.type_open", "a template has no word for the type of a value")
        form, (before, after) = self.render["form"], self._around("call", "{call}")
        opener = f"{before}{form['head']}".strip()
        delimiters = self._delimiters(_pattern(opener), _head(opener), after)
        repeats = any(one.get("repeats") for one in self.data.get("pairs", ()))
        return {**delimiters, **_tag_content(form["pair"], **({"merge_duplicates": True} if repeats else {}))}


def _tag_content(form: str, **more: Any) -> dict[str, Any]:
    args = {"tag_pattern": _pattern(form.strip()), **more}
    return {"content": "xml-inline", "content_args": args, "transform": _CALL}


def _head(form: str) -> str:
    """The text before the first field."""
    return _FIELDS.split(form)[0]


def _pattern(form: str) -> str:
    """A text with fields as a pattern that captures them."""
    pieces = _FIELDS.split(form)
    if pieces[1::2].count("name") > 1:
        raise Unfit("render.call", "names the tool twice")
    out = []
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            out.append(_escaped(piece))
            continue
        stop = re.escape(pieces[at + 1].strip()[:1])
        group = {"index": "id"}.get(piece, piece)
        if piece == "index" and pieces[at - 1] == ":":
            out.append(r"\d+")  # behind the name
        elif piece in _GIVEN:
            out.append(_GIVEN[piece])
        else:
            out.append(f"(?P<{group}>[^\\s{stop}]+)" if stop else f"(?P<{group}>[\\w.-]+)")
    return "".join(out)


def _escaped(text: str) -> str:
    """The text as a pattern, in which a newline may be any blanks."""
    return r"\s*".join(re.escape(line) for line in _LINE.split(text))


def _any(literals: list[str]) -> str:
    """One of these, as a pattern."""
    found = "|".join(map(_escaped, literals))
    return f"(?:{found})" if len(literals) > 1 else found


def _one(literals: list[str]) -> str | list[str]:
    """A list of one is a text."""
    return literals[0] if len(literals) == 1 else list(literals)
