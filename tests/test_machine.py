"""A scrubber driven by arbitrary steps, against the one-shot model: a new scrubber that gets the same bytes at once."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streamscrub import StreamScrubber, scrub
from streamscrub.events import Event
from streamscrub.machine.state import STRIPPED
from streamscrub.scrubber import _MODES
from streamscrub.stream import Options

from .feeding import check_invariants, merged
from .strategies import finish_reasons, pieces, tool_lists


class Feeding(RuleBasedStateMachine):
    """Feeds text, bytes and nothing, copies and pickles on the way, and finishes at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.tools: Any = None
        self.options: dict[str, Any] = {}
        self.scrubber = StreamScrubber()
        self.events: list[Event] = []
        self.wire = b""
        self.finished = False
        self.left_behind: list[tuple[StreamScrubber, list[Event], bytes]] = []

    @initialize(tools=tool_lists(), reasoning=st.sampled_from(["auto", "auto", "open"]), progress=st.booleans())
    def start(self, tools: Any, reasoning: str, progress: bool) -> None:
        self.tools = tools
        self.options = {"reasoning": reasoning, "progress": progress}
        self.scrubber = StreamScrubber(tools, **self.options)

    @precondition(lambda self: not self.finished)
    @rule(text=pieces())
    def feed_text(self, text: str) -> None:
        self.events += self.scrubber.feed(text)
        self.wire += text.encode()

    @precondition(lambda self: not self.finished)
    @rule(text=pieces(), size=st.integers(1, 5))
    def feed_bytes(self, text: str, size: int) -> None:
        data = text.encode()
        for at in range(0, len(data), size):
            self.events += self.scrubber.feed(data[at : at + size])
        self.wire += data

    @precondition(lambda self: not self.finished)
    @rule(nothing=st.sampled_from(["", b""]))
    def feed_nothing(self, nothing: str | bytes) -> None:
        held = self.scrubber.held
        assert self.scrubber.feed(nothing) == []
        assert held == self.scrubber.held

    @precondition(lambda self: not self.finished)
    @rule(by_pickle=st.booleans())
    def go_on_with_a_copy(self, by_pickle: bool) -> None:
        self.left_behind.append((self.scrubber, list(self.events), self.wire))
        twin = pickle.loads(pickle.dumps(self.scrubber)) if by_pickle else copy.deepcopy(self.scrubber)
        assert twin.held == self.scrubber.held
        self.scrubber = twin

    @rule(reason=finish_reasons())
    def finish(self, reason: str | None) -> None:
        ending = self.scrubber.finish(reason)
        if self.finished:
            assert ending == []
            return
        self.finished = True
        self.events += ending
        one_shot = StreamScrubber(self.tools, **self.options)
        assert merged([*one_shot.feed(self.wire), *one_shot.finish(reason)]) == merged(self.events)
        check_invariants(merged(self.events), self.wire)

    @precondition(lambda self: self.finished)
    @rule()
    def feeding_after_the_end_raises(self) -> None:
        try:
            self.scrubber.feed("a")
        except ValueError:
            return
        raise AssertionError("feed after finish raised nothing")

    @invariant()
    def events_so_far_depend_on_the_bytes_alone(self) -> None:
        if not self.finished:
            one_shot = StreamScrubber(self.tools, **self.options)
            assert merged(one_shot.feed(self.wire)) == merged(self.events)
            assert one_shot.held == self.scrubber.held

    def teardown(self) -> None:
        for scrubber, events, wire in self.left_behind:
            # What went on in the copy must not have touched the original.
            one_shot = StreamScrubber(self.tools, **self.options)
            expected = merged([*one_shot.feed(wire), *one_shot.finish("stop")])
            assert expected == merged([*events, *scrubber.finish("stop")])


TestFeeding = Feeding.TestCase


def test_what_a_scrubber_shows_of_itself() -> None:
    scrubber = StreamScrubber(prefill="<think>")
    assert repr(scrubber) == "<StreamScrubber in reasoning, 0 bytes read, 0 held>"
    assert len(_MODES) == STRIPPED + 1
    for delta, shown in (
        ("Hm.</think>Noon é", "in text, 18 bytes read, 0 held"),
        (" and on", "in text, 25 bytes read, 0 held"),
        (" <tool_call>", "in a call, 37 bytes read, 11 held"),
        ('{"name": "ping", "arguments": {"a": "', "in a call, 74 bytes read, 48 held"),
        ("b" * 50, "in a call, 124 bytes read, 98 held"),
    ):
        scrubber.feed(delta)
        assert repr(scrubber) == repr(copy.deepcopy(scrubber)) == f"<StreamScrubber {shown}>"
    scrubber.finish(None)
    assert repr(scrubber) == "<StreamScrubber finished, 124 bytes read, 0 held>"


def test_the_options_that_are_passed_on_are_those_of_the_scrubber() -> None:
    given = {**StreamScrubber.__init__.__annotations__}
    del given["tools"], given["return"]
    assert {name: getattr(kind, "__forward_arg__", kind) for name, kind in Options.__annotations__.items()} == given
    with pytest.raises(TypeError, match="modell"):
        scrub("x", modell="y")  # type: ignore[call-arg]
