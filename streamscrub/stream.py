"""Whole responses and iterators of deltas, read with one call."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from .events import Event, Scrubbed
from .grammar import Grammar
from .scrubber import StreamScrubber

if TYPE_CHECKING:
    from pathlib import Path


class Options(TypedDict, total=False):
    """The options of ``StreamScrubber``, where they are passed on. What they mean, and their defaults, stands there."""

    grammars: Iterable[str | Path | Grammar] | None
    model: str | None
    reasoning: Literal["auto", "open", "off"]
    prefill: str | bytes
    recover: bool
    on_fabricated: Literal["drop", "cut", "keep"]
    progress: bool
    strict: bool
    max_call_bytes: int
    max_depth: int
    max_calls: int


def scrub(
    text: str | bytes,
    tools: Iterable[Any] | None = None,
    *,
    finish_reason: str | None = "stop",
    **options: Unpack[Options],
) -> Scrubbed:
    """Read a complete response. ``options`` are those of ``StreamScrubber``; the result holds all its events."""
    scrubber = StreamScrubber(tools, **options)
    return Scrubbed([*scrubber.feed(text), *scrubber.finish(finish_reason)])


def wrap(
    iterable: Iterable[str | bytes],
    tools: Iterable[Any] | None = None,
    *,
    finish_reason: str | Callable[[], str | None] | None = "stop",
    **options: Unpack[Options],
) -> Iterator[Event]:
    """Read an iterator of deltas. ``finish_reason`` is a value, or a callable asked when the iterator is exhausted.

    Raises at once what ``StreamScrubber`` raises, and ``TypeError`` if there is nothing to iterate.
    """
    whole = hasattr(iterable, "choices")  # a response that did not stream; some of those can be iterated
    if whole or not isinstance(iterable, Iterable):
        hint = "pass the text of its message to scrub" if whole else "awrap takes asynchronous ones"
        raise TypeError(f"wrap takes an iterable of deltas, not {type(iterable).__name__}; {hint}")
    scrubber = StreamScrubber(tools, **options)
    return _wrapped(iterable, scrubber, finish_reason)


def _wrapped(
    iterable: Iterable[str | bytes], scrubber: StreamScrubber, finish_reason: str | Callable[[], str | None] | None
) -> Iterator[Event]:
    for chunk in iterable:
        yield from scrubber.feed(chunk)
    yield from scrubber.finish(finish_reason() if callable(finish_reason) else finish_reason)


def awrap(
    iterable: AsyncIterable[str | bytes],
    tools: Iterable[Any] | None = None,
    *,
    finish_reason: str | Callable[[], str | None] | None = "stop",
    **options: Unpack[Options],
) -> AsyncIterator[Event]:
    """As ``wrap``, for an asynchronous iterator of deltas; ``finish_reason`` stays synchronous.

    >>> import asyncio
    >>> async def deltas():
    ...     for delta in ("It is ", "noon."):
    ...         yield delta
    >>> async def show():
    ...     return [event.text async for event in awrap(deltas())]
    >>> asyncio.run(show())
    ['It is ', 'noon.']
    """
    if not isinstance(iterable, AsyncIterable):
        raise TypeError(
            f"awrap takes an asynchronous iterable of deltas, not {type(iterable).__name__}; wrap takes others"
        )
    scrubber = StreamScrubber(tools, **options)
    return _awrapped(iterable, scrubber, finish_reason)


async def _awrapped(
    iterable: AsyncIterable[str | bytes], scrubber: StreamScrubber, finish_reason: str | Callable[[], str | None] | None
) -> AsyncIterator[Event]:
    async for chunk in iterable:
        for event in scrubber.feed(chunk):
            yield event
    for event in scrubber.finish(finish_reason() if callable(finish_reason) else finish_reason):
        yield event
