"""A pytest plugin that lists skipped tests by reason.

If a fixture skips a test, pytest reports the location of the test, so `-ra` prints a line for each test. This plugin
reports the location of the fixture, so `-ra` prints one line for each reason, with the number of tests.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Replace the location of the test by that of the fixture that skips it."""
    report = yield
    skipped = call.excinfo is not None and isinstance(call.excinfo.value, pytest.skip.Exception)
    if call.excinfo is not None and skipped and report.when == "setup" and isinstance(report.longrepr, tuple):
        place = call.excinfo.traceback.filter(call.excinfo)[-1]
        report.longrepr = (str(place.path), place.lineno + 1, report.longrepr[2])
    return report
