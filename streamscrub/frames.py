"""Framed formats: a header says who is spoken to, and so whether a message is reasoning, text or a call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from .blocks import Use
from .limits import MAX_HEADER
from .names import Offer
from .reading import DEAD, DONE, MORE, NOTHING, Around, Run
from .sentinels import CUT, Sentinels, sentinels

_RECIPIENT: Final = re.compile(r"\bto=([^\s<{]*)")
# What may follow the role before the next token, as far as it is there.
_AFTER_ROLE: Final = re.compile(rb"\s*+(?:t(?:o(?:=[^\s<{]*+\s*+[a-z]*+\s*+)?)?)?")
_PUNCTUATION: Final = re.compile(rb"[.,;:!?)\]\"']{1,8}+")
_TO_CUT: Final = re.compile(rb"\s*+(?:t(?:o=?+)?+)?+\s*+")
_WORD: Final = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One framed format, as its grammar file states it.

    A message is ``start`` role ``channel`` words ``message`` body, ended by one of ``ends``; ``channel`` or ``start``
    may be missing. ``routes`` map channels and recipients to "reasoning", "text", "dropped" or "call".
    """

    name: str
    start: tuple[bytes, ...]
    channel: tuple[bytes, ...]
    message: tuple[bytes, ...]
    ends: tuple[bytes, ...]
    constrain: tuple[bytes, ...]
    roles: frozenset[str]
    prefix: str  # of a recipient that is a tool
    channels: Mapping[str, str]
    recipients: Mapping[str, str]
    around: Around = field(default_factory=Around)
    inner: Sentinels = NOTHING  # openers of calls that a call's message may hold
    uses: tuple[Use, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)  # a word in a header -> whose bodies the message holds

    @classmethod
    def read(cls, name: str, data: Mapping[str, Any]) -> Frame:
        """From the ``[frame]`` table of a grammar file."""

        def literals(key: str) -> tuple[bytes, ...]:
            return tuple(word.encode() for word in data.get(key, ()))

        routes = data.get("route", ())
        return cls(
            name,
            literals("start"),
            literals("channel"),
            literals("message"),
            literals("ends"),
            literals("constrain"),
            frozenset(data.get("roles", ())),
            str(data.get("prefix", "")),
            {route["channel"]: route["to"] for route in routes if "channel" in route},
            {route["recipient"]: route["to"] for route in routes if "recipient" in route},
        )

    @property
    def openers(self) -> tuple[bytes, ...]:
        """What may begin a message."""
        return (*self.start, *self.channel)

    @property
    def glued(self) -> Sentinels:
        """A role and a channel, as they stand where the tokens between them were taken away."""
        return sentinels(tuple((role + name).encode() for role in sorted(self.roles) for name in self.channels))

    def mentioned(self, token: bytes, buf: bytearray, i: int, end: int) -> int:
        """Is the opener, which ends before ``i``, only mentioned? DONE: no word of a header follows. DEAD: one does."""
        words = self.channels if token in self.channel else self.roles
        text = bytes(buf[i : min(end, i + MAX_HEADER)])
        here = text.lstrip()
        if not here:
            return MORE if len(text) < MAX_HEADER else DONE
        if here == text:
            # A sentence that goes on behind the token.
            stop = _PUNCTUATION.match(text)
            k = stop.end() if stop is not None else 0
            if k and k == len(text):
                return MORE
            return DONE if k and text[k : k + 1].isspace() else DEAD
        if here[:1] == b"<":
            return DEAD
        begins = [one for one in (*words, "to=") if here.startswith(one.encode())]
        if begins:
            return DEAD
        return MORE if any(one.encode().startswith(here) for one in (*words, "to=")) else DONE

    def begun(self, prompt: bytearray) -> bool:
        """Does the prompt end behind the start token of a message and its role?"""
        return any(prompt.endswith(token + role.encode()) for token in self.start for role in self.roles)

    def tool_name(self, recipient: str, offer: Offer) -> str:
        """The recipient as a name: as it stands if it is offered, else without the prefix."""
        return recipient if offer.get(recipient) is not None else recipient.removeprefix(self.prefix)

    def calls(self, recipient: str) -> bool:
        """Is a message to this recipient a call?"""
        return bool(recipient) and self.recipients.get(recipient, "call") == "call"

    def begins_route(self, recipient: str) -> bool:
        """May this, if the stream cut it, have become one whose messages are no calls?"""
        return any(name.startswith(recipient) and not self.calls(name) for name in self.recipients)

    @property
    def marks(self) -> Sentinels:
        """All tokens of the format."""
        return sentinels((*self.start, *self.channel, *self.message, *self.ends, *self.constrain))

    @property
    def others(self) -> tuple[bytes, ...]:
        """Tokens that carry nothing where they stand alone."""
        return (*self.message, *self.ends, *self.constrain)

    def bound(self, around: Around, inner: Sentinels, uses: tuple[Use, ...], types: Mapping[str, str]) -> Frame:
        """The same with the compiled surroundings of a call's body."""
        return replace(self, around=around, inner=inner, uses=uses, types=types)

    def typed(self, word: str) -> tuple[Use, ...]:
        """The bodies of a call's message, those first that its header says."""
        return tuple(sorted(self.uses, key=lambda use: use.grammar != self.types.get(word)))

    def __deepcopy__(self, memo: object) -> Frame:
        return self


@dataclass(frozen=True, slots=True)
class Header:
    """What a message header says."""

    kind: str  # "call", "reasoning", "text", "dropped", "turn" (another role speaks) or "" (no message at all)
    recipient: str = ""
    code: bool = False  # the body is code, not JSON
    type: str = ""  # a word for what the body is


class HeaderReader:
    """Reads one header from behind its first token. DONE leaves ``header`` set and ``at`` behind the header."""

    __slots__ = ("_from", "_pieces", "_start", "_tokens", "at", "broken", "evidence", "frame", "header", "run")

    def __init__(self, start: int, frame: Frame, opener: bytes) -> None:
        self.at = self._from = self._start = start
        self.frame = frame
        self.evidence = False
        self.broken = False
        self.run: Run | None = None
        self.header: Header | None = None
        self._pieces: list[tuple[bytes, str]] = []  # (token before it, text)
        self._tokens = opener

    def shift(self, by: int) -> None:
        self.at -= by
        self._from -= by
        self._start -= by

    @property
    def keep(self) -> int:
        return self._from

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        frame = self.frame
        marks = frame.marks
        while True:
            i, size = marks.find(buf, self.at, end, final)
            outer = frame.around.outer.find(buf, self.at, i if size > 0 else end, final or size > 0)
            stop = min(i, outer[0])
            if self._tokens in frame.start:
                # A role and words behind it are a message without a token, and shown at once.
                # A token that the end of the stream cut is none of them.
                limit = min(stop, self._start + MAX_HEADER, marks.find(buf, self.at, end, False)[0])
                known = self._from + self._words(bytes(buf[self._from : limit]))
                header = _AFTER_ROLE.match(buf, known, limit)
                if known > self._from and header is not None and header.end() < limit and buf[header.end()] != 0x7B:
                    return self._ended(buf, header.end() + 1, header.end())
            if stop - self._start > MAX_HEADER:
                return self._ended(buf, self._from, self._from)
            if outer[1] > 0 and outer[0] < i:
                # A token of another format: this is no header.
                return self._ended(buf, outer[0], outer[0])
            if size <= 0:
                self.at = min(i, outer[0])
                return MORE
            token = bytes(buf[i : i + size])
            text = bytes(buf[self._from : i]).decode("utf-8", "replace")
            brace = text.find("{")
            if brace >= 0 and self.recipient(buf, self._from + brace):
                # The body of a call begins without its token.
                self._pieces.append((self._tokens, text[:brace]))
                self.at = self._from + len(text[:brace].encode())
                self.header = self._decide()
                return DONE
            self._pieces.append((self._tokens, text))
            if token in frame.message:
                again = marks.at(buf, i + size, end)
                if (again == CUT or i + size == end) and not final:
                    self._pieces.pop()
                    self.at = i
                    return MORE
                doubled = again > 0 and bytes(buf[i + size : i + size + again]) in frame.message
                self.at = i + size + (again if doubled else 0)
                self.header = self._decide()
                return DONE
            if token in frame.ends or (token in frame.start and (self._tokens not in frame.start or text.strip())):
                # No message token came. A recipient is lost with it; a bare channel word was nothing.
                self._pieces.pop()
                return self._ended(buf, i, i if token in frame.start else i + size)
            self._tokens = token
            self._from = self.at = i + size

    def _ended(self, buf: bytearray, i: int, resume: int) -> int:
        """The header ends at ``i`` without its message token. Words that belong to no header are the message."""
        text = bytes(buf[self._from : i])
        self._pieces.append((self._tokens, text.decode("utf-8", "replace")))
        header = self._decide()
        self.at = resume
        self.broken = True
        self.header = header
        if header.kind in ("call", "turn"):
            return DONE
        known = self._words(text)
        if text[known:].strip() and (known or resume == i):
            self.at = self._from + known
            self.header = Header(self.frame.channels.get(text[:known].strip().decode(), "text"))
        else:
            self.header = Header("")
        return DONE

    def ended(self, buf: bytearray, end: int) -> bool:
        """The stream ended in the header: is there a message in it? Then ``header`` and ``at`` are set."""
        word = bytes(buf[self._from : end]).strip().decode("utf-8", "replace")
        if word and any(name.startswith(word) and name != word for name in self._known):
            # A channel or a role that was cut is no message.
            return False
        text = bytes(buf[self._from : end])
        known = self._words(text)
        whole, _ = self.frame.marks.find(buf, self._from, end, False)
        rest = _AFTER_ROLE.match(buf, self._from + known, whole)
        recipient = known and rest is not None and rest.end() == whole and self._tokens in self.frame.start
        if recipient or _TO_CUT.fullmatch(text, known) is not None:
            # Neither is a recipient that was, or one before a token that was.
            return False
        self._ended(buf, end, end)
        return self.header is not None and self.header.kind != ""

    @property
    def _known(self) -> Iterable[str]:
        """The words that may stand first behind the present token."""
        return self.frame.channels if self._tokens in self.frame.channel else self.frame.roles

    def _words(self, text: bytes) -> int:
        """How many bytes of the last piece of the header are its role or channel."""
        lead = len(text) - len(text.lstrip())
        return max((lead + len(name) for name in self._known if text.startswith(name.encode(), lead)), default=0)

    def recipient(self, buf: bytearray, end: int) -> str:
        """The recipient as far as the header was read, "" if there is none."""
        text = bytes(buf[self._from : end]).decode("utf-8", "replace")
        found = [*_RECIPIENT.findall(" ".join(piece for _, piece in self._pieces) + " " + text)]
        return next((name for name in reversed(found) if self.frame.calls(name)), "")

    def _decide(self) -> Header:
        frame = self.frame
        channel = role = ""
        names: list[str] = []
        words: list[str] = []
        for token, text in self._pieces:
            names += _RECIPIENT.findall(text)
            plain = _RECIPIENT.sub(" ", text)
            found = _WORD.findall(plain)
            if token in frame.start or not token:
                role = next((one for one in frame.roles if plain.lstrip().startswith(one)), found[0] if found else role)
                words += found[1:]
            elif token in frame.channel:
                channel = found[0] if found else channel
                words += found[1:]
            else:
                words += found
        if role and role not in frame.roles:
            return Header("turn")
        called = next((name for name in reversed(names) if self.frame.calls(name)), "")
        if called:
            typed = next((word for word in words if word in frame.types), "")
            return Header("call", called, "code" in words, typed)
        for name in reversed(names):
            if name in frame.recipients:
                kind = frame.recipients[name]
                if kind:
                    return Header(kind)
        return Header(frame.channels.get(channel, "text"))
