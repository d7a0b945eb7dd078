"""How a call block is read: its opener's attributes or header, one or more bodies, padding, closer.

An *envelope* is what the grammar files say about an opener: its closers, the bodies that may follow it in a stated
order, and for some the header that stands before the body. Bodies are read side by side; those that cannot go on drop
out, and the first that is left at the end wins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from .attributes import read_attributes
from .bodies.base import Body, Ending, Settings
from .bodies.tag_syntax import bare_tag
from .limits import MAX_BLANKS, MAX_HEADER, MAX_NAME
from .names import Offer
from .reading import (
    BLANK,
    DEAD,
    DONE,
    FENCE_RUN,
    MORE,
    NOTHING,
    Around,
    Reader,
    Run,
    UntilCloser,
    behind_tokens,
    padding_end,
)
from .sentinels import CUT, Sentinels, sentinels

# A fourth verdict: the opener only wraps what follows at ``at``, which has an opener of its own.
NEST: Final = 3

_NAME: Final = re.compile(rb"[ \t\r\n]*+([^\s<>{}\[\]\"'`|]{0,%d})[ \t\r\n]*+" % MAX_NAME)
_ELEMENT: Final = re.compile(rb"<([A-Za-z_][\w.-]{0,%d}+)" % MAX_NAME)
_FENCE: Final = re.compile(rb"(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*\r?\n")
_FENCE_PREFIX: Final = re.compile(rb"(?:`+|~+)(?<=```)?[ \t]*+[\w+-]*+[ \t]*+\r?\Z|`{1,2}\Z|~{1,2}\Z")
# A tag pair of no meaning around a JSON body, as some models write it.
_WRAP: Final = re.compile(rb"<(syntax|block|code|json)>[ \t\r\n]{0,256}+(?=([{\[]|\Z))")
_WRAP_CUT: Final = re.compile(rb"<(?:s|sy|syn|synt|synta|syntax|b|bl|blo|bloc|block|c|co|cod|code|j|js|jso|json)?\Z")


@dataclass(frozen=True, slots=True)
class Use:
    """A body as one grammar uses it."""

    body: Body
    grammar: str
    settings: Settings = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """An opener with all that may follow it, compiled from the grammar files.

    ``inner`` are openers of other calls: behind this opener they make it a mere wrapper. ``tags`` are those that do so
    behind a header, because they carry a name of their own. ``separators`` are the markers that may stand in a header.
    ``named`` are the bodies for an opener that carries the name itself.
    """

    name: str
    around: Around
    uses: tuple[Use, ...] = ()
    named: tuple[Use, ...] = ()
    headed: tuple[Use, ...] = ()
    behind: Mapping[bytes, tuple[Use, ...]] = field(default_factory=dict)  # a separator on the wire -> headed ones
    inner: Sentinels = NOTHING
    tags: Sentinels = NOTHING
    separators: Sentinels = NOTHING
    headers: tuple[tuple[str, ...], ...] = ()
    spellings: Mapping[bytes, str] = field(default_factory=dict)  # a separator on the wire -> in the headers
    special: bool = False
    closes: bool = True
    chains: bool = False
    fenced: bool = False  # a fence around the body belongs to the format
    from_last: bool = False  # the last byte of the opener is the first of the body
    shared: bool = False  # the opener begins other messages, too: only a separator makes it a call
    demand: bool = False  # an offered name must be read before it counts as a call
    wordy: bool = False  # a separator begins with what may be a part of a name
    unbracketed: bool = False  # a body behind a header may begin with anything

    @staticmethod
    def is_wordy(separator: bytes) -> bool:
        """Does it begin with a byte that the words of a header may hold, too?"""
        word = _NAME.match(separator)
        return word is not None and word.end() > 0

    def fence(self, run: bytes) -> Envelope:
        """The same behind a fence of this run: only one of its kind that is as long closes it."""
        return _in_fence(self, run)

    def __deepcopy__(self, memo: object) -> Envelope:
        return self


@lru_cache(maxsize=64)
def _in_fence(envelope: Envelope, run: bytes) -> Envelope:
    return replace(envelope, around=replace(envelope.around, close=sentinels((run,))))


@dataclass(slots=True)
class Part:
    """One body that was read: which syntax, where, what ended it, and the name from its header."""

    use: Use
    start: int
    end: int
    ending: Ending
    name: str | None = None
    model_id: str | None = None
    fenced: bool = False  # a redundant fence stood around it
    wrapped: bytes = b""  # or a tag pair of no meaning, of this name
    surplus: bool = False  # closing brackets stood behind it that nothing had opened


_HEAD, _HEADER, _LEAD, _BODY, _TAIL, _CHAIN = range(6)


@dataclass(slots=True)
class _Try:
    """One of the bodies that are read side by side."""

    use: Use
    reader: Reader
    verdict: int = MORE


@dataclass(slots=True)
class BlockReader:
    """Reads one block from behind its opener. The common part is ``reading.Reader``."""

    envelope: Envelope
    offer: Offer
    at: int
    evidence: bool = False
    broken: bool = False
    run: Run | None = None
    closed: bool = False  # the closer was there
    closer: int = -1  # and where
    implicit: bool = False  # ended by what follows, not by the end of the stream
    frayed: bool = False  # the stream ended in what may still have been padding of it, behind ``at``
    parts: list[Part] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    attributed: bool = False  # the opener's tag is not at its end yet
    unclosed: bytes = b""  # a body that begins with one of these needs no closer
    named_only: bool = False  # words that may be a header, and another marker instead of a body
    _phase: int = _HEAD
    _from: int = 0  # where the present piece began
    _alive: list[_Try] = field(default_factory=list)
    _first: Reader | None = None  # of the first body, once that is complete
    _part: Part | None = None
    _pieces: list[tuple[bytes, bytes]] = field(default_factory=list)  # header: (text, separator after it)
    _fenced: bool = False
    _wrapped: bytes = b""

    def __post_init__(self) -> None:
        self._from = self.at
        if not self.attributed:
            self._phase = _LEAD

    # -- the common part of readers

    def shift(self, by: int) -> None:
        self.at -= by
        self.closer -= by
        self._from -= by
        for part in self.parts:
            part.start -= by
            part.end -= by
        for one in self._alive:
            one.reader.shift(by)
        if self._first is not None:
            self._first.shift(by)
        if self._part is not None:
            self._part.start -= by

    @property
    def keep(self) -> int:
        return min([self.at, *(one.reader.keep for one in self._alive)])

    @property
    def name(self) -> str | None:
        """The first name, once it is whole."""
        headed = self.parts[0].name if self.parts else self._part.name if self._part is not None else None
        return headed or getattr(self.leading, "name", None)

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the arguments of the first call stand: (start, end so far), or (-1, -1)."""
        found: tuple[int, int] = getattr(self.leading, "arguments", (-1, -1))
        return found

    @property
    def leading(self) -> Reader | None:
        """The reader of the first body: the one that has read it, or else the first that still may."""
        return self._first or (self._alive[0].reader if self._alive else None)

    @property
    def grammar(self) -> str:
        """The grammar that reads this block, as far as it is known."""
        uses = [part.use for part in self.parts] + [one.use for one in self._alive]
        return uses[0].grammar if uses else self.envelope.name

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        while True:
            phase = self._phase
            if phase == _BODY:
                verdict = self._body(buf, end, final)
            elif phase == _TAIL:
                verdict = self._tail(buf, end, final)
            elif phase == _LEAD:
                verdict = self._lead(buf, end, final)
            elif phase == _HEAD:
                verdict = self._head(buf, end)
            elif phase == _CHAIN:
                verdict = self._chain(buf, end, final)
            else:
                verdict = self._header(buf, end, final)
            if verdict >= 0:
                return verdict

    @property
    def opened(self) -> int:
        """The index behind the opener while no body was met, -1 inside it."""
        return -1 if self._phase == _HEAD else self._from

    @property
    def inner(self) -> Reader | None:
        """The reader that runs inside this one."""
        return self._alive[0].reader if len(self._alive) == 1 else None

    def open_part(self, end: int, cut: bool) -> Part | None:
        """What is being read when the stream ends at ``end``. Without ``cut`` it may be whole as it stands."""
        if self._phase == _HEADER and self._pieces:
            named, model_id = self._match_header()
            whole = len(self._pieces) > 1 or bool(self._pieces[0][0].strip())
            return Part(self.envelope.headed[0], end, end, "cut", named if whole else None, model_id)
        part = self._part
        if part is None or not self._alive:
            return None
        part.use = self._alive[0].use
        part.end = end
        part.ending = "closed" if not cut and getattr(self._alive[0].reader, "settled", False) else "cut"
        return part

    # -- the phases; each returns a verdict, or -1 to go on

    def _head(self, buf: bytearray, end: int) -> int:
        verdict, i, found = read_attributes(buf, self.at, end)
        if verdict != DONE:
            return verdict
        self.attributes = found
        self.at = self._from = i
        if "/" in found:
            self._named_part(i)
            self.closed = True
            return DONE
        self._phase = _LEAD
        return -1

    def _lead(self, buf: bytearray, end: int, final: bool) -> int:
        """From behind the opener to the first byte of a header or body."""
        envelope = self.envelope
        run = BLANK.match(buf, self.at, end)
        i = run.end() if run is not None else self.at
        if i - self.at > MAX_BLANKS:
            return DEAD
        if i == end:
            return MORE
        if buf[i] in envelope.around.leads or buf[i] in envelope.inner.leads:
            separator = envelope.separators.at(buf, i, end, final)
            verdict, parameter = self._parameter(buf, i, end)
            if verdict == MORE:
                return MORE
            for markers in (envelope.inner, envelope.around.close, envelope.around.outer):
                size = 0
                if separator <= 0 and parameter is None:
                    closing = markers is envelope.around.close
                    size = self._closer(buf, i, end, final) if closing else markers.at(buf, i, end, final)
                if size == CUT or separator == CUT:
                    return MORE
                if size <= 0:
                    continue
                self.at = i
                if markers is envelope.around.close:
                    self._named_part(i)
                    self._close(i, size)
                    return DONE
                if markers is envelope.inner:
                    return NEST
                if not self.evidence:
                    return DEAD
                break  # what named the call makes it one, so a body is looked for all the same
            if parameter is not None and "name" not in self.attributes:
                # A call without a name, which is malformed.
                self._begin((parameter,), i, "", None)
                self._loose()
                self.evidence = True
                return -1
        if buf[i] == 0x3C and envelope.inner.literals and not self.attributes:
            word = _ELEMENT.match(buf, i, end)
            name = word.group(1).decode() if word is not None else ""
            if word is not None and word.end() == end and self.offer.known and self.offer.may_begin(name):
                return MORE
            if self.offer.get(name) is not None:
                # An element of an offered name, which is read by itself.
                self.at = i
                return NEST
        if buf[i] in b"`~":
            fence = _FENCE.match(buf, i, end)
            if fence is None:
                if _FENCE_PREFIX.match(buf, i, end) is not None and end - i < MAX_HEADER:
                    return MORE
            else:
                self._fenced = not envelope.fenced
                self.at = fence.end()
                return -1
        if buf[i] == 0x3C and not self._wrapped and not self._element(buf, i):
            wrap = _WRAP.match(buf, i, end)
            if (wrap is not None and not wrap[2]) or _WRAP_CUT.match(buf, i, end):
                return MORE
            if wrap is not None:
                self._wrapped = wrap[1]
                self.at = wrap.end()
                return -1
        self._from = i
        named = self.attributes.get("name")
        if named is not None and envelope.named:
            self._begin(envelope.named, i, named, None)
            self.evidence = buf[i] == 0x7B
        elif envelope.headers and buf[i] not in b"{[":
            self._phase = _HEADER
        else:
            self._begin(envelope.uses, i, None, None)
        return -1

    def _element(self, buf: bytearray, i: int) -> bool:
        """Whether a tag at ``i`` is a parameter of the tool that the opener names."""
        name = self.attributes.get("name")
        tool = self.offer.resolve(name).tool if name else None
        word = _ELEMENT.match(buf, i)
        return tool is not None and word is not None and word.group(1).decode() in tool.properties

    def _parameter(self, buf: bytearray, i: int, end: int) -> tuple[int, Use | None]:
        """The body whose parameter opens at ``i``, if this opener carries names: one that has a name itself."""
        for use in self.envelope.named:
            tags = use.settings.get("tags")
            size = tags.key_open.at(buf, i, end) if tags is not None else 0
            if size > 0:
                verdict, stop, _ = read_attributes(buf, i + size, end)
                if verdict == MORE:
                    return MORE, None
                return DONE, None if bare_tag(buf, i + size, stop) else use
        return DONE, None

    def _closer(self, buf: bytearray, i: int, end: int, final: bool) -> int:
        """The size of the closer at ``i``, 0, or CUT. The run that closes a fence may be longer than its opener."""
        size = self.envelope.around.close.at(buf, i, end, final)
        if size <= 0 or buf[i] not in b"`~":
            return size
        j = i + size
        while j < end and buf[j] == buf[i]:
            j += 1
        return CUT if j == end and not final else j - i

    def _close(self, i: int, size: int) -> None:
        self.closer = i
        self.at = i + size
        self.closed = True

    def _named_part(self, i: int) -> None:
        """A whole name in the opener and nothing behind it make a call without arguments."""
        if "name" in self.attributes and self.envelope.named:
            self._whole(Part(self.envelope.named[0], i, i, "closed", self.attributes["name"]))

    def _header(self, buf: bytearray, end: int, final: bool) -> int:
        """Text and separators up to the body: ``functions.find:0 SEP {``, ``function SEP find`` + fence."""
        envelope = self.envelope
        while True:
            i = self._word_end(buf, end)
            if i - self._from > MAX_HEADER:
                return self._unheaded(i)
            if i == end:
                return MORE
            size = envelope.separators.at(buf, i, end)
            if size == CUT:
                return MORE
            if size > 0:
                self._pieces.append((bytes(buf[self._from : i]), bytes(buf[i : i + size])))
                self._from = self.at = i + size
                self.evidence = self.evidence or self._proves()
                behind = envelope.behind.get(self._pieces[-1][1])
                if behind is not None and self._matched() is not None:
                    self._begin(behind, self.at, *self._match_header())
                    return -1
                if envelope.unbracketed and self._matched() is not None:
                    self._begin(envelope.headed, self.at, *self._match_header())
                    return -1
                continue
            text = bytes(buf[self._from : i])
            # Behind a separator the arguments may stand in a string.
            quoted = buf[i] in b'"' and bool(self._pieces) and not text.strip()
            if buf[i] in b"{[" or quoted or (buf[i] in b"`~" and (self._pieces or self._offered(text))):
                if not (text.strip() or self._pieces):
                    return self._unheaded(i)
                self._pieces.append((text, b""))
                named, model_id = self._match_header()
                if buf[i] in b"`~":
                    fence = _FENCE.match(buf, i, end)
                    if fence is None:
                        if _FENCE_PREFIX.match(buf, i, end) is not None and end - i < MAX_HEADER:
                            self._pieces.pop()
                            return MORE
                    else:
                        # A fence right behind a separator is not the one of the format, which follows the name.
                        self._fenced = not (envelope.fenced and text.strip())
                        i = fence.end()
                        gap = BLANK.match(buf, i, end)
                        i = gap.end() if gap is not None else i
                self._begin(envelope.headed, i, named, model_id)
                return -1
            for markers in (envelope.tags, envelope.around.close, envelope.around.outer):
                size = markers.at(buf, i, end) if markers is not envelope.tags or self._pieces else 0
                if size == CUT:
                    return MORE
                if size > 0 and markers is envelope.tags:
                    self.at = i
                    return NEST
                if size > 0:
                    return self._header_ended(bytes(buf[self._from : i]), i, size, markers is envelope.around.close)
            return self._unheaded(i)

    def _word_end(self, buf: bytearray, end: int) -> int:
        """Where the word of a header that begins at ``_from`` ends, with the blanks around it."""
        word = _NAME.match(buf, self._from, end)
        i = word.end() if word is not None else self._from
        if not self.envelope.wordy:
            return i
        return min(i, self.envelope.separators.find(buf, self._from, min(end, i + MAX_HEADER))[0])

    def _header_ended(self, text: bytes, i: int, size: int, by_closer: bool) -> int:
        """The header met a closer or another opener before any body."""
        if not self._pieces and not text.strip():
            self.at = i
            return DEAD
        alone = not self._pieces
        if alone and (self.envelope.shared or (by_closer and not self._offered(text))):
            # Words between two tokens: nothing that the format wants next was there.
            self.at = i
            return DEAD
        if not alone and text.strip() == b"null":
            text = b""  # no arguments
        known = self._match_header() if self._pieces and self._matched() is not None else (None, None)
        self._pieces.append((text, b""))
        named, model_id = known if known[0] else self._match_header()
        ending: Ending = "closed" if by_closer else "cut"
        whole = not alone or by_closer
        self.parts.append(Part(self.envelope.headed[0], i, i, ending, named if whole else None, model_id))
        self.evidence = True
        self.at = i + size if by_closer else i
        self.closed = by_closer
        self.implicit = not by_closer
        self.named_only = alone and not by_closer
        return DONE

    def _offered(self, text: bytes) -> bool:
        """Is this, alone in a header, the name or the id of a tool that is offered?"""
        word = text.decode("utf-8", "replace").strip()
        return self.offer.known and (self.offer.plain(word) or self.offer.id_name(word).tool) is not None

    def _unheaded(self, i: int) -> int:
        """What stands here is no header."""
        if self.evidence:
            self._pieces.append((b"", b""))
            named, model_id = self._match_header()
            self._begin(self.envelope.headed, self._from, named, model_id)
            self._loose()
            return -1
        return DEAD

    def _loose(self) -> None:
        """A body that is no value of its syntax still has to be found an end: its closer."""
        assert self._part is not None
        self._alive = [_Try(self._part.use, UntilCloser(self.at, self.envelope.around))]

    def _proves(self) -> bool:
        """Is the header so far evidence? A soft one needs an offered name, or more than a header."""
        if self.envelope.special or not self.offer.known:
            return True
        name, _ = self._match_header()
        return self._offered((name or "").encode())

    def _match_header(self) -> tuple[str | None, str | None]:
        """Read (name, model id) off the header by the templates of the grammar."""
        fields = self._matched()
        if fields is not None:
            return fields.get("name", fields.get("id")) or None, fields.get("id")
        texts = [text.decode("utf-8", "replace").strip() for text, _ in self._pieces]
        return (texts[-1] or texts[0] or None), None

    def _matched(self) -> dict[str, str] | None:
        """The fields of the first template that fits the header so far."""
        spellings = self.envelope.spellings
        flat: list[str] = []
        for text, separator in self._pieces:
            flat += [text.decode("utf-8", "replace").strip(), spellings.get(separator, "")]
        while flat and not flat[-1]:
            flat.pop()
        return next(
            (fields for fields in (_match(one, flat) for one in self.envelope.headers) if fields is not None), None
        )

    def _begin(self, uses: tuple[Use, ...], i: int, name: str | None, model_id: str | None) -> None:
        around, offer = self.envelope.around, self.offer
        headed = (self.envelope.named, self.envelope.headed, *self.envelope.behind.values())
        given = {"name": name} if any(uses is one for one in headed) else {}
        self._alive = [_Try(use, use.body.reader(i, around, offer, {**use.settings, **given})) for use in uses]
        self._part = Part(uses[0], i, i, "whole", name, model_id, self._fenced, self._wrapped) if uses else None
        self._phase = _BODY
        self.at = i

    def _body(self, buf: bytearray, end: int, final: bool) -> int:
        for one in self._alive:
            if one.verdict == MORE:
                one.verdict = one.reader.read(buf, end, final)
        self.evidence = self.evidence or any(one.reader.evidence for one in self._alive)
        self._alive = alive = [one for one in self._alive if one.verdict != DEAD]
        if not alive:
            return self._no_body()
        first = alive[0]
        reader = first.reader
        self.at = reader.at
        self.run = reader.run if len(alive) == 1 else None
        if first.verdict == MORE:
            return MORE
        part = self._part
        assert part is not None
        part.use, part.end, part.ending = first.use, reader.at, "whole"
        if reader.broken:
            size = self.envelope.around.close.at(buf, reader.at, end, final)
            if size == CUT:
                return MORE
            part.ending = "closed" if size > 0 else "cut"
        self._first = self._first or reader
        self._whole(part)
        self._alive, self._part, self.run = [], None, None
        self._phase = _TAIL
        return -1

    def _whole(self, part: Part) -> None:
        self.evidence = True
        self.parts.append(part)

    def _no_body(self) -> int:
        if self.parts:
            self.at = self.parts[-1].end
            self._part = None
            self.implicit = True
            return DONE
        if self.evidence and self._part is not None and self._part.name is not None:
            # A header made it a call, so it stays one: malformed, up to its closer.
            self.at = self._part.start
            self._loose()
            return -1
        return DEAD

    def _tail(self, buf: bytearray, end: int, final: bool) -> int:
        """After a complete body: padding, the closer, another body, or something else."""
        envelope = self.envelope
        done = self.parts[-1].end if self.at < self.parts[-1].end else self.at
        i = done
        while True:
            i = padding_end(buf, i, end, envelope.around, final)
            closer = b"</" + self._wrapped + b">" if self._wrapped else b""
            if closer and (here := bytes(buf[i : min(end, i + len(closer))])) and closer.startswith(here):
                if here == closer:
                    i += len(closer)
                    continue
                if not final:
                    return MORE
            fence = FENCE_RUN.match(buf, i, end)
            if fence is None or envelope.around.close.at(buf, i, end, final) != 0:
                break
            if fence.end() == end and not final:
                return MORE
            i = fence.end()
        if any(byte in b"}])" for byte in buf[done:i]) and self.parts[-1].end == done:
            self.parts[-1].surplus = True
        if i - done > MAX_BLANKS and not buf[done:i].strip():
            return self._ends(buf, done)
        self.at = max(done, i - MAX_BLANKS) if i - done > 4 * MAX_BLANKS else done
        if i == end:
            if not final:
                return MORE
            self.at = self._trim(buf, done, i)
            return DONE
        if buf[i] in b"])" and not final and envelope.around.outer.at(buf, i, end) == CUT:
            return MORE  # surplus, or the start of a token
        size = self._closer(buf, i, end, False)
        if size == CUT and final:
            size = self._closer(buf, i, end, True) or CUT
        if size == CUT:
            if not final:
                return MORE
            # The stream ended inside the closer, unless none is due and these bytes may be anything.
            first = self.parts[-1].start  # below 0 if it was dropped already, as of a block that is too large
            self.at = self._trim(buf, done, i) if first >= 0 and buf[first] in self.unclosed else end
            return DONE
        if size == 0:
            verdict, k = behind_tokens(buf, i, end, envelope.around, envelope.around.close)
            if verdict == MORE:
                if not final:
                    return MORE
                self.at = self._trim(buf, done, i)
                self.frayed = True
                return DONE
            if verdict == DONE:
                i, size = k, self._closer(buf, k, end, final)
                if size == CUT:
                    return MORE
        if size > 0:
            self._close(i, size)
            return DONE
        byte = buf[i]
        if byte in b"{[":
            separator = envelope.separators.at(buf, i, end, final)
            size = envelope.around.outer.at(buf, i, end, final)
            if CUT in (size, separator):
                return MORE
            if size == separator == 0:
                last = self.parts[-1]
                self._from = i
                self._begin((last.use,), i, last.name, last.model_id)
                return -1
        again = self.parts[-1].use.body.again
        if again is not None:
            if again[0].match(buf, i, min(end, i + MAX_HEADER)) is not None:
                self._from = i
                self._begin((self.parts[-1].use,), i, None, None)
                return -1
            if not final and end - i < MAX_HEADER and again[1].match(buf, i, end) is not None:
                return MORE
        if envelope.chains and (byte == 0x5F or 65 <= (byte & 0xDF) <= 90):
            self._from = i
            self.at = done
            self._phase = _CHAIN
            return -1
        return self._ends(buf, i)

    def _chain(self, buf: bytearray, end: int, final: bool) -> int:
        """Right behind a body, NAME and a separator make another call of the same block."""
        i = self._word_end(buf, end)
        if i == end and not final:
            return MORE
        size = self.envelope.separators.at(buf, i, end, final) if i < end else 0
        if size == CUT:
            return MORE
        if size > 0:
            self._pieces = []
            self._phase = _HEADER
            return -1
        return self._ends(buf, self._from)

    def _ends(self, buf: bytearray, i: int) -> int:
        """Another byte than padding: the block ended before the blanks that stand there."""
        self.at = self._trim(buf, self.parts[-1].end, i)
        self.implicit = True
        return DONE

    @staticmethod
    def _trim(buf: bytearray, low: int, i: int) -> int:
        while i > low and buf[i - 1] in b" \t\r\n":
            i -= 1
        return i


def _match(template: tuple[str, ...], flat: list[str]) -> dict[str, str] | None:
    """Match a header template, already split into literals and ``{fields}``, against text and separators."""
    if len(template) > len(flat) + 1:
        return None
    fields: dict[str, str] = {}
    k = 0
    for token in template:
        have = flat[k] if k < len(flat) else ""
        if token.startswith("{"):
            fields[token[1:-1]] = have
        elif token != have:
            return None
        k += 1
    return fields if k >= len(flat) else None
