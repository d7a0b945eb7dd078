"""What a candidate that was read to its end comes to: calls, nothing, text again, or a wrapper around what follows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import groupby
from typing import Final, TypeAlias, cast

from ..blocks import NEST, BlockReader, Envelope, Part, Use
from ..bodies.base import Ending, TagReader, Written
from ..bodies.json_call import CallReader, scan
from ..events import Repair
from ..frames import Header, HeaderReader
from ..limits import MAX_HEADER
from ..lines import FenceReader, LineReader, declared
from ..reading import DEAD, DONE, MORE, Reader
from ..resolve import decode_parts, merge_headed, settle_call
from .release import Release
from .state import CANDIDATE, NO_PAD, REASON, Candidate

# Behind the word of a tag: an equals sign or a name attribute, with something of a value.
_NAME_BEGUN: Final = re.compile(rb"(?:\A\s*=|(?:\A|\s)(?:name|tool)\s*=)\s*[\"']?[^\s\"'>]")

_Decoded: TypeAlias = list[tuple[Written, str]]  # calls, each with its grammar


# Words behind an opener that was only mentioned; no name holds a blank.
_WORDS: Final = re.compile(r"[^\W\d_][\w'’-]*+(?:[,;:]?+[ \t]++[\w'’-]++)++[.!?,;:]*+")


class Settling(Release):
    """One method for each kind of candidate. They return False when the stream ended inside."""

    def _header_done(self, candidate: Candidate, verdict: int) -> bool:
        reader = candidate.reader
        assert isinstance(reader, HeaderReader)
        start, end = candidate.start, len(self._buf)
        if verdict != DONE:
            recipient = reader.recipient(self._buf, end)
            whole = not self._buf.endswith(recipient.encode())
            if recipient and not whole and reader.frame.begins_route(recipient):
                self._markup("delimiter", start, end)
                return False
            if recipient:
                name = self._offer.resolve(recipient).name if whole else None
                self._reject(candidate, "truncated", name, end, "the stream ended in the header")
                return False
            if not reader.ended(self._buf, end):
                self._markup("delimiter", start, end)
                return False
        header = reader.header
        assert header is not None
        if header.kind == "call":
            return self._call_frame(candidate, reader, header)
        if header.kind == "turn":
            if self._prefilling:
                self._markup("control", start, reader.at)
            else:
                self._drop_pending()
                self._at = self._i = start
                self._enter_drop("fabricated_turn")
            return True
        self._markup("delimiter", start, reader.at)
        if header.kind == "dropped":
            self._frame_over = True
            self._enter_result(reader.at, 0, reader.frame.around.close, "wrapper")
        if header.kind in ("text", "reasoning"):
            self._frame = reader.frame
            self._frame_kind = header.kind
            if header.kind == "reasoning":
                self._mode = REASON
                self._draft_from = -1
        return True

    def _call_frame(self, candidate: Candidate, reader: HeaderReader, header: Header) -> bool:
        """The header of a call: its message is read as the body of a block."""
        if reader.broken:
            name = self._offer.resolve(header.recipient).name
            self._reject(candidate, "truncated", name, reader.at, "the header has no message")
            return True
        frame = reader.frame
        name = frame.tool_name(header.recipient, self._offer)
        envelope = Envelope(frame.name, frame.around, named=frame.typed(header.type), inner=frame.inner, special=True)
        block = BlockReader(envelope, self._offer, reader.at, attributes={"name": name})
        block.evidence = True
        candidate.reader = block
        candidate.what = "block"
        candidate.verdict = MORE
        candidate.name = name
        candidate.frame = frame
        candidate.code = header.code
        self._candidate = candidate
        self._mode = CANDIDATE
        return True

    def _line_done(self, candidate: Candidate, verdict: int, final: bool) -> bool:
        reader = candidate.reader
        assert isinstance(reader, LineReader)
        buf, offer = self._buf, self._offer
        if verdict == MORE:
            found = reader.calls(buf) if reader.valued else []
            if self._cut_off and (declared(found, offer) if reader.valued else reader.evidence):
                name = found[0].name if found else reader.name
                self._reject(candidate, "truncated", name, len(buf), "the stream ended inside the call")
                return False
            self._muted = len(buf)
            return self._refute(candidate)
        cut = final and self._cut_off and not reader.met
        calls = reader.calls(buf) if verdict != DEAD else []
        unclosed = final and isinstance(reader, FenceReader) and not reader.closed
        counts = declared(calls, offer) if offer.known else bool(calls) and self._is_plain_object(candidate)
        if counts:
            if cut or (unclosed and self._cut_off):
                self._reject(candidate, "truncated", calls[0].name, reader.at, "no end of the line or fence")
                return True
            if unclosed:
                for call in calls:
                    call.repairs.append(Repair("missing_close", span=(reader.at - candidate.start,) * 2))
            if self._is_copy(calls):
                self._markup("padding", candidate.start, reader.at)
                return True
            outcomes = [settle_call(call, reader.grammar, offer, recover=self._recover) for call in calls]
            self._tell_outcomes(candidate, outcomes, reader.at)
            return True
        self._muted = max(self._muted, reader.refuted_to)
        return self._refute(candidate)

    def _is_plain_object(self, candidate: Candidate) -> bool:
        """Without tools only an object with exactly the keys name and arguments counts."""
        try:
            value = json.loads(bytes(self._buf[candidate.start : candidate.reader.at]))
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and set(value) == {"name", "arguments"} and isinstance(value["arguments"], dict)

    def _is_copy(self, calls: list[Written]) -> bool:
        """A markerless copy of the block just closed."""
        if not self._after_markup or not self._last_calls or not self._after_call:
            return False
        return [(call.name or "", call.arguments) for call in calls] == self._last_calls

    def _block_done(self, candidate: Candidate, verdict: int, final: bool) -> bool:
        reader = candidate.reader
        assert isinstance(reader, BlockReader)
        if verdict == NEST:
            return self._nested(candidate, reader)
        if verdict == DEAD:
            return self._refute(candidate)
        if verdict == MORE and not reader.evidence:
            return self._unproven(candidate)
        buf, envelope = self._buf, reader.envelope
        if envelope.demand and not self._demanded(reader, verdict):
            self._muted = max(self._muted, reader.at)
            return self._refute(candidate)
        stop = reader.at if verdict == DONE else self._end_of(reader.inner)
        parts = list(reader.parts)
        if not candidate.size and reader.closed:
            stop = max(reader.closer, candidate.start)  # what closes the section is read by itself
        if verdict == MORE:
            part = reader.open_part(len(buf), self._cut_off)
            if part is not None:
                parts.append(part)
        if candidate.code:
            parts = [
                replace(part, use=replace(part.use, settings={**part.use.settings, "code": True})) for part in parts
            ]
        closes = envelope.closes and bool(envelope.around.close.literals)
        if reader.unclosed and reader.parts:
            closes = closes and buf[reader.parts[-1].start] not in reader.unclosed
        if reader.frayed and closes and self._cut_off:
            stop = len(buf)
        calls = self._block_calls(candidate, reader, parts, stop)
        named = reader.attributes.get("name") is not None or any(part.name is not None for part in parts)
        # A frame names its call before the message, and an open body is cut whatever would close its envelope.
        lacks_end = (closes and not reader.implicit) or bool(candidate.name) or len(parts) > len(reader.parts)
        cut = not reader.closed and final and self._cut_off and lacks_end
        if named and len(parts) > len(reader.parts):
            # Objects under one name are one call: what began as another one, and cannot be read, makes it a cut one.
            cut = cut or all(call.start < parts[-1].start - candidate.start for call, _ in calls)
        by_id = any("{id}" in template for template in envelope.headers) and any(part.model_id for part in reader.parts)
        self._frame_over = self._frame_over or bool(candidate.name)
        return self._settle_block(candidate, calls, stop, cut=cut, unclosed=closes and not reader.closed, by_id=by_id)

    def _end_of(self, reader: Reader | None) -> int:
        """Where a body ends that was complete before the stream ended, and was followed by other text."""
        over: int = getattr(reader, "over", -1)
        return over if over >= 0 and not self._cut_off else len(self._buf)

    def _demanded(self, reader: BlockReader, verdict: int) -> bool:
        """Were offered names read where the form alone proves nothing? A cut one needs a declared key as well."""
        if verdict == MORE:
            leading = reader.leading
            return self._cut_off and isinstance(leading, CallReader) and leading.watch.declared
        names = [scan(bytes(self._buf[part.start : part.end]), self._offer).name for part in reader.parts]
        return all(name is not None and self._offer.plain(name) is not None for name in names)

    def _block_calls(self, candidate: Candidate, reader: BlockReader, parts: list[Part], stop: int) -> _Decoded:
        base = candidate.start
        named, model_id = reader.attributes.get("name"), reader.attributes.get("id")
        calls = decode_parts(parts, bytes(self._buf[base:stop]), base, self._offer, named)
        if named is not None or any(part.name is not None for part in parts):
            groups = [list(group) for _, group in groupby(calls, key=lambda pair: pair[0].name)]
            calls = [pair for group in groups for pair in merge_headed(group, self._offer)]
        for call, _ in calls:
            call.model_id = call.model_id or model_id or None
        return calls

    def _tags_done(self, candidate: Candidate, verdict: int, final: bool) -> bool:
        reader, role = cast("TagReader", candidate.reader), candidate.role
        assert role is not None
        if verdict == DEAD:
            return self._refute(candidate)
        if verdict == MORE and not reader.evidence:
            return self._unproven(candidate)
        use: Use = role.target
        stop = reader.at if verdict == DONE else self._end_of(reader)
        self._section = self._section and not reader.wrapped
        alone = reader.closed or reader.mention
        ending: Ending = "whole" if alone else "cut" if verdict == MORE and self._cut_off else "closed"
        part = Part(use, candidate.start + candidate.size, stop, ending)
        calls = decode_parts([part], bytes(self._buf[candidate.start : stop]), candidate.start, self._offer)
        cut = not reader.closed and final and self._cut_off and verdict == MORE
        return self._settle_block(candidate, calls, stop, cut=cut, unclosed=not reader.closed, by_id=False)

    def _settle_block(
        self, candidate: Candidate, calls: _Decoded, stop: int, *, cut: bool, unclosed: bool, by_id: bool
    ) -> bool:
        """Tell the calls of a block. ``cut``: its last call lacks its end and does not run."""
        if not calls and candidate.name:
            name = self._offer.resolve(candidate.name).name
            self._reject(candidate, "truncated", name, stop, "the stream ended before the arguments")
            return True
        if not calls:
            self._markup("empty", candidate.start, stop)
            return True
        last = calls[-1][0]
        told = any(repair.kind == "missing_close" for repair in last.repairs)
        if unclosed and last.complete and not cut and not told:
            last.repairs.append(Repair("missing_close", span=(stop - candidate.start,) * 2))
        outcomes = [
            settle_call(
                call, grammar, self._offer, recover=self._recover, by_id=by_id and call.name is not None,
                cut=cut and call is last,
            )
            for call, grammar in calls
        ]  # fmt: skip
        documented = self._bare_fence is not None and not candidate.special and self._offer.known
        if documented and all(one.reason == "unknown_tool" for one in outcomes):
            # In a fence without a language, a call of nothing that is offered is an example.
            return self._refute(candidate, stop)
        self._tell_outcomes(candidate, outcomes, stop)
        return True

    def _nested(self, candidate: Candidate, reader: BlockReader) -> bool:
        """The opener only wraps what follows, which has an opener of its own."""
        start, stop = candidate.start, reader.at
        self._wrapper = reader.envelope
        if candidate.frame is not None:
            # The message holds a call with an opener of its own, and nothing for the reader.
            self._drop_pending()
            self._pending.append(("wrapper", start, stop))
            self._at = self._i = stop
            self._after_block()
            self._frame, self._frame_kind = candidate.frame, "call"
            self._section = True
            self._promised = candidate.name
            return True
        if candidate.special:
            self._markup("wrapper", start, stop)
            return True
        if self._pending and stop - self._pending[0][1] > MAX_HEADER:
            # More openers than a format has: those before are words.
            self._tell_text(start)
        self._pending.append(("wrapper", start, stop))
        self._at = self._i = stop
        opener = bytes(self._buf[start : start + candidate.size])
        if opener.endswith(b"\n"):
            # A call-language fence around tags: its closing run goes with it.
            self._bare_fence = (opener[0], len(opener) - len(opener.lstrip(opener[:1])))
            self._bare_kept = False
        self._line = b""
        self._fresh_line = False
        self._after_markup = True
        self._pad = NO_PAD
        return True

    def _unproven(self, candidate: Candidate) -> bool:
        """The stream ended in a candidate without evidence (decisions 20 and 21)."""
        buf, reader = self._buf, candidate.reader
        start, end = candidate.start, len(buf)
        if isinstance(reader, BlockReader) and reader.envelope.shared:
            # It is not known to be a call: text, unless the stream was cut.
            if not self._cut_off:
                return self._refute(candidate)
            self._markup("cut_marker", start, end)
            return False
        opener = bytes(buf[start : start + candidate.size])
        rest = bytes(buf[start + candidate.size : end]).strip()
        begun = bool(rest.strip(b">=\"'{[ \t\r\n"))
        if begun and not candidate.special and self._cut_off:
            if candidate.what == "tags" or not (opener.endswith(b">") or rest.startswith(b">")):
                begins = _NAME_BEGUN.search(rest) is not None
            else:
                begins = not rest.lstrip(b"> \t\r\n").startswith(b"<")
        else:
            begins = begun and candidate.special
            if begins and _WORDS.fullmatch(rest.decode("utf-8", "replace")) is not None:
                return self._refute(candidate)
        if begins:
            self._reject(candidate, "truncated", None, end, "the stream ended before the name was whole")
            return False
        opened: int = getattr(reader, "opened", -1)
        whole = opened >= 0
        nothing = not buf[max(opened, start + candidate.size) : end].strip()
        alone = whole and nothing and self._line is not None and not self._line.strip()
        directly = not rest and not whole and self._after_markup and self._after_call
        if candidate.special or self._cut_off or alone or directly:
            self._markup("cut_marker" if self._cut_off or directly else "empty", start, end)
            return False
        return self._refute(candidate)
