"""What repair recovers and what it gets wrong: ``python -m benchmarks.repairs [--calls 40] [--write]``.

Generated calls are damaged in one way each, as models do it, and read back. *Recovered* is a call that equals the
original, *wrong* one that is accepted and does not. Beside streamscrub stand ``json_repair`` alone and a JSON5 reader,
each with a check that the result has an offered name and an object. ``--write`` puts the table into docs/repairs.md.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from streamscrub import Tool, scrub

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "repairs.md"
SEED: Final = 20
STRING: Final = {"type": "string"}
TOOLS: Final = (
    Tool(
        "write_file",
        {
            "type": "object",
            "properties": {
                "path": STRING,
                "body": STRING,
                "overwrite": {"type": "boolean"},
                "mode": {"type": "integer"},
            },
            "required": ["path", "body"],
        },
    ),
    Tool(
        "search",
        {
            "type": "object",
            "properties": {
                "query": STRING,
                "limit": {"type": "integer"},
                "tags": {"type": "array", "items": STRING},
                "filters": {
                    "type": "object",
                    "properties": {"since": STRING, "exact": {"type": "boolean"}, "score": {"type": "number"}},
                },
            },
            "required": ["query"],
        },
    ),
    Tool(
        "plan_trip",
        {
            "type": "object",
            "properties": {
                "start": STRING,
                "stops": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"place": STRING, "nights": {"type": "integer"}}},
                },
                "budget": {"type": "number"},
                "notes": {"type": ["string", "null"]},
            },
            "required": ["start", "stops"],
        },
    ),
)
WORDS: Final = ("tide", "Möwe", "dry", "harbour", "net", "salt", "rope", "evening", "北", "low", "true", "12", "end")
CODE: Final = (
    'print("low tide")\n',
    'def f(x):\n\tif x == "a":\n\t\treturn {"k": [1, 2]}\n',
    "# notes\n\n- it's dry\n- 5 < 6, maybe\n",
    'port = env.get("PORT", "8080")\n',
    '<p class="x">net</p>\n<br/>\n',
    "echo 'a' | grep -E '^\\d+$' > C:\\work\\out.txt\n",
    "select *\n  from t -- all\n",
)

Call: TypeAlias = dict[str, Any]
Draw: TypeAlias = random.Random


def words(draw: Draw, most: int = 4) -> str:
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, most)))


def said(draw: Draw) -> str:
    return draw.choice((words(draw), f'she said "{words(draw, 2)}" at {words(draw, 1)}', f"it's {words(draw, 2)}"))


def some(draw: Draw, **members: Any) -> dict[str, Any]:
    return {key: value for key, value in members.items() if draw.random() < 0.7}


def call(draw: Draw) -> Call:
    """One call of one of the tools."""
    kind = draw.randrange(3)
    if kind == 0:
        path = draw.choice(("notes/", "C:\\work\\docs\\", "~/src/")) + draw.choice(("a.md", "tide.py", "x y.txt"))
        body = "".join(draw.choice(CODE) for _ in range(draw.randint(1, 3)))
        more = some(draw, overwrite=draw.random() < 0.5, mode=draw.randint(0, 999))
        return {"name": "write_file", "arguments": {"path": path, "body": body, **more}}
    if kind == 1:
        filters = some(draw, since="2026-01-05", exact=draw.random() < 0.5, score=draw.randint(-90, 90) / 8)
        more = some(draw, limit=draw.randint(1, 50), tags=[words(draw, 2) for _ in range(3)], filters=filters)
        return {"name": "search", "arguments": {"query": said(draw), **more}}
    stops = [{"place": words(draw, 2), "nights": draw.randint(1, 9)} for _ in range(draw.randint(1, 3))]
    more = some(draw, budget=draw.randint(10, 9000) / 4, notes=draw.choice((None, said(draw), CODE[2])))
    return {"name": "plan_trip", "arguments": {"start": words(draw, 2), "stops": stops, **more}}


# Damage. Each takes the call and its JSON text, and gives the text of the body.

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def strings(text: str, change: Callable[[str], str]) -> str:
    return _STRING.sub(lambda found: change(found[0]), text)


def outside(text: str, pattern: str, new: str | Callable[[re.Match[str]], str]) -> str:
    """Replace a pattern outside strings."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(part if index % 2 else re.sub(pattern, new, part) for index, part in enumerate(parts))


def one(draw: Draw, text: str, pattern: str, new: str | Callable[[re.Match[str]], str]) -> str:
    """Replace one match of a pattern outside strings."""
    inside = [range(found.start(), found.end()) for found in _STRING.finditer(text)]
    places = [found for found in re.finditer(pattern, text) if not any(found.start() in part for part in inside)]
    if not places:
        return text
    found = draw.choice(places)
    return text[: found.start()] + (new if isinstance(new, str) else new(found)) + text[found.end() :]


def values(text: str, change: Callable[[str], str]) -> str:
    """Change the strings that are no keys."""
    return re.sub(r'("(?:[^"\\]|\\.)*")(\s*:)?', lambda found: found[0] if found[2] else change(found[1]), text)


def unescaped(*letters: str) -> Callable[[str], str]:
    """Take the backslash from before some of the escapes, so that newlines, tabs and quotes stand as they are."""
    raw = {"n": "\n", "t": "\t", '"': '"'}
    return lambda string: re.sub(r"\\(.)", lambda found: raw[found[1]] if found[1] in letters else found[0], string)


def quoted(quote: str, close: str) -> Callable[[str], str]:
    return lambda string: quote + string[1:-1].replace('\\"', '"').replace(close, "\\" + close) + close


def lone(text: str) -> str:
    return strings(text, lambda string: string.replace("\\\\", "\\"))


def lost(draw: Draw, text: str, characters: str) -> str:
    spots = [index for index, char in enumerate(text) if char in characters and text[index - 1] != "\\"]
    at = draw.choice(spots)
    return text[:at] + text[at + 1 :]


def string_arguments(draw: Draw, record: Call, text: str) -> str:
    inner = outside(json.dumps(record["arguments"], ensure_ascii=False), r"(?<=[\w\"\]} ])([}\]])", r",\1")
    return json.dumps({"name": record["name"], "arguments": inner}, ensure_ascii=False)


def triple(string: str) -> str:
    return f'"""{json.loads(string)}"""' if "\\n" in string and "\\\\" not in string else string


LITERALS: Final = {"true": "True", "false": "False", "null": "None"}
DAMAGE: Final[dict[str, tuple[str, Callable[[Draw, Call, str], str]]]] = {
    "trailing commas": ("`[1, 2,]`", lambda d, c, t: outside(t, r"(?<=[\w\"\]} ])([}\]])", r",\1")),
    "single quotes": ("`'a'` for every string", lambda d, c, t: strings(t, quoted("'", "'"))),
    "Python": ("`repr` of the object", lambda d, c, t: repr(c)),
    "Python literals": (
        "`True`, `None`",
        lambda d, c, t: outside(t, r"\b(?:true|false|null)\b", lambda m: LITERALS[m[0]]),
    ),
    "bare keys": (
        "`{path: …}`",
        lambda d, c, t: re.sub(r'("(?:[^"\\]|\\.)*")(?=(:)?)', lambda m: m[1][1:-1] if m[2] else m[1], t),
    ),
    "bare values": (
        '`"path": notes/a.md`',
        lambda d, c, t: values(t, lambda s: s[1:-1] if re.fullmatch(r'"[a-z][\w /.~-]*"', s) else s),
    ),
    "raw newlines": ("newlines and tabs as they are", lambda d, c, t: strings(t, unescaped("n", "t"))),
    "inner quotes": ('`"say "hi" now"`', lambda d, c, t: strings(t, unescaped('"'))),
    "inner quotes, raw newlines": (
        "both, as in unescaped code",
        lambda d, c, t: strings(t, unescaped("n", "t", '"')),
    ),
    "typographic quotes": ("`“a”`", lambda d, c, t: strings(t, quoted("“", "”"))),
    "triple quotes": ('`"""` around text with newlines', lambda d, c, t: strings(t, triple)),
    "comments": (
        "`// why`, `/* */`, `# why`",
        lambda d, c, t: outside(t, r",\s*", d.choice((", // why\n", ", /* why */ ", ", # why\n"))),
    ),
    "missing comma": ("one comma less", lambda d, c, t: one(d, json.dumps(c, ensure_ascii=False, indent=1), ",", "")),
    "doubled marks": ("`,,` or `::`", lambda d, c, t: one(d, t, "[,:]", lambda m: m[0] * 2)),
    "missing brackets": (
        "one or more at the end",
        lambda d, c, t: t[: len(t.rstrip("}]")) + d.randrange(len(t) - len(t.rstrip("}]")))],
    ),
    "surplus brackets": ("one or more at the end", lambda d, c, t: t + d.choice(("}", "]}", "}}", "]"))),
    "crossed brackets": (
        "`]` for `}` or the reverse",
        lambda d, c, t: one(d, t, r"[}\]]", lambda m: "]" if m[0] == "}" else "}"),
    ),
    "fence or tags": (
        "a fence, or `<json>` … `</json>`",
        lambda d, c, t: d.choice(
            (f"```json\n{t}\n```", f"```\n{t}\n```", f"<json>\n{t}\n</json>", f"<code>{t}</code>")
        ),
    ),
    "doubled braces": ("`{{…}}`", lambda d, c, t: "{" + t + "}"),
    "escaped once more": ('`{\\"name\\": …}`', lambda d, c, t: json.dumps(t, ensure_ascii=False)[1:-1]),
    "lone backslashes": ("`C:\\work`, `\\d+`", lambda d, c, t: lone(t)),
    "stray escapes": ("a literal `\\n` between tokens", lambda d, c, t: outside(t, r"(?<=[:,]) ", lambda m: " \\n")),
    "odd numbers": (
        "`+3`, `007`, `.5`",
        lambda d, c, t: outside(t, r"(?<= )(\d+)(?=[,}\].])", lambda m: d.choice(("+", "0", "00")) + m[1]),
    ),
    "string arguments": ("the arguments as a string, damaged inside", string_arguments),
    "lost quote": ("one quote of a string or key", lambda d, c, t: lost(d, t, '"')),
    "lost mark": ("one of `{}[],:` anywhere", lambda d, c, t: one(d, t, r"[{}\[\],:]", "")),
    "two at once": (
        "two of the above",
        lambda d, c, t: DAMAGE[d.choice(("raw newlines", "inner quotes", "Python literals", "missing brackets"))][1](
            d, c, DAMAGE[d.choice(("trailing commas", "bare keys"))][1](d, c, t)
        ),
    ),
    "cut off": ("the stream ends anywhere", lambda d, c, t: t[: d.randrange(30, len(t))]),
}


def damaged(name: str, count: int) -> Iterator[tuple[Call, str]]:
    """Calls with their damaged bodies: none is JSON any more, since what is may well mean something else."""
    draw = random.Random(f"{SEED} {name}")
    made = 0
    while made < count:
        record = call(draw)
        text = DAMAGE[name][1](draw, record, json.dumps(record, ensure_ascii=False))
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            if name != "string arguments":
                continue
        made += 1
        yield record, text


# Readers: the calls that they would run.


def with_streamscrub(text: str, closed: bool) -> list[Call]:
    found = scrub(f"<tool_call>\n{text}" + "\n</tool_call>" * closed, TOOLS).calls
    return [{"name": one.name, "arguments": one.arguments} for one in found]


def checked(value: Any) -> list[Call]:
    names = {tool.name for tool in TOOLS}
    if not isinstance(value, dict) or value.get("name") not in names:
        return []
    arguments = value.get("arguments")
    return [{"name": value["name"], "arguments": arguments}] if isinstance(arguments, dict) else []


def with_library(name: str) -> Callable[[str, bool], list[Call]]:
    """The reader that takes what ``loads`` of a library makes of the body."""

    def read(text: str, closed: bool) -> list[Call]:
        loads = import_module(name).loads
        try:
            value = loads(text)
            if isinstance(value, dict) and isinstance(value.get("arguments"), str):
                value["arguments"] = loads(value["arguments"])
        except (ValueError, RecursionError):
            return []
        return checked(value)

    return read


READERS: Final = {
    "streamscrub": with_streamscrub,
    "json_repair": with_library("json_repair"),
    "json5": with_library("json5"),
}


@dataclass(slots=True)
class Figures:
    """Of one reader in one class."""

    recovered: int = 0
    wrong: list[tuple[Call, str]] = field(default_factory=list)
    refused: list[tuple[Call, str]] = field(default_factory=list)


def measured(name: str, count: int, reader: Callable[[str, bool], list[Call]]) -> Figures:
    """One class of damage through one reader."""
    figures = Figures()
    for record, text in damaged(name, count):
        found = reader(text, name != "cut off")
        if not found:
            figures.refused.append((record, text))
        elif len(found) == 1 and json.dumps(found[0], sort_keys=True) == json.dumps(record, sort_keys=True):
            figures.recovered += 1
        else:
            figures.wrong.append((record, text))
    return figures


def table(count: int) -> str:
    """The table of the page."""
    lines = [
        "| damage | as in | streamscrub | wrong | json_repair | wrong | JSON5 | wrong |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    sums = [0] * 6
    for name, (example, _) in DAMAGE.items():
        cells = []
        for index, reader in enumerate(READERS.values()):
            figures = measured(name, count, reader)
            sums[2 * index] += figures.recovered
            sums[2 * index + 1] += len(figures.wrong)
            cells += [f"{figures.recovered / count:.0%}", str(len(figures.wrong))]
        lines.append(f"| {name} | {example} | {' | '.join(cells)} |")
    total = count * len(DAMAGE)
    cells = [str(one) if index % 2 else f"{one / total:.0%}" for index, one in enumerate(sums)]
    lines.append(f"| **all** | {total} calls | {' | '.join(f'**{cell}**' for cell in cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repairs", description="Measure what repair recovers.")
    parser.add_argument("--calls", type=int, default=40, help="for each class of damage")
    parser.add_argument("--write", action="store_true", help="put the table into docs/repairs.md")
    parser.add_argument("--show", metavar="DAMAGE", help="print what streamscrub does not recover of one class")
    options = parser.parse_args()
    if options.show:
        figures = measured(options.show, options.calls, with_streamscrub)
        for word, found in (("WRONG", figures.wrong), ("refused", figures.refused)):
            for record, text in found:
                print(word, json.dumps(record, ensure_ascii=False), text, sep="\n  ")
        return 0
    page_table = table(options.calls)
    print(page_table)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(
            re.sub(r"\| damage \| as in .*?(?=\n\n)", lambda _: page_table, page, flags=re.DOTALL), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
