"""Finish reasons as providers spell them: an ordinary end, an end at a limit, an end in a call."""

from __future__ import annotations

from typing import Final

# The model stopped by itself. With every other reason the last bytes may be cut off.
ORDINARY: Final = frozenset(
    (
        "stop", "stop_sequence", "eos", "eos_token", "end_turn", "tool_calls", "tool_use", "function_call", "complete",
        "completed",
    )
)  # fmt: skip
# Those of them that say that the response ends in a call.
CALLING: Final = frozenset(("tool_calls", "tool_use", "function_call"))
CUT: Final = frozenset(("length", "max_tokens", "max_output_tokens", "incomplete"))
_PREFIX: Final = "finish_reason_"  # of the names of an enumeration


def plain_reason(finish_reason: str) -> str:
    """The reason in lower case, its words joined by ``_``, without the prefix of an enumeration.

    >>> plain_reason("FINISH_REASON_STOP"), plain_reason("tool-calls")
    ('stop', 'tool_calls')
    """
    return finish_reason.strip().lower().replace("-", "_").removeprefix(_PREFIX)
