"""From arguments as the model wrote them to arguments of the shape that the schema wants, each change recorded."""

# Longer than a module should be: coercion, typing of texts and the literal reader they share only make sense together.

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from math import isfinite
from typing import Any, Final, TypeAlias

from .events import Repair
from .limits import MAX_COERCE_DEPTH, MAX_DEPTH, MAX_PYTHON, MAX_REPAIR_TEXT
from .names import encodable
from .tools import Shape, Tool, fits

# Levels of a value that is decoded out of a text: decoding never makes arguments deeper than MAX_DEPTH.
MAX_DECODED: Final = MAX_DEPTH - MAX_COERCE_DEPTH
# Integers beyond it have no exact float, so an integral float is only then surely the integer that was meant.
MAX_EXACT: Final = 2**53

_BLANKS: Final = " \t\r\n"
_MISSING: Final = object()
_JSON_START: Final = re.compile(r'[ \t\r\n]*+["{\[0-9tfn-]')
_PLAIN_START: Final = re.compile(r"[ \t\r\n]*+[^\s\[{(]")
_INTEGER: Final = re.compile(r"[+-]?[0-9]++")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_WORDS: Final[dict[str, Any]] = {"True": True, "False": False, "TRUE": True, "FALSE": False, "None": None}
# Wrappers that models invent around the arguments, and what an echoed schema has beside them.
_WRAPPERS: Final = ("properties", "arguments", "args", "parameters", "params", "param", "input")
_ECHO: Final = frozenset(("type", "required", "additionalProperties", "title", "description", "$schema"))

# A value and the kind of repair that gave it.
Read: TypeAlias = tuple[Any, str]


def coerce(
    arguments: dict[str, Any], tool: Tool | None, fixed: Collection[str] = ()
) -> tuple[dict[str, Any], list[Repair]]:
    """Give decoded arguments the shape of the tool's schema where the value has one reading for it.

    What cannot be coerced stays. The keys in ``fixed`` keep their values: their format has stated the type. Arguments
    that need no change come back as the same object, and coercing twice is coercing once.

    >>> tool = Tool("wait", {"properties": {"seconds": {"type": "integer"}}})
    >>> coerce({"Seconds": "07"}, tool)[0]
    {'seconds': 7}
    """
    repairs: list[Repair] = []
    arguments = _encodable(arguments, repairs)
    if tool is None:
        return arguments, repairs
    kept = {*fixed, *(tool.key(key) for key in fixed)}
    shaped = _named(arguments, tool, repairs)
    shaped = _fitted(shaped, tool, kept, repairs)
    shaped = _unwrapped(shaped, tool, repairs)
    # A text that was decoded may have spelt out a surrogate.
    return shaped if shaped is arguments else _encodable(shaped, repairs), repairs


def type_texts(texts: dict[str, tuple[str, str]], tool: Tool | None) -> tuple[dict[str, Any], list[Repair]]:
    """Read keyed raw texts (key -> text, how) as values; the result needs no ``coerce``.

    ``how`` is "text" or "json" where the format states the type, "" where the schema decides: strings keep their
    exact text, all else is decoded as JSON and falls back to the text.

    >>> tool = Tool("tag", {"properties": {"code": {"type": "string"}, "count": {"type": "integer"}}})
    >>> type_texts({"code": (" 007 ", ""), "count": (" 7 ", "")}, tool)[0]
    {'code': ' 007 ', 'count': 7}
    """
    repairs: list[Repair] = []
    values: dict[str, Any] = {}
    fixed: set[str] = set()
    for key, (text, how) in (texts if tool is None else _named(texts, tool, repairs)).items():
        shape = None if tool is None else tool.shape.child(key)
        value, kind = _typed(text, how, shape)
        values[key] = value
        if kind == "fixed":
            fixed.add(key)
        elif kind:
            repairs.append(_repair(kind, f"arguments.{key}", text, value))
    values, more = coerce(values, tool, fixed)
    return values, repairs + more


def list_text(texts: Iterable[tuple[str, str]], key: str, tool: Tool | None) -> str:
    """The raw texts of a parameter that was written several times as one list, in JSON."""
    name = None if tool is None else tool.key(key)
    shape = None if tool is None or name is None else tool.shape.child(name)
    item = None if shape is None else shape.item
    return json.dumps([_typed(text, how, item)[0] for text, how in texts], ensure_ascii=False)


def type_text(text: str, shape: Shape | None) -> Any:
    """Read one raw text as the schema wants it: strings keep it, all else is decoded and falls back to the text."""
    return _typed(text, "", shape)[0]


def accepts(tool: Tool, arguments: dict[str, Any]) -> bool:
    """True if every key is declared, every required one is there and the types fit."""
    return all(key in tool.properties for key in arguments) and tool.shape.accepts(arguments)


def declared(tool: Tool, arguments: Iterable[str]) -> bool:
    """True if every key is a declared parameter, exactly or but for case, ``_`` and ``-``."""
    return all(tool.key(key) is not None for key in arguments)


def _named(arguments: dict[str, Any], tool: Tool, repairs: list[Repair]) -> dict[str, Any]:
    meant: dict[str, list[str]] = {}
    for written in arguments:
        key = tool.key(written)
        if key is not None:
            meant.setdefault(key, []).append(written)
    renamed = {spellings[0]: key for key, spellings in meant.items() if spellings != [key] and len(spellings) == 1}
    if not renamed:
        return arguments
    repairs += [_repair("key", f"arguments.{key}", written, key) for written, key in renamed.items()]
    return {renamed.get(written, written): value for written, value in arguments.items()}


def _unwrapped(arguments: dict[str, Any], tool: Tool, repairs: list[Repair]) -> dict[str, Any]:
    """Take off one invented key around an object that the schema accepts (``{"args": {…}}``, an echoed schema)."""
    for wrapper in _WRAPPERS:
        inner = arguments.get(wrapper)
        if type(inner) is not dict or not inner or declared(tool, (wrapper,)):
            continue
        beside = arguments.keys() - {wrapper}
        if beside and (wrapper != "properties" or not beside <= _ECHO or any(tool.key(key) for key in beside)):
            continue
        changes: list[Repair] = []
        shaped = _fitted(_named(inner, tool, changes), tool, (), changes)
        if accepts(tool, shaped):
            repairs += [_repair("unwrapped", f"arguments.{wrapper}", arguments, inner), *changes]
            return shaped
    return arguments


def _fitted(
    arguments: dict[str, Any], tool: Tool, fixed: Collection[str | None], repairs: list[Repair]
) -> dict[str, Any]:
    fitted: dict[str, Any] = {}
    nulls: list[str] = []
    changed = False
    for key, value in arguments.items():
        shape = tool.shape.child(key)
        fit = value if shape is None or key in fixed else _fit(value, shape, f"arguments.{key}", 1, repairs)
        if fit is None and shape and not shape.fits(None) and key not in tool.required:
            nulls.append(key)
        changed = changed or fit is not value
        fitted[key] = fit
    # Beside another spelling of its key a null stays: without it that spelling would get a meaning it did not have.
    rivals = {tool.key(key) for key in arguments if nulls and key not in tool.properties}
    for key in nulls:
        if key not in rivals:
            repairs.append(_repair("null_omitted", f"arguments.{key}", fitted.pop(key), ""))
            changed = True
    return fitted if changed else arguments


def _fit(value: Any, shape: Shape, where: str, depth: int, repairs: list[Repair]) -> Any:
    if depth > MAX_COERCE_DEPTH or not shape.types:
        return value
    if not shape.fits(value):
        read = _read(value, shape)
        if read is None:
            return _alone(value, shape, where, depth, repairs)
        # Both as JSON: "2" became 2.
        repairs.append(_repair(read[1], where, _as_json(value), _as_json(read[0])))
        value = read[0]
    if type(value) is dict:
        return _fit_members(value, value.items(), shape, where, depth, repairs)
    if type(value) is list and shape.item is not None:
        return _fit_members(value, enumerate(value), shape, where, depth, repairs)
    return value


def _alone(value: Any, shape: Shape, where: str, depth: int, repairs: list[Repair]) -> Any:
    """An object where a list of objects is wanted is its one element, if it has their shape once it is coerced."""
    if type(value) is not dict or "array" not in shape.types or shape.item is None:
        return value
    inner: list[Repair] = []
    fit = _fit(value, shape.item, f"{where}[0]", depth + 1, inner)
    if not shape.item.accepts(fit):
        return value
    repairs += [_repair("coerced", where, value, [value]), *inner]
    return [fit]


def _fit_members(
    container: Any, members: Iterable[tuple[Any, Any]], shape: Shape, where: str, depth: int, repairs: list[Repair]
) -> Any:
    fitted = container
    keyed = type(container) is dict
    for step, member in members:
        inner = shape.child(step) if keyed else shape.item
        if inner is None or (type(member) not in (dict, list) and inner.fits(member)):
            continue
        fit = _fit(member, inner, f"{where}.{step}" if keyed else f"{where}[{step}]", depth + 1, repairs)
        if fit is not member:
            if fitted is container:
                fitted = container.copy()
            fitted[step] = fit
    return fitted


def _read(value: Any, shape: Shape, wrap: bool = True) -> Read | None:
    """The one reading that a value of the wrong type has for ``shape``, and the kind of repair it is."""
    types = shape.types
    if value is None or (type(value) is float and not isfinite(value)):
        return None
    if type(value) is str:
        read = _read_text(value, types)
        if read is not None:
            return read
    elif type(value) is int and types - {"null"} == {"string"}:
        text = _decimal(value)
        return (text, "coerced") if text and shape.lists(text) else None
    if wrap and "array" in types and _is_item(value, shape.item):
        return [value], "coerced"
    return None


def _read_text(text: str, types: frozenset[str]) -> Read | None:
    bare = text.strip(_BLANKS)
    value = _json(bare)
    if value is not _MISSING and type(value) is not str and fits(value, types) and _is_shallow(value):
        return _integral(value, types), "coerced"
    if bare in _WORDS and fits(_WORDS[bare], types):
        return _WORDS[bare], "coerced" if bare.isupper() else "python_literal"
    number = _number(bare, types)
    return _container(bare, types) if number is None else (number, "coerced")


def _number(text: str, types: frozenset[str]) -> Any:
    if "integer" not in types and "number" not in types:
        return None
    try:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _NUMBER.fullmatch(text):
            value = float(text)
            if isfinite(value) and fits(value, types):
                return _integral(value, types)
    except ValueError:  # more digits than int() takes
        pass
    return None


def _integral(value: Any, types: frozenset[str]) -> Any:
    is_whole = type(value) is float and "number" not in types and abs(value) <= MAX_EXACT
    return int(value) if is_whole else value


def _decimal(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # more digits than str() gives
        return ""


def _container(text: str, types: frozenset[str]) -> Read | None:
    """Read a list or an object out of a text that is no JSON, but a literal of Python or JavaScript."""
    if text[:1] not in ("[", "{", "(") or len(text) > MAX_PYTHON:
        return None
    value, kind = _literal(text)
    return (value, kind) if value is not _MISSING and fits(value, types) and _is_shallow(value) else None


def _is_item(value: Any, item: Shape | None) -> bool:
    """True if a lone value is surely one element of a list of ``item``."""
    # A broken list or a list without its brackets has more than one reading.
    plain = type(value) is not str or (_PLAIN_START.match(value) and "," not in value and "\n" not in value)
    if item is None or item.accepts(value):
        return bool(plain)
    read = _read(value, item, wrap=False) if type(value) in (str, int) else None
    return read is not None and item.accepts(read[0])


def _typed(text: str, how: str, shape: Shape | None) -> Read:
    """Read one raw text. The second part is "fixed" (stated by the format), a kind of repair, or ""."""
    if how == "text":
        wanted = shape.types - {"null"} if shape else frozenset()
        if wanted and wanted <= {"array", "object"}:
            return _read_text(text, wanted) or (text, "fixed")
        return text, "fixed"
    strings = shape is not None and shape.string_only
    if strings and how != "json":
        return text, ""
    value = _json(text)
    if value is _MISSING:
        return (text if text.strip(_BLANKS) else ""), ""
    if how == "json":
        return value, "fixed" if strings else ""
    if shape and "string" in shape.types and not (shape.fits(value) and shape.lists(value)):
        return text, ""
    return value, ""


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if isfinite(value) else _refuse(digits)


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _json(text: str) -> Any:
    """Decode strict JSON; _MISSING where the text is none or has more digits or levels than Python reads."""
    if not _JSON_START.match(text):
        return _MISSING
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _MISSING


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DECODED + 1):
        level = [member for container in level for member in _members(container) if type(member) in (dict, list)]
        if not level:
            return True
    return False


def _members(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value if type(value) is list else ()


_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r\n]++)
      | (?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
      | (?P<word>[-+.\w$]++)
      | (?P<open>[\[{(])
      | (?P<close>[\]})])
      | (?P<sign>[,:])""",
    re.VERBOSE | re.DOTALL,
)
_JSON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}
_COLON: Final = re.compile(r"[ \t\r\n]*+:")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "\n": "", "\r\n": ""}
_KEEP: Final = frozenset("\\'\"`/")


def _literal(text: str) -> Read:
    """Read a list or object with Python's or JavaScript's spellings, token by token in one pass."""
    out: list[str] = []
    kind = "python_literal"
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return _MISSING, ""
        at = token.end()
        part = token.group()
        if token.lastgroup == "string":
            part = json.dumps(_ESCAPE.sub(_unescaped, part[1:-1]))
        elif token.lastgroup == "word" and _COLON.match(text, at):
            part, kind = json.dumps(part), "coerced"
        elif token.lastgroup == "word":
            part = _JSON_WORDS.get(part, part)
        elif token.lastgroup == "open":
            part = part.replace("(", "[")
        elif token.lastgroup == "close":
            part = part.replace(")", "]")
            if len(out) > 1 and out[-1] == "," and out[-2] not in ("[", "{", ","):
                out.pop()
        if token.lastgroup != "blank":
            out.append(part)
    return _json(" ".join(out)), kind


def _unescaped(escape: re.Match[str]) -> str:
    code = escape.group(1)
    if len(code) > 2 and code[0] in "ux":
        return chr(int(code[1:], 16))
    return _ESCAPED.get(code, code if code in _KEEP else escape.group())


def _encodable(arguments: dict[str, Any], repairs: list[Repair]) -> dict[str, Any]:
    return _without_surrogates(arguments, repairs) if _has_surrogates(arguments) else arguments


def _has_surrogates(arguments: dict[str, Any]) -> bool:
    waiting: list[Any] = [arguments]
    while waiting:
        value = waiting.pop()
        if type(value) is str:
            if not value.isascii() and encodable(value) != value:
                return True
        elif type(value) is dict:
            waiting += value
            waiting += value.values()
        elif type(value) is list:
            waiting += value
    return False


def _without_surrogates(arguments: dict[str, Any], repairs: list[Repair]) -> dict[str, Any]:
    """Copy ``arguments`` with U+FFFD for lone surrogates, without recursion: nothing has bounded their depth."""
    cleaned: dict[str, Any] = {}
    waiting: list[tuple[Any, Any, str]] = [(arguments, cleaned, "arguments")]
    while waiting:
        source, target, where = waiting.pop()
        for step, value in source.items() if type(source) is dict else enumerate(source):
            key = _clean(step, where, repairs) if type(step) is str else step
            place = (f"{where}.{key}" if type(step) is str else f"{where}[{key}]")[:MAX_REPAIR_TEXT]
            if type(value) is str:
                value = _clean(value, place, repairs)
            elif type(value) in (dict, list):
                inner: Any = {} if type(value) is dict else []
                waiting.append((value, inner, place))
                value = inner
            if type(target) is dict:
                target[key] = value
            else:
                target.append(value)
    return cleaned


def _clean(text: str, where: str, repairs: list[Repair]) -> str:
    clean = encodable(text)
    if clean != text:
        repairs.append(_repair("surrogate", where, text, clean))
    return clean


def _repair(kind: str, where: str, before: Any, after: Any) -> Repair:
    return Repair(kind, encodable(where[:MAX_REPAIR_TEXT]), _shown(before), _shown(after))


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else _as_json(value)
    return text[:MAX_REPAIR_TEXT].encode("utf-8", "backslashreplace").decode()
