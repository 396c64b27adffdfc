"""Under load: a stop, a reload, workers and isolated processes that are killed. No item is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from queue import SimpleQueue

import pytest

from rewardstack import Request, score
from rewardstack.core.deadline import HEADER
from tests.rules.conftest import RewardServer
from tests.support.isolated import children_of
from tests.support.waiting import eventually

ITEMS = 300
SLOW = """\
import os
import time
from rewardstack_rules import reward_function

@reward_function
def slow(response, reference=None):
    time.sleep(0.03)
    with open({trace!r}, "a") as file:
        file.write(response + "\\n")
    return float(len(response))
"""
WAIT = "while not os.path.exists({path!r}): time.sleep(0.01)"
Start = Callable[..., RewardServer]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A file in which the reward function notes what it was given."""
    (path := tmp_path / "trace").touch()
    (tmp_path / "slow.py").write_text(SLOW.format(trace=str(path)))
    return path


@contextmanager
def again_and_again(act: Callable[[], None], seconds: float, times: int) -> Iterator[None]:
    """While this lasts something happens every few seconds; once at least, however short it is.

    Args:
        act: what happens.
        seconds: between one time and the next.
        times: at most, for what recovers slowly on a busy machine has to come to an end.
    """
    done = threading.Event()

    def run() -> None:
        done.wait(min(seconds, 0.3))
        act()
        for _ in range(times - 1):
            if done.wait(seconds):
                return
            act()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.nightly
def test_stop_under_load(start: Start, trace: Path) -> None:
    """At SIGTERM every request that the server was sent is answered; then it closes the connection, and says so."""
    server = start("--workers", "2", REWARD_FUNCTIONS=trace.with_name("slow.py"))
    stopping, answered = threading.Event(), SimpleQueue[int]()

    def ask(client: int) -> list[str]:
        """Asks until the server has had enough; the ids of its requests, all of which were answered."""
        idents: list[str] = []
        connection = HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        while True:
            body = json.dumps({"prompt": "p", "response": "a" * (client + 1)})
            idents.append(f"load-{client}-{len(idents)}")
            headers = {"Content-Type": "application/json", "X-Request-Id": idents[-1]}
            connection.request("POST", "/get_reward?reward_type=slow", body, headers)
            reply = connection.getresponse()
            assert (200, client + 1.0) == (reply.status, json.load(reply))
            answered.put(client)
            if reply.will_close:
                assert stopping.is_set()
                return idents

    with ThreadPoolExecutor(16) as pool:
        clients = [pool.submit(ask, client) for client in range(16)]
        try:
            eventually(lambda: answered.qsize() > 300)
        finally:
            stopping.set()
            server.stop()
        asked = [ident for client in clients for ident in client.result()]

    logged = [json.loads(line).get("request_id") for line in server.log.read_text().splitlines()]
    assert Counter(asked) == Counter(ident for ident in logged if ident)


@pytest.mark.nightly
@pytest.mark.parametrize(("harm", "seconds"), [("worker killed", 1.2), ("reload", 3.0)])
def test_workers_come_and_go(
    start: Start, trace: Path, monkeypatch: pytest.MonkeyPatch, harm: str, seconds: float
) -> None:
    """Workers that are killed or replaced under load cost the client nothing but further attempts."""
    server = start("--workers", "2", REWARD_FUNCTIONS=trace.with_name("slow.py"), VERIFY_PROCESSES=2)
    monkeypatch.setenv("REWARD_SERVER_URL", server.url)
    monkeypatch.setenv("REWARD_SERVER_TIMEOUT", "240")
    before = set(server.workers())

    def act() -> None:
        if harm == "reload":
            server.process.send_signal(signal.SIGHUP)
        else:
            eventually(lambda: server.workers())
            with suppress(IndexError, ProcessLookupError):
                os.kill(random.choice(server.workers()), signal.SIGKILL)

    with again_and_again(act, seconds, 4):
        scores = score([Request("rule_remote_slow", "a" * (at + 1)) for at in range(ITEMS)])

    assert [("ok", at + 1.0) for at in range(ITEMS)] == [(one.status, one.value) for one in scores]
    eventually(lambda: set(server.workers()) != before)


@pytest.mark.nightly
def test_isolated_processes_killed(start: Start, trace: Path) -> None:
    """Isolated processes that are killed cost no item: the one they ran gets another process."""
    server = start("--workers", "2", REWARD_FUNCTIONS=trace.with_name("slow.py"), VERIFY_PROCESSES=2)
    port, killed = server.url.rpartition(":")[2], list[int]()

    def ask(at: int) -> float:
        body = {"query": ["p" + "a" * (at + 1)], "prompts": ["p"], "labels": [""]}
        while (reply := server.post("/get_reward?reward_type=slow", body)).status_code == 503:
            assert ["failed"] == reply.json()["statuses"]  # its second process was killed as well
        [reward] = reply.json()["rewards"]
        return float(reward)

    def act() -> None:
        eventually(lambda: children_of(port))
        with suppress(IndexError, ProcessLookupError):
            os.kill(pid := random.choice(children_of(port)), signal.SIGKILL)
            killed.append(pid)

    with again_and_again(act, 0.2, ITEMS // 10), ThreadPoolExecutor(8) as pool:
        rewards = list(pool.map(ask, range(ITEMS)))
    while len(killed) < 2:  # finding them takes longer than the samples on a busy machine
        act()
        assert ask(0) == 1.0

    assert [at + 1.0 for at in range(ITEMS)] == rewards


def test_expired_work_is_dropped(start: Start, trace: Path, tmp_path: Path) -> None:
    """What nobody waits for any more is not run: of a queue that outlasts its deadline the rest is dropped."""
    awaited, functions = tmp_path / "awaited", tmp_path / "slow.py"
    functions.write_text(functions.read_text().replace("time.sleep(0.03)", WAIT.format(path=str(awaited))))
    server = start("--workers", "1", REWARD_FUNCTIONS=functions, VERIFY_PROCESSES=1, VERIFY_TIMEOUT=3600)
    items = [{"data_source": "rule_remote_slow", "solution_str": "a" * (at + 1)} for at in range(200)]

    statuses = Counter(one["status"] for one in server.score(*items, headers={HEADER: "1000"}))  # expires
    awaited.touch()
    [after] = server.score({"data_source": "rule_remote_slow", "solution_str": "after"})

    assert (statuses, after["status"]) == ({"failed": 200}, "ok")
    assert len(trace.read_text().splitlines()) < 100
    eventually(lambda: server.get("/ready").status_code == 200)
