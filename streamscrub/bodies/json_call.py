"""Calls written as JSON: ``{"name": …, "arguments": {…}}``, an array of such objects, or an envelope around them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from ..edits import in_bytes
from ..events import Repair
from ..jsontext import JsonReader
from ..limits import MAX_REPAIR_TEXT
from ..names import Offer
from ..reading import BLANK, DONE, MORE, Around
from ..repair import Loaded, Unreadable, load
from ..tools import Tool
from .base import Body, Context, Ending, Settings, Written, dumped

NAME_KEYS: Final = ("name", "tool", "tool_name", "function", "call")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "params", "args", "input")
_SIDE_KEYS: Final = frozenset(
    ("type", "id", "index", "content", "role", "tool_calls", "tool_call_id", "call_id")
)  # legal beside a name, and never arguments
_ID_KEYS: Final = ("id", "call_id", "tool_call_id")
# Tools that only stand for a call: the payload names the real one.
PSEUDO_TOOLS: Final = frozenset(
    ("tool_call", "tool_calls", "call_tool", "use_tool", "function_call", "tool_use", "invoke", "invoke_tool")
)
# What is no repair where a format writes its objects as Python does (``python`` in the settings).
_PYTHON: Final = frozenset(("quotes", "key_quotes", "python_literal"))
# How the path to the arguments of a call begins, in a body with one call or several.
_ARGUMENTS_PATH: Final = re.compile(
    rf"^(?:(?:tool_calls)?\[[0-9]+\]\.)?(?:function\.)?(?:{'|'.join(ARGUMENT_KEYS)})(?=[.\[]|\Z)"
)
_CALL_PATH: Final = re.compile(
    rf"(?:(?:tool_calls)?\[[0-9]+\]\.)?(?:function\.)?(?:{'|'.join((*NAME_KEYS, *ARGUMENT_KEYS))})"
)
_LEADING: Final = b"call:"  # a word that some models put before the object

_THOUGHT: Final = b"thought"  # stands before the list in some envelopes


class Keys:
    """Under which keys a call's name and arguments may stand, the format's own first."""

    __slots__ = ("arguments", "envelope", "known", "names", "raw_arguments", "raw_names")

    def __init__(self, name: str = "", arguments: str = "") -> None:
        self.names: Final = (*([name] if name else ()), *NAME_KEYS)
        self.arguments: Final = (*([arguments] if arguments else ()), *ARGUMENT_KEYS)
        self.envelope: Final = (*self.names, *self.arguments, *_SIDE_KEYS)  # those that no tool has to declare
        # The same keys as the reader sees them.
        self.raw_names: Final = frozenset(key.encode() for key in self.names)
        self.raw_arguments: Final = frozenset(key.encode() for key in self.arguments)
        self.known: Final = frozenset((*(key.encode() for key in self.envelope), _THOUGHT))

    def __deepcopy__(self, memo: object) -> Keys:
        return self


KEYS: Final = Keys()
_PLAIN: Final[Settings] = {}


def keys_of(settings: Settings) -> Keys:
    """The keys of a grammar: ``settings["name_key"]`` and ``settings["arguments_key"]`` if it has its own."""
    own = settings.get("name_key", ""), settings.get("arguments_key", "")
    return Keys(*own) if any(own) else KEYS


class CallWatch:
    """Follows one JSON value: the name of its first call, where its arguments stand, and whether it can be a call.

    With ``bare`` it refuses what cannot be a call of an offered tool, so that an ordinary answer in JSON is released
    at its first foreign key.
    """

    __slots__ = ("_arguments_depth", "_keys", "_offer", "bare", "declared", "from_", "name", "named", "to", "tool")

    def __init__(self, offer: Offer, keys: Keys = KEYS, bare: bool = False) -> None:
        self._offer = offer
        self._keys = keys
        self.bare = bare
        self.name: str | None = None  # the first name, as written
        self.tool: Tool | None = None
        self.named = False  # an offered name was read
        self.declared = False  # and a declared key of its arguments
        self.from_ = -1  # where the arguments of the first call start and end
        self.to = -1
        self._arguments_depth = 0  # of the arguments that are open, else 0

    def shift(self, by: int) -> None:
        self.from_ -= by if self.from_ >= 0 else 0
        self.to -= by if self.to >= 0 else 0

    def key(self, depth: int, key: bytes) -> bool:
        if not self._arguments_depth:
            return not self.bare or key in self._keys.known
        if depth != self._arguments_depth:
            return True
        word = key.decode("utf-8", "replace")
        known = self.tool is not None and word in self.tool.properties
        self.declared = self.declared or known
        return known or not self.bare or self.tool is None or _is_variant(word, self.tool)

    def string(self, depth: int, key: bytes, value: bytes) -> bool:
        if self._arguments_depth or key not in self._keys.raw_names:
            return True
        name = _unquote(value)
        if not name.strip():
            return True  # another key may hold it
        if self.name is None:
            self.name = name
        if not self.bare or not self._offer.known:
            return True
        self.tool = self._offer.plain(name)
        self.named = self.named or self.tool is not None
        return self.tool is not None

    def opened(self, depth: int, key: bytes, bracket: int, at: int) -> bool:
        if self._arguments_depth or key not in self._keys.raw_arguments:
            return True
        self._arguments_depth = depth
        if self.from_ < 0:
            self.from_ = at
        return not self.bare or bracket in b"{"

    def closed(self, depth: int, at: int) -> bool:
        if depth == self._arguments_depth:
            self._arguments_depth = 0
            if self.to < 0:
                self.to = at
            if self.tool is not None and not self.tool.properties:
                self.declared = True
        return True


def _is_variant(word: str, tool: Tool) -> bool:
    """True if ``word`` is a declared parameter but for case and ``-`` for ``_``."""
    folded = word.replace("-", "_").lower()
    return any(folded == name.replace("-", "_").lower() for name in tool.properties)


def _unquote(value: bytes) -> str:
    """The content of a JSON string, as it stands where its escapes are none."""
    text = value.decode("utf-8", "replace")
    if "\\" in text:
        try:
            return str(json.loads(f'"{text}"', strict=False))
        except ValueError:
            pass
    return text


class CallReader(JsonReader):
    """A JSON value behind a marker; its first name and arguments are known as they are written."""

    __slots__ = ("watch",)

    _WORDS_END = True

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.watch = CallWatch(offer, keys_of(settings), bare=bool(settings.get("bare")))
        super().__init__(start, around, self.watch)

    def _open(self, buf: bytearray, end: int, final: bool) -> int:
        blank = BLANK.match(buf, self._first, end)
        i = blank.end() if blank is not None else self._first
        word = bytes(buf[i : i + len(_LEADING)])
        if word == _LEADING:
            self._first = self.at = i + len(_LEADING)
        elif word and _LEADING.startswith(word) and i + len(word) == end:
            return MORE
        return super()._open(buf, end, final)

    @property
    def name(self) -> str | None:
        """The first name, once it is whole."""
        return self.watch.name

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the first arguments stand: (start, end so far), or (-1, -1)."""
        start, stop = self.watch.from_, self.watch.to
        return (start, stop if stop >= 0 else self.keep) if start >= 0 else (-1, -1)


def scan(raw: bytes, offer: Offer, settings: Settings = _PLAIN) -> CallWatch:
    """The first name and the place of the arguments in a value that may be cut."""
    watch = CallWatch(offer, keys_of(settings))
    JsonReader(0, Around(), watch).read(bytearray(raw), len(raw), True)
    return watch


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read the calls of one JSON value. Of a cut array, the elements that are whole are calls."""
    lead = len(raw) - len(raw.lstrip())
    if raw.startswith(_LEADING, lead):
        lead += len(_LEADING)
    return decode_with(FORM, raw[lead:], lead, ending, context)


@dataclass(frozen=True, slots=True)
class Form:
    """How an object says which call it is: ``name`` of the first call in bytes that may be cut, ``read`` for the calls
    of an object with its end. ``keys`` are those that no tool has to declare.
    """

    name: Callable[[bytes, Context], str | None]
    read: Callable[[Any, Context], list[Written]]
    keys: Callable[[Context], tuple[str, ...]]


def decode_with(form: Form, body: bytes, offset: int, ending: Ending, context: Context) -> list[Written]:
    """Read the calls of the JSON value ``body``, which stands ``offset`` bytes behind the start of the whole body."""
    return _cut(form, body, offset, context) if ending == "cut" else _calls(form, body, offset, context)


def _cut(form: Form, body: bytes, offset: int, context: Context) -> list[Written]:
    """What a value without its end holds: whole calls, then perhaps the beginning of another."""
    calls: list[Written] = []
    headed = context.settings.get("name")
    for start, end, whole in _split(body):
        piece = body[start:end]
        if whole:
            calls += _calls(form, piece, start + offset, context)
        elif piece.strip() or headed is not None:
            name = form.name(piece, context) or headed
            calls.append(Written(name, start=start + offset, end=end + offset, complete=False))
    if calls and calls[-1].complete:
        calls[-1].repairs.append(Repair("missing_bracket", "", "", "]"))
    return calls


def _split(raw: bytes) -> list[tuple[int, int, bool]]:
    """The elements of an array that may be cut: (start, end, whole) each. Anything else is one that is not whole."""
    buf = bytearray(raw)
    blank = BLANK.match(buf)
    i = blank.end() if blank is not None else 0
    if buf[i : i + 1] != b"[":
        return [(0, len(buf), False)]
    i += 1
    found: list[tuple[int, int, bool]] = []
    while True:
        while i < len(buf) and buf[i] in b" \t\r\n,;":
            i += 1
        if i >= len(buf) or buf[i] not in b"{[":
            return found
        reader = JsonReader(i, Around())
        whole = reader.read(buf, len(buf), False) == DONE
        end = reader.at if whole else len(buf)
        found.append((i, end, whole))
        i = end


def _calls(form: Form, raw: bytes, offset: int, context: Context) -> list[Written]:
    """The calls of a value that has its end."""
    name = form.name(raw, context) or context.settings.get("name")
    tool = context.offer.resolve(name).tool if name else None
    try:
        loaded = read(raw.decode("utf-8", "replace"), tool, context, form.keys(context))
    except Unreadable as error:
        return [Written(name, start=offset, end=offset + len(raw), fault=str(error))]
    found = [call for value in _objects(loaded.value) for call in form.read(value, context)]
    python = context.settings.get("python")
    kept = [one for one in loaded.repairs if not (python and one.kind in _PYTHON)]
    repairs = [replace(one, where=_path(one.where)) for one in in_bytes(kept, raw, offset)]
    if found and _place(found, raw, offset):
        _share(found, repairs, loaded.strategy)
    else:
        for call in found:
            call.repairs[:0] = repairs
            call.strategy = loaded.strategy if repairs else call.strategy
    for call in found:
        twice = next((one.where for one in call.repairs if _leaves_two_calls(one)), "")
        call.fault = call.fault or (f"{twice} is given twice" if twice else "")
    return found


def _leaves_two_calls(repair: Repair) -> bool:
    """Has a key that names the call, or holds its arguments, two values?"""
    return repair.kind == "repeated" and _CALL_PATH.fullmatch(repair.where) is not None


def _path(where: str) -> str:
    """A place in a call object as a place in the call."""
    return _ARGUMENTS_PATH.sub("arguments", where)


def _share(found: list[Written], repairs: list[Repair], strategy: str) -> None:
    """Give each call the repairs of its own stretch of the body; the stretches have no gaps."""
    starts = [call.start for call in found]
    shares: list[list[Repair]] = [[] for _ in found]
    for one in repairs:
        assert one.span is not None
        shares[max(bisect_right(starts, one.span[0]) - 1, 0)].append(one)
    for call, share in zip(found, shares, strict=True):
        call.repairs[:0] = share
        call.strategy = strategy if share else call.strategy


def read(text: str, tool: Tool | None, context: Context, envelope: tuple[str, ...] = KEYS.envelope) -> Loaded:
    """Load a body with the anchors that the tool gives. Raises ``Unreadable``.

    ``envelope`` are keys that may stand around the arguments.
    """
    return load(
        text,
        keys=tuple(tool.properties) if tool is not None else (),
        required=tool.required if tool is not None else (),
        closed=tool.closed if tool is not None else False,
        envelope=envelope,
        markers=context.settings.get("leaks", ()),
        quote_tokens=context.settings.get("quotes", ()),
    )


def _objects(value: Any) -> list[Any]:
    """The call objects in a value: an array's items, an envelope's entries, or the value itself."""
    out: list[Any] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict) and not isinstance(item.get("name"), str):
            inner = item.get("tool_calls")
            item = inner if isinstance(inner, list) else item
        if isinstance(item, list):
            stack.extend(reversed(item))
        else:
            out.append(item)
    return out


def _place(found: list[Written], raw: bytes, offset: int) -> bool:
    """Give each call its stretch of the body. False if the structure does not tell where they stand."""
    size, count = len(raw), len(found)
    pieces = [(0, size, True)]
    if count > 1:
        at = max(raw.find(b"[", raw.find(b'"tool_calls"')), 0) if raw.lstrip()[:1] == b"{" else 0
        pieces = [(start + at, end + at, whole) for start, end, whole in _split(raw[at:])]
    known = len(pieces) == count
    if not known:
        # Where the items stand cannot be told from the structure; every call still gets bytes of its own.
        pieces = [(size * k // count, size * (k + 1) // count, True) for k in range(count)]
    for call, (start, end, _) in zip(found, pieces, strict=True):
        call.start, call.end = start + offset, end + offset
    return known


def _call(value: Any, context: Context) -> list[Written]:
    """One call object, with the aliases that count behind a marker."""
    if not isinstance(value, dict):
        return [Written(None, fault="not an object")]
    repairs: list[Repair] = []
    record, keys = _flat(value, repairs), keys_of(context.settings)
    name_key = next((key for key in keys.names if isinstance(record.get(key), str) and record[key].strip()), None)
    name = record[name_key] if name_key is not None else context.settings.get("name")
    if name is None:
        return [Written(None, fault="no name", repairs=repairs)]
    if name_key is None:
        repairs.append(Repair("nameless", "name", "", name))
    call = Written(name, repairs=repairs)
    identity = next((record[key] for key in _ID_KEYS if key in record), None)
    call.model_id = identity if isinstance(identity, str) else None
    argument_key = next((key for key in keys.arguments if key in record), None)
    if argument_key is not None:
        call.arguments = record[argument_key]
        settle(call)
    else:
        beside = {key: item for key, item in record.items() if key != name_key and key not in _SIDE_KEYS}
        _flattened(call, beside, context.offer)
    return [call]


def _flat(value: dict[str, Any], repairs: list[Repair]) -> dict[str, Any]:
    """The call object without the ``function`` level that some write around the name, or around all of it."""
    record = _canonical(value, repairs)
    function = record.get("function")
    if isinstance(function, dict) and isinstance(function.get("name"), str) and not isinstance(record.get("name"), str):
        outer = {key: item for key, item in record.items() if key != "function"}
        return {**outer, **_canonical(function, repairs)}
    return record


def _canonical(value: dict[str, Any], repairs: list[Repair]) -> dict[str, Any]:
    """Envelope keys in another case are the keys they are."""
    if "name" in value:
        return value
    known = {*NAME_KEYS, *ARGUMENT_KEYS}
    out: dict[str, Any] = {}
    for key, item in value.items():
        folded = key.lower()
        if key not in known and folded in known and folded not in value:
            repairs.append(Repair("key", folded, key, folded))
            key = folded
        out[key] = item
    return out


def _flattened(call: Written, beside: dict[str, Any], offer: Offer) -> None:
    """Take what stands beside the name for the arguments, if the tool declares all of it."""
    tool = offer.resolve(call.name or "").tool
    call.arguments = beside
    if not beside:
        call.repairs.append(Repair("no_arguments", "arguments", "", "{}"))
    elif tool is not None and all(tool.key(key) is not None for key in beside):
        call.repairs.append(Repair("flattened", "arguments", "", ", ".join(beside)[:MAX_REPAIR_TEXT]))
    else:
        call.fault = "no arguments, but keys beside the name that the tool does not declare"


def settle(call: Written) -> None:
    """Bring written arguments to an object where one reading is certain; anything else stays and is a fault."""
    value, before = call.arguments, call.arguments
    inner: list[Repair] = []
    for _ in range(2):
        if not isinstance(value, str) or not value.strip():
            break
        try:
            loaded = load(value)
        except Unreadable as error:
            call.fault = f"arguments are a string that is no object: {error}"
            return
        value = loaded.value
        inner += (replace(one, span=None) for one in under_arguments(loaded.repairs))
    if value is None or (isinstance(value, str) and not value.strip()):
        call.arguments = {}
        call.repairs.append(Repair("no_arguments", "arguments", json.dumps(before)[:MAX_REPAIR_TEXT], "{}"))
    elif not isinstance(value, dict):
        call.fault = f"arguments are no object but {type(value).__name__}"
    else:
        call.arguments = value
        if isinstance(before, str):
            call.repairs.append(Repair("string_arguments", "arguments", before[:MAX_REPAIR_TEXT], "object"))
            call.repairs += inner


def under_arguments(repairs: Iterable[Repair]) -> list[Repair]:
    """Repairs of an object that is the arguments alone, with their places in the call."""
    return [replace(one, where=_argument(one.where)) for one in repairs]


def _argument(where: str) -> str:
    return f"arguments{'' if where.startswith('[') or not where else '.'}{where}"[:MAX_REPAIR_TEXT]


FORM: Final = Form(
    lambda raw, context: scan(raw, context.offer, context.settings).name,
    _call,
    lambda context: keys_of(context.settings).envelope,
)


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """``{"name": …, "arguments": …}``, under the grammar's own keys."""
    keys = keys_of(settings)
    return dumped({keys.names[0]: name, keys.arguments[0]: arguments}, settings)


_SETTINGS: Final = {"name_key": "string", "arguments_key": "string", "bare": "flag", "python": "flag"}
BODY: Final = Body("json_call", CallReader, decode, write, settings=_SETTINGS)
