"""Whether calls may be recovered from the text of a reply at all."""

from __future__ import annotations

from typing import Final

# Where the text of a reply comes from. Only what the model really answered is searched for calls.
CONTENT: Final = "content"
PROVENANCES: Final = (CONTENT, "refusal", "failed", "promoted_reasoning", "other")


def may_recover(*, offered: bool, structured: bool, guided: bool = False, provenance: str = CONTENT) -> bool:
    """Pass the answer as ``recover=``; with False markup is scrubbed all the same, and calls are withheld.

    ``offered``: tools were offered in this request. ``structured``: the response carried structured calls; then the
    text is not searched for more, unless the tools were offered in the prompt (``guided``), where text is the only way.
    ``provenance`` says what the text is; anything but "content" blocks. Raises ``ValueError`` for another word.

    >>> may_recover(offered=True, structured=False), may_recover(offered=True, structured=True)
    (True, False)
    """
    if provenance not in PROVENANCES:
        raise ValueError(f"provenance must be one of {', '.join(PROVENANCES)}, not {provenance!r}")
    return offered and provenance == CONTENT and (guided or not structured)
