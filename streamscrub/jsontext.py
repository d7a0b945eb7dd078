"""An incremental, string-aware JSON reader: where does this value end, and what stands at its shallow levels.

It is lenient about everything but structure, because the end of a damaged value must be found too: a quote closes a
string only before ``, : } ]`` (or a closer), brackets that do not match pop what they can, bare words are skipped.
Strict JSON is read exactly as a strict reader would. Each byte is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final, Protocol

from .limits import CLOSER_WAIT, MAX_BLANKS
from .reading import BLANK, DEAD, DONE, MORE, Around, Run, plain_run
from .sentinels import CUT

_DEEPEST: Final = 4096  # levels kept; deeper input is malformed anyway, so only its end matters
_SHALLOW: Final = 5  # levels whose keys and strings are told to a watch

_OPENING: Final = re.compile(rb"[ \t\r\n]*(?:\[[ \t\r\n]*)?(?:\{[ \t\r\n]*){0,3}")
_BARE_KEY: Final = re.compile(rb"[A-Za-z_$][\w$.-]{0,127}+[ \t\r\n]*+")
_BORING: Final = re.compile(rb"[\w.+\-$@%&*=!?~^ \t\r\n\x80-\xdf\xe3-\xff]*+")
_FRESH, _STRING, _QUOTE, _COMMENT = range(4)
_CURLY: Final = (b"\xe2\x80\x9c", b"\xe2\x80\x9d", b"\xe2\x80\x9e", b"\xe2\x80\x9f", b"\xe2\x80\x98", b"\xe2\x80\x99")


class Watch(Protocol):
    """Is told what stands at the shallow levels of a value, and may refuse it."""

    bare: bool  # there is no marker: a key that is not followed by its colon refutes the value

    def key(self, depth: int, key: bytes) -> bool:
        """A key of an object at ``depth`` (1 = outermost). False: this is no call."""

    def string(self, depth: int, key: bytes, value: bytes) -> bool:
        """A string value under ``key`` ("" in an array). False: this is no call."""

    def opened(self, depth: int, key: bytes, bracket: int, at: int) -> bool:
        """A container opened at index ``at`` as a value under ``key``; ``depth`` is its own. False: no call."""

    def closed(self, depth: int, at: int) -> bool:
        """The container at ``depth`` closed before index ``at``. False: no call."""

    def scalar(self, depth: int, key: bytes) -> bool:
        """A bare value (number, literal, word) under ``key``. False: no call."""

    def shift(self, by: int) -> None:
        """The first ``by`` bytes of the buffer are gone."""


class JsonReader:
    """Finds the end of one JSON object or array. See ``bodies.base.Reader`` for the common part."""

    __slots__ = (
        "_around", "_comment_end", "_first", "_key", "_key_next", "_keys", "_quote", "_quote_at", "_stack", "_state", "_string",
        "_tent", "_tent_last", "_watch", "_word", "at", "broken", "evidence", "run",
    )  # fmt: skip

    # What may follow the quote that closes a string.
    _CLOSES: ClassVar[bytes] = b",:}]"

    def __init__(self, start: int, around: Around, watch: Watch | None = None) -> None:
        self.at = start
        self.evidence = False
        self.broken = False
        self.run: Run | None = None
        self._first = start
        self._around = around
        self._watch = watch
        self._state = _FRESH
        self._stack = bytearray()
        self._keys: list[bytes] = []  # the current key at each shallow level
        self._key_next = False
        self._key = b""
        self._word = False  # inside a bare word, so a quote mark is an apostrophe
        self._quote = 0
        self._quote_at = 0  # where the present candidate for a closing quote stands
        self._string = 0  # where the content of the present string starts
        self._comment_end = b"\n"
        self._tent = -1  # the first closer seen inside the open string: its tentative end
        self._tent_last = -1

    def shift(self, by: int) -> None:
        self.at -= by
        self._first -= by
        self._quote_at -= by
        self._string -= by
        if self._tent >= 0:
            self._tent -= by
            self._tent_last -= by
        if self._watch is not None:
            self._watch.shift(by)

    @property
    def keep(self) -> int:
        """The lowest index that may still be looked at."""
        return self._tent if self._tent >= 0 else min(self.at, self._quote_at if self._state == _QUOTE else self.at)

    @property
    def depth(self) -> int:
        """How many brackets are open."""
        return len(self._stack)

    @property
    def in_string(self) -> bool:
        """True if the bytes end inside a string."""
        return self._state in (_STRING, _QUOTE)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if not self.evidence:
            verdict = self._open(buf, end, final)
            if verdict != MORE or not self.evidence:
                return verdict
        while True:
            if self._state == _STRING:
                verdict = self._in_string(buf, end, final)
            elif self._state == _QUOTE:
                verdict = self._after_quote(buf, end, final)
            elif self._state == _COMMENT:
                verdict = self._in_comment(buf, end)
            else:
                verdict = self._between(buf, end, final)
            if verdict >= 0:
                return verdict

    # The states return MORE, DEAD or DONE, or -1 to go on in another state.

    def _open(self, buf: bytearray, end: int, final: bool) -> int:
        """Up to the evidence: a bracket followed by a key, or by its closing bracket."""
        found = _OPENING.match(buf, self._first, end)
        i = found.end() if found else self._first
        if i - self._first > MAX_BLANKS:
            return DEAD
        if i == end:
            return DEAD if final else MORE
        head = bytes(buf[self._first : i])
        if b"{" not in head:
            if head.strip()[:1] == b"[" and buf[i] == 0x5D:
                self.at = i + 1  # an empty list: markup, but no call
                self.evidence = True
                self.broken = False
                return DONE
            return DEAD
        byte = buf[i]
        if byte in b"\"'}/#":
            self.evidence = True
        elif byte == 0xE2:
            if i + 3 > end and not final:
                return MORE
            if bytes(buf[i : i + 3]) not in _CURLY:
                return DEAD
            self.evidence = True
        elif (quote := self._around.quotes.at(buf, i, end, final)) != 0:
            if quote == CUT:
                return MORE
            self.evidence = True
        else:
            word = _BARE_KEY.match(buf, i, end)
            if word is None:
                return DEAD
            if word.end() == end:
                return DEAD if final else MORE
            if buf[word.end()] != 0x3A:
                return DEAD
            self.evidence = True
        return MORE

    def _between(self, buf: bytearray, end: int, final: bool) -> int:
        around, i = self._around, self.at
        self.run = None
        while True:
            run = _BORING.match(buf, i, end)
            if run is not None and run.end() > i:
                if not self._word and buf[i : run.end()].strip():
                    self._word = True
                    if not self._bare(buf, i, run.end()):
                        self.at = i
                        return DEAD
                i = run.end()
            if i >= end:
                self.at = end
                return MORE
            byte = buf[i]
            if byte in around.leads:
                size = around.close.at(buf, i, end, final) or around.outer.at(buf, i, end, final)
                if size == CUT:
                    self.at = i
                    return MORE
                if size > 0:
                    self.at = i
                    self.broken = True
                    return DONE
                size = around.quotes.at(buf, i, end, final)
                if size == CUT:
                    self.at = i
                    return MORE
                if size > 0 and not self._word:
                    return self._open_string(i + size, 0)
            if byte == 0x22:  # "
                return self._open_string(i + 1, byte)
            if byte == 0x27:  # '
                if not self._word:
                    return self._open_string(i + 1, byte)
                i += 1
            elif byte == 0x7B or byte == 0x5B:
                if not self._push(byte, i):
                    self.at = i
                    return DEAD
                i += 1
            elif byte == 0x7D or byte == 0x5D:
                i += 1
                done = self._pop(byte, i)
                if done == DONE:
                    self.at = i
                    return DONE
                if done == DEAD:
                    self.at = i
                    return DEAD
            elif byte == 0x2C:  # ,
                self._word = False
                self._key_next = self._stack[-1:] == b"{"
                i += 1
            elif byte == 0x3A:  # :
                if self._key_next and not self._name(self._key):
                    self.at = i
                    return DEAD
                self._word = False
                self._key_next = False
                i += 1
            elif byte == 0xE2:
                if i + 3 > end and not final:
                    self.at = i
                    return MORE
                if not self._word and bytes(buf[i : i + 3]) in _CURLY:
                    return self._open_string(i + 3, byte)
                self._word = True
                i += 1
            elif byte == 0x23 or byte == 0x2F:
                if i + 2 > end and not final:
                    self.at = i
                    return MORE
                if not self._word and (byte == 0x23 or buf[i + 1 : i + 2] in (b"/", b"*")):
                    block = buf[i : i + 2] == b"/*"
                    self._comment_end = b"*/" if block else b"\n"
                    self.at = i + 1 + block
                    self._state = _COMMENT
                    return -1
                self._word = True
                i += 1
            else:
                self._word = True
                i += 1

    def _in_comment(self, buf: bytearray, end: int) -> int:
        """A comment between two tokens; brackets and quotes in it do not count."""
        mark = self._comment_end
        close = buf.find(mark, self.at, end)
        if close < 0:
            self.at = max(self.at, end - len(mark) + 1)
            return MORE
        self.at = close + len(mark)
        self._state = _FRESH
        return -1

    def _open_string(self, start: int, quote: int) -> int:
        self.at = self._string = start
        self._quote = quote
        self._state = _STRING
        self._word = False
        self.run = self._string_run()
        return -1

    def _string_run(self) -> Run:
        around = self._around
        if not self._quote:  # between quote tokens there are no escapes
            return plain_run(around.quotes.leads, around.close)
        return plain_run((self._quote,), around.close, escape=True)

    def _in_string(self, buf: bytearray, end: int, final: bool) -> int:
        around, i = self._around, self.at
        while True:
            if self._tent < 0:
                run = (self.run or self._string_run()).match(buf, i, end)
            else:
                stops = {self._quote} if self._quote else around.quotes.leads
                run = plain_run(stops | around.special.leads, around.close, escape=bool(self._quote)).match(buf, i, end)
            i = run.end() if run is not None else i
            if self._tent >= 0 and i - self._tent_last > CLOSER_WAIT:
                return self._give_up()
            if i >= end or (buf[i] == 0x5C and not final):
                self.at = i
                return self._give_up() if final and self._tent >= 0 else MORE
            byte = buf[i]
            if byte == self._quote and byte != 0xE2:
                self._quote_at = i
                self.at = i + 1
                self._state = _QUOTE
                self.run = None
                return -1
            if byte == 0xE2 and byte == self._quote:
                if i + 3 > end and not final:
                    self.at = i
                    return MORE
                if bytes(buf[i : i + 3]) in _CURLY:
                    self._quote_at = i
                    self.at = i + 3
                    self._state = _QUOTE
                    self.run = None
                    return -1
                i += 1
                continue
            if not self._quote:
                size = around.quotes.at(buf, i, end, final)
                if size == CUT:
                    self.at = i
                    return MORE
                if size > 0:
                    return self._end_string(buf, i, i + size)
            size = around.close.at(buf, i, end, final)
            if size == 0 and self._tent >= 0:
                size = around.special.at(buf, i, end, final)
                if size > 0:
                    return self._give_up()
            if size == CUT:
                self.at = i
                return MORE
            if size > 0:
                if self._tent < 0:
                    self._tent = i
                self._tent_last = i
                self.run = None
                i += size
            else:
                i += 1

    def _give_up(self) -> int:
        """The string never closed: the first closer seen in it was the real one."""
        self.at = self._tent
        self.broken = True
        return DONE

    def _after_quote(self, buf: bytearray, end: int, final: bool) -> int:
        run = BLANK.match(buf, self.at, end)
        i = run.end() if run is not None else self.at
        if i == end and not final:
            self.at = i
            return MORE
        closes = i == end or buf[i] in self._CLOSES
        if not closes and buf[i] in self._around.leads:
            size = self._around.close.at(buf, i, end, final) or self._around.outer.at(buf, i, end, final)
            if size == CUT:
                self.at = i
                return MORE
            closes = size > 0 and self._tent < 0
        if closes:
            return self._end_string(buf, self._quote_at, i)
        if self._tent >= 0:
            return self._give_up()
        if self._key_next and self._watch is not None and self._watch.bare:
            return DEAD
        self._state = _STRING  # a quote inside the text
        self.at = i
        self.run = self._string_run()
        return -1

    def _end_string(self, buf: bytearray, end_of_text: int, resume: int) -> int:
        self._tent = self._tent_last = -1
        self._state = _FRESH
        self.at = resume
        self.run = None
        depth = len(self._stack)
        if depth <= _SHALLOW:
            text = bytes(buf[self._string : end_of_text])
            if self._key_next:
                self._key = text
            elif self._watch is not None and not self._watch.string(depth, self._here(), text):
                return DEAD
        return -1

    def _bare(self, buf: bytearray, i: int, end: int) -> bool:
        """A bare word or number begins at ``i``."""
        depth = len(self._stack)
        if depth > _SHALLOW:
            return True
        if self._key_next:
            self._key = bytes(buf[i:end]).strip()
            return True
        return self._watch is None or not depth or self._watch.scalar(depth, self._here())

    def _here(self) -> bytes:
        depth = len(self._stack)
        return self._keys[depth - 1] if depth and self._stack[-1:] == b"{" and depth <= len(self._keys) else b""

    def _name(self, key: bytes) -> bool:
        depth = len(self._stack)
        if not depth or depth > _SHALLOW:
            return True
        del self._keys[depth - 1 :]
        while len(self._keys) < depth - 1:
            self._keys.append(b"")
        self._keys.append(key)
        return self._watch is None or self._watch.key(depth, key)

    def _push(self, bracket: int, at: int) -> bool:
        key = self._here()
        if len(self._stack) < _DEEPEST:
            self._stack.append(bracket)
        self._key_next = bracket == 0x7B
        self._word = False
        depth = len(self._stack)
        return self._watch is None or depth > _SHALLOW or self._watch.opened(depth, key, bracket, at)

    def _pop(self, bracket: int, at: int) -> int:
        wanted = 0x7B if bracket == 0x7D else 0x5B
        self._word = False
        self._key_next = False
        # A bracket that matches nothing open is surplus; one that matches a deeper level closes what is above it too.
        if wanted not in self._stack:
            return -1
        while self._stack:
            depth = len(self._stack)
            top = self._stack.pop()
            del self._keys[depth:]
            if self._watch is not None and depth <= _SHALLOW and not self._watch.closed(depth, at):
                return DEAD
            if top == wanted:
                break
        return -1 if self._stack else DONE
