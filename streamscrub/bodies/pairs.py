"""Calls written as a name and pairs of tags, one around each key and one around each value, as GLM models do."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from ..events import Repair
from ..limits import CLOSER_WAIT, MAX_BLANKS, MAX_NAME, MAX_REPAIR_TEXT
from ..names import Offer
from ..reading import DEAD, DONE, MORE, Around, Run, plain_run
from ..sentinels import CUT, Sentinels, sentinels
from ..shapes import list_text
from ..tools import Tool
from .base import Body, Context, Ending, Settings, Written
from .carrying import carried, filled
from .tag_syntax import Value
from .tags import typed

_WORD: Final = re.compile(rb"[^\s<>{}\[\]()\"'`|/\\]{0,%d}+" % MAX_NAME)
# Blanks between tags. Some models write a newline as the two characters of its escape.
_GAP: Final = re.compile(rb"(?:[ \t\r\n]|\\n)*+")
_GAP_CUT: Final = re.compile(rb"\\\Z")
_NAME, _KEY, _AFTER_KEY, _VALUE, _ITEMS = range(5)


class Pairs:
    """The literals of one key/value syntax, compiled from a grammar file."""

    __slots__ = (
        "after", "key_close", "key_end", "key_open", "marks", "separator", "special", "type_close", "type_open",
        "value_close", "value_open",
    )  # fmt: skip

    def __init__(self, literals: dict[str, tuple[bytes, ...]], close: Sentinels, special: Sentinels) -> None:
        self.key_open: Final = sentinels(literals["key_open"])
        self.key_close: Final = sentinels(literals["key_close"])
        self.value_open: Final = sentinels(literals.get("value_open", ()))
        self.value_close: Final = sentinels(literals["value_close"])
        self.separator: Final = sentinels(literals.get("separator", ()))
        self.type_open: Final = sentinels(literals.get("type_open", ()))
        self.type_close: Final = sentinels(literals.get("type_close", ()))
        self.special: Final = special
        self.after: Final = sentinels((*literals["key_open"], *special.exact), (*close.exact, *close.loose))
        self.key_end: Final = sentinels(
            (
                *literals["key_close"],
                *literals.get("value_open", ()),
                *literals["value_close"],
                *literals.get("type_open", ()),
            )
        )
        self.marks: Final = sentinels(
            (
                *literals["key_open"],
                # Where a value needs no opener the key's closer may be a single bracket, which is data in it.
                *(literals["key_close"] if "value_open" in literals else ()),
                *literals["value_close"],
                *special.exact,
            ),
            (*close.exact, *close.loose),
        )

    def __deepcopy__(self, memo: object) -> Pairs:
        return self


@lru_cache(maxsize=64)
def _openers(outer: Sentinels) -> Sentinels:
    """The markers that are no closers: after a value's closer they show that the call is over."""
    exact = tuple(literal for literal in outer.exact if not literal.startswith(b"</"))
    loose = tuple(literal for literal in outer.loose if not literal.startswith(b"</"))
    return sentinels(exact, loose)


def _gap(buf: bytearray, i: int, end: int, final: bool) -> tuple[int, bool]:
    """The end of the blanks at ``i``, and whether it may still move: the bytes end there, or in half an escape."""
    run = _GAP.match(buf, i, end)
    k = run.end() if run is not None else i
    return k, k == end or (not final and _GAP_CUT.match(buf, k, end) is not None)


class PairsReader:
    """Reads a name and its pairs. See ``reading.Reader`` for the common part."""

    __slots__ = (
        "_around", "_bare", "_behind", "_closer", "_first", "_key", "_offer", "_openers", "_pairs", "_phase", "_read",
        "_strong", "_type", "_value", "_wait", "at", "broken", "damage", "escaped", "evidence", "fault", "name",
        "repairs", "run", "tool", "torn", "values",
    )  # fmt: skip

    def __init__(self, start: int, around: Around, offer: Offer, settings: Settings) -> None:
        self.at = self._first = start
        self.evidence = False
        self.broken = False
        self.run: Run | None = None
        self.name: str | None = None
        self.values: list[Value] = []
        self._read: set[str] = set()  # their keys, as the tool declares them
        self.damage: list[str] = []  # what was missing
        self._pairs: Pairs = settings["pairs"]
        self._around = around
        self._offer = offer
        self._phase = _NAME
        self._key = ""
        self._type = ""
        self._value: Value | None = None
        self.tool: Tool | None = None
        self.repairs: list[Repair] = []  # of the values
        self.fault = ""  # why this can be no call although it was read to its end
        self.escaped = False  # an escaped newline stood between two tags
        self.torn = False  # the bytes end inside the opener of a key
        self._openers = _openers(around.outer)
        self._bare = False  # the value has no opener of its own
        self._strong = -1
        self._wait = -1
        self._closer = -1  # the last closer in the value that was taken for data, and what is behind it
        self._behind = -1
        if "name" in settings:
            self._headed(settings["name"])

    def shift(self, by: int) -> None:
        self.at -= by
        self._first -= by
        for value in [*self.values, *([self._value] if self._value is not None else [])]:
            value.start -= by
            value.end -= by
        self._strong -= by
        self._wait -= by
        self._closer -= by
        self._behind -= by

    @property
    def keep(self) -> int:
        return min([self.at, *[mark for mark in (self._strong, self._wait, self._closer) if mark >= 0]])

    @property
    def arguments(self) -> tuple[int, int]:
        """Where the pairs stand: (start, end so far), or (-1, -1)."""
        return (self._first, self.keep) if self.evidence else (-1, -1)

    @property
    def settled(self) -> bool:
        """True if the bytes so far would be whole if nothing followed."""
        return (self._phase == _ITEMS and not self.torn) or self.over >= 0

    @property
    def open(self) -> bool:
        """True if the bytes end inside a key or value."""
        return self.torn or self._phase in (_KEY, _AFTER_KEY, _VALUE)

    @property
    def over(self) -> int:
        """Where the call ended if the stream ended in an ordinary way: behind the last closer of an open value.

        -1 if it is open in any case, or if all of it belongs to the call.
        """
        return self._behind if self._phase == _VALUE else -1

    def read(self, buf: bytearray, end: int, final: bool) -> int:
        while True:
            if self._phase == _VALUE:
                verdict = self._in_value(buf, end, final)
            elif self._phase == _ITEMS:
                verdict = self._items(buf, end, final)
            elif self._phase == _KEY:
                verdict = self._in_key(buf, end)
            elif self._phase == _AFTER_KEY:
                verdict = self._after_key(buf, end, final)
            else:
                verdict = self._in_name(buf, end, final)
            if verdict >= 0:
                return verdict

    def _in_name(self, buf: bytearray, end: int, final: bool) -> int:
        pairs = self._pairs
        word = _WORD.match(buf, self.at, end)
        i = word.end() if word is not None else self.at
        if i == end:
            return MORE
        if i == self.at:
            return self._nameless(buf, i, end)
        name = bytes(buf[self.at : i]).decode("utf-8", "replace")
        j, moving = self._skip(buf, i, end, final)
        if moving:
            return MORE if j - i <= MAX_BLANKS else DEAD
        if CUT in (
            self._around.close.at(buf, j, end, final),
            pairs.key_open.at(buf, j, end),
            pairs.key_close.at(buf, j, end),
            pairs.separator.at(buf, j, end),
            pairs.value_close.at(buf, j, end),
        ):
            return MORE
        offered = self._offer.resolve(name).tool is not None or not self._offer.known
        if self._around.close.at(buf, j, end, final) > 0:
            if not offered:
                return DEAD
            self._named(name)
            self.at = j
            return DONE
        for markers in (pairs.key_open, pairs.separator, pairs.value_close):
            size = markers.at(buf, j, end, final)
            if size > 0:
                if markers is pairs.value_close and not offered:
                    return DEAD
                self._named(name)
                self.at = j if markers is pairs.key_open else j + size
                self._phase = _ITEMS
                return -1
        glued = pairs.key_close.at(buf, j, end, final)
        if glued > 0 and j == i:
            split = self._unglue(name)
            if split is not None:
                return self._damaged_key(*split, j + glued)
            if not offered:
                return DEAD
            self._named(name)
            self.damage.append("key_open")
            self.at = j + glued
            self._phase = _ITEMS
            return -1
        if j > i:
            # NAME key CLOSER: the opener of the first key is missing.
            key = _WORD.match(buf, j, end)
            k = key.end() if key is not None else j
            if k == end:
                return MORE
            size = pairs.key_close.at(buf, k, end)
            if size == CUT:
                return MORE
            if k > j and size > 0:
                return self._damaged_key(name, bytes(buf[j:k]).decode("utf-8", "replace"), k + size)
        return DEAD

    def _skip(self, buf: bytearray, i: int, end: int, final: bool) -> tuple[int, bool]:
        """``_gap`` between two tags of this call."""
        k, moving = _gap(buf, i, end, final)
        self.escaped = self.escaped or b"\\" in buf[i:k]
        return k, moving

    def _nameless(self, buf: bytearray, i: int, end: int) -> int:
        """A key where the name should stand is a call too, one that cannot run."""
        size = self._pairs.key_open.at(buf, i, end)
        if size <= 0:
            return MORE if size == CUT else DEAD
        self.evidence = True
        self._phase = _ITEMS
        return -1

    def _named(self, name: str) -> None:
        self.name = name
        self.tool = self._offer.resolve(name).tool
        self.evidence = True

    def _headed(self, name: str | None) -> None:
        """A header has told the name."""
        self.name = name
        self.tool = self._offer.resolve(name).tool if name else None
        self._phase = _ITEMS

    def _unglue(self, word: str) -> tuple[str, str] | None:
        """``shell_execcmd``: an offered name and one of its keys without anything between them."""
        found = [
            (tool.name, word[len(tool.name) :])
            for tool in self._offer.tools or ()
            if word.startswith(tool.name) and word[len(tool.name) :] in tool.properties
        ]
        return found[0] if len(found) == 1 else None

    def _damaged_key(self, name: str, key: str, resume: int) -> int:
        self._named(name)
        self._key = key
        self.damage.append("key_open")
        self.at = resume
        self._phase = _AFTER_KEY
        return -1

    def _items(self, buf: bytearray, end: int, final: bool) -> int:
        """Between two pairs."""
        pairs = self._pairs
        self.torn = False
        i, moving = self._skip(buf, self.at, end, final)
        if i - self.at > MAX_BLANKS:
            return self._over()
        if moving:
            return MORE
        for markers in (pairs.key_open, self._around.close, pairs.value_close, pairs.key_close, pairs.separator):
            size = markers.at(buf, i, end)
            if size == CUT:
                self.torn = final and not self._may_close(buf, i, end)
                return MORE
            if size <= 0:
                continue
            if markers is self._around.close:
                self.at = i
                return DONE
            self.at = i + size
            if markers is pairs.key_open:
                self._phase = _KEY
            return -1  # a stray closer of a pair is markup and changes nothing
        if not self.values:
            # Behind a separator the first key may lack its opener.
            word = _WORD.match(buf, i, end)
            k = word.end() if word is not None else i
            size = pairs.key_close.at(buf, k, end)
            if k > i and (k == end or size == CUT):
                self.torn = final
                return MORE
            if k > i and size > 0 and self.name is not None:
                return self._damaged_key(self.name, bytes(buf[i:k]).decode("utf-8", "replace"), k + size)
        return self._over()

    def _may_close(self, buf: bytearray, i: int, end: int) -> bool:
        """May the piece of a marker at ``i`` become a closer?"""
        pairs = self._pairs
        return CUT in [one.at(buf, i, end) for one in (self._around.close, pairs.value_close, pairs.key_close)]

    def _over(self) -> int:
        """The call ends without its closer. After whole pairs it is complete all the same."""
        self.broken = self._phase != _ITEMS or not self.values
        return DONE

    def _in_key(self, buf: bytearray, end: int) -> int:
        pairs = self._pairs
        again = pairs.key_open.at(buf, self.at, end)
        if again == CUT:
            return MORE
        if again > 0:
            self.at += again  # a doubled opener is one
            return -1
        window = self.at + MAX_NAME + 32
        i, size = pairs.key_end.find(buf, self.at, min(end, window))
        close, closing = self._around.close.find(buf, self.at, i)
        if closing > 0:
            self.at = close
            self.fault = "a key without its end"
            self._phase = _ITEMS
            return DONE
        if size <= 0:
            return MORE if end < window else self._over()
        self._key = bytes(buf[self.at : i]).decode("utf-8", "replace").strip()
        closes = pairs.key_close.at(buf, i, end) == size
        if not closes:
            self.damage.append("key_close")
        # The closer of a value does for that of a key; the opener of a value shows that it is missing.
        self.at = i + size if closes or pairs.value_close.at(buf, i, end) == size else i
        self._phase = _AFTER_KEY
        return -1

    def _after_key(self, buf: bytearray, end: int, final: bool) -> int:
        pairs = self._pairs
        if not pairs.value_open.literals:
            self._open_value(self.at)
            return -1
        limit = min(end, self.at + MAX_BLANKS + 1)
        i, moving = self._skip(buf, self.at, limit, final)
        wide = i - self.at > MAX_BLANKS
        if moving and not wide and limit == end:
            return MORE
        for markers in () if wide else (pairs.value_open, pairs.type_open, pairs.key_open):
            size = markers.at(buf, i, end)
            if size == CUT:
                return MORE
            if size <= 0:
                continue
            if markers is pairs.value_open:
                self._open_value(i + size)
            elif markers is pairs.type_open:
                window = i + size + MAX_NAME
                j, closing = pairs.type_close.find(buf, i + size, min(end, window))
                if closing <= 0:
                    return MORE if end < window else self._over()
                self._type = bytes(buf[i + size : j]).decode("utf-8", "replace").strip()
                self.at = j + closing
            else:
                self.damage.append("value")  # a key without a value must not take the next one
                self.at = i + size
                self._phase = _KEY
            return -1
        self.damage.append("value_open")
        self._open_value(i if b"\n" in buf[self.at : i] or b"\\" in buf[self.at : i] else self.at)
        self._bare = True
        return -1

    def _open_value(self, start: int) -> None:
        self._value = Value(self._key, {"type": self._type} if self._type else {}, start)
        self._type = ""
        self._strong = self._wait = self._closer = self._behind = -1
        self._bare = False
        self.at = start
        self._phase = _VALUE
        self.run = plain_run((), self._pairs.marks)

    def _end_value(self, text_end: int, resume: int, implicit: bool = False) -> int:
        value = self._value
        assert value is not None
        value.end = text_end
        value.implicit = implicit
        self.values.append(value)
        if self.tool is not None:
            self._read.add(self.tool.key(value.key) or value.key)
        self._value = None
        self._strong = self._wait = self._closer = self._behind = -1
        self.at = resume
        self.run = None
        self._phase = _ITEMS
        return -1

    def _in_value(self, buf: bytearray, end: int, final: bool) -> int:
        pairs, i = self._pairs, self.at
        plain = plain_run((), pairs.marks)
        while True:
            run = plain.match(buf, i, end)
            i = run.end() if run is not None else i
            if self._wait >= 0 and i - self._wait > CLOSER_WAIT:
                return self._settle(buf)
            if i >= end:
                self.at = i
                if not final:
                    return MORE
                return self._settle(buf) if self._wait >= 0 else self._cut()
            size = pairs.marks.at(buf, i, end, final)
            if size == CUT:
                self.at = i
                return MORE
            if size == 0:
                i += 1
                continue
            self.at = i
            if pairs.value_close.at(buf, i, end, True) == size:
                follows = self._follows(buf, i + size, end, final, pairs.after, self._openers)
                if follows is None:
                    return MORE
                if follows:
                    return self._end_value(i, i + size)
                self._closer, self._behind = i, i + size
            elif pairs.key_close.at(buf, i, end, True) == size:
                # The wrong closer, where only the value's own could stand.
                follows = self._follows(buf, i + size, end, final, pairs.after)
                stray = self._follows(buf, i + size, end, final, pairs.value_close)
                if follows is None or stray is None:
                    return MORE
                if follows or stray:
                    return self._end_value(i, i + size, implicit=True)
            elif pairs.key_open.at(buf, i, end, True) == size:
                pair = self._is_pair(buf, i + size, end, final)
                if pair is None:
                    return MORE
                if pair:
                    value = self._value
                    assert value is not None
                    if self._closer >= 0:
                        return self._end_early(buf, i)
                    stop = i
                    while stop > value.start and buf[stop - 1] in b" \t\r\n":
                        stop -= 1
                    return self._end_value(stop, i, implicit=True)
            else:
                if self._wait < 0:
                    self._wait = i
                closes = self._around.close.at(buf, i, end, True) == size
                if closes and self._strong < 0:
                    self._strong = i
                self.run = None
            i += size

    @staticmethod
    def _follows(buf: bytearray, j: int, end: int, final: bool, *markers: Sentinels) -> bool | None:
        """Does one of these follow at ``j``, after blanks, or the end of the text? None: not known yet."""
        k, moving = _gap(buf, j, min(end, j + MAX_BLANKS + 1), final)
        if moving and k >= end - 1:
            return True if final else None
        sizes = [one.at(buf, k, end) for one in markers]
        if any(size > 0 for size in sizes):
            return True
        # At the end of the stream a piece of a tag counts, but not the first letters of a word.
        return (not buf[k : k + 1].isalnum() if final else None) if CUT in sizes else False

    def _is_pair(self, buf: bytearray, j: int, end: int, final: bool) -> bool | None:
        """Does a key that may be the next one begin at ``j``? Then the value before it has no closer. None: not known.

        It is followed by its closer and the opener of a value; by its closer alone if the value before had no opener
        either. Of a known tool it is a declared key that was not read yet.
        """
        pairs = self._pairs
        window = j + MAX_NAME + 32
        i, size = pairs.key_close.find(buf, j, min(end, window), final)
        if size <= 0:
            return None if not final and end < window else False
        key = bytes(buf[j:i]).decode("utf-8", "replace").strip()
        if self.tool is not None:
            meant = self.tool.key(key)
            if meant is None or meant in self._read or meant == self.tool.key(self._key):
                return False
        if self._bare or not pairs.value_open.literals:
            return self._bare or self.tool is not None
        window = i + size + MAX_BLANKS
        k, moving = _gap(buf, i + size, min(end, window), final)
        if moving:
            return None if not final and end < window else False
        size = pairs.value_open.at(buf, k, end, final)
        return None if size == CUT else size > 0

    def _settle(self, buf: bytearray) -> int:
        value = self._value
        assert value is not None
        stop = self._strong if self._strong >= 0 else self._wait
        if self._closer >= 0:
            opener, size = self._openers.find(buf, self._behind, stop, True)
            return self._end_early(buf, opener if size > 0 else stop)
        value.cut = self._strong < 0
        text_end = stop
        if text_end > value.start and buf[text_end - 1] == 0x0A:
            text_end -= 1
        return self._end_value(text_end, stop, implicit=True)

    def _end_early(self, buf: bytearray, resume: int) -> int:
        """The last closer of the value was the real one; what follows it, up to ``resume``, is nothing of the call."""
        value = self._value
        assert value is not None
        if stray := bytes(buf[self._behind : resume]).decode("utf-8", "replace").strip():
            self.repairs.append(Repair("stray_text", f"arguments.{value.key}", stray[:MAX_REPAIR_TEXT], ""))
        return self._end_value(self._closer, max(resume, self._behind))

    def _cut(self) -> int:
        value = self._value
        assert value is not None
        value.cut = True
        self.broken = True
        return MORE


def _read(raw: bytes, ending: Ending, context: Context) -> PairsReader:
    """Read the body again as it was read on the wire."""
    around, start = context.settings["around"], len(raw) - len(raw.lstrip())
    reader = PairsReader(start, around, context.offer, context.settings)
    reader.read(bytearray(raw), len(raw), True)
    if ending == "cut":
        return reader
    value = reader._value
    if value is not None and reader.over >= 0:
        # The value holds a closer and none that is followed by a tag: the last one is the real one.
        value.cut = False
        reader._end_value(reader._closer, len(raw), implicit=True)
    elif not reader.settled or (reader.values and reader.values[-1].implicit):
        # The closer is put back so that a name or a value without one sees what ended it on the wire.
        closer = around.close.sample
        reader = PairsReader(start, around, context.offer, context.settings)
        reader.read(bytearray(raw + closer), len(raw) + len(closer), True)
    return reader


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read one name with its pairs."""
    settings = context.settings
    reader = _read(raw, ending, context)
    call = Written(reader.name, end=len(raw), repairs=reader.repairs)
    call.complete = ending != "cut" and not reader.open and not any(value.cut for value in reader.values)
    call.texts = {}
    several: dict[str, list[tuple[str, str]]] = {}
    for value in reader.values:
        text = typed(value, raw, settings)
        several.setdefault(value.key, []).append(text)
        if settings.get("repeats"):
            call.texts.pop(value.key, None)
        call.put(value.key, *text)
        if not value.key:
            call.fault = "a key without a name"
        if value.implicit:
            call.repairs.append(Repair("missing_close", f"arguments.{value.key}", span=(value.end, value.end)))
    if reader.escaped:
        call.repairs.append(Repair("stray_escape", "arguments", "\\\\n", ""))
    for what in reader.damage:
        call.repairs.append(Repair("missing_tag", "arguments", "", what))
    call.fault = call.fault or reader.fault
    if reader.name is None:
        call.fault = "no name"
    if settings.get("repeats"):
        lists = {key: (list_text(found, key, reader.tool), "json") for key, found in several.items() if len(found) > 1}
        call.texts |= lists
    return [call]


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """The name and its pairs with the tags that the grammar writes. See ``tags.write`` for the settings."""
    form: dict[str, str] = settings["form"]

    def compose(texts: dict[str, str]) -> str:
        pairs = [filled(form["pair"], key, text) for key, text in texts.items()]
        return "".join([form["head"].replace("{name}", name), *pairs, form.get("tail", "")])

    def read(text: str) -> Written:
        tool = settings.get("tool")
        told = {} if "{name}" in form["head"] else {"name": name}  # by the header
        context = Context(Offer((tool,) if tool is not None else None), {**settings, **told})
        return decode(text.encode("utf-8", "replace"), "closed", context)[0]

    closers = (form["pair"].partition("{value}")[2].strip(),)
    return carried(name, arguments, settings, compose, read if "pairs" in settings else None, lambda value: "", closers)


BODY: Final = Body("pairs", PairsReader, decode, write, table="pairs", tabled=True, bracketed=False)
