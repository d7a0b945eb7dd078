"""Calls written as ``NAME{k:v}`` with bare keys and strings between quote tokens, as Gemma models do."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..edits import record
from ..events import Repair
from ..jsontext import JsonReader
from ..limits import MAX_DEPTH, MAX_HEADER, MAX_NAME, MAX_REPAIR_TEXT
from ..names import Offer
from ..reading import DEAD, DONE, MORE, Around
from ..sentinels import CUT
from .base import Body, Context, Ending, Settings, Written

_NAME: Final = rb"([A-Za-z_][\w.-]{0,%d}+)[ \t\r\n]*+" % MAX_NAME
# A parenthesis in place of the brace needs the word or its colon before the name.
_HEAD: Final = re.compile(rb"[ \t\r\n]*+(?:(?:call)?+:[ \t]*+" + _NAME + rb"([{(])|" + _NAME + rb"\{)")
_HEAD_CUT: Final = re.compile(rb"[ \t\r\n]*+(?:call)?:?[ \t]*+(?:" + _NAME + rb")?\Z")
# The head without a bracket: the closer of the block must follow.
_BARE: Final = re.compile(rb"[ \t\r\n]*+call:[ \t]*+" + _NAME)
# The head of another call in the same block.
_AGAIN: Final = re.compile(rb"call:[ \t]{0,%d}+[A-Za-z_]" % MAX_NAME)
_AGAIN_CUT: Final = re.compile(rb"c(?:a(?:l(?:l(?::[ \t]*+)?)?)?)?\Z")


class LooseReader(JsonReader):
    """Reads ``call:NAME{…}`` to its own bracket. See ``reading.Reader`` for the common part."""

    __slots__ = ("name",)

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        super().__init__(start, around)
        self.name: str | None = None

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the object stands: (start, end so far), or (-1, -1)."""
        return (self._first, self.keep) if self.evidence else (-1, -1)

    def _open(self, buf: bytearray, end: int, final: bool) -> int:
        limit = min(end, self._first + MAX_HEADER)
        head = _HEAD.match(buf, self._first, limit)
        if head is None:
            bare = _BARE.match(buf, self._first, limit)
            size = self._around.close.at(buf, bare.end(), end, final) if bare is not None else 0
            if bare is not None and size > 0:
                # A call without a bracket has no arguments.
                self.name = bare.group(1).decode("utf-8", "replace")
                self.evidence = True
                self.at = bare.end()
                return DONE
            may_come = size == CUT or (limit == end and _HEAD_CUT.match(buf, self._first, limit) is not None)
            return MORE if may_come else DEAD
        self.name = (head.group(1) or head.group(3)).decode("utf-8", "replace")
        self.evidence = True
        self.at = self._first = head.end() - 1
        if head.group(2) == b"(":
            self._push(ord("{"), self.at)
            self.at += 1
        return MORE

    def _pop(self, bracket: int, at: int) -> int:
        return super()._pop(ord("}") if bracket in b")" else bracket, at)


_TEXT_HEAD: Final = re.compile(r"\s*(?:call)?:?\s*([A-Za-z_][\w.-]*)\s*([{(]|\Z)")
_KEY: Final = re.compile(r"""\s*+(?:"([^"]*)"|'([^']*)'|([A-Za-z_$][\w$.-]*+))\s*+:""")
_COLON: Final = re.compile(r"\s*+:")
_SCALAR: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?\Z")
_LONGEST_NUMBER: Final = 4000  # digits; Python refuses more
_WORDS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
# A string in plain quotes, which another value or a closing bracket follows.
_STRINGS: Final = {
    quote: re.compile(rf"{quote}((?:[^\\{quote}]++|\\[\s\S])*+){quote}(?=\s*+(?:[,}}\])]|\Z))") for quote in "\"'"
}


class _Bad(ValueError):
    """This is no object of the syntax."""


class _Loose:
    """A one-shot parser of the object. No recursion: containers stand on a list."""

    def __init__(self, text: str, quotes: tuple[str, ...]) -> None:
        self.text = text
        self.repairs: list[Repair] = []
        longest_first = sorted(quotes, key=len, reverse=True)
        self._mark = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")  # a quote token

    def parse(self, at: int) -> Any:
        """Read the object whose bracket stands before ``at``."""
        root: dict[str, Any] = {}
        stack: list[Any] = [root]
        key = ""
        key_next = True
        text = self.text
        while stack:
            while at < len(text) and text[at] in " \t\r\n":
                at += 1
            if at >= len(text):
                raise _Bad("the object never closes")
            container = stack[-1]
            keyed = isinstance(container, dict)
            char = text[at]
            if char in "}])":
                stack.pop()
                key_next = False
                at += 1
            elif char == ",":
                key_next = keyed
                at += 1
            elif keyed and key_next:
                key, at = self._key(at)
                key_next = False
            else:
                value: Any = {} if char == "{" else []
                if char in "{[":
                    if len(stack) >= MAX_DEPTH:
                        raise _Bad("nested too deep")
                    stack.append(value)
                    key_next = char == "{"
                    at += 1
                else:
                    value, at = self._value(at, keyed)
                if keyed:
                    if key in container and container[key] != value:
                        where = f"arguments.{key}" if container is root else "arguments"
                        self.repairs.append(
                            record("repeated", where, json.dumps(container[key], ensure_ascii=False), "")
                        )
                    container.pop(key, None)
                    container[key] = value
                else:
                    container.append(value)
        return root

    def _marked(self, at: int) -> tuple[str, int] | None:
        """The text between two quote tokens, and the index behind it."""
        opening = self._mark.match(self.text, at)
        if opening is None:
            return None
        closing = self._mark.search(self.text, opening.end())
        if closing is None:
            raise _Bad("a string never closes")
        return self.text[opening.end() : closing.start()], closing.end()

    def _key(self, at: int) -> tuple[str, int]:
        marked = self._marked(at)
        if marked is not None:
            colon = _COLON.match(self.text, marked[1])
            if colon is None:
                raise _Bad("a key without a value")
            return marked[0], colon.end()
        found = _KEY.match(self.text, at)
        if found is None:
            raise _Bad(f"a key expected at {at}")
        return next(group for group in found.groups() if group is not None), found.end()

    def _value(self, at: int, keyed: bool) -> tuple[Any, int]:
        """A string, or a bare word up to the next comma (in an object: the next key) or closing bracket."""
        marked = self._marked(at)
        if marked is not None:
            return marked
        text = self.text
        string = _STRINGS[text[at]].match(text, at) if text[at] in _STRINGS else None
        if string is not None:
            self._note_quotes(string.group(), string.group(1))
            return _unescaped(string.group(1), text[at]), string.end()
        end = at
        while end < len(text) and text[end] not in "}])":
            if text[end] == "," and (not keyed or self._key_at(end + 1)):
                break
            end += 1
        word = text[at:end].strip()
        if word in _WORDS:
            return _WORDS[word], end
        if len(word) < _LONGEST_NUMBER and _SCALAR.match(word):
            return json.loads(word), end
        self._note_quotes(word, word)
        return word, end

    def _key_at(self, at: int) -> bool:
        """Whether a key begins at ``at``, behind a comma that may belong to a bare text."""
        if _KEY.match(self.text, at) is not None:
            return True
        while self.text[at : at + 1].isspace():
            at += 1
        return self._mark.match(self.text, at) is not None

    def _note_quotes(self, before: str, after: str) -> None:
        self.repairs.append(Repair("quotes", "arguments", before[:MAX_REPAIR_TEXT], after[:MAX_REPAIR_TEXT]))


def _unescaped(body: str, quote: str) -> str:
    """The content of a string in plain quotes, as it stands if its escapes are none of JSON."""
    inner = body if quote == '"' else body.replace('"', '\\"')
    try:
        return str(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        return body


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read one ``NAME{…}``. ``settings["quotes"]`` are the quote tokens of the grammar."""
    text = raw.decode("utf-8", "replace")
    head = _TEXT_HEAD.match(text)
    # A name without its bracket may not be whole.
    name = head.group(1) if head is not None and (head.group(2) or ending != "cut") else None
    call = Written(name, end=len(raw), complete=ending != "cut")
    if head is None or ending == "cut":
        call.fault = "" if ending == "cut" else "no name"
        return [call]
    if not head.group(2):
        call.arguments = {}
        call.repairs.append(Repair("no_arguments", "arguments", "", "{}"))
        return [call]
    parser = _Loose(text if ending == "whole" else text + "}" * 4, tuple(context.settings.get("quotes", ())))
    try:
        call.arguments = parser.parse(head.end())
    except _Bad as error:
        call.fault = str(error)
        return [call]
    if ending == "closed":
        parser.repairs.append(Repair("missing_bracket", "arguments"))
    call.repairs = parser.repairs
    return [call]


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """``call:NAME{k:v}`` with the first quote token of the grammar around strings.

    Raises ``ValueError`` for a string that holds a quote token, which has no escape.
    """
    quotes = settings.get("quotes", ('"',))
    text = json.dumps(arguments, ensure_ascii=False)
    if any(token in text for token in (json.dumps(quote)[1:-1] for quote in quotes if len(quote) > 1)):
        raise ValueError("the format cannot carry a string that holds its quote token")
    quote = quotes[0]
    return f"call:{name}{loose(arguments, quote)}"


def loose(value: Any, quote: str) -> str:
    """A JSON value in the bare notation: keys without quotes, strings between two ``quote`` tokens."""
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{loose(item, quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(loose(item, quote) for item in value) + "]"
    return json.dumps(value)


BODY: Final = Body("loose_object", LooseReader, decode, write, (_AGAIN, _AGAIN_CUT))
