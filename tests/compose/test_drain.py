"""A judge's request in flight is finished when the stack is restarted or stopped."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.stack.rundir import RunDir
from services.up.compose import commands
from services.up.compose.project import ComposeRecord
from tests.support.compose import ComposeStack, running
from tests.support.waiting import eventually

FILES = "compose.yaml:tests/compose/slow_judge.yaml"

pytestmark = [pytest.mark.usefixtures("needs_engine"), pytest.mark.nightly, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def stack() -> Iterator[ComposeStack]:
    """A stack with a slow judge, and less time to drain than it would take to notice that nothing drains."""
    with running(["judge"], COMPOSE_FILE=FILES, DRAIN_TIMEOUT="30") as started:
        yield started


def status_across(stack: ComposeStack, disturb: Callable[[], object]) -> int:
    """The status of a judge's answer to a request that was in flight when something was done to the stack."""

    def ask() -> int:
        request = urllib.request.Request(f"{stack.url('JUDGE_PORT')}/v1/chat/completions", b"{}")
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status)

    before = stack.run("logs", "judge").count("request begun")
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(ask)
        eventually(lambda: stack.run("logs", "judge").count("request begun") > before)
        disturb()
        return asked.result()


def test_restart(stack: ComposeStack) -> None:
    """`docker compose restart` finishes the request, and the judge answers again afterwards."""
    assert status_across(stack, lambda: stack.run("restart")) == 200
    stack.run("up", "--detach", "--wait")
    assert status_across(stack, lambda: None) == 200


def test_down(stack: ComposeStack, tmp_path: Path) -> None:
    """`make down` finishes the request, and removes every container."""
    run = RunDir(str(tmp_path))
    ComposeRecord(stack.environment["COMPOSE_PROJECT_NAME"], ["judge"]).save(run)
    assert status_across(stack, lambda: commands.down(run)) == 200
    assert stack.run("ps", "--all", "--quiet") == ""
