"""Calls whose parameters are elements named after them and nest, with a token before every tag."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..attributes import PLAIN_END, read_attributes
from ..events import Repair
from ..limits import MAX_BLANKS, MAX_DEPTH, MAX_NAME
from ..names import Offer
from ..reading import BLANK, DEAD, DONE, MORE, Around, Run, plain_run
from ..sentinels import CUT, NONE, Sentinels
from ..shapes import type_text
from ..tools import Shape, Tool
from . import json_arguments
from .base import Body, Context, Ending, Settings, Written

_WORD: Final = re.compile(rb"[^\s<>/=\"']{1,%d}+" % MAX_NAME)
_DEEPEST: Final = 2 * MAX_DEPTH  # elements inside each other that are told apart; what is deeper is malformed
_ITEM: Final = "item"  # the name of a list's element
_TEXT: Final = "$text"  # the key of text that stands beside elements
_HEAD, _BODY = range(2)


class Elements:
    """The literals of one such syntax: what any tag and any closing tag starts with, and the words that are no keys.

    ``token`` is what stands before every tag.
    """

    __slots__ = ("call", "closes", "marks", "token", "wrapper")

    def __init__(
        self, marks: Sentinels, closes: Sentinels, token: bytes, call: tuple[str, ...], wrapper: tuple[str, ...]
    ) -> None:
        self.marks: Final = marks
        self.closes: Final = closes
        self.token: Final = token
        self.call: Final = call
        self.wrapper: Final = wrapper

    def __deepcopy__(self, memo: object) -> Elements:
        return self


class Token:
    """One tag as it was read: where it stands, its word, and what kind of tag it is."""

    __slots__ = ("closing", "empty", "end", "key", "start", "word")

    def __init__(self, start: int, end: int, word: str, key: str, closing: bool, empty: bool) -> None:
        self.start = start
        self.end = end
        self.word = word
        self.key = key  # of the parameter; another word only if an attribute says so
        self.closing = closing
        self.empty = empty


class NestedReader:
    """Reads one call from behind the word of its tag. See ``reading.Reader`` for the common part."""

    __slots__ = (
        "_elements", "_first", "_offer", "_phase", "_text", "at", "attributes", "broken", "closed", "evidence", "fault",
        "json", "mention", "name", "open", "piece", "run", "stop", "tokens", "tool", "torn", "wrapped",
    )  # fmt: skip

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.at = self._first = start
        self.evidence = False
        self.broken = False
        self.closed = False  # by its own closer
        self.wrapped = False  # by the closer of what holds it
        self.mention = False  # none of its tags is a word of prose
        self.stop = -1  # where the tag begins that ended it
        self.piece = -1  # where a tag begins in which the bytes end
        self.torn = False  # that tag is no closer
        self.json = False  # something else stands where elements should, which may be an object
        self.fault = ""
        self.run: Run | None = None
        self.name: str | None = None
        self.tool: Tool | None = None
        self.attributes: dict[str, str] = {}
        self.open: list[str] = []  # the words of the elements that are open
        self.tokens: list[Token] | None = None  # kept only to decode
        self._elements: Elements = settings["elements"]
        self._offer = offer
        self._phase = _HEAD
        self._text = False  # something was read behind the head

    def shift(self, by: int) -> None:
        self.at -= by
        self._first -= by
        self.stop -= by
        self.piece -= by

    @property
    def keep(self) -> int:
        return self.at

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the parameters stand: (start, end so far), or (-1, -1)."""
        return (self._first, self.at) if self._phase == _BODY else (-1, -1)

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return not self.torn and not self.open

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        while True:
            verdict = self._in_body(buf, end, final) if self._phase == _BODY else self._head(buf, end)
            if verdict >= 0:
                return verdict

    def _head(self, buf: bytearray, end: int) -> int:
        verdict, i, found = read_attributes(buf, self.at, end)
        if verdict == MORE:
            return MORE
        if verdict == DEAD:
            rest = PLAIN_END.rest.match(buf, self.at, end)
            i = rest.end() if rest is not None else self.at
            if i == self.at or buf[i - 1] != 0x3E:
                return MORE if PLAIN_END.rest_cut.match(buf, self.at, end) is not None else DEAD
        self.attributes = found
        self.name = found.get("name")
        self.tool = self._offer.resolve(self.name).tool if self.name else None
        self.evidence = True  # its marker is a token, which never is text
        self.at = self._first = i
        if "/" in found:
            self.closed = True
            return DONE
        self._phase = _BODY
        return -1

    def _in_body(self, buf: bytearray, end: int, final: bool) -> int:
        marks, i = self._elements.marks, self.at
        self.torn = False
        self.piece = -1
        plain = plain_run((), marks)
        while True:
            if self.open or self.json:
                self.run = plain
                run = plain.match(buf, i, end)
                i = run.end() if run is not None else i
                self.at = i
            else:
                self.run = None
                i = self._between(buf, end)
                if i < 0:
                    return i + _ENDED
            if i >= end:
                return MORE
            size = marks.at(buf, i, end)
            if size == NONE and not (self.open or self.json):
                if self._text:
                    return DONE
                self.json = self._text = True
                continue
            if size == NONE:
                i += 1
                continue
            verdict, i = self._tag(buf, i, size, end) if size != CUT else (MORE, i)
            if verdict == MORE:
                # A piece of a closer is not missed.
                self.piece = i
                self.torn = self._elements.closes.at(buf, i, end) == NONE
                self.run = None
            if verdict is not None:
                return verdict

    def _between(self, buf: bytearray, end: int) -> int:
        """The first byte behind the blanks between two elements; with a verdict less ``_ENDED`` if there is none."""
        i = self.at
        token = self._elements.token
        while True:
            run = BLANK.match(buf, i, end)
            j = run.end() if run is not None else i
            if j - self.at > MAX_BLANKS:
                self.broken = not self._text
                return DONE - _ENDED
            if j == end:
                return MORE - _ENDED
            if not buf.startswith(token, j, end) or self._elements.marks.at(buf, j, end) != NONE:
                return j
            i = j + len(token)  # a doubled token

    def _tag(self, buf: bytearray, i: int, size: int, end: int) -> tuple[int | None, int]:
        """The tag at ``i``: (verdict or None, where to go on)."""
        elements = self._elements
        closing = elements.closes.at(buf, i, end, True) == size
        word = _WORD.match(buf, i + size, end)
        j = word.end() if word is not None else i + size
        if j == end:
            return MORE, i
        verdict, k, found = read_attributes(buf, j, end) if word is not None else (DEAD, j, {})
        if verdict == MORE:
            return MORE, i
        if word is None or verdict == DEAD:
            # No tag after all. Between elements it is nothing that a call holds.
            if self.open or self.json:
                return None, i + size
            self.fault = "something else than parameters stands in the call"
            self._text = True
            self.at = k if k > i + size else i + size
            return None, self.at
        name = word.group().decode("utf-8", "replace")
        ends = name in elements.call and (closing or "name" in found)
        if (ends or name in elements.wrapper) and name not in self.open:
            return self._ends(name, closing, i, k)
        self._text = True
        if closing:
            if name in self.open:
                while self.open.pop() != name:
                    pass
        elif "/" not in found:
            if len(self.open) < _DEEPEST:
                self.open.append(name)
            else:
                self.fault = f"nested deeper than {_DEEPEST} elements"
        if self.tokens is not None:
            key = found.get("name", name) if not closing else name
            self.tokens.append(Token(i, k, name, key, closing, "/" in found))
        self.at = k
        return None, k

    def _ends(self, name: str, closing: bool, i: int, k: int) -> tuple[int, int]:
        """A tag that no call reaches beyond. The closer of what holds the call closes open elements as well."""
        self.run = None
        self.stop = i
        if closing and name in self._elements.call:
            self.closed = True
            self.at = k
        elif closing and self.open:
            self.wrapped = True
            self.at = k
        else:
            self.broken = bool(self.open)
            self.at = i
        return DONE, self.at


_ENDED: Final = 8  # tells a verdict from an index


class _Node:
    """An element while its tree is built."""

    __slots__ = ("children", "key", "path", "shape", "text", "value", "word")

    def __init__(self, word: str, key: str, shape: Shape | None, path: str) -> None:
        self.word = word
        self.key = key
        self.shape = shape
        self.path = path
        self.text: list[str] = []
        self.children: list[tuple[str, Any, Shape | None]] = []
        self.value: Any = None


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read one call from behind the word of its tag."""
    reader = NestedReader(0, context.settings["around"], context.offer, context.settings)
    reader.tokens = []
    reader.read(bytearray(raw), len(raw), True)
    call = Written(reader.name, end=len(raw), model_id=reader.attributes.get("id"))
    call.complete = reader.closed or reader.wrapped or (ending != "cut" and reader.settled and reader._phase == _BODY)
    if not call.complete:
        return [call]
    if reader.json:
        return _from_json(reader, raw, call, context)
    call.fault = reader.fault or ("" if reader.name else "no name")
    _build(reader, raw, call)
    return [call]


def _end(reader: NestedReader, raw: bytes) -> int:
    """Where the inside of the call ends."""
    return next((place for place in (reader.stop, reader.piece) if place >= 0), len(raw))


def _from_json(reader: NestedReader, raw: bytes, call: Written, context: Context) -> list[Written]:
    """Something else stood where elements should: an object, or what is malformed."""
    settings = {**context.settings, "name": reader.name}
    calls = json_arguments.decode(raw[reader._first : _end(reader, raw)], "closed", Context(context.offer, settings))
    for one in calls:
        one.model_id = one.model_id or call.model_id
    if calls:
        calls[0].start, calls[-1].end = 0, len(raw)
    return calls


def _build(reader: NestedReader, raw: bytes, call: Written) -> None:
    """Build the arguments from the tags, without recursion."""
    tool = reader.tool
    root = _Node("", "", tool.shape if tool is not None else None, "arguments")
    stack = [root]
    at = reader._first

    def close(count: int) -> None:
        for _ in range(count):
            node = stack.pop()
            node.value = _value(node, tool is not None)
            stack[-1].children.append((node.key, node.value, node.shape))

    for token in [*(reader.tokens or ()), None]:
        top = stack[-1]
        text = raw[at : token.start if token is not None else _end(reader, raw)].decode("utf-8", "replace")
        top.text.append(text)
        plain = f"</{top.word}>"
        if (
            len(stack) > 1
            and text.rstrip().endswith(plain)
            and not (token and token.closing and token.word == top.word)
        ):
            # The token before the closer was left out.
            top.text[-1] = text.rstrip()[: -len(plain)]
            call.repairs.append(Repair("missing_tag", top.path, plain, "token"))
            close(1)
        if token is None:
            break
        at = token.end
        if token.closing:
            depth = next((k for k in range(len(stack) - 1, 0, -1) if stack[k].word == token.word), 0)
            if depth:
                for node in stack[depth + 1 :]:
                    call.repairs.append(Repair("missing_close", node.path))
                close(len(stack) - depth)
            continue
        depth = _parent(stack, token.key, tool)
        if depth < len(stack) - 1:
            for node in stack[depth + 1 :]:
                call.repairs.append(Repair("missing_close", node.path))
            close(len(stack) - 1 - depth)
        parent = stack[-1]
        if token.key != token.word:
            call.repairs.append(Repair("missing_tag", f"{parent.path}.{token.key}", token.word, token.key))
        stack.append(_Node(token.word, token.key, _shape_of(parent, token.key, tool), f"{parent.path}.{token.key}"))
        if token.empty:
            close(1)
    for node in stack[1:]:
        call.repairs.append(Repair("missing_close", node.path))
    close(len(stack) - 1)
    call.arguments = _fields(root, tool is not None)
    between = "".join(root.text).replace(reader._elements.token.decode(), "")
    if between.strip():
        call.fault = call.fault or "text stands between the parameters"
    if any(not key for key, _, _ in root.children):
        call.fault = call.fault or "a parameter without a name"


def _parent(stack: list[_Node], key: str, tool: Tool | None) -> int:
    """The place on the stack of the element that holds a new one: the last, unless that holds nothing but text.

    Then its closer is missing, and the new element is a sibling of it or of one around it that declares the key.
    """
    for depth in range(len(stack) - 1, 0, -1):
        shape = stack[depth].shape
        if shape is None or not shape.types or shape.types & {"object", "array"}:
            return depth
        above = stack[depth - 1]
        if _declares(above.shape, key) or (depth == 1 and tool is not None and tool.key(key) is not None):
            return depth - 1
    return len(stack) - 1


def _declares(shape: Shape | None, key: str) -> bool:
    return shape is not None and key in shape.properties


def _shape_of(parent: _Node, key: str, tool: Tool | None) -> Shape | None:
    shape = parent.shape
    if shape is None:
        return None
    if not parent.key and tool is not None:
        return shape.child(tool.key(key) or key)
    if "array" in shape.types and not _declares(shape, key):
        item = shape.item
        return item.child(key) if item is not None and key != _ITEM and _declares(item, key) else item
    return shape.child(key)


def _value(node: _Node, known: bool) -> Any:
    """The value of an element that was read to its end."""
    shape = node.shape
    types = shape.types if shape is not None else frozenset()
    text = "".join(node.text)
    if not node.children:
        if not text.strip() and types and "string" not in types and types & {"array", "object"}:
            return [] if "array" in types else {}
        value = type_text(text, shape)
        if shape is not None and "array" in types and "string" not in types and type(value) is not list:
            return [type_text(text, shape.item)]  # a list of one, without its elements
        return value
    keys = {key for key, _, _ in node.children}
    listed = keys == {_ITEM} if not types else "array" in types and ("object" not in types or keys == {_ITEM})
    if listed and not text.strip():
        item = shape.item if shape is not None else None
        if keys != {_ITEM} and item is not None and all(_declares(item, key) for key in keys):
            return [_fields(node, known)]
        return [value for _, value, _ in node.children]
    fields = _fields(node, known)
    if text.strip():
        fields[_TEXT] = text.strip()
    return fields


def _fields(node: _Node, known: bool) -> dict[str, Any]:
    """The elements in another one, by name. One that is repeated is a list, where its schema allows one."""
    found: dict[str, list[Any]] = {}
    shapes: dict[str, Shape | None] = {}
    for key, value, shape in node.children:
        found.setdefault(key, []).append(value)
        shapes[key] = shape
    fields: dict[str, Any] = {}
    for key, values in found.items():
        shape = shapes[key]
        if len(values) == 1 or (shape is not None and shape.types and "array" not in shape.types):
            fields[key] = values[-1]
        elif shape is not None and "array" in shape.types and all(type(value) is list for value in values):
            fields[key] = [item for value in values for item in value]
        else:
            fields[key] = values
    return fields


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """The call as elements. Raises ``ValueError`` for a value that would be read back as another one."""
    form: dict[str, str] = settings["form"]
    tool = settings.get("tool")

    def read(text: str) -> Written:
        raw = text.encode("utf-8", "replace")
        head = raw.index(b" ")
        return decode(raw[head:], "whole", Context(Offer((tool,) if tool is not None else None), settings))[0]

    def whole(elements: list[str]) -> str:
        return "".join([form["call_open"].replace("{name}", name), *elements, form["call_close"]])

    def same(call: Written, wanted: dict[str, Any]) -> bool:
        if call.name != name or call.fault or not call.complete or call.repairs:
            return False
        return json.dumps(call.arguments, sort_keys=True) == json.dumps(wanted, sort_keys=True)

    elements = []
    for key, value in arguments.items():
        texts = [_element(form, key, value), _element(form, key, json.dumps(value, ensure_ascii=False))]
        text = next((text for text in texts if same(read(whole([text])), {key: value})), None)
        if text is None:
            raise ValueError(f"this format cannot carry the value of {key!r} in a call of {name!r}")
        elements.append(text)
    text = whole(elements)
    if not same(read(text), arguments):
        raise ValueError(f"this format cannot carry the call of {name!r}")
    return text


def _element(form: dict[str, str], key: str, value: Any) -> str:
    """One element with all that it holds, without recursion."""
    out: list[str] = []
    pending: list[tuple[str, Any] | str] = [(key, value)]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            out.append(one)
            continue
        name, inner = one
        out.append(form["open"].replace("{key}", name))
        pending.append(form["close"].replace("{key}", name))
        if isinstance(inner, dict):
            pending += reversed(list(inner.items()))
        elif isinstance(inner, list):
            pending += [(_ITEM, item) for item in reversed(inner)]
        else:
            out.append(inner if isinstance(inner, str) else json.dumps(inner))
    return "".join(out)


BODY: Final = Body("nested", NestedReader, decode, write, table="tags", tabled=True)
