"""The bytes that dialects write against those of the chat templates of their models."""

from __future__ import annotations

import pickle
from typing import Any, Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fuzz.literals import marker_literals
from streamscrub.dialects import dialect, dialects

from .record_templates import CONVERSATIONS, TOOLS, Source, asked, calling, found, recordings, rendered, result, sources

RECORDINGS: Final = recordings()
SOURCES: Final = {source["dialect"]: source for source in sources()}


def ours(name: str, messages: list[dict[str, Any]]) -> str:
    return dialect(name).exact().transcript(messages, TOOLS)


def titled(record: dict[str, Any]) -> str:
    return f"{record['dialect']}: {record['title']}"


@pytest.mark.parametrize("record", RECORDINGS, ids=titled)
def test_a_dialect_writes_the_bytes_of_the_template(record: dict[str, Any]) -> None:
    written = ours(record["dialect"], CONVERSATIONS[record["title"]])
    if record["title"] in SOURCES[record["dialect"]].get("differs", ()):
        assert written != record["text"]
    else:
        assert written == record["text"]


@pytest.mark.parametrize("record", [one for one in RECORDINGS if "asked" in one], ids=titled)
def test_a_prompt_has_the_bytes_of_the_template(record: dict[str, Any]) -> None:
    one = dialect(record["dialect"]).exact()
    starts = asked(CONVERSATIONS[record["title"]])
    assert [one.transcript(start, TOOLS, add_generation_prompt=True) for start in starts] == record["asked"]


def test_every_template_was_asked_for_a_turn() -> None:
    assert {one["dialect"] for one in RECORDINGS if len(one.get("asked", ())) > 2} == set(SOURCES)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_parts_stand_in_the_recorded_text(name: str) -> None:
    """Calls and results are the same bytes alone as in a whole conversation."""
    text = next(one["text"] for one in RECORDINGS if one["dialect"] == name and one["title"] == "one call")
    turn, answer = CONVERSATIONS["one call"][2:4]
    one = dialect(name).exact()
    assert one.render_calls(turn["tool_calls"], TOOLS) in text
    assert one.render_results([answer]) in text


def test_every_exact_form_was_recorded() -> None:
    assert sorted(name for name, one in dialects().items() if one.has_exact) == sorted(SOURCES)
    assert {one["dialect"] for one in RECORDINGS} == set(SOURCES)
    titles = {title for source in SOURCES.values() for key in ("without", "differs") for title in source.get(key, ())}
    assert titles <= set(CONVERSATIONS)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_what_the_exact_form_writes_is_read_back(name: str) -> None:
    one = dialect(name).exact()
    calls = [("get_tide", {"harbor": "Sines", "days": 1}), ("ping", {})]
    read = one.parse(one.render_calls(calls, TOOLS), TOOLS)
    assert [(call.name, call.arguments) for call in read.calls] == calls
    assert read.text.strip() == ""
    wild = "\n".join(("pong", *marker_literals()))
    text = one.render_results([{"name": "ping", "text": "pong"}, {"name": "ping", "text": wild}])
    assert one.parse(text, TOOLS).calls == []
    assert len(one.read_results(text) or ()) == 2


def test_the_exact_form_is_one_object_of_its_own() -> None:
    for name in SOURCES:
        one = dialect(name).exact()
        assert one is dialect(name).exact()
        assert one is one.exact()
        assert (one.is_exact, dialect(name).is_exact) == (True, False)
        assert pickle.loads(pickle.dumps(one)).is_exact


@pytest.mark.parametrize("name", sorted(set(dialects()) - set(SOURCES)))
def test_a_dialect_without_a_known_template_says_so(name: str) -> None:
    assert not dialect(name).has_exact
    with pytest.raises(ValueError, match="no chat template"):
        dialect(name).exact()


# -- against the templates themselves


def opened(source: Source) -> Any:
    pytest.importorskip("jinja2")
    path = found(source)
    if path is None:
        pytest.skip(f"{source['file']} of {source['package']} {source['version']} is not there")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("record", RECORDINGS, ids=titled)
def test_the_recordings_are_what_the_templates_write(record: dict[str, Any]) -> None:
    source = SOURCES[record["dialect"]]
    path = opened(source)
    assert all(source[key] == record[key] for key in ("package", "version", "file"))
    messages = CONVERSATIONS[record["title"]]
    assert rendered(source, path, messages) == record["text"]
    if "asked" in record:
        assert [rendered(source, path, start, asking=True) for start in asked(messages)] == record["asked"]


# Texts seldom hold a marker by chance; where one does it is escaped, which no template does.
_TEXT: Final = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
_SAID: Final = _TEXT.filter(lambda text: text.strip() != "")
_KEYS: Final = st.from_regex(r"[A-Za-z_][a-z0-9_]{0,6}", fullmatch=True)
_NUMBERS: Final = st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False, width=32)
_NESTED: Final = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)
_VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "path": _TEXT,
    "body": _TEXT,
    "size": _NUMBERS,
    "draft": st.booleans(),
    "tags": st.lists(_TEXT, max_size=3),
    "Meta": st.dictionaries(_KEYS, _NESTED, max_size=3),
    "until": st.none(),
}
# Values that the template of MiniCPM5 writes as Python shows them.
_PYTHON: Final = ("draft", "tags", "Meta", "until")


@st.composite
def conversations(draw: st.DrawFn, source: Source) -> list[dict[str, Any]]:
    """A query, some calls with results and an answer, of which this template takes all."""
    keys = [key for key in _VALUES if key not in _PYTHON or "differs" not in source]
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(_SAID)}]
    number = 0
    for _ in range(draw(st.integers(1, 2))):
        calls: list[tuple[str, dict[str, Any]]] = []
        for _ in range(1 if source.get("prompt") else draw(st.integers(1, 3))):
            given = draw(st.lists(st.sampled_from(keys), unique=True, max_size=4))
            calls.append(("save", {key: draw(_VALUES[key]) for key in given}) if given else ("ping", {}))
        plain = "prompt" in source
        content, reasoning = ("" if plain else draw(st.just("") | _SAID) for _ in range(2))
        messages.append(calling(number, *calls, content=content, reasoning=reasoning))
        messages += [result(number + place, name, draw(_TEXT)) for place, (name, _) in enumerate(calls)]
        number += len(calls)
    return [*messages, {"role": "assistant", "content": draw(_SAID)}]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SOURCES))
@settings(deadline=None)
@given(data=st.data())
def test_any_conversation_has_the_bytes_of_the_template(name: str, data: st.DataObject) -> None:
    source = SOURCES[name]
    path = opened(source)
    messages = data.draw(conversations(source))
    try:
        written = ours(name, messages)
    except ValueError:
        assume(False)  # a value that the format would not give back
    assert written == rendered(source, path, messages)
