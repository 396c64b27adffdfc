"""A container whose service lives and does not answer is started again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.compose import ComposeStack
from tests.support.waiting import eventually

SECONDS = 180.0
"""For the check that is due, the time that it is given, and what the engine takes to start a container again."""

pytestmark = [pytest.mark.usefixtures("needs_engine"), pytest.mark.nightly, pytest.mark.timeout(600)]


@pytest.fixture
def stack() -> Iterator[ComposeStack]:
    """The cache alone, which may be unhealthy for twenty seconds."""
    made = ComposeStack((), UNHEALTHY_TIMEOUT="20")
    try:
        made.run("up", "--detach", "--wait", "cache")
        yield made
    finally:
        made.stop()


def test_hanging(stack: ComposeStack) -> None:
    """One that was healthy and hangs is ended, and the engine starts it again; then it is healthy."""
    [cache] = stack.containers("cache")
    stack.run("exec", "cache", "sh", "-c", "kill -STOP -1")

    eventually(lambda: cache.inspect()["RestartCount"] >= 1, lambda: f"{cache.inspect()['State']}", SECONDS)
    eventually(lambda: cache.inspect()["State"]["Health"]["Status"] == "healthy", seconds=SECONDS)
    assert stack.run("exec", "cache", "redis-cli", "ping").strip() == "PONG"
