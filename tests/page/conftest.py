"""Fixtures of the tests of the status page: a browser, and a stack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page.browser import Browser, browsing
from tests.page.stack import SCRIPT, Stack


@pytest.fixture(scope="module")
def browser(needs_browser: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Run a browser for a module."""
    with browsing(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="module")
def stack(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Run a stack with an API key and no worker; the name of the judge's model contains HTML that must not run."""
    log = {"REWARDSTACK_SAMPLE_LOG": tmp_path_factory.mktemp("log") / "samples", "REWARDSTACK_SAMPLE_LOG_SHARE": 1}
    one = Stack(tmp_path_factory.mktemp("stack"), model=f"Qwen {SCRIPT}", STATUS_PAGE_EXPLAIN="on", **log)
    yield one
    one.close()
