"""A browser, and stacks for it to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page.browser import Browser, browsing
from tests.page.stack import SCRIPT, Stack


@pytest.fixture(scope="module")
def browser(needs_browser: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser of the module's own."""
    with browsing(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="module")
def stack(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with a key, whose judge serves a model with a script for a name, and without a worker."""
    log = {"REWARDSTACK_SAMPLE_LOG": tmp_path_factory.mktemp("log") / "samples", "REWARDSTACK_SAMPLE_LOG_SHARE": 1}
    one = Stack(tmp_path_factory.mktemp("stack"), model=f"Qwen {SCRIPT}", STATUS_PAGE_EXPLAIN="on", **log)
    yield one
    one.close()
