"""The rows of the feature table, and the tests named after them: ``python -m tests.features`` writes docs/features.md.

A test belongs to a row if its name is ``test_``, the letter of the section, and the title of the row in lower case with
``_`` for everything that is no letter or digit; more may follow behind ``__``.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "features.md"

ROWS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "C": (
        "Repair",
        (
            "JSON repair",
            "Split objects, wrappers",
            "Schema-anchored extraction",
            "Stringified arguments",
            "Leaked delimiters in an arguments blob",
            "Invalid, not fatal",
            "Malformed block never leaks",
        ),
    ),
    "D": (
        "Names",
        ("Damaged names", "Fuzzy match to offered tools", "Correction is visible", "Pseudo tool unwrap"),
    ),
    "E": (
        "Argument coercion",
        (
            "Argument shapes",
            "is_string_only_schema",
            "String verbatim, else JSON",
            "Shape coercion",
            "Validation result",
        ),
    ),
    "F": (
        "Ids",
        (
            "Parser mints no ids",
            "Host-side minting",
            "Adapter minting",
            "Every recovered call gets an id before it runs",
        ),
    ),
    "G": (
        "Recovery gate",
        (
            "Gate by offered tools",
            "Reachable, not dead code",
            "No recovery out of substituted content",
            "Reasoning is never run",
            "Only when nothing structured",
        ),
    ),
    "H": (
        "Truncation",
        (
            "Cut call never runs",
            "Earlier complete calls run",
            "Suspect last call",
            "Ordinary stop, closer missing",
            "Answer to the model",
        ),
    ),
    "I": (
        "Turn policies",
        (
            "Dropped tool call",
            "Announced, no call",
            "Empty reply",
            "Cut-off answer",
            "Unreliable model",
            "Unknown-tool policy",
            "Invalid-arguments policy",
            "Same parser under every provider",
        ),
    ),
    "J": (
        "Dialect choice",
        (
            "Dialect enum, names",
            "preferred_for_model",
            "One object per dialect",
            "Per-run selection",
            "Selection really selects",
            "should_send_specs / embeds_catalogue / call_format",
            "Override by environment or option",
            "Fallback semantics",
            "Mode switch by the adapter",
        ),
    ),
    "K": (
        "Prompt and catalogue",
        (
            "In-band prompt",
            "Catalogue line",
            "Format guide per dialect",
            "Full parameter rules in the prompt",
            "Example fits the schema",
            "Signature catalogues",
            "json_tag block",
            "native block",
            "Forced choice in words",
            "host_renders_tool_catalogue",
            "Structured-output fallback tool",
            "Prefix stability",
        ),
    ),
    "L": (
        "Results",
        (
            "Result record",
            "Result envelope",
            "Per-dialect results",
            "Attribute rule",
            "Body rule",
            "Boundary integrity only",
        ),
    ),
    "M": (
        "History",
        (
            "Transcript vocabulary",
            "encode history",
            "Text folding",
            "Raw assistant text on replay",
            "pair_tool_cycles",
            "Compaction cut-off",
            "Transcript rendering",
        ),
    ),
    "N": ("Thinking", ("Thinking channel", "Implied opener", "Code quotes")),
    "O": (
        "Visibility",
        (
            "Repair marks",
            "Raw view",
            "Strategy of a repair",
            "Reliability tally",
            "Counts in the JSON envelope",
            "Audit log",
            "Replay",
            "Diagnostics",
        ),
    ),
    "P": ("Structured output", ("Envelope schema", "Envelope parse", "Switches")),
    "Q": ("Boundaries", ("Other content survives", "No execution", "Thin records")),
    "R": ("Beyond the table", ("Withheld calls", "Loop guard")),
}
# Sections whose every row must have a test now. The others are completed in tests/test_repair_tables.py.
COMPLETE: Final = "DFGHIJKLMNOPQR"


def slug(section: str, row: str) -> str:
    """The name of the test of a row."""
    return f"test_{section.lower()}_{re.sub(r'[^a-z0-9]+', '_', row.lower()).strip('_')}"


def tests() -> dict[str, list[str]]:
    """Name of a test function, up to ``__`` -> where such tests are, as ``file::name``."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.setdefault(node.name.split("__")[0], []).append(f"{path.name}::{node.name}")
    return found


def page() -> str:
    """The checklist in Markdown."""
    known = tests()
    out = [
        "# Features and their tests",
        "",
        "Generated by `python -m tests.features`; a test compares. Each row has the tests that are named after it.",
    ]
    for section, (title, rows) in ROWS.items():
        out += ["", f"## {title}", "", "| feature | tests |", "|---|---|"]
        for row in rows:
            found = known.get(slug(section, row), [])
            links = ", ".join(f"[`{one.split('::')[1]}`](../tests/{one.split('::')[0]})" for one in found)
            out.append(f"| {row} | {links or '—'} |")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
