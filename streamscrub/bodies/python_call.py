"""Calls written as code: Python ``name(a="x", b=1)``, TypeScript ``name({a: "x"})``, lists and lines of them.

``CodeReader`` finds the end, byte by byte as the text arrives; ``decode`` reads the complete text, values being
literals only. (Longer than most modules: it is a small language of its own, read twice.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ..events import Repair
from ..jsontext import BETWEEN, GO_ON, IN_STRING, JsonReader
from ..limits import MAX_BLANKS, MAX_DEPTH, MAX_HEADER, MAX_NAME, MAX_REPAIR_TEXT
from ..names import Offer
from ..reading import BLANK, DEAD, DONE, MORE, Around
from ..sentinels import CUT
from ..shapes import declared
from ..tools import Tool
from . import json_call
from .base import Body, Context, Ending, Settings, Written

_MAX_HEAD: Final = 8 * MAX_HEADER  # bytes of comments and words before the parenthesis of the first call
_MAX_HEAD_STEPS: Final = 32  # and tokens; the head is read anew with each delta
_SKIP: Final = re.compile(rb"(?:[ \t\r\n;]++|(?:#|//)[^\n]*+\n)*+")
_COMMENT_CUT: Final = re.compile(rb"(?:#|//|/\Z)[^\n]*+\Z")
_WORD: Final = re.compile(rb"[A-Za-z_$][\w.$-]{0,%d}+" % (2 * MAX_NAME))
_WORDS_BEFORE: Final = frozenset((b"const", b"let", b"var", b"await", b"return"))
_STARTS_ARGUMENT: Final = re.compile(rb"""[ \t\r\n]*+(?:\)|[A-Za-z_][\w-]*+[ \t]*+=|["'`{\[(]|[-+]?\d|\*\*)""")
_STARTS_ARGUMENT_CUT: Final = re.compile(rb"[ \t\r\n]*+(?:[A-Za-z_][\w-]*+[ \t]*+|[-+*])?+\Z")
# What may begin another call on a line of its own.
_NEXT_LINE: Final = re.compile(rb"([A-Za-z_$][\w.$-]{0,%d}+)(\(?)" % (2 * MAX_NAME))
_PLAIN: Final = re.compile(rb"[\w.+\-$@%&*=!?^,:; \t\r\n\x80-\xdf\xe3-\xff]*+")  # bytes that decide nothing


class CodeReader(JsonReader):
    """Reads calls up to the closer of the envelope, or one bracketed list of calls to its own end.

    Strings, comments and brackets are followed as in JSON, with parentheses and triple quotes added.
    """

    __slots__ = ("_inner", "_list", "_markerless", "_offer", "_triple", "name")
    _CLOSES: ClassVar[bytes] = b",:}]);=.+"

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        super().__init__(start, around)
        self.name: str | None = None
        self._offer = offer
        self._markerless = bool(settings.get("markerless"))
        self._inner = False  # the present string holds a quote that does not close it
        self._list = False  # a list of calls, which ends with its bracket
        self._triple = b""  # the three quotes that close the present string, if it has three

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the code stands: (start, end so far), or (-1, -1)."""
        return (self._first, self.keep) if self.evidence else (-1, -1)

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return not self._stack and self._state == BETWEEN and not self._list

    def _open(self, buf: bytearray, end: int, final: bool) -> int:
        """Comments, a list bracket, ``const x = await``, ``print(``, then NAME and its parenthesis."""
        limit = min(end, self._first + _MAX_HEAD)
        more = MORE if limit == end and not final else DEAD
        i, word = self._first, b""
        started = listed = False
        for _ in range(_MAX_HEAD_STEPS):
            named = bool(word) and word not in _WORDS_BEFORE
            skip = (BLANK if named else _SKIP).match(buf, i, limit)
            i = skip.end() if skip is not None else i
            if i == limit or _COMMENT_CUT.match(buf, i, limit):
                return more
            if named:
                if buf[i] in b"(":
                    if word != b"print" or self._offer.get("print") is not None:
                        return self._called(buf, word, i + 1, end, final, listed)
                elif i + 1 == limit:
                    return more if buf[i] in b"=" else DEAD
                elif buf[i] not in b"=" or buf[i + 1] in b"=":
                    return DEAD
                word = b""
                i += 1
            elif buf[i] in b"[" and not started and not listed:
                listed = True
                i += 1
            elif buf[i] in b"]" and listed and not started and not self._markerless:  # markup, but no call
                self.at = i + 1
                self.evidence = True
                return DONE
            else:
                found = _WORD.match(buf, i, limit)
                if found is None:
                    return DEAD
                if found.end() == limit:
                    return more
                word, i, started = found.group(), found.end(), True
        return DEAD

    def _called(self, buf: bytearray, word: bytes, i: int, end: int, final: bool, listed: bool) -> int:
        """NAME and its parenthesis stand before ``i``. They are evidence if the name is offered; else what follows
        must look like an argument, too, as it must without a marker."""
        name = word.decode("utf-8", "replace").removesuffix(".call")
        if self._markerless and self._offer.plain(name) is None:
            return DEAD
        limit = min(end, i + MAX_NAME)
        doubtful = self._markerless or self._offer.resolve(name).tool is None
        if doubtful and _STARTS_ARGUMENT.match(buf, i, limit) is None:
            may_come = limit == end and not final and _STARTS_ARGUMENT_CUT.match(buf, i, end) is not None
            return MORE if may_come else DEAD
        self.name = name
        self.evidence = True
        self.at = self._first
        self._list = listed
        return MORE

    def _between(self, buf: bytearray, end: int, final: bool) -> int:
        around, i = self._around, self.at
        self.run = None
        while True:
            plain = _PLAIN.match(buf, i, end)
            i = plain.end() if plain is not None else i
            if i >= end:
                return self._wait(end)
            byte = buf[i]
            if byte in around.leads:
                close = around.close.at(buf, i, end, final)
                size = close or around.outer.at(buf, i, end, final)
                if size == CUT:
                    return self._wait(i)
                if size > 0:
                    self.at = i
                    # Another call or a token that ends the turn closes complete code as well.
                    others = [one.at(buf, i, end, True) for one in (around.calls, around.control)]
                    closes = close > 0 or max(others) > 0
                    self.broken = bool(self._stack) or not closes
                    return DONE
            if byte in b"\"'`":
                return self._open_quoted(buf, i, end, final)
            if byte in b"/" and i + 1 == end and not final:
                return self._wait(i)
            if byte in b"#" or bytes(buf[i : i + 2]) in (b"//", b"/*"):
                return self._open_comment(buf, i)
            if byte in b"([{":
                if byte in b"(" and self._stack and not self._list and self._begins_line(buf, i):
                    self._stack.clear()
                self._stack.append(byte)
            elif byte in b")]}":
                del self._stack[-1:]
                if self._list and not self._stack:
                    self.at = i + 1
                    return DONE
            i += 1

    def _begins_line(self, buf: bytearray, i: int) -> bool:
        """Whether a call of an offered tool with its parenthesis at ``i`` begins a line, and the one before it ended.

        Behind a comma, an operator or an open bracket it is a part of that.
        """
        low = max(self._first, i - 2 * MAX_NAME)
        head = bytes(buf[low:i])
        line = head.rfind(b"\n")
        if line < 0 or self._offer.get(head[line:].strip().decode("utf-8", "replace")) is None:
            return False
        before = head[:line].rstrip()[-1:]
        return before != b"" and (before in b"\"'`)]}" or before.isalnum())

    def _open_quoted(self, buf: bytearray, i: int, end: int, final: bool) -> int:
        """A string with one or three quotes. Three backticks are a fence that stands around the code: its end."""
        triple = bytes(buf[i : i + 1]) * 3
        here = bytes(buf[i : i + 3])
        if here != triple and triple.startswith(here) and i + len(here) == end and not final:
            return self._wait(i)
        self._inner = False
        if here != triple:
            return self._open_string(i + 1, buf[i])
        if buf[i] in b"`":
            self.at = i
            self.broken = bool(self._stack)
            return DONE
        self._triple = triple
        self.at = i + 3
        self._state = IN_STRING
        return GO_ON

    def _in_string(self, buf: bytearray, end: int, final: bool) -> int:
        if not self._triple:
            return super()._in_string(buf, end, final)
        self.run = None
        close = buf.find(self._triple, self.at, end)
        if close < 0:
            return self._wait(max(self.at, end - 2))
        self.at = close + 3
        self._triple = b""
        self._state = BETWEEN
        return GO_ON

    def _after_quote(self, buf: bytearray, end: int, final: bool) -> int:
        # A newline ends a statement, so a quote before it closes too.
        behind = self._quote_at + 1
        blank = BLANK.match(buf, behind, min(end, behind + MAX_BLANKS))
        if blank is not None and b"\n" in blank.group():
            if not self._stack:
                return self._end_string(buf, self._quote_at, behind)
            found = None if self._list or self._inner else _NEXT_LINE.match(buf, blank.end(), end)
            name = found.group(1).decode("utf-8", "replace") if found is not None else ""
            if found is not None and found.end() == end and not found.group(2) and not final:
                if self._offer.known and self._offer.may_begin(name):
                    return self._wait(behind)
            elif found is not None and found.group(2) and self._offer.get(name) is not None:
                return self._end_string(buf, self._quote_at, behind)
        verdict = super()._after_quote(buf, end, final)
        self._inner = self._inner or self._state == IN_STRING
        return verdict


_NO_CALL: Final = "neither a name nor its arguments"


class _Bad(ValueError):
    """This is no call with literal arguments."""


_TRIVIA: Final = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
# What may stand between a string and what ends it. Comments are bounded, since they are looked at for each quote.
_AFTER_STRING: Final = re.compile(r"(?:[ \t\r\n]++|(?:#|//)[^\n]{0,200}+\n|/\*[^*]{0,200}+\*/){0,8}+")
_BETWEEN_CALLS: Final = re.compile(r"(?:[ \t\r\n,;]++|#[^\n]*+|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*+(?:[.-][A-Za-z_$][\w$]*+)*+")
_BEFORE: Final = re.compile(r"(?:(?:const|let|var)\s++)?+(?:[A-Za-z_]\w*+\s*+=(?!=)\s*+)?+(?:await\s++)?+")
_PARAMETER: Final = re.compile(r"[A-Za-z_$][\w$-]*+")
_ASSIGN: Final = re.compile(r"\s*+=(?!=)")
_STATEMENT_END: Final = re.compile(r"[ \t]*+(?:[,;\])\r\n#]|//|/\*|\Z|```|~~~)")
_JSON: Final = re.compile(r"\s*+(?:\[\s*+)?+\{")
_PRINTED: Final = re.compile(r"print\(\s*+[A-Za-z_]\w*+\s*+\)")  # a variable, which holds the result of a call
_RUN_CUT: Final = re.compile(r"(?:`{1,2}|~{1,2})\s*+\Z")  # of a closing fence that the stream cut

_KEY: Final = re.compile(r"[A-Za-z_$][\w$-]*+|\d++")
_PREFIX: Final = re.compile(r"[rRbBuUfF]{1,2}+(?=[\"'])")
_CALL_LINE: Final = re.compile(r"[ \t]*+\r?\n[ \t\r\n]*+([A-Za-z_$][\w.$-]*+)\(")  # behind the line before it
_NUMBER: Final = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]++|(?:\d[\d_]*+(?:\.[\d_]*+)?+|\.\d++)(?:[eE][-+]?\d++)?+)(?![\w.])"
)
_LONGEST_NUMBER: Final = 4000  # digits; Python refuses more
_LITERAL: Final = re.compile(r"[A-Za-z_]\w*+")
_LITERALS: Final = {
    "True": True, "true": True, "False": False, "false": False,
    "None": None, "null": None, "undefined": None,
}  # fmt: skip
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}
_CONTENT: Final = {
    quote: re.compile(rf"[^\\{quote}]++|\\[\s\S]|{quote}") for quote in "\"'`"
}  # a stretch of text, an escape, or a quote that may close the string
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\n)|([\s\S]))"
)
_SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


@dataclass(slots=True)
class _Container:
    """An object or list that is being read, and the key that its next value gets."""

    closer: str
    value: Any
    key: str = ""

    def add(self, item: Any) -> None:
        if isinstance(self.value, dict):
            self.value[self.key] = item
        else:
            self.value.append(item)


class _Code:
    """Reads literals from complete text. No recursion: containers stand on a list."""

    __slots__ = ("_offer", "at", "listed", "repairs", "text", "whole")

    def __init__(self, text: str, offer: Offer) -> None:
        self.text = text
        self.at = 0
        self.listed = False  # the calls stand in brackets
        self.whole = False  # the last call was read to its end, whatever its arguments are
        self.repairs: list[Repair] = []
        self._offer = offer

    def line_begins(self, i: int) -> bool:
        """Whether a call of an offered tool on a line of its own is next, at ``i``, and what is before it has ended."""
        before = self.text[i - 1 : i]
        if self.listed or not (before in ("'", '"', "`", ")", "]", "}") or before.isalnum()):
            return False
        found = _CALL_LINE.match(self.text, i)
        return found is not None and self._offer.get(found[1]) is not None

    def next_line(self) -> bool:
        """Move from a fault to the line with the next call. False if there is none, or if strings make it doubtful."""
        while self.text[self.at - 1 : self.at].isspace():
            self.at -= 1
        while self.at < len(self.text):
            if any(repair.kind == "inner_quotes" for repair in self.repairs):
                return False
            if self.line_begins(self.at):
                return True
            if self.peek() not in _CONTENT:
                self.at += 1
                continue
            try:
                self._string(raw=False)
            except _Bad:
                return False
        return False

    def skip(self) -> None:
        self.match(_TRIVIA)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match here and move behind it."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def take(self, token: str) -> bool:
        """Move behind ``token`` if it comes next."""
        self.skip()
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        """One literal, of any nesting up to ``MAX_DEPTH``."""
        stack: list[_Container] = []
        while True:
            self.skip()
            opener = self.peek()
            if opener in _CLOSERS:
                if len(stack) >= MAX_DEPTH:
                    raise _Bad("nested too deep")
                self.at += 1
                stack.append(_Container(_CLOSERS[opener], {} if opener == "{" else []))
                if not self.take(stack[-1].closer):
                    self._begin_member(stack[-1])
                    continue
                done = stack.pop().value
            else:
                done = self._scalar()
            while stack:
                stack[-1].add(done)
                comma = self.take(",")
                if self.take(stack[-1].closer):
                    done = stack.pop().value
                elif comma:
                    self._begin_member(stack[-1])
                    break
                else:
                    raise _Bad(f"',' or a closing bracket expected at {self.at}")
            else:
                return done

    def _begin_member(self, container: _Container) -> None:
        """Read the key that stands before the next value of an object."""
        if not isinstance(container.value, dict):
            return
        self.skip()
        if not container.value and self._is_member():
            container.value = []  # a set
            return
        if self.peek() in _CONTENT:
            container.key = self._string(raw=False)
        elif (key := self.match(_KEY)) is not None:
            container.key = key.group()
        else:
            raise _Bad(f"a key expected at {self.at}")
        if not self.take(":"):
            raise _Bad(f"':' expected at {self.at}")

    def _is_member(self) -> bool:
        """Does a string or a number stand here that is no key?"""
        start = self.at
        if self.peek() in _CONTENT:
            self._string(raw=False)
            self.skip()
            alone = self.peek() in (",", "}")
        else:
            alone = self.peek().isdigit() or self.peek() == "-"
        self.at = start
        return alone

    def _scalar(self) -> Any:
        prefix = self.match(_PREFIX)
        if prefix is not None:
            letters = prefix.group().lower()
            text = self._string(raw="r" in letters)
            if "f" in letters and ("{" in text or "}" in text):
                raise _Bad("an f-string is no literal")
            return text
        if self.peek() in _CONTENT:
            pieces = [self._string(raw=False)]
            self.skip()
            while self.peek() in ('"', "'"):
                pieces.append(self._string(raw=False))
                self.skip()
            return "".join(pieces)
        number = self.match(_NUMBER)
        if number is not None:
            return self._number(number.group())
        word = _LITERAL.match(self.text, self.at)
        if word is None or word.group() not in _LITERALS:
            raise _Bad(f"no literal at {self.at}")
        self.at = word.end()
        return _LITERALS[word.group()]

    def _number(self, text: str) -> Any:
        plain = text.replace("_", "")
        if len(plain) > _LONGEST_NUMBER:
            raise _Bad("a number of thousands of digits")
        digits = plain.lstrip("+-")
        if digits[:2] in ("0x", "0X"):
            return int(plain, 16)
        if digits.isdecimal():
            value = int(plain)
            if digits[0] == "0" and len(digits) > 1:
                self.repairs.append(Repair("coerced", "arguments", text[:MAX_REPAIR_TEXT], str(value)))
            return value
        number = float(plain)
        if number - number != 0.0:
            raise _Bad("a number that is not finite")
        return number

    def _string(self, raw: bool) -> str:
        """A string from its opening quotes on, which closes at the first quotes that something may follow."""
        text, quote = self.text, self.peek()
        content = _CONTENT[quote]
        mark = quote * 3 if quote != "`" and text.startswith(quote * 3, self.at) else quote
        i = self.at + len(mark)
        pieces: list[str] = []
        kinds: set[str] = set()
        while (found := content.match(text, i)) is not None:
            piece = found.group()
            if piece == quote and text.startswith(mark, i):
                if (
                    len(mark) == 3
                    or _ends_string(text, i + 1)
                    or ("inner_quotes" not in kinds and self.line_begins(i + 1))
                ):
                    break
                kinds.add("inner_quotes")
            if len(mark) == 1 and quote != "`" and "\n" in piece and piece[0] != "\\":
                kinds.add("control_characters")
            pieces.append(piece)
            i = found.end()
        else:
            raise _Bad("a string never closes")
        self.at = i + len(mark)
        body = "".join(pieces)
        self.repairs += [Repair(kind, "arguments", body[:MAX_REPAIR_TEXT], "") for kind in sorted(kinds)]
        return body if raw else _ESCAPE.sub(_unescape, body)


def _ends_string(text: str, i: int) -> bool:
    """Whether code can go on at ``i`` if a string ended before it."""
    found = _AFTER_STRING.match(text, i)
    i = found.end() if found is not None else i
    return i >= len(text) or text[i] in ",:}]);=+'\"#" or text.startswith(("//", "/*"), i)


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3] or found[4]
    if code is not None:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    if found[5] is not None:
        return ""
    char = found[6]
    return _SIMPLE.get(char) or (char if char in "\\'\"`/" else "\\" + char)


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read all calls of a body, up to the first fault. Those of a cut list that are whole stay whole."""
    text = raw.decode("utf-8", "replace")
    if _JSON.match(text):
        return json_call.decode(raw, ending, context)
    code = _Code(text, context.offer)
    listed = code.listed = code.take("[")
    calls = list(_statements(code, listed, context))
    if not calls:
        if listed and code.take("]") and not text[code.at :].strip():
            return []
        return [Written(None, end=len(raw), fault="no call", complete=ending != "cut")]
    may_go_on = ending == "cut" and code.at >= len(text)
    if len(calls) > 1 and calls[-1].fault == _NO_CALL and not listed and not may_go_on:
        # Words behind a call: it is not all that stands between its opener and its closer.
        calls.pop()
        calls[-1].fault = calls[-1].fault or "text after the call"
    last = calls[-1]
    last.end = len(raw)
    if ending == "cut" and (last.fault or not (listed or context.settings.get("open_ended"))):
        last.complete = False
        last.fault = ""
    elif listed and not last.fault and code.peek() == "]" and text[code.at + 1 :].strip(" \t\r\n,;])"):
        last.fault = "text after the list"
    return calls


def _statements(code: _Code, listed: bool, context: Context) -> Iterator[Written]:
    """The calls one after the other, with their places in bytes. Behind a fault only lines that are sure count."""
    text = code.text
    chars = size = 0  # the bytes before a character are counted once
    while True:
        code.match(_BETWEEN_CALLS)
        start = code.at
        if start >= len(text) or text.startswith(("```", "~~~"), start) or (listed and text[start] == "]"):
            return
        if _RUN_CUT.match(text, start) is not None:
            return
        if context.offer.get("print") is None and code.match(_PRINTED) is not None:
            continue
        code.repairs = []
        call = _statement(code, context)
        call.repairs = code.repairs
        call.start = size + len(text[chars:start].encode("utf-8", "replace"))
        call.end = call.start + len(text[start : code.at].encode("utf-8", "replace"))
        chars, size = code.at, call.end
        yield call
        if call.fault and not code.whole and (call.fault == _NO_CALL or not code.next_line()):
            return


def _statement(code: _Code, context: Context) -> Written:
    """``[const x =] [await] NAME(arguments)``, perhaps inside ``print(…)``, and nothing else up to the line's end."""
    prints = 0
    code.whole = False
    while True:
        code.match(_BEFORE)
        name = code.match(_NAME)
        if name is None:
            return Written(None, fault="no name" if prints else _NO_CALL)
        written = name.group()
        if not code.take("("):
            name_ends = code.at < len(code.text)
            return Written(written if name_ends else None, fault="no arguments" if prints else _NO_CALL)
        if written != "print" or context.offer.get("print") is not None:
            break
        prints += 1
        code.skip()
    call = Written(_tool_name(written, context.offer))
    tool = context.offer.resolve(call.name or "").tool
    try:
        given = _call_arguments(code)
        code.whole = not prints and _STATEMENT_END.match(code.text, code.at) is not None
        call.arguments = _bind(*given, tool, context.offer.known)
    except _Bad as error:
        call.fault = str(error)
        return call
    if not all(code.take(")") for _ in range(prints)):
        call.fault = "print(…) without its end"
    elif _STATEMENT_END.match(code.text, code.at) is None:
        call.fault = "an expression, not a call"
    return call


def _tool_name(written: str, offer: Offer) -> str:
    """The name without ``.call`` and the dotted prefixes of a code dialect: as much of its end as is offered."""
    if offer.get(written) is None:
        written = written.removesuffix(".call")
    if not offer.known or offer.get(written) is not None or "." not in written:
        return written
    parts = written.split(".")
    tails = (".".join(parts[k:]) for k in range(1, len(parts)))
    offered = next((tail for tail in tails if offer.get(tail) is not None), None)
    if offered is not None:
        return offered
    return parts[1] if len(parts) == 2 and offer.resolve(written).tool is None else written


def _call_arguments(code: _Code) -> tuple[list[Any], dict[str, Any]]:
    """What stands in the parentheses of a call, by position and by keyword."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    while not code.take(")"):
        if code.take("**"):
            extra = code.value()
            if not isinstance(extra, dict):
                raise _Bad("** needs an object")
            keywords.update(extra)
        elif (keyword := _keyword(code)) is not None:
            if keyword in keywords:
                raise _Bad(f"{keyword} is given twice")
            keywords[keyword] = code.value()
        elif keywords:
            raise _Bad("a positional value after a keyword")
        else:
            positional.append(code.value())
        if not code.take(",") and code.peek() != ")":
            raise _Bad(f"',' or ')' expected at {code.at}")
    return positional, keywords


def _keyword(code: _Code) -> str | None:
    """Move behind ``NAME=`` if that comes next."""
    start = code.at
    name = code.match(_PARAMETER)
    if name is None or code.match(_ASSIGN) is None:
        code.at = start
        return None
    return name.group()


def _bind(positional: list[Any], keywords: dict[str, Any], tool: Tool | None, known: bool) -> dict[str, Any]:
    """Positional values take the tool's slots in order; a single object may be the keywords themselves."""
    if tool is None:
        return _unbound(positional, keywords, known)
    if len(positional) == 1 and not keywords and isinstance(positional[0], dict):
        only = positional[0]
        if declared(tool, only) and (only or len(tool.slots) != 1):
            return only
        if len(tool.slots) != 1:
            raise _Bad("keys that the tool does not declare")
    if len(positional) > len(tool.slots):
        raise _Bad("more values than parameters")
    if not declared(tool, keywords):
        raise _Bad("keys that the tool does not declare")
    bound = dict(zip(tool.slots, positional, strict=False))
    twice = bound.keys() & keywords.keys()
    if twice:
        raise _Bad(f"{min(twice)} is given twice")
    return {**bound, **keywords}


def _unbound(positional: list[Any], keywords: dict[str, Any], known: bool) -> dict[str, Any]:
    """The arguments of a tool that nothing is known about. If it is not offered, they are only reported."""
    if not positional:
        return keywords
    if len(positional) == 1 and not keywords and isinstance(positional[0], dict):
        return positional[0]
    if known:
        return keywords
    raise _Bad("positional values without the tool's parameters")


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """Python by default, TypeScript with ``settings["style"] = "typescript"``."""
    if settings.get("form", settings).get("style") == "typescript":
        return f"{name}({_object(arguments) if arguments else ''})"
    if all(_PARAMETER.fullmatch(key) and key.isidentifier() for key in arguments):
        return f"{name}({', '.join(f'{key}={_literal(value)}' for key, value in arguments.items())})"
    return f"{name}(**{_literal(arguments)})"


def _object(value: Any) -> str:
    """A TypeScript literal of a JSON value; only keys that are no identifiers are quoted."""
    if isinstance(value, dict):
        plain = (_PARAMETER.fullmatch(key) and "-" not in key for key in value)
        keys = (key if bare else json.dumps(key, ensure_ascii=False) for bare, key in zip(plain, value, strict=True))
        return "{" + ", ".join(f"{key}: {_object(item)}" for key, item in zip(keys, value.values(), strict=True)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_object(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _literal(value: Any) -> str:
    """A Python literal of a JSON value, with double-quoted strings."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return repr(value)


_SETTINGS: Final = {"open_ended": "flag", "markerless": "flag", "style": "string"}
BODY: Final = Body("python_call", CodeReader, decode, write, settings=_SETTINGS)
