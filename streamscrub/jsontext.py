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

# Where a reader stands. A state is read until it gives a verdict, or ``GO_ON`` for another state.
BETWEEN, IN_STRING, AFTER_QUOTE, IN_COMMENT = range(4)
GO_ON: Final = -1

_OPENING: Final = re.compile(rb"[ \t\r\n]*+(?:\[[ \t\r\n]*+)?+(?:\{[ \t\r\n]*+){0,3}+")
_BARE_KEY: Final = re.compile(rb"[A-Za-z_$][\w$.-]{0,127}+[ \t\r\n]*+")
_WORDS: Final = re.compile(rb"[\w.+\-$@%&*=!?^ \t\r\n\x80-\xdf\xe3-\xff]*+")  # bytes that decide nothing
_DOUBLE, _SINGLE, _COLON, _COMMA, _LESS, _CURLY_LEAD = b"\"':,<\xe2"
_NAME_CHAR: Final = re.compile(rb"[\w-]")
_INK: Final = re.compile(rb"[^ \t\r\n]")
_CURLY: Final = (b"\xe2\x80\x9c", b"\xe2\x80\x9d", b"\xe2\x80\x9e", b"\xe2\x80\x9f", b"\xe2\x80\x98", b"\xe2\x80\x99")


class Watch(Protocol):
    """Is told what stands at the shallow levels of a value, and may refuse it.

    ``depth`` counts from 1, the outermost container; ``key`` is b"" for an element of an array.
    """

    bare: bool  # there is no marker: a key that is not followed by its colon refutes the value

    def key(self, depth: int, key: bytes) -> bool:
        """A key of the object at ``depth``. False: this is no call."""

    def string(self, depth: int, key: bytes, value: bytes) -> bool:
        """A string value under ``key``. False: this is no call."""

    def opened(self, depth: int, key: bytes, bracket: int, at: int) -> bool:
        """A container, itself at ``depth``, opened at index ``at`` as the value under ``key``. False: no call."""

    def closed(self, depth: int, at: int) -> bool:
        """The container at ``depth`` closed before index ``at``. False: no call."""

    def shift(self, by: int) -> None:
        """The first ``by`` bytes of the buffer are gone."""


class JsonReader:
    """Finds the end of one JSON object or array. See ``reading.Reader`` for the common part."""

    __slots__ = (
        "_around", "_behind", "_comment_end", "_due", "_first", "_key", "_key_next", "_keys", "_quote", "_quote_at",
        "_stack", "_state", "_string", "_tent", "_tent_last", "_watch", "_word", "_word_at", "at", "broken", "evidence",
        "run",
    )  # fmt: skip

    # What may follow the quote that closes a string.
    _CLOSES: ClassVar[bytes] = b",:}]"
    # Words behind an element of the outermost list end it: they are none of it.
    _WORDS_END: ClassVar[bool] = False

    def __init__(self, start: int, around: Around, watch: Watch | None = None) -> None:
        self.at = start
        self.evidence = False
        self.broken = False
        self.run: Run | None = None
        self._first = start
        self._around = around
        self._watch = watch
        self._state = BETWEEN
        self._stack = bytearray()  # the open brackets
        self._keys: list[bytes] = []  # the current key at each shallow level
        self._due = False  # a value is, behind a colon or where an array begins
        self._behind = -1  # directly behind an element of the outermost list, where that began with a bracket
        self._key_next = False  # what comes is a key
        self._key = b""  # the last quoted key
        self._word = False  # inside a bare word, so a quote mark is an apostrophe
        self._word_at = 0  # and where that word starts
        self._quote = 0  # the byte that opened the present string; 0 for a quote token
        self._quote_at = 0  # where the present candidate for a closing quote stands
        self._string = 0  # where the content of the present string starts
        self._comment_end = b"\n"
        self._tent = -1  # the first closer seen inside the open string: its tentative end
        self._tent_last = -1  # and the last one

    def shift(self, by: int) -> None:
        self.at -= by
        self._first -= by
        self._word_at -= by
        self._quote_at -= by
        self._string -= by
        self._behind = max(self._behind - by, -1)
        if self._tent >= 0:
            self._tent -= by
            self._tent_last -= by
        if self._watch is not None:
            self._watch.shift(by)

    @property
    def keep(self) -> int:
        """The lowest index that may still be looked at."""
        if self._tent >= 0:
            return self._tent
        at = self._quote_at if self._state == AFTER_QUOTE else self.at
        return at if self._behind < 0 else min(at, self._behind)

    @property
    def depth(self) -> int:
        """How many brackets are open."""
        return len(self._stack)

    @property
    def in_string(self) -> bool:
        """True if the bytes end inside a string."""
        return self._state in (IN_STRING, AFTER_QUOTE)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if not self.evidence:
            verdict = self._open(buf, end, final)
            if verdict != MORE or not self.evidence:
                return verdict
        while True:
            if self._state == IN_STRING:
                verdict = self._in_string(buf, end, final)
            elif self._state == AFTER_QUOTE:
                verdict = self._after_quote(buf, end, final)
            elif self._state == IN_COMMENT:
                verdict = self._in_comment(buf, end, final)
            else:
                verdict = self._between(buf, end, final)
            if verdict != GO_ON:
                return verdict

    def _wait(self, i: int) -> int:
        """Nothing can be said about index ``i`` before more bytes are here."""
        self.at = self._behind if self._may_be_over(i) else i
        return MORE

    def _may_be_over(self, i: int) -> bool:
        """Will something else than an element at ``i`` end the outermost list at the last one?"""
        return self._behind >= 0 and i - self._behind <= MAX_BLANKS

    # Before the evidence

    def _open(self, buf: bytearray, end: int, final: bool) -> int:
        """Up to the evidence: a bracket followed by a key, or by its closing bracket."""
        found = _OPENING.match(buf, self._first, end)
        i = found.end() if found is not None else self._first
        if i - self._first > MAX_BLANKS:
            return DEAD
        if i == end:
            return MORE
        brackets = bytes(buf[self._first : i]).strip()
        if b"{" in brackets:
            verdict = self._begins_key(buf, i, end, final)
            self.evidence = verdict == DONE
            return MORE if self.evidence else verdict
        if brackets and buf[i] in b"]":  # an empty list: markup, but no call
            self.at = i + 1
            self.evidence = True
            return DONE
        return DEAD

    def _begins_key(self, buf: bytearray, i: int, end: int, final: bool) -> int:
        """DONE if a key, a closing bracket or a comment begins at ``i``, behind the bracket of an object."""
        byte = buf[i]
        if byte in b"\"'}/#":
            return DONE
        if byte == _CURLY_LEAD:
            if i + 3 > end and not final:
                return MORE
            return DONE if bytes(buf[i : i + 3]) in _CURLY else DEAD
        if byte in b"\\" and self._around.close.literals and not (self._watch is not None and self._watch.bare):
            # Escaped once too often, as if it stood in a string. Only the closer tells where that ends.
            return DONE if buf[i + 1 : i + 2] == b'"' else MORE if i + 1 == end and not final else DEAD
        size = self._around.quotes.at(buf, i, end, final)
        if size != 0:
            return MORE if size == CUT else DONE
        word = _BARE_KEY.match(buf, i, end)
        if word is None:
            return DEAD
        if word.end() == end:
            return MORE
        return DONE if buf[word.end()] == _COLON else DEAD

    # Between strings

    def _between(self, buf: bytearray, end: int, final: bool) -> int:
        around, i = self._around, self.at
        self.run = None
        while True:
            words = _WORDS.match(buf, i, end)
            if words is not None and words.end() > i:
                ink = _INK.search(buf, i, words.end()) if self._behind >= 0 else None
                if ink is not None and self._may_be_over(ink.start()):
                    return self._list_over()
                self._begin_word(buf, i, words.end())
                i = words.end()
            if i >= end:
                return self._wait(end)
            byte = buf[i]
            if byte in around.leads:
                verdict = self._marker(buf, i, end, final)
                if verdict != DEAD:
                    return verdict
            if byte == _DOUBLE or (byte == _SINGLE and not self._word):
                return self._open_string(i + 1, byte)
            if byte == _COLON:
                if self._key_next and not self._told_key(buf, i):
                    self.at = i
                    return DEAD
                self._word = self._key_next = False
                self._due = True
            elif byte == _COMMA:
                self._word = self._due = False
                self._behind = -1
                self._key_next = self._stack[-1:] == b"{"
            elif byte in b"{[":
                if not self._push(byte, i):
                    self.at = i
                    return DEAD
            elif byte in b"}]":
                verdict = self._pop(byte, i + 1)
                if verdict != GO_ON:
                    self.at = i + 1
                    return verdict
            elif byte == _CURLY_LEAD:
                if i + 3 > end and not final:
                    return self._wait(i)
                if self._may_be_over(i):
                    return self._list_over()
                if not self._word and bytes(buf[i : i + 3]) in _CURLY:
                    return self._open_string(i + 3, byte)
                self._begin_word(buf, i, i + 1)
            elif byte in b"#/":
                if i + 2 > end and not final:
                    return self._wait(i)
                if not self._word and (byte in b"#" or bytes(buf[i + 1 : i + 2]) in (b"/", b"*")):
                    return self._open_comment(buf, i)
                self._begin_word(buf, i, i + 1)
            elif self._may_be_over(i) and byte not in b";":
                return self._list_over()
            else:
                self._begin_word(buf, i, i + 1)
            i += 1

    def _list_over(self) -> int:
        """Something stands behind an element that no list holds: its bracket is missing."""
        self.at = self._behind
        self.broken = True
        return DONE

    def _begin_word(self, buf: bytearray, i: int, end: int) -> None:
        """A bare word begins with the first byte from ``i`` to ``end`` that is not blank, unless one is open."""
        if not self._word and (found := _INK.search(buf, i, end)) is not None:
            self._word = True
            self._word_at = found.start()

    def _marker(self, buf: bytearray, i: int, end: int, final: bool) -> int:
        """What a marker at ``i`` means: the end of the body (DONE), an opening quote (GO_ON), nothing (DEAD)."""
        around = self._around
        close = around.close.at(buf, i, end, final)
        size = close or around.outer.at(buf, i, end, final)
        if size == CUT:
            return self._wait(i)
        if size > 0 and close == 0 and not (self._watch is not None and self._watch.bare):
            tokens = max(around.special.at(buf, i, end, True), around.control.at(buf, i, end, True))
            if tokens <= 0:
                # A soft marker stands for a value where one is due, and one whose name goes on is another tag.
                if self._due and not self._word:
                    return DEAD
                if buf[i] == _LESS and _NAME_CHAR.match(buf, i + size - 1) is not None:
                    if i + size == end and not final:
                        return self._wait(i)
                    if _NAME_CHAR.match(buf, i + size, end) is not None:
                        return DEAD
        if size > 0:
            self.at = i
            self.broken = True
            return DONE
        size = around.quotes.at(buf, i, end, final)
        if size == CUT:
            return self._wait(i)
        return self._open_string(i + size, 0) if size > 0 and not self._word else DEAD

    def _open_comment(self, buf: bytearray, i: int) -> int:
        """A comment from ``i`` on; brackets and quotes in it do not count."""
        self._behind = -1
        block = buf[i : i + 2] == b"/*"
        self._comment_end = b"*/" if block else b"\n"
        self.at = i + 1 + block
        self._state = IN_COMMENT
        return GO_ON

    def _in_comment(self, buf: bytearray, end: int, final: bool) -> int:
        """A closer ends a comment as well, so that one which never ends does not swallow the rest of the response."""
        mark = self._comment_end
        stop = buf.find(mark, self.at, end)
        limit = stop if stop >= 0 else end
        close, size = self._around.close.find(buf, self.at, limit, final or stop >= 0)
        if size <= 0 and stop < 0:
            return self._wait(min(close, max(self.at, end - len(mark) + 1)))
        self.at = close if size > 0 else stop + len(mark)
        self._state = BETWEEN
        return GO_ON

    # Strings

    def _open_string(self, start: int, quote: int) -> int:
        self.at = self._string = start
        self._quote = quote
        self._behind = -1
        self._state = IN_STRING
        self._word = self._due = False
        self.run = self._string_run()
        return GO_ON

    def _string_run(self) -> Run:
        """What runs over a string's content. Between quote tokens there are no escapes.

        Behind a tentative end special openers halt it, too: they make that end the real one.
        """
        around = self._around
        stops = frozenset((self._quote,)) if self._quote else around.quotes.leads
        if self._tent >= 0:
            stops |= around.special.leads
        return plain_run(stops, around.close, escape=bool(self._quote))

    def _in_string(self, buf: bytearray, end: int, final: bool) -> int:
        around, i = self._around, self.at
        plain = self.run or self._string_run()
        while True:
            run = plain.match(buf, i, end)
            i = run.end() if run is not None else i
            if self._tent >= 0 and i - self._tent_last > CLOSER_WAIT:
                return self._give_up()
            if i >= end or (buf[i] in b"\\" and not final):
                self.at = i
                return self._give_up() if final and self._tent >= 0 else MORE
            size = self._quote_size(buf, i, end, final)
            if size == CUT:
                return self._wait(i)
            if size > 0:
                if not self._quote:
                    return self._end_string(buf, i, i + size)
                self._quote_at = i
                self.at = i + size
                self._state = AFTER_QUOTE
                self.run = None
                return GO_ON
            size = around.close.at(buf, i, end, final)
            if size == CUT:
                return self._wait(i)
            if size > 0:
                self._tent = i if self._tent < 0 else self._tent
                self._tent_last = i
                self.run = None
                plain = self._string_run()
                i += size
                continue
            if self._tent >= 0:
                size = around.special.at(buf, i, end, final)
                if size == CUT:
                    return self._wait(i)
                if size > 0:
                    return self._give_up()
            i += 1

    def _quote_size(self, buf: bytearray, i: int, end: int, final: bool) -> int:
        """The size of what may close the present string at ``i``, 0 if nothing does, or CUT."""
        quote = self._quote
        if not quote:
            return self._around.quotes.at(buf, i, end, final)
        if buf[i] != quote:
            return 0
        if quote != _CURLY_LEAD:
            return 1
        if i + 3 > end and not final:
            return CUT
        return 3 if bytes(buf[i : i + 3]) in _CURLY else 0

    def _give_up(self) -> int:
        """The string never closed: the first closer seen in it was the real one."""
        self.at = self._tent
        self.broken = True
        return DONE

    def _after_quote(self, buf: bytearray, end: int, final: bool) -> int:
        """Does the quote that was just read close its string? What follows it tells."""
        blank = BLANK.match(buf, self.at, end)
        i = blank.end() if blank is not None else self.at
        if i == end and not final:
            return self._wait(i)
        closes = i == end or buf[i] in self._CLOSES
        if not closes and buf[i] in self._around.leads:
            close = self._around.close.at(buf, i, end, final)
            size = close or self._around.outer.at(buf, i, end, final)
            if size == CUT or (close > 0 and i + size == end and not final):
                return self._wait(i)
            if close > 0 and self._quote and buf[i + size : i + size + 1] == buf[self._quote_at : self._quote_at + 1]:
                # A closer between two quotes is quoted: all three are data.
                self._state = IN_STRING
                self.at = i + size + 1
                self.run = self._string_run()
                return GO_ON
            closes = size > 0 and self._tent < 0
        if closes:
            return self._end_string(buf, self._quote_at, i)
        if self._tent >= 0:
            return self._give_up()
        if self._key_next and self._watch is not None and self._watch.bare:
            return DEAD
        self._state = IN_STRING  # a quote inside the text
        self.at = i
        self.run = self._string_run()
        return GO_ON

    def _end_string(self, buf: bytearray, end_of_text: int, resume: int) -> int:
        self._tent = self._tent_last = -1
        self._state = BETWEEN
        self.at = resume
        self.run = None
        depth = len(self._stack)
        if depth <= _SHALLOW:
            text = bytes(buf[self._string : end_of_text])
            if self._key_next:
                self._key = text
            elif self._watch is not None and not self._watch.string(depth, self._here(), text):
                return DEAD
        return GO_ON

    # Levels

    def _here(self) -> bytes:
        """The key whose value is read, b"" in an array."""
        depth = len(self._stack)
        return self._keys[depth - 1] if depth and self._stack[-1:] == b"{" and depth <= len(self._keys) else b""

    def _told_key(self, buf: bytearray, colon: int) -> bool:
        """Note the key before ``colon``, quoted or bare, and tell the watch. False: this is no call."""
        depth = len(self._stack)
        if not depth or depth > _SHALLOW:
            return True
        key = bytes(buf[max(self._word_at, 0) : colon]).strip() if self._word else self._key
        del self._keys[depth - 1 :]
        self._keys += [b""] * (depth - 1 - len(self._keys))
        self._keys.append(key)
        return self._watch is None or self._watch.key(depth, key)

    def _push(self, bracket: int, at: int) -> bool:
        """A container opens at ``at``. False: this is no call."""
        key = self._here()
        self._behind = -1
        if len(self._stack) < _DEEPEST:
            self._stack.append(bracket)
        self._key_next = bracket in b"{"
        self._due = bracket in b"["
        self._word = False
        depth = len(self._stack)
        return self._watch is None or depth > _SHALLOW or self._watch.opened(depth, key, bracket, at)

    def _pop(self, bracket: int, at: int) -> int:
        """A container closes before ``at``. A bracket that matches nothing open is surplus; one that matches a deeper
        level closes what is above it, too."""
        wanted = ord("{" if bracket in b"}" else "[")
        self._word = self._key_next = self._due = False
        if wanted not in self._stack:
            return GO_ON
        while self._stack:
            depth = len(self._stack)
            top = self._stack.pop()
            del self._keys[depth:]
            if self._watch is not None and depth <= _SHALLOW and not self._watch.closed(depth, at):
                return DEAD
            if top == wanted:
                break
        if self._WORDS_END and bracket in b"}" and bytes(self._stack) == b"[":
            self._behind = at
        return GO_ON if self._stack else DONE
