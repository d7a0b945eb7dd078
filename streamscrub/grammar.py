"""Grammar files: TOML -> frozen ``Grammar`` -> the union of several as tables that the scrubber asks.

A file is literals, forms and examples; its keys are a closed list, and a key must serve two grammars or go. An opener
leads to one *envelope*; other files add bodies to it, which are told apart by what they look like, in a stated order.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from .blocks import Envelope, Use
from .bodies import BODIES
from .bodies.pairs import Pairs
from .bodies.tags import Tags
from .frames import Frame
from .reading import NOTHING, Around
from .sentinels import Sentinels, sentinels

_MAX_FILE: Final = 256 * 1024  # bytes of one grammar file; ours are under 10 kB
_MAX_LITERAL: Final = 64  # bytes of one marker

# The keys of a file, section by section. Unknown keys are errors that name the nearest known one.
_KEYS: Final[dict[str, frozenset[str]]] = {
    "": frozenset(
        [
            "name",
            "models",
            "source",
            "title",
            "needs",
            "always",
            "needs_model",
            "envelope",
            "body",
            "section",
            "tags",
            "pairs",
            "reasoning",
            "control",
            "answer",
            "turn",
            "result",
            "frame",
            "line",
            "fence",
            "elements",
            "render",
            "example",
        ]
    ),
    "envelope": frozenset(
        [
            "name",
            "open",
            "close",
            "special",
            "attributes",
            "headers",
            "separators",
            "chains",
            "fenced",
            "from_last",
            "demand",
        ]
    ),
    "body": frozenset(
        ["envelope", "syntax", "order", "named", "headed", "headers", "separators", "settings", "quotes"]
    ),
    "section": frozenset(["open", "close", "special"]),
    "tags": frozenset(["of", "sigils", "call", "key", "wrapper", "special", "spelling", "entities"]),
    "tags.key": frozenset(["name", "newline", "entities"]),
    "pairs": frozenset(
        [
            "envelope",
            "order",
            "key_open",
            "key_close",
            "value_open",
            "value_close",
            "separator",
            "type_open",
            "type_close",
        ]
    ),
    "reasoning": frozenset(["open", "close", "special", "label"]),
    "control": frozenset(["tokens", "after_markup"]),
    "answer": frozenset(["open", "close"]),
    "turn": frozenset(["open"]),
    "result": frozenset(["open", "close", "special", "after_call"]),
    "frame": frozenset(["start", "channel", "message", "ends", "constrain", "roles", "prefix", "route"]),
    "frame.route": frozenset(["channel", "recipient", "to"]),
    "line": frozenset(["syntax", "start", "then", "order"]),
    "fence": frozenset(["languages", "envelope", "reads"]),
    "elements": frozenset(["reserved"]),
    "render": frozenset(["call", "calls", "section", "result", "thinking", "guide", "form"]),
    "example": frozenset(
        ["title", "text", "calls", "rejected", "visible", "reasoning", "finish", "tools", "options", "repaired"]
    ),
}
_LISTS: Final = frozenset(
    ["answer", "envelope", "body", "section", "tags", "pairs", "reasoning", "result", "line", "fence", "example"]
)


class GrammarError(ValueError):
    """A grammar file is wrong. The message names the file, the key and, for an unknown key, the nearest known one."""

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")
        self.file = file
        self.key = key


class Kind(IntEnum):
    """What a marker does where it stands."""

    OPEN = 0  # opens a call envelope
    TAG = 1  # opens a call whose tag carries its name
    WRAP = 2  # opens a section around calls
    UNWRAP = 3  # closes one
    CLOSE = 4  # closes a call; an orphan where it stands alone
    KEY = 5  # opens a parameter; text where it stands alone
    THINK = 6
    UNTHINK = 7
    CONTROL = 8
    TURN = 9  # opens a turn of another role
    RESULT = 10
    FRAME = 11
    SIGIL = 12  # the start of any tag of a special syntax
    ANSWER = 13  # opens or closes a wrapper around the answer


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """A marker with what it does and whose it is."""

    kind: Kind
    literal: bytes
    special: bool
    grammar: str
    target: Any = None
    attributes: bool = False  # its tag may carry attributes, and is not at its end yet


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """One wire grammar, as its file states it. ``data`` is the checked content; ``file`` where it came from."""

    name: str
    data: Mapping[str, Any] = field(repr=False)
    file: str = ""

    @classmethod
    def load(cls, path: str | Path) -> Grammar:
        """Read a TOML grammar file. Raises ``GrammarError`` (a ``ValueError``) that names the file and the key."""
        where = Path(path)
        try:
            raw = where.read_bytes()
        except OSError as error:
            raise GrammarError(str(path), "", f"cannot be read: {error.strerror}") from None
        return cls.parse(raw, where.name)

    @classmethod
    def parse(cls, raw: bytes, file: str) -> Grammar:
        """Check the content of a grammar file. Raises ``GrammarError``."""
        if len(raw) > _MAX_FILE:
            raise GrammarError(file, "", f"larger than {_MAX_FILE} bytes")
        try:
            data = tomllib.loads(raw.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise GrammarError(file, "", f"is no TOML: {error}") from None
        _check(data, file)
        return cls(data["name"], data, file)

    @property
    def models(self) -> tuple[str, ...]:
        """Patterns of the model ids that speak this grammar, in shell-style globs."""
        return tuple(self.data.get("models", ()))

    def speaks(self, model: str) -> bool:
        """Does one of the patterns match this model id (any case, provider prefix ignored)?"""
        short = model.lower().rsplit("/", 1)[-1]
        return any(fnmatchcase(short, pattern) or fnmatchcase(model.lower(), pattern) for pattern in self.models)

    @property
    def examples(self) -> list[dict[str, Any]]:
        """The worked examples of the file."""
        return list(self.data.get("example", ()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_grammar, (self.name, dict(self.data), self.file))


def _grammar(name: str, data: dict[str, Any], file: str) -> Grammar:
    return Grammar(name, data, file)


# -- checking


def _check(data: dict[str, Any], file: str) -> None:
    if not isinstance(data.get("name"), str) or not data["name"]:
        raise GrammarError(file, "name", "is missing or no string")
    _keys(data, "", file, "")
    for section, content in data.items():
        if section in _LISTS:
            if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
                raise GrammarError(file, section, f"must be a list of tables: [[{section}]]")
            for item in content:
                _section(item, section, file)
        elif section in _KEYS:
            if not isinstance(content, dict):
                raise GrammarError(file, section, f"must be a table: [{section}]")
            _section(content, section, file)
    for key in ("models", "needs"):
        _strings(data.get(key, []), key, file, longest=200)


def _section(item: dict[str, Any], section: str, file: str) -> None:
    _keys(item, section, file, section)
    for key, value in item.items():
        below = f"{section}.{key}"
        if below in _KEYS:
            if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
                raise GrammarError(file, below, f"must be a list of tables: [[{below}]]")
            for one in value:
                _keys(one, below, file, below)
        elif key in (
            "open",
            "close",
            "tokens",
            "after_markup",
            "ends",
            "separators",
            "start_of",
            "separator",
        ) or key.endswith(("_open", "_close")):
            _strings(value, below, file)
    if section == "body" and item.get("syntax") not in BODIES:
        raise GrammarError(file, "body.syntax", f"{item.get('syntax')!r} is none of {', '.join(sorted(BODIES))}")


def _keys(item: dict[str, Any], section: str, file: str, shown: str) -> None:
    for key in item:
        if key not in _KEYS[section]:
            near = difflib.get_close_matches(key, _KEYS[section], 1)
            hint = f", did you mean {near[0]}?" if near else f"; known: {', '.join(sorted(_KEYS[section]))}"
            raise GrammarError(file, f"{shown}.{key}".lstrip("."), f"unknown key{hint}")


def _strings(value: Any, key: str, file: str, longest: int = _MAX_LITERAL) -> None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise GrammarError(file, key, "must be a list of strings")
    for one in value:
        if not 1 <= len(one.encode()) <= longest:
            raise GrammarError(file, key, f"{one[:60]!r} is not 1 to {longest} bytes long")


# -- the files that come with the library


@cache
def folder() -> Path:
    """Where the grammar files are: in the package, or beside it in a checkout."""
    home = Path(str(files("streamscrub")))
    data = home / "grammars"
    return data if data.is_dir() else home.parent / "grammars"


@cache
def shipped() -> dict[str, Grammar]:
    """Every grammar of the library by name."""
    found = {}
    for path in sorted(folder().glob("*.toml")):
        grammar = Grammar.load(path)
        if grammar.name in found:
            raise GrammarError(path.name, "name", f"{grammar.name!r} is the name of {found[grammar.name].file} too")
        found[grammar.name] = grammar
    return found


def find(names: Iterable[str | Path | Grammar] | None) -> tuple[Grammar, ...]:
    """The grammars behind names, paths and ``Grammar`` objects; all shipped ones for None.

    Raises ``ValueError`` for an unknown name, with the near ones listed.
    """
    known = shipped()
    if names is None:
        return tuple(known.values())
    if isinstance(names, str | bytes):
        raise TypeError(f"grammars must be a list of names, not {names!r}")
    chosen: dict[str, Grammar] = {}
    for name in names:
        if isinstance(name, Grammar):
            chosen[name.name] = name
        elif isinstance(name, Path) or (isinstance(name, str) and name.endswith(".toml")):
            grammar = Grammar.load(name)
            chosen[grammar.name] = grammar
        elif isinstance(name, str):
            if name not in known:
                near = difflib.get_close_matches(name, known, 3)
                hint = f"; did you mean {', '.join(near)}?" if near else f"; known: {', '.join(known)}"
                raise ValueError(f"unknown grammar {name!r}{hint}")
            chosen[name] = known[name]
        else:
            raise TypeError(f"a grammar is a name, a path or a Grammar, not {type(name).__name__}")
    return tuple(chosen.values())


def _with_needed(chosen: tuple[Grammar, ...]) -> tuple[Grammar, ...]:
    """Add the files that the chosen ones need, and those that always count (the chat templates' tokens)."""
    known = shipped()
    out = {grammar.name: grammar for grammar in chosen}
    pending = [*chosen, *(grammar for grammar in known.values() if grammar.data.get("always"))]
    while pending:
        grammar = pending.pop()
        out.setdefault(grammar.name, grammar)
        for name in grammar.data.get("needs", ()):
            if name not in out:
                if name not in known:
                    raise GrammarError(grammar.file, "needs", f"{name!r} is no grammar of the library")
                pending.append(known[name])
    return tuple(sorted(out.values(), key=lambda grammar: grammar.name))


# -- spellings


def _bars(literal: str) -> list[str]:
    """All the ways models write the bars of a special tag: ASCII, fullwidth, doubled, U+2016, with blanks."""
    bar = "\uff5c"
    if bar not in literal:
        return [literal]
    out = [literal.replace(bar, other) for other in (bar, "|", bar * 2, "||", "\u2016", "\u2016" * 2)]
    out.append(literal.replace(bar, " | ").rstrip())
    return out


def _tokens(literal: str) -> list[str]:
    """Bar style and word separator of a sentinel token vary independently at each place."""
    out = [""]
    for char in literal:
        others = {"\uff5c": ("\uff5c", "|"), "\u2581": ("\u2581", "_")}.get(char, (char,))
        out = [head + other for head in out for other in others]
    return out


_SPELLINGS: Final = {"bars": _bars, "tokens": _tokens}


# -- the union


def _encode(literals: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(literal.encode() for literal in literals)


@dataclass(slots=True)
class Line:
    """A markerless form that starts a line."""

    syntax: str
    grammar: str
    start: str = ""
    then: str = ""


@dataclass(slots=True, eq=False)
class Tables:
    """What the scrubber asks: markers with their roles, envelopes, lines, fences. Built once for a set of grammars."""

    marks: Sentinels = NOTHING
    roles: dict[bytes, Role] = field(default_factory=dict)
    special: Sentinels = NOTHING  # openers that are tokens
    specials: Sentinels = NOTHING  # all tokens
    stop: re.Pattern[bytes] = re.compile(rb"(?!)")  # in bytes: where text has to be looked at
    lead: re.Pattern[str] = re.compile(r"(?!)")  # in text: characters that take a delta off the fast path
    outer: Sentinels = NOTHING
    lines: tuple[Line, ...] = ()
    words: Sentinels = NOTHING  # line starts that are literal words
    # What a fence of this language holds: calls, reasoning or a result.
    fences: dict[str, Envelope | Literal["reasoning", "result"]] = field(default_factory=dict)
    bare: Envelope | None = None
    reserved: frozenset[str] | None = None  # elements are on if this is a set
    frames: tuple[Frame, ...] = ()
    stripped: str = ""  # the frame whose tokens may be missing, because the model is known to use it

    def __deepcopy__(self, memo: object) -> Tables:
        return self


class _Union:
    """Builds ``Tables``. Marker literals that two grammars claim for different things are errors."""

    def __init__(self, grammars: tuple[Grammar, ...], model: str | None, chosen: bool) -> None:
        self.grammars = grammars
        self.model = model
        self.chosen = chosen  # the caller named them
        self.roles: dict[bytes, Role] = {}
        self.exact: list[bytes] = []
        self.folded: list[bytes] = []
        self.envelopes: dict[str, dict[str, Any]] = {}
        self.tags: list[tuple[Grammar, dict[str, Any]]] = []
        self.lines: list[tuple[int, Line]] = []

    def add(
        self,
        kind: Kind,
        literal: str,
        special: bool,
        grammar: Grammar,
        target: Any = None,
        attributes: bool = False,
    ) -> None:
        raw = literal.encode()
        key = raw if special else raw.lower()
        old = self.roles.get(key)
        if old is not None:
            if old.kind == kind and (old.target is target or kind not in (Kind.OPEN, Kind.TAG)):
                return
            # An opener keeps its place against a closer; a call against a mere wrapper or control token.
            if old.kind in (Kind.OPEN, Kind.TAG) and kind in (Kind.OPEN, Kind.TAG) and old.target != target:
                raise GrammarError(grammar.file, literal, f"is claimed by {old.grammar} as {old.kind.name} already")
            if old.kind < kind:
                return
        self.roles[key] = Role(kind, key, special, grammar.name, target, attributes)
        (self.exact if special else self.folded).append(key)

    def build(self) -> Tables:
        tables = Tables()
        for grammar in self.grammars:
            self._collect(grammar)
        for grammar in self.grammars:
            self._simple(grammar)
        self._tag_roles()
        exact, folded = tuple(self.exact), tuple(self.folded)
        tables.roles = self.roles
        tables.marks = tables.outer = sentinels(exact, folded)
        openers = (Kind.OPEN, Kind.TAG, Kind.WRAP, Kind.FRAME, Kind.TURN, Kind.SIGIL)
        tables.special = sentinels(
            tuple(key for key, role in self.roles.items() if role.special and role.kind in openers)
        )
        tables.specials = sentinels(tuple(key for key, role in self.roles.items() if role.special))
        tables.stop = re.compile(rb"\n|`|~|<(?=[A-Za-z_]|\Z)|" + tables.marks.near)
        tables.lead = _lead(tables.marks)
        self._targets(tables)
        return tables

    def _of(self, *kinds: Kind) -> Sentinels:
        chosen = [role for role in self.roles.values() if role.kind in kinds]
        return sentinels(
            tuple(role.literal for role in chosen if role.special),
            tuple(role.literal for role in chosen if not role.special),
        )

    # A first pass collects envelopes with their bodies, a second one the markers that stand alone.

    def _collect(self, grammar: Grammar) -> None:
        for one in grammar.data.get("envelope", ()):
            entry = self._entry(one["name"])
            for key in ("headers", "separators"):
                entry[key] += one.get(key, [])
            spelled = [word for literal in one.get("open", ()) for word in _spelled(literal, one, grammar)]
            entry["open"].append((spelled, bool(one.get("special")), bool(one.get("attributes")), grammar))
            entry["close"] += [word for literal in one.get("close", ()) for word in _spelled(literal, one, grammar)]
            for key in ("chains", "fenced", "from_last", "demand"):
                entry[key] = entry[key] or one.get(key, False)
            entry["special"] = entry["special"] or bool(one.get("special"))
        for order, one in enumerate(grammar.data.get("body", ())):
            for name in one["envelope"]:
                entry = self._entry(name)
                entry["headers"] += one.get("headers", [])
                entry["separators"] += one.get("separators", [])
                entry["bodies"].append((one.get("order", 100 + order), one, grammar))
        for one in grammar.data.get("pairs", ()):
            for name in one["envelope"]:
                body = {"syntax": "pairs", "order": one.get("order", 50), "literals": one}
                self._entry(name)["bodies"].append((body["order"], body, grammar))
        for one in grammar.data.get("tags", ()):
            self.tags.append((grammar, one))

    def _entry(self, name: str) -> dict[str, Any]:
        return self.envelopes.setdefault(
            name,
            {
                "open": [], "close": [], "headers": [], "separators": [], "bodies": [], "chains": False,
                "fenced": False, "from_last": False, "special": False, "demand": False,
            },
        )  # fmt: skip

    def _spoken(self, grammar: Grammar) -> bool:
        """Does the model speak this grammar?"""
        return self.model is not None and grammar.speaks(self.model)

    def _simple(self, grammar: Grammar) -> None:
        data = grammar.data
        named = not data.get("needs_model") or self._spoken(grammar)
        for one in data.get("section", ()):
            special = bool(one.get("special"))
            for literal in one.get("open", ()):
                for word in _spelled(literal, one, grammar):
                    self.add(Kind.WRAP, word, special, grammar)
            for literal in one.get("close", ()):
                for word in _spelled(literal, one, grammar):
                    self.add(Kind.UNWRAP, word, special, grammar)
        if named:
            for one in data.get("reasoning", ()):
                special = bool(one.get("special"))
                for literal in one.get("open", ()):
                    self.add(Kind.THINK, literal, special, grammar, one)
                for literal in one.get("close", ()):
                    self.add(Kind.UNTHINK, literal, special, grammar, one)
        control = data.get("control", {})
        for literal in control.get("tokens", ()):
            for word in _spelled(literal, {"special": True}, grammar):
                self.add(Kind.CONTROL, word, True, grammar)
        for literal in control.get("after_markup", ()):
            self.add(Kind.CONTROL, literal, False, grammar)
        for one in data.get("answer", ()):
            for literal in one.get("open", ()):
                self.add(Kind.ANSWER, literal, False, grammar, "open")
            for literal in one.get("close", ()):
                self.add(Kind.ANSWER, literal, False, grammar, "close")
        for literal in data.get("turn", {}).get("open", ()):
            self.add(Kind.TURN, literal, True, grammar)
        for one in data.get("result", ()):
            closers = sentinels(
                _encode(one.get("close", ())) if one.get("special") else (),
                () if one.get("special") else _encode(one.get("close", ())),
            )
            for literal in one.get("open", ()):
                if one.get("after_call"):
                    self.lines.append((90, Line("result", grammar.name, literal)))
                else:
                    self.add(Kind.RESULT, literal, bool(one.get("special")), grammar, closers)
            for literal in one.get("close", ()):
                self.add(Kind.CLOSE, literal, bool(one.get("special")), grammar, "result")

    def _tag_roles(self) -> None:
        self.families: dict[str, dict[str, Any]] = {}
        for grammar, one in self.tags:
            name = one.get("of", grammar.name)
            family = self.families.setdefault(
                name,
                {
                    "sigils": [],
                    "call": [],
                    "key": [],
                    "wrapper": [],
                    "special": False,
                    "grammar": grammar,
                    "blank": False,
                },
            )
            if "of" not in one:
                family["grammar"] = grammar
            for pair in one.get("sigils", ()):
                opens, closes = pair
                spell = _SPELLINGS.get(one.get("spelling", ""), lambda literal: [literal])
                family["sigils"] += list(zip(spell(opens), spell(closes), strict=True))
            family["call"] += one.get("call", [])
            family["key"] += one.get("key", [])
            family["wrapper"] += one.get("wrapper", [])
            family["special"] = family["special"] or bool(one.get("special"))
        for name, family in self.families.items():
            special, grammar = family["special"], family["grammar"]
            gaps = ("", " ") if special else ("",)
            pairs = [(opens + gap, closes + gap) for opens, closes in family["sigils"] for gap in gaps]
            family["pairs"] = pairs
            for opens, closes in pairs:
                for call in family["call"]:
                    self.add(Kind.TAG, opens + call, special, grammar, name)
                    self.add(Kind.CLOSE, closes + call, special, grammar)
                for key in family["key"]:
                    self.add(Kind.KEY, opens + key["name"], special, grammar)
                    self.add(Kind.CLOSE, closes + key["name"], special, grammar)
            if special:
                for opens, closes in pairs:
                    for wrapper in family["wrapper"]:
                        self.add(Kind.SIGIL, opens + wrapper, True, grammar, "open")
                        self.add(Kind.SIGIL, closes + wrapper, True, grammar, "close")
                for opens, closes in family["sigils"]:
                    self.add(Kind.SIGIL, opens, True, grammar, "open")
                    self.add(Kind.SIGIL, closes, True, grammar, "close")
        for name, entry in self.envelopes.items():
            for literals, special, attributes, grammar in entry["open"]:
                for literal in literals:
                    word = literal.removesuffix(">") if attributes else literal
                    self.add(Kind.OPEN, word, special, grammar, name, attributes=attributes)
            for literal in entry["close"]:
                if literal in ("```", "~~~"):
                    continue  # a code fence is known to the machine
                self.add(
                    Kind.CLOSE,
                    literal,
                    _is_special(literal),
                    entry["open"][0][3] if entry["open"] else self.grammars[0],
                )
        for grammar in self.grammars:
            if "frame" in grammar.data:
                frame = Frame.read(grammar.name, grammar.data["frame"])
                for literal in frame.openers:
                    self.add(Kind.FRAME, literal.decode(), True, grammar, frame)
                for literal in frame.others:
                    self.add(Kind.CONTROL, literal.decode(), True, grammar)

    def _targets(self, tables: Tables) -> None:
        """Resolve names of envelopes and tag families in the roles to the compiled things."""
        outer, special = tables.outer, tables.special
        quotes = {
            quote
            for _, entry in self.envelopes.items()
            for _, body, _ in entry["bodies"]
            for quote in body.get("quotes", ())
        }
        marks = sentinels(_encode(sorted(quotes)))
        leaks = tuple(role.literal.decode() for role in self.roles.values() if role.special or role.kind is Kind.CLOSE)
        inner = self._of(Kind.OPEN, Kind.TAG, Kind.WRAP)
        compiled: dict[str, Envelope] = {}
        families = {name: self._tags(family, outer, special) for name, family in self.families.items()}
        for name, entry in self.envelopes.items():
            compiled[name] = self._envelope(name, entry, outer, special, marks, inner, leaks, tuple(sorted(quotes)))
        bound: dict[bytes, Role] = {}
        for key, role in self.roles.items():
            target = role.target
            if role.kind is Kind.OPEN:
                target = compiled[target]
            elif role.kind is Kind.TAG:
                settings, around = families[target]
                target = Use(
                    BODIES["tags"],
                    target,
                    {**settings, "around": around, "leaks": leaks, "quotes": tuple(sorted(quotes))},
                )
            bound[key] = replace(role, target=target)
        tables.roles = bound
        lines = self.lines
        for grammar in self.grammars:
            for order, one in enumerate(grammar.data.get("line", ())):
                for start in one.get("start", [""]):
                    lines.append(
                        (one.get("order", 100 + order), Line(one["syntax"], grammar.name, start, one.get("then", "")))
                    )
            for one in grammar.data.get("fence", ()):
                for language in one["languages"]:
                    if "envelope" in one:
                        tables.fences[language] = compiled[one["envelope"]]
                    elif self.chosen or one["reads"] == "result" or self._spoken(grammar):
                        # An ordinary word: a fence of reasoning needs to be expected.
                        tables.fences[language] = one["reads"]
            if "elements" in grammar.data:
                tables.reserved = frozenset(grammar.data["elements"]["reserved"])
            if "frame" in grammar.data:
                frame = Frame.read(grammar.name, grammar.data["frame"])
                around = Around(sentinels(frame.ends), outer, special, marks)
                if self._spoken(grammar):
                    tables.stripped = frame.name
                tables.frames += (frame.bound(around, self._uses(grammar, around, leaks, tuple(sorted(quotes)))),)
        tables.frames = tuple(tables.frames)
        for key, role in list(bound.items()):
            if role.kind is Kind.FRAME:
                frame = next(one for one in tables.frames if one.name == role.grammar)
                bound[key] = replace(role, target=frame)
        tables.lines = tuple(line for _, line in sorted(lines, key=lambda pair: pair[0]))
        tables.words = sentinels(_encode({line.start for line in tables.lines if line.start}))
        tables.bare = compiled.get("bare")

    def _uses(
        self, grammar: Grammar, around: Around, leaks: tuple[str, ...], quotes: tuple[str, ...]
    ) -> tuple[Use, ...]:
        common = {"around": around, "leaks": leaks, "quotes": quotes}
        return tuple(Use(BODIES[name], grammar.name, common) for name in ("json_arguments", "text"))

    def _tags(self, family: dict[str, Any], outer: Sentinels, special: Sentinels) -> tuple[dict[str, Any], Around]:
        is_special = family["special"]

        def made(words: Iterable[str]) -> Sentinels:
            raw = _encode(words)
            return sentinels(raw) if is_special else sentinels((), raw)

        pairs = family["pairs"]
        call_open = made(opens + call for opens, _ in pairs for call in family["call"])
        call_close = made(closes + call for _, closes in pairs for call in family["call"])
        key_open = made(opens + key["name"] for opens, _ in pairs for key in family["key"])
        key_close = made(closes + key["name"] for _, closes in pairs for key in family["key"])
        wrapper_words = [closes + name for _, closes in pairs for name in family["wrapper"]]
        wrappers = _encode(wrapper_words)
        close_envelopes = _encode(
            literal.removesuffix(">")
            for entry in self.envelopes.values()
            for literal in entry["close"]
            if literal.startswith("</") and not _is_special(literal)
        )
        wrapper_close = (
            sentinels(wrappers if is_special else (), close_envelopes if not is_special else ())
            if is_special
            else sentinels((), (*wrappers, *close_envelopes))
        )
        openers = self._of(Kind.OPEN, Kind.TAG)
        after = sentinels(
            (*special.exact, *key_open.exact, *call_close.exact, *wrapper_close.exact, *openers.exact),
            (*key_open.loose, *call_close.loose, *wrapper_close.loose, *openers.loose),
        )
        foreign_special = tuple(
            word for word in special.exact if word not in {*call_open.exact, *(o.encode() for o, _ in family["sigils"])}
        )
        value_marks = sentinels(
            (*key_close.exact, *key_open.exact, *call_close.exact, *wrapper_close.exact, *foreign_special),
            (*key_close.loose, *key_open.loose, *call_close.loose, *wrapper_close.loose),
        )
        tags = Tags(
            call_open,
            call_close,
            key_open,
            key_close,
            wrapper_close,
            value_marks,
            after,
            sentinels(foreign_special),
            openers,
        )
        styles = {
            (opens + key["name"]).encode().lower(): {k: v for k, v in key.items() if k != "name"}
            for opens, _ in pairs
            for key in family["key"]
        }
        entities = any(one.get("entities") and self._spoken(grammar) for grammar, one in self.tags)
        settings = {"tags": tags, "styles": styles, "special": is_special, "entities": entities}
        return settings, Around(call_close, outer, special)

    def _envelope(
        self,
        name: str,
        entry: dict[str, Any],
        outer: Sentinels,
        special: Sentinels,
        marks: Sentinels,
        inner: Sentinels,
        leaks: tuple[str, ...],
        quotes: tuple[str, ...],
    ) -> Envelope:
        close = sentinels(
            tuple(word.encode() for word in entry["close"] if _is_special(word)),
            tuple(word.encode() for word in entry["close"] if not _is_special(word)),
        )
        around = Around(close, outer, special, marks)
        uses: dict[str, list[Use]] = {"plain": [], "named": [], "headed": []}
        for _, one, grammar in sorted(entry["bodies"], key=lambda item: item[0]):
            settings = {**one.get("settings", {}), "around": around, "leaks": leaks, "quotes": quotes}
            if "literals" in one:
                words = {
                    key: _encode(value)
                    for key, value in one["literals"].items()
                    if isinstance(value, list) and key not in ("envelope",)
                }
                settings["pairs"] = Pairs(words, close, special)
            if one["syntax"] == "tags":
                tags, tags_around = self._tags(
                    self.families[one.get("settings", {}).get("of", grammar.name)], outer, special
                )
                settings.update(tags)
                settings["around"] = Around(close, outer, special)
                del tags_around
            use = Use(BODIES[one["syntax"]], grammar.name, settings)
            where = "named" if one.get("named") else "headed" if one.get("headed") else "plain"
            uses[where].append(use)
            if one.get("named") and one.get("headed"):
                uses["headed"].append(use)
        separators = tuple(dict.fromkeys(entry["separators"]))
        spelled = tuple(word for literal in separators for word in _tokens(literal))
        return Envelope(
            name=name,
            around=around,
            uses=tuple(uses["plain"]),
            named=tuple(uses["named"]),
            headed=tuple(uses["headed"]),
            inner=NOTHING if entry["headers"] else inner,
            separators=sentinels(_encode(spelled)),
            headers=tuple(_template(header, separators) for header in entry["headers"]),
            special=entry["special"],
            closes=bool(entry["close"]),
            chains=entry["chains"],
            fenced=entry["fenced"],
            from_last=entry["from_last"],
            demand=entry["demand"],
        )


def _lead(marks: Sentinels) -> re.Pattern[str]:
    """What takes a text delta off the fast path: a character that may begin markup.

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


def _spelled(literal: str, section: Mapping[str, Any], grammar: Grammar) -> list[str]:
    return _tokens(literal) if section.get("special") and "\u2581" in literal else [literal]


def _is_special(literal: str) -> bool:
    """Tokenizer tokens are told from tags by their shape; only closers need this, openers say it in the file."""
    return any(mark in literal for mark in ("|", "\uff5c", "[", "]")) or "\u25c1" in literal


def _template(header: str, separators: tuple[str, ...]) -> tuple[str, ...]:
    """Split ``{id}SEP{name}`` into fields, texts and separators."""
    out: list[str] = []
    rest = header
    while rest:
        cut = min(
            (found for word in (*separators, "{") if (found := rest.find(word, 0 if word != "{" else 0)) >= 0),
            default=-1,
        )
        if cut < 0:
            out.append(rest)
            break
        if cut > 0:
            out.append(rest[:cut])
            rest = rest[cut:]
            continue
        separator = next((word for word in separators if rest.startswith(word)), None)
        if separator is not None:
            if not out or out[-1] in separators:
                out.append("")
            out.append(separator)
            rest = rest[len(separator) :]
        else:
            end = rest.index("}") + 1
            out.append(rest[:end])
            rest = rest[end:]
    return tuple(out)


@lru_cache(maxsize=64)
def _tables(grammars: tuple[Grammar, ...], model: str | None, chosen: bool) -> Tables:
    return _Union(_with_needed(grammars), model, chosen).build()


@cache
def _all() -> tuple[Grammar, ...]:
    return tuple(shipped().values())


def tables(names: Iterable[str | Path | Grammar] | None, model: str | None) -> Tables:
    """The tables of these grammars, cached. ``model`` matters only to grammars that need to be named by one."""
    grammars = _all() if names is None else find(names)
    key = model if model is not None and any(grammar.speaks(model) for grammar in grammars if _asks(grammar)) else None
    return _tables(grammars, key, names is not None)


def _asks(grammar: Grammar) -> bool:
    """Does this grammar read anything differently when a model is named?"""
    data = grammar.data
    return bool(
        data.get("needs_model")
        or "frame" in data
        or any(one.get("entities") for one in data.get("tags", ()))
        or any(one.get("reads") == "reasoning" for one in data.get("fence", ()))
    )
