"""What the reward server and a worker tell of themselves, over processes that come and go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import requests

from tests.rules.conftest import RewardServer, clean_environment, running
from tests.rules.test_operations import metric, workers
from tests.support.jobs import Queue, Worker
from tests.support.servers import Redis, free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_redis")

HOSTILE = Path(__file__).parents[1] / "rules/functions/hostile.py"
GSM8K = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
SLOW = {"data_source": "rule_remote_slow", "solution_str": "a"}
IN_PROGRESS = "rewardstack_requests_in_progress"


@pytest.fixture
def server(needs_redis: None, tmp_path: Path) -> Iterator[RewardServer]:
    """A server with two processes and functions that misbehave."""
    with running(tmp_path, "--workers", "2", REWARD_FUNCTIONS=HOSTILE, VERIFY_TIMEOUT=3, VERIFY_PROCESSES=1) as one:
        yield one


def hangs(at: int) -> dict[str, str]:
    """A sample over which a process hangs until it is killed; each `at` is another sample."""
    return {"data_source": "rule_remote_hang", "solution_str": "slow", "ground_truth": str(at)}


def told(server: RewardServer, name: str) -> float:
    """What the server tells of a metric, written with its labels."""
    return metric(server.get("/metrics").text, name)


def in_background(work: Callable[[], object]) -> threading.Thread:
    """Does something meanwhile; a server that is killed under it is no fault."""

    def run() -> None:
        try:
            work()
        except requests.RequestException:
            return

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_every_outcome_has_a_beginning(server: RewardServer) -> None:
    """A route that was used tells 0 for what did not happen, so that its first failure is an increase."""
    server.score(GSM8K)
    text = server.get("/metrics").text

    for status in ("fallback", "unscored", "failed"):
        assert f'rewardstack_items_total{{route="rule:gsm8k",status="{status}"}} 0.0' in text
    assert 'rewardstack_cache_hits_total{route="rule:gsm8k"} 0.0' in text


def test_seconds_of_a_sample(server: RewardServer) -> None:
    """A sample's time is counted by its route: a slow one's does not hide behind a quick one's."""
    server.score(GSM8K, SLOW)
    text = server.get("/metrics").text

    assert metric(text, 'rewardstack_item_seconds_bucket{le="0.25",route="rule:slow"}') == 0
    assert metric(text, 'rewardstack_item_seconds_count{route="rule:slow"}') == 1
    assert metric(text, 'rewardstack_item_seconds_bucket{le="0.5",route="rule:gsm8k"}') == 1


def test_in_progress(server: RewardServer) -> None:
    """A request counts while it is answered, over all processes; a scrape does not count itself."""
    assert told(server, IN_PROGRESS) == 0
    threads = [in_background(partial(server.score, hangs(at))) for at in range(3)]
    eventually(lambda: told(server, IN_PROGRESS) == 3)
    for thread in threads:
        thread.join()
    eventually(lambda: told(server, IN_PROGRESS) == 0)


def test_in_progress_with_a_process_that_is_killed(server: RewardServer) -> None:
    """What a killed process had under way is not under way for ever."""
    threads = [in_background(partial(server.score, hangs(at))) for at in range(4)]
    eventually(lambda: told(server, IN_PROGRESS) == 4)
    before = workers(server)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(workers(server)) == 2 and not set(workers(server)) & set(before))
    for thread in threads:
        thread.join()
    assert told(server, IN_PROGRESS) == 0


def test_verifiers(server: RewardServer) -> None:
    """Busy and waiting verifications are seen while they last, and a killed one is counted by its reason."""
    assert told(server, "rewardstack_verifier_up") == 1
    thread = in_background(partial(server.score, *map(hangs, range(3))))
    eventually(lambda: told(server, 'rewardstack_verifier_busy{lane="slow"}') == 1)
    eventually(lambda: told(server, 'rewardstack_verifier_waiting{lane="slow"}') == 2)
    thread.join()

    assert told(server, 'rewardstack_verifier_killed_total{reason="timeout"}') == 3
    assert told(server, 'rewardstack_verifier_killed_total{reason="died"}') == 0
    server.score({"data_source": "rule_remote_leaves", "solution_str": "now"})
    assert told(server, 'rewardstack_verifier_killed_total{reason="died"}') == 1


def test_cache(tmp_path: Path) -> None:
    """The cache's memory is told, and that it is away, and back, without the scrape waiting for it."""
    cache = Redis(tmp_path, "--maxmemory", "64mb")
    try:
        with running(tmp_path, "--workers", "1", REWARD_CACHE_URL=cache.url) as server:
            assert told(server, "rewardstack_cache_up") == 1
            assert told(server, "rewardstack_cache_limit_bytes") == 64 * 2**20
            assert 0 < told(server, "rewardstack_cache_bytes") < 64 * 2**20
            cache.freeze()
            started = time.monotonic()
            text = server.get("/metrics").text
            assert time.monotonic() - started < 5, "a scrape of Prometheus ends after 10 s"
            assert "rewardstack_cache_up 0.0" in text and "rewardstack_cache_bytes" not in text
            cache.thaw()
            eventually(lambda: told(server, "rewardstack_cache_up") == 1)
    finally:
        cache.kill()


def test_a_queue_that_hangs(tmp_path: Path) -> None:
    """A scrape is not held up for longer than Prometheus waits by a queue that does not answer."""
    queue = Queue(tmp_path)
    try:
        with running(tmp_path, "--workers", "1", REWARD_QUEUE_URL=queue.url) as server:
            assert told(server, "rewardstack_queue_up") == 1
            queue.freeze()
            started = time.monotonic()
            assert "rewardstack_queue_up 0.0" in server.get("/metrics").text
            assert time.monotonic() - started < 8, "a scrape of Prometheus ends after 10 s"
    finally:
        queue.thaw()
        queue.kill()


def test_longest_wait(tmp_path: Path) -> None:
    """How long the first chunk has waited grows while there is no worker, and is 0 once one has taken it."""
    queue = Queue(tmp_path)
    variables = {"REWARD_QUEUE_URL": queue.url}
    try:
        with running(tmp_path, "--workers", "1", **variables) as server:
            assert told(server, "rewardstack_queue_oldest_seconds") == 0
            server.post("/jobs", {"items": [GSM8K]})
            time.sleep(1.2)
            server.post("/jobs", {"items": [GSM8K]})
            assert 1 < told(server, "rewardstack_queue_oldest_seconds") < 30
            worker = Worker(tmp_path, clean_environment(**variables))
            eventually(lambda: told(server, "rewardstack_queue_oldest_seconds") == 0)
            worker.stop()
    finally:
        queue.kill()


def test_worker(tmp_path: Path) -> None:
    """A worker tells what it has scored, by route, and its verifiers; its port is none of the reward server's."""
    queue, port = Queue(tmp_path), free_port()
    variables = {"REWARD_QUEUE_URL": queue.url}
    worker = Worker(tmp_path, clean_environment(**variables, WORKER_METRICS_PORT=port))
    url = f"http://127.0.0.1:{port}/metrics"
    try:
        with running(tmp_path, "--workers", "1", **variables) as server:
            server.post("/jobs", {"items": [GSM8K] * 3})
            worker.wait_until_ready()
            items = 'rewardstack_items_total{route="rule:gsm8k",status="ok"}'
            eventually(lambda: metric(requests.get(url, timeout=10).text, items) == 3)
            assert metric(requests.get(url, timeout=10).text, "rewardstack_verifier_up") == 1
            assert told(server, items) == 0
    finally:
        worker.kill()
        queue.kill()


def test_worker_whose_port_is_taken(tmp_path: Path) -> None:
    """A worker that cannot have its port says so, and does not start."""
    queue = Queue(tmp_path)
    try:
        environment = clean_environment(REWARD_QUEUE_URL=queue.url, WORKER_METRICS_PORT=queue.port)
        command = [sys.executable, "-m", "rewardstack_rules.jobs.worker"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert f"WORKER_METRICS_PORT: port {queue.port}: Address already in use" in done.stderr
    finally:
        queue.kill()
