"""A response template -> the content of a grammar file, under the same closed keys: nothing else knows of templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..bodies import BODIES
from ..spellings import is_special
from .owners import Owners
from .patterns import Piece, Unfit, Way, joined, ways
from .shape import CALLS, REASONING, Call, Field, Template, call_of, marker, read, texts

_BEFORE_BODY: Final = 5  # the order of a template's bodies in an envelope that others read too: before them
_NAME_ENDS: Final = "<>{}[]\"'`| \t\r\n"  # what a name in a header cannot hold
_TAG: Final = re.compile(r"(<[^\s<>\"'=]*[\w.-])(?:=|\s+\w+=)[\"']?\Z")  # a tag up to the name that it carries
_JOINT: Final = re.compile(r"(?<=>)(?=<)")  # where one tag ends and another begins
_FENCE: Final = re.compile(r"(?:```+|~~~+)\w*")
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
                if is_special(anchor):
                    self._token(anchor.strip())
        data |= {section: entries for section, entries in self.lists.items() if entries}
        if self.tokens:
            data["control"] = {"tokens": list(self.tokens)}
        if self.render:
            data["render"] = self.render
        data["example"] = _examples(data, self.owners)
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
        self.framed = True
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
        opener = _Opener(field)
        reads = {
            "json": self._json,
            "xml-inline": self._tags,
            "kv-lines": self._lines,
            "python-call-list": self._python,
        }
        if field.content not in reads:
            raise Unfit(f"{field.key}.content", f"{field.content} gives no arguments of a call")
        reads[field.content](field, call, opener)

    def _json(self, field: Field, call: Call | None, opener: _Opener) -> None:
        _only(field, _JSON_ARGS)
        quotes = _quotes(field)
        if opener.header is None:
            envelope = self._envelope(opener, opener.closes)
            settings = _json_keys(field, call)
            self._body(envelope, "json_call", quotes=quotes, settings=settings)
            self._written(opener, "json_call", f"{opener.head}\n{{call}}\n{opener.close}")
            return
        _captured(field, call, opener, "content")
        if field.args.get("unquoted_keys") and not opener.tail:
            self._loose(opener, quotes)
            return
        owned = self._owned_header(opener)
        if not owned:
            envelope = self._envelope(opener, opener.closes, header=True)
            self._body(envelope, "json_arguments", headed=True, quotes=quotes)
        self._written(opener, "json_arguments", f"{opener.written}{{call}}{opener.close}", join="")

    def _loose(self, opener: _Opener, quotes: list[str]) -> None:
        """``call:NAME{…}``, which is one syntax with its object."""
        opener.split("call:")
        envelope = self._envelope(opener, opener.closes)
        self._body(envelope, "loose_object", quotes=quotes)
        self._written(opener, "loose_object", f"{opener.head}{{call}}{opener.close}", join="")
        for quote in quotes:
            if is_special(quote):
                self._token(quote)

    def _owned_header(self, opener: _Opener) -> bool:
        """Does a shipped grammar read this opener with its header already?"""
        owner = self.owners.longest(opener.head)
        if owner is None:
            return False
        own, grammar, envelope = owner
        before = opener.head[len(own) :]
        if opener.header == "id" and before.rstrip(".").isidentifier():
            before = ""  # a prefix of the id
        template = before + f"{{{opener.header}}}" + opener.tail.strip()
        for header, needed in self.owners.headers.get(envelope, ()):
            if template.startswith(header) and (len(template) == len(header) or not header.endswith("}")):
                self._need(grammar)
                self._need(needed)
                return True
        return False

    def _python(self, field: Field, call: Call | None, opener: _Opener) -> None:
        _only(field, frozenset())
        if opener.header is not None or (call is not None and (call.name, call.arguments) != ("name", "arguments")):
            raise Unfit(f"{field.key}.transform", "a list of calls holds its names and arguments itself")
        envelope = self._envelope(opener, opener.closes)
        self._body(envelope, "python_call")
        self._written(opener, "python_call", "{call}", calls=f"{opener.head}[{{calls}}]{opener.close}", join=", ")

    def _lines(self, field: Field, call: Call | None, opener: _Opener) -> None:
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

    def _tags(self, field: Field, call: Call | None, opener: _Opener) -> None:
        _only(field, _XML_ARGS)
        _value_parser(field)
        repeats = bool(field.args.get("merge_duplicates"))
        _captured(field, call, opener, "content")
        _closed(field, opener)
        tag = _Tag(field)
        owner = self._owned_tags(opener, tag) if not repeats else None
        if owner is not None:
            self._need(owner)
            for wrapper in opener.wrappers:
                self._wrapper(opener, wrapper)
            form = {
                "call_open": f"{opener.written}\n",
                "value": f"{tag.written}\n",
                "call_close": opener.inner_close,
            }
            self._written(opener, "tags", "{call}", form=form)
            return
        headed = bool(opener.tail.strip())
        envelope = self._envelope(opener, opener.closes, header=headed)
        self._put(
            "pairs", envelope=[envelope], order=_BEFORE_BODY, headed=headed, newline=tag.newline, repeats=repeats,
            key_open=tag.key_open, key_close=tag.key_close, value_open=tag.value_open, value_close=tag.value_close,
        )  # fmt: skip
        pair = f"{tag.written}\n"
        if headed:
            self._written(opener, "pairs", f"{opener.written}\n{{call}}{opener.close}", form={"head": "", "pair": pair})
        else:
            form = {"head": "{name}\n", "pair": pair}
            self._written(opener, "pairs", f"{opener.head}{{call}}{opener.close}", form=form)

    def _owned_tags(self, opener: _Opener, tag: _Tag) -> str | None:
        heads = (_TAG.fullmatch(opener.head), _TAG.fullmatch(tag.key_open[0]))
        if heads[0] is None or heads[1] is None or tag.value_open or not opener.tail.strip().endswith(">"):
            return None
        return self.owners.family(heads[0].group(1), heads[1].group(1))

    # -- the parts of a call's grammar

    def _envelope(self, opener: _Opener, closes: list[str], *, header: bool = False) -> str:
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
        headers = [f"{{{opener.header}}}{opener.tail.strip()}"] if header else []
        separators = [opener.tail.strip()] if header and opener.tail.strip() else []
        special = [head for head in opens if is_special(head)]
        soft = [head for head in opens if not is_special(head)]
        for heads in (soft, special):
            if heads:
                self._put("envelope", name=name, open=heads, special=heads is special)
        if closes or headers:
            self._put("envelope", name=name, close=closes, headers=headers, separators=separators)
        return name

    def _wrapper(self, opener: _Opener, wrapper: str) -> None:
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

    def _written(self, opener: _Opener, body: str, call: str, **more: Any) -> None:
        """How calls are written: the wrapper stands around each, or around all."""
        before, after = opener.wrapper
        if opener.once and before:
            more["calls"] = before + more.get("calls", "{calls}") + after
        else:
            call = before + call + after
        self.render = {"body": body, "call": call, **more}


class _Opener:
    """The opener of calls: wrappers, markers, and a header with a name, from all its ways."""

    def __init__(self, field: Field) -> None:
        assert field.opens is not None
        self.key = field.key
        self.wrappers: list[str] = []
        self.heads: list[str] = []
        self.header: str | None = None
        self.tail = ""
        self.once = False  # the wrapper stands around all calls, not around each
        shapes = set()
        for way in field.opens:
            stages, core = _split(_stages(way))
            if not core or core[0].kind != "text":
                raise Unfit(f"{self.key}.open_pattern", "must begin with a literal")
            head, header, tail = self._core(core)
            for stage in stages:
                _add(self.wrappers, self._literal(stage))
            _add(self.heads, marker(head, f"{self.key}.open"))
            shapes.add((header, tail))
            self.once = self.once or not stages
        if len(shapes) != 1:
            raise Unfit(f"{self.key}.open_pattern", "its alternatives hold different headers")
        ((self.header, self.tail),) = shapes
        self.inner_closes: list[str] = []
        self.wrapper_closes: list[str] = []
        for way in field.closes or []:
            self._close([stage for stage in _stages(way) if stage], f"{self.key}.close")

    def _core(self, core: Way) -> tuple[str, str | None, str]:
        """The marker, the field of the header and the text behind it."""
        head, rest = core[0].text, core[1:]
        if not rest:
            return head.strip(), None, ""
        field, behind = rest[0], [piece for piece in rest[1:] if piece.kind != "gap"]
        if field.kind != "field":
            raise Unfit(f"{self.key}.open_pattern", "holds free text that is no captured name")
        header = "id" if "name" in field.inside or (field.text == "id" and not field.inside) else field.text
        if header not in ("name", "id"):
            raise Unfit(f"{self.key}.open_pattern", f"the group {field.text!r} is neither name nor id")
        if [piece.kind for piece in behind[:2]] == ["text", "run"] and behind[0].text in (":", "."):
            header, behind = "id", behind[2:]  # the name is followed by an index
        if len(behind) > 1 or (behind and behind[0].kind != "text"):
            raise Unfit(f"{self.key}.open_pattern", "holds free text behind the name")
        tail = behind[0].text if behind else ""
        if tail.strip() and tail[0] not in _NAME_ENDS:
            raise Unfit(f"{self.key}.open_pattern", f"{tail[:20]!r} could be part of the name before it")
        if len(tail.strip().encode()) > 64:
            raise Unfit(f"{self.key}.open_pattern", "the text behind the name is longer than a marker")
        if _FENCE.fullmatch(tail.strip()):
            tail = f"\n{tail.strip()}\n"
        return head.lstrip(), header, tail

    def _close(self, stages: list[Way], key: str) -> None:
        texts_ = [self._literal(stage) for stage in stages if any(piece.kind == "text" for piece in stage)]
        if not texts_:
            return  # the end of the response, or a text that only follows
        closes_wrapper = len(texts_) == 1 and any(
            texts_[0] == wrapper[:1] + "/" + wrapper[1:] for wrapper in self.wrappers
        )
        if closes_wrapper:
            _add(self.wrapper_closes, marker(texts_[0], key))
            return
        _add(self.inner_closes, marker(texts_[0], key))
        for text in texts_[1:]:
            _add(self.wrapper_closes if self.wrappers else self.inner_closes, marker(text, key))

    def _literal(self, stage: Way) -> str:
        if len(stage) != 1 or stage[0].kind != "text":
            raise Unfit(f"{self.key}.open_pattern", "holds free text between two literals")
        return stage[0].text.strip()

    def split(self, word: str) -> None:
        """Leave a word at the end of the markers to the body."""
        self.heads = [marker(head.removesuffix(word).rstrip(), f"{self.key}.open_pattern") for head in self.heads]
        self.header = None

    @property
    def head(self) -> str:
        """The marker that is written."""
        return self.heads[0]

    @property
    def closes(self) -> list[str]:
        """The closers of the call itself."""
        return self.inner_closes or self.wrapper_closes

    @property
    def written(self) -> str:
        """The marker with its header."""
        index = ":{index}" if self.header == "id" else ""
        return f"{self.head}{{name}}{index}{self.tail}"

    @property
    def inner_close(self) -> str:
        """The closer of the call's own tag, also where the pattern only knows that of the wrapper."""
        if self.inner_closes:
            return self.inner_closes[0]
        tag = _TAG.fullmatch(self.head)
        return f"</{tag.group(1)[1:]}>" if tag is not None else self.close

    @property
    def close(self) -> str:
        """The closer that is written."""
        return self.closes[0] if self.closes else ""

    @property
    def wrapper(self) -> tuple[str, str]:
        """What is written around a call, or around all of them."""
        if not self.wrappers:
            return "", ""
        return f"{self.wrappers[0]}\n", "".join(f"\n{close}" for close in self.wrapper_closes[:1])


class _Tag:
    """The literals of a tag pattern: around the key, and around the value."""

    def __init__(self, field: Field) -> None:
        key = f"{field.key}.content_args.tag_pattern"
        pattern = field.args.get("tag_pattern")
        if not isinstance(pattern, str):
            raise Unfit(key, "must be a pattern with the groups key and value")
        from_ways = _delimiter_ways(pattern, key)
        self.key_open: list[str] = []
        self.key_close: list[str] = []
        self.value_open: list[str] = []
        self.value_close: list[str] = []
        self.newline = False
        for way in from_ways:
            self._add(way, key)

    def _add(self, way: Way, key: str) -> None:
        kinds = [piece.text if piece.kind == "field" else piece.kind for piece in way]
        if kinds.count("key") != 1 or kinds.count("value") != 1 or kinds.index("key") > kinds.index("value"):
            raise Unfit(key, "must have the groups key and value, in this order")
        at, to = kinds.index("key"), kinds.index("value")
        around = (way[:at], way[at + 1 : to], way[to + 1 :])
        for pieces in around:
            if any(piece.kind not in ("text", "gap") for piece in pieces):
                raise Unfit(key, "holds free text outside of its key and value")
        self.newline = self.newline or any(
            piece.kind == "gap" or piece.text != piece.text.strip() for piece in (*around[1][-1:], *around[2][:1])
        )
        opens, between, closes = ([piece.text for stage in _stages(pieces) for piece in stage] for pieces in around)
        between = [text for joint in between for text in _JOINT.split(joint)]
        if len(opens) != 1 or len(between) not in (1, 2) or len(closes) != 1:
            raise Unfit(key, "must be one literal before the key, one or two behind it, and one behind the value")
        _add(self.key_open, marker(opens[0].strip(), key))
        _add(self.key_close, between[0].strip())
        if len(between) == 2:
            _add(self.value_open, marker(between[1].strip(), key))
        _add(self.value_close, marker(closes[0].strip(), key))

    @property
    def written(self) -> str:
        """One parameter as it is written."""
        edge = "\n" if self.newline else ""
        opens = "".join(self.value_open[:1])
        close = next((one for one in self.key_close if "true" in one), self.key_close[0])
        if close.replace("true", "false") in self.key_close:
            close = close.replace("true", "{string}")  # which says whether the value is a string
        return f"{self.key_open[0]}{{key}}{close}{opens}{edge}{{value}}{edge}{self.value_close[0]}"


def _delimiter_ways(pattern: str, key: str) -> list[Way]:
    try:
        return ways(pattern)
    except Unfit as error:
        raise Unfit(key, error.problem) from None


def _stages(way: Way) -> list[Way]:
    """The way cut at its gaps, and where a text holds a newline; what only follows or ends is left out."""
    stages: list[list[Piece]] = [[]]
    for piece in way:
        if piece.kind in ("end", "ahead", "start"):
            continue
        if piece.kind == "gap":
            stages.append([])
        elif piece.kind == "text" and "\n" in piece.text.strip():
            first, *others = [line for line in piece.text.strip().split("\n") if line.strip()]
            stages[-1].append(Piece("text", first.strip()))
            stages += [[Piece("text", line.strip())] for line in others]
        else:
            stages[-1].append(piece)
    out: list[Way] = []
    for stage in stages:
        if not stage:
            continue
        if out and stage[0].kind != "text":
            out[-1] = joined([*out[-1], *stage])  # a name belongs to the text before the blanks
        else:
            out.append(joined(stage))
    return out


def _split(stages: list[Way]) -> tuple[list[Way], Way]:
    """The stages before the opener itself, and that one: from the first with a captured name on, or else the last."""
    named = [any(piece.kind == "field" for piece in stage) for stage in stages]
    at = named.index(True) if True in named else max(len(stages) - 1, 0)
    return stages[:at], joined(piece for stage in stages[at:] for piece in stage)


def _add(to: list[str], text: str) -> None:
    if text not in to:
        to.append(text)


def _without_starts(field: Field) -> list[Way]:
    """The openers that are more than the start of the response."""
    assert field.opens is not None
    found = [tuple(piece for piece in way if piece.kind != "start") for way in field.opens]
    return [way for way in found if way]


def _only(field: Field, known: frozenset[str]) -> None:
    for key in field.args:
        if key not in known:
            raise Unfit(f"{field.key}.content_args.{str(key)[:60]}", f"{field.content} has no such argument")


def _captured(field: Field, call: Call | None, opener: _Opener, arguments: str) -> None:
    """The name must come from the opener, and the body must be the arguments."""
    if opener.header is None:
        raise Unfit(f"{field.key}.open_pattern", "captures no name, and the body holds none")
    if call is None or call.arguments != arguments or call.name not in ("name", "id"):
        raise Unfit(f"{field.key}.transform", "must take the name from the opener and the whole content as arguments")


def _closed(field: Field, opener: _Opener) -> None:
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
        _add(quotes, marker(pair[0], key))
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


def _examples(data: Mapping[str, Any], owners: Owners) -> list[dict[str, Any]]:
    """Worked examples made from the form, so that the compiled grammar can be checked like any other."""
    out: list[dict[str, Any]] = []
    begins = any(one.get("begins") for one in data.get("reasoning", ()))
    for one in data.get("reasoning", ()):
        if one.get("close") and one.get("open") and not begins:
            text = f"{one['open'][0]}Which?{one['close'][0]}Noon."
            out.append({"title": "reasoning", "text": text, "reasoning": "Which?", "visible": "Noon.", "calls": []})
    render = data.get("render", {})
    if render:
        lead = next((one["close"][0] for one in data.get("reasoning", ()) if begins and one.get("close")), "")
        text = lead + _call_text(data, render)
        call = {"name": "find", "arguments": {"q": "rook"}}
        cut = text[: text.index("rook") + 2]
        out.append({"title": "a call", "text": text, "calls": [call]})
        out.append({"title": "a cut call", "text": cut, "finish": "length", "calls": [], "rejected": ["truncated"]})
    if not out:
        out.append({"title": "text", "text": "Noon.", "visible": "" if begins else "Noon.", "calls": []})
    return out


def _call_text(data: Mapping[str, Any], render: Mapping[str, Any]) -> str:
    """One call as the form writes it."""
    settings: dict[str, Any] = {"form": render.get("form", {})}
    for one in data.get("body", ()):
        settings |= {**one.get("settings", {}), **{key: one[key] for key in ("quotes",) if key in one}}
    body = BODIES[render["body"]].write("find", {"q": "rook"}, settings)
    text = str(render.get("call", "{call}")).replace("{name}", "find").replace("{index}", "0").replace("{call}", body)
    return str(render.get("calls", "{calls}")).replace("{calls}", text)
