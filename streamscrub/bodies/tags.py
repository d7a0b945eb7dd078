"""Calls written as tags: one around the call that carries its name, one around each parameter, in many spellings."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..edits import moved
from ..events import Repair
from ..names import Offer
from ..reading import DONE
from ..sentinels import Sentinels
from ..shapes import type_text
from ..tools import Tool
from . import json_arguments, json_call
from .base import Body, Context, Ending, Settings, Written
from .carrying import Encoded, carried, filled
from .tag_reader import TagsReader
from .tag_syntax import Tags, Value, attributes_of

_CDATA: Final = re.compile(rb"[ \t\r\n]*<!\[CDATA\[(.*)\]\]>[ \t\r\n]*\Z", re.DOTALL)


def _read(raw: bytes, ending: Ending, context: Context) -> tuple[TagsReader, int]:
    """Read the call again as it was read on the wire: the reader and its verdict."""
    settings = context.settings
    around = settings["around"]
    tags: Tags = settings["tags"]
    if ending == "whole":
        # The end of the last tag may have been missing, which only what followed can show.
        raw += b"".join(tags.tag_end.starts[:1])
    reader = TagsReader(0, around, context.offer, settings)
    verdict = reader.read(bytearray(raw), len(raw), True)
    if ending == "cut" or reader.open_value is None:
        return reader, verdict
    if reader.over >= 0:
        reader.accept_over()
    elif "name" in settings and around.close.literals:
        # In an envelope with the name its closer ends the value; here it is not among the bytes.
        closer = around.close.sample
        reader = TagsReader(0, around, context.offer, settings)
        verdict = reader.read(bytearray(raw + closer), len(raw) + len(closer), True)
    return reader, verdict


def decode(raw: bytes, ending: Ending, context: Context) -> list[Written]:
    """Read one call from behind its tag's name. ``settings["name"]`` is set where the opener carried the name."""
    settings = context.settings
    reader, verdict = _read(raw, ending, context)
    call = Written(reader.name, end=len(raw), model_id=reader.attributes.get("id"), repairs=reader.repairs)
    call.complete = reader.between and not any(value.cut for value in reader.values)
    if reader.torn and not reader.closed:
        call.complete = False
    if reader.in_head and verdict == DONE:
        call.complete = True
    if reader.in_head and verdict != DONE:
        return [call]
    if reader.json is not None and not reader.values:
        return _from_json(reader, raw, call, ending, context)
    if reader.fault and reader.closed and not reader.values and (lines := _from_lines(reader, raw, context)):
        return lines
    if not reader.closed and ending == "cut":
        call.complete = False
    call.texts = {}
    for value in _parted(reader, raw, settings):
        if not value.key:
            call.fault = "a parameter without a name"
        call.put(value.key, *typed(value, raw, settings))
        if value.implicit:
            call.repairs.append(Repair("missing_close", f"arguments.{value.key}", span=(value.end, value.end)))
    call.fault = call.fault or reader.fault
    if not reader.name:
        call.fault = "no name"
    if not reader.closed and not reader.values and call.complete and ending != "closed":
        call.fault = call.fault or "nothing of a call follows the name"
    _whole(call, reader)
    return [call]


def _from_json(reader: TagsReader, raw: bytes, call: Written, ending: Ending, context: Context) -> list[Written]:
    """The body was a JSON object instead of parameters."""
    inner, start = reader.json, reader.json_at
    assert inner is not None
    whole = inner.depth == 0 and not inner.in_string
    how: Ending = "whole" if whole and not inner.broken else ("closed" if reader.closed else "cut")
    text = raw[start : inner.at]
    if reader.name:
        calls = json_arguments.decode(text, how, Context(context.offer, {**context.settings, "name": reader.name}))
    else:
        calls = json_call.decode(text, how, context)
    for one in calls:
        one.model_id = one.model_id or call.model_id
        one.repairs = [*call.repairs, *moved(one.repairs, start)]
        one.start += start
        one.end += start
    if calls:
        calls[0].start, calls[-1].end = 0, len(raw)
    return calls


def _from_lines(reader: TagsReader, raw: bytes, context: Context) -> list[Written]:
    """The body was neither parameters nor an object, but it may be lines of a key and a value."""
    start = reader.opened
    stop, _ = context.settings["tags"].call_close.find(raw, start, len(raw), True)
    if not reader.name or b":" not in raw[start:stop]:
        return []
    named = Context(context.offer, {**context.settings, "name": reader.name})
    calls = json_arguments.decode(raw[start:stop], "closed", named)
    if len(calls) != 1 or calls[0].fault:
        return []
    calls[0].repairs = [*reader.repairs, *moved(calls[0].repairs, start)]
    calls[0].start, calls[0].end = 0, len(raw)
    return calls


def typed(value: Value, raw: bytes, settings: Settings) -> tuple[str, str]:
    """The text of a value and how the tag says it is to be read."""
    body = raw[value.start : value.end]
    style = settings.get("styles", {}).get(value.opener, {})
    cdata = _CDATA.match(body)
    if cdata is not None:
        body = cdata.group(1)
    elif style.get("newline") and not settings.get("verbatim"):
        body = body[2:] if body.startswith(b"\r\n") else body[1:] if body.startswith(b"\n") else body
        if not value.implicit:
            body = body[:-2] if body.endswith(b"\r\n") else body[:-1] if body.endswith(b"\n") else body
    text = body.decode("utf-8", "replace")
    if (settings.get("entities") or style.get("entities")) and cdata is None:
        from html import unescape

        text = unescape(text)
    flag = value.attributes.get("string", "").lower()
    kind = value.attributes.get("type", "").lower()
    if flag in ("true", "1", "yes") or kind in ("string", "raw", "str"):
        return text, "text"
    if flag in ("false", "0", "no") or kind in ("json", "number", "integer", "boolean", "object", "array", "null"):
        return text, "json"
    return text, ""


def _parted(reader: TagsReader, raw: bytes, settings: Settings) -> list[Value]:
    """The values, where one that lacks its closer does not hold the next parameter of its line.

    A tag inside a value is the next parameter only if the schema says so: a required one that is not there otherwise,
    or one of two whose texts have the types of their parameters, of which one is no string. Else it is data.
    """
    tool, buf = reader.tool, bytearray(raw)
    if tool is None:
        return reader.values
    read = {value.key for value in reader.values}
    out: list[Value] = []
    for value in reader.values:
        out.append(value)
        marks = reader.tags.keys
        if value.key not in tool.properties or value.cut or _CDATA.match(buf, value.start, value.end):
            continue
        at = _behind_last(reader.tags.key_close, buf, value)  # what has a closer of its own is data
        while True:
            i, size = marks.find(buf, at, value.end, True)
            if size <= 0:
                break
            verdict, j, found = attributes_of(buf, i + size, value.end, reader.tags.tag_end)
            key = found.get("name", found.get("key")) or ""
            at = max(j, i + size)
            if verdict != DONE or "/" in found or key in read or key not in tool.properties:
                continue
            now = out[-1]
            opener = bytes(buf[i : i + size]).lower().replace(b"< ", b"<")
            rest = Value(key, found, j, opener)
            rest.end, rest.implicit = value.end, now.implicit
            first = Value(now.key, now.attributes, now.start, now.opener)
            first.end, first.implicit = i, True
            stop = marks.find(buf, j, value.end, True)[0]
            last = Value(key, found, j, opener)
            last.end = stop
            if key in tool.required or _fit_their_types((first, last), raw, settings, tool):
                read.add(key)
                out[-1:] = [first, rest]
    return out


def _behind_last(closers: Sentinels, buf: bytearray, value: Value) -> int:
    """The index behind the last closer inside a value, else its start."""
    at = value.start
    while (found := closers.find(buf, at, value.end, True))[1] > 0:
        at = sum(found)
    return at


def _fit_their_types(values: tuple[Value, ...], raw: bytes, settings: Settings, tool: Tool) -> bool:
    """Do these values read as their parameters want them, and one of them as something else than a string?"""
    typed_ones = []
    for value in values:
        shape = tool.shape.child(value.key)
        found = type_text(typed(value, raw, settings)[0], shape)
        if shape is None or not shape.fits(found):
            return False
        typed_ones.append(not isinstance(found, str))
    return any(typed_ones)


def _whole(call: Written, reader: TagsReader) -> None:
    """A single parameter named like an envelope key that holds an object is the arguments."""
    if call.texts is None or len(call.texts) != 1:
        return
    ((key, (text, _)),) = call.texts.items()
    element = not reader.values[-1].opener
    if key not in (json_call.ARGUMENT_KEYS if element else ("arguments", "input")):
        return
    if reader.tool is not None and (reader.tool.key(key) if element else key in reader.tool.properties):
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        call.texts = None
        call.arguments = value
        call.repairs.append(Repair("unwrapped", "arguments", key, ""))
    elif element:
        call.fault = call.fault or f"{key} is no object"


def write(name: str, arguments: dict[str, Any], settings: Settings) -> str:
    """The call with the tags that the grammar writes.

    ``settings["form"]`` are the texts of the grammar file, ``settings["tool"]`` is the tool if it is known. With the
    settings of the reader beside them the call is read back. Raises ``ValueError`` for what the format cannot carry.
    """
    form: dict[str, str] = settings["form"]

    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace('"', "&quot;") if settings.get("escaped") else text

    def compose(texts: dict[str, str]) -> str:
        parts = [form["call_open"].replace("{number}", settings.get("number", "1")).replace("{name}", escaped(name))]
        for key, text in texts.items():
            value = arguments[key]
            flag = "true" if isinstance(value, str) else "false"
            template = form["json"] if isinstance(text, Encoded) else form["value"]
            opener = template.replace("{string}", flag).replace("{type}", _type(value))
            parts.append(filled(opener, escaped(key), text))
        return form.get("join", "").join([*parts, form["call_close"]])

    def read(text: str) -> Written:
        raw = text.encode("utf-8", "replace")
        tags: Tags = settings["tags"]
        head = max(tags.call_open.at(raw, 0, len(raw), True), 0)
        tool = settings.get("tool")
        offer = Offer((tool,) if tool is not None else None)
        if settings.get("named") or not form["call_open"]:
            # The name stands in an opener around this.
            return decode(raw[head:], "closed", Context(offer, {**settings, "name": name}))[0]
        return decode(raw[head:], "whole", Context(offer, settings))[0]

    def stated(value: Any) -> str:
        says = "{string}" in form["value"] or "{type}" in form["value"]
        return "" if not says else "text" if isinstance(value, str) else "json"

    ends = (form["value"].partition("{value}")[2].strip(), form["call_close"].strip())
    closers = tuple(end for end in ends if end)
    return carried(name, arguments, settings, compose, read if "tags" in settings else None, stated, closers)


def _type(value: Any) -> str:
    """The name of a value's JSON type."""
    names = ((str, "string"), (bool, "boolean"), (int | float, "number"), (list, "array"), (dict, "object"))
    return next((name for kind, name in names if isinstance(value, kind)), "null")


_SETTINGS: Final = {"of": "string", "demanding": "flag"}
BODY: Final = Body("tags", TagsReader, decode, write, settings=_SETTINGS, table="tags", bracketed=False)
