"""Calls written as tags: one around the call that carries its name, one around each parameter, in many spellings."""

from __future__ import annotations

import html
import json
import re
from typing import Any, Final

from ..attributes import read_attributes
from ..events import Repair
from ..jsontext import JsonReader
from ..limits import CLOSER_WAIT, MAX_BLANKS
from ..names import Offer
from ..reading import BLANK, DEAD, DONE, MORE, Around, Run, plain_run
from ..sentinels import CUT, Sentinels
from ..tools import Tool
from . import json_arguments, json_call
from .base import Body, Context, Ending, Settings, Written

_TAG_END: Final = re.compile(rb"[ \t\r\n]*+/?>")
_TAG_END_CUT: Final = re.compile(rb"[ \t\r\n]*+/?\Z")
_SURPLUS: Final = re.compile(rb"[ \t\r\n}\],;]*+")
_CDATA: Final = re.compile(rb"[ \t\r\n]*<!\[CDATA\[(.*)\]\]>[ \t\r\n]*\Z", re.DOTALL)
_HEAD, _ITEMS, _KEY, _VALUE, _JSON = range(5)


class Tags:
    """The literals of one tag syntax, compiled from a grammar file. All are without the end of the tag.

    ``after`` are the markers that may follow a value's closer: a sibling, the closer of the call or of what holds it,
    another opener. ``openers`` begin another call of any syntax.
    """

    __slots__ = (
        "after",
        "call_close",
        "call_open",
        "key_close",
        "key_open",
        "openers",
        "special",
        "value_marks",
        "wrapper_close",
    )

    def __init__(
        self,
        call_open: Sentinels,
        call_close: Sentinels,
        key_open: Sentinels,
        key_close: Sentinels,
        wrapper_close: Sentinels,
        value_marks: Sentinels,
        after: Sentinels,
        special: Sentinels,
        openers: Sentinels,
    ) -> None:
        self.openers: Final = openers
        self.call_open: Final = call_open
        self.call_close: Final = call_close
        self.key_open: Final = key_open
        self.key_close: Final = key_close
        self.wrapper_close: Final = wrapper_close
        self.value_marks: Final = value_marks
        self.after: Final = after
        self.special: Final = special

    def __deepcopy__(self, memo: object) -> Tags:
        return self


class Value:
    """One parameter as it was read: where its text stands and what ended it."""

    __slots__ = ("attributes", "cut", "end", "implicit", "key", "opener", "start")

    def __init__(self, key: str, attributes: dict[str, str], start: int, opener: bytes = b"") -> None:
        self.key = key
        self.opener = opener  # the literal of its tag, which says how its text is to be taken
        self.attributes = attributes
        self.start = start
        self.end = start
        self.implicit = False  # ended by something else than its own closer
        self.cut = False  # ended by what may never end a value that runs


class TagsReader:
    """Reads one call from behind the name of its tag. See ``reading.Reader`` for the common part."""

    __slots__ = (
        "_around", "_closer", "_counted", "_first", "_json", "_key_at", "_offer", "_phase", "_settings", "_strong",
        "_tags", "_value", "_wait", "_weak", "at", "attributes", "broken", "closed", "evidence", "name", "run", "tool",
        "values",
    )  # fmt: skip

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.at = self._first = start
        self.evidence = False
        self.broken = False
        self.closed = False  # by its own closer
        self.run: Run | None = None
        self.name: str | None = None
        self.tool: Tool | None = None
        self.attributes: dict[str, str] = {}
        self.values: list[Value] = []
        self._tags: Tags = settings["tags"]
        self._settings = settings
        self._around = around
        self._offer = offer
        self._phase = _HEAD
        self._json: JsonReader | None = None
        self._key_at = start
        self._value: Value | None = None
        self._counted = 0  # inner openers of the same tag still without their closer
        self._closer = -1  # the last closer in the value that could be the real one
        self._strong = -1  # the first end of the call inside the value that looks real, and one that may be
        self._weak = -1
        self._wait = -1  # where the wait for the value's own closer began
        if "name" in settings:
            self._named(settings["name"])
            self._phase = _ITEMS

    def shift(self, by: int) -> None:
        self.at -= by
        self._first -= by
        self._key_at -= by
        for value in self.values:
            value.start -= by
            value.end -= by
        if self._value is not None:
            self._value.start -= by
        self._closer -= by
        self._strong -= by
        self._weak -= by
        self._wait -= by
        if self._json is not None:
            self._json.shift(by)

    @property
    def keep(self) -> int:
        marks = [mark for mark in (self._closer, self._strong, self._weak) if mark >= 0]
        return min([self.at, *marks, *([self._json.keep] if self._json is not None else [])])

    @property
    def inner(self) -> JsonReader | None:
        """The reader of a JSON body."""
        return self._json if self._phase == _JSON else None

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the parameters stand: (start, end so far), or (-1, -1)."""
        return (self._first, self.at) if self.evidence and self._phase != _HEAD else (-1, -1)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        while True:
            if self._phase == _VALUE:
                verdict = self._in_value(buf, end, final)
            elif self._phase == _ITEMS:
                verdict = self._items(buf, end, final)
            elif self._phase == _KEY:
                verdict = self._key(buf, end)
            elif self._phase == _HEAD:
                verdict = self._head(buf, end)
            else:
                verdict = self._in_json(buf, end, final)
            if verdict >= 0:
                return verdict

    def _named(self, name: str | None) -> None:
        self.name = name
        if name:
            self.tool = self._offer.resolve(name).tool
            self.evidence = not self._settings.get("demanding") and (self.tool is not None or not self._offer.known)

    def _head(self, buf: bytearray, end: int) -> int:
        verdict, i, found = read_attributes(buf, self.at, end)
        if verdict != DONE:
            return verdict
        self.attributes = found
        name = found.get("name", found.get("tool"))
        self._named(name)
        if name is None and any(key != "/" for key in found):
            if not self._settings.get("special"):
                return DEAD
            self.evidence = True
        self.at = self._first = i
        if "/" in found:
            if name is None and not self._settings.get("special"):
                return DEAD
            self.evidence = True
            self.closed = True
            return DONE
        self._phase = _ITEMS
        return -1

    def _items(self, buf: bytearray, end: int, final: bool) -> int:
        tags, around = self._tags, self._around
        self.run = None
        while True:
            # Behind an object, surplus brackets are padding as well.
            run = (BLANK if self._json is None else _SURPLUS).match(buf, self.at, end)
            i = run.end() if run is not None else self.at
            if i - self.at > MAX_BLANKS:
                return self._over(self.at) if self.evidence else DEAD
            if i == end:
                return MORE
            if not self.values and self._json is None and buf[i] in b"{[":
                self._json = (
                    JsonReader(i, around) if self.name else json_call.CallReader(i, around, self._offer, self._settings)
                )
                self._phase = _JSON
                return -1
            size = tags.key_open.at(buf, i, end, final)
            if size > 0:
                self._key_at = i
                self.at = i + size
                self._phase = _KEY
                return -1
            closing = tags.call_close.at(buf, i, end, final)
            stray = tags.key_close.at(buf, i, end, final)
            other = around.outer.at(buf, i, end, final) or around.close.at(buf, i, end, final)
            if CUT in (size, closing, stray, other):
                return MORE
            if closing > 0 or stray > 0:
                tail = _TAG_END.match(buf, i + max(closing, stray), end)
                if tail is None:
                    if _TAG_END_CUT.match(buf, i + max(closing, stray), end) is not None and not final:
                        return MORE
                    return self._over(i) if self.evidence else DEAD
                if closing > 0:
                    if self.name is None and not self.values and self._json is None:
                        if not self._settings.get("special"):
                            return DEAD
                    self.evidence = True
                    self.closed = True
                    self.at = tail.end()
                    return DONE
                self.at = tail.end()
                continue
            return self._over(i) if self.evidence else DEAD

    def _over(self, i: int) -> int:
        """The call ends without its closer, before the blanks at ``i``."""
        self.broken = True
        return DONE

    def _in_json(self, buf: bytearray, end: int, final: bool) -> int:
        reader = self._json
        assert reader is not None
        verdict = reader.read(buf, end, final)
        self.at = reader.at
        self.run = reader.run
        self.evidence = self.evidence or reader.evidence
        if verdict == MORE:
            return MORE
        self.run = None
        if verdict == DEAD:
            return DEAD if not self.evidence else self._over(self.at)
        if reader.broken:
            self._phase = _ITEMS
            return -1
        self._phase = _ITEMS
        return -1

    def _key(self, buf: bytearray, end: int) -> int:
        verdict, i, found = read_attributes(buf, self.at, end)
        if verdict == MORE:
            return MORE
        if verdict == DEAD:
            self.at = self._key_at
            return self._over(self.at) if self.evidence else DEAD
        self.evidence = True
        key = found.get("name", found.get("key", ""))
        self._open_value(key, found, i, bytes(buf[self._key_at : self.at]).lower())
        if "/" in found:
            self._end_value(i, i)
        return -1

    def _open_value(self, key: str, attributes: dict[str, str], start: int, opener: bytes) -> None:
        self._value = Value(key, attributes, start, opener)
        self._counted = 0
        self._closer = self._strong = self._weak = self._wait = -1
        self.at = start
        self._phase = _VALUE
        self.run = plain_run((), self._tags.value_marks)

    def _end_value(self, text_end: int, resume: int, implicit: bool = False) -> int:
        value = self._value
        assert value is not None
        value.end = text_end
        value.implicit = implicit
        self.values.append(value)
        self._value = None
        self._closer = self._strong = self._weak = self._wait = -1
        self.at = resume
        self.run = None
        self._phase = _ITEMS
        return -1

    def _in_value(self, buf: bytearray, end: int, final: bool) -> int:
        tags, i = self._tags, self.at
        plain = plain_run((), tags.value_marks)
        while True:
            run = plain.match(buf, i, end)
            i = run.end() if run is not None else i
            if self._wait >= 0 and i - self._wait > CLOSER_WAIT:
                return self._settle(buf)
            if i >= end:
                self.at = i
                return self._cut(buf) if final else MORE
            size = tags.value_marks.at(buf, i, end, final)
            if size == CUT:
                self.at = i
                return MORE
            if size == 0:
                i += 1
                continue
            self.at = i
            if tags.key_close.at(buf, i, end, True) == size:
                verdict, i = self._closing(buf, i, size, end, final)
            elif tags.key_open.at(buf, i, end, True) == size:
                verdict, i = self._opening(buf, i, size, end, final)
            elif tags.special.at(buf, i, end, True) == size:
                verdict, i = self._special(i, size)
            else:
                verdict, i = self._ending(buf, i, size, end, final)
            if verdict is not None:
                return verdict
            self.run = None if self._wait >= 0 else plain

    def _closing(self, buf: bytearray, i: int, size: int, end: int, final: bool) -> tuple[int | None, int]:
        """A closer of this value's own kind."""
        tail = _TAG_END.match(buf, i + size, end)
        if tail is None:
            growing = _TAG_END_CUT.match(buf, i + size, end) is not None and not final
            return (MORE if growing else None), i + size
        j = tail.end()
        follows, k = self._follows(buf, j, end, final)
        if follows is None:
            return MORE, i
        if not follows:
            self._closer = i
            return None, j
        if self._counted:
            over = self._closes_all(buf, k, end, final)
            if over is None:
                return MORE, i
            if not over:
                self._counted -= 1
                self._closer = i
                return None, j
        return self._end_value(i, j), j

    def _follows(self, buf: bytearray, j: int, end: int, final: bool) -> tuple[bool | None, int]:
        """Is what follows a closer, after blanks, a tag of the call or the end of the text? None: not known yet."""
        run = BLANK.match(buf, j, min(end, j + MAX_BLANKS + 1))
        k = run.end() if run is not None else j
        if k == end:
            return (True if final else None), k
        size = self._tags.after.at(buf, k, end, final)
        if size == CUT:
            return None, k
        return size > 0, k

    def _closes_all(self, buf: bytearray, k: int, end: int, final: bool) -> bool | None:
        """At ``k``: the call's closer, and after it the closer of what holds the call, or a new opener, or the end.

        None: not known yet.
        """
        closing = self._tags.call_close.at(buf, k, end, final)
        wrapping = self._tags.wrapper_close.at(buf, k, end, final)
        if wrapping > 0:
            return True
        if closing == CUT or wrapping == CUT:
            return None
        if closing <= 0:
            return False
        tail = _TAG_END.match(buf, k + closing, end)
        if tail is None:
            return None if not final and _TAG_END_CUT.match(buf, k + closing, end) is not None else False
        return self._among(buf, tail.end(), end, final, self._tags.wrapper_close, self._tags.call_open)

    @staticmethod
    def _among(buf: bytearray, j: int, end: int, final: bool, *markers: Sentinels) -> bool | None:
        """Does one of these follow after blanks, or the end of the text? None: not known yet."""
        run = BLANK.match(buf, j, min(end, j + MAX_BLANKS + 1))
        k = run.end() if run is not None else j
        if k == end:
            return True if final else None
        sizes = [one.at(buf, k, end, final) for one in markers]
        if any(size > 0 for size in sizes):
            return True
        return None if CUT in sizes else False

    def _opening(self, buf: bytearray, i: int, size: int, end: int, final: bool) -> tuple[int | None, int]:
        """An opener of the same kind inside the value: a sibling whose closer is missing before it, or data."""
        value = self._value
        assert value is not None
        line = buf.rfind(b"\n", value.start, i) + 1 or value.start
        at_line = line > value.start and not buf[line:i].strip(b" \t")
        directly = not buf[value.start : i].strip()
        if not at_line and not directly:
            return None, i + size
        verdict, j, found = read_attributes(buf, i + size, end)
        if verdict == MORE and not final:
            return MORE, i
        if verdict != DONE:
            return None, i + size
        key = found.get("name", found.get("key", ""))
        unread = key not in {done.key for done in self.values} and key != value.key
        if at_line and unread and self.tool is not None and key in self.tool.properties:
            if self._closer >= 0:
                return self._end_value(self._closer, i, implicit=True), i
            return self._end_value(self._before_newline(buf, value.start, i), i, implicit=True), i
        self._counted += 1
        return None, j

    @staticmethod
    def _before_newline(buf: bytearray, low: int, i: int) -> int:
        """The newline before an implicit end is the format's own."""
        while i > low and buf[i - 1] in b" \t":
            i -= 1
        if i > low and buf[i - 1] == 0x0A:
            i -= 1
            if i > low and buf[i - 1] == 0x0D:
                i -= 1
        return i

    def _special(self, i: int, size: int) -> tuple[int | None, int]:
        """A special opener ends the value only if the value's own closer does not follow soon."""
        if self._weak < 0:
            self._weak = i
        if self._wait < 0:
            self._wait = i
        return None, i + size

    def _ending(self, buf: bytearray, i: int, size: int, end: int, final: bool) -> tuple[int | None, int]:
        """The closer of the call, or of what holds it, inside a value."""
        is_call = self._tags.call_close.at(buf, i, end, True) == size
        j = i + size
        if is_call:
            tail = _TAG_END.match(buf, j, end)
            if tail is None:
                growing = _TAG_END_CUT.match(buf, j, end) is not None and not final
                return (MORE if growing else None), (i if growing else j)
            j = tail.end()
        follows, k = self._follows(buf, j, end, final)
        if follows is None:
            return MORE, i
        if self._wait < 0:
            self._wait = i
        if follows and self._strong < 0:
            again = self._reopens(buf, k, end, final)
            if again is None:
                return MORE, i
            self._strong = i
            if again:
                return self._settle(buf), i
        elif self._weak < 0:
            self._weak = i
        return None, j

    def _reopens(self, buf: bytearray, k: int, end: int, final: bool) -> bool | None:
        """At ``k``: the closer of what holds the call and then another opener, so the call is over. None: not known."""
        size = self._tags.wrapper_close.at(buf, k, end, final)
        if size == CUT:
            return None
        if size <= 0:
            return False
        tail = _TAG_END.match(buf, k + size, end)
        if tail is None and not final and _TAG_END_CUT.match(buf, k + size, end) is not None:
            return None
        j = tail.end() if tail is not None else k + size
        run = BLANK.match(buf, j, min(end, j + MAX_BLANKS + 1))
        j = run.end() if run is not None else j
        if j == end:
            return False if final else None
        opens = self._tags.openers.at(buf, j, end, final)
        return None if opens == CUT else opens > 0

    def _settle(self, buf: bytearray) -> int:
        """The value's own closer did not come: take the best end that was seen."""
        value = self._value
        assert value is not None
        if self._counted and self._closer >= 0:
            tail = _TAG_END.match(buf, self._closer)
            closer = self._closer
            size = self._tags.key_close.at(buf, closer, len(buf), True)
            tail = _TAG_END.match(buf, closer + size)
            return self._end_value(closer, tail.end() if tail is not None else closer + size)
        i = self._strong if self._strong >= 0 else self._weak
        if self._strong < 0 and self._tags.special.at(buf, i, len(buf), True) > 0:
            value.cut = True
        return self._end_value(self._before_newline(buf, value.start, i), i, implicit=True)

    def _cut(self, buf: bytearray) -> int:
        """The bytes end inside the value."""
        if self._wait >= 0 or (self._counted and self._closer >= 0):
            return self._settle(buf)
        value = self._value
        assert value is not None
        value.cut = True
        self.broken = True
        return MORE


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read one call from behind its tag's name. ``settings["name"]`` is set where the opener carried the name."""
    settings = context.settings
    buf = bytearray(raw)
    reader = TagsReader(0, settings["around"], context.offer, settings)
    verdict = reader.read(buf, len(buf), True)
    open_value = reader._value is not None
    call = Written(reader.name, end=len(raw), model_id=reader.attributes.get("id"))
    call.complete = not open_value and not any(value.cut for value in reader.values)
    if reader._phase == _HEAD and verdict != DONE:
        call.complete = False
        return [call]
    if reader._json is not None and not reader.values:
        return _from_json(reader, raw, call, ending, context)
    if not reader.closed and ending == "cut":
        call.complete = False
    texts: dict[str, tuple[str, str]] = {}
    for value in reader.values:
        if not value.key:
            call.fault = "a parameter without a name"
        texts.pop(value.key, None)
        texts[value.key] = typed(value, raw, settings)
        if value.implicit:
            call.repairs.append(Repair("missing_close", f"arguments.{value.key}"))
    if not reader.name:
        call.fault = "no name"
    if not reader.closed and not reader.values and call.complete and ending != "closed":
        call.fault = call.fault or "nothing of a call follows the name"
    call.texts = texts
    _whole(call, reader.tool)
    return [call]


def _from_json(reader: TagsReader, raw: bytes, call: Written, ending: Ending, context: Context) -> list[Written]:
    """The body was a JSON object instead of parameters."""
    inner = reader._json
    assert inner is not None
    start = inner._first
    whole = inner.depth == 0 and not inner.in_string
    how: Ending = "whole" if whole and not inner.broken else ("closed" if reader.closed else "cut")
    text = raw[start : inner.at]
    if reader.name:
        calls = json_arguments.decode(text, how, Context(context.offer, {**context.settings, "name": reader.name}))
    else:
        calls = json_call.decode(text, how, context)
    for one in calls:
        one.model_id = one.model_id or call.model_id
    if calls:
        calls[0].start, calls[-1].end = 0, len(raw)
    return calls


def typed(value: Value, raw: bytes, settings: Settings) -> tuple[str, str]:
    """The text of a value and how the tag says it is to be read."""
    body = raw[value.start : value.end]
    style = settings.get("styles", {}).get(value.opener, {})
    cdata = _CDATA.match(body)
    if cdata is not None:
        body = cdata.group(1)
    elif style.get("newline"):
        body = body[2:] if body.startswith(b"\r\n") else body[1:] if body.startswith(b"\n") else body
        if not value.implicit:
            body = body[:-2] if body.endswith(b"\r\n") else body[:-1] if body.endswith(b"\n") else body
    text = body.decode("utf-8", "replace")
    if (settings.get("entities") or style.get("entities")) and cdata is None:
        text = html.unescape(text)
    flag = value.attributes.get("string", "").lower()
    kind = value.attributes.get("type", "").lower()
    if flag in ("true", "1", "yes") or kind in ("string", "raw", "str"):
        return text, "text"
    if flag in ("false", "0", "no") or kind in ("json", "number", "integer", "boolean", "object", "array", "null"):
        return text, "json"
    return text, ""


def _whole(call: Written, tool: Tool | None) -> None:
    """A single parameter named like an envelope key that holds an object is the arguments."""
    if call.texts is None or len(call.texts) != 1:
        return
    ((key, (text, _)),) = call.texts.items()
    if key not in ("arguments", "input") or (tool is not None and key in tool.properties):
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict):
        call.texts = None
        call.arguments = value
        call.repairs.append(Repair("unwrapped", "arguments", key, ""))


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """The call with the tags that the grammar writes."""
    form: dict[str, str] = settings["form"]
    parts = [form["call_open"].replace("{name}", name)]
    for key, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        flag = "true" if isinstance(value, str) else "false"
        parts.append(form["value"].replace("{key}", key).replace("{string}", flag).replace("{value}", text))
    parts.append(form["call_close"])
    return form.get("join", "").join(parts)


BODY: Final = Body("tags", TagsReader, decode, write)
