"""Which shipped grammar owns a marker, so that a template that uses it does not state it a second time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..spellings import spelled


@dataclass(frozen=True, slots=True)
class Family:
    """The tags of one grammar: the openers of its calls and of their parameters, without attributes."""

    grammar: str
    calls: frozenset[str]
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Framing:
    """The messages with headers of one grammar."""

    grammar: str
    data: Mapping[str, Any]
    typed: bool = False  # the kind of a message is a token, which is all that tells it

    @property
    def tokens(self) -> tuple[str, ...]:
        """Its tokens that a message begins with."""
        return tuple(token for key in ("start", "channel", "message") for token in self.data.get(key, ()))

    def channel(self, opener: str) -> str | None:
        """What a message with this header comes to: "reasoning", "text", "call", "" (dropped); None: no header."""
        token = next((token for token in self.data.get("channel", ()) if opener.startswith(token)), None)
        if token is None:
            return None
        words = opener.removeprefix(token)
        for message in self.data.get("message", ()):
            words = words.removesuffix(message)
        if "to=" in words:
            return "call"
        routes = {route["channel"]: route["to"] for route in self.data.get("route", ()) if "channel" in route}
        return routes.get(words.strip())


@dataclass(frozen=True, slots=True)
class Typed(Framing):
    """Messages of one grammar that all begin with one token, and whose kind is another behind the words of a header."""

    typed: bool = True

    @property
    def kinds(self) -> dict[str, str]:
        """What the tokens of a kind make of their message."""
        shared = [one for one in self.data["envelope"] if one.get("shared")]
        kinds = {token: "text" for one in self.data["reasoning"] for token in one["close"]}
        kinds |= {token: "reasoning" for one in self.data["reasoning"] for token in one["open"]}
        return kinds | {token: "call" for one in shared for token in one["separators"]}

    @property
    def tokens(self) -> tuple[str, ...]:
        """Those of the kinds, which may stand alone, and what a message begins with."""
        shared = [one for one in self.data["envelope"] if one.get("shared")]
        return (*self.kinds, *(token for one in shared for token in one["open"]))

    def channel(self, opener: str) -> str | None:
        """What a message with this token comes to: "reasoning", "text", "call"; None: it does not say."""
        return self.kinds.get(opener)


@dataclass(slots=True)
class Pairing:
    """The keys and values in tags of one grammar, with what other files add to them."""

    envelopes: set[str] = field(default_factory=set)
    opens: set[str] = field(default_factory=set)  # of keys and values
    separators: dict[str, str] = field(default_factory=dict)  # what may stand behind the name -> grammar


@dataclass(slots=True)
class Owners:
    """The markers of the shipped files, as far as templates share them."""

    envelopes: dict[str, tuple[str, str]] = field(default_factory=dict)  # opener -> (grammar, envelope)
    closers: dict[str, set[str]] = field(default_factory=dict)  # envelope -> its closers
    headers: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # envelope -> (header, grammar)
    single: dict[str, str] = field(default_factory=dict)  # a marker that stands alone -> grammar
    reasoning: set[str] = field(default_factory=set)  # openers of reasoning
    always: set[str] = field(default_factory=set)  # grammars that come with every choice
    families: list[Family] = field(default_factory=list)
    pairs: dict[str, Pairing] = field(default_factory=dict)
    frames: list[Framing] = field(default_factory=list)
    renders: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # of the body that writes a grammar's calls

    @classmethod
    def of(cls, files: Mapping[str, Mapping[str, Any]]) -> Owners:
        """Collect them from the data of grammar files by name."""
        owners = cls()
        for grammar, data in files.items():
            owners._add(grammar, data)
        for grammar, data in files.items():
            owners._add_named(grammar, data)
        return owners

    def _add(self, grammar: str, data: Mapping[str, Any]) -> None:
        for one in data.get("envelope", ()):
            name, special = one["name"], bool(one.get("special"))
            for literal in one.get("open", ()):
                for word in spelled(literal, special):
                    self.envelopes.setdefault(_folded(word), (grammar, name))
            self.closers.setdefault(name, set()).update(map(_folded, one.get("close", ())))
            spellings = [word for header in one.get("headers", ()) for word in spelled(header, True)]
            self.headers.setdefault(name, []).extend((word, grammar) for word in spellings)
        self.reasoning.update(_folded(literal) for one in data.get("reasoning", ()) for literal in one.get("open", ()))
        for literal in _alone(data):
            self.single.setdefault(_folded(literal), grammar)
        for one in data.get("tags", ()):
            openers = [opens for opens, _ in one.get("sigils", ())]
            calls = frozenset(_folded(opens + word) for opens in openers for word in one.get("call", ()))
            keys = frozenset(_folded(opens + key["name"]) for opens in openers for key in one.get("key", ()))
            self.families.append(Family(grammar, calls, keys))
        for one in data.get("pairs", ()):
            pairing = self.pairs.setdefault(one.get("of", grammar), Pairing())
            pairing.envelopes.update(one.get("envelope", ()))
            pairing.opens.update(map(_folded, (*one.get("key_open", ()), *one.get("value_open", ()))))
            pairing.separators.update((_folded(token), grammar) for token in one.get("separator", ()))
        if "frame" in data:
            self.frames.append(Framing(grammar, data["frame"]))
        if any(one.get("shared") for one in data.get("envelope", ())) and "reasoning" in data:
            self.frames.append(Typed(grammar, data))
        if data.get("always"):
            self.always.add(grammar)
        render = self.renders[grammar] = data.get("render", {})
        bodies = (one for one in data.get("body", ()) if one["syntax"] == render.get("body"))
        self.settings[grammar] = next((one.get("settings", {}) for one in bodies), {})

    def _add_named(self, grammar: str, data: Mapping[str, Any]) -> None:
        """Tags of a family in an envelope whose opener carries the name."""
        for body in data.get("body", ()):
            if body["syntax"] == "tags" and body.get("named"):
                family = body.get("settings", {}).get("of", grammar)
                named = [one for one in data.get("envelope", ()) if one["name"] in body["envelope"]]
                calls = frozenset(
                    _folded(word.removesuffix(">")) for one in named if one.get("attributes") for word in one["open"]
                )
                keys = frozenset().union(*(one.keys for one in self.families if one.grammar == family))
                self.families.append(Family(grammar, calls, keys))

    def envelope(self, opener: str) -> tuple[str, str] | None:
        """The grammar and the envelope that this marker opens."""
        return self.envelopes.get(_folded(opener))

    def closes(self, envelope: str, closer: str) -> bool:
        """Is this a closer of the envelope?"""
        return _folded(closer) in self.closers.get(envelope, ())

    def longest(self, head: str) -> tuple[str, str, str] | None:
        """The owned opener that ``head`` begins with: (marker, grammar, envelope)."""
        for end in range(len(head), 0, -1):
            owner = self.envelope(head[:end])
            if owner is not None:
                return head[:end], *owner
        return None

    def alone(self, marker: str) -> str | None:
        """The grammar in which this marker stands by itself: a control token, an answer tag, a turn, a result."""
        return self.single.get(_folded(marker))

    def owns(self, marker: str) -> bool:
        """Does any shipped file read this marker?"""
        return self.alone(marker) is not None or self.envelope(marker) is not None or _folded(marker) in self.reasoning

    def family(self, call: str, key: str) -> str | None:
        """The grammar whose tags these are."""
        both = _folded(call), _folded(key)
        return next((one.grammar for one in self.families if both[0] in one.calls and both[1] in one.keys), None)

    def pairing(self, envelope: str, opens: list[str], values: bool, separators: list[str]) -> list[str]:
        """The grammars that read keys and values in these tags, behind a name with these texts; none if none does.

        ``values``: each value has an opener of its own.
        """
        for grammar, one in self.pairs.items():
            behind = [one.separators.get(_folded(text)) for text in separators]
            same = envelope in one.envelopes and one.opens.issuperset(map(_folded, opens))
            if values and same and None not in behind:
                return list(dict.fromkeys([grammar, *(name for name in behind if name is not None)]))
        return []

    def framing(self, opener: str) -> Framing | None:
        """The frames that this opener is a header of."""
        return next((one for one in self.frames if opener.startswith(one.tokens)), None)


def _folded(marker: str) -> str:
    return marker.lower()


def _alone(data: Mapping[str, Any]) -> Iterator[str]:
    for key in ("tokens", "after_markup"):
        for literal in data.get("control", {}).get(key, ()):
            yield from spelled(literal, True)
    yield from data.get("turn", {}).get("open", ())
    for one in data.get("tags", ()):
        # The wrappers of special tags are markup by their sigil.
        if one.get("special"):
            for word in one.get("wrapper", ()):
                yield from (sigil + word for pair in one.get("sigils", ()) for sigil in pair)
    for section in ("answer", "result", "section"):
        for one in data.get(section, ()):
            yield from (*one.get("open", ()), *one.get("close", ()))
