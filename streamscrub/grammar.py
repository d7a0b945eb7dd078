"""Grammar files: TOML -> checked, frozen ``Grammar``, and where the files are found.

A file is literals, forms and examples. Its keys are a closed list, and a key must serve two grammars or go.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from .fileforms import nearest, wrong_values
from .modelids import spellings

if TYPE_CHECKING:
    from pathlib import Path

    from .templates import Owners

_MAX_FILE: Final = 256 * 1024  # bytes of one grammar file; ours are under 10 kB
_MAX_TOKENIZER: Final = 8 * 1024 * 1024  # bytes of a tokenizer's configuration, which lists its added tokens
_MAX_LITERAL: Final = 64  # bytes of one marker
# Where the part of a shipped file begins that reading does not need.
_REST: Final = re.compile(rb"^\[(?:render|wording|\[(?:dialect|example)\])\]", re.MULTILINE)
_VARYING: Final = re.compile(r"\{(?:suffix|blanks)\}")

# The keys of a chat template, which a dialect may have twice.
_TRANSCRIPT: Final = (
    "start default system user assistant opening resumed end thinking unthought unthought_last text preamble calls "
    "results results_last recent trimmed unlined"
)
# The keys of a file, section by section. Unknown keys are errors that name the nearest known one.
_KEYS: Final[dict[str, frozenset[str]]] = {
    section: frozenset(keys.split())
    for section, keys in {
        "": "name models source title needs always envelope body section tags pairs reasoning control "
        "answer turn result frame line fence elements render dialect wording example",
        "envelope": "name open close special attributes headers separators chains fenced from_last demand "
        "unclosed shared",
        "body": "envelope syntax order named headed behind headers separators settings quotes",
        "section": "open close special",
        "tags": "of syntax sigils call key wrapper special spelling entities verbatim escaped tag_end",
        "tags.key": "name newline entities",
        "pairs": "of envelope order headed newline repeats key_open key_close value_open value_close separator "
        "type_open type_close",
        "reasoning": "open close special label ends resumes needs_model opened_for begins",
        "control": "tokens after_markup",
        "answer": "open close special",
        "turn": "open own",
        "result": "open close special after_call",
        "frame": "of bodies type start channel message ends constrain roles prefix route",
        "frame.route": "channel recipient to",
        "line": "syntax start then others order",
        "fence": "languages envelope reads",
        "elements": "reserved",
        "render": "call calls body join form",
        "dialect": "name title aliases models model prefix id body call calls several join form fallback result error "
        "results between replayed literal escape thinking demoted transcript exact catalogue section format rules",
        "dialect.fallback": "call body form",
        "dialect.transcript": _TRANSCRIPT,
        "dialect.exact": "source call calls form join id result error results between replayed literal quoted "
        "thinking spaced sorted transcript",
        "dialect.exact.transcript": _TRANSCRIPT,
        "wording": "heading intro catalogue guide parallel reading private rules catalogue_rules section protocol "
        "block block_line signature native required forced continuation envelope "
        "examples example",
        "example": "title text calls rejected visible reasoning finish tools options repaired",
    }.items()
}
_LISTS: Final = frozenset(
    [
        "answer",
        "envelope",
        "body",
        "section",
        "tags",
        "pairs",
        "reasoning",
        "result",
        "line",
        "fence",
        "dialect",
        "example",
    ]
)
# Keys whose values are markers.
_MARKERS: Final = frozenset(
    ["open", "close", "own", "tokens", "after_markup", "ends", "separators", "separator", "tag_end"]
)
# And those whose values are words of markers, in their sections.
_WORDS: Final = frozenset(
    [
        "tags.call",
        "tags.wrapper",
        "frame.start",
        "frame.channel",
        "frame.message",
        "frame.constrain",
        "body.quotes",
        "body.behind",
    ]
)


class GrammarError(ValueError):
    """A grammar file is wrong. The message names the file, the key and, for an unknown key, the nearest known one."""

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")
        self.file = file
        self.key = key


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """One wire grammar, as its file states it. ``file`` is where it came from.

    ``reads`` is what reading needs of it, ``rest`` the text that is not looked at before it is asked for: how calls are
    written, and the worked examples.
    """

    name: str
    reads: Mapping[str, Any] = field(repr=False)
    file: str = ""
    rest: bytes = field(default=b"", repr=False)
    _whole: list[Mapping[str, Any]] = field(default_factory=list, init=False, repr=False)  # both, once asked for

    @classmethod
    def load(cls, path: str | Path) -> Grammar:
        """Read a TOML grammar file, or the ``response_template`` in a JSON file such as ``tokenizer_config.json``.

        Raises ``GrammarError`` (a ``ValueError``) that names the file and the key.
        """
        try:
            with open(path, "rb") as file:
                raw = file.read()
        except OSError as error:
            hint = f"; it is the name of a shipped grammar, as in grammars=[{path!r}]" if path in shipped() else ""
            raise GrammarError(str(path), "", f"cannot be read: {error.strerror}{hint}") from None
        name = os.path.basename(path)
        return cls._of_tokenizer(raw, name) if name.endswith(".json") else cls.parse(raw, name)

    @classmethod
    def parse(cls, raw: bytes, file: str) -> Grammar:
        """Check the content of a grammar file, in bytes. Raises ``GrammarError``."""
        if not isinstance(raw, bytes):
            raise TypeError(f"the content of a grammar file is bytes, not {type(raw).__name__}")
        if len(raw) > _MAX_FILE:
            raise GrammarError(file, "", f"larger than {_MAX_FILE} bytes")
        data = _content(raw, file)
        _check(data, file)
        return cls(data["name"], data, file)

    @classmethod
    def from_response_template(cls, template: Mapping[str, Any], name: str = "response_template") -> Grammar:
        """Compile the ``response_template`` of a tokenizer. Raises ``GrammarError`` for what has no linear reading.

        ``name`` is what ``ToolCall.grammar`` says. The markers that shipped grammars own come with those grammars.
        """
        if not isinstance(name, str) or not name:
            raise TypeError("the name of a grammar is a string that is not empty")
        return cls._of_template(template, name, name)

    def to_response_template(self, start_anchor: str | Iterable[str] = ()) -> dict[str, Any]:
        """This grammar as a ``response_template``, in the one form in which it writes its calls.

        ``start_anchor`` are the literals before the model's turn, where the grammar does not state them. Raises
        ``GrammarError`` with the reason for a grammar that a template cannot express.
        """
        from .templates import Unfit, compile_template, write_template

        anchors = [start_anchor] if isinstance(start_anchor, str) else list(start_anchor)
        needed = [one.data for one in with_needed((self,)) if one.name != self.name and not one.reads.get("always")]
        try:
            template = write_template(self.data, needed, anchors)
            compile_template(template, self.name, _owners())
        except Unfit as error:
            raise GrammarError(self.file or self.name, error.key, error.problem) from None
        return template

    @classmethod
    def _of_template(cls, template: Any, name: str, file: str) -> Grammar:
        from .templates import Unfit, compile_template

        if name in shipped():
            raise GrammarError(file, "name", f"{name!r} is the name of a shipped grammar")
        try:
            data = compile_template(template, name, _owners())
        except Unfit as error:
            raise GrammarError(file, error.key, error.problem) from None
        _check(data, file)
        return cls(name, data, file)

    @classmethod
    def _of_tokenizer(cls, raw: bytes, file: str) -> Grammar:
        if len(raw) > _MAX_TOKENIZER:
            raise GrammarError(file, "", f"larger than {_MAX_TOKENIZER} bytes")
        try:
            content = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise GrammarError(file, "", f"is no JSON: {error}") from None
        template = content.get("response_template") if isinstance(content, dict) else None
        if template is None and isinstance(content, dict) and "fields" in content:
            template = content
        if template is None:
            older = isinstance(content, dict) and "response_schema" in content
            hint = "; response_schema is an older format that is not read" if older else ""
            raise GrammarError(file, "response_template", f"is not there{hint}")
        return cls._of_template(template, "response_template", file)

    @property
    def data(self) -> Mapping[str, Any]:
        """The whole content of the file."""
        if not self._whole:
            self._whole.append({**self.reads, **_content(self.rest, self.file)} if self.rest else self.reads)
        return self._whole[0]

    @property
    def models(self) -> tuple[str, ...]:
        """Patterns of the model ids that speak this grammar, in shell-style globs."""
        return tuple(self.reads.get("models", ()))

    def speaks(self, model: str) -> bool:
        """Does one of the patterns match this model id, in any case, with or without its provider and suffixes?"""
        return _matches(self.models, model)

    def opens(self, model: str) -> bool:
        """Does the prompt of this model always open one of the grammar's reasoning sections?"""
        return self.opening(model) is not None

    def opening(self, model: str) -> tuple[str, str] | None:
        """The pattern by which the prompt of this model always opens a reasoning section, and the closer of that."""
        for one in self.reads.get("reasoning", ()):
            for pattern in one.get("opened_for", ()):
                if _matches([pattern], model):
                    return pattern, next(iter(one["close"]), "")
        return None

    @property
    def examples(self) -> list[dict[str, Any]]:
        """The worked examples of the file."""
        return list(self.data.get("example", ()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_grammar, (self.name, dict(self.reads), self.file, self.rest))


def _matches(patterns: Iterable[str], model: str) -> bool:
    names = spellings(model)
    return any(fnmatchcase(name, pattern.lower()) for pattern in patterns for name in names)


def _grammar(name: str, reads: dict[str, Any], file: str, rest: bytes) -> Grammar:
    return Grammar(name, reads, file, rest)


def _content(raw: bytes, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise GrammarError(file, "", f"is no TOML: {error}") from None


@cache
def _owners() -> Owners:
    from .templates import Owners

    return Owners.of({name: grammar.data for name, grammar in shipped().items()})


# -- checking


def _check(data: dict[str, Any], file: str) -> None:
    if not isinstance(data.get("name"), str) or not data["name"]:
        raise GrammarError(file, "name", "is missing or no string")
    _keys(data, "", file, "")
    for section, content in data.items():
        if section in _LISTS:
            if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
                raise GrammarError(file, section, f"must be a list of tables: [[{section}]]")
            for item in content:
                _section(item, section, file)
        elif section in _KEYS:
            if not isinstance(content, dict):
                raise GrammarError(file, section, f"must be a table: [{section}]")
            _section(content, section, file)
    for key in ("models", "needs"):
        _strings(data.get(key, []), key, file, longest=200)
    for key, problem in wrong_values(data):
        raise GrammarError(file, key, problem)


def _section(item: dict[str, Any], section: str, file: str) -> None:
    _keys(item, section, file, section)
    for key, value in item.items():
        below = f"{section}.{key}"
        if below in _KEYS and below.startswith("dialect."):
            if not isinstance(value, dict):
                raise GrammarError(file, below, f"must be a table: [{below}]")
            _section(value, below, file)
        elif below in _KEYS:
            if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
                raise GrammarError(file, below, f"must be a list of tables: [[{below}]]")
            for one in value:
                _keys(one, below, file, below)
        elif key == "opened_for":
            _strings(value, below, file, longest=200)
        elif key in _MARKERS or key.endswith(("_open", "_close")) or below in _WORDS:
            _strings(value, below, file)


def _keys(item: dict[str, Any], section: str, file: str, shown: str) -> None:
    for key in item:
        if key not in _KEYS[section]:
            raise GrammarError(file, f"{shown}.{key}".lstrip("."), f"unknown key{nearest(key, _KEYS[section])}")


def _near(word: str, known: Iterable[str], most: int) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(word, list(known), most)


def _strings(value: Any, key: str, file: str, longest: int = _MAX_LITERAL) -> None:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise GrammarError(file, key, "must be a list of strings")
    for one in value:
        if not 1 <= len(one.encode()) <= longest:
            raise GrammarError(file, key, f"{one[:60]!r} is not 1 to {longest} bytes long")
        if 0 <= one.encode().find(b"{") < 4 and longest == _MAX_LITERAL and _VARYING.search(one):
            raise GrammarError(file, key, f"{one[:60]!r} does not begin with four bytes that never vary")


# -- the files that come with the library


@cache
def folder() -> str:
    """Where the grammar files are: in the package, or beside it in a checkout."""
    home = os.path.dirname(os.path.abspath(__file__))
    data = os.path.join(home, "grammars")
    return data if os.path.isdir(data) else os.path.join(os.path.dirname(home), "grammars")


@cache
def shipped() -> dict[str, Grammar]:
    """Every grammar of the library by name."""
    found: dict[str, Grammar] = {}
    for file in sorted(os.listdir(folder())):
        if not file.endswith(".toml"):
            continue
        with open(os.path.join(folder(), file), "rb") as opened:
            raw = opened.read()
        # Checked by the tests, as is that nothing else follows the examples.
        place = _REST.search(raw)
        split = place.start() if place is not None else len(raw)
        reads = _content(raw[:split], file)
        grammar = Grammar(reads["name"], reads, file, raw[split:])
        if grammar.name in found:
            raise GrammarError(file, "name", f"{grammar.name!r} is the name of {found[grammar.name].file} too")
        found[grammar.name] = grammar
    return found


def find(names: Iterable[str | Path | Grammar] | None) -> tuple[Grammar, ...]:
    """The grammars behind names, paths and ``Grammar`` objects; all shipped ones for None.

    Raises ``ValueError`` for an unknown name, with the near ones listed.
    """
    known = shipped()
    if names is None:
        return tuple(known.values())
    if isinstance(names, str | bytes):
        raise TypeError(f"grammars must be a list of names, not {names!r}")
    chosen: dict[str, Grammar] = {}
    for name in names:
        if isinstance(name, Grammar):
            chosen[name.name] = name
        elif isinstance(name, os.PathLike) or (isinstance(name, str) and name.endswith((".toml", ".json"))):
            grammar = Grammar.load(name)
            chosen[grammar.name] = grammar
        elif isinstance(name, str):
            if name not in known:
                near = _near(name, known, 3)
                hint = f"; did you mean {', '.join(near)}?" if near else f"; known: {', '.join(known)}"
                raise ValueError(f"unknown grammar {name!r}{hint}")
            chosen[name] = known[name]
        else:
            raise TypeError(f"a grammar is a name, a path or a Grammar, not {type(name).__name__}")
    return tuple(chosen.values())


def with_needed(chosen: tuple[Grammar, ...]) -> tuple[Grammar, ...]:
    """Add the files that the chosen ones need, and those that always count (the chat templates' tokens)."""
    known = shipped()
    out = {grammar.name: grammar for grammar in chosen}
    pending = [*chosen, *(grammar for grammar in known.values() if grammar.reads.get("always"))]
    while pending:
        grammar = pending.pop()
        out.setdefault(grammar.name, grammar)
        for name in grammar.reads.get("needs", ()):
            if name not in out:
                if name not in known:
                    raise GrammarError(grammar.file, "needs", f"{name!r} is no grammar of the library")
                pending.append(known[name])
    return tuple(sorted(out.values(), key=lambda grammar: grammar.name))
