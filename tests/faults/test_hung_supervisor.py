"""Isolated processes that are stopped under load, not dead: they are noticed and replaced, and others go on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from rewardstack_rules.isolation.process import state
from tests.isolation.processes import alive, below
from tests.rules.conftest import RewardServer, running
from tests.support.isolated import children_of, supervisors_of, zygotes_of
from tests.support.waiting import eventually

VERIFY_TIMEOUT = 5
INLINE = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
_numbers = count(2)


@pytest.fixture(scope="module")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with two workers, which share their isolated processes."""
    with running(tmp_path_factory.mktemp("hung"), "--workers", "2", VERIFY_TIMEOUT=VERIFY_TIMEOUT) as one:
        yield one


def ask_isolated(server: RewardServer) -> str:
    """Has a sample judged that nobody has asked for and that needs a child; its status."""
    number = next(_numbers)
    sample: dict[str, Any] = {
        "data_source": "math",
        "solution_str": f"\\boxed{{\\sqrt{{{2 * number * number}}}}}",
        "ground_truth": f"{number}\\sqrt{{2}}",
    }
    [score] = server.score(sample)
    assert score["status"] != "ok" or score["value"] == 1.0
    return str(score["status"])


@contextmanager
def scoring_inline(server: RewardServer) -> Iterator[list[int]]:
    """While this lasts, a thread scores samples that need no child; yields a list that has one entry per answer."""
    answered: list[int] = []
    done = threading.Event()

    def ask() -> None:
        while not done.wait(0.02):
            assert ["ok"] == [one["status"] for one in server.score(INLINE)]
            answered.append(1)

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            yield answered
        finally:
            done.set()
        asking.result()


@pytest.mark.nightly
@pytest.mark.parametrize("find", [supervisors_of, zygotes_of, children_of])
def test_stopped(server: RewardServer, find: Callable[[str], list[int]]) -> None:
    """Samples that need a child end, the others before them; then all is as before, with nothing left behind."""
    port = server.url.rpartition(":")[2]
    assert ask_isolated(server) == "ok"
    stopped = find(port)[0]
    old = [stopped, *below(stopped)]
    with scoring_inline(server) as answered, ThreadPoolExecutor(4) as pool:
        os.kill(stopped, signal.SIGSTOP)
        asked = [pool.submit(ask_isolated, server) for _ in range(12)]
        before = len(answered)
        eventually(lambda: len(answered) > before + 1)
        is_stopped = alive(stopped)
        ends = [one.result() for one in asked]
        eventually(lambda: not alive(stopped))

    assert {*ends} <= {"ok", "failed"}
    assert is_stopped, "samples that need no child waited for those that do"
    eventually(lambda: not any(map(alive, old)))
    assert [ask_isolated(server) for _ in range(8)] == ["ok"] * 8
    eventually(lambda: "T" not in map(state, [*supervisors_of(port), *zygotes_of(port), *children_of(port)]))
