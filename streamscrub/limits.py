"""The named limits, each with its reason. The first three are keyword arguments of ``StreamScrubber``."""

from __future__ import annotations

from typing import Final

# Bytes of one call block. A 100 kB write_file is normal, 1 MB is not; every repair stays near a second on it.
MAX_CALL_BYTES: Final = 1 << 20
# Levels of nesting in arguments. serde_json stops at 128, jiter at 200; far from Python's recursion limit of 1,000.
MAX_DEPTH: Final = 64
# Calls of one response. Providers offer at most 128 tools; stops a hundred thousand empty calls.
MAX_CALLS: Final = 128
# Characters of a tool name. OpenAI allows 64; beyond 128 fuzzy matching would cost milliseconds.
MAX_NAME: Final = 128
# Bytes of a tag head or frame header. Real headers are under 120.
MAX_HEADER: Final = 256
# Bytes of white space held while it waits for a verdict. Templates write a newline or two.
MAX_BLANKS: Final = 256
# Bytes that a closer inside an open string or value may wait for the real one.
CLOSER_WAIT: Final = 4096
# Characters that json_repair gets. Realistic damage is smaller, hostile input costs it seconds beyond.
MAX_REPAIR: Final = 32 * 1024
# Reads json_repair may make for each character. Realistic faults need at most 4.9, hostile ones thousands.
REPAIR_READS: Final = 8
# Characters of a list or dict in Python syntax that is decoded as a value. ast needs about a microsecond each.
MAX_PYTHON: Final = 64 * 1024
# Levels to which values are coerced by the schema.
MAX_COERCE_DEPTH: Final = 16
# Steps of work on one body: tokens of a damaged one, quotes whose meaning is in question, edits inside strings. Some
# 300,000 take a second. A megabyte of real JSON has half as many tokens; hostile text does not get more than that.
MAX_REPAIR_STEPS: Final = 300_000
# Repairs of one kind that are told one by one; the last of them stands for all that follow. A flood is no more telling.
MAX_SAME_REPAIRS: Final = 32
# Characters of a text kept in a Repair record.
MAX_REPAIR_TEXT: Final = 200
