"""A framed format whose tokens a server took away: channel words and recipients run into the text.

Read only where such a format is expected, because the words are ordinary ones.
"""

from __future__ import annotations

import re
from typing import Final

from ..blocks import BlockReader, Envelope
from ..frames import Frame
from ..limits import MAX_NAME
from ..reading import DEAD, DONE, MORE, NOTHING, Around
from ..sentinels import CUT
from .reasoning import ReasoningMode
from .state import NO_PAD, STRIPPED, TEXT, Candidate

_HEAD: Final = re.compile(rb"[ \t]{0,9}+to=([^\s<{]{1,%d}+)[ \t]{0,9}+(?:json|code)?[ \t]{0,9}+" % MAX_NAME)
# What a message without tokens may begin with, right behind the word of its channel: not what goes on with a sentence.
_GLUED: Final = re.compile(rb"[^ \t\r\n.,;:!?'a-z-]")
_GLUED_THOUGHT: Final = re.compile(rb"[^ \t\r\n.,;:!?'-]")  # no word goes on behind this one
_HEAD_CUT: Final = re.compile(
    rb"[ \t]{0,9}+(?:t(?:o(?:=[^\s<{]{0,%d}+[ \t]{0,9}+(?:j(?:s(?:on?)?)?|c(?:o(?:de?)?)?)?[ \t]{0,9}+)?)?)?\Z"
    % MAX_NAME
)


class Stripped(ReasoningMode):
    """Messages from one word of role and channel to the next."""

    def _expect_stripped(self, frame: Frame) -> None:
        """The response may begin with a channel word: look at its first bytes before anything else reads them."""
        self._stripped = frame
        self._resumed = self._mode
        self._mode = STRIPPED

    def _in_stripped(self, final: bool) -> bool:
        frame = self._stripped
        assert frame is not None
        if self._channel is None:
            return self._first_word(frame, final)
        buf = self._buf
        end = len(buf)
        while True:
            p, size = frame.glued.find(buf, self._i, end, final)
            other, token = self._tables.specials.find(buf, self._i, p if size > 0 else end, final or size > 0)
            stop = min(p, other)
            if token > 0 and other < p:
                # Not all tokens are gone: from here on they are read.
                self._tell_message(stop)
                self._mode = self._home = TEXT
                self._after_block()
                return True
            if size <= 0 or p > stop:
                self._tell_message(end if final else self._whole_end(self._at, stop))
                return False
            self._tell_message(p)
            channel = next(name for name in frame.channels if buf[p : p + size].endswith(name.encode()))
            verdict = self._message(frame, channel, p, p + size, end, final)
            if verdict == MORE:
                return False
            if verdict == DONE:
                return True

    def _first_word(self, frame: Frame, final: bool) -> bool:
        buf = self._buf
        start, end = max(0, -self._base), len(buf)
        here = bytes(buf[start:end])
        for name in frame.channels:
            word = name.encode()
            if here.startswith(word):
                if len(here) == len(word) and not final:
                    return False
                size = frame.marks.at(buf, start + len(word), end, final)
                if size == CUT:
                    return False
                if size > 0:
                    break
                follows = start + len(word)
                thought = frame.channels[name] == "reasoning"
                if (_GLUED_THOUGHT if thought else _GLUED).match(buf, follows, end) is None:
                    # Only a recipient may stand apart from the word; else it is one of an ordinary sentence.
                    if _HEAD_CUT.match(buf, follows, end) is not None and not final:
                        return False
                    if _HEAD.match(buf, follows, end) is None:
                        break
                # What the prompt began is over: its header had no tokens either.
                self._candidate = None
                self._pending.clear()
                self._at = self._i = start
                self._home = STRIPPED
                return self._message(frame, name, start, start + len(word), end, final) != MORE
            if word.startswith(here) and not final:
                return False
        self._mode = self._resumed
        return True

    def _message(self, frame: Frame, channel: str, start: int, stop: int, end: int, final: bool) -> int:
        """A message begins: its word stands from ``start`` to ``stop``. DONE: it is a call. MORE: undecided."""
        buf = self._buf
        head = _HEAD.match(buf, stop, end)
        cut = _HEAD_CUT.match(buf, stop, end) is not None
        if cut and not final:
            return MORE
        self._channel = channel
        if head is None or not frame.calls(head.group(1).decode("utf-8", "replace")):
            stop = head.end() if head is not None else stop
            self._markup("delimiter", start, stop)
            self._pad = NO_PAD
            return DEAD
        name = frame.tool_name(head.group(1).decode("utf-8", "replace"), self._offer)
        around = Around(NOTHING, self._tables.marks, self._tables.special)
        envelope = Envelope(frame.name, around, named=frame.uses, special=True, closes=False)
        block = BlockReader(envelope, self._offer, head.end(), attributes={"name": name})
        block.evidence = True
        return self._begin(Candidate(start, block, "block", head.end() - start, None, True, name=name))

    def _tell_message(self, stop: int) -> None:
        assert self._stripped is not None
        if self._stripped.channels.get(self._channel or "") == "reasoning":
            self._tell_reasoning(stop)
        elif stop > self._at:
            self._tell_text(stop)
        self._i = max(self._i, stop)
