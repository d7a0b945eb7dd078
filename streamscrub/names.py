"""From a name as the model wrote it to the offered tool it means, or to none."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from .events import Repair
from .limits import MAX_NAME, MAX_REPAIR_TEXT
from .tools import Tool

# Shorter names differ from each other by an edit or two ("get", "set"): they are never guessed.
MIN_FUZZY: Final = 4
# Edits that a guess may cost, and the letters that pay for one.
MAX_EDITS: Final = 2
LETTERS_PER_EDIT: Final = 3
# Digits of a call counter that may be glued to a name; the counter runs over a whole conversation.
MAX_COUNTER: Final = 6

_JUNK: Final = re.compile(r"[\"'<>()\r\n:={\[;]")
_PREFIX: Final = re.compile(r"(?:functions?|tools?|default_api|default|api)(?:\.|/|::?)", re.IGNORECASE)
_SUFFIX: Final = re.compile(r"[-_ .]*+tool\Z", re.IGNORECASE)
_SEPARATORS: Final = re.compile(r"[-\s./_]+")
_NEW_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_GLUED: Final = re.compile(r"(?<=\w)(?<!_)json\Z")
_ID_PREFIX: Final = "functions."
_ID_INDEX: Final = re.compile(r":[0-9]++\Z")
_LOOSE_PREFIX: Final = re.compile(r"functions[-._:/]?")
_LOOSE_INDEX: Final = re.compile(rf"[-._:]?[0-9]{{1,{MAX_COUNTER}}}\Z")
_DIGITS: Final = re.compile(r"[0-9]+")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
# Words that mean something else after one or two edits. A guess never swaps one for another of them.
_VERBS: Final = frozenset(
    ("get", "set", "put", "let", "add", "del", "rm", "pop", "cut", "run", "end", "log", "lock", "send", "read", "load")
)
_NEGATIONS: Final = ("un", "de", "in")


def normal_form(name: str) -> str:
    """Spell ``name`` in lower case with ``_`` between its words.

    >>> normal_form("Read File"), normal_form("readFile"), normal_form("read-file")
    ('read_file', 'read_file', 'read_file')
    """
    # casefold, not lower: it looks at one character at a time, so a longer name keeps the form of its start.
    return _NEW_WORD.sub("_", _SEPARATORS.sub("_", name)).casefold().strip("_")


def encodable(text: str) -> str:
    """Replace lone surrogates, which no encoding takes, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a written name means: the tool (None: unknown), the name to report, and the correction if one was made."""

    tool: Tool | None
    name: str
    repairs: tuple[Repair, ...] = ()


class Offer:
    """The tools of one request, with the tables that find them by name. Immutable; copies share it.

    >>> offer = Offer((Tool("read_file"),))
    >>> offer.resolve("functions.readFile").name
    'read_file'
    """

    __slots__ = ("_by_name", "_by_normal", "_starts", "tools")

    def __init__(self, tools: tuple[Tool, ...] | None) -> None:
        self.tools = tools
        self._by_name = {tool.name: tool for tool in tools or ()}
        self._by_normal: dict[str, Tool | None] | None = None
        self._starts: tuple[list[str], list[str], int] | None = None

    def __repr__(self) -> str:
        return f"Offer({None if self.tools is None else list(self._by_name)})"

    def __reduce__(self) -> tuple[type[Offer], tuple[tuple[Tool, ...] | None]]:
        return Offer, (self.tools,)

    def __copy__(self) -> Offer:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Offer:
        return self

    @property
    def known(self) -> bool:
        """False if the host did not say what it offers."""
        return self.tools is not None

    def get(self, name: str) -> Tool | None:
        """The tool of exactly this name."""
        return self._by_name.get(name)

    def plain(self, name: str) -> Tool | None:
        """The tool of this name, or the only one with the same normal form. Nothing is guessed."""
        name = name.strip()
        return self._by_name.get(name) or (self._normals.get(normal_form(name)) if len(name) <= MAX_NAME else None)

    def may_begin(self, word: str) -> bool:
        """True if ``word`` may still grow into a name that ``plain`` finds. Once False it stays so."""
        if self.tools is None:
            return True
        if self._starts is None:
            names = sorted(self._by_name)
            self._starts = names, sorted(self._normals), max(MAX_NAME, *map(len, names), 0)
        names, normals, longest = self._starts
        return len(word) <= longest and (_has_start(names, word) or _has_start(normals, normal_form(word)))

    def resolve(self, written: str) -> Resolution:
        """Find the offered tool that ``written`` means; what is unclear is unknown."""
        return self._resolve(encodable(written.strip()), fuzzy=True)

    def id_name(self, written: str) -> Resolution:
        """Read the name out of a call id (``functions.NAME:INDEX``); the id's own parts are no damage."""
        written = encodable(written.strip())
        bare = written.removeprefix(_ID_PREFIX)
        name = _ID_INDEX.sub("", bare) or bare
        if self.tools is None:
            return Resolution(None, name)
        for spelling in (written, bare, name, _ID_INDEX.sub("", written)):
            if spelling in self._by_name:
                return Resolution(self._by_name[spelling], spelling)
        if len(written) <= MAX_NAME:
            found = {spelling for spelling in _loose_ids(written) if spelling in self._by_name}
            if len(found) == 1:
                return self._found(written, self._by_name[found.pop()])
        # An id without any part of the form (call_3, a hash) may be a bare name, but is nothing to guess from.
        resolution = self._resolve(name, fuzzy=name != written)
        return resolution if resolution.tool is None else self._found(written, resolution.tool)

    @property
    def _normals(self) -> dict[str, Tool | None]:
        # None under a form that several tools share.
        if self._by_normal is None:
            table: dict[str, Tool | None] = {}
            for tool in self.tools or ():
                form = normal_form(tool.name)
                if form:
                    table[form] = None if form in table else tool
            self._by_normal = table
        return self._by_normal

    def _found(self, written: str, tool: Tool) -> Resolution:
        if written == tool.name:
            return Resolution(tool, tool.name)
        return Resolution(tool, tool.name, (Repair("name", "name", written[:MAX_REPAIR_TEXT], tool.name),))

    def _resolve(self, written: str, fuzzy: bool) -> Resolution:
        if not self.tools or written in self._by_name:
            return Resolution(self._by_name.get(written), written)
        prefix = _PREFIX.match(written)
        whole = written[prefix.end() :] if prefix else written
        # Without its prefix a name is looked for before it is cut: the prefix may end in a colon, which is junk.
        spellings = dict.fromkeys((written, whole, _cut(written), _cut(whole)))
        short = [spelling for spelling in spellings if 0 < len(spelling) <= MAX_NAME]
        for spelling in short:
            if spelling in self._by_name:
                return self._found(written, self._by_name[spelling])
        for spelling in short:
            form = normal_form(spelling)
            if form in self._normals:
                tool = self._normals[form]
                return Resolution(None, written) if tool is None else self._found(written, tool)
        for spelling in short:
            for stem in _stems(spelling):
                tool = self.plain(stem)
                if tool is not None:
                    return self._found(written, tool)
        stem = _cut(whole)
        tool = self._nearest(normal_form(stem)) if fuzzy and stem in short else None
        return Resolution(None, written) if tool is None else self._found(written, tool)

    def _nearest(self, needle: str) -> Tool | None:
        budget = min(MAX_EDITS, len(needle) // LETTERS_PER_EDIT)
        if len(needle) < MIN_FUZZY:
            return None
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import extract

        near = extract(needle, list(self._normals), scorer=Levenshtein.distance, score_cutoff=budget, limit=2)
        if not near or (len(near) == 2 and near[0][1] == near[1][1]) or _means_other(needle, near[0][0]):
            return None
        return self._normals[near[0][0]]


def _has_start(ordered: list[str], word: str) -> bool:
    index = bisect_left(ordered, word)
    return index < len(ordered) and ordered[index].startswith(word)


def _cut(written: str) -> str:
    junk = _JUNK.search(written)
    return written[: junk.start()].strip() if junk else written


def _stems(spelling: str) -> Iterator[str]:
    """What is left of a name without the word tool, without its double, without a glued content type."""
    stem = spelling
    for _ in range(2):
        stem = _SUFFIX.sub("", stem)
        if stem:
            yield stem
    half, odd = divmod(len(spelling), 2)
    if half and spelling[:half] == spelling[half + odd :] and (not odd or spelling[half] in "._-/: "):
        yield spelling[:half]
    if _GLUED.search(spelling):
        yield spelling[: -len("json")]


def _loose_ids(written: str) -> Iterator[str]:
    """Readings of an id that has lost its dot or colon: without the prefix, and without each possible counter."""
    for name in dict.fromkeys((written, _LOOSE_PREFIX.sub("", written, count=1))):
        if name != written:
            yield name
        counter = _LOOSE_INDEX.search(name)
        if counter and written.startswith("functions"):
            for end in range(counter.start(), len(name)):
                yield name[:end]


def _means_other(needle: str, name: str) -> bool:
    """True if the few edits between two names change what the tool does (get/set, lock/unlock, 1/2)."""
    if _DIGITS.findall(needle) != _DIGITS.findall(name) and _DIGITS.search(needle) and _DIGITS.search(name):
        return True
    for mine, other in zip(needle.split("_"), name.split("_"), strict=False):
        if mine != other and ((mine in _VERBS and other in _VERBS) or _negates(mine, other) or _negates(other, mine)):
            return True
    return False


def _negates(word: str, base: str) -> bool:
    return any(word == negation + base for negation in _NEGATIONS)
