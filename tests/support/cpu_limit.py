"""Keep fast tests fast: a pytest plugin that prints and bounds the CPU time of tests that start no processes."""

from __future__ import annotations

import time
from collections.abc import Generator

import pytest

from tests.support.needs import is_fast

PRINTED, LIMIT, TABLE_LIMIT = 0.5, 2.0, 10.0
"""CPU seconds of the call phase above which a test is printed, a test fails, and a table of cases fails."""
PROPERTY = "cpu_seconds"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a fast test whose call phase takes more CPU time than the limit."""
    start = time.process_time()
    result = yield
    spent = time.process_time() - start
    if is_fast(item):
        if spent > PRINTED:
            item.user_properties.append((PROPERTY, spent))
        limit = TABLE_LIMIT if "table" in getattr(item, "fixturenames", ()) else LIMIT
        if spent > limit:
            pytest.fail(
                f"took {spent:.1f} s of CPU time, a fast test may take {limit:g} s: make it cheaper, "
                "or mark it with needs_process (`make test`) or nightly (`make nightly`)",
                pytrace=False,
            )
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
