"""Replicas that come and go: the gateway follows them by name, without a restart."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.compose import ComposeStack, running
from tests.support.waiting import eventually

LEFT, TRIES = 504, 3
FILES = "compose.yaml:tests/compose/upstream.yaml"

pytestmark = [pytest.mark.usefixtures("needs_engine"), pytest.mark.nightly, pytest.mark.timeout(600)]


def ask(stack: ComposeStack, affinity: str = "") -> tuple[int, str]:
    """Status of the answer to a request for the judge, and the replica that answered."""
    headers = {"X-Prompt-Affinity": affinity} if affinity else {}
    request = urllib.request.Request(f"{stack.url('JUDGE_PORT')}/v1/chat/completions", b"{}", headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, json.load(reply)["host"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def reaches(stack: ComposeStack) -> int:
    """Status of the answer; 0 where there is none."""
    try:
        return ask(stack)[0]
    except OSError:
        return 0


def scale(stack: ComposeStack, judges: int) -> None:
    """Another number of judges; returns when they are well."""
    stack.run("up", "--detach", "--wait", "--no-recreate", "--scale", f"judge={judges}", "judge")


def seen(stack: ComposeStack) -> int:
    """How many replicas answer."""
    return len({host for status, host in (ask(stack) for _ in range(20)) if status == 200})


class Load:
    """Requests without a pause while it is entered; like the client, it resends a request that gets 504.

    nginx tries no other server if, while it connects to one that has left, DNS comes to have a single one.
    """

    def __init__(self, stack: ComposeStack, threads: int = 8) -> None:
        self.statuses: Counter[int] = Counter()
        self._stack, self._end = stack, threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def _run(self) -> None:
        while not self._end.is_set():
            answers = (ask(self._stack)[0] for _ in range(TRIES))
            self.statuses[next((status for status in answers if status != LEFT), LEFT)] += 1

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture(scope="module")
def stack() -> Iterator[ComposeStack]:
    """A stack whose judges are quick to start; there is none at first."""
    with running(["judge"], COMPOSE_FILE=FILES, JUDGE_REPLICAS="0") as started:
        yield started


def test_none_yet(stack: ComposeStack) -> None:
    """The gateway starts where there is no judge, says so, and finds the first one that comes."""
    assert ask(stack)[0] == 502
    scale(stack, 1)
    eventually(lambda: ask(stack)[0] == 200)


def test_followed(stack: ComposeStack) -> None:
    """Under load replicas are added and removed, and no request fails."""
    scale(stack, 1)
    eventually(lambda: seen(stack) == 1)
    with Load(stack) as load:
        scale(stack, 3)
        eventually(lambda: seen(stack) == 3)
        scale(stack, 1)
        eventually(lambda: seen(stack) == 1)
    assert set(load.statuses) == {200}, load.statuses


def test_killed(stack: ComposeStack) -> None:
    """Under load one of two replicas is killed, and no request fails."""
    scale(stack, 2)
    eventually(lambda: seen(stack) == 2)
    with Load(stack) as load:
        stack.containers("judge")[0].kill()
        eventually(lambda: seen(stack) == 1)
        time.sleep(2)
    assert set(load.statuses) == {200}, load.statuses


def test_gateway_comes_back(stack: ComposeStack) -> None:
    """A gateway that was killed serves again when the engine starts its container once more."""
    scale(stack, 1)
    (gateway,) = stack.containers("gateway")
    gateway.kill()
    gateway.start()
    eventually(lambda: reaches(stack) == 200)


def test_affinity(stack: ComposeStack) -> None:
    """With JUDGE_BALANCING=affinity the same prompt goes to the same replica, and prompts are spread over all."""
    stack.environment["JUDGE_BALANCING"] = "affinity"
    stack.run("up", "--detach", "--wait", "--no-deps", "gateway")
    scale(stack, 3)
    eventually(lambda: seen(stack) == 3)
    homes = {prompt: {ask(stack, f"prompt {prompt}")[1] for _ in range(5)} for prompt in range(30)}
    assert {len(hosts) for hosts in homes.values()} == {1}
    assert len(set.union(*homes.values())) == 3
    with Load(stack) as load:
        scale(stack, 1)
        eventually(lambda: seen(stack) == 1)
    assert set(load.statuses) == {200}, load.statuses
