"""Ready sentences for the model: what became of a call that was not run, and what to do instead."""

from __future__ import annotations

import re
from typing import Final

# Characters of a name or of a detail that are quoted back.
MAX_QUOTED: Final = 64
# A name that is quoted back holds nothing that could be read as markup.
_QUOTABLE: Final = re.compile(r"[\w.:/-]++(?: [\w.:/-]++){0,5}")
_UNSAFE: Final = re.compile(r"[^\w .,:;()'/…-]++")


def nudge(reason: str, name: str | None, size: int, detail: str = "") -> str:
    """Say to the model why a call was not run and what it can do, for any reason of a rejected call.

    ``size`` is the length of the block in bytes. What the model wrote is quoted only as far as it cannot be read as
    markup.

    >>> nudge("truncated", "write_file", 812)
    'write_file was cut off after 812 bytes. It was not run. Send it again, in smaller parts if it is long.'
    """
    call = quoted(name)
    match reason:
        case "truncated":
            return (
                f"{call} was cut off after {size} bytes. It was not run. Send it again, in smaller parts if it is long."
            )
        case "withheld":
            return f"{call} was not run: no tool can be called at this point. Answer in plain text."
        case "unknown_tool":
            return f"{call} was not run: there is no tool of this name. Call one of the offered tools, or answer."
        case "malformed":
            why = f" ({plain(detail)})" if plain(detail) else ""
            return f"{call} could not be read{why}. It was not run. Write the call again as one complete, valid block."
        case "too_large":
            return f"{call} was too large ({size} bytes). It was not run. Split the work into several smaller calls."
        case "too_many":
            return f"{call} was not run: too many calls in one reply. Wait for the results before you call more tools."
        case _:
            raise ValueError(f"no reason to reject a call: {reason!r}")


def quoted(name: str | None) -> str:
    """A name that begins a sentence, or words for a call whose name cannot be quoted."""
    return name if name and len(name) <= MAX_QUOTED and _QUOTABLE.fullmatch(name) else "The call"


def plain(text: str) -> str:
    """The start of ``text`` without anything that could be read as markup."""
    return _UNSAFE.sub(" ", text[: 4 * MAX_QUOTED]).strip()[: 2 * MAX_QUOTED].strip()
