"""The openers and closers of calls, and the tags of parameters, taken apart into literals."""

from __future__ import annotations

import re
from typing import Final

from .patterns import Piece, Unfit, Way, joined, ways
from .shape import Call, Field, marker

TAG: Final = re.compile(r"(<[^\s<>\"'=]*[\w.-])(?:=|\s+\w+=)[\"']?\Z")  # a tag up to the name that it carries
_NAME_ENDS: Final = "<>{}[]\"'`| \t\r\n"  # what a name in a header cannot hold
_INDEXED: Final = (":", ".")  # what stands between a name and its index
_JOINT: Final = re.compile(r"(?<=>)(?=<)")  # where one tag ends and another begins
_FENCE: Final = re.compile(r"(?:```+|~~~+)\w*")


class Opener:
    """The opener of calls: wrappers, markers, and a header with a name, from all its ways."""

    def __init__(self, field: Field, call: Call | None) -> None:
        assert field.opens is not None
        self.key = field.key
        self.call = call or Call("name", "", "id")
        self.captured: set[str] = set()  # names of groups
        self.wrappers: list[str] = []
        self.heads: list[str] = []
        self.header = ""  # a template such as "{name}SEPARATOR", "" if the opener is a literal
        self.form = ""  # the same with the blanks around its texts
        self.separators: list[str] = []  # these texts
        self.tail = ""  # the last of them, with the blanks around it
        self.once = False  # the wrapper stands around all calls, not around each
        shapes = set()
        for way in field.opens:
            stages, core = _split(_stages(way))
            if not core or core[0].kind != "text":
                raise Unfit(f"{self.key}.open_pattern", "must begin with a literal")
            head, *shape = self._core(core)
            for stage in stages:
                _add(self.wrappers, self._literal(stage))
            _add(self.heads, marker(head, f"{self.key}.open"))
            shapes.add(tuple(shape))
            self.once = self.once or not stages
        if len(shapes) != 1:
            raise Unfit(f"{self.key}.open_pattern", "its alternatives hold different headers")
        ((self.header, self.form, *separators),) = shapes
        self.separators = [text.strip() for text in separators if text.strip()]
        self.tail = separators[-1] if separators and not self.header.endswith("}") else ""
        self.inner_closes: list[str] = []
        self.wrapper_closes: list[str] = []
        for way in field.closes or []:
            self._close([stage for stage in _stages(way) if stage], f"{self.key}.close")

    def _core(self, core: Way) -> list[str]:
        """The marker, the template of the header, the same with its blanks, and the texts in it."""
        key = f"{self.key}.open_pattern"
        head, rest = core[0].text, [piece for piece in core[1:] if piece.kind != "gap"]
        if not rest:
            return [head.strip(), "", ""]
        if rest[0].kind != "field":
            raise Unfit(key, "holds free text that is no captured name")
        header, form, separators = "", "", []
        while rest:
            piece = rest.pop(0)
            if piece.kind == "field":
                self.captured |= {piece.text, *piece.inside}
                name = "name" if piece.text == self.call.name else "id"
                if f"{{{name}}}" in header:
                    raise Unfit(key, "captures more than the name and the id of a call")
                if [one.kind for one in rest[:2]] == ["text", "run"] and rest[0].text in _INDEXED:
                    name, rest = "id", rest[2:]  # an index belongs to the name
                header += f"{{{name}}}"
                form += f"{{{name}}}"
            elif piece.kind == "run" and "{id}" not in header and not header.endswith("}"):
                header += "{id}"  # whatever stands there
                form += "{id}"
            elif piece.kind == "text" and header.endswith("}"):
                separators.append(self._separator(piece.text))
                header += separators[-1].strip()
                form += separators[-1]
            else:
                raise Unfit(key, "holds free text behind the name")
        return [head.lstrip(), header, form, *separators]

    def _separator(self, text: str) -> str:
        """A text behind a name, which must show where the name ends."""
        key = f"{self.key}.open_pattern"
        if text.strip() and text[0] not in _NAME_ENDS:
            raise Unfit(key, f"{text[:20]!r} could be part of the name before it")
        if len(text.strip().encode()) > 64:
            raise Unfit(key, "the text behind the name is longer than a marker")
        return f"\n{text.strip()}\n" if _FENCE.fullmatch(text.strip()) else text

    def _close(self, stages: list[Way], key: str) -> None:
        texts_ = [self._literal(stage) for stage in stages if any(piece.kind == "text" for piece in stage)]
        if not texts_:
            return  # the end of the response, or a text that only follows
        closes_wrapper = len(texts_) == 1 and any(
            texts_[0] == wrapper[:1] + "/" + wrapper[1:] for wrapper in self.wrappers
        )
        if closes_wrapper:
            _add(self.wrapper_closes, marker(texts_[0], key))
            return
        _add(self.inner_closes, marker(texts_[0], key))
        for text in texts_[1:]:
            _add(self.wrapper_closes if self.wrappers else self.inner_closes, marker(text, key))

    def _literal(self, stage: Way) -> str:
        if len(stage) != 1 or stage[0].kind != "text":
            raise Unfit(f"{self.key}.open_pattern", "holds free text between two literals")
        return stage[0].text.strip()

    def split(self, word: str) -> None:
        """Leave a word at the end of the markers to the body."""
        self.heads = [marker(head.removesuffix(word).rstrip(), f"{self.key}.open_pattern") for head in self.heads]
        self.header = ""

    @property
    def head(self) -> str:
        """The marker that is written."""
        return self.heads[0]

    @property
    def closes(self) -> list[str]:
        """The closers of the call itself."""
        return self.inner_closes or self.wrapper_closes

    @property
    def written(self) -> str:
        """The marker with its header."""
        form = self.form if "{name}" in self.form else self.form.replace("{id}", "{name}:{id}")
        return self.head + form.replace("{id}", "{index}")

    @property
    def inner_close(self) -> str:
        """The closer of the call's own tag, also where the pattern only knows that of the wrapper."""
        if self.inner_closes:
            return self.inner_closes[0]
        tag = TAG.fullmatch(self.head)
        return f"</{tag.group(1)[1:]}>" if tag is not None else self.close

    @property
    def close(self) -> str:
        """The closer that is written."""
        return self.closes[0] if self.closes else ""

    @property
    def wrapper(self) -> tuple[str, str]:
        """What is written around a call, or around all of them."""
        if not self.wrappers:
            return "", ""
        return f"{self.wrappers[0]}\n", "".join(f"\n{close}" for close in self.wrapper_closes[:1])


class Tag:
    """The literals of a tag pattern: around the key, and around the value."""

    def __init__(self, field: Field) -> None:
        key = f"{field.key}.content_args.tag_pattern"
        pattern = field.args.get("tag_pattern")
        if not isinstance(pattern, str):
            raise Unfit(key, "must be a pattern with the groups key and value")
        try:
            found = ways(pattern)
        except Unfit as error:
            raise Unfit(key, error.problem) from None
        self.key_open: list[str] = []
        self.key_close: list[str] = []
        self.value_open: list[str] = []
        self.value_close: list[str] = []
        self.newline = False
        for way in found:
            self._add(way, key)

    def _add(self, way: Way, key: str) -> None:
        kinds = [piece.text if piece.kind == "field" else piece.kind for piece in way]
        if kinds.count("key") != 1 or kinds.count("value") != 1 or kinds.index("key") > kinds.index("value"):
            raise Unfit(key, "must have the groups key and value, in this order")
        at, to = kinds.index("key"), kinds.index("value")
        around = (way[:at], way[at + 1 : to], way[to + 1 :])
        for pieces in around:
            if any(piece.kind not in ("text", "gap") for piece in pieces):
                raise Unfit(key, "holds free text outside of its key and value")
        self.newline = self.newline or any(
            piece.kind == "gap" or piece.text != piece.text.strip() for piece in (*around[1][-1:], *around[2][:1])
        )
        opens, between, closes = ([piece.text for stage in _stages(pieces) for piece in stage] for pieces in around)
        between = [text for joint in between for text in _JOINT.split(joint)]
        if len(opens) != 1 or len(between) not in (1, 2) or len(closes) != 1 or not between[0].strip():
            raise Unfit(key, "must be one literal before the key, one or two behind it, and one behind the value")
        _add(self.key_open, marker(opens[0].strip(), key))
        _add(self.key_close, between[0].strip())
        if len(between) == 2:
            _add(self.value_open, marker(between[1].strip(), key))
        _add(self.value_close, marker(closes[0].strip(), key))

    @property
    def written(self) -> str:
        """One parameter as it is written."""
        edge = "\n" if self.newline else ""
        opens = "".join(self.value_open[:1])
        close = next((one for one in self.key_close if "true" in one), self.key_close[0])
        if close.replace("true", "false") in self.key_close:
            close = close.replace("true", "{string}")  # which says whether the value is a string
        return f"{self.key_open[0]}{{key}}{close}{opens}{edge}{{value}}{edge}{self.value_close[0]}"


def _stages(way: Way) -> list[Way]:
    """The way cut at its gaps, and where a text holds a newline; what only follows or ends is left out."""
    stages: list[list[Piece]] = [[]]
    for piece in way:
        if piece.kind in ("end", "ahead", "start"):
            continue
        if piece.kind == "gap":
            stages.append([])
        elif piece.kind == "text" and "\n" in piece.text.strip():
            first, *others = [line for line in piece.text.strip().split("\n") if line.strip()]
            stages[-1].append(Piece("text", first.strip()))
            stages += [[Piece("text", line.strip())] for line in others]
        else:
            stages[-1].append(piece)
    out: list[Way] = []
    for stage in stages:
        if not stage:
            continue
        if out and stage[0].kind != "text":
            out[-1] = joined([*out[-1], *stage])  # a name belongs to the text before the blanks
        else:
            out.append(joined(stage))
    return out


def _split(stages: list[Way]) -> tuple[list[Way], Way]:
    """The stages before the opener itself, and that one: from the first with a captured name on, or else the last."""
    named = [any(piece.kind == "field" for piece in stage) for stage in stages]
    at = named.index(True) if True in named else max(len(stages) - 1, 0)
    return stages[:at], joined(piece for stage in stages[at:] for piece in stage)


def _add(to: list[str], text: str) -> None:
    if text not in to:
        to.append(text)
