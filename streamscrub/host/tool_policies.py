"""What becomes of a call of an unknown tool, and of one whose arguments do not fit: two policies, each its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ..events import RejectedCall, Repair, ToolCall
from ..limits import MAX_REPAIR_TEXT
from ..tools import Tool
from .answers import invalid_arguments_message, names_of, unknown_tool_message
from .validation import Problem, validate

Choice: TypeAlias = Literal["fail", "return_error", "rewrite"]
_CHOICES: Final = ("fail", "return_error", "rewrite")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a policy says about one call: run ``call``, or send ``message`` as its result, or fail with ``message``."""

    action: Literal["run", "return_error", "fail"]
    message: str = ""
    call: ToolCall | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """``fail``: the run ends. ``return_error``: the model is told, with close offered names. ``rewrite``: it becomes a
    call of the tool ``to``; the name as written stays in its repair (``ToolCall.corrected_from``).

    Raises ``ValueError`` for another choice, or a rewrite without a tool.
    """

    choice: Choice = "return_error"
    to: str = ""

    def __post_init__(self) -> None:
        if self.choice not in _CHOICES:
            raise ValueError(f"choice must be one of {', '.join(_CHOICES)}, not {self.choice!r}")
        if bool(self.to) != (self.choice == "rewrite"):
            raise ValueError("a tool to rewrite to goes with the choice 'rewrite', and only with it")

    def judge(self, call: RejectedCall, offered: Iterable[Tool | Mapping[str, Any] | str]) -> Answer:
        """What to do with a call that was rejected as ``unknown_tool``. Raises ``ValueError`` for another reason."""
        if call.reason != "unknown_tool":
            raise ValueError(f"the unknown-tool policy was asked about a call that is {call.reason}")
        names = names_of(offered)
        # Without arguments that could be read nothing is run under any name.
        if self.choice == "rewrite" and self.to in names and call.arguments is not None:
            return Answer("run", call=self._rewritten(call, call.arguments))
        message = unknown_tool_message(call, names)
        return Answer("fail" if self.choice == "fail" else "return_error", message)

    def _rewritten(self, call: RejectedCall, arguments: dict[str, Any]) -> ToolCall:
        written = (call.name or "")[:MAX_REPAIR_TEXT]
        repair = Repair("name", "name", written, self.to)
        return ToolCall(
            call.number, self.to, arguments, call.raw, call.grammar, call.span, (repair,), "name", call.model_id
        )


@dataclass(frozen=True, slots=True)
class InvalidArguments:
    """``fail``: the run ends. ``return_error``: the model is told which fields do not fit."""

    choice: Literal["fail", "return_error"] = "return_error"

    def __post_init__(self) -> None:
        if self.choice not in _CHOICES[:2]:
            raise ValueError(f"choice must be one of {', '.join(_CHOICES[:2])}, not {self.choice!r}")

    def judge(self, call: ToolCall, tool: Tool | Mapping[str, Any]) -> Answer:
        """Run the call, or say which fields do not fit the schema of its tool."""
        problems = validate(call.arguments, tool)
        if not problems:
            return Answer("run", call=call)
        return Answer(self.choice, invalid_arguments_message(call, problems), problems=tuple(problems))
