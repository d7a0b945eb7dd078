"""Repair reads what has one reading, tells every change, and refuses the rest in linear time."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamscrub import jsonfix
from streamscrub import repair as repair_module
from streamscrub.edits import applied
from streamscrub.events import Repair
from streamscrub.limits import MAX_DEPTH, MAX_PYTHON, MAX_REPAIR, MAX_REPAIR_TEXT, REPAIR_READS
from streamscrub.repair import Loaded, Metered, Unreadable, complete, load

from .growth import assert_linear

ENVELOPE = ("name", "arguments")


def read(text: str, **options: Any) -> Any:
    """The value, or the exception's class."""
    try:
        return load(text, **options).value
    except Unreadable:
        return Unreadable


def kinds(text: str, **options: Any) -> set[str]:
    return {repair.kind for repair in load(text, **options).repairs}


# One table of damage: text, value, kinds of repair. The first rows are the bodies of tests/cases.
TABLE: list[tuple[str, Any, set[str]]] = [
    ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}, set()),
    ('{"a": 1, "a": 2}', {"a": 2}, {"repeated"}),
    (
        '{"name": "f", "arguments": {"q": "slate", "k": 2}\n',
        {"name": "f", "arguments": {"q": "slate", "k": 2}},
        {"missing_bracket"},
    ),
    (
        "{'room': 'cellar', 'on': True, 'off': False, 'level': None}",
        {"room": "cellar", "on": True, "off": False, "level": None},
        {"key_quotes", "quotes", "python_literal"},
    ),
    ('{"room": "loft", "on": [true,],},', {"room": "loft", "on": [True]}, {"trailing_comma"}),
    (
        '{\n "sql": "select 1 -- keep", // quick probe\n "limit": 1 /* one */ # end\n}',
        {"sql": "select 1 -- keep", "limit": 1},
        {"comment"},
    ),
    ("{“title”: “Grey Heron”}", {"title": "Grey Heron"}, {"key_quotes", "quotes"}),
    ("{“a”: “say “hi” now”, ‘b’: ‘it’s’}", {"a": "say “hi” now", "b": "it’s"}, {"key_quotes", "quotes"}),
    ('{query: "mortar", top_k: 3}', {"query": "mortar", "top_k": 3}, {"key_quotes"}),
    ('{"body": "nails\nscrews\n\tbrass\n"}', {"body": "nails\nscrews\n\tbrass\n"}, {"control_characters"}),
    (
        '{"path": "cfg.py", "body": "port = env.get("PORT", "8080")"}',
        {"path": "cfg.py", "body": 'port = env.get("PORT", "8080")'},
        {"inner_quotes"},
    ),
    (
        '{"path":"z.md","find":"print("a")\nnext","replace":"print("b")\nnext\nlast"}',
        {"path": "z.md", "find": 'print("a")\nnext', "replace": 'print("b")\nnext\nlast'},
        {"inner_quotes", "control_characters"},
    ),
    (
        '{"a": "hi", "b": """def hi():\n    print("hi")\n"""}',
        {"a": "hi", "b": 'def hi():\n    print("hi")\n'},
        {"quotes", "control_characters"},
    ),
    ("{'a': '''x'y'''}", {"a": "x'y"}, {"key_quotes", "quotes"}),
    (r'{"path": "E:\Werk\Quartal\Plan.md"}', {"path": r"E:\Werk\Quartal\Plan.md"}, {"escape"}),
    (r'{"a": "it\'s \d+"}', {"a": r"it\'s \d+"}, {"escape"}),
    (
        r'{"path": "/srv/a.txt", "start": \n12, "end": 40\t}\n\n',
        {"path": "/srv/a.txt", "start": 12, "end": 40},
        {"stray_escape"},
    ),
    (
        "[{'room': \"porter's lodge\", 'on': True}]",
        [{"room": "porter's lodge", "on": True}],
        {"key_quotes", "python_literal"},
    ),
    (
        "{'a': 'don't, or won't', 'b': ['the dog', 'it\\'s']}",
        {"a": "don't, or won't", "b": ["the dog", "it's"]},
        {"key_quotes", "quotes"},
    ),
    (r"{'a': 'b\x00\xe9\U0001f600\d'}", {"a": "b\x00é😀\\d"}, {"key_quotes", "quotes", "escape"}),
    ('```json\n{"path": "y.md"}\n```', {"path": "y.md"}, {"fence"}),
    ("````\n<json>{'a': 1}</json>\n````", {"a": 1}, {"fence", "wrapper", "key_quotes"}),
    ("<SYNTAX>{}</syntax>", {}, {"wrapper"}),
    ('[{"n": "a"} {"n": "b"}]', [{"n": "a"}, {"n": "b"}], {"missing_comma"}),
    (
        '{"a": 1 "b": "x" "c": [1 2 "z"]\nd: {}}',
        {"a": 1, "b": "x", "c": [1, 2, "z"], "d": {}},
        {"missing_comma", "key_quotes"},
    ),
    ('["a"\n"b", [1] [2]]', ["a", "b", [1], [2]], {"missing_comma"}),
    ('{{{"name":"p","arguments":{"host":"s1"}}}}', {"name": "p", "arguments": {"host": "s1"}}, {"braces"}),
    ('{{"a": 1}', {"a": 1}, {"braces"}),
    ('{"b":{"b":1}}}}}', {"b": {"b": 1}}, {"surplus_bracket"}),
    ('{"a" 1, "b" "x", "c"{"d" true}}', {"a": 1, "b": "x", "c": {"d": True}}, {"missing_colon"}),
    ('{"a":: 1, "b": :"x"}', {"a": 1, "b": "x"}, {"surplus_colon"}),
    ('{"b":[1, 2}', {"b": [1, 2]}, {"missing_bracket"}),
    ('{"b":[1, 2]]}', {"b": [1, 2]}, {"surplus_bracket"}),
    ('{, "a": 1,, "b": 2}', {"a": 1, "b": 2}, {"trailing_comma"}),
    ('{"a": 007, "b": +3, "c": -.5, "d": 5., "e": +01e5}', {"a": 7, "b": 3, "c": -0.5, "d": 5.0, "e": 1e5}, {"number"}),
    (r"{\"a\": \"x\\ny\"}", {"a": "x\ny"}, {"escape"}),
    ('{name": 1, \'b": 2, "c d\': 3}', {"name": 1, "b": 2, "c d": 3}, {"key_quotes"}),
    ('{"a": ""hi" he said", "b": "f("x", "y")"}', {"a": '"hi" he said', "b": 'f("x", "y")'}, {"inner_quotes"}),
    (
        '{"a": "x = {"k": "v"}", "b": [1, "say "yes""]}',
        {"a": 'x = {"k": "v"}', "b": [1, 'say "yes"']},
        {"inner_quotes"},
    ),
    ("{'a': 'x', # one\n 'b': 1}", {"a": "x", "b": 1}, {"key_quotes", "quotes", "comment"}),
    (
        "{'a': [{'b': 'c',},], 'd': 'e'}}",
        {"a": [{"b": "c"}], "d": "e"},
        {"key_quotes", "quotes", "trailing_comma", "surplus_bracket"},
    ),
    (
        "{a: hello world, when: 2024-01-05, b: [x, y z]}",
        {"a": "hello world", "when": "2024-01-05", "b": ["x", "y z"]},
        {"json_repair"},
    ),
]


@pytest.mark.parametrize(("text", "value", "changed"), TABLE)
def test_each_damage_is_read_and_told(text: str, value: Any, changed: set[str]) -> None:
    loaded = load(text)
    assert loaded.value == value
    assert {repair.kind for repair in loaded.repairs} == changed
    assert (loaded.strategy == "clean") == (not loaded.repairs)


REFUSED = [
    "",
    " \n",
    "hello",
    "hello {",
    '"a" "b"',
    "{",
    "[",
    '{"a"',
    '{"a":',
    '{"a": }',
    '{"a": 1,',
    '[{"state": "open", \n',
    '{"name":"ping","arguments":{"host":"s5',
    '{"a": "x "y" z',
    '{"a": "say "hi"',
    "{'a': 'b",
    "{“a”: “b",
    '{"a": """b',
    '{"name": ???',
    '{"name": ???}\n{',
    '{"a": NaN}',
    "[Infinity, -Infinity]",
    '{"a": 1e999}',
    "{a: NaN}",
    "{a: undefined}",
    '{"a": ' + "9" * 5000 + "}",
    '{"a": tru}',
    '{"a": 1} and more',
    'see {"a": 1}',
    '{"a": 1} {"b": 2}',
    '{"a"="b"}',
    '["a" "b"]',
    '["" null ""]',
    '{"a": "x" "b": "say "q""}',
    '["f("a", "b")", "c"]',
    "[1,,2]",
    '{"a": 1], "b": 2}',
    '{"a": [1}, "b": 2}',
    '{"a": 1, // "b": 2}',
    '{"a": 1 /*}',
    '{"size": "5" pipe", "b": 1}',
    '{"body": "he said "a", "b": "c""}',
    '{"name": "w", "arguments": {"body": "{"a": "b"}}',
    '{"a": """, "b": """}',
    r'{"path": "C:\temp\x"}',
    r'{"re": "\bfoo\d"}',
    r'{"re": "\d\n"}',
    '{"a": "b\\"}',
    '{"a": "x\\',
    "{{{{1}}}}",
    '{{"a": 1}, {"b": 2}}',
    '```json\n{"a": 1}',
    "{'a': 'he said 'x', 'b': 'c''}",
    '{"a": one, two, "b": 1}',
    '{"a": "x", "b": "y" z}',
    '{"a": <b>}',
    '{"a": "\x00" "}',
    "{\\",
    '{"a": 1}\\',
    "[/]",
    '{"a": /',
    "{'a': b'c'}",
    "{(1): 2}",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_certain_reading_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(Unreadable, match=r"\A[^\r\n]+\Z"):
        load(text, markers=("<T>",), quote_tokens=("<Q>",))


@pytest.mark.parametrize(
    ("text", "options", "value"),
    [
        ('{"code": "<T>x", <T> "b": 1}<T></T>', {"markers": ("<T>", "</T>")}, {"code": "<T>x", "b": 1}),
        ("{'code': 'it's <T>'}</T>", {"markers": ("<T>", "</T>")}, {"code": "it's <T>"}),
        ('{title:<Q>a<Q>,body:<QQ>b "c"\n<Q>}', {"quote_tokens": ("<Q>", "<QQ>")}, {"title": "a", "body": 'b "c"\n'}),
        ("{<Q>a<Q>: 1}", {"quote_tokens": ("<Q>",), "markers": ("<Q>",)}, {"a": 1}),
        ("{<Q>a", {"quote_tokens": ("<Q>",)}, Unreadable),
        ("{a: <Q>a", {"quote_tokens": ("<Q>",)}, Unreadable),
        ('{"a": 1}<T>', {}, Unreadable),
    ],
)
def test_leaked_tokens_count_outside_strings_only(text: str, options: dict[str, Any], value: Any) -> None:
    assert read(text, **options) == value


NOTE: dict[str, Any] = {"keys": ("path", "body", "mode"), "required": ("path", "body"), "envelope": ENVELOPE}


@pytest.mark.parametrize(
    ("text", "value", "strategy"),
    [
        # With quotes in pairs the walk is certain; the anchors agree.
        (
            '{"name": "w", "arguments": {"path": "c.py", "body": "env.get("PORT", "80")"}}',
            {"name": "w", "arguments": {"path": "c.py", "body": 'env.get("PORT", "80")'}},
            "json",
        ),
        ('{"path": "5" pipe", "body": "x"}', {"path": '5" pipe', "body": "x"}, "anchored"),
        (
            '{"path": "p", "body": "5" pipe, 6 "x" y", "mode": 07}',
            {"path": "p", "body": '5" pipe, 6 "x" y', "mode": 7},
            "anchored",
        ),
        (
            '{"name": "w", "arguments": {"path": "5" pipe\n", "body": "x", "mode": [1,]}}',
            {"name": "w", "arguments": {"path": '5" pipe\n', "body": "x", "mode": [1]}},
            "anchored",
        ),
        (
            '{"arguments": {"path": "5" pipe", "body": "x" } , "name": "w"}',
            {"arguments": {"path": '5" pipe', "body": "x"}, "name": "w"},
            "anchored",
        ),
        ('{"path": "p", "body": "if x, "mode": 1"}', {"path": "p", "body": 'if x, "mode": 1'}, "json"),
        ('{"path": "p", "body": "5" pipe"}', Unreadable, ""),  # the last quote may be one of the text
        ('{"body": "call("a", "path": "x")", "mode": "w"}', Unreadable, ""),
        ('{"path": "5" pipe", "path": "x", "body": "y"}', Unreadable, ""),
        ('{"path": "5" pipe", "mode": "x"}', Unreadable, ""),  # a required key is missing
        ('{"path": "5" pipe", "body": "x"', Unreadable, ""),
        ('{"path": "5" pipe", "body": {"a": tru}}', Unreadable, ""),
        ('{"path": "5" pipe\\", "body": "x"}', Unreadable, ""),
        ('{"path": {"body": 5" pipe"}}', Unreadable, ""),
        ('{"path": "p", "body": "say "x" now", "extra": "y"}', Unreadable, ""),  # an invented key, or text
        ("{path: p.md, body: hello}", {"path": "p.md", "body": "hello"}, "loose"),
        ("{path: p.md, body: hello, other: x}", Unreadable, ""),
        ("[{arguments: {path: p.md, other: x}}]", Unreadable, ""),
    ],
)
def test_parameter_names_decide_where_quotes_do_not(text: str, value: Any, strategy: str) -> None:
    assert read(text, **NOTE) == value
    if value is not Unreadable:
        assert load(text, **NOTE).strategy == strategy


def test_a_tool_that_takes_no_other_keys_makes_an_unknown_key_text() -> None:
    text = '{"path": "p", "body": "say "x" now", "extra": "y"}'
    loaded = load(text, **{**NOTE, "closed": True})
    assert loaded.value == {"path": "p", "body": 'say "x" now", "extra": "y'}
    assert loaded.strategy == "anchored"


def test_strict_json_of_any_kind_is_returned_as_it_is() -> None:
    for text in ("3", '"x"', "null", "[1, 2]", ' {"a": "\\ud800"} '):
        assert load(text) == Loaded(json.loads(text))


def test_repairs_say_where_and_are_cut() -> None:
    loaded = load("{'a': {'b': [1, '" + "x" * 500 + "']}}")
    where = {(repair.kind, repair.where) for repair in loaded.repairs}
    assert where == {("key_quotes", "a"), ("key_quotes", "a.b"), ("quotes", "a.b[1]")}
    (comment,) = load('{"a": 1 /*' + "x" * 500 + "*/}").repairs
    assert len(comment.before) == MAX_REPAIR_TEXT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": "}"}', True),
        (" [1, {}] ", True),
        ("{'a', b}", True),
        ('{"a": "}', False),
        ("{]", False),
        ("[1", False),
        ("{}}", False),
        ("", False),
        ("3", False),
        ("{} {}", False),
    ],
)
def test_completeness_is_a_matter_of_structure(text: str, expected: bool) -> None:
    assert complete(text) is expected


def test_depth_is_limited_before_anything_recurses() -> None:
    assert load("[" * MAX_DEPTH + "]" * MAX_DEPTH).strategy == "clean"
    for text in (
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        '{"a":' * 200_000,
        "[" * 1_000_000,
        '{"a": [' * 70 + ",",
    ):
        with pytest.raises(Unreadable, match="nested deeper than 64 levels"):
            load(text)
    assert load('["' + "[" * 500 + '"]').value == ["[" * 500]
    assert load('["' + "[" * 500 + '",]').value == ["[" * 500]
    assert read("[[1]]", max_depth=1) is Unreadable
    assert read("{{[1]}}", max_depth=1) is Unreadable


# Generated objects, damaged in one way: the value comes back exactly, or not at all.

WORDS = st.text(alphabet="abz 09.,:{}[]()<>/#-_=+*é“’\n", max_size=12)
QUOTED = st.lists(WORDS, min_size=1, max_size=3).map(lambda words: ' "q" '.join(f"w{word}w" for word in words))
KEYS = st.sampled_from(["path", "body", "mode", "days", "deep", "a_b", "x1"])
SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
VALUES = st.recursive(
    SCALARS | WORDS | QUOTED, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=6
)
OBJECTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)
INDENTS = st.sampled_from([None, 1])


def dump(value: Any, indent: int | None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def outside(text: str, pattern: str, new: str | Callable[[re.Match[str]], str]) -> str:
    """Replace a pattern outside strings."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(part if i % 2 else re.sub(pattern, new, part) for i, part in enumerate(parts))


def every_string(text: str, change: Callable[[str], str]) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: change(found[0]), text)


DAMAGE: dict[str, Callable[[str, Any], str]] = {
    "raw_controls": lambda text, value: every_string(text, lambda s: s.replace("\\n", "\n")),
    "trailing_commas": lambda text, value: outside(text, r"(?<=[\w\"\]} ])(\s*[}\]])", r",\1"),
    "last_trailing_comma": lambda text, value: text[:-1] + ",}",
    "python": lambda text, value: repr(value),
    "literals": lambda text, value: outside(
        text, r"true|false|null", lambda m: {"t": "True", "f": "False", "n": "None"}[m[0][0]]
    ),
    "bare_keys": lambda text, value: re.sub(r'(?<=[{,])(\s*)"(\w+)"(?=:)', r"\1\2", text),
    "single_quotes": lambda text, value: every_string(text, lambda s: "'" + s[1:-1].replace('\\"', '"') + "'"),
    "curly_quotes": lambda text, value: every_string(text, lambda s: "“" + s[1:-1].replace('\\"', '"') + "”"),
    "inner_quotes": lambda text, value: every_string(text, lambda s: s.replace('\\"', '"')),
    "inner_and_raw": lambda text, value: every_string(text, lambda s: s.replace('\\"', '"').replace("\\n", "\n")),
    "missing_closers": lambda text, value: (
        re.sub(r"[}\]\s]+\Z", "", text) if re.search(r'[\w"]\s*[}\]\s]+\Z', text) else text
    ),
    "one_closer_less": lambda text, value: text[:-1],
    "surplus_closers": lambda text, value: text + "}}",
    "missing_commas": lambda text, value: outside(text, r",", " "),
    "comments": lambda text, value: outside(text, r",\s*", ", // why\n"),
    "fence": lambda text, value: f"```json\n{text}\n```",
    "braces": lambda text, value: "{{" + text + "}}",
    "leak": lambda text, value: outside(text, r",", ",<T>") + "<T>",
    "escaped": lambda text, value: json.dumps(text, ensure_ascii=False)[1:-1],
    "stray_escape": lambda text, value: outside(text, r"[:,]\s*", lambda m: m[0] + "\\n"),
    "bare_values": lambda text, value: re.sub(r'(?<=: )"([a-z]+)"', r"\1", text),
    "first_quote_lost": lambda text, value: text.replace('"', "", 1),
    "last_quote_lost": lambda text, value: "".join(text.rsplit('"', 1)),
}
# These are not mended, or not always.
HOPELESS = {"first_quote_lost", "last_quote_lost", "missing_commas"}


def same(left: Any, right: Any) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@pytest.mark.parametrize("damage", sorted(DAMAGE))
@given(value=OBJECTS, indent=INDENTS, known=st.booleans())
def test_a_damaged_object_comes_back_exactly_or_not_at_all(
    damage: str, value: dict[str, Any], indent: int | None, known: bool
) -> None:
    text = DAMAGE[damage](dump(value, indent), value)
    found = read(text, markers=("<T>",), keys=tuple(value) if known else ())
    assert found is Unreadable or same(found, value), text


@pytest.mark.parametrize("damage", sorted(set(DAMAGE) - HOPELESS))
def test_ordinary_damage_is_mended(damage: str) -> None:
    value = {
        "path": "notes/a.md",
        "body": 'say "q" and\n go',
        "days": 3,
        "deep": {"on": True, "off": None, "list": ["x", 1.5]},
    }
    for indent in (None, 1):
        assert read(DAMAGE[damage](dump(value, indent), value), markers=("<T>",)) == value


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *strings(item))]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


@given(value=OBJECTS, indent=INDENTS, at=st.integers(0, 400))
def test_a_cut_object_never_gains_a_string(value: dict[str, Any], indent: int | None, at: int) -> None:
    text = dump(value, indent)
    found = read(text[: at % len(text)])
    assert found is Unreadable or set(strings(found)) <= set(strings(value))


@given(
    value=OBJECTS,
    damage=st.sampled_from(
        ["trailing_commas", "bare_keys", "surplus_closers", "comments", "fence", "leak", "literals"]
    ),
)
def test_strings_that_are_whole_stay_as_they_are(value: dict[str, Any], damage: str) -> None:
    text = DAMAGE[damage](dump({**value, "tail": "kept\n "}, None), value)
    found = read(text, markers=("<T>",))
    assert found is not Unreadable
    assert strings(found) == strings({**value, "tail": "kept\n "})


@given(raw=WORDS, value=OBJECTS)
def test_a_damaged_string_changes_no_other(raw: str, value: dict[str, Any]) -> None:
    text = dump({**value, "bad": "@"}, None).replace(
        '"@"', json.dumps(f"f({raw})", ensure_ascii=False).replace("f(", 'f("q" \\d ')
    )
    found = read(text)
    assert found is not Unreadable
    assert {**found, "bad": ""} == {**value, "bad": ""}


@given(text=st.text(alphabet=st.sampled_from(list("{}[]\"'“”’:,\\/*#\n a1-.eTN`<>")), max_size=60))
def test_no_text_raises_anything_but_unreadable(text: str) -> None:
    for one in (text, '{"a": "' + text, '{"a": "' + text + '"}', "{'a': '" + text + "'}", "[" + text + "]"):
        found = read(one, keys=("a", "b"), required=("a",), markers=("<T>",), quote_tokens=("<Q>",))
        try:
            strict = json.loads(one, parse_constant=lambda word: 1 / 0)
        except (ValueError, ZeroDivisionError):
            assert found is Unreadable or isinstance(found, dict | list)
        else:
            assert found == strict
        complete(one)


@given(value=OBJECTS)
def test_strict_json_is_never_touched(value: dict[str, Any]) -> None:
    assert load(dump(value, None), keys=("path",), closed=True) == Loaded(value)


# Time. Units are repeated to 8, 16 and 32 kB, bare and inside a value.

UNITS = [
    "[",
    "{",
    '{"a":',
    '["',
    '{"',
    "(",
    '{""',
    "a",
    "ab ",
    '\\"',
    '",',
    '"k", ',
    "\"'",
    "'",
    "9",
    ",",
    "}",
    " ",
    "1 ",
    "“",
    "“a”,",
    "’",
    '{"a": 1}',
    "// x\n",
    '";\\',
    '"k":"v"\n#(',
    "/*",
    "#",
    "```",
    "\n",
    "\\",
    '"""',
    '"a"',
    "”]`{1",
    "null(}]{",
    "true{\\]",
    '": "',
    '", "path": ',
    "<T>",
    "<Q>",
    "null,",
    '"x" y, ',
    "'''",
]
SHAPES = [
    ("", ""),
    ("[", "]"),
    ('{"a": ', "}"),
    ('{"a": "', '"}'),
    ("{'a': '", "'}"),
    ('{"path": "p", "body": "x "y" ', '"}'),
    ("[“", "”]"),
]


def tried(text: str) -> None:
    read(text, keys=("path", "body"), required=("path",), envelope=ENVELOPE, markers=("<T>",), quote_tokens=("<Q>",))


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_text_costs_time_in_proportion(unit: str) -> None:
    for before, after in SHAPES:

        def hostile(size: int, before: str = before, after: str = after) -> str:
            return before + unit * (size // len(unit)) + after

        assert_linear(lambda size: lambda: tried(hostile(size)), f"{before}{unit!r}{after}", sizes=(8_000,))


def test_meter_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """json_repair reads the text through ``__getitem__``, so the meter bounds what it does."""
    from json_repair import repair_json

    text = "[" + '"' * 400 + "]"
    left = [REPAIR_READS * len(text)]
    with pytest.raises(repair_module._Spent):
        repair_json(Metered(text, left), return_objects=True, skip_json_loads=True)
    assert left[0] < 0
    spent: list[int] = []

    class Counted(Metered):
        def _pay(self, reads: int) -> None:
            spent.append(reads)
            super()._pay(reads)

    monkeypatch.setattr(repair_module, "Metered", Counted)
    assert read("{" + "a" * 20_000 + ": b}") is Unreadable or sum(spent) <= REPAIR_READS * 20_006 + 20_006
    assert spent
    del spent[:]
    assert read("{a: " + "b" * MAX_REPAIR + "}") is Unreadable
    assert not spent


def test_meter_follows_what_is_cut_from_it() -> None:
    left = [1000]
    text = Metered("abc", left)
    pieces = [text[:2], text + "d", "d" + text]
    assert pieces == ["ab", "abcd", "dabc"]
    assert all(isinstance(piece, Metered) and piece.left is left for piece in pieces)
    assert ("".join(text), text[0], text.find("c")) == ("abc", "a", 2)
    assert left[0] == 1000 - 8


def test_realistic_faults_stay_within_the_meter() -> None:
    record = "{name: write, when: some day, count: 3, "
    for size in (1_000, 8_000, 30_000):
        text = record + "body: " + "some words of text " * (size // 20) + "end}"
        assert load(text).strategy == "loose"


def test_every_inner_repeat_is_possessive_or_bounded() -> None:
    codes: Any = importlib.import_module("re._constants")
    parser: Any = importlib.import_module("re._parser")

    def repeats(tree: Any, inside: bool) -> list[Any]:
        found = []
        for code, argument in tree:
            if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
                if inside and argument[1] > 512:
                    found.append(argument)
                found += repeats(argument[2], True)
            elif code is codes.POSSESSIVE_REPEAT:
                found += repeats(argument[2], True)
            elif code is codes.BRANCH:
                found += [one for branch in argument[1] for one in repeats(branch, inside)]
            elif code is codes.SUBPATTERN:
                found += repeats(argument[3], inside)
        return found

    patterns = [value for module in (repair_module, jsonfix) for value in vars(module).values()]
    patterns = [
        one
        for value in patterns
        for one in (value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value])
    ]
    compiled = [one for one in patterns if isinstance(one, re.Pattern)]
    assert len(compiled) > 20
    assert [one.pattern for one in compiled if repeats(parser.parse(one.pattern), False)] == []


def test_records_are_ordinary_values() -> None:
    assert load("[1,]").repairs == (Repair("trailing_comma", "", ",", "", (2, 3)),)
    assert jsonfix.fix("[1,]").text == "[1]"


def test_raw_controls_of_a_body_too_large_for_the_walk_are_told() -> None:
    line = "a\tb\n" * 10
    for count in (3_000, 30_000):  # each by itself, and above a number each string with some as one edit
        body = (
            json.dumps({"keep": "x" * MAX_PYTHON, "body": line * (count // 20)})
            .replace("\\n", "\n")
            .replace("\\t", "\t")
        )
        loaded = load(body)
        assert loaded.value["body"] == line * (count // 20)
        assert {edit.kind for edit in loaded.edits} == {"control_characters"}
        assert json.loads(applied(body, loaded.edits)) == loaded.value
        assert (len(loaded.edits) == 1) == (count > 20_000)


def test_a_literal_with_raw_controls_behind_it_is_no_object() -> None:
    with pytest.raises(Unreadable):
        load('"a\nb"')
