"""Hypothesis profiles, and the summary of the cases that are reported but do not fail."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=80, suppress_health_check=QUIET)
settings.register_profile("long", deadline=None, max_examples=2000, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    cases = sys.modules.get(f"{__package__}.test_cases")
    for line in cases.summary_lines() if cases else []:
        terminalreporter.write_line(line)
