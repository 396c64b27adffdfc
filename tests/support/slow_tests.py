"""Print the fast tests that take much CPU time: a pytest plugin. It fails none, because machines differ."""

from __future__ import annotations

import time
from collections.abc import Generator

import pytest

from tests.support.needs import is_fast

PRINTED = 0.5
"""CPU seconds of the call phase above which a fast test is printed."""
PROPERTY = "cpu_seconds"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Record the CPU time of the call phase of a fast test."""
    start = time.process_time()
    result = yield
    spent = time.process_time() - start
    if spent > PRINTED and is_fast(item):
        item.user_properties.append((PROPERTY, spent))
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the fast tests above `PRINTED`, slowest first."""
    spent: dict[str, float] = {
        report.nodeid: float(str(seconds))
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, seconds in report.user_properties
        if name == PROPERTY
    }
    if spent:
        terminalreporter.section(f"fast tests that take more than {PRINTED:g} s of CPU time")
        for nodeid, seconds in sorted(spent.items(), key=lambda pair: -pair[1]):
            terminalreporter.line(f"{seconds:5.1f} s  {nodeid}")
