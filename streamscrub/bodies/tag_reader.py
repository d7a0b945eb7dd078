"""Finds the end of one call written as tags, however its tags are damaged, and where its parameters stand."""

from __future__ import annotations

import re
from typing import Final

from ..attributes import CHILD, CHILD_CUT, PLAIN_END, read_attributes
from ..events import Repair
from ..jsontext import JsonReader
from ..limits import CLOSER_WAIT, MAX_BLANKS, MAX_HEADER, MAX_NAME, MAX_REPAIR_TEXT
from ..names import Offer
from ..reading import (
    BLANK,
    DEAD,
    DONE,
    FENCE_CUT,
    FENCE_RUN,
    GAP,
    GAP_CUT,
    MORE,
    Around,
    Run,
    behind_tokens,
    padding_end,
    plain_run,
)
from ..sentinels import CUT, NONE, Sentinels
from ..tools import Tool
from . import json_arguments, json_call
from .base import Settings
from .tag_syntax import Tags, Value, attributes_of, bare_tag

# A tokenizer that loses blanks glues the attribute to the name of its tag.
_GLUED: Final = re.compile(rb"name[ \t]{0,8}+=")
_GLUED_CUT: Final = re.compile(rb"(?:n|na|nam|name[ \t]{0,8}+)\Z")
# An element that stands where a parameter should: <NAME>.
_WORD: Final = re.compile(rb"[\w.:-]")
_TAG: Final = re.compile(rb"</?+[A-Za-z_]")
_TAG_CUT: Final = re.compile(rb"</?+\Z")
_CDATA_OPEN: Final = re.compile(rb"[ \t\r\n]{0,%d}+<!\[CDATA\[" % MAX_BLANKS)
_CDATA_CUT: Final = re.compile(
    rb"[ \t\r\n]{0,%d}+(?:<(?:!(?:\[(?:C(?:D(?:A(?:T(?:A)?+)?+)?+)?+)?+)?+)?+)?+\Z" % MAX_BLANKS
)
_CDATA_CLOSE: Final = b"]]>"
_NOT_CDATA: Final = 1 << 62  # an index behind all others
_ESCAPED: Final = {"&quot;": '"', "&amp;": "&"}
_ESCAPE: Final = re.compile("|".join(_ESCAPED))
_HEAD, _ITEMS, _KEY, _VALUE, _JSON, _ELEMENT, _JUNK = range(7)


class TagsReader:
    """Reads one call from behind the name of its tag. See ``reading.Reader`` for the common part."""

    __slots__ = (
        "_around", "_behind", "_closer", "_counted", "_fenced", "_first", "_frayed", "_key_at", "_offer", "_own",
        "_phase", "_read", "_settings", "_shell", "_sought", "_strong", "_tags", "_value", "_wait", "_weak", "at",
        "attributes", "broken", "closed", "evidence", "fault", "json", "json_at", "mention", "name", "repairs", "run",
        "tool", "torn", "values", "wrapped",
    )  # fmt: skip

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.at = self._first = start
        self.evidence = False
        self.broken = False
        self.closed = False  # by its own closer
        self.wrapped = False  # by the closer of what holds it, which was read with it
        self.run: Run | None = None
        self.name: str | None = None
        self.tool: Tool | None = None
        self.attributes: dict[str, str] = {}
        self.values: list[Value] = []
        self._read: set[str] = set()  # their keys
        self.repairs: list[Repair] = []  # of the tags themselves
        self.torn = False  # the bytes end inside the opener of a parameter
        self.mention = False  # only words follow the tag
        self.fault = ""  # why this can be no call although it was read to its end
        self._tags: Tags = settings["tags"]
        self._own = self._tags  # those of the present parameter
        self._settings = settings
        self._around = around
        self._offer = offer
        self._phase = _HEAD
        self.json: JsonReader | None = None
        self.json_at = -1
        self._fenced = False  # a fence stands around the body
        self._key_at = start
        self._value: Value | None = None
        self._counted = 0  # inner openers of the same tag still without their closer
        self._closer = -1  # the last closer in the value that could be the real one, and what is behind it
        self._behind = -1
        self._strong = -1  # the first end of the call inside the value that looks real, and one that may be
        self._weak = -1
        self._wait = -1  # where the wait for the value's own closer began
        self._sought = -1  # up to here the end of the value's CDATA section was looked for
        self._shell = b""  # the closer of an element around all parameters
        self._frayed = -1  # the bytes end in what may still be padding, from here on
        if "name" in settings:
            self._named(settings["name"])
            self._phase = _ITEMS

    def shift(self, by: int) -> None:
        self.at -= by
        self._first -= by
        self._key_at -= by
        self.json_at -= by
        for value in self.values:
            value.start -= by
            value.end -= by
        if self._value is not None:
            self._value.start -= by
        self._frayed -= by
        self._closer -= by
        self._behind -= by
        self._strong -= by
        self._weak -= by
        self._wait -= by
        if self._in_cdata:
            self._sought = max(self._sought - by, 0)
        if self.json is not None:
            self.json.shift(by)

    @property
    def keep(self) -> int:
        marks = [mark for mark in (self._closer, self._strong, self._weak, self._wait) if mark >= 0]
        if self._value is not None and self._sought < _NOT_CDATA:
            marks.append(self._value.start if self._sought < 0 else self._sought)
        return min([self.at, *marks, *([self.json.keep] if self.json is not None else [])])

    @property
    def opened(self) -> int:
        """The index behind the opener, -1 inside it."""
        return -1 if self._phase == _HEAD else self._first

    @property
    def inner(self) -> JsonReader | None:
        """The reader of a JSON body."""
        return self.json if self._phase == _JSON else None

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the parameters stand: (start, end so far), or (-1, -1)."""
        return (self._first, self.keep) if self.evidence and self._phase != _HEAD else (-1, -1)

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        while True:
            if self._phase == _VALUE:
                verdict = self._in_value(buf, end, final)
            elif self._phase == _ITEMS:
                verdict = self._items(buf, end, final)
            elif self._phase == _KEY:
                verdict = self._key(buf, end, final)
            elif self._phase == _HEAD:
                verdict = self._head(buf, end)
            elif self._phase == _ELEMENT:
                verdict = self._in_element(buf, end, final)
            elif self._phase == _JUNK:
                verdict = self._in_junk(buf, end, final)
            else:
                verdict = self._in_json(buf, end, final)
            if verdict >= 0:
                return verdict

    def _named(self, name: str | None) -> None:
        self.name = name
        if name:
            self.tool = self._offer.resolve(name).tool
            # Prose may hold the tag of a soft syntax with any name, but never a token.
            proves = self.tool is not None or not self._offer.known or bool(self._settings.get("special"))
            self.evidence = proves and not self._settings.get("demanding")

    def _unescaped(self, text: str | None) -> str | None:
        """A name or key without the escapes of its attribute, where the format has them."""
        return _ESCAPE.sub(lambda one: _ESCAPED[one.group()], text) if text and self._settings.get("escaped") else text

    def _head(self, buf: bytearray, end: int) -> int:
        verdict, i, found = attributes_of(buf, self.at, end, self._tags.tag_end)
        if verdict == MORE:
            return MORE
        self.attributes = found
        name = self._unescaped(found.get("name", found.get("tool")))
        if verdict == DEAD:
            # The end of the tag may be missing where a tag of the call follows.
            run = BLANK.match(buf, i, end)
            k = run.end() if run is not None else i
            sizes = (self._tags.keys.at(buf, k, end), self._tags.call_close.at(buf, k, end))
            if not name or max(sizes) <= 0:
                return MORE if name and CUT in sizes else DEAD
            self.repairs.append(Repair("missing_tag", "name", "", ">"))
        self._named(name)
        special = self._settings.get("special")
        if name is None and special and any(key != "/" for key in found):
            self.evidence = True
        self.at = self._first = i
        if "/" in found:
            if name is None and not special:
                return DEAD
            self.evidence = True
            self.closed = True
            return DONE
        self._phase = _ITEMS
        return -1

    def _items(self, buf: bytearray, end: int, final: bool) -> int:
        tags, around = self._tags, self._around
        self.run = None
        self.torn = False
        self._frayed = -1
        while True:
            # Behind an object, surplus brackets and fence runs are padding as well.
            if self.json is None:
                run = GAP.match(buf, self.at, end)
                i = run.end() if run is not None else self.at
            else:
                i = padding_end(buf, self.at, end, around, final)
            if i - self.at > MAX_BLANKS:
                return self._over() if self.evidence else DEAD
            if i == end or (not final and GAP_CUT.match(buf, i, end) is not None):
                return MORE
            if self._bare and buf[i] in b'{["':
                body = json_arguments.ArgumentsReader if self.name else json_call.CallReader
                self.json = body(i, around, self._offer, self._settings)
                self.json_at = i
                self._phase = _JSON
                return -1
            fence = FENCE_RUN.match(buf, i, end) if not self.values else None
            if fence is not None:
                # A fence around the body, opened or closed.
                if fence.end() == end:
                    return MORE
                if self._bare and not self._fenced:
                    self._fenced = True
                    self.repairs.append(Repair("fence"))
                self.at = fence.end()
                continue
            if self._bare and FENCE_CUT.match(buf, i, end) is not None and not final:
                return MORE
            self._own = tags
            size = tags.keys.at(buf, i, end)
            if size == NONE and tags.strange is not None and (size := tags.strange.keys.at(buf, i, end)) > 0:
                self._own = tags.strange  # a parameter as another syntax writes it
            if size > 0 and (i + size == end or _GLUED_CUT.match(buf, i + size, end) is not None):
                self.torn = True
                return MORE
            if size > 0 and _WORD.match(buf, i + size, end) is not None and _GLUED.match(buf, i + size, end) is None:
                # The name of the tag goes on, so it is another one.
                return self._foreign(buf, i, end, final) if self.evidence else DEAD
            if size > 0:
                self._key_at = i
                self.at = i + size
                self._phase = _KEY
                return -1
            closing = tags.call_close.at(buf, i, end)
            stray = tags.key_close.at(buf, i, end) or (
                tags.strange.key_close.at(buf, i, end) if tags.strange is not None else 0
            )
            other = around.outer.at(buf, i, end, final) or around.close.at(buf, i, end, final)
            if CUT in (size, closing, stray, other):
                # A piece of a tag of this call belongs to it, also at the end of the bytes.
                self.torn = size == CUT and CUT not in (closing, stray)
                return MORE
            if closing > 0 or stray > 0:
                tail = self._tags.tag_end.closer.match(buf, i + max(closing, stray), end)
                if tail is None:
                    if self._tags.tag_end.closer_cut.match(buf, i + max(closing, stray), end) is not None:
                        return MORE
                    return self._over() if self.evidence else DEAD
                if closing > 0:
                    if self.name is None and self._bare and not self._settings.get("special"):
                        return DEAD
                    self.evidence = True
                    self.closed = True
                    self.at = tail.end()
                    self._endless(tail.group())
                    return DONE
                self.at = tail.end()
                continue
            if not self.evidence:
                return DEAD
            if (self.json is not None or self.values) and around.close.at(buf, i, end, True) <= 0:
                verdict, k = behind_tokens(buf, i, end, around, tags.call_close)
                if verdict == MORE:
                    self._frayed = i
                    return MORE
                if verdict == DONE:
                    self.at = k
                    continue
            if other > 0:
                return self._wrapped(buf, i, end)
            if self._shell and self._shell.startswith(buf[i : i + len(self._shell)]):
                if end - i < len(self._shell):
                    return MORE
                self.at = i + len(self._shell)
                self._shell = b""
                continue
            if self.json is not None or (self.values and self.values[-1].opener):
                return self._over()
            return self._foreign(buf, i, end, final)

    def _over(self) -> int:
        """The call ends without its closer, before the blanks that stand here."""
        self.broken = not self.values
        return DONE

    def _wrapped(self, buf: bytearray, i: int, end: int) -> int:
        """A marker that is none of this call's. The closer of what holds the call closes its last value as well.

        It then belongs to the call: without it the value would be open.
        """
        size = self._tags.wrapper_close.at(buf, i, end)
        if size > 0 and self.values and self.values[-1].implicit:
            tail = self._tags.tag_end.closer.match(buf, i + size, end)
            if tail is None and self._tags.tag_end.closer_cut.match(buf, i + size, end) is not None:
                return MORE
            if tail is not None and self._around.close.at(buf, i, end) == 0:
                self.wrapped = True
                self.at = tail.end()
        return self._over()

    def _foreign(self, buf: bytearray, i: int, end: int, final: bool) -> int:
        """An unknown byte where a parameter or the closer is due. An element may stand for a parameter."""
        if CHILD_CUT.match(buf, i, end) is not None or _TAG_CUT.match(buf, i, end) is not None:
            return MORE
        child = CHILD.match(buf, i, end)
        if child is not None:
            key = child.group(1).decode("utf-8", "replace")
            if key in json_call.ARGUMENT_KEYS and not self._shell:
                run = BLANK.match(buf, child.end(), min(end, child.end() + MAX_BLANKS))
                k = run.end() if run is not None else child.end()
                size = self._tags.keys.at(buf, k, end)
                if k == end or size == CUT:
                    return MORE
                if size > 0:
                    self.repairs.append(Repair("unwrapped", "arguments", key, ""))
                    self._shell = b"</%b>" % child.group(1)
                    self.at = k
                    return -1
            if key in json_call.ARGUMENT_KEYS or (self.tool is not None and self.tool.key(key) is not None):
                self.repairs.append(Repair("missing_tag", f"arguments.{key}", key, "parameter"))
                self._value = Value(key, {}, child.end())
                self._wait = -1
                self.at = child.end()
                self._phase = _ELEMENT
                return -1
        if _TAG.match(buf, i, end) is None:
            if self._bare:
                if b"\n" not in buf[self._first : i]:
                    return self._words(buf, i, end, final)
                found = self._behind_words(buf, i, end, final)
                if found != DEAD:
                    return found
            self.mention = not self.values and (self.tool is None or bool(self.tool.required))
            return DONE if self.mention else self._over()
        self._wait = i
        self._phase = _JUNK
        return -1

    def _words(self, buf: bytearray, i: int, end: int, final: bool) -> int:
        """Words stand directly behind the opener, so this is no call. They belong to it if its closer is on their line;
        else the opener was only mentioned."""
        newline = buf.find(b"\n", i, min(end, i + MAX_HEADER))
        limit = newline if newline >= 0 else min(end, i + MAX_HEADER)
        decided = final or limit < end
        at, size = self._tags.ends.find(buf, i, limit, decided)
        closing = self._tags.call_close.at(buf, at, limit, decided) if size > 0 else 0
        ends = self._tags.tag_end
        tail = ends.closer.match(buf, at + closing, end) if closing > 0 else None
        if tail is None and (size <= 0 or ends.closer_cut.match(buf, at + closing, end) is not None) and not decided:
            return MORE
        self.mention = tail is None
        self.closed = tail is not None
        self.at = tail.end() if tail is not None else self._first
        self.fault = "" if self.mention else "words stand in the call"
        self._phase = _ITEMS
        return DONE

    def _behind_words(self, buf: bytearray, i: int, end: int, final: bool) -> int:
        """Words stand right behind the name. A parameter soon after them shows that they are stray, the call's closer
        that they are in the place of parameters. DEAD: neither comes."""
        window = i + MAX_HEADER
        p, size = self._tags.reach.find(buf, i, min(end, window), final or end >= window)
        if size <= 0:
            return DEAD if final or end >= window else MORE
        if p == i:
            return DEAD  # the tag itself, whose name goes on
        if self._tags.keys.at(buf, p, end, True) > 0:
            stray = bytes(buf[i:p]).decode("utf-8", "replace").strip()
            self.repairs.append(Repair("stray_text", "arguments", stray[:MAX_REPAIR_TEXT], ""))
            self.at = p
            return -1
        if self._tags.call_close.at(buf, p, end, True) > 0:
            self._wait = i
            self._phase = _JUNK
            return -1
        return DEAD

    def _in_element(self, buf: bytearray, end: int, final: bool) -> int:
        """In an element that stands for a parameter: up to its closer, or to the end of the call if it has none."""
        value = self._value
        assert value is not None
        closer = b"</%b>" % value.key.encode()
        i = buf.find(closer, self.at, end)
        if self._wait < 0:
            stop, size = self._tags.ends.find(buf, self.at, end if i < 0 else i)
            if size > 0:
                self._wait = stop
        limit = self._wait + CLOSER_WAIT
        if i >= 0 and (self._wait < 0 or i <= limit):
            return self._end_value(i, i + len(closer))
        if self._wait >= 0 and (final or end - len(closer) > limit):
            self.repairs.append(Repair("missing_tag", f"arguments.{value.key}", "", "closer"))
            return self._end_value(self._wait, self._wait, implicit=True)
        self.at = max(self.at, end - MAX_NAME - 4)
        return MORE

    def _in_junk(self, buf: bytearray, end: int, final: bool) -> int:
        """Something that is no parameter stands in the call, which is therefore none: find its end."""
        tags = self._tags
        self.fault = "something else than parameters stands in the call"
        i, size = tags.ends.find(buf, self.at, end)
        if size > 0:
            closing = tags.call_close.at(buf, i, end)
            tail = self._tags.tag_end.closer.match(buf, i + closing, end) if closing > 0 else None
            if closing > 0 and tail is None and self._tags.tag_end.closer_cut.match(buf, i + closing, end) is not None:
                self.at = i
                return MORE
            if i <= self._wait + CLOSER_WAIT:
                self.at = tail.end() if tail is not None else i
                self.closed = tail is not None
                return DONE
        if end > self._wait + CLOSER_WAIT + MAX_NAME:
            # Its first tag stays with the call, so that reading the call again finds the same fault.
            tag = buf.find(b">", self._wait, self._wait + MAX_HEADER)
            self.at = tag + 1 if tag >= 0 else self._wait + len(b"</x")
            return DONE
        self.at = i
        return MORE

    def _in_json(self, buf: bytearray, end: int, final: bool) -> int:
        reader = self.json
        assert reader is not None
        verdict = reader.read(buf, end, final)
        self.at = reader.at
        self.run = reader.run
        self.evidence = self.evidence or reader.evidence
        if verdict == MORE:
            return MORE
        self.run = None
        if verdict == DEAD:
            if not self.evidence:
                return DEAD
            # It is no object of arguments.
            self.at = self._wait = self.json_at
            self.json = None
            self._phase = _JUNK
            return -1
        self._phase = _ITEMS
        return -1

    @property
    def _bare(self) -> bool:
        """Was nothing of a body read yet?"""
        return not self.values and self.json is None

    def _key(self, buf: bytearray, end: int, final: bool) -> int:
        verdict, i, found = attributes_of(buf, self.at, end, self._tags.tag_end)
        if verdict == MORE:
            return MORE
        if verdict == DEAD and not (self.evidence or self.values):
            return DEAD
        if not self.values and not self._settings.get("special") and bare_tag(buf, self.at, i):
            # One without a name proves nothing: prose mentions both tags.
            if not self.evidence:
                return DEAD
            if b"\n" not in buf[self._first : self._key_at]:
                return self._words(buf, self._key_at, end, final)
        self.evidence = True
        # A tag that cannot be read opens a parameter all the same, one without a name.
        key = self._unescaped(found.get("name", found.get("key"))) if verdict == DONE else ""
        opener = bytes(buf[self._key_at : self.at]).lower()
        self._open_value(key or "", found, i, opener.replace(b"< ", b"<"))
        if "/" in found:
            self._end_value(i, i)
        return -1

    def _open_value(self, key: str, attributes: dict[str, str], start: int, opener: bytes) -> None:
        self._value = Value(key, attributes, start, opener)
        self._counted = 0
        self._closer = self._behind = self._strong = self._weak = self._wait = self._sought = -1
        self.at = start
        self._phase = _VALUE
        self.run = plain_run((), self._own.value_marks)

    @property
    def _in_cdata(self) -> bool:
        """Was the value last seen inside its CDATA section?"""
        return 0 <= self._sought < _NOT_CDATA

    def _seek_cdata(self, buf: bytearray, end: int) -> None:
        """Does the value begin with a CDATA section? Asked until it is known."""
        value = self._value
        assert value is not None
        opener = _CDATA_OPEN.match(buf, value.start, end)
        if opener is not None:
            self._sought = opener.end()
        elif _CDATA_CUT.match(buf, value.start, end) is None:
            self._sought = _NOT_CDATA

    def _opaque(self, buf: bytearray, i: int) -> bool:
        """Does ``i`` stand in a CDATA section that the value began with?"""
        value = self._value
        assert value is not None
        if self._sought < 0:
            return False
        if self._sought >= i:
            return self._sought == i
        if buf.find(_CDATA_CLOSE, self._sought, i) < 0:
            self._sought = i - len(_CDATA_CLOSE) + 1
            return True
        # Its end was found: what was seen inside it ended nothing.
        self._sought = _NOT_CDATA
        self._strong = self._weak = self._wait = self._closer = self._behind = -1
        return False

    def _end_value(self, text_end: int, resume: int, implicit: bool = False) -> int:
        value = self._value
        assert value is not None
        value.end = text_end
        value.implicit = implicit
        self.values.append(value)
        self._read.add(value.key)
        self._value = None
        self._closer = self._behind = self._strong = self._weak = self._wait = -1
        self.at = resume
        self.run = None
        self._phase = _ITEMS
        return -1

    def _end_early(self, buf: bytearray, resume: int) -> int:
        """The last closer of the value was the real one; what follows it, up to ``resume``, is nothing of the call."""
        value = self._value
        assert value is not None
        stray = bytes(buf[self._behind : resume]).decode("utf-8", "replace").strip()
        if stray:
            self.repairs.append(Repair("stray_text", f"arguments.{value.key}", stray[:MAX_REPAIR_TEXT], ""))
        return self._end_value(self._closer, resume)

    def _in_value(self, buf: bytearray, end: int, final: bool) -> int:
        tags, i = self._own, self.at
        if self._sought < 0:
            self._seek_cdata(buf, end)
        plain = plain_run((), tags.value_marks)
        while True:
            run = plain.match(buf, i, end)
            i = run.end() if run is not None else i
            if self._wait >= 0 and i - self._wait > CLOSER_WAIT:
                return self._settle(buf)
            size = tags.value_marks.at(buf, i, end, final) if i < end else CUT
            if size == CUT:
                self.at = i
                if self._in_cdata:
                    self._opaque(buf, i)  # so that nothing before has to be kept
                return self._cut(buf) if final else MORE
            if size == 0:
                i += 1
                continue
            self.at = i
            if self._opaque(buf, i):
                verdict, i = self._within(buf, i, size, end, final)
            elif tags.key_close.at(buf, i, end, True) == size:
                verdict, i = self._closing(buf, i, size, end, final)
            elif tags.keys.at(buf, i, end, True) == size:
                verdict, i = self._opening(buf, i, size, end, final)
            elif self._is_special(buf, i, size):
                verdict, i = self._special(i, size)
            else:
                verdict, i = self._ending(buf, i, size, end, final)
            if verdict is not None:
                return verdict
            self.run = None if self._wait >= 0 else plain

    def _closing(self, buf: bytearray, i: int, size: int, end: int, final: bool) -> tuple[int | None, int]:
        """A closer of this value's own kind."""
        tail = self._tags.tag_end.closer.match(buf, i + size, end)
        if tail is None:
            growing = self._tags.tag_end.closer_cut.match(buf, i + size, end) is not None and not final
            return (MORE if growing else None), i + size
        j = tail.end()
        follows, k = self._follows(buf, j, end, final)
        if follows is None:
            return MORE, i
        if not follows:
            doubled = self._doubled(buf, i, k, end, final) if not self._counted else DEAD
            if doubled != DEAD:
                return doubled, (i if doubled == MORE else self.at)
            self._seen_closer(i, j)
            return None, j
        if self._counted:
            over = self._closes_all(buf, k, end, final)
            if over is None:
                return MORE, i
            if not over:
                self._seen_closer(i, j)
                return None, j
        self._endless(tail.group())
        return self._end_value(i, j), j

    def _endless(self, tail: bytes) -> None:
        """A tag that ended only because another one began."""
        if not tail.strip():
            self.repairs.append(Repair("missing_tag", "arguments", "", "end of a tag"))

    def _doubled(self, buf: bytearray, i: int, k: int, end: int, final: bool) -> int:
        """Does the same closer stand at ``k`` again, and then what ends a value? Both are one."""
        size = self._own.key_close.at(buf, k, end, final)
        if size <= 0:
            return MORE if size == CUT else DEAD
        tail = self._tags.tag_end.closer.match(buf, k + size, end)
        if tail is None:
            return MORE if not final and self._tags.tag_end.closer_cut.match(buf, k + size, end) is not None else DEAD
        follows, _ = self._follows(buf, tail.end(), end, final)
        if follows is None:
            return MORE
        if not follows:
            return DEAD
        self._closer, self._behind = i, k
        return self._end_early(buf, tail.end())

    def _within(self, buf: bytearray, i: int, size: int, end: int, final: bool) -> tuple[int | None, int]:
        """A tag inside a CDATA section. A closer is the real one only if the end of the section does not come."""
        if self._own.key_close.at(buf, i, end, True) == size:
            tail = self._tags.tag_end.closer.match(buf, i + size, end)
            if tail is None and not final and self._tags.tag_end.closer_cut.match(buf, i + size, end) is not None:
                return MORE, i
            follows = self._follows(buf, tail.end(), end, final)[0] if tail is not None else False
            if follows is None:
                return MORE, i
            if follows and tail is not None:
                self._wait = i
                if self._behind < 0:
                    self._closer, self._behind = i, tail.end()
        return None, i + size

    def _seen_closer(self, i: int, j: int) -> None:
        """A closer of the value's kind that did not end it: it may be that of an opener inside."""
        self._closer, self._behind = i, j
        self._counted = max(0, self._counted - 1)

    def _follows(self, buf: bytearray, j: int, end: int, final: bool) -> tuple[bool | None, int]:
        """Is what follows a closer, after blanks, a tag of the call or the end of the text? None: not known yet."""
        run = GAP.match(buf, j, min(end, j + MAX_BLANKS + 1))
        k = run.end() if run is not None else j
        if k == end or (not final and GAP_CUT.match(buf, k, end) is not None):
            return (True if final else None), k
        size = self._own.after.at(buf, k, end)
        if size == CUT:
            # At the end of the stream a piece of a tag counts, but not the first letters of a word.
            return (not buf[k : k + 1].isalnum() if final else None), k
        if size <= 0 and self._shell and self._shell.startswith(buf[k : k + len(self._shell)]):
            return (True if final or end - k >= len(self._shell) else None), k
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
        tail = self._tags.tag_end.closer.match(buf, k + closing, end)
        if tail is None:
            return (
                None if not final and self._tags.tag_end.closer_cut.match(buf, k + closing, end) is not None else False
            )
        return self._among(buf, tail.end(), end, final, self._tags.wrapper_close, self._tags.call_open)

    @staticmethod
    def _among(buf: bytearray, j: int, end: int, final: bool, *markers: Sentinels) -> bool | None:
        """Does one of these follow after blanks, or the end of the text? None: not known yet."""
        run = GAP.match(buf, j, min(end, j + MAX_BLANKS + 1))
        k = run.end() if run is not None else j
        if k == end or (not final and GAP_CUT.match(buf, k, end) is not None):
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
        free = self._tags.tag_end is not PLAIN_END  # where tags are tokens they may stand anywhere
        if not at_line and not directly and not free:
            return None, i + size
        verdict, j, found = read_attributes(buf, i + size, end, self._tags.tag_end)
        if verdict == MORE and not final:
            return MORE, i
        if verdict != DONE:
            return None, i + size
        key = self._unescaped(found.get("name", found.get("key"))) or ""
        unread = key not in self._read and key != value.key
        if (at_line or free) and unread and self.tool is not None and key in self.tool.properties:
            if self._closer >= 0:
                return self._end_early(buf, i), i
            return self._end_value(self._before_newline(buf, value.start, i), i, implicit=True), i
        if at_line or directly:
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

    def _is_special(self, buf: bytearray, i: int, size: int) -> bool:
        """Does a special marker of this size stand at ``i`` that is none of this syntax?"""
        tags, end = self._tags, len(buf)
        return tags.special.at(buf, i, end, True) == size > 0 and tags.wrapper_close.at(buf, i, end, True) != size

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
        tail = self._tags.tag_end.closer.match(buf, j, end)
        if tail is None:
            if self._tags.tag_end.closer_cut.match(buf, j, end) is not None and not final:
                return MORE, i
            if is_call:
                return None, j
        else:
            j = tail.end()
        follows, k = self._follows(buf, j, end, final)
        if follows is None:
            return MORE, i
        if self._wait < 0:
            self._wait = i
        if follows and self._strong < 0:
            again = self._reopens(buf, k, end, final) if is_call else self._goes_on(buf, i, k, end, final)
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
        tail = self._tags.tag_end.closer.match(buf, k + size, end)
        if tail is None and not final and self._tags.tag_end.closer_cut.match(buf, k + size, end) is not None:
            return None
        j = tail.end() if tail is not None else k + size
        run = BLANK.match(buf, j, min(end, j + MAX_BLANKS + 1))
        j = run.end() if run is not None else j
        if j == end:
            return False if final else None
        opens = self._tags.openers.at(buf, j, end, final)
        return None if opens == CUT else opens > 0

    def _goes_on(self, buf: bytearray, i: int, k: int, end: int, final: bool) -> bool | None:
        """At ``k``, behind the closer at ``i`` of what holds the call, another opener, while the value holds none.

        Then both closers of the call are missing, and the next call must not be read as the rest of the value. None:
        not known.
        """
        value = self._value
        assert value is not None
        opens = self._tags.openers.at(buf, k, end, final)
        if opens == CUT:
            return None
        return opens > 0 and self._tags.openers.find(buf, value.start, i)[1] <= 0

    def _settle(self, buf: bytearray) -> int:
        """The value's own closer did not come: take the best end that was seen."""
        value = self._value
        assert value is not None
        if self._in_cdata:
            return self._end_value(self._closer, self._behind, implicit=True)
        if self._closer >= 0:
            ends = [mark for mark in (self._strong, self._weak) if mark >= self._behind]
            stop = min(ends, default=self._behind)
            opener, size = self._tags.openers.find(buf, self._behind, stop, True)
            return self._end_early(buf, opener if size > 0 else stop)
        i = self._strong if self._strong >= 0 else self._weak
        if self._strong < 0 and self._is_special(buf, i, self._tags.special.at(buf, i, len(buf), True)):
            value.cut = True
        return self._end_value(self._before_newline(buf, value.start, i), i, implicit=True)

    @property
    def over(self) -> int:
        """Where the call ended if the stream ended in an ordinary way: behind the last closer of an open value.

        -1 if it is open in any case, or if all of it belongs to the call.
        """
        return self._behind if self._phase == _VALUE else self._frayed if self._phase == _ITEMS else -1

    @property
    def in_head(self) -> bool:
        """True if the bytes end inside the call's own tag."""
        return self._phase == _HEAD

    @property
    def between(self) -> bool:
        """True if the bytes end between two parameters, or in a body that is none."""
        return self._phase in (_ITEMS, _JSON, _JUNK)

    @property
    def tags(self) -> Tags:
        """Those of the call's own syntax."""
        return self._tags

    @property
    def open_value(self) -> Value | None:
        """The parameter in which the bytes end."""
        return self._value

    def accept_over(self) -> None:
        """Nothing cut the stream, so the last closer of the open value was the real one: see ``over``."""
        assert self._value is not None
        self._value.cut = False
        self._end_value(self._closer, self.over, implicit=self._in_cdata)

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return self.over >= 0 or (self._phase == _ITEMS and not self.torn)

    def _cut(self, buf: bytearray) -> int:
        """The bytes end inside the value."""
        if (self._wait >= 0 and not self._in_cdata) or (self._counted and self._closer >= 0):
            return self._settle(buf)
        value = self._value
        assert value is not None
        value.cut = True
        self.broken = True
        return MORE
