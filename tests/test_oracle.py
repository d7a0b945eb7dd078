"""How hold-back is found, against two oracles: ``regex`` partial matching, and a search that tries every prefix."""

from __future__ import annotations

import re
from typing import Final

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from fuzz.literals import marker_literals
from streamscrub.sentinels import CUT, NONE, Sentinels, sentinels

from .strategies import STOCK, literals

SETS: Final = (
    (b"<tool_call>", b"</tool_call>", b"<think>"),
    (b"a", b"ab", b"abcd"),
    (b"aab", b"ab", b"b"),
    (b"<", b"<<", b"<<<"),
    ("｜".encode(), "<｜DSML｜".encode(), b"<|DSML|"),
    (b"[TOOL_CALLS]", b"[ARGS]", b"[CALL_ID]"),
    (b"function_call:", b"Action:"),
    (b"x",),
    (),
)


def naive_find(words: tuple[bytes, ...], folded: tuple[bytes, ...], text: bytes, final: bool) -> tuple[int, int]:
    """The first index where a marker starts, or where the rest of the text is the start of one."""
    for at in range(len(text)):
        rest = text[at:]
        pairs = [*((word, rest) for word in words), *((word.lower(), rest.lower()) for word in folded)]
        if not final and any(word != tail and word.startswith(tail) for word, tail in pairs):
            return at, CUT
        whole = [len(word) for word, tail in pairs if tail.startswith(word)]
        if whole:
            return at, max(whole)
    return len(text), NONE


def regex_find(words: tuple[bytes, ...], text: bytes) -> tuple[int, int]:
    """The same by ``regex``, which knows partial matches. For sets in which no marker starts another."""
    pattern = regex.compile(b"|".join(regex.escape(word) for word in words))
    for at in range(len(text)):
        found = pattern.match(text, at, partial=True)
        if found is not None:
            return at, CUT if found.partial else found.end() - at
    return len(text), NONE


def texts_over(words: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Texts made of the markers, their parts and other bytes."""
    parts = [word[i:j] for word in words for i in range(len(word)) for j in range(i + 1, len(word) + 1)]
    return st.lists(st.sampled_from([*(parts or [b"a"]), b"z", b"<", b"\n", b"\xef"]), max_size=6).map(b"".join)


@pytest.mark.parametrize("words", SETS)
@given(data=st.data(), final=st.booleans())
def test_find_is_the_naive_search(words: tuple[bytes, ...], data: st.DataObject, final: bool) -> None:
    text = data.draw(texts_over(words))
    assert naive_find(words, (), text, final) == Sentinels(words).find(text, 0, len(text), final)


@given(data=st.data(), final=st.booleans())
def test_find_is_the_naive_search_for_folded_markers(data: st.DataObject, final: bool) -> None:
    words, folded = (b"<tool", b"<Tool_X>"), (b"<tool_call>", b"</TOOL>")
    cased = st.sampled_from([b"<TOOL_call>", b"<tool_CA", b"</tool>", b"<Tool_x>", b"<Tool_X>", b"<", b"t", b"T"])
    text = data.draw(st.lists(cased, max_size=5).map(b"".join))
    assert naive_find(words, folded, text, final) == Sentinels(words, folded).find(text, 0, len(text), final)


@given(st.lists(st.binary(min_size=1, max_size=6), max_size=6), st.binary(max_size=20), st.booleans())
def test_find_is_the_naive_search_for_any_set(words: list[bytes], text: bytes, final: bool) -> None:
    assert naive_find(tuple(words), (), text, final) == Sentinels(words).find(text, 0, len(text), final)


@given(st.lists(st.sampled_from(literals()), max_size=8), st.data())
def test_hold_back_is_the_partial_match_of_regex(picked: list[str], data: st.DataObject) -> None:
    encoded = sorted({word.encode() for word in picked})
    words = tuple(w for w in encoded if not any(o != w and w.startswith(o) for o in encoded))
    if words:
        text = data.draw(texts_over(words))
        assert regex_find(words, text) == Sentinels(words).find(text, 0, len(text))


@given(st.lists(st.sampled_from(literals()), max_size=4).map("".join), st.integers(0, 200))
def test_the_union_of_all_markers_is_found_alike(text: str, cut: int) -> None:
    words = tuple(literal.encode() for literal in dict.fromkeys((*marker_literals(), *STOCK)))
    wire = text.encode()[:cut]
    assert naive_find(words, (), wire, False) == sentinels(words).find(wire, 0, len(wire))


@given(st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=5), st.binary(max_size=12))
def test_what_is_held_is_shorter_than_the_longest_marker(words: list[bytes], text: bytes) -> None:
    at, size = Sentinels(words).find(text, 0, len(text))
    if size == CUT:
        assert len(text) - at < max(map(len, words))
        assert Sentinels(words).is_prefix(text[at:])


@pytest.mark.parametrize("words", SETS)
def test_every_proper_prefix_is_known(words: tuple[bytes, ...]) -> None:
    found = Sentinels(words)
    prefixes = {word[:size] for word in words for size in range(1, len(word))}
    assert all(found.is_prefix(prefix) for prefix in prefixes)
    assert not any(found.is_prefix(word) for word in words if word not in prefixes)
    assert {word[0] for word in words} == found.leads


# Markers with parts that vary

VARYING: Final = (b"<tool:{suffix}>", b"</tool:{suffix}>", b"<|open|>{blanks}call", b"<|open|>", b"<tool:x>y")
AS_REGEX: Final = rb"(?:</?tool:[\w.-]{1,24}>|<\|open\|>(?:[ \t\r\n]{0,16}call)?)"


PIECES: Final = (b"<tool:", b"</tool:", b"ab", b".-", b">", b" ", b"\n", b"<|open|>", b"call", b"y", b"<", b"x")


@given(st.lists(st.sampled_from(PIECES)))
def test_varying_parts_are_found_as_a_regex_finds_them(pieces: list[bytes]) -> None:
    text = b"".join(pieces)
    found = Sentinels(VARYING)
    i = 0
    for match in re.finditer(AS_REGEX, text):
        longest = match.end() + text.startswith(b"<tool:x>y", match.start())
        assert found.find(text, i, len(text), True) == (match.start(), longest - match.start())
        i = match.end()


@given(st.sampled_from([b"<tool:opensource>", b"<tool:x>y", b"<|open|> \n call", b"</tool:a-b>"]))
def test_a_varying_marker_is_held_until_it_is_whole(word: bytes) -> None:
    found = Sentinels(VARYING)
    for cut in range(1, len(word)):
        assert found.at(word, 0, cut) == CUT
        assert found.is_prefix(word[:cut]) or word[:cut] in (b"<|open|>", b"<tool:x>")
    assert found.at(word + b" ", 0, len(word) + 1) == len(word)
    assert found.template(word) in (*VARYING, b"")


def test_a_varying_part_has_a_limit() -> None:
    found = Sentinels(VARYING)
    assert found.at(b"<tool:" + b"a" * 24 + b">", 0, 31) == 31
    assert found.at(b"<tool:" + b"a" * 25, 0, 31) == NONE
    assert found.at(b"<|open|>" + b" " * 17 + b"call", 0, 29) == len(b"<|open|>")
