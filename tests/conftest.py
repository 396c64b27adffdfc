"""In CI nothing is skipped: what a test needs and the machine lacks is a failure there. One vLLM serves a whole run."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

from tests.support.vllm import vllm as vllm

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Holds for a test that is skipped, or skips itself."""
    return _strict((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Holds for a whole module that is skipped."""
    return _strict((yield))


def _strict(report: Report) -> Report:
    """Turn a skip into a failure where CI=true, with the reason of the skip."""
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {reason}"
    return report
