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
    frames: list[Framing] = field(default_factory=list)
    renders: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Mapping[str, Mapping[str, Any]]) -> Owners:
        """Collect them from the data of grammar files by name."""
        owners = cls()
        for grammar, data in files.items():
            owners._add(grammar, data)
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
        if "frame" in data:
            self.frames.append(Framing(grammar, data["frame"]))
        if data.get("always"):
            self.always.add(grammar)
        self.renders[grammar] = data.get("render", {})

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
