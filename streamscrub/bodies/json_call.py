"""Calls written as JSON: ``{"name": …, "arguments": {…}}``, an array of such objects, or an envelope around them."""

from __future__ import annotations

import json
from typing import Any, Final

from ..events import Repair
from ..jsontext import JsonReader
from ..limits import MAX_REPAIR_TEXT
from ..names import Offer
from ..reading import BLANK, DEAD, DONE, MORE, Around
from ..repair import Loaded, Unreadable, load
from ..tools import Tool
from .base import Body, Context, Ending, Settings, Written

NAME_KEYS: Final = ("name", "tool", "tool_name", "function", "call")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "params", "args", "input")
_SIDE_KEYS: Final = frozenset(
    ("type", "id", "index", "content", "role", "tool_calls", "tool_call_id", "call_id")
)  # legal beside a name, and never arguments
# Tools that only stand for a call: the payload names the real one.
PSEUDO_TOOLS: Final = frozenset(
    ("tool_call", "tool_calls", "call_tool", "use_tool", "function_call", "tool_use", "invoke", "invoke_tool")
)
_LEADING: Final = b"call:"


class CallWatch:
    """Follows one JSON value: the name of its first call, where its arguments stand, and whether it can be a call.

    With ``bare`` it refuses what cannot be a call of an offered tool, so that an ordinary answer in JSON is released
    at its first foreign key.
    """

    __slots__ = ("_arguments_depth", "_offer", "bare", "declared", "from_", "name", "named", "to", "tool")

    def __init__(self, offer: Offer, bare: bool = False) -> None:
        self._offer = offer
        self.bare = bare
        self.name: str | None = None  # the first name, as written
        self.tool: Tool | None = None
        self.named = False  # an offered name was read
        self.declared = False  # and a declared key of its arguments
        self.from_ = -1  # where the arguments of the first call start and end
        self.to = -1
        self._arguments_depth = 0

    def shift(self, by: int) -> None:
        self.from_ -= by if self.from_ >= 0 else 0
        self.to -= by if self.to >= 0 else 0

    def key(self, depth: int, key: bytes) -> bool:
        if self._arguments_depth:
            if depth != self._arguments_depth:
                return True
            known = self.tool is not None and key.decode("utf-8", "replace") in self.tool.properties
            self.declared = self.declared or known
            return not self.bare or self.tool is None or known or self._variant(key)
        if not self.bare:
            return True
        word = key.decode("utf-8", "replace")
        return word in NAME_KEYS or word in ARGUMENT_KEYS or word in _SIDE_KEYS

    def _variant(self, key: bytes) -> bool:
        folded = key.decode("utf-8", "replace").replace("-", "_").lower()
        assert self.tool is not None
        return any(folded == name.replace("-", "_").lower() for name in self.tool.properties)

    def string(self, depth: int, key: bytes, value: bytes) -> bool:
        if self._arguments_depth or key.decode("utf-8", "replace") not in NAME_KEYS:
            return True
        name = _unquote(value)
        if self.name is None:
            self.name = name
        if not self.bare or not self._offer.known:
            return True
        self.tool = self._offer.plain(name)
        self.named = self.named or self.tool is not None
        return self.tool is not None

    def opened(self, depth: int, key: bytes, bracket: int, at: int) -> bool:
        if self._arguments_depth or key.decode("utf-8", "replace") not in ARGUMENT_KEYS:
            return True
        self._arguments_depth = depth
        if self.from_ < 0:
            self.from_ = at
        return not self.bare or bracket == 0x7B

    def closed(self, depth: int, at: int) -> bool:
        if depth == self._arguments_depth:
            self._arguments_depth = 0
            if self.to < 0:
                self.to = at
            if self.tool is not None and not self.tool.properties:
                self.declared = True
        return True

    def scalar(self, depth: int, key: bytes) -> bool:
        return True


def _unquote(value: bytes) -> str:
    text = value.decode("utf-8", "replace")
    if "\\" in text:
        try:
            decoded = json.loads(f'"{text}"', strict=False)
        except ValueError:
            return text
        return decoded if isinstance(decoded, str) else text
    return text


class CallReader(JsonReader):
    """A JSON value behind a marker; its first name and arguments are known as they are written."""

    __slots__ = ("watch",)

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.watch = CallWatch(offer, bare=bool(settings.get("bare")))
        super().__init__(start, around, self.watch)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        if not self.evidence:
            # A word that some models put before the object.
            run = BLANK.match(buf, self._first, end)
            i = run.end() if run is not None else self._first
            word = bytes(buf[i : i + len(_LEADING)])
            if word == _LEADING:
                self._first = self.at = i + len(_LEADING)
            elif word and _LEADING.startswith(word) and i + len(word) == end:
                return DEAD if final else MORE
        return super().read(buf, end, final)

    @property
    def name(self) -> str | None:
        """The first name, once it is whole."""
        return self.watch.name

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the first arguments stand: (start, end so far), or (-1, -1)."""
        start = self.watch.from_
        return (start, self.watch.to if self.watch.to >= 0 else self.at) if start >= 0 else (-1, -1)


def scan(raw: bytes, offer: Offer) -> CallWatch:
    """The first name and the place of the arguments in a value that may be cut."""
    watch = CallWatch(offer)
    reader = JsonReader(0, Around(), watch)
    buf = bytearray(raw)
    reader.read(buf, len(buf), True)
    return watch


def _split(raw: bytes) -> list[tuple[int, int, bool]]:
    """The top-level values of a cut array: (start, end, whole) each."""
    buf = bytearray(raw)
    run = BLANK.match(buf, 0)
    i = run.end() if run is not None else 0
    if buf[i : i + 1] != b"[":
        return [(0, len(buf), False)]
    i += 1
    found = []
    while True:
        while i < len(buf) and buf[i] in b" \t\r\n,;":
            i += 1
        if i >= len(buf) or buf[i] not in b"{[":
            break
        reader = JsonReader(i, Around())
        if reader.read(buf, len(buf), False) != DONE:
            found.append((i, len(buf), False))
            break
        found.append((i, reader.at, True))
        i = reader.at
    return found


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read the calls of one JSON value. ``settings``: ``name_is_key`` for ``{"NAME": {arguments}}`` objects."""
    lead = len(raw) - len(raw.lstrip())
    if raw[lead : lead + len(_LEADING)] == _LEADING:
        lead += len(_LEADING)
    body = raw[lead:]
    if ending == "cut":
        calls: list[Written] = []
        for start, end, whole in _split(body):
            piece = body[start:end]
            if whole:
                calls += _calls(piece, start + lead, context)
            elif piece.strip(b" \t\r\n{[") or piece.strip():
                name = scan(piece, context.offer).name
                calls.append(Written(name, start=start + lead, end=end + lead, complete=False))
        return calls
    return _calls(body, lead, context)


def _calls(raw: bytes, offset: int, context: Context) -> list[Written]:
    text = raw.decode("utf-8", "replace")
    watch = scan(raw, context.offer)
    tool = context.offer.resolve(watch.name).tool if watch.name else None
    whole = Written(watch.name, start=offset, end=offset + len(raw))
    try:
        loaded = read(text, tool, context)
    except Unreadable as error:
        whole.fault = str(error)
        return [whole]
    found: list[Written] = []
    name_is_key = bool(context.settings.get("name_is_key"))
    for value in _objects(loaded.value):
        if isinstance(value, dict) and name_is_key and len(value) == 1:
            ((key, arguments),) = value.items()
            found.append(Written(key, arguments))
            settle(found[-1])
        else:
            found.append(_call(value, context.offer))
    if not found:
        return []
    for call in found:
        call.repairs[:0] = loaded.repairs
        call.strategy = loaded.strategy if loaded.repairs else call.strategy
    _place(found, raw, offset)
    return found


def read(text: str, tool: Tool | None, context: Context) -> Loaded:
    """Load a body with the anchors that the tool gives. Raises ``Unreadable``."""
    return load(
        text,
        keys=tuple(tool.properties) if tool is not None else (),
        required=tool.required if tool is not None else (),
        closed=tool.closed if tool is not None else False,
        envelope=(*NAME_KEYS, *ARGUMENT_KEYS, *_SIDE_KEYS),
        markers=context.settings.get("leaks", ()),
        quote_tokens=context.settings.get("quotes", ()),
    )


def _place(found: list[Written], raw: bytes, offset: int) -> None:
    """Give each call its stretch of the body: up to the next one's start."""
    size, count = len(raw), len(found)
    pieces = [(0, size, True)]
    if count > 1:
        at = max(raw.find(b"[", raw.find(b'"tool_calls"')), 0) if raw.lstrip()[:1] == b"{" else 0
        pieces = [(start + at, end + at, whole) for start, end, whole in _split(raw[at:])]
    if len(pieces) != count:
        # Where the items stand cannot be told from the structure; every call still gets bytes of its own.
        pieces = [(size * k // count, size * (k + 1) // count, True) for k in range(count)]
    for call, (start, end, _) in zip(found, pieces, strict=True):
        call.start, call.end = start + offset, end + offset


def _objects(value: Any) -> list[Any]:
    """The call objects in a value: an array's items, an envelope's entries, or the value itself."""
    out: list[Any] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(reversed(item))
        elif (
            isinstance(item, dict)
            and isinstance(item.get("tool_calls"), list)
            and not isinstance(item.get("name"), str)
        ):
            stack.extend(reversed(item["tool_calls"]))
        else:
            out.append(item)
    return out


def _call(value: Any, offer: Offer) -> Written:
    """One call object, with the aliases that count behind a marker."""
    if not isinstance(value, dict):
        return Written(None, fault="not an object")
    repairs: list[Repair] = []
    value = _canonical(value, repairs)
    function = value.get("function")
    if isinstance(function, dict) and isinstance(function.get("name"), str) and not isinstance(value.get("name"), str):
        merged = {key: item for key, item in value.items() if key in ("id", "call_id")}
        value = {**merged, **_canonical(function, repairs)}
    name_key = next((key for key in NAME_KEYS if isinstance(value.get(key), str) and value[key].strip()), None)
    if name_key is None:
        return Written(None, fault="no name", repairs=repairs)
    call = Written(value[name_key], repairs=repairs)
    identity = value.get("id", value.get("call_id", value.get("tool_call_id")))
    call.model_id = identity if isinstance(identity, str) else None
    argument_key = next((key for key in ARGUMENT_KEYS if key in value), None)
    if argument_key is not None:
        call.arguments = value[argument_key]
        settle(call)
    else:
        rest = {key: item for key, item in value.items() if key != name_key and key not in _SIDE_KEYS}
        tool = offer.resolve(call.name or "").tool
        if rest and tool is not None and all(key in tool.properties for key in rest):
            call.arguments = rest
            call.repairs.append(Repair("flattened", "arguments", "", ", ".join(rest)))
        elif rest and name_key != "name" and tool is None:
            call.fault = "no arguments"
        else:
            call.arguments = {}
            call.repairs.append(Repair("no_arguments", "arguments", "", "{}"))
    return call


def _canonical(value: dict[str, Any], repairs: list[Repair]) -> dict[str, Any]:
    """Envelope keys in another case are the keys they are."""
    if "name" in value or not value:
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


def settle(call: Written) -> None:
    """Bring written arguments to an object where one reading is certain; anything else stays and is a fault."""
    value, before = call.arguments, call.arguments
    for _ in range(2):
        if not isinstance(value, str) or not value.strip():
            break
        try:
            value = load(value).value
        except Unreadable as error:
            call.fault = f"arguments are a string that is no object: {error}"
            return
    if value is None or (isinstance(value, str) and not value.strip()):
        call.arguments = {}
        call.repairs.append(Repair("no_arguments", "arguments", json.dumps(before), "{}"))
    elif not isinstance(value, dict):
        call.fault = f"arguments are no object but {type(value).__name__}"
    else:
        call.arguments = value
        if isinstance(before, str):
            call.repairs.append(Repair("string_arguments", "arguments", before[:MAX_REPAIR_TEXT], "object"))


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """``{"name":…,"arguments":…}``, compact, with the keys that the grammar uses."""
    if settings.get("name_is_key"):
        return json.dumps({name: arguments}, ensure_ascii=False)
    keys = {settings.get("name_key", "name"): name, settings.get("arguments_key", "arguments"): arguments}
    return json.dumps(keys, ensure_ascii=False)


BODY: Final = Body("json_call", CallReader, decode, write)
