"""``StreamScrubber``: bytes in, events out. The public face of the machine, and its two fast ways."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from .endings import ORDINARY, plain_reason
from .events import Event, Text, set_span, set_text
from .grammar import Grammar
from .limits import MAX_CALL_BYTES, MAX_CALLS, MAX_DEPTH
from .machine.machine import Machine
from .machine.state import CANDIDATE, DROP_PAD, NO_PAD, SKIP, TEXT
from .names import Offer
from .reading import TAIL, Run, nested
from .tools import read_tools
from .union import tables_for

if TYPE_CHECKING:
    from pathlib import Path

_REPLACEMENT: Final = "\ufffd".encode()
_UNREAD: Final = 16384  # characters and deltas that are kept unread, at most
_new: Final = object.__new__
_MODES: Final = ("text", "a call", "reasoning", "code", "a made-up result", "dropped rest", "a large block", "frames")


class StreamScrubber(Machine):
    """Read one response as it arrives. See the README for the events and the guarantees.

    ``tools`` are the tools offered in this request, in any ecosystem's shape (``Tool``, OpenAI, Anthropic, MCP); None:
    unknown, so names are taken as written; ``[]``: none. ``grammars`` restricts the wire formats to names, paths of
    TOML files or ``Grammar`` objects. ``model`` orders ambiguous readings, and starts inside the reasoning where the
    prompt of this model always opens it. ``reasoning`` is "auto", "open" (the prompt opened a section) or "off";
    ``prefill`` the tail of the prompt that belongs to the assistant's turn. With
    ``recover=False`` calls are scrubbed and rejected as withheld; ``progress=True`` adds ``CallStarted`` and
    ``ArgumentsDelta`` while a call is read. ``on_fabricated`` is "drop", "cut" or "keep".
    ``strict`` rejects every call that would need a repair. ``max_call_bytes`` (bytes of a block), ``max_depth`` (levels
    of nesting) and ``max_calls`` (calls of a response) are at least 1 and explained in ``streamscrub.limits``.

    Raises ``TypeError`` or ``ValueError`` for wrong use, never for what a model wrote.
    """

    # What each delta asks for; the rest of the state is in ``__dict__``.
    __slots__ = ("_begun", "_parts", "_room", "_search", "_skim")

    def __init__(
        self,
        tools: Iterable[Any] | None = None,
        *,
        grammars: Iterable[str | Path | Grammar] | None = None,
        model: str | None = None,
        reasoning: Literal["auto", "open", "off"] = "auto",
        prefill: str | bytes = "",
        recover: bool = True,
        on_fabricated: Literal["drop", "cut", "keep"] = "drop",
        progress: bool = False,
        strict: bool = False,
        max_call_bytes: int = MAX_CALL_BYTES,
        max_depth: int = MAX_DEPTH,
        max_calls: int = MAX_CALLS,
    ) -> None:
        _one_of("reasoning", reasoning, ("auto", "open", "off"))
        _one_of("on_fabricated", on_fabricated, ("drop", "cut", "keep"))
        for name, limit in (("max_call_bytes", max_call_bytes), ("max_depth", max_depth), ("max_calls", max_calls)):
            if not isinstance(limit, int) or isinstance(limit, bool):
                raise TypeError(f"{name} must be an int, not {type(limit).__name__}")
            if limit < 1:
                raise ValueError(f"{name} must be at least 1, not {limit}")
        for name, flag in (("recover", recover), ("progress", progress), ("strict", strict)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} must be a bool, not {type(flag).__name__}")
        if model is not None and not isinstance(model, str):
            raise TypeError(f"model must be a str or None, not {type(model).__name__}")
        self._options = (tuple(grammars) if grammars is not None and not isinstance(grammars, str) else grammars, model)
        super().__init__(
            Offer(read_tools(tools)),
            tables_for(self._options[0], model),
            reasoning=reasoning,
            recover=recover,
            on_fabricated=on_fabricated,
            progress=progress,
            strict=strict,
            max_call_bytes=max_call_bytes,
            max_depth=max_depth,
            max_calls=max_calls,
        )
        self._start_reading(None)
        self._matched = 0
        self._match_limit = 0
        if not isinstance(prefill, str | bytes):
            raise TypeError(f"prefill must be str or bytes, not {type(prefill).__name__}")
        data = self._tables.of_own_turn(self._encode(prefill) if isinstance(prefill, str) else prefill)
        # What a prompt says of itself is known better than what the prompts of a model are like.
        if reasoning == "open" or (reasoning == "auto" and self._tables.opened and not data):
            self._enter_reasoning()
        if data:
            self._base = -len(data)
            self._buf += data
            self._prefilling = True
            self._run(False)
            self._compact()
            self._out = []
            self._prefilling = False
            self._tail, self._shown = "", False
            if self._mode == TEXT and self._pad == NO_PAD:
                self._pad = DROP_PAD
        for frame in self._tables.frames:
            if frame.begun(self._buf) or (frame.name == self._tables.stripped and not prefill):
                self._expect_stripped(frame)
                break

    def _start_reading(self, search: Callable[[str], object] | None) -> None:
        """Set what each delta asks for. Nothing goes by unread, but for text in which ``search`` finds nothing."""
        self._search = search
        self._skim: Run | None = None  # runs over the open string or value
        self._begun = ""  # the end of the last delta, if it may begin an escape or a marker
        self._parts: list[str] = []  # deltas that decide nothing, not in the buffer yet
        self._room = 0  # how much of it may be kept before the limits are looked at

    def feed(self, chunk: str | bytes) -> list[Event]:
        """Take the next piece of the response, cut anywhere. Returns what is decided by now, in order.

        Raises ``TypeError`` for anything but ``str`` or ``bytes`` and ``ValueError`` after ``finish``.
        """
        # Two states make up nearly all of a stream, and each is left only for something that could change it: ordinary
        # text in the middle of a line, and the inside of a long string or value.
        if type(chunk) is str:
            search = self._search
            if search is not None and search(chunk) is None and chunk:
                start = self._base
                try:
                    self._base = end = start + (len(chunk) if chunk.isascii() else len(chunk.encode()))
                except UnicodeEncodeError:
                    return self._slow(self._encode(chunk))
                self._tail = chunk
                event = _new(Text)
                set_text(event, chunk)
                set_span(event, (start, end))
                return [event]
            skim = self._skim
            if skim is not None:
                room = self._room - len(chunk) - 1
                if room > 0 and (self._begun or skim.loud(chunk) is not None):
                    quiet = skim.quiet(self._begun + chunk)
                    if quiet is not None:
                        self._begun = quiet[1]
                    else:
                        room = 0
                if room > 0:
                    self._room = room
                    self._parts.append(chunk)
                    return []
                self._join()
                buf = self._buf
                buf += self._encode(chunk)
                size = len(buf)
                self._matched = end = skim.match(buf, self._matched).end()
                # The last bytes may begin an escape or a marker; they are matched again with the next ones.
                quiet = skim.quiet(buf[end : end + TAIL + 1].decode("ascii", "replace"))
                if quiet is not None and size <= self._match_limit:
                    self._room = min(_UNREAD, (self._match_limit - size) // 4)
                    self._begun = quiet[1]
                    return []
                return self._slow(b"")
            data = self._encode(chunk)
        elif isinstance(chunk, bytes | bytearray | memoryview):
            self._join()
            data = bytes(chunk)
            if self._high:
                data = _REPLACEMENT + data
                self._high = ""
        elif isinstance(chunk, str):
            self._join()
            data = self._encode(str(chunk))
        else:
            raise TypeError(f"feed takes str or bytes, not {type(chunk).__name__}{_meant(chunk)}")
        if self._finished:
            raise ValueError("feed after finish: make a new StreamScrubber for the next response")
        return self._slow(data)

    def _slow(self, data: bytes) -> list[Event]:
        """Take bytes through the machine, and see whether the next delta may go the fast way."""
        self._leave_fast_way()
        self._buf += data
        self._run(False)
        self._compact()
        out, self._out = self._out, []
        candidate = self._candidate
        if candidate is None:
            if self._mode == TEXT and not self._buf and self._fast():
                self._search = self._tables.lead.search
        elif self._mode == CANDIDATE and not self._progress and not self._high:
            reader = candidate.reader
            if reader.run is not None:
                self._skim = reader.run
                *_, innermost = nested(reader)
                self._matched = innermost.at
                self._match_limit = candidate.start + self._max_bytes
                room = (self._match_limit - len(self._buf)) // 4
                self._room = min(_UNREAD, room) if self._matched == len(self._buf) else 0
        return out

    def finish(self, finish_reason: str | None = None) -> list[Event]:
        """End the response. ``finish_reason`` None means that the stream broke off and is treated like "length".

        "stop", "stop_sequence", "eos", "eos_token", "end_turn", "tool_calls", "tool_use", "function_call", "complete"
        and "completed" are ordinary ends, in any case, with "-" for "_", and behind "FINISH_REASON_"; with any other
        reason an open block counts as cut.

        Returns the last events; a second call returns nothing. Raises ``TypeError`` for a reason that is no string.
        """
        if finish_reason is not None and not isinstance(finish_reason, str):
            raise TypeError(f"finish_reason must be a str or None, not {type(finish_reason).__name__}")
        if self._finished:
            return []
        self._finished = True
        self._cut_off = finish_reason is None or plain_reason(finish_reason) not in ORDINARY
        self._leave_fast_way()
        if self._high:
            self._buf += _REPLACEMENT
            self._high = ""
        self._run(True)
        self._compact()
        out, self._out = self._out, []
        return out

    def _leave_fast_way(self) -> None:
        """Bring the state up to date with what went by unread."""
        if self._skim is not None:
            self._stop_skimming()
        elif self._search is not None:
            self._told_to = self._base
            self._last = self._tail[-1:].encode()
            self._shown = True
            self._after_markup = False
        self._search = None

    @property
    def held(self) -> bytes:
        """What is withheld right now, in wire bytes."""
        self._join()
        start = self._pending[0][1] if self._pending else self._at
        return bytes(self._buf[max(start, -self._base) :])

    def __repr__(self) -> str:
        """Where the response stands: the mode, the bytes read, the bytes held.

        >>> scrubber = StreamScrubber()
        >>> _ = scrubber.feed("Noon. <tool")
        >>> scrubber
        <StreamScrubber in text, 11 bytes read, 5 held>
        """
        held = len(self.held)
        where = "finished" if self._finished else f"in {_MODES[self._mode]}"
        return f"<StreamScrubber {where}, {self._base + len(self._buf)} bytes read, {held} held>"

    def _fast(self) -> bool:
        """True in the middle of a line of ordinary text, where only a lead character can change anything."""
        return (
            self._line is None
            and not self._fresh_line
            and self._pad == NO_PAD
            and not self._section
            and not self._high
            and not self._finished
            and not self._pending
        )

    def _encode(self, chunk: str) -> bytes:
        """Wire bytes of a text delta: a surrogate pair joins over two deltas, a lone one is U+FFFD."""
        if self._high:
            chunk = self._high + chunk
            self._high = ""
        try:
            return chunk.encode()
        except UnicodeEncodeError:
            if "\ud800" <= chunk[-1] <= "\udbff":
                self._high = chunk[-1]
                chunk = chunk[:-1]
            return chunk.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()

    def _join(self) -> None:
        """Bring the deltas that were only kept into the buffer."""
        if self._parts:
            text = "".join(self._parts)
            self._parts.clear()
            self._buf += self._encode(text)
            self._matched = len(self._buf) - len(self._begun)

    def _catch_up(self) -> None:
        """Everything up to ``_matched`` was the text of an open string or value."""
        self._join()
        candidate = self._candidate
        assert candidate is not None
        for reader in nested(candidate.reader):
            reader.at = self._matched

    def _compact(self) -> None:
        """Forget what was told. The buffer holds only what is undecided."""
        candidate = self._candidate
        low = self._pending[0][1] if self._pending else self._at
        if low <= 0:
            return
        if candidate is not None:
            low = min(low, candidate.start) if self._mode != SKIP else min(candidate.reader.keep, candidate.reader.at)
        if self._draft_from >= 0:
            low = min(low, self._draft_from)
        if low <= 0:
            return
        del self._buf[:low]
        self._base += low
        self._at -= low
        self._i -= low
        self._span_at -= low
        self._muted -= low
        self._draft_from = self._draft_from - low if self._draft_from >= 0 else -1
        if self._last_draft is not None:
            self._last_draft.shift(low)
        if self._pending:
            self._pending = [(kind, start - low, end - low) for kind, start, end in self._pending]
        if candidate is not None:
            candidate.start -= low
            candidate.told -= low if candidate.told >= 0 else 0
            candidate.reader.shift(low)

    def __deepcopy__(self, memo: dict[int, Any]) -> StreamScrubber:
        self._stop_skimming()
        other = object.__new__(StreamScrubber)
        shared = ("_tables", "_offer", "_options")
        other._start_reading(self._search)
        for key, value in self.__dict__.items():
            other.__dict__[key] = value if key in shared else copy.deepcopy(value, memo)
        return other

    def _stop_skimming(self) -> None:
        """Leave the fast way inside a value, whose state would not survive a copy."""
        if self._skim is not None:
            self._catch_up()
            self._skim = None
            self._begun = ""

    def __getstate__(self) -> dict[str, Any]:
        self._stop_skimming()
        state = {**self.__dict__, "_search": self._search is not None}
        del state["_tables"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        searches = state.pop("_search")
        self.__dict__.update(state)
        self._tables = tables_for(self._options[0], self._options[1])
        self._start_reading(self._tables.lead.search if searches else None)


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(allowed)}, not {type(value).__name__}")
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")


def _meant(chunk: object) -> str:
    """What to pass instead of something that is no text."""
    if chunk is None:
        return "; skip deltas without content"
    if hasattr(chunk, "choices") or (isinstance(chunk, dict) and "choices" in chunk):
        return "; pass the text of its delta, choices[0].delta.content"
    if hasattr(chunk, "__iter__") or hasattr(chunk, "__aiter__"):
        return "; wrap reads an iterable of deltas, awrap an asynchronous one"
    return "; pass the text of the delta"
