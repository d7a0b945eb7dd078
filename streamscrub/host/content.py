"""Calls out of a provider's content blocks: only text is replaced, everything else keeps its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..events import RejectedCall, ToolCall
from ..stream import scrub


def recover_content(
    blocks: Iterable[Mapping[str, Any]],
    tools: Iterable[Any] | None = None,
    *,
    ids: Iterator[str],
    finish_reason: str | None = "stop",
    **options: Any,
) -> tuple[list[dict[str, Any]], list[RejectedCall]]:
    """Read the text blocks of a reply: (the blocks to keep, the calls that must not be run).

    ``blocks`` are plain dicts with a ``type``; those of type ``text`` hold ``text``. One cleaned text block stands
    where the first text block was, none where nothing visible is left; each call becomes a ``tool_use`` block with an
    id from ``ids`` (``mint_ids``, ``AdapterIds``) at the end. Blocks of other types (reasoning, images, a provider's
    own) are kept as they are. Where a block is a structured call already, markup is scrubbed and nothing is recovered.

    Raises ``TypeError`` for blocks that are no list of dicts.

    Reasoning that stood in the text is left out: providers do not take it back as text. ``options`` are those of
    ``StreamScrubber``.

    >>> block = {"type": "text", "text": '{"name": "ping", "arguments": {}}'}
    >>> recover_content([block], ids=iter(["m1-tool-1"]))[0]
    [{'type': 'tool_use', 'id': 'm1-tool-1', 'name': 'ping', 'input': {}}]
    """
    if isinstance(blocks, str | bytes | Mapping) or not isinstance(blocks, Iterable):
        raise TypeError(f"blocks: expected a list of content blocks (dicts with a type), got {type(blocks).__name__}")
    given: list[dict[str, Any]] = []
    for place, block in enumerate(blocks):
        if not isinstance(block, Mapping):
            raise TypeError(f"blocks[{place}]: expected a dict with a type, got {type(block).__name__}")
        given.append(dict(block))
    texts = [block for block in given if _is_text(block)]
    if any(block.get("type") == "tool_use" for block in given):
        options["recover"] = False
    read = scrub(_joined(texts), tools, finish_reason=finish_reason, **options)
    if all(not isinstance(event, ToolCall | RejectedCall) for event in read.events) and read.text == _joined(texts):
        return given, []
    kept: list[dict[str, Any]] = []
    for block in given:
        if not _is_text(block):
            kept.append(block)
        elif block is texts[0] and read.text.strip():
            kept.append({**block, "text": read.text})
    calls = [{"type": "tool_use", "id": next(ids), "name": one.name, "input": one.arguments} for one in read.calls]
    return kept + calls, read.rejected


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _joined(texts: list[dict[str, Any]]) -> str:
    return "".join(block["text"] for block in texts)
