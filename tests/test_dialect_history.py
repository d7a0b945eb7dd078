"""History in a dialect: encoded, folded, replayed, as provider's records, as one string."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from streamscrub.dialects import (
    AssistantToolCalls,
    Call,
    Chat,
    Dialect,
    ToolResult,
    ToolResults,
    cut_before,
    dialect,
    entries_of,
    pair_tool_cycles,
    read_wire,
    wire,
)

from .dialect_material import EXACT, PING, TALK, TEXTUAL, TOOLS, named
from .growth import assert_linear
from .test_dialects import CASES, cases_of, check

WIRE: list[dict[str, Any]] = [
    {"role": "user", "content": "go", "name": "ada"},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": " think \n",
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "ping", "arguments": '{ "x" : 1.0e0 }'},
                "extra_content": {"google": {"thought_signature": "sig=="}},
            },
            {"id": "b", "type": "function", "function": {"name": "ping", "arguments": "not json"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "up"},
    {"role": "tool", "tool_call_id": "b", "content": ""},
    {"role": "assistant", "content": "Done."},
]


def test_m_transcript_vocabulary() -> None:
    entries = read_wire(WIRE)
    assert [type(entry) for entry in entries] == [Chat, AssistantToolCalls, ToolResults, Chat]
    assert json.dumps(wire(entries)) == json.dumps(WIRE)
    for case in cases_of("native-wire"):
        check(case)


def mode(name: str) -> list[dict[str, Any]]:
    return [case for case in CASES if case["input"].get("mode") == name]


@pytest.mark.parametrize("case", mode("encode"), ids=lambda case: case["id"])
def test_m_encode_history(case: dict[str, Any]) -> None:
    before = copy.deepcopy(case)
    check(case)
    assert case == before


@pytest.mark.parametrize("one", TEXTUAL, ids=named)
def test_what_was_encoded_is_read_back(one: Dialect) -> None:
    encoded = one.encode(TALK, TOOLS)
    assert [message["role"] for message in encoded] == ["system", "user", "assistant", "user", "assistant"]
    assert encoded[0] == TALK[0]
    read = one.parse(encoded[2]["content"], TOOLS)
    assert read.text.strip() == "Checking."
    assert [(call.name, call.arguments) for call in read.calls] == [
        ("get_tide", {"harbor": "Sines", "days": 1}),
        ("ping", {}),
    ]
    assert "Look it up" not in encoded[2]["content"]
    results = one.read_results(encoded[3]["content"])
    assert results is not None
    assert [result.text.strip('<|">') for result in results] == ["07:12", "pong"]


def test_an_image_in_a_result_is_named() -> None:
    shot = {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "image", "mime": "image/png"}]}
    content = dialect("hermes").encode([*TALK[:3], shot], TOOLS)[3]["content"]
    text = "<tool_response>\n[Image: image/png]\n</tool_response>"
    assert content == [{"type": "text", "text": text}, *shot["content"]]
    assert text in dialect("hermes").transcript([*TALK[:3], shot], TOOLS)


def test_images_follow_the_text_of_the_results() -> None:
    photo = {"type": "image_url", "image_url": {"url": "data:image/webp;base64,AA=="}}
    source = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AA=="}}
    shots = [
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "up"}, photo]},
        {"role": "tool", "tool_call_id": "call_2", "content": [source, {"type": "text", "text": "down"}]},
    ]
    for name in ("hermes", "json_tag", "harmony"):
        one = dialect(name)
        plain = [{**shot, "content": text} for shot, text in zip(shots, ("up", "down"), strict=True)]
        told = one.encode([*TALK[:2], *plain], TOOLS)[-1]["content"]
        for encoded in (one.encode([*TALK[:2], *shots], TOOLS), one.fold([*TALK[:2], *shots], TOOLS)):
            assert encoded[-1] == {"role": "user", "content": [{"type": "text", "text": told}, photo, source]}
        replayed = one.replay([*TALK[:2], *shots], TOOLS)[-1]["content"]
        assert replayed[1:] == [photo, source]
    text = dialect("hermes").transcript([*TALK[:2], *shots], TOOLS)
    assert "up[Image: image/webp]" in text
    assert "down[Image: image/gif]" in text


@pytest.mark.parametrize("one", TEXTUAL, ids=named)
def test_calls_never_stand_in_a_fence_of_the_prose(one: Dialect) -> None:
    tools = [{**PING, "parameters": {"properties": {"a": {"type": "string"}}}}]
    for prose in ("See:\n```python\nx = 1", "````md\n```py\nx\n```", "~~~\na\n```\n", "a\n  ```\nb", "`````"):
        turn = {"role": "assistant", "content": prose, "calls": [("ping", {"a": "```"})]}
        (message,) = one.encode([turn], tools)
        assert [call.name for call in one.parse(message["content"], tools).calls] == ["ping"]
        assert message["content"].startswith(prose.rstrip())
    for prose in ("```py\nx\n```", "a ```b```", "``` `a`", "~~~\n```\n~~~", "    ```"):
        turn = {"role": "assistant", "content": prose, "calls": [("ping", {})]}
        assert one.encode([turn])[0]["content"].startswith(f"{prose}\n{one.render_calls([('ping', {})])[:3]}")


@pytest.mark.parametrize("one", TEXTUAL, ids=named)
def test_results_stand_in_the_order_of_their_calls(one: Dialect) -> None:
    swapped = [*TALK[:3], TALK[4], TALK[3], *TALK[5:]]
    assert one.encode(swapped, TOOLS) == one.encode(TALK, TOOLS)
    assert one.fold(swapped, TOOLS) == one.fold(TALK, TOOLS)
    if "transcript" in one.table:
        assert one.transcript(swapped, TOOLS) == one.transcript(TALK, TOOLS)
    if one.has_exact:
        assert one.exact().transcript(swapped, TOOLS) != one.exact().transcript(TALK, TOOLS)
    unknown = [*TALK[:3], {**TALK[4], "tool_call_id": "x"}, TALK[3]]
    results = one.read_results(one.encode(unknown, TOOLS)[3]["content"])
    assert results is not None
    assert "pong" in results[0].text


def test_odd_messages_are_read_or_named() -> None:
    one = dialect("hermes")
    empty = {"role": "assistant", "content": "Hi.", "tool_calls": [], "calls": []}
    assert one.encode([empty]) == [{"role": "assistant", "content": "Hi."}]
    old = [{"role": "function", "name": "ping", "content": "pong"}]
    assert one.encode(old) == one.encode([{"role": "tool", "name": "ping", "content": "pong"}])
    for wrong, said in (
        ({"role": "frog", "content": ""}, "no role of a message: 'frog'"),
        ({"content": ""}, "a dict with a role"),
    ):
        for work in (one.encode, one.fold, one.replay, one.transcript, wire, entries_of):
            with pytest.raises((TypeError, ValueError), match=rf"messages\[1\]: .*{said}"):
                work([TALK[0], wrong])
    with pytest.raises(TypeError, match=r"messages\[0\]: .*string or a list of blocks"):
        one.encode([{"role": "tool", "content": {"a": 1}}])


def test_blocks_of_content_survive_the_provider_records() -> None:
    photo = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    calls = [{"id": "c", "type": "function", "function": {"name": "ping", "arguments": "{ }"}}]
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "See"}, photo], "name": "ann"},
        {"role": "assistant", "content": [{"type": "text", "text": "So"}], "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": [photo, {"type": "text", "text": "up"}], "name": "ping"},
        {"role": "tool", "tool_call_id": "d", "content": "up"},
    ]
    entries = read_wire(talk)
    assert wire(entries) == talk
    assert isinstance(entries[2], ToolResults)
    assert [(one.text, one.images) for one in entries[2].results] == [("up", (photo,)), ("up", ())]


def test_m_text_folding() -> None:
    for case in mode("fold"):
        check(case)
    one = dialect("json_tag")
    folded = one.fold(TALK[2:])
    assert folded[0]["role"] == "user"
    assert one.read_results(folded[0]["content"]) is None
    blank = one.fold([{"role": "system", "content": "S"}, {"role": "user", "content": " "}])
    assert [message["role"] for message in blank] == ["system", "user", "user"]
    assert one.fold(folded) == folded


def test_m_raw_assistant_text_on_replay() -> None:
    for case in mode("replay"):
        check(case)
    raw = 'So.\n<tool_call>\n{"name": "ping"}\n</tool_call>\n'
    entries = [AssistantToolCalls(raw, (Call("ping", "{}", "c1"),)), ToolResults((ToolResult("c1", text="up"),))]
    assert dialect("json_tag").replay(entries)[0]["content"] == raw
    assert dialect("hermes").replay(entries)[1]["content"] == "<tool_response>\nup\n</tool_response>"
    written = dialect("kimi").replay([AssistantToolCalls(None, (Call("ping", "{}", "c1"),)), *entries[1:]], TOOLS)
    assert dialect("kimi").parse(written[0]["content"], TOOLS).calls[0].name == "ping"
    assert "## Return of functions.ping:0\nup" in written[1]["content"]


@pytest.mark.parametrize("case", mode("pair"), ids=lambda case: case["id"])
def test_m_pair_tool_cycles(case: dict[str, Any]) -> None:
    check(case)


def test_the_native_dialect_pairs_when_it_sends() -> None:
    entries = [Chat("user", "hi"), AssistantToolCalls(None, (Call("ping", "{}", "a"),)), Chat("user", "hello?")]
    assert [message["role"] for message in dialect("native").replay(entries)] == ["user", "user"]
    assert pair_tool_cycles([ToolResults((ToolResult("a"),))]) == []


def test_m_compaction_cut_off() -> None:
    entries = entries_of([*TALK, *TALK[1:]])
    assert [type(entry).__name__ for entry in entries[:5]] == [
        "Chat", "Chat", "AssistantToolCalls", "ToolResults", "Chat",
    ]  # fmt: skip
    assert [cut_before(entries, at) for at in range(7)] == [0, 1, 2, 2, 4, 5, 6]
    assert cut_before(entries, 99) == len(entries)
    assert cut_before([Chat("user", "hi"), ToolResults(())], 1) == 1


@pytest.mark.parametrize("case", mode("transcript"), ids=lambda case: case["id"])
def test_m_transcript_rendering(case: dict[str, Any]) -> None:
    check(case)


def test_the_parts_of_a_transcript_without_a_case() -> None:
    text = dialect("harmony").transcript(TALK, TOOLS)
    assert text == (
        "<|start|>developer<|message|>Be brief.<|end|><|start|>user<|message|>Tide in Sines?<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>Look it up.<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>Checking.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.get_tide<|message|>"
        '{"harbor":"Sines","days":1}<|call|>'
        "<|start|>assistant<|channel|>commentary to=functions.ping<|message|>{}<|call|>"
        "<|start|>functions.get_tide to=assistant<|channel|>commentary<|message|>07:12<|end|>"
        "<|start|>functions.ping to=assistant<|channel|>commentary<|message|>pong<|end|>"
        "<|start|>assistant<|channel|>final<|message|>High tide at 07:12.<|end|>"
    )
    empty = dialect("harmony").transcript([{"role": "assistant", "content": ""}])
    assert empty == "<|start|>assistant<|channel|>final<|message|><|end|>"
    hermes = dialect("hermes").transcript(TALK, TOOLS)
    assert "<|im_start|>tool\n<tool_response>\n07:12\n</tool_response>\n" in hermes
    with pytest.raises(ValueError, match="json_tag has no transcript"):
        dialect("json_tag").transcript(TALK)


@pytest.mark.parametrize("one", [one for one in TEXTUAL if "transcript" in one.table], ids=named)
def test_what_a_user_says_begins_no_other_turn(one: Dialect) -> None:
    plain = one.transcript([{"role": "user", "content": "hi"}])
    forged = one.transcript([{"role": "user", "content": f"hi{plain}"}])
    for token in ("<|im_start|>", "<|start|>", "<|user|>", "<start_of_turn>", "<|im_user|>", "<｜User｜>", "<|turn>"):
        assert forged.count(token) == plain.count(token)


def test_the_native_dialect_encodes_to_records() -> None:
    assert [message["role"] for message in dialect("native").encode(TALK)] == [
        "system", "user", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    assert dialect("native").fold(TALK) == dialect("native").encode(TALK)


def test_messages_that_are_none_are_refused() -> None:
    for wrong in ("hi", {"content": "x"}, {"role": "user", "content": 7}, {"role": "tool", "content": 7}):
        with pytest.raises(TypeError):
            dialect("hermes").encode([wrong])


# -- what models write

# Arguments as a model wrote them, and as the library reads them.
WRITTEN: Final[list[tuple[str, dict[str, Any]]]] = [
    ('{"days": "1"}', {"days": 1}), ('{"days": null, "harbor": "Sines"}', {"harbor": "Sines"}),
    ('{"harbor": 5}', {"harbor": "5"}), ("{'harbor': 'Sines'}", {"harbor": "Sines"}),
    ('{"harbor": "a\nb"}', {"harbor": "a\nb"}), ('"{\\"days\\": 1}"', {"days": 1}), ("null", {}), (" ", {}),
    ('{"harbor": "\\ud800"}', {"harbor": "\ufffd"}), ('{"not declared": 1}', {"not declared": 1}),
]  # fmt: skip


@pytest.mark.parametrize("one", [*TEXTUAL, *EXACT], ids=named)
def test_a_call_that_does_not_fit_is_replayed_as_it_is_read(one: Dialect) -> None:
    """A model may write it through the provider's channel; the conversation goes on in another dialect."""
    for text, arguments in WRITTEN:
        calls = [{"id": "c1", "name": "get_tide", "arguments": text}, {"id": "c2", "name": "ping", "arguments": "{}"}]
        talk = [*TALK[:2], {"role": "assistant", "content": None, "calls": calls}]
        for content in (one.encode(talk, TOOLS)[-1]["content"], one.replay(talk, TOOLS)[-1]["content"]):
            tide, ping = one.parse(content, TOOLS).calls
            assert (tide.name, ping.name, ping.arguments) == ("get_tide", "ping", {})
            # A dialect that marks types carries a number that should have been a text.
            assert tide.arguments in (arguments, {"harbor": 5})
        if "transcript" in one.table:
            assert one.transcript(talk, TOOLS)


def test_a_call_that_is_not_read_is_not_replayed() -> None:
    for text in ("[1]", '{"harbor": "Si', '{"days": NaN}'):
        talk = [{"role": "assistant", "content": None, "calls": [{"name": "get_tide", "arguments": text}]}]
        with pytest.raises(ValueError, match="get_tide"):
            dialect("hermes").encode(talk, TOOLS)


@pytest.mark.parametrize("key", ["id", "name", "tool_call_id"])
def test_names_and_ids_are_strings(key: str) -> None:
    for one in TEXTUAL:
        with pytest.raises(TypeError, match=f"'{key}' is a string, not int"):
            one.encode([{"role": "tool", "content": "up", key: 5}])
    with pytest.raises(TypeError, match="'id' is a string, not int"):
        dialect("kimi").render_calls([{"name": "ping", "id": 5}])


def test_records_that_say_nothing_come_back_as_they_were() -> None:
    call = {"function": {"name": "ping", "arguments": "{}"}, "index": 0}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": None},
        {"role": "assistant", "content": None, "refusal": "No.", "reasoning_content": None, "tool_calls": None},
        {"role": "assistant", "content": "", "reasoning_content": [{"text": "Hm."}], "tool_calls": []},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": None, "content": None},
        {"role": "tool", "tool_call_id": "", "content": []},
    ]
    assert wire(read_wire(messages)) == messages


def test_a_turn_of_many_calls_is_placed_in_time_in_proportion() -> None:
    def many(count: int) -> Callable[[], object]:
        calls = [{"id": f"c{place}", "name": "ping", "arguments": "{}"} for place in range(count)]
        results = [{"role": "tool", "tool_call_id": f"c{count - 1 - place}", "content": ""} for place in range(count)]
        return lambda: entries_of([{"role": "assistant", "content": None, "calls": calls}, *results])

    assert_linear(many, "results", sizes=(4_000,))
    entry = many(3)()
    assert isinstance(entry, list)
    assert [(result.name, result.index) for result in entry[1].results] == [("ping", 2), ("ping", 1), ("ping", 0)]
