"""A reply of the model, read: its text and its reasoning apart, and the calls out of them as a provider's records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..events import RejectedCall
from ..host.content import recover_content
from ..host.gate import CONTENT, may_recover
from ..stream import scrub

if TYPE_CHECKING:
    from .speaking import Dialect

# What providers say when a model or an endpoint takes no tools.
_NO_TOOLS: Final = re.compile(
    r"\b(?:tools?|functions?)(?:[ _-](?:calls?|calling|use|choice))?\b[^.\n]{0,60}"
    r"(?:\bnot (?:be )?(?:supported|available|enabled|allowed|permitted|recognized)|\bunsupported|\bno support)"
    r"|(?:\bnot|n['’]t|\bno) (?:\w+ )?support(?:s|ed)?\b[^.\n]{0,40}\b(?:tools?|functions?)\b"
    r"|\bunsupported\b[^.\n]{0,40}\b(?:tools?|functions?)\b",
    re.IGNORECASE,
)
# A refusal of this is long enough to say so.
_LOOKED_AT: Final = 4096
_REFUSALS: Final = frozenset((400, 404, 405, 422, 501))


def parse_assistant_message(
    message: Mapping[str, Any],
    tools: Iterable[Any] | None,
    *,
    ids: Iterator[str],
    finish_reason: str | None = "stop",
    provenance: str = CONTENT,
    guided: bool = False,
    append: bool = False,
    **options: Any,
) -> tuple[Mapping[str, Any], list[RejectedCall]]:
    """Read the text of a reply: (the message, the calls that must not be run).

    The message is the very object that was given if there is nothing to change. Else it is a new one: ``content`` is
    the text without markup and without blanks around it (None if nothing is left), reasoning is in
    ``reasoning_content``, and calls are records in ``tool_calls`` with ids from ``ids``. A list of content blocks
    stays one: only its text blocks are replaced. Structured calls win: where the message has some, the text is only
    scrubbed; with ``append`` the calls of the text come after them. ``provenance`` is what the text is
    (``host.may_recover``): out of anything but content no call is recovered. ``guided``: the tools were offered in the
    prompt, where text is the only way. ``options`` are those of ``StreamScrubber``.

    >>> reply = {"role": "assistant", "content": "It is noon."}
    >>> parse_assistant_message(reply, None, ids=iter(()))[0] is reply
    True
    """
    offered = None if tools is None else list(tools)
    structured = list(message.get("tool_calls") or ())
    recover = may_recover(
        offered=offered is None or bool(offered),
        structured=bool(structured),
        guided=append or (guided and not structured),
        provenance=provenance,
    )
    content = message.get("content")
    if isinstance(content, list):
        blocks, rejected = recover_content(
            content, offered, ids=ids, finish_reason=finish_reason, recover=recover, **options
        )
        return (message, rejected) if blocks == content else ({**message, "content": blocks}, rejected)
    if not isinstance(content, str):
        return message, []
    read = scrub(content, offered, finish_reason=finish_reason, recover=recover, **options)
    if read.text == content and not read.calls and not read.rejected:
        return message, []
    out: dict[str, Any] = {**message, "content": read.text.strip() or None}
    if read.reasoning.strip():
        before = message.get("reasoning_content")
        out["reasoning_content"] = f"{before}\n{read.reasoning}" if before else read.reasoning
    if read.calls:
        out["tool_calls"] = structured + [
            {
                "id": next(ids),
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in read.calls
        ]
    return out, read.rejected


def tools_unsupported(status: int | None, error: str) -> bool:
    """Does a provider refuse a request because it takes no tools?

    ``status`` is that of HTTP, None if it is not known; ``error`` is the text of the refusal.

    >>> tools_unsupported(400, "registry.example/llama2 does not support tools")
    True
    >>> tools_unsupported(400, "messages: at least one message is required")
    False
    """
    if status is not None and status not in _REFUSALS:
        return False
    return _NO_TOOLS.search(error[:_LOOKED_AT]) is not None


def after_refusal(dialect: Dialect, status: int | None, error: str) -> Dialect | None:
    """The dialect for a second try after a refusal: the protocol in the prompt, where the first try sent schemas.

    None: the refusal is about something else, or tools were in the prompt already, so that trying again is no use.
    """
    from .choice import GUIDED
    from .choice import dialect as named

    return named(GUIDED) if dialect.should_send_specs and tools_unsupported(status, error) else None
