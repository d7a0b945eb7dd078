"""A candidate from its opener to its end, within the limits."""

from __future__ import annotations

from ..blocks import BlockReader, Use
from ..bodies.tag_reader import TagsReader
from ..reading import DEAD, DONE, MORE
from .settling import Settling
from .state import CANDIDATE, REASON, SKIP, TEXT, Candidate


class Candidates(Settling):
    """Begins and follows candidates."""

    def _begin(self, candidate: Candidate) -> int:
        """Start reading a candidate at its opener; the text before it is told."""
        self._before(candidate.start)
        self._at = self._i = candidate.start
        if self._span and candidate.start == self._span_at and candidate.what in ("block", "tags", "header"):
            candidate.quoted = self._span
        self._candidate = candidate
        self._mode = CANDIDATE
        return DONE

    def _in_candidate(self, final: bool) -> bool:
        candidate = self._candidate
        assert candidate is not None
        buf = self._buf
        end = len(buf)
        reader = candidate.reader
        verdict = candidate.verdict
        if verdict == MORE:
            verdict = reader.read(buf, end, False)
            if verdict == MORE and final and (reader.evidence or candidate.what in ("line", "header")):
                # Without evidence nothing that the end of the stream decides can make it a call.
                verdict = reader.read(buf, end, True)
            candidate.verdict = verdict
        open_still = verdict == MORE and not final
        if (open_still or verdict == DONE) and reader.at - candidate.start > self._max_bytes:
            return self._too_large(candidate)
        if verdict == DONE and candidate.quoted:
            self._span = candidate.quoted
            lone = self._lone(reader.at, end, final)
            if lone == MORE:
                return False
            if lone == DONE:
                return self._refute(candidate, reader.at)
        if self._progress and verdict != DEAD:
            self._announce(candidate)
        if open_still:
            return False
        self._candidate = None
        self._go_home()
        if candidate.what == "header":
            return self._header_done(candidate, verdict)
        if candidate.what == "line":
            return self._line_done(candidate, verdict, final)
        if candidate.what == "tags":
            return self._tags_done(candidate, verdict, final)
        return self._block_done(candidate, verdict, final)

    def _too_large(self, candidate: Candidate) -> bool:
        reader = candidate.reader
        markerless = candidate.what == "line" or getattr(getattr(reader, "envelope", None), "demand", False)
        stop = candidate.start + self._max_bytes
        known = None if markerless or candidate.what == "header" else self._known_by(candidate, stop)
        if known is None:
            self._muted = max(self._muted, reader.at if markerless else stop)
            return self._refute(candidate)
        name, grammar = known
        self._reject(candidate, "too_large", name, stop, f"over {self._max_bytes} bytes", grammar)
        self._mode = SKIP
        return True

    def _known_by(self, candidate: Candidate, stop: int) -> tuple[str | None, str] | None:
        """Name and grammar as far as the bytes before ``stop`` show them, however many there are by now.

        None if these show no evidence of a call.
        """
        reader, role = candidate.reader, candidate.role
        if candidate.frame is not None:
            return candidate.name, candidate.frame.name
        begin = candidate.start + candidate.size
        fresh: BlockReader | TagsReader
        if isinstance(reader, TagsReader):
            assert role is not None
            use: Use = role.target
            fresh = TagsReader(begin, use.settings["around"], self._offer, use.settings)
            grammar = role.grammar
        else:
            assert isinstance(reader, BlockReader)
            envelope = reader.envelope
            fresh = BlockReader(
                envelope,
                self._offer,
                begin - (1 if envelope.from_last else 0),
                attributes={"name": candidate.name} if candidate.name else {},
                attributed=role is not None and role.attributes,
            )
        fresh.read(self._buf, max(begin, min(stop, len(self._buf))), False)
        if not fresh.evidence and not candidate.name:
            return None
        if isinstance(fresh, BlockReader):
            grammar = fresh.grammar
        return fresh.name or candidate.name or None, grammar

    def _in_skip(self, final: bool) -> bool:
        """The rest of a block that was too large: dropped without keeping it."""
        candidate = self._candidate
        assert candidate is not None
        reader = candidate.reader
        end = len(self._buf)
        verdict = reader.read(self._buf, end, final) if candidate.verdict == MORE else candidate.verdict
        ended = verdict != MORE or final
        stop = end if verdict == MORE else reader.at
        if not ended:
            stop = min(stop, reader.keep, reader.at)
        stop = max(self._at, stop)
        self._drop("overflow", self._at, stop)
        self._at = self._i = stop
        if not ended:
            return False
        self._candidate = None
        self._go_home()
        self._after_block()
        self._after_call = True
        return True

    def _go_home(self) -> None:
        """Return to the mode around the candidate. A section that goes on behind a call does so once."""
        self._mode = self._home
        if self._home == REASON:
            self._home = TEXT
