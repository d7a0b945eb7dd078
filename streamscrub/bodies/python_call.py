"""Calls written as code: Python ``name(a="x", b=1)``, TypeScript ``name({a: "x"})``, lists and lines of them."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Final

from ..events import Repair
from ..jsontext import JsonReader
from ..limits import MAX_DEPTH, MAX_HEADER, MAX_NAME, MAX_PYTHON
from ..names import Offer
from ..reading import BLANK, DEAD, DONE, MORE, Around
from ..sentinels import CUT
from ..tools import Tool
from . import json_call
from .base import Body, Context, Ending, Settings, Written

_SKIP: Final = re.compile(rb"(?:[ \t\r\n;]++|(?:#|//)[^\n]*+\n)*+")
_COMMENT_CUT: Final = re.compile(rb"(?:#|//|/\Z)[^\n]*+\Z")
_WORD: Final = re.compile(rb"[A-Za-z_$][\w.$-]{0,%d}+" % (2 * MAX_NAME))
_WORDS_BEFORE: Final = frozenset((b"const", b"let", b"var", b"await", b"return"))
_STARTS_ARGUMENT: Final = re.compile(rb"""[ \t\r\n]*(?:\)|[A-Za-z_][\w-]*[ \t]*=|[\"'`{\[(]|[-+]?\d|\*\*)""")


class CodeReader(JsonReader):
    """Reads calls up to the closer of the envelope, or one bracketed list of calls to its own end.

    Strings, comments and brackets are followed as in JSON, with parentheses and triple quotes added.
    """

    __slots__ = ("_base", "_head", "_list", "_offer", "_settings", "_triple", "name")
    _CLOSES: ClassVar[bytes] = b",:}]);=.+"

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        super().__init__(start, around)
        self.name: str | None = None
        self._offer = offer
        self._settings = settings
        self._head = start
        self._list = False
        self._base = 0  # depth outside of all calls
        self._triple = b""

    def shift(self, by: int) -> None:
        super().shift(by)
        self._head -= by

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the code stands: (start, end so far), or (-1, -1)."""
        return (self._first, self.at) if self.evidence else (-1, -1)

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return not self._stack and self._state == 0 and not self._list

    def _open(self, buf: bytearray, end: int, final: bool) -> int:
        """Comments, a list bracket, ``const x = await``, then NAME and its parenthesis."""
        i = self._first
        opened = False
        if end - i > 8 * MAX_HEADER:
            end = i + 8 * MAX_HEADER
        words: list[bytes] = []
        while True:
            run = _SKIP.match(buf, i, end)
            i = run.end() if run is not None else i
            if i == end or _COMMENT_CUT.match(buf, i, end):
                return DEAD if final else MORE
            byte = buf[i]
            if byte == 0x5B and not words and not opened:
                opened = True
                i += 1
                continue
            if byte == 0x28 and words and (not final or True):
                if words[-1] == b"print" and not self._offer.get("print"):
                    words = []
                    i += 1
                    continue
                return self._called(buf, words[-1], i, end, final, opened)
            if byte == 0x3D and len(words) in (1, 2) and buf[i + 1 : i + 2] != b"=":
                if i + 1 == end:
                    return DEAD if final else MORE
                words = [b"await"]
                i += 1
                continue
            if words and words[-1] not in _WORDS_BEFORE:
                return DEAD
            word = _WORD.match(buf, i, end)
            if word is None:
                return DEAD
            if word.end() == end:
                return DEAD if final else MORE
            words.append(word.group())
            i = word.end()
            if buf[i] in b" \t" and words[-1] not in _WORDS_BEFORE:
                j = i
                while j < end and buf[j] in b" \t":
                    j += 1
                if j == end:
                    return DEAD if final else MORE
                if buf[j] not in b"(=":
                    return DEAD
                i = j

    def _called(self, buf: bytearray, word: bytes, i: int, end: int, final: bool, opened: bool) -> int:
        written = word.decode("utf-8", "replace")
        name = written.removesuffix(".call")
        tool = self._offer.resolve(name).tool
        markerless = bool(self._settings.get("markerless"))
        if tool is None or markerless:
            if markerless and (tool is None or self._offer.plain(name) is None):
                return DEAD
            follows = _STARTS_ARGUMENT.match(buf, i + 1, end)
            if follows is None:
                return (
                    MORE
                    if end - i <= MAX_NAME
                    and not final
                    and not bytes(buf[i + 1 : end]).strip(
                        b" \t\r\nabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-+*"
                    )
                    else DEAD
                )
        self.name = name
        self.evidence = True
        self._list = opened
        self.at = self._first
        return MORE

    def _between(self, buf: bytearray, end: int, final: bool) -> int:
        # A fence that the model put around the code ends it.
        around, i = self._around, self.at
        self.run = None
        while True:
            byte = buf[i] if i < end else -1
            if byte < 0:
                self.at = i
                return MORE
            if byte in around.leads:
                size = around.close.at(buf, i, end, final) or around.outer.at(buf, i, end, final)
                if size == CUT:
                    self.at = i
                    return MORE
                if size > 0:
                    self.at = i
                    self.broken = bool(self._stack) or around.close.at(buf, i, end, True) <= 0
                    return DONE
            if byte in b"\"'`":
                quote = bytes((byte,)) * 3
                here = bytes(buf[i : i + 3])
                if here != quote and quote.startswith(here) and i + len(here) == end and not final:
                    self.at = i
                    return MORE
                if here == quote:
                    if byte == 0x60:
                        self.at = i
                        self.broken = bool(self._stack)
                        return DONE
                    self._triple = quote
                    self.at = i + 3
                    self._state = 1
                    return -1
                self._triple = b""
                self._word = False
                return self._open_string(i + 1, byte)
            if byte == 0x23 or (byte == 0x2F and buf[i + 1 : i + 2] in (b"/", b"*")):
                block = buf[i : i + 2] == b"/*"
                self._comment_end = b"*/" if block else b"\n"
                self.at = i + 1 + block
                self._state = 3
                return -1
            if byte == 0x2F and i + 1 == end and not final:
                self.at = i
                return MORE
            if byte in b"([{":
                self._stack.append(byte)
                if len(self._stack) > 4 * MAX_DEPTH:
                    self._stack.pop(0)
            elif byte in b")]}":
                if self._stack:
                    self._stack.pop()
                if self._list and not self._stack:
                    self.at = i + 1
                    return DONE
            i += 1

    def _in_string(self, buf: bytearray, end: int, final: bool) -> int:
        if not self._triple:
            return super()._in_string(buf, end, final)
        close = buf.find(self._triple, self.at, end)
        if close < 0:
            self.at = max(self.at, end - 2)
            self.run = None
            return MORE
        self.at = close + 3
        self._triple = b""
        self._state = 0
        return -1

    def _end_string(self, buf: bytearray, end_of_text: int, resume: int) -> int:
        self._tent = self._tent_last = -1
        self._state = 0
        self.at = resume
        self.run = None
        return -1

    def _after_quote(self, buf: bytearray, end: int, final: bool) -> int:
        # A newline ends a statement, so a quote before it closes too.
        run = BLANK.match(buf, self.at, end)
        if run is not None and b"\n" in run.group() and len(self._stack) == self._base:
            return self._end_string(buf, self._quote_at, self.at)
        return super()._after_quote(buf, end, final)


# -- reading the complete code


class _Bad(ValueError):
    """This is no call with literal arguments."""


_TOKEN_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*+(?:[.-][A-Za-z_$][\w$]*+)*+")
_NUMBER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])")
_TRIVIA: Final = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_PREFIX: Final = re.compile(r"(?:[rRbBuUfF]{1,2})(?=[\"'])")
_BEFORE: Final = re.compile(r"(?:(?:const|let|var)\s+)?(?:[A-Za-z_]\w*\s*=(?!=)\s*)?(?:await\s+)?")
_KEYWORD: Final = re.compile(r"([A-Za-z_$][\w$-]*)\s*=(?!=)")
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\n)|([\s\S]))"
)
_SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_WORDS: Final = {
    "True": True, "true": True, "False": False, "false": False,
    "None": None, "null": None, "undefined": None,
}  # fmt: skip


class _Code:
    """A one-shot parser of literal calls over complete text. No recursion: containers stand on a list."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.repairs: list[Repair] = []

    def skip(self) -> None:
        found = _TRIVIA.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def expect(self, char: str) -> None:
        if self.peek() != char:
            raise _Bad(f"{char!r} expected at {self.at}")
        self.at += 1

    def value(self) -> Any:
        """One literal, of any nesting up to ``MAX_DEPTH``."""
        stack: list[list[Any]] = []  # [container, key or None]
        while True:
            self.skip()
            char = self.peek()
            done: Any
            if char and char in "[({":
                self.at += 1
                if len(stack) >= MAX_DEPTH:
                    raise _Bad("nested too deep")
                stack.append([{} if char == "{" else [], None, char])
                self.skip()
                if self._closes(stack):
                    done = stack.pop()[0]
                elif char == "{":
                    stack[-1][1] = self._key()
                    continue
                else:
                    continue
            elif char and char in ")]}" and stack and self._closes(stack):
                done = stack.pop()[0]
            else:
                done = self._scalar()
            while stack:
                top = stack[-1]
                if isinstance(top[0], dict):
                    top[0][top[1]] = done
                else:
                    top[0].append(done)
                self.skip()
                comma = self.peek() == ","
                if comma:
                    self.at += 1
                    self.skip()
                if self._closes(stack):
                    done = stack.pop()[0]
                    continue
                if not comma:
                    raise _Bad(f"',' or a closing bracket expected at {self.at}")
                if isinstance(top[0], dict):
                    top[1] = self._key()
                break
            if not stack:
                return done

    def _closes(self, stack: list[list[Any]]) -> bool:
        if self.peek() == {"{": "}", "[": "]", "(": ")"}[stack[-1][2]]:
            self.at += 1
            return True
        return False

    def _key(self) -> str:
        self.skip()
        if self.peek() in ("'", '"', "`"):
            key = self.string(False)
        else:
            word = re.compile(r"[A-Za-z_$][\w$-]*|\d+").match(self.text, self.at)
            if word is None:
                raise _Bad(f"a key expected at {self.at}")
            key = word.group()
            self.at = word.end()
        self.skip()
        self.expect(":")
        return key

    def _scalar(self) -> Any:
        prefix = _PREFIX.match(self.text, self.at)
        raw = False
        if prefix is not None:
            raw = "r" in prefix.group().lower()
            formatted = "f" in prefix.group().lower()
            self.at = prefix.end()
            text = self.string(raw)
            if formatted and ("{" in text or "}" in text):
                raise _Bad("an f-string is no literal")
            return text
        if self.peek() in ("'", '"', "`") and self.peek():
            text = self.string(raw)
            self.skip()
            while self.peek() in ("'", '"') and self.peek():
                text += self.string(raw)
                self.skip()
            return text
        number = _NUMBER.match(self.text, self.at)
        if number is not None:
            self.at = number.end()
            return self._number(number.group())
        word = re.compile(r"[A-Za-z_]\w*").match(self.text, self.at)
        if word is not None and word.group() in _WORDS:
            self.at = word.end()
            return _WORDS[word.group()]
        raise _Bad(f"no literal at {self.at}")

    def _number(self, text: str) -> Any:
        plain = text.replace("_", "")
        if len(plain) > 4000:
            raise _Bad("a number of thousands of digits")
        try:
            if plain.lower().lstrip("+-").startswith("0x"):
                return int(plain, 16)
            if re.fullmatch(r"[-+]?\d+", plain):
                if re.fullmatch(r"[-+]?0\d+", plain):
                    self.repairs.append(Repair("coerced", "arguments", text, str(int(plain))))
                return int(plain)
            value = float(plain)
        except ValueError as error:
            raise _Bad(str(error)) from None
        if value in (float("inf"), float("-inf")):
            raise _Bad("a number that is not finite")
        return value

    def string(self, raw: bool) -> str:
        text, start = self.text, self.at
        quote = text[start]
        triple = text[start : start + 3] == quote * 3 and quote != "`"
        mark = quote * 3 if triple else quote
        i = start + len(mark)
        pieces = []
        pattern = re.compile(r"[^\\" + quote + r"]++|\\[\s\S]|" + quote)
        inner = newline = False
        while True:
            found = pattern.match(text, i)
            if found is None:
                raise _Bad("a string never closes")
            piece = found.group()
            if piece == quote:
                if triple and text[i : i + 3] != mark:
                    pieces.append(piece)
                    i += 1
                    continue
                if not triple and not self._ends_string(i + 1):
                    inner = True
                    pieces.append(piece)
                    i += 1
                    continue
                self.at = i + len(mark)
                break
            newline = newline or (not triple and quote != "`" and "\n" in piece and not piece.startswith("\\"))
            pieces.append(piece)
            i = found.end()
        body = "".join(pieces)
        if inner:
            self.repairs.append(Repair("inner_quotes", "arguments", body[:200], ""))
        if newline:
            self.repairs.append(Repair("control_characters", "arguments", body[:200], ""))
        return body if raw else _ESCAPE.sub(_unescape, body)

    def _ends_string(self, i: int) -> bool:
        found = _TRIVIA.match(self.text, i)
        j = found.end() if found else i
        return j >= len(self.text) or self.text[j] in ",:}]);=+'\""


def _unescape(found: re.Match[str]) -> str:
    code = found.group(1) or found.group(2) or found.group(3) or found.group(4)
    if code is not None:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else "\ufffd"
    if found.group(5) is not None:
        return ""
    char = found.group(6)
    if char in _SIMPLE:
        return _SIMPLE[char]
    return char if char in "\\'\"`/" else "\\" + char


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read all calls of a body. All or nothing for a statement; calls of a list that are whole stay whole."""
    text = raw.decode("utf-8", "replace")
    stripped = text.lstrip()
    if stripped.startswith(("[{", "{")) or re.match(r"\[\s*\{", stripped):
        return json_call.decode(raw, ending, context)
    calls: list[Written] = []
    code = _Code(text[:MAX_PYTHON] if len(text) > MAX_PYTHON else text)
    if len(text) > MAX_PYTHON and ending != "cut":
        return _long(text, raw, ending, context)
    code.skip()
    listed = code.peek() == "["
    if listed:
        code.at += 1
    before: list[Repair] = []
    while True:
        while True:
            code.skip()
            if code.peek() in (",", ";") and code.peek():
                code.at += 1
                continue
            break
        if listed and code.peek() == "]":
            rest = text[code.at + 1 :].strip(" \t\r\n,;])")
            if rest and calls:
                calls[-1].fault = "text after the list"
            break
        if code.at >= len(code.text) or code.text.startswith("```", code.at):
            break
        start = code.at
        code.repairs = []
        call = _statement(code, context, listed)
        call.start = _byte(text, start)
        call.repairs[:0] = before
        calls.append(call)
        if call.fault or not call.complete:
            call.end = len(raw)
            if ending == "cut":
                call.complete = False
                call.fault = ""
            break
        call.end = _byte(text, code.at)
    if calls:
        calls[-1].end = len(raw)
        if ending == "cut" and not listed and calls[-1].complete and not context.settings.get("open_ended"):
            calls[-1].complete = False
    return calls or [Written(None, end=len(raw), fault="no call", complete=ending != "cut")]


def _long(text: str, raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Code over ``MAX_PYTHON`` characters is read by the same parser; it is linear, only ``ast`` would not be."""
    return (
        decode(raw, ending, Context(context.offer, {**context.settings})) if False else _read_long(text, raw, context)
    )


def _read_long(text: str, raw: bytes, context: Context) -> list[Written]:
    code = _Code(text)
    code.skip()
    listed = code.peek() == "["
    code.at += listed
    calls = []
    while True:
        code.skip()
        if code.at >= len(text) or code.peek() in ("]", ""):
            break
        if code.peek() in ",;":
            code.at += 1
            continue
        start = code.at
        call = _statement(code, context, listed)
        call.start, call.end = _byte(text, start), _byte(text, code.at)
        calls.append(call)
        if call.fault:
            break
    if calls:
        calls[-1].end = len(raw)
    return calls


def _byte(text: str, index: int) -> int:
    return len(text[:index].encode("utf-8", "replace"))


def _statement(code: _Code, context: Context, listed: bool) -> Written:
    """``[const x =] [await] NAME(arguments)`` and nothing else up to the end of the line."""
    before = _BEFORE.match(code.text, code.at)
    if before is not None:
        code.at = before.end()
    name = _TOKEN_NAME.match(code.text, code.at)
    if name is None:
        return Written(None, fault="no name")
    code.at = name.end()
    code.skip()
    written = name.group()
    if code.peek() != "(":
        return Written(None if code.at >= len(code.text) else written, fault="no arguments")
    if written == "print" and context.offer.get("print") is None:
        code.at += 1
        code.skip()
        call = _statement(code, context, listed)
        code.skip()
        if code.peek() == ")":
            code.at += 1
        else:
            call.fault = call.fault or "print(…) without its end"
        return call
    written = _stripped(written, context.offer)
    call = Written(written)
    tool = context.offer.resolve(written).tool
    code.at += 1
    try:
        positional, keywords = _call_arguments(code)
        call.arguments = _bind(positional, keywords, tool, context.offer.known)
    except _Bad as error:
        call.fault = str(error)
        call.repairs = list(code.repairs)
        return call
    call.repairs = list(code.repairs)
    rest = re.compile(r"[ \t]*(?:[,;\])\r\n#]|//|/\*|\Z|```)").match(code.text, code.at)
    if rest is None:
        call.fault = "an expression, not a call"
    return call


def _stripped(written: str, offer: Offer) -> str:
    """``NAME.call`` and dotted prefixes of a code dialect: the last segment names the tool, unless more of it does."""
    if written.endswith(".call") and offer.get(written) is None:
        written = written[: -len(".call")]
    if offer.known and offer.get(written) is None and "." in written:
        parts = written.split(".")
        for k in range(1, len(parts)):
            if offer.get(".".join(parts[k:])) is not None:
                return ".".join(parts[k:])
        return written if offer.resolve(written).tool is not None else parts[-1] if len(parts) == 2 else written
    return written


def _call_arguments(code: _Code) -> tuple[list[Any], dict[str, Any]]:
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    while True:
        code.skip()
        if code.peek() == ")":
            code.at += 1
            return positional, keywords
        if code.text.startswith("**", code.at):
            code.at += 2
            extra = code.value()
            if not isinstance(extra, dict):
                raise _Bad("** needs an object")
            keywords.update(extra)
        else:
            keyword = _KEYWORD.match(code.text, code.at)
            if keyword is not None:
                code.at = keyword.end()
                if keyword.group(1) in keywords:
                    raise _Bad(f"{keyword.group(1)} is given twice")
                keywords[keyword.group(1)] = code.value()
            elif keywords:
                raise _Bad("a positional value after a keyword")
            else:
                positional.append(code.value())
        code.skip()
        if code.peek() == ",":
            code.at += 1
        elif code.peek() != ")":
            raise _Bad(f"',' or ')' expected at {code.at}")


def _bind(positional: list[Any], keywords: dict[str, Any], tool: Tool | None, known: bool) -> dict[str, Any]:
    """Positional values take the tool's slots in order; a single object may be the keywords themselves."""
    if not positional:
        return keywords
    if len(positional) == 1 and not keywords and isinstance(positional[0], dict):
        only = positional[0]
        if tool is None:
            return only
        one = len(tool.slots) == 1
        if all(key in tool.properties for key in only) and (only or not one):
            return only
        if one:
            return {tool.slots[0]: only}
        raise _Bad("keys that the tool does not declare")
    if tool is None:
        if known:
            return keywords
        raise _Bad("positional values without the tool's parameters")
    if len(positional) > len(tool.slots):
        raise _Bad("more values than parameters")
    bound = dict(zip(tool.slots, positional, strict=False))
    twice = bound.keys() & keywords.keys()
    if twice:
        raise _Bad(f"{min(twice)} is given twice")
    return {**bound, **keywords}


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """Python by default, TypeScript with ``settings["style"] = "typescript"``."""
    if settings.get("style") == "typescript":
        return f"{name}({json.dumps(arguments, ensure_ascii=False) if arguments else ''})"
    if all(key.isidentifier() for key in arguments):
        return f"{name}({', '.join(f'{key}={_literal(value)}' for key, value in arguments.items())})"
    return f"{name}(**{_literal(arguments)})"


def _literal(value: Any) -> str:
    """A Python literal of a JSON value, with double-quoted strings."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\\/", "/")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return (
        {True: "True", False: "False", None: "None"}.get(value, repr(value))
        if value in (True, False, None) and not (isinstance(value, int | float) and not isinstance(value, bool))
        else repr(value)
    )


BODY: Final = Body("python_call", CodeReader, decode, write)
