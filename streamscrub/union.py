"""The union of several grammars as ``Tables``. An opener leads to one envelope, and other files add bodies to it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from .attributes import TagEnd, ending_by
from .blocks import Envelope, Use
from .bodies import BODIES
from .bodies.nested import Elements
from .bodies.pairs import Pairs
from .bodies.tag_syntax import Tags
from .fileforms import FRAMED
from .frames import Frame
from .grammar import Grammar, GrammarError, find, with_needed
from .reading import NOTHING, Around
from .sentinels import Sentinels, joined, sentinels
from .spellings import bars, is_special, spelled
from .tables import Kind, Line, Role, Sigil, Tables

if TYPE_CHECKING:
    from pathlib import Path

_BLANKS: Final = "{blanks}"
_FENCES: Final = ("```", "~~~")  # as closers these are known to the machine
_STOPS: Final = 3  # bytes of a marker in the pattern that text is scanned with, the largest of all
_OPENERS: Final = (Kind.OPEN, Kind.TAG, Kind.WRAP, Kind.FRAME, Kind.TURN, Kind.SIGIL)


@dataclass(slots=True)
class _Entry:
    """An envelope as the files add to it."""

    open: list[tuple[str, Mapping[str, Any], Grammar]] = field(default_factory=list)
    close: list[tuple[str, bool]] = field(default_factory=list)  # and whether it is a token
    headers: list[str] = field(default_factory=list)
    separators: list[str] = field(default_factory=list)
    bodies: list[tuple[int, Mapping[str, Any], Grammar]] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    declared: bool = False  # a file says what it is; else bodies only hope for it


@dataclass(slots=True)
class _Family:
    """Tags that share their words and differ in the sigils before them, such as namespaces."""

    grammar: Grammar
    sigils: list[tuple[str, str]] = field(default_factory=list)
    call: list[str] = field(default_factory=list)
    key: list[Mapping[str, Any]] = field(default_factory=list)
    wrapper: list[str] = field(default_factory=list)
    special: bool = False
    escaped: bool = False
    syntax: str = "tags"
    tag_end: tuple[bytes, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """What stands before a tag's word, in openers and closers; special tags may have a blank there."""
        spaced = self.special and not any(_BLANKS in sigil for pair in self.sigils for sigil in pair)
        gaps = ("", " ") if spaced else ("",)
        return [(opens + gap, closes + gap) for opens, closes in self.sigils for gap in gaps]

    @property
    def starts(self) -> list[tuple[str, str]]:
        """What any tag starts with, openers and closers."""
        return [(opens.removesuffix(_BLANKS), closes.removesuffix(_BLANKS)) for opens, closes in self.sigils]

    @property
    def ending(self) -> TagEnd:
        """How its tags end."""
        return ending_by(self.tag_end, _encode(start for pair in self.starts for start in pair) if self.tag_end else ())

    def opening(self, words: Iterable[str]) -> Iterator[str]:
        """All openers of these words."""
        return (opens + word for opens, _ in self.pairs for word in words)

    def closing(self, words: Iterable[str]) -> Iterator[str]:
        """All closers of these words."""
        return (closes + word for _, closes in self.pairs for word in words)

    @property
    def keys(self) -> list[str]:
        """The words of its parameters."""
        return [key["name"] for key in self.key]


@dataclass(slots=True)
class _Framing:
    """A framed format as the files add to it."""

    grammar: Grammar
    data: dict[str, Any] = field(default_factory=dict)
    # Syntax, grammar and family of tags of what a call's message holds; what a header calls those of a grammar.
    bodies: list[tuple[str, str, str]] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)


class _Union:
    """Collects what the files say, gives every marker its role, and compiles what the roles lead to."""

    def __init__(self, grammars: tuple[Grammar, ...], model: str | None, chosen: bool) -> None:
        self.grammars = grammars
        self.model = model
        self.chosen = chosen  # the caller named them
        self.roles: dict[bytes, Role] = {}
        self.entries: dict[str, _Entry] = {}
        self.families: dict[str, _Family] = {}
        self.pairs: dict[str, dict[str, list[str]]] = {}
        self.frames: dict[str, _Framing] = {}
        # The grammars that have a table of their own, to which others add.
        self.owners = {
            section: [grammar.name for grammar in grammars if _owns(grammar, section)]
            for section in ("tags", "pairs", "frame")
        }
        self.lines: list[tuple[int, Line]] = []
        self.quotes: tuple[str, ...] = ()
        self.ends: set[bytes] = set()  # tokens that end a section which the prompt opened
        self.inside: list[Role] = []  # of the markers that count inside a block
        self.kinds: dict[tuple[Kind, ...], Sentinels] = {}
        self.own: list[str] = []  # what stands before the model's own turn

    def build(self) -> Tables:
        for grammar in self.grammars:
            self._collect(grammar)
        for grammar in self.grammars:
            self._settle_names(grammar)
            self._standing_alone(grammar)
        for name, family in self.families.items():
            self._tag_roles(name, family)
        for name, entry in self.entries.items():
            self._envelope_roles(name, entry)
        for grammar in self.grammars:
            # The closers of pairs are no text where they stand alone.
            for one in grammar.reads.get("pairs", ()):
                for literal in (*one.get("key_close", ()), *one.get("value_close", ())):
                    if literal.startswith("</"):
                        self._add(Kind.CLOSE, literal, is_special(literal), grammar)
        for name, framing in self.frames.items():
            self._frame_roles(name, framing)
        bodies = [body for entry in self.entries.values() for _, body, _ in entry.bodies]
        # A quote token is a marker where it stands alone, but none inside a block or a result.
        self.quotes = tuple(sorted({quote for body in bodies for quote in body.get("quotes", ())}))
        self.inside = [role for role in self.roles.values() if role.literal.decode() not in self.quotes]
        marks = self._of(*Kind)
        tables = Tables(
            marks=marks,
            special=_exact(role for role in self.roles.values() if role.special and role.kind in _OPENERS),
            specials=_exact(role for role in self.inside if role.special),
            stop=re.compile(rb"\n|`|~|<(?=[A-Za-z_]|\Z)|" + marks.within(_STOPS)),
            lead=_lead(marks),
            own=_encode(dict.fromkeys(self.own)),
            ends=frozenset(self.ends),
        )
        self._targets(tables)
        sections = list(self._all("reasoning"))
        # Beside others a grammar cannot say how every response begins, so it has to be chosen.
        tables.opened = (self.chosen and any(one.get("begins") for one in sections)) or any(
            self.model is not None and grammar.opens(self.model) for grammar in self.grammars
        )
        tables.label = next((str(one["label"]).encode() for one in sections if "label" in one), b"")
        return tables

    def _add(self, kind: Kind, literal: str, special: bool, grammar: Grammar, target: Any = None, **more: Any) -> None:
        """Give a marker its role. Raises ``GrammarError`` if two files open different calls with it."""
        raw = literal.encode()
        key = raw if special else raw.lower()
        old = self.roles.get(key)
        calls = (Kind.OPEN, Kind.TAG)
        for other in (old, self._spelled_otherwise(key, bool(more.get("attributes")))):
            if other is not None and other.kind in calls and kind in calls and other.target != target:
                owner = f"opens calls of {other.grammar} already: list it in needs"
                hint = f" and name its envelope {other.target!r} in a [[body]]" if other.kind is Kind.OPEN else ""
                raise GrammarError(grammar.file, literal, owner + hint)
        if old is not None and (old.kind < kind or (old.kind == kind and (old.special or not special))):
            return
        self.roles[key] = Role(kind, key, special, grammar.name, target, **more)

    def _spelled_otherwise(self, key: bytes, attributes: bool) -> Role | None:
        """The same tag, of which one file says that it may carry attributes and another that it may not."""
        other = self.roles.get(key + b">" if attributes else key.removesuffix(b">"))
        return other if other is not None and other.attributes != attributes else None

    def _of(self, *kinds: Kind) -> Sentinels:
        """The markers of these kinds, once all roles are known."""
        if kinds not in self.kinds:
            self.kinds[kinds] = _sentinels(role for role in self.roles.values() if role.kind in kinds)
        return self.kinds[kinds]

    def _all(self, section: str) -> Iterator[Mapping[str, Any]]:
        """The tables of this section in all files."""
        return (one for grammar in self.grammars for one in grammar.reads.get(section, ()))

    def _spoken(self, grammar: Grammar) -> bool:
        """Does the model speak this grammar?"""
        return self.model is not None and grammar.speaks(self.model)

    # -- what the files say

    def _collect(self, grammar: Grammar) -> None:
        data = grammar.reads
        for one in data.get("envelope", ()):
            entry = self.entries.setdefault(one["name"], _Entry())
            entry.declared = True
            special = bool(one.get("special"))
            entry.open += [
                (word, one, grammar) for literal in one.get("open", ()) for word in spelled(literal, special)
            ]
            entry.close += [
                (word, bool(one.get("special", is_special(word))))
                for literal in one.get("close", ())
                for word in spelled(literal, special)
            ]
            entry.headers += one.get("headers", ())
            entry.separators += one.get("separators", ())
            entry.flags |= {
                key for key in ("chains", "fenced", "from_last", "special", "demand", "shared") if one.get(key)
            }
        for place, one in enumerate(data.get("body", ())):
            for name in one["envelope"]:
                entry = self.entries.setdefault(name, _Entry())
                entry.headers += one.get("headers", ())
                entry.separators += one.get("separators", ())
                entry.bodies.append((one.get("order", 100 + place), one, grammar))
        for one in data.get("pairs", ()):
            literals = self.pairs.setdefault(one.get("of", grammar.name), {})
            for key, words in one.items():
                if key.endswith(("_open", "_close", "separator")):
                    literals.setdefault(key, []).extend(words)
            settings = {"styles": {b"": {"newline": bool(one.get("newline"))}}, "repeats": bool(one.get("repeats"))}
            body = {"syntax": "pairs", "literals": literals, "headed": one.get("headed"), "settings": settings}
            for name in one.get("envelope", ()):
                self.entries.setdefault(name, _Entry()).bodies.append((one.get("order", 50), body, grammar))
        for one in data.get("tags", ()):
            family = self.families.setdefault(one.get("of", grammar.name), _Family(grammar))
            if "of" not in one:
                family.grammar = grammar
            for opens, closes in one.get("sigils", ()):
                both = (bars(opens), bars(closes)) if one.get("spelling") == "bars" else ([opens], [closes])
                if len(both[0]) != len(both[1]):
                    raise GrammarError(grammar.file, "tags.sigils", f"{opens!r} and {closes!r} differ in their bars")
                family.sigils += zip(*both, strict=True)
            family.call += one.get("call", ())
            family.key += one.get("key", ())
            family.wrapper += one.get("wrapper", ())
            family.special = family.special or bool(one.get("special"))
            family.escaped = family.escaped or bool(one.get("escaped"))
            family.syntax = one.get("syntax", family.syntax)
            family.tag_end += _encode(one.get("tag_end", ()))
        if "frame" in data:
            self._collect_frame(grammar, data["frame"])

    def _collect_frame(self, grammar: Grammar, data: Mapping[str, Any]) -> None:
        framing = self.frames.setdefault(data.get("of", grammar.name), _Framing(grammar))
        if "of" not in data:
            framing.grammar = grammar
        for key, value in data.items():
            if isinstance(value, list) and key != "bodies":
                framing.data.setdefault(key, []).extend(value)
            else:
                framing.data[key] = value
        family = next((one["of"] for one in grammar.reads.get("tags", ()) if "of" in one), grammar.name)
        framing.bodies += [(syntax, grammar.name, family) for syntax in data.get("bodies", ())]
        if "type" in data:
            framing.types[data["type"]] = grammar.name

    def _settle_names(self, grammar: Grammar) -> None:
        """A body and a fence need an envelope that some file declares; what adds to a table needs that table."""
        wanted = [
            (f"{key}.envelope", one["envelope"])
            for key in ("body", "pairs")
            for one in grammar.reads.get(key, ())
            if "envelope" in one
        ]
        wanted += [("fence.envelope", [one["envelope"]]) for one in grammar.reads.get("fence", ()) if "envelope" in one]
        known = sorted(name for name, entry in self.entries.items() if entry.declared)
        for key, names in wanted:
            if names and not set(names) & set(known):
                near = difflib.get_close_matches(names[0], known, 1)
                hint = f", did you mean {near[0]}?" if near else "; list the file that has it in needs"
                raise GrammarError(grammar.file, key, f"no [[envelope]] here is named {names[0]!r}{hint}")
        added = [(section, one) for section in ("tags", "pairs") for one in grammar.reads.get(section, ())]
        added += [("frame", grammar.reads["frame"])] if "frame" in grammar.reads else []
        owners = [(section, f"{section}.of", one["of"]) for section, one in added if "of" in one]
        owners += [
            ("tags", "body.settings.of", one.get("settings", {}).get("of", grammar.name))
            for one in grammar.reads.get("body", ())
            if BODIES[one["syntax"]].table == "tags"
        ]
        for section, key, owner in owners:
            if owner not in self.owners[section]:
                near = difflib.get_close_matches(owner, self.owners[section], 1)
                hint = f", did you mean {near[0]}?" if near else "; list it in needs"
                raise GrammarError(grammar.file, key, f"no grammar here named {owner!r} has [[{section}]]{hint}")

    # -- roles

    def _standing_alone(self, grammar: Grammar) -> None:
        """Markers that need no envelope: sections, reasoning, control tokens, turns, results."""
        data = grammar.reads

        def add(kind: Kind, literals: Iterable[str], special: bool, target: Any = None) -> None:
            for literal in literals:
                for word in spelled(literal, special):
                    self._add(kind, word, special, grammar, target)

        for one in data.get("section", ()):
            add(Kind.WRAP, one.get("open", ()), bool(one.get("special")))
            add(Kind.UNWRAP, one.get("close", ()), bool(one.get("special")))
        for one in data.get("reasoning", ()):
            if not one.get("needs_model") or self._spoken(grammar):
                add(Kind.THINK, one.get("open", ()), bool(one.get("special")), one)
                add(Kind.UNTHINK, one.get("close", ()), bool(one.get("special")))
                add(Kind.CONTROL, one.get("ends", ()), True)
                if self.chosen or self._spoken(grammar):
                    self.ends |= set(_encode(one.get("ends", ())))
        add(Kind.CONTROL, data.get("control", {}).get("tokens", ()), True)
        add(Kind.CONTROL, data.get("control", {}).get("after_markup", ()), False)
        for one in data.get("answer", ()):
            add(Kind.ANSWER, one.get("open", ()), bool(one.get("special")), "open")
            add(Kind.ANSWER, one.get("close", ()), bool(one.get("special")), "close")
        add(Kind.TURN, data.get("turn", {}).get("open", ()), True)
        self.own += data.get("turn", {}).get("own", ())
        for one in data.get("result", ()):
            special = bool(one.get("special"))
            closers = _encode(one.get("close", ()))
            if one.get("after_call"):
                self.lines += [(90, Line("result", grammar.name, literal)) for literal in one.get("open", ())]
            else:
                target = sentinels(closers) if special else sentinels((), closers)
                add(Kind.RESULT, one.get("open", ()), special, target)
            add(Kind.CLOSE, one.get("close", ()), special, "result")

    def _tag_roles(self, name: str, family: _Family) -> None:
        special, grammar = family.special, family.grammar
        for literal in family.opening(family.call):
            self._add(Kind.TAG, literal, special, grammar, name)
        ending = family.ending
        for literal in family.opening(family.keys):
            self._add(Kind.KEY, literal, special, grammar, Sigil(ending, False, None) if special else None)
        for literal in family.closing([*family.call, *family.keys]):
            self._add(Kind.CLOSE, literal, special, grammar)
        if special:
            # Every tag of a special syntax is markup, whatever its word.
            for literal in family.opening(family.wrapper):
                self._add(Kind.SIGIL, literal, True, grammar, Sigil(ending, False, True))
            for literal in family.closing(family.wrapper):
                self._add(Kind.SIGIL, literal, True, grammar, Sigil(ending, True, False))
            for opens, closes in family.starts:
                self._add(Kind.SIGIL, opens, True, grammar, Sigil(ending, False, None))
                self._add(Kind.SIGIL, closes, True, grammar, Sigil(ending, True, None))

    def _envelope_roles(self, name: str, entry: _Entry) -> None:
        for literal, one, grammar in entry.open:
            attributes = bool(one.get("attributes"))
            word = literal.removesuffix(">") if attributes else literal
            unclosed = str(one.get("unclosed", "")).encode()
            special = bool(one.get("special"))
            self._add(Kind.OPEN, word, special, grammar, name, attributes=attributes, unclosed=unclosed)
        owner = entry.open[0][2] if entry.open else self.grammars[0]
        for literal, special in entry.close:
            if literal not in _FENCES:
                self._add(Kind.CLOSE, literal, special, owner)

    def _frame_roles(self, name: str, framing: _Framing) -> None:
        frame = Frame.read(name, framing.data)
        for token in frame.openers:
            self._add(Kind.FRAME, token.decode(), True, framing.grammar, name)
        for token in frame.others:
            self._add(Kind.CONTROL, token.decode(), True, framing.grammar)

    # -- what the roles lead to

    def _targets(self, tables: Tables) -> None:
        leaks = tuple(role.literal.decode() for role in self.inside if role.special or role.kind is Kind.CLOSE)
        common = {"leaks": leaks, "quotes": self.quotes}
        control = _exact(role for role in self.inside if role.special and role.kind is Kind.CONTROL)
        calls = self._of(Kind.OPEN, Kind.TAG)
        quotes = sentinels(_encode(self.quotes))
        plain = Around(NOTHING, _sentinels(self.inside), tables.special, quotes, control, calls)
        parameters = self._parameters()
        families = {name: self._tags(family, plain, *parameters) for name, family in self.families.items()}
        uses = {}
        for name, settings in families.items():
            around = replace(plain, close=settings["tags"].call_close)
            uses[name] = Use(BODIES[self.families[name].syntax], name, {**common, **settings, "around": around})
        envelopes = {name: self._envelope(name, entry, plain, common, families) for name, entry in self.entries.items()}
        inner = self._of(Kind.OPEN, Kind.TAG)
        for name, framing in self.frames.items():
            frame = Frame.read(name, framing.data)
            around = replace(plain, close=sentinels(frame.ends))
            settings = {**common, "around": around}
            reads = []
            for syntax, grammar, family in sorted(framing.bodies, key=lambda body: FRAMED.index(body[0])):
                more = {**families[family], "demanding": True} if syntax == "tags" else {}
                reads.append(Use(BODIES[syntax], grammar, {**settings, **more}))
            tables.frames += (frame.bound(around, inner, tuple(reads), framing.types),)
            if self._spoken(framing.grammar):
                tables.stripped = frame.name
        frames = {frame.name: frame for frame in tables.frames}
        targets: dict[Kind, Mapping[str, Any]] = {Kind.OPEN: envelopes, Kind.TAG: uses, Kind.FRAME: frames}
        for key, role in self.roles.items():
            found = targets.get(role.kind)
            tables.roles[key] = role if found is None else role.bound(found[role.target])
        closers = _exact(role for role in self.roles.values() if _ends_section(role))
        within = replace(plain, close=closers)
        inside = {**common, "around": within}
        for role in self.roles.values():
            if role.kind is Kind.WRAP or (role.kind is Kind.SIGIL and role.target.section):
                use = Use(BODIES["json_call"], role.grammar, inside)
                tables.sections[role.grammar] = Envelope(role.grammar, within, (use,), closes=False)
        tables.headed = any(envelope.shared for envelope in envelopes.values())
        self._forms(tables, envelopes)

    def _forms(self, tables: Tables, envelopes: Mapping[str, Envelope]) -> None:
        """Lines, fences and elements."""
        for grammar in self.grammars:
            for place, one in enumerate(grammar.reads.get("line", ())):
                for start in one.get("start", ("",)):
                    line = Line(one["syntax"], grammar.name, start, one.get("then", ""), tuple(one.get("others", ())))
                    self.lines.append((one.get("order", 100 + place), line))
            for one in grammar.reads.get("fence", ()):
                for language in one["languages"]:
                    if "envelope" in one:
                        tables.fences[language] = envelopes[one["envelope"]]
                    elif self.chosen or one["reads"] == "result" or self._spoken(grammar):
                        # An ordinary word: a fence of reasoning needs to be expected.
                        tables.fences[language] = one["reads"]
            if "elements" in grammar.reads:
                tables.reserved = frozenset(grammar.reads["elements"]["reserved"])
        tables.lines = tuple(line for _, line in sorted(self.lines, key=lambda pair: pair[0]))
        tables.words = sentinels(_encode({line.start for line in tables.lines if line.start}))
        tables.bare = envelopes.get("bare")

    def _parameters(self) -> tuple[Sentinels, Sentinels, Mapping[bytes, Mapping[str, Any]]]:
        """The parameters of all families: what opens and closes them, and how the text behind each opener is taken."""
        opens: tuple[set[bytes], set[bytes]] = (set(), set())
        closes: tuple[set[bytes], set[bytes]] = (set(), set())
        styles: dict[bytes, Mapping[str, Any]] = {}
        for family in self.families.values():
            for key in family.key:
                style = {name: value for name, value in key.items() if name != "name"}
                for opener in _encode(family.opening([key["name"]])):
                    opens[not family.special].add(opener)
                    styles.setdefault(opener.lower(), style)
                closes[not family.special].update(_encode(family.closing([key["name"]])))
        return sentinels(*map(tuple, opens)), sentinels(*map(tuple, closes)), styles

    def _tags(
        self,
        family: _Family,
        plain: Around,
        all_open: Sentinels,
        all_close: Sentinels,
        all_styles: Mapping[bytes, Mapping[str, Any]],
    ) -> dict[str, Any]:
        """The settings of the tags body for one family."""

        def made(words: Iterable[str]) -> Sentinels:
            raw = _encode(words)
            return sentinels(raw) if family.special else sentinels((), raw)

        call_open, call_close = made(family.opening(family.call)), made(family.closing(family.call))
        key_open, key_close = made(family.opening(family.keys)), made(family.closing(family.keys))
        # Soft tags stand in the envelopes of others, so their closers end a run of tags as well.
        envelopes = [
            literal.removesuffix(">")
            for entry in self.entries.values()
            for literal, special in entry.close
            if literal.startswith("</") and not special
        ]
        wrapper_close = made([*family.closing(family.wrapper), *(() if family.special else envelopes)])
        for framing in self.frames.values():
            # The end of a message ends what it holds.
            if any(syntax == "tags" and of == family.grammar.name for syntax, _, of in framing.bodies):
                wrapper_close = joined(wrapper_close, sentinels(_encode(framing.data.get("ends", ()))))
        openers = self._of(Kind.OPEN, Kind.TAG)
        special = plain.special.exact
        own = {*call_open.exact, *(opens.encode() for opens, _ in (*family.sigils, *family.starts))}
        foreign = sentinels(tuple(word for word in special if word not in own))
        # Where tags are tokens, one without a word that is known does not show that a value has ended.
        bare = {start.encode() for start, _ in family.starts} if family.tag_end else set()
        followers = sentinels(tuple(word for word in special if word not in bare))
        strange_open, strange_close = _without(all_open, key_open), _without(all_close, key_close)
        after = joined(followers, key_open, strange_open, call_close, wrapper_close, openers)

        def compiled(opens: Sentinels, closes: Sentinels) -> Tags:
            marks = joined(closes, opens, call_close, wrapper_close, foreign)
            ends = wrapper_close, marks, after, foreign, openers, family.ending
            return Tags(call_open, call_close, opens, closes, *ends)

        tags = compiled(key_open, key_close)
        tags.strange = compiled(strange_open, strange_close)
        own_styles = {
            opener.encode().lower(): {name: value for name, value in key.items() if name != "name"}
            for key in family.key
            for opener in family.opening([key["name"]])
        }
        styles = {**all_styles, **own_styles}
        opens, closes = (made(starts) for starts in zip(*family.starts, strict=True))
        elements = Elements(
            joined(opens, closes),
            closes,
            (opens.exact or opens.loose)[0].split(_BLANKS.encode())[0],
            tuple(family.call),
            tuple(family.wrapper),
        )
        spoken = [
            (one, grammar)
            for grammar in self.grammars
            if self._spoken(grammar)
            for one in grammar.reads.get("tags", ())
        ]
        entities = any(one.get("entities") for one, _ in spoken)
        verbatim = any(
            one.get("verbatim") and one.get("of", owner.name) == family.grammar.name for one, owner in spoken
        )
        return {
            "tags": tags, "styles": styles, "special": family.special, "entities": entities, "escaped": family.escaped,
            "elements": elements, "verbatim": verbatim,
        }  # fmt: skip

    def _envelope(
        self,
        name: str,
        entry: _Entry,
        plain: Around,
        common: Mapping[str, Any],
        families: Mapping[str, Mapping[str, Any]],
    ) -> Envelope:
        close = sentinels(
            tuple(word.encode() for word, special in entry.close if special),
            tuple(word.encode() for word, special in entry.close if not special),
        )
        # Where bodies have quote tokens of their own, those of other formats are data.
        quotes = tuple(quote for _, one, _ in entry.bodies for quote in one.get("quotes", ())) or self.quotes
        around = replace(plain, close=close, quotes=sentinels(_encode(quotes)))
        uses: dict[str, list[Use]] = {"plain": [], "named": [], "headed": []}
        behind: dict[bytes, list[Use]] = {}
        for _, one, grammar in sorted(entry.bodies, key=lambda item: item[0]):
            settings = {**one.get("settings", {}), **common, "around": around, "quotes": quotes}
            if one["syntax"] == "pairs":
                words = {key: _encode(value) for key, value in one["literals"].items()}
                settings["pairs"] = Pairs(words, close, plain.special)
            elif one["syntax"] in ("tags", "typed_values"):
                settings |= families[settings.get("of", grammar.name)]
            use = Use(BODIES[one["syntax"]], grammar.name, settings)
            places = [place for place in ("named", "headed") if one.get(place)] or ["plain"]
            separators = one.get("behind", ()) if "headed" in places else ()
            for separator in separators:
                behind.setdefault(separator.encode(), []).append(use)
            for place in places:
                if place != "headed" or not separators:
                    uses[place].append(use)
        if entry.headers and not uses["headed"]:
            owner = next((grammar for _, _, grammar in entry.open), self.grammars[0])
            raise GrammarError(owner.file, "envelope.headers", f"{name!r} has no [[body]] with headed = true")
        separators = tuple(dict.fromkeys(entry.separators))
        spellings = {word.encode(): literal for literal in separators for word in spelled(literal, True)}
        return Envelope(
            name=name,
            around=around,
            uses=tuple(uses["plain"]),
            named=tuple(uses["named"]),
            headed=tuple(uses["headed"]),
            behind={separator: (*uses["headed"], *more) for separator, more in behind.items()},
            inner=NOTHING if entry.headers else self._of(Kind.OPEN, Kind.TAG, Kind.WRAP),
            tags=self._of(Kind.TAG) if entry.headers else NOTHING,
            separators=sentinels(tuple(spellings)),
            spellings=spellings,
            headers=tuple(_template(header, separators) for header in entry.headers),
            special="special" in entry.flags,
            closes=bool(entry.close),
            chains="chains" in entry.flags,
            fenced="fenced" in entry.flags,
            from_last="from_last" in entry.flags,
            shared="shared" in entry.flags,
            demand="demand" in entry.flags,
            wordy=any(map(Envelope.is_wordy, spellings)),
            unbracketed=any(not use.body.bracketed for use in uses["headed"]),
        )


def _ends_section(role: Role) -> bool:
    return role.kind is Kind.UNWRAP or (role.kind is Kind.SIGIL and role.target.section is False)


def _owns(grammar: Grammar, section: str) -> bool:
    """Has the file a table of this section that adds to no other?"""
    tables = grammar.reads.get(section, ())
    return any("of" not in one for one in ([tables] if isinstance(tables, dict) else tables))


def _encode(literals: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(literal.encode() for literal in literals)


def _without(markers: Sentinels, own: Sentinels) -> Sentinels:
    """The markers that are not among a family's own."""
    exact, loose = set(own.exact), set(own.loose)
    return sentinels(
        tuple(word for word in markers.exact if word not in exact),
        tuple(word for word in markers.loose if word not in loose),
    )


def _sentinels(roles: Iterable[Role]) -> Sentinels:
    exact: list[bytes] = []
    loose: list[bytes] = []
    for role in roles:
        (exact if role.special else loose).append(role.literal)
    return sentinels(tuple(exact), tuple(loose))


def _exact(roles: Iterable[Role]) -> Sentinels:
    return sentinels(tuple(role.literal for role in roles))


def _lead(marks: Sentinels) -> re.Pattern[str]:
    """What takes a text delta off the fast way: a character that may begin markup.

    A marker that begins with a letter needs its second one too, or the end of the delta, so that prose stays on it.
    Every branch starts with a literal, which lets the search run over other characters in one go.
    """
    heads = {literal.decode()[:2] for literal in marks.literals}
    branches = {"\n", "`"} | {re.escape(head[0]) for head in heads if not head[0].isalnum()}
    for head in heads:
        if head[0].isalnum():
            seconds = "".join(sorted({case(head[1]) for case in (str.lower, str.upper)}))
            branches |= {rf"{case(head[0])}(?:[{re.escape(seconds)}]|\Z)" for case in (str.lower, str.upper)}
    return re.compile("|".join(sorted(branches)))


def _template(header: str, separators: tuple[str, ...]) -> tuple[str, ...]:
    """Split ``{id}SEP{name}`` at its separators: text, separator, text and so on."""
    parts: list[str] = []
    i = 0
    while found := [(place, one) for one in separators if (place := header.find(one, i)) >= 0]:
        place, separator = min(found)
        parts += [header[i:place], separator]
        i = place + len(separator)
    return tuple(parts + [header[i:]] * (i < len(header)))


@lru_cache(maxsize=64)
def _tables(grammars: tuple[Grammar, ...], model: str | None, chosen: bool) -> Tables:
    return _Union(with_needed(grammars), model, chosen).build()


def tables_for(names: Iterable[str | Path | Grammar] | None, model: str | None) -> Tables:
    """The tables of these grammars, cached. ``model`` matters only to those that read something else when it is named.

    Raises ``ValueError`` or ``GrammarError`` for names and files that are wrong.
    """
    grammars = find(names)
    asked = model is not None and _asked(grammars, model)
    return _tables(grammars, model if asked else None, names is not None)


@lru_cache(maxsize=256)
def _asked(grammars: tuple[Grammar, ...], model: str) -> bool:
    """Does any of these grammars, or what they need, read something else for this model?"""
    return any((_asks(grammar) and grammar.speaks(model)) or grammar.opens(model) for grammar in with_needed(grammars))


def _asks(grammar: Grammar) -> bool:
    """Does this grammar read anything differently when one of its models is named?"""
    data = grammar.reads
    return bool(
        "frame" in data
        or any("needs_model" in one or "ends" in one for one in data.get("reasoning", ()))
        or any(one.get("entities") or one.get("verbatim") for one in data.get("tags", ()))
        or any(one.get("reads") == "reasoning" for one in data.get("fence", ()))
    )
