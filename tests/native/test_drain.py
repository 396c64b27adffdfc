"""Requests in flight are answered when a stack stops or restarts a service, up to DRAIN_TIMEOUT."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.native.test_judge import add_stub, score, take
from tests.native.test_stack import up, working_in
from tests.native.tree import Tree
from tests.support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("needs_stack"), pytest.mark.nightly]

SECONDS = 8
"""That a verdict takes."""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Callable[..., Tree]]:
    """Starts a stack whose judge takes its time; stopped at the end."""
    tree = Tree(tmp_path / "tree")

    def start(seconds: float, **environment: str) -> Tree:
        add_stub(tree)
        tree.environment |= environment
        up(tree)
        take(tree, seconds)
        return tree

    yield start
    tree.run("down")


def judge(stack: Tree) -> int:
    """Return the status of a request to the judge; 0 where it is cut."""
    url = f"http://127.0.0.1:{stack.environment['JUDGE_PORT']}/v1/chat/completions"
    request = urllib.request.Request(url, b'{"messages": []}', {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=200) as reply:
            return int(reply.status) if "REWARD" in reply.read().decode() else 0
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def in_flight(stack: Tree, pool: ThreadPoolExecutor, ask: Callable[[], object]) -> Future[object]:
    """Send a request, and return once it has reached the judge."""
    log = stack.path / ".run/logs/judge.log"
    before = log.read_text().count("the stub is asked")
    sent = pool.submit(ask)
    eventually(lambda: log.read_text().count("the stub is asked") > before)
    return sent


def test_down(stack: Callable[..., Tree]) -> None:
    """`make down` ends when a request to the judge, and a reward request that waits for it, are answered."""
    tree = stack(SECONDS, DRAIN_TIMEOUT="60")
    with ThreadPoolExecutor(2) as pool:
        asked = in_flight(tree, pool, lambda: judge(tree))
        scored = in_flight(tree, pool, lambda: score(tree, "llm_judge_remote_samples"))
        down = tree.run("down")
        assert (down.returncode, asked.result(), scored.result()) == (0, 200, ("ok", 0.5)), down.stdout
    assert working_in(tree) == []


def test_changed_setting(stack: Callable[..., Tree]) -> None:
    """So does a restart of the judge and the reward server by a changed setting."""
    tree = stack(SECONDS, DRAIN_TIMEOUT="60")
    with ThreadPoolExecutor(2) as pool:
        asked = in_flight(tree, pool, lambda: judge(tree))
        scored = in_flight(tree, pool, lambda: score(tree, "llm_judge_remote_samples"))
        said = up(tree, JUDGE_VLLM_ARGS="--seed 2", REWARD_THREADS="3")
        assert (asked.result(), scored.result()) == (200, ("ok", 0.5)), said
    assert "restarting judge (changed: its command)" in said and "restarting rules" in said


def test_cut(stack: Callable[..., Tree]) -> None:
    """After DRAIN_TIMEOUT a request is cut, and a sample that waits for it is `failed`, never 0 as `ok`."""
    tree = stack(600, DRAIN_TIMEOUT="2")  # expires
    with ThreadPoolExecutor(2) as pool:
        asked = in_flight(tree, pool, lambda: judge(tree))
        scored = in_flight(tree, pool, lambda: _status(tree))
        down = tree.run("down")
        assert down.returncode == 0, down.stdout
        assert asked.result() != 200 and scored.result() in ("failed", "cut")
    assert working_in(tree) == []


def _status(stack: Tree) -> str:
    try:
        return score(stack, "llm_judge_remote_samples")[0]
    except (OSError, json.JSONDecodeError):
        return "cut"
