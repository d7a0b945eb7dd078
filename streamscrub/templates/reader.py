"""A response template -> the content of a grammar file, under the same closed keys: nothing else knows of templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..spellings import is_special
from .delimiters import TAG, Opener, Tag
from .examples import examples
from .owners import Owners
from .patterns import Unfit, Way
from .shape import CALLS, REASONING, Call, Field, Template, call_of, marker, read, texts

_BEFORE_BODY: Final = 5  # the order of a template's bodies in an envelope that others read too: before them
_JSON_ARGS: Final = frozenset(("string_delims", "unquoted_keys", "allow_non_json"))
_XML_ARGS: Final = frozenset(("tag_pattern", "value_parser", "merge_duplicates"))
_LINE_ARGS: Final = frozenset(("line_sep", "kv_sep", "strip", "value_parser"))


def compile_template(template: Mapping[str, Any], name: str, owners: Owners) -> dict[str, Any]:
    """The data of a grammar that reads what the template describes. Raises ``Unfit`` for what has no linear reading."""
    return _Reader(read(template), name, owners).build()


class _Reader:
    """Collects the sections of the grammar, field by field."""

    def __init__(self, template: Template, name: str, owners: Owners) -> None:
        self.template = template
        self.name = name
        self.owners = owners
        self.needs: dict[str, None] = {}
        self.tokens: dict[str, None] = {}
        self.lists: dict[str, list[dict[str, Any]]] = {}
        self.render: dict[str, Any] = {}
        self.settings: Mapping[str, Any] = {}  # of a shipped body that writes the calls
        self.framed = False  # a shipped grammar of frames reads it

    def build(self) -> dict[str, Any]:
        for field in self.template.fields:
            if self._frame(field):
                continue
            field = replace(field, opens=self._led(field)) if field.opens is not None else field
            if field.name in REASONING:
                self._reasoning(field)
            elif field.name == CALLS:
                self._calls(field)
            else:
                self._content(field)
        data: dict[str, Any] = {"name": self.name, "title": "A response template", "needs": list(self.needs)}
        if not self.framed:
            # Frames read the turns of a whole prompt by themselves.
            data["turn"] = {"own": [marker(one, "start_anchor") for one in self.template.anchors]}
            for anchor in self.template.anchors:
                if is_special(anchor) and self.owners.envelope(anchor.strip()) is None:
                    self._token(anchor.strip())
        data |= {section: entries for section, entries in self.lists.items() if entries}
        if self.tokens:
            data["control"] = {"tokens": list(self.tokens)}
        if self.render:
            data["render"] = self.render
        data["example"] = examples(data, self.settings)
        return data

    def _put(self, section: str, **entry: Any) -> None:
        self.lists.setdefault(section, []).append({key: value for key, value in entry.items() if value})

    def _need(self, grammar: str) -> None:
        if grammar not in self.owners.always:
            self.needs[grammar] = None

    def _token(self, literal: str) -> None:
        """A control token, unless a shipped file says what it is."""
        owner = self.owners.alone(literal)
        if owner is None:
            self.tokens[literal] = None
        else:
            self._need(owner)

    # -- reasoning and content

    def _frame(self, field: Field) -> bool:
        """Is this field read by the frames of a shipped grammar? Then it comes with them."""
        heads = [next((piece.text for piece in way if piece.kind == "text"), "") for way in field.opens or ()]
        framings = [self.owners.framing(head) for head in heads]
        framing = framings[0] if framings else None
        if framing is None or any(one is not framing for one in framings):
            return False
        wanted = "reasoning" if field.name in REASONING else "call" if field.name == CALLS else "text"
        if any(framing.channel(head) not in (None, wanted) for head in heads):
            raise Unfit(f"{field.key}.open", f"{framing.grammar} reads these messages as something else")
        if field.name == CALLS and field.content != "json":
            raise Unfit(f"{field.key}.content", f"{framing.grammar} reads messages in JSON only")
        self._need(framing.grammar)
        self.render = dict(self.owners.renders[framing.grammar])
        self.settings = self.owners.settings[framing.grammar]
        self.framed = not framing.typed
        return True

    def _led(self, field: Field) -> list[Way]:
        """The openers without a header before them, ``TOKEN author MARKER``, where a shipped file owns the marker."""
        out = []
        for way in field.opens or ():
            kinds = [piece.kind for piece in way]
            if kinds[-2:] == ["run", "text"] and kinds[:-2] in ([], ["text"]) and self.owners.owns(way[-1].text):
                for piece in way[:-2]:
                    self._token(piece.text)
                way = way[-1:]
            out.append(way)
        return out

    def _reasoning(self, field: Field) -> None:
        if field.content != "text" or field.transform is not None:
            raise Unfit(f"{field.key}.content", "reasoning is text, without a transform")
        if field.opens is None:
            raise Unfit(f"{field.key}.open", "reasoning without an opener would take the answer with it")
        begins = any(piece.kind == "start" for way in field.opens for piece in way)
        closes = texts(field.closes or [], f"{field.key}.close")
        labels: dict[str, list[str]] = {}
        for literal in texts(_without_starts(field), f"{field.key}.open", strip=False):
            opener = literal.strip()
            labels.setdefault(literal[len(literal.rstrip()) :], []).append(opener)
        for label, opens in labels.items() or [("", [])]:
            # A template's openers count anywhere, as tokens do.
            self._put("reasoning", open=opens, close=closes, special=True, label=label, begins=begins)

    def _content(self, field: Field) -> None:
        if field.content != "text" or field.transform is not None:
            raise Unfit(f"{field.key}.content", "visible text is text, without a transform")
        for key, found in (("open", field.opens), ("close", field.closes)):
            for literal in texts(found or [], f"{field.key}.{key}"):
                self._token(literal)

    # -- calls

    def _calls(self, field: Field) -> None:
        if field.opens is None:
            raise Unfit(f"{field.key}.open", "calls without an opener are read by the markerless grammars only")
        call = call_of(field)
        opener = Opener(field, call)
        reads = {
            "json": self._json,
            "xml-inline": self._tags,
            "kv-lines": self._lines,
            "python-call-list": self._python,
        }
        if field.content not in reads:
            raise Unfit(f"{field.key}.content", f"{field.content} gives no arguments of a call")
        reads[field.content](field, call, opener)

    def _json(self, field: Field, call: Call | None, opener: Opener) -> None:
        _only(field, _JSON_ARGS)
        quotes = _quotes(field)
        if not opener.header:
            envelope = self._envelope(opener, opener.closes)
            settings = _json_keys(field, call)
            self._body(envelope, "json_call", quotes=quotes, settings=settings)
            if field.each:
                calls = f"{opener.head}[{{calls}}]{opener.close}"
                self._written(opener, "json_call", "{call}", calls=calls, join=", ")
            else:
                self._written(opener, "json_call", f"{opener.head}\n{{call}}\n{opener.close}")
            return
        _captured(field, call, opener, "content")
        if field.args.get("unquoted_keys") and opener.header == "{name}":
            self._loose(opener, quotes)
            return
        owned = self._owned_header(opener)
        if not owned:
            envelope = self._envelope(opener, opener.closes, header=True)
            self._body(envelope, "json_arguments", headed=True, quotes=quotes)
        self._written(opener, "json_arguments", f"{opener.written}{{call}}{opener.close}", join="")

    def _loose(self, opener: Opener, quotes: list[str]) -> None:
        """``call:NAME{…}``, which is one syntax with its object."""
        opener.split("call:")
        envelope = self._envelope(opener, opener.closes)
        self._body(envelope, "loose_object", quotes=quotes)
        self._written(opener, "loose_object", f"{opener.head}{{call}}{opener.close}", join="")
        for quote in quotes:
            if is_special(quote):
                self._token(quote)

    def _owned_header(self, opener: Opener) -> bool:
        """Does a shipped grammar read this opener with its header already?"""
        owner = self.owners.longest(opener.head)
        if owner is None:
            return False
        own, grammar, envelope = owner
        before = opener.head[len(own) :]
        if opener.header.startswith("{id}") and before.rstrip(".").isidentifier():
            before = ""  # a prefix of the id
        template = before + opener.header
        for header, needed in self.owners.headers.get(envelope, ()):
            if template.startswith(header) and (len(template) == len(header) or not header.endswith("}")):
                self._need(grammar)
                self._need(needed)
                return True
        return False

    def _python(self, field: Field, call: Call | None, opener: Opener) -> None:
        _only(field, frozenset())
        if opener.header or (call is not None and (call.name, call.arguments) != ("name", "arguments")):
            raise Unfit(f"{field.key}.transform", "a list of calls holds its names and arguments itself")
        envelope = self._envelope(opener, opener.closes)
        self._body(envelope, "python_call")
        self._written(opener, "python_call", "{call}", calls=f"{opener.head}[{{calls}}]{opener.close}", join=", ")

    def _lines(self, field: Field, call: Call | None, opener: Opener) -> None:
        _only(field, _LINE_ARGS)
        _value_parser(field)
        between, after_key = field.args.get("line_sep", "\n"), field.args.get("kv_sep", ":")
        for key, value in (("line_sep", between), ("kv_sep", after_key)):
            if not isinstance(value, str) or not 0 < len(value) <= 16:
                raise Unfit(f"{field.key}.content_args.{key}", "must be a text of 1 to 16 characters")
        if field.args.get("strip", True) is not True:
            raise Unfit(f"{field.key}.content_args.strip", "lines are always stripped")
        _captured(field, call, opener, "content")
        _closed(field, opener)
        if not opener.tail.strip():
            raise Unfit(
                f"{field.key}.open_pattern", "the name needs a text behind it, else the first key is part of it"
            )
        settings = {"between": between, "after_key": after_key}
        envelope = self._envelope(opener, opener.closes, header=True)
        self._body(envelope, "key_lines", headed=True, settings=settings)
        self._written(opener, "key_lines", f"{opener.written}{{call}}{between}{opener.close}")

    def _tags(self, field: Field, call: Call | None, opener: Opener) -> None:
        _only(field, _XML_ARGS)
        _value_parser(field)
        repeats = bool(field.args.get("merge_duplicates"))
        _captured(field, call, opener, "content")
        _closed(field, opener)
        tag = Tag(field)
        owner = self._owned_tags(opener, tag) if not repeats else None
        if owner is not None:
            self._need(owner)
            for wrapper in opener.wrappers:
                self._wrapper(opener, wrapper)
            before, after = f"{opener.written}\n", opener.inner_close
            form = {"call_open": before, "value": f"{tag.written}\n", "call_close": after}
            written = "{call}"
            if self.owners.renders[owner].get("form", {}).get("call_open") == "":  # the envelope carries the name
                form |= {"call_open": "", "call_close": ""}
                written = before + written + after
            self._written(opener, "tags", written, form=form)
            return
        pair = f"{tag.written}\n"
        owners = self._owned_pairs(opener, tag) if not repeats else []
        if owners:
            for grammar in owners:
                self._need(grammar)
            for wrapper in opener.wrappers:
                self._wrapper(opener, wrapper)
            form = {"head": f"{opener.form.rstrip()}\n", "pair": pair}
            self._written(opener, "pairs", f"{opener.head}{{call}}{opener.close}", form=form)
            return
        headed = bool(opener.tail.strip())
        envelope = self._envelope(opener, opener.closes, header=headed)
        self._put(
            "pairs", envelope=[envelope], order=_BEFORE_BODY, headed=headed, newline=tag.newline, repeats=repeats,
            key_open=tag.key_open, key_close=tag.key_close, value_open=tag.value_open, value_close=tag.value_close,
        )  # fmt: skip
        if headed:
            self._written(opener, "pairs", f"{opener.written}\n{{call}}{opener.close}", form={"head": "", "pair": pair})
        else:
            form = {"head": "{name}\n", "pair": pair}
            self._written(opener, "pairs", f"{opener.head}{{call}}{opener.close}", form=form)

    def _owned_tags(self, opener: Opener, tag: Tag) -> str | None:
        heads = (TAG.fullmatch(opener.head), TAG.fullmatch(tag.key_open[0]))
        if heads[0] is None or heads[1] is None or tag.value_open or not opener.tail.strip().endswith(">"):
            return None
        return self.owners.family(heads[0].group(1), heads[1].group(1))

    def _owned_pairs(self, opener: Opener, tag: Tag) -> list[str]:
        """The shipped grammars that read these pairs in this envelope, with what stands behind the name."""
        envelopes = {self.owners.envelope(head) for head in opener.heads}
        owner = envelopes.pop()
        headers = ("{name}", *(f"{{name}}{one}" for one in opener.separators))
        if envelopes or owner is None or opener.header not in headers:
            return []
        opens = [*tag.key_open, *tag.value_open]
        found = self.owners.pairing(owner[1], opens, bool(tag.value_open), opener.separators)
        return [owner[0], *found] if found else []

    # -- the parts of a call's grammar

    def _envelope(self, opener: Opener, closes: list[str], *, header: bool = False) -> str:
        """State the envelope of these openers, less what a shipped file states. Returns its name."""
        for wrapper in opener.wrappers:
            self._wrapper(opener, wrapper)
        owned = {} if header else {head: self.owners.envelope(head) for head in opener.heads}
        names = {owner[1] for owner in owned.values() if owner is not None}
        if len(names) > 1:
            raise Unfit(f"{opener.key}.open", f"the openers belong to different envelopes: {', '.join(sorted(names))}")
        name = next(iter(names), self.name)
        for owner in owned.values():
            if owner is not None:
                self._need(owner[0])
        opens = [head for head in opener.heads if owned.get(head) is None]
        closes = [one for one in closes if not self.owners.closes(name, one)]
        headers = [opener.header] if header else []
        separators = opener.separators if header else []
        special = [head for head in opens if is_special(head)]
        soft = [head for head in opens if not is_special(head)]
        for heads in (soft, special):
            if heads:
                self._put("envelope", name=name, open=heads, special=heads is special)
        if closes or headers:
            self._put("envelope", name=name, close=closes, headers=headers, separators=separators)
        return name

    def _wrapper(self, opener: Opener, wrapper: str) -> None:
        """A marker around calls that have openers of their own."""
        alone, owner = self.owners.alone(wrapper), self.owners.envelope(wrapper)
        if alone is not None:
            self._need(alone)
            return
        if owner is not None:
            self._need(owner[0])
        name = owner[1] if owner is not None else f"{self.name} wrapper {wrapper}"
        closes = [one for one in opener.wrapper_closes if not self.owners.closes(name, one)]
        opens = [wrapper] if owner is None else []
        if opens or closes:
            self._put("envelope", name=name, open=opens, close=closes, special=bool(opens) and is_special(wrapper))

    def _body(self, envelope: str, syntax: str, **more: Any) -> None:
        self._put("body", envelope=[envelope], syntax=syntax, order=_BEFORE_BODY, **more)

    def _written(self, opener: Opener, body: str, call: str, **more: Any) -> None:
        """How calls are written: the wrapper stands around each, or around all."""
        before, after = opener.wrapper
        if opener.once and before:
            more["calls"] = before + more.get("calls", "{calls}") + after
        else:
            call = before + call + after
        self.render = {"body": body, "call": call, **more}


def _without_starts(field: Field) -> list[Way]:
    """The openers that are more than the start of the response."""
    assert field.opens is not None
    found = [tuple(piece for piece in way if piece.kind != "start") for way in field.opens]
    return [way for way in found if way]


def _only(field: Field, known: frozenset[str]) -> None:
    for key in field.args:
        if key not in known:
            raise Unfit(f"{field.key}.content_args.{str(key)[:60]}", f"{field.content} has no such argument")


def _captured(field: Field, call: Call | None, opener: Opener, arguments: str) -> None:
    """The name must come from the opener, and the body must be the arguments."""
    if not opener.header:
        raise Unfit(f"{field.key}.open_pattern", "captures no name, and the body holds none")
    if call is None or call.arguments != arguments or call.name not in opener.captured:
        raise Unfit(f"{field.key}.transform", "must take the name from the opener and the whole content as arguments")


def _closed(field: Field, opener: Opener) -> None:
    if not opener.closes:
        raise Unfit(
            f"{field.key}.close", f"{field.content} needs a closer: nothing else says where the last value ends"
        )


def _json_keys(field: Field, call: Call | None) -> dict[str, str]:
    """Under which keys the name and the arguments of a call stand in its object."""
    if call is None:
        return {}
    keys = []
    for path in (call.name, call.arguments):
        inner = path if field.each else path.removeprefix("content.") if path.startswith("content.") else ""
        parts = inner.removeprefix("function.").split(".")
        if not inner or len(parts) != 1:
            raise Unfit(f"{field.key}.transform", f"{{{path}}} is no key of the call's object")
        keys.append(parts[0])
    return {} if keys == ["name", "arguments"] else {"name_key": keys[0], "arguments_key": keys[1]}


def _quotes(field: Field) -> list[str]:
    found = field.args.get("string_delims", [])
    key = f"{field.key}.content_args.string_delims"
    if not isinstance(found, list):
        raise Unfit(key, "must be a list of pairs")
    quotes: list[str] = []
    for pair in found:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(one, str) for one in pair):
            raise Unfit(key, "must be a list of pairs")
        if pair[0] != pair[1]:
            raise Unfit(key, "the two quotes of a pair must be the same")
        quotes.append(marker(pair[0], key))
    return quotes


def _value_parser(field: Field) -> None:
    """Values are typed by the tool's schema, which is what these parsers approach."""
    found = field.args.get("value_parser")
    if found is None:
        return
    key = f"{field.key}.content_args.value_parser"
    if not isinstance(found, Mapping):
        raise Unfit(key, "must be a mapping")
    if found.get("name", "text") not in ("text", "json", "int", "float", "bool"):
        raise Unfit(key, "values inside values are not read")
    args = found.get("args", {})
    if not isinstance(args, Mapping) or set(args) - {"allow_non_json", "strip"}:
        raise Unfit(f"{key}.args", "only plain values are read")
