"""Giving a candidate back: its bytes are text again, and scanning goes on inside it."""

from __future__ import annotations

import re
from typing import Final

from .calls import Calls
from .state import NO_PAD, TEXT, Candidate

INFO: Final = re.compile(rb"[ \t]*+([^\s`]*+)[ \t]*+")
_NAME_IN_TAG: Final = re.compile(rb"</?\s*([\w:.-]+)")


class Release(Calls):
    """What a refuted candidate leaves behind."""

    def _refute(self, candidate: Candidate, resume: int = -1) -> bool:
        """Not a call. Scanning goes on behind its opener, or at ``resume`` if nothing before it can be one."""
        self._candidate = None
        self._mode = TEXT
        start, size = candidate.start, candidate.size
        self._at = start
        if resume >= 0:
            self._advance(start, resume)
            self._line = None
            return True
        if not size:
            self._muted = max(self._muted, start + 1)
            self._i = start
            self._fresh_line = False
            return True
        if candidate.special:
            # The token itself is never text.
            self._i = start
            self._markup("control", start, start + size)
            return True
        self._pad = NO_PAD
        if candidate.what == "line":
            # Looked at again, now without markerless forms.
            self._muted = max(self._muted, start + 1)
            self._i = start
            self._fresh_line = False
        elif b"\n" in self._buf[start : start + size]:
            self._refuted_fence(start)
        else:
            name = tag_name(bytes(self._buf[start : start + size]))
            if name:
                self._released |= {name}
            elif candidate.what == "block" and candidate.role is not None:
                # An opener without a name: what would close its block is known by its envelope only.
                self._released |= frozenset(candidate.role.target.around.close.loose)
            self._advance(start, start + max(1, size))
        return True

    def _refuted_fence(self, start: int) -> None:
        """A fence line that began a candidate: what follows is read again as what it is now."""
        char = self._buf[start]
        j = start
        while j < len(self._buf) and self._buf[j] == char:
            j += 1
        self._advance(start, j)
        info = INFO.match(self._buf, j)
        if info is not None and info.group(1):
            self._i = j
            self._enter_fence(char, j - start)
            return
        self._bare_fence = (char, j - start)
        self._bare_kept = True
        self._line = None


def tag_name(word: bytes) -> bytes:
    """The name in the start of a tag, in lower case, or nothing."""
    found = _NAME_IN_TAG.match(word)
    return found.group(1).lower() if found is not None else b""
