"""List skipped tests by reason: a pytest plugin for fixtures that skip.

pytest reports the place of the test, so that `-ra` prints a line for each. This reports the place of the fixture, and
`-ra` prints a line for each reason, with the number of tests.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report where a fixture skips."""
    report = yield
    skipped = call.excinfo is not None and isinstance(call.excinfo.value, pytest.skip.Exception)
    if call.excinfo is not None and skipped and report.when == "setup" and isinstance(report.longrepr, tuple):
        place = call.excinfo.traceback.filter(call.excinfo)[-1]
        report.longrepr = (str(place.path), place.lineno + 1, report.longrepr[2])
    return report
