"""The pages keep what they promise: their code runs, their tables are complete, their links lead somewhere."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import streamscrub
from streamscrub import Grammar, scrub
from streamscrub.bodies import BODIES
from streamscrub.cli import main
from streamscrub.console import SYNTAX
from streamscrub.dialects import dialects
from streamscrub.events import DROP_KINDS, REJECT_REASONS
from streamscrub.fileforms import _KINDS
from streamscrub.grammar import _KEYS, _MARKERS, shipped
from streamscrub.pages import _SYNTAXES, format_section, formats_page
from streamscrub.resolve import _STRATEGIES

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK: Final = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
# Calls whose first argument is the kind of a repair.
_MAKERS: Final = {"Repair", "repair", "_repair", "_note"}


def blocks(page: Path, language: str) -> list[str]:
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(code) for _, word, code in found if word == language]


PYTHON: Final = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(blocks(page, "python"), 1)
]


@pytest.mark.parametrize("code", PYTHON)
def test_a_code_block_runs(code: str) -> None:
    exec(compile(code, "block", "exec"), {"__name__": "block"})


def test_every_page_with_code_is_run() -> None:
    assert len(PYTHON) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_examples_in_docstrings_hold() -> None:
    names = [info.name for info in pkgutil.walk_packages(streamscrub.__path__, "streamscrub.")]
    results = [doctest.testmod(importlib.import_module(name)) for name in names if not name.endswith("__main__")]
    assert sum(result.attempted for result in results) >= 30
    assert sum(result.failed for result in results) == 0


# Repairs


def section_of_repairs(title: str) -> list[str]:
    """The words of the rows of a section."""
    page = (ROOT / "docs" / "repairs.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| `(\w+)` \|", page.partition(f"\n## {title}\n")[2].partition("\n## ")[0], re.MULTILINE)
    assert len(words) == len(set(words))
    return words


def table_of_repairs() -> dict[str, set[str]]:
    """Word -> what it is ("kind", "strategy")."""
    table: dict[str, set[str]] = {}
    for title, what in (("Kinds", "kind"), ("Strategies", "strategy")):
        for word in section_of_repairs(title):
            table.setdefault(word, set()).add(what)
    return table


def test_the_kinds_of_the_notation_are_those_that_the_command_counts() -> None:
    page = (ROOT / "docs" / "repairs.md").read_text(encoding="utf-8")
    first = page.partition("\nEdits of the notation:\n")[2].partition("\nChanges of the meaning")[0]
    words = set(re.findall(r"^\| `(\w+)` \|", first, re.MULTILINE))
    assert words == SYNTAX | {"fence", "wrapper", "anchored"}  # three that say more of a call than a comma does


def strings_in(node: ast.AST | None) -> Iterator[str]:
    """The string constants that a value may be: itself, or a branch of a condition."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from strings_in(node.body)
        yield from strings_in(node.orelse)
    elif isinstance(node, ast.Set | ast.Tuple):
        for item in node.elts:
            yield from strings_in(item)


def kinds_in(tree: ast.AST) -> Iterator[str]:
    """The kinds of repairs that a module makes, as far as they stand in it as literals."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            owner = getattr(getattr(node.func, "value", None), "id", "")
            if node.args and (name in _MAKERS or (name == "add" and owner == "kinds")):
                yield from strings_in(node.args[0])
        elif isinstance(node, ast.Assign):
            targets = [target for one in node.targets for target in getattr(one, "elts", [one])]
            if getattr(targets[0], "id", "") in ("kind", "kinds"):
                value = node.value.elts[0] if isinstance(node.value, ast.Tuple) else node.value
                yield from strings_in(value)


@cache
def kinds_in_the_source() -> frozenset[str]:
    found: set[str] = set()
    for name in (
        "resolve",
        "scrubber",
        "names",
        "shapes",
        "repair",
        "jsonfix",
        "bodies/*",
        "lines",
        "blocks",
        "frames",
    ):
        for path in (ROOT / "streamscrub").glob(f"{name}.py"):
            found.update(kinds_in(ast.parse(path.read_text(encoding="utf-8"))))
    return frozenset(found - {"", "number "})


def test_every_kind_in_the_source_is_in_the_table() -> None:
    kinds = {word for word, what in table_of_repairs().items() if "kind" in what}
    assert sorted(kinds_in_the_source() - kinds) == []


def test_the_search_for_kinds_finds_all_ways_of_making_one() -> None:
    assert {
        "name",
        "null_omitted",
        "trailing_comma",
        "python_literal",
        "control_characters",
        "fence",
        "missing_close",
    } <= (kinds_in_the_source())


def test_every_kind_in_the_table_is_made_somewhere() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "streamscrub").rglob("*.py"))
    assert [word for word in table_of_repairs() if f'"{word}"' not in sources] == []


def test_every_strategy_is_in_the_table() -> None:
    known = {word for word, what in table_of_repairs().items() if "strategy" in what}
    assert {"clean", "json", "loose", "anchored", "unclosed_reasoning", *(name for _, name in _STRATEGIES)} == known


def test_what_the_cases_need_is_in_the_table() -> None:
    table = table_of_repairs()
    for path in sorted((ROOT / "tests" / "cases").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            case = json.loads(line)
            if "finish_reason" not in case or "response_template" in case:
                continue
            result = scrub(case["text"], case["tools"], finish_reason=case["finish_reason"], **case.get("options", {}))
            for call in result.calls:
                assert "strategy" in table[call.strategy], (case["id"], call.strategy)
                for repair in call.repairs:
                    assert "kind" in table[repair.kind], (case["id"], repair.kind)


# Events and options


def test_all_kinds_and_reasons_are_on_the_page_of_events() -> None:
    page = (ROOT / "docs" / "events.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert set(DROP_KINDS) | set(REJECT_REASONS) <= set(rows)
    assert [word for word in rows if word in REJECT_REASONS] == list(REJECT_REASONS)


def test_all_options_are_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = streamscrub.StreamScrubber.__init__.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    assert [name for name in names if f"`{name}`" not in readme] == []


def test_all_events_are_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("Text", "Reasoning", "ToolCall", "RejectedCall", "Dropped", "CallStarted", "ArgumentsDelta"):
        assert re.search(rf"^\| .*`{name}[(`]", readme, re.MULTILINE), name


# Dialects


def test_the_page_of_dialects_says_which_have_a_mark_for_a_failed_result() -> None:
    page = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
    marked = {}
    for names, said in re.findall(r"^\| (`[^|]*`) \| .* \| (yes|no) \|$", page, re.MULTILINE):
        marked.update(dict.fromkeys(re.findall(r"`(\w+)`", names), said == "yes"))
    assert marked.keys() == dialects().keys()
    assert not marked.pop("native")
    for name in marked:
        one = dialects()[name]
        texts = [one.render_results([{"name": "x", "text": "y", "is_error": failed}]) for failed in (False, True)]
        assert marked[name] == (texts[0] != texts[1]), name


# Grammars


def test_the_families_of_the_readme_are_those_of_the_files() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    expected = [
        f"| [`{grammar.name}`](grammars/{grammar.file}) | {grammar.data['title']} |" for grammar in shipped().values()
    ]
    assert re.findall(r"^\| \[`\w+`\]\(grammars/.*$", readme, re.MULTILINE) == expected


def test_the_page_of_formats_is_that_of_the_files() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert page == formats_page(), "a grammar file has changed: run make formats"


def test_the_page_of_formats_leads_to_the_file_that_owns_an_envelope_and_to_each_file() -> None:
    page = formats_page()
    assert "in [`tool_call`](#tool_call)" in page
    assert "](#hunyuan)" not in page.split("\n## ", 1)[1]
    assert all(f"(../grammars/{grammar.file})" in page for grammar in shipped().values())


def test_every_body_syntax_has_words_on_the_page_of_formats() -> None:
    assert set(_SYNTAXES) == set(BODIES)


def test_the_section_of_a_format_holds_whatever_its_markers_are() -> None:
    grammar = Grammar("odd", {
        "name": "odd",
        "envelope": [{"name": "odd", "open": ["```odd\n", "`", " x"], "close": ["``"]}],
        "example": [{"title": "a fence", "text": "````odd\n{}\n````", "rejected": ["malformed"], "visible": "`"}],
    })  # fmt: skip
    section = format_section(grammar)
    assert "- **A call opens with:** ` ```odd\\n `, `` ` ``, `  x `" in section
    assert "- **A call closes with:** ` `` `" in section
    assert "A fence:\n\n`````text\n````odd\n{}\n````\n`````\n" in section
    assert section.endswith(
        "\nTested:\n\n- a fence: ` ````odd\\n{}\\n```` ` gives a call rejected as malformed and the text `` ` ``\n"
    )
    assert format_section(Grammar("bare", {"name": "bare"})) == "## `bare`\n\n\n\n"


def test_every_key_of_a_grammar_file_is_described() -> None:
    page = (ROOT / "docs" / "grammar-files.md").read_text(encoding="utf-8")
    assert [key for keys in _KEYS.values() for key in sorted(keys) if not re.search(rf"\b{key}\b", page)] == []


def test_every_body_syntax_is_a_row_with_its_settings_and_its_table() -> None:
    page = (ROOT / "docs" / "grammar-files.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.* \|.*\|.*) \|$", page, re.MULTILINE))
    assert rows.keys() >= BODIES.keys()
    for name, body in BODIES.items():
        assert [key for key in body.settings if f"`{key}`" not in rows[name]] == [], name
        assert f"[[{body.table}]]" in rows[name] or not body.table
        assert ("no `[[body]]`" in rows[name]) == body.tabled


def test_the_grammars_of_the_page_pass_their_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "docs" / "grammar-files.md"
    path = tmp_path / "my.toml"
    names = []
    for code in blocks(page, "toml"):
        path.write_text(code, encoding="utf-8")
        assert main(["check", str(path)]) == 0, capsys.readouterr().out
        names.append(Grammar.load(path).name)
        if names == ["mine"]:
            assert capsys.readouterr().out in page.read_text(encoding="utf-8").replace("\n   ", "\n")
    assert names == ["mine", "header", "tagged", "paired", "framed", "lined"]


def test_the_kinds_of_values_on_the_page_are_those_that_are_asked_for() -> None:
    page = (ROOT / "docs" / "grammar-files.md").read_text(encoding="utf-8")
    kinds = {
        "a list of strings, also for one": "a list of strings", "a list of pairs of strings": "", "a table": "a table",
        "true or false": "true or false", "a whole number": "a whole number",
    }  # fmt: skip
    rows = dict(re.findall(r"^\| ([a-z ,]+) \| (.*) \|$", page.partition("\n## Sections\n")[2], re.MULTILINE))
    assert kinds.keys() <= rows.keys()
    listed = {key: kinds[kind] for kind in kinds for key in re.findall(r"`(\w+)`", rows[kind].partition(";")[0])}
    assert {key: _KINDS.get(key, kind) for key, kind in listed.items()} == listed
    markers = {key for keys in _KEYS.values() for key in keys if key in _MARKERS or key.endswith(("_open", "_close"))}
    assert markers <= listed.keys()


ENVELOPE: Final = '[[envelope]]\nname = "x"\nopen = ["<<call>>"]\nclose = ["<</call>>"]\n'
BODY: Final = ENVELOPE + '[[body]]\nenvelope = ["x"]\n'
# The shapes of the table on the page, and what it says to write.
SHAPES: Final = {
    '<<call>>{"name": "find", "arguments": {"q": "rook"}}<</call>>': BODY + 'syntax = "json_call"',
    '<<call>>find<<args>>{"q": "rook"}<</call>>': ENVELOPE
    + 'headers = ["{name}<<args>>"]\nseparators = ["<<args>>"]\n'
    + '[[body]]\nenvelope = ["x"]\nsyntax = "json_arguments"\nheaded = true',
    '<my:invoke name="find"><my:arg name="q">rook</my:arg></my:invoke>': '[[tags]]\nsigils = [["<my:", "</my:"]]\n'
    + 'call = ["invoke"]\nkey = [{ name = "arg" }]',
    "<<call>>find<key>q</key><value>rook</value><</call>>": ENVELOPE
    + '[[pairs]]\nenvelope = ["x"]\nkey_open = ["<key>"]\nkey_close = ["</key>"]\n'
    + 'value_open = ["<value>"]\nvalue_close = ["</value>"]',
    '<<call>>[find(q="rook"), ping()]<</call>>': BODY + 'syntax = "python_call"',
    '<<call>>find{q:"rook"}<</call>>': BODY + 'syntax = "loose_object"',
}


@pytest.mark.parametrize("text", SHAPES)
def test_the_shapes_of_the_page_are_read_as_it_says(text: str) -> None:
    assert f"| `{text}` |" in (ROOT / "docs" / "grammar-files.md").read_text(encoding="utf-8")
    grammar = Grammar.parse(f'name = "x"\n{SHAPES[text]}'.encode(), "x.toml")
    choices: list[list[str | Path | Grammar]] = [[grammar], [grammar, *shipped()]]
    for grammars in choices:
        result = scrub(text, grammars=grammars)
        assert (result.calls[0].name, result.calls[0].arguments) == ("find", {"q": "rook"})
        assert (result.text, result.rejected) == ("", [])


VERBS: Final = ("scrub", "parse", "explain", "grammars", "check", "render", "convert", "replay", "tally", "demo")


def test_every_verb_and_option_is_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for verb in VERBS:
        main([verb, "--help"])
        for option in re.findall(r"--[a-z-]+", capsys.readouterr().out):
            assert option in page or option == "--help", (verb, option)


def test_every_verb_is_a_row_of_the_page_and_an_example_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    assert f"{{{','.join(VERBS)}}}" in capsys.readouterr().out
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)[: len(VERBS)] == list(VERBS)
    assert [verb for verb in VERBS if f"streamscrub {verb}" not in readme] == []


def test_the_line_of_a_call_on_the_page_is_what_is_written(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^A line of the calls, here of `(.*)`:$", page, re.MULTILINE)
    (line,) = blocks(ROOT / "docs" / "cli.md", "json")
    reply, calls, tools = (tmp_path / name for name in ("reply", "calls", "tools"))
    reply.write_text(text, encoding="utf-8")
    tools.write_text('[{"name": "find", "parameters": {"properties": {"q": {"type": "string"}}}}]', encoding="utf-8")
    assert main(["scrub", str(reply), "--tools", str(tools), "--calls", str(calls)]) == 0
    assert calls.read_text(encoding="utf-8") == line
