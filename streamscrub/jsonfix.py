"""A tolerant JSON reader: walks once over damaged text and says what must be edited to make it JSON.

Only what has one reading is corrected. In doubt the walk ends with ``Stuck``: a string that never closes, a bracket
that may belong in two places, a backslash that may be meant or not. All work is linear, nothing recurses: patterns
repeat possessively, and what is looked at ahead of a quote is bounded or stops at the next quote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from .edits import Edit, applied, shifted
from .limits import MAX_REPAIR_STEPS, MAX_REPAIR_TEXT

_Step: TypeAlias = Callable[[], "_Step"]

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_BETWEEN: Final = frozenset(" \t\r\n/#\\")
_COMMENT: Final = re.compile(r"(?://|#)[^\r\n]*+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![\w.+-])")
_STRICT_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?\Z")
_MANTISSA: Final = re.compile(r"[0-9.]*+")
_WORD: Final = re.compile(r"(?:true|false|null|True|False|None)(?!\w)")
_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}

# Strings by the quote that opens them, with those that close them.
_DOUBLE: Final = "“”„‟"
_SINGLE: Final = "‘’‚‛"
_CLOSERS: Final = {'"': '"', "'": "'", "“": "”", "”": "”", "„": "“”", "‟": "”", "‘": "’", "’": "’", "‚": "‘’", "‛": "’"}
_CONTENT: Final = {quote: re.compile(rf"(?:[^{any_of}\\]++|\\.)*+", re.DOTALL) for quote, any_of in _CLOSERS.items()}
_COLON: Final = r"[ \t\r\n]*+:"
_KEY: Final = re.compile(rf'"((?:[^"\\]++|\\.)*+)"(?={_COLON})', re.DOTALL)
_OTHER_KEYS: Final = tuple(
    re.compile(pattern + f"(?={_COLON})", re.DOTALL)
    for pattern in (
        rf"""["'{_DOUBLE}{_SINGLE}]([^"'{_DOUBLE}{_SINGLE}\\\r\n,:{{}}\[\]]{{1,128}}+)["'{_DOUBLE}{_SINGLE}]""",
        r"'((?:[^'\\]++|\\.)*+)'",
        rf"[{_DOUBLE}]([^{_DOUBLE}]*+)[{_DOUBLE}]",
        rf"[{_SINGLE}]([^{_SINGLE}]*+)[{_SINGLE}]",
        r"""([A-Za-z_$][\w$.-]{0,127}+)["'”’]?""",
    )
)
# A key whose colon is missing: a value that is no string begins behind it, or a string behind a blank.
_NO_COLON: Final = re.compile(
    r'"([A-Za-z_$][\w$.-]{0,127}+)"'
    r'(?=[ \t\r\n]*+(?:[{\[]|[+-]?[0-9]|(?:true|false|null|True|False|None)\b)|[ \t\r\n]++")'
)
# What may follow a comma after a string whose end is in question. Comments there are bounded, to stay linear.
_NEXT: Final = r"(?:[ \t\r\n]++|(?://|#)[^\r\n]{0,200}+\n){0,8}+"
_MEMBER: Final = re.compile(
    rf"{_NEXT}(?:\"(?:[^\"\\]|\\.){{0,128}}+\"|'(?:[^'\\]|\\.){{0,128}}+'|[{_DOUBLE}][^{_DOUBLE}]{{0,128}}+[{_DOUBLE}]"
    rf"|[{_SINGLE}][^{_SINGLE}]{{0,128}}+[{_SINGLE}]|[A-Za-z_$][\w$.-]{{0,127}}+){_COLON}",
    re.DOTALL,
)
_ELEMENT: Final = re.compile(
    rf"{_NEXT}(?:[\"'{{\[{_DOUBLE}{_SINGLE}]|[+-]?[0-9]|(?:true|false|null|True|False|None)\b)"
)
_AHEAD: Final = re.compile(_NEXT)
_TAIL: Final = re.compile(r"[ \t\r\n}\],;]*+")
_FINAL: Final = re.compile(r"[ \t\r\n}\]]*+\Z")

_SPLIT_LIST: Final = re.compile(
    r"""\A(?:[^"\\]++|\\.)*+"[ \t\r\n"\[\]{},]|\A(?:[^'\\]++|\\.)*+'[ \t\r\n'\[\]{},]|(["'])[ \t\r\n]*+\1|\\["']""",
    re.DOTALL,
)
# The content of a string whose quotes look as if they ended it early: brackets, another key or another string behind a
# comma follow the first.
SPLIT: Final = re.compile(
    r"""\A(?:[^"\\]++|\\.)*+"[ \t\r\n]*+(?:[}\]]|,[ \t\r\n]*+")"""
    r"""|\A(?:[^'\\]++|\\.)*+'[ \t\r\n]*+(?:[}\]]|,[ \t\r\n]*+')"""
    r"""|(["'])[ \t\r\n]++(["'])[^"'\\]{1,128}+\2[ \t\r\n]*+:""",
    re.DOTALL,
)
_ODD: Final = re.compile(
    r"""\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|'|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8})|[\\"]|[\x00-\x1f]++""",
)
_UNTOUCHED: Final = re.compile(r'[^"\\\x00-\x1f]*+\Z')


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The end of what ``pattern`` matches at ``at``; these patterns match the empty text, too."""
    found = pattern.match(text, at)
    return at if found is None else found.end()


class Stuck(ValueError):
    """The text cannot be read with certainty. ``open_string``: because a string never closes."""

    def __init__(self, reason: str, open_string: bool = False) -> None:
        super().__init__(reason)
        self.open_string = open_string


class TooDeep(Stuck):
    """More levels than allowed."""


class TooMuch(Stuck):
    """More work than a body is worth."""


class Work:
    """Counts the steps that the rungs spend on one body."""

    __slots__ = ("left",)

    def __init__(self, steps: int = MAX_REPAIR_STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Raises ``TooMuch`` when nothing is left."""
        self.left -= steps
        if self.left < 0:
            raise TooMuch("too much to repair")


@dataclass(frozen=True, slots=True)
class Fixed:
    """Corrected text. ``inner``: a string held quotes of its own kind; ``doubt``: and where it ends is a guess."""

    text: str
    edits: list[Edit]
    inner: bool
    doubt: bool


def fix(
    text: str,
    *,
    lenient: bool = False,
    markers: re.Pattern[str] | None = None,
    tokens: re.Pattern[str] | None = None,
    bare: Mapping[int, int] | None = None,
    max_depth: int = 64,
    work: Work | None = None,
) -> Fixed:
    """Correct ``text``, which must be one object or array. Raises ``Stuck``.

    With ``lenient`` a double quote closes a value only where JSON can go on behind it; other quotes inside are escaped.
    ``bare`` are strings without quotes, start -> end, that someone else has found.

    >>> fix("{'a': [1, True,],}").text
    '{"a": [1, true]}'
    """
    return _Walk(text, lenient, markers, tokens, bare or {}, max_depth, work or Work()).run()


def mend(
    text: str, start: int, end: int, where: str, work: Work, *, single: bool = False, quotes: str = "inner_quotes"
) -> list[Edit]:
    """What makes ``text[start:end]`` the content of a string as strict JSON writes it. Raises ``Stuck``.

    ``quotes`` is the kind of what the quotes around it bring with them. ``single``: they are single ones.
    """
    if _UNTOUCHED.match(text, start, end):
        return []
    edits: list[Edit] = []
    letters: set[str] = set()
    literal = False
    for match in _ODD.finditer(text, start, end):
        work.left -= 1
        if work.left < 0:
            raise TooMuch("too much to repair")
        found = match[0]
        kind = "escape"
        if found == '"':
            kind, after = quotes, '\\"'
        elif found[0] != "\\":
            kind, after = "control_characters", json.dumps(found)[1:-1]
        elif len(found) > 1 and found[1] in '"\\/bfnrtu':
            letters.add(found[1])
            continue
        elif single and found == "\\'":
            kind, after = quotes, "'"
        elif single and len(found) > 2 and int(found[2:], 16) < 0x110000:
            kind, after = quotes, json.dumps(chr(int(found[2:], 16)))[1:-1]
        else:
            after = "\\" + found if found == "\\" else json.dumps(found)[1:-1]
            literal = literal or found != "\\'"
        edits.append(Edit(match.start(), match.end(), after, kind, where))
    if literal:
        # A backslash that nothing escapes: were the others of this string meant as they stand, too?
        drive = text[start + 1 : min(start + 3, end)] == ":\\" and text[start].isalpha()
        blank = re.compile(r"\s").search(text, start, end)
        if letters & {"b", "f"} or (letters & {"n", "r", "t"} and (drive or not blank)):
            raise Stuck("a backslash can be read in two ways")
    return edits


@dataclass(slots=True)
class _Frame:
    closer: str
    path: str
    key: str | None = None
    index: int = 0  # of the present element, in an array
    comma: int = -1  # where the comma stands that nothing has followed yet
    redundant: bool = False


class _Walk:
    """One walk. Each step reads one token and says which step comes next."""

    __slots__ = (
        "at", "bare", "braces", "doubt", "edits", "final", "gap", "inner", "last", "lenient", "limit", "markers",
        "redundant", "stack", "text", "tokens", "triples", "work",
    )  # fmt: skip

    def __init__(
        self,
        text: str,
        lenient: bool,
        markers: re.Pattern[str] | None,
        tokens: re.Pattern[str] | None,
        bare: Mapping[int, int],
        limit: int,
        work: Work,
    ) -> None:
        self.work = work
        self.text = text
        self.lenient = lenient
        self.markers = markers
        self.tokens = tokens
        self.bare = bare
        self.limit = limit
        self.at = 0
        self.gap = ""  # the white space before the present token
        self.stack: list[_Frame] = []
        self.edits: list[Edit] = []
        self.braces = 0  # redundant pairs so far
        self.redundant = 0  # and those now open
        self.triples = True  # no search for closing triple quotes has failed so far
        self.last = ""  # what ended last: "string", "scalar" or "container"
        self.final = False  # nothing but closing brackets is left
        self.inner = False
        self.doubt = False

    def run(self) -> Fixed:
        step: _Step = self._value
        self._skip()
        if self.text[self.at : self.at + 1] not in ("{", "["):
            raise Stuck("neither an object nor an array")
        while self.at < len(self.text):
            self.work.spend(1)
            step = step()
            self._skip()
        if self.stack and step != self._after:
            raise Stuck("the text ends where a value is due")
        if any(not frame.redundant for frame in self.stack):
            if self.inner:
                raise Stuck("a string never closes", open_string=True)
            added = "".join(frame.closer for frame in reversed(self.stack) if not frame.redundant)
            self._note("missing_bracket", self.at, self.at, added, where="")
        self.edits.sort(key=_start)
        return Fixed(applied(self.text, self.edits), self.edits, self.inner, self.doubt)

    # Records

    def _where(self) -> str:
        if not self.stack:
            return ""
        frame = self.stack[-1]
        if frame.closer == "]":
            return f"{frame.path}[{frame.index}]"[:MAX_REPAIR_TEXT]
        if not frame.key:
            return frame.path
        return (f"{frame.path}.{frame.key}" if frame.path else frame.key)[:MAX_REPAIR_TEXT]

    def _note(self, kind: str, start: int, end: int, after: str, where: str | None = None) -> None:
        self.edits.append(Edit(start, end, after, kind, self._where() if where is None else where))

    def _stuck(self, wanted: str) -> Stuck:
        return Stuck(f"expected {wanted} at {self.at}, not {self.text[self.at : self.at + 60]!r}")

    # Between tokens

    def _skip(self) -> None:
        text = self.text
        self.gap = ""
        if self.markers is None and self.tokens is None and text[self.at : self.at + 1] not in _BETWEEN:
            return
        while True:
            end = _past(_SPACE, text, self.at)
            if end > self.at:
                self.gap = text[self.at : end]
                self.at = end
            char = text[end : end + 1]
            if self.tokens is not None and self.tokens.match(text, end):
                return
            if self.markers is not None and (marker := self.markers.match(text, end)) and marker.end() > end:
                self.work.spend(1)
                self._note("leaked_token", end, marker.end(), "")
                self.at = marker.end()
            elif char and char in "/#":
                self._comment()
            elif char == "\\" and text[end + 1 : end + 2] in ("n", "r", "t"):
                self.work.spend(1)
                self._note("stray_escape", end, end + 2, "")
                self.at = end + 2
            else:
                return

    def _comment(self) -> None:
        text, start = self.text, self.at
        if text.startswith("/*", start):
            end = text.find("*/", start + 2) + 2
            if end < 2:
                raise self._stuck("the end of a comment")
        else:
            found = _COMMENT.match(text, start)
            if found is None or (found.end() == len(text) and self.stack):
                raise self._stuck("JSON")
            end = found.end()
        self.work.spend(1)
        self._note("comment", start, end, "")
        self.at = end

    # Steps

    def _value(self) -> _Step:
        text, at = self.text, self.at
        char = text[at]
        if at in self.bare:
            end = self.bare[at]
            self._enclose(at, end, end, "json_repair")
            self.at = end
            self.last = "string"
            return self._after
        if char in "{[":
            return self._open(char)
        if char in _CLOSERS or (self.tokens is not None and self.tokens.match(text, at)):
            self._string()
            return self._after
        frame = self.stack[-1]
        if char == "]" == frame.closer:
            return self._close_after_comma()
        number = _NUMBER.match(text, at)
        word = number or _WORD.match(text, at)
        if word is None:
            raise self._stuck("a value")
        written = word[0]
        if number is None:
            piece = _PYTHON.get(written, written)
            kind = "python_literal"
        else:
            piece = written if _STRICT_NUMBER.match(written) else _number(written)
            kind = "number"
        if piece != written:
            self._note(kind, at, word.end(), piece)
        self.at = word.end()
        self.last = "scalar"
        return self._after

    def _open(self, char: str) -> _Step:
        self.stack.append(_Frame("}" if char == "{" else "]", self._where()))
        if len(self.stack) - self.redundant > self.limit:
            raise TooDeep(f"nested deeper than {self.limit} levels")
        self.at += 1
        return self._key if char == "{" else self._value

    def _key(self) -> _Step:
        text, at = self.text, self.at
        frame = self.stack[-1]
        char = text[at]
        if char == "}":
            return self._close_after_comma()
        if char == ",":
            self._note("trailing_comma", at, at + 1, "")
            self.at += 1
            return self._key
        if char == "{" and frame.key is None and self.braces < 2:
            self.braces += 1
            self.redundant += 1
            frame.redundant = True
            opener = text.rindex("{", 0, at)
            self._note("braces", opener, opener + 1, "", where=frame.path)
            return self._value
        found = _KEY.match(text, at)
        if found is not None:
            frame.key = found[1]
            self.edits += mend(text, at + 1, found.end() - 1, self._where(), self.work)
            self.at = found.end()
        elif (bare := _NO_COLON.match(text, at)) is not None:
            frame.key = bare[1]
            self.at = bare.end()
            self._note("missing_colon", self.at, self.at, ":")
            frame.comma = -1
            return self._value_of_key
        else:
            self._other_key(frame)
        return self._colon

    def _other_key(self, frame: _Frame) -> None:
        """A key without double quotes around it."""
        text, at = self.text, self.at
        if at in self.bare:
            start, end = at, self.bare[at]
            stop, kind = end, "json_repair"
        else:
            start, end, stop = self._bounds()
            kind = "key_quotes"
        frame.key = text[start:end]
        self._enclose(start, end, stop, kind, single=text[at] == "'")
        self.at = stop

    def _bounds(self) -> tuple[int, int, int]:
        """Where the content of such a key starts and ends, and where the key itself ends."""
        text, at = self.text, self.at
        if self.tokens is not None and (token := self.tokens.match(text, at)):
            close = self.tokens.search(text, token.end())
            if close is None:
                raise Stuck("a string never closes", open_string=True)
            return token.end(), close.start(), close.end()
        for pattern in _OTHER_KEYS:
            found = pattern.match(text, at)
            if found is not None:
                return found.start(1), found.end(1), found.end()
        raise self._stuck("a key and a colon")

    def _enclose(self, start: int, end: int, stop: int, kind: str, *, single: bool = False) -> None:
        """Put double quotes around the content ``start`` to ``end`` of a string from here to ``stop``."""
        text, at, where = self.text, self.at, self._where()
        self.work.spend(1)
        inside = mend(text, start, end, where, self.work, single=single, quotes=kind)
        if stop - at <= MAX_REPAIR_TEXT and all(edit.kind == kind for edit in inside):
            # A short string is told as a whole, which is easier to read.
            content = applied(text[start:end], shifted(inside, -start)) if inside else text[start:end]
            self.edits.append(Edit(at, stop, f'"{content}"', kind, where))
            return
        if text[at:start] != '"':
            self.edits.append(Edit(at, start, '"', kind, where))
        self.edits += inside
        if text[end:stop] != '"':
            self.edits.append(Edit(end, stop, '"', kind, where))

    def _colon(self) -> _Step:
        if self.text[self.at] != ":":
            raise self._stuck("a colon")
        self.at += 1
        self.stack[-1].comma = -1
        return self._value_of_key

    def _value_of_key(self) -> _Step:
        char = self.text[self.at]
        if char == ":":
            self._note("surplus_colon", self.at, self.at + 1, "")
            self.at += 1
            return self._value_of_key
        if char in "]}":
            raise self._stuck("a value")
        return self._value()

    def _after(self) -> _Step:
        text, frame = self.text, self.stack[-1]
        char = text[self.at]
        if char == "," and not frame.redundant:
            frame.comma = self.at
            frame.index += 1
            self.at += 1
            return self._key if frame.closer == "}" else self._value
        if char in "}]":
            return self._close(char)
        if frame.redundant or not self._comma_missing(char):
            raise self._stuck("a comma or a closing bracket")
        self._note("missing_comma", self.at, self.at, ",")
        frame.index += 1
        return self._key if frame.closer == "}" else self._value

    def _comma_missing(self, char: str) -> bool:
        """Whether the next value or key begins here. Behind a string its own quotes must not be the reason."""
        text, at, last, gap = self.text, self.at, self.last, self.gap
        if self.stack[-1].closer == "}":
            if char == '"':
                return (bool(gap) or last != "string") and _KEY.match(text, at) is not None
            return ("\n" in gap or (bool(gap) and last != "string")) and any(k.match(text, at) for k in _OTHER_KEYS)
        if last == "container" and char in '{["':
            return True
        if last != "string":
            return bool(gap) and char not in "'" + _DOUBLE + _SINGLE
        return "\n" in gap and char == '"'

    def _close_after_comma(self) -> _Step:
        frame = self.stack[-1]
        if frame.comma >= 0:
            frame.key = None
            self._note("trailing_comma", frame.comma, frame.comma + 1, "", where=frame.path)
        return self._close(frame.closer)

    def _close(self, char: str) -> _Step:
        frame = self.stack[-1]
        if char == frame.closer:
            self.stack.pop()
            if frame.redundant:
                self._note("braces", self.at, self.at + 1, "", where=frame.path)
            self.at += 1
            self.redundant -= frame.redundant
        else:
            self.final = self.final or _FINAL.match(self.text, self.at) is not None
            if not self.final:
                raise self._stuck("another bracket")
            if all(outer.closer != char for outer in self.stack):
                self._note("surplus_bracket", self.at, self.at + 1, "", where="")
                self.at += 1
                return self._after
            self.stack.pop()
            self.redundant -= frame.redundant
            if not frame.redundant:
                self._note("missing_bracket", self.at, self.at, frame.closer, where="")
        self.last = "container"
        return self._after if self.stack else self._done

    def _done(self) -> _Step:
        char = self.text[self.at]
        if char in "}]":
            self._note("surplus_bracket", self.at, self.at + 1, "")
        elif char in ",;":
            self._note("trailing_comma", self.at, self.at + 1, "")
        else:
            raise self._stuck("the end")
        self.at += 1
        return self._done

    # Strings

    def _string(self) -> None:
        text, at = self.text, self.at
        token = self.tokens.match(text, at) if self.tokens is not None else None
        quote = text[at]
        single = False
        if token is not None and self.tokens is not None:
            close = self.tokens.search(text, token.end())
            if close is None:
                raise Stuck("a string never closes", open_string=True)
            start, end, stop = token.end(), close.start(), close.end()
        elif (triple := self._triple(quote)) >= 0:
            start, end, stop = at + 3, triple, triple + 3
            single = quote == "'"
        elif quote == '"' and not self.lenient:
            start, end = at + 1, _past(_CONTENT[quote], text, at + 1)
            stop = end + 1
            if text[end:stop] != '"':
                raise Stuck("a string never closes", open_string=True)
        else:
            start, end = at + 1, self._guess(quote)
            stop = end + 1
            single = quote == "'"
        if quote == '"' and start == at + 1 and stop == end + 1 and token is None:
            self.edits += mend(text, start, end, self._where(), self.work)
        else:
            self._enclose(start, end, stop, "quotes", single=single)
        self.at = stop
        self.last = "string"

    def _triple(self, quote: str) -> int:
        """Where the three quotes stand that close a value opened with exactly three, or -1."""
        text, start = self.text, self.at
        mark = quote * 3
        if (
            not self.triples
            or quote not in "\"'"
            or not text.startswith(mark, start)
            or text[start + 3 : start + 4] == quote
        ):
            return -1
        if text[_past(_SPACE, text, start + 3) :][:1] in (",", "}", "]"):
            return -1
        at = text.find(mark, start + 3)
        while at >= 0:
            self.work.spend(1)
            if text[at - 1] not in (quote, "\\") and self._closes(at + 3, 0):
                return at
            at = text.find(mark, at + 1)
        self.triples = False
        return -1

    def _guess(self, quote: str) -> int:
        """Where a string ends that closes at the first quote behind which JSON can go on."""
        text, start = self.text, self.at
        content = _CONTENT[quote]
        inner = unpaired = 0
        at = start + 1
        while True:
            at = _past(content, text, at)
            if text[at : at + 1] in ("", "\\"):
                raise Stuck("a string never closes", open_string=True)
            self.work.spend(1)
            if self._closes(at + 1, inner):
                break
            inner += 1
            between_letters = text[at - 1].isalnum() and text[at + 1 : at + 2].isalnum() and at > start + 1
            if text[at] not in "'’" or not between_letters:
                unpaired += 1
            at += 1
        self.inner = self.inner or unpaired > 0
        raw = text[start + 1 : at]
        if quote not in "\"'":
            unpaired += sum(map(raw.count, set(_DOUBLE if quote in _DOUBLE else _SINGLE) - set(_CLOSERS[quote])))
        # Quotes in a text come in pairs. An odd one says that the string was cut at a quote that was its own.
        self.doubt = self.doubt or unpaired % 2 == 1
        if unpaired:  # or a comma is missing between two strings, and their quotes are none of a text
            split = _SPLIT_LIST if self.stack[-1].closer == "]" else SPLIT
            self.doubt = self.doubt or split.search(raw) is not None
        return at

    def _closes(self, at: int, inner: int) -> bool:
        """Whether JSON can go on at ``at`` if a string ended there, with the brackets that are open."""
        text = self.text
        depth = len(self.stack)
        while True:
            at = _past(_AHEAD, text, at)
            if not depth:
                return self._ends(at)
            if at >= len(text):
                return not inner and not self.inner
            frame = self.stack[depth - 1]
            if text[at] == frame.closer:
                depth -= 1
                at += 1
                continue
            if text[at] != ",":
                return False
            ahead = _past(_AHEAD, text, at + 1)
            if text[ahead : ahead + 1] == frame.closer:
                at = ahead
                continue
            return (_MEMBER if frame.closer == "}" else _ELEMENT).match(text, at + 1) is not None

    def _ends(self, at: int) -> bool:
        while True:
            at = _past(_TAIL, self.text, at)
            marker = self.markers.match(self.text, at) if self.markers is not None else None
            if marker is None or marker.end() == at:
                return at >= len(self.text)
            at = marker.end()


def _start(edit: Edit) -> int:
    return edit.start


def _number(written: str) -> str:
    """A number as JSON writes it: no plus, no leading zeros, digits on both sides of the point."""
    sign = "-" if written[0] == "-" else ""
    digits = written.lstrip("+-")
    mantissa = digits[: _past(_MANTISSA, digits, 0)]
    exponent = digits[len(mantissa) :]
    whole, point, fraction = mantissa.partition(".")
    return sign + (whole.lstrip("0") or "0") + (point + (fraction or "0") if point else "") + exponent
