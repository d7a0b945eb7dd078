"""Pure helpers for a host's agent loop: ids, answers to the model, policies, tally, audit and replay.

Nothing here calls a model, runs a tool, asks for permission or waits. ``docs/host.md`` shows the loop.
"""

from __future__ import annotations

from .announcements import announces, intent
from .answers import close_names, invalid_arguments_message, truncation_message, unknown_tool_message
from .audit import AuditLog, read_audit
from .content import recover_content
from .gate import may_recover
from .ids import AdapterIds, Dispatch, dispatches, fill_ids, mint_ids
from .policies import Announced, CutAnswer, DroppedCall, EmptyReply, LoopGuard, Unreliable, gave_up
from .replaying import Baseline, Result, replay, replay_all, replay_batch
from .reply import Reply, Verdict, reply_of
from .sessions import Response, Unreadable, read_lines, read_session, session_record
from .store import TallyStore
from .structured import read_structured
from .tally import Counts, Tally
from .tool_policies import Answer, InvalidArguments, UnknownTool
from .turn import Turn
from .validation import Problem, validate

__all__ = [
    "AdapterIds", "Announced", "Answer", "AuditLog", "Baseline", "Counts", "CutAnswer", "Dispatch", "DroppedCall",
    "EmptyReply", "InvalidArguments", "LoopGuard", "Problem", "Reply", "Response", "Result", "Tally", "TallyStore",
    "Turn", "UnknownTool", "Unreadable", "Unreliable", "Verdict", "announces", "close_names", "dispatches",
    "fill_ids", "gave_up", "intent", "invalid_arguments_message", "may_recover", "mint_ids", "read_audit",
    "read_lines", "read_session", "read_structured", "recover_content", "replay", "replay_all", "replay_batch",
    "reply_of", "session_record", "truncation_message", "unknown_tool_message", "validate",
]  # fmt: skip
