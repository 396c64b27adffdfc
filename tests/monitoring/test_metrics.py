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

from rewardstack_rules.jobs import metrics as job_metrics
from rewardstack_rules.metrics import cache as cache_metrics
from tests.rules.conftest import RewardServer, clean_environment, running
from tests.rules.test_operations import metric
from tests.support.jobs import Queue, Worker
from tests.support.servers import Redis, free_port
from tests.support.waiting import eventually

HOSTILE = Path(__file__).parents[1] / "rules/functions/hostile.py"
GSM8K = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
SLOW = {"data_source": "rule_remote_slow", "solution_str": "a"}
IN_PROGRESS = "rewardstack_requests_in_progress"
CACHE_BYTES = 64 * 2**20
SCRAPE_TIMEOUT = 10
"""Seconds after which Prometheus gives up a scrape, unless it is told otherwise."""
WAITS = (cache_metrics.TIMEOUT, job_metrics.TIMEOUT)
"""For which a scrape waits for a cache, and for a queue."""


@pytest.fixture(scope="module")
def server(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with two processes and functions that misbehave."""
    variables = {"REWARD_FUNCTIONS": HOSTILE, "VERIFY_TIMEOUT": 120, "VERIFY_PROCESSES": 1}
    with running(tmp_path_factory.mktemp("server"), "--workers", "2", **variables) as one:
        yield one


@pytest.fixture(scope="module")
def cache(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """The Redis of the result cache."""
    one = Redis(tmp_path_factory.mktemp("cache"), "--maxmemory", str(CACHE_BYTES))
    yield one
    one.kill()


@pytest.fixture(scope="module")
def queue(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """The Redis of the job queue."""
    one = Queue(tmp_path_factory.mktemp("queue"))
    yield one
    one.kill()


@pytest.fixture(scope="module")
def connected(cache: Redis, queue: Queue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RewardServer]:
    """A server with a result cache, a job queue and functions that misbehave."""
    variables = {"REWARD_CACHE_URL": cache.url, "REWARD_QUEUE_URL": queue.url, "REWARD_FUNCTIONS": HOSTILE}
    with running(tmp_path_factory.mktemp("connected"), "--workers", "1", **variables, VERIFY_PROCESSES=3) as one:
        yield one


class Gate:
    """Samples that are scored when the gate opens."""

    def __init__(self, path: Path) -> None:
        self.open = path.touch
        self._path = path

    def samples(self, count: int) -> list[dict[str, str]]:
        """Return different samples that wait."""
        fixed = {"data_source": "rule_remote_waits", "solution_str": str(self._path)}
        return [{**fixed, "ground_truth": str(at)} for at in range(count)]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate, which opens at the end of the test."""
    one = Gate(tmp_path / "gate")
    yield one
    one.open()


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
    """A route that was used reports 0 for what did not happen, so that its first failure is an increase."""
    server.score(GSM8K)
    text = server.get("/metrics").text

    for status in ("fallback", "unscored", "failed"):
        assert f'rewardstack_samples_total{{route="rule:gsm8k",status="{status}"}} 0.0' in text
    assert 'rewardstack_cache_hits_total{route="rule:gsm8k"} 0.0' in text


def test_seconds_of_a_sample(server: RewardServer) -> None:
    """A sample's time is counted by its route: a slow one's does not hide behind a quick one's."""
    quick = 'rewardstack_sample_duration_seconds_count{route="rule:gsm8k"}'
    before = told(server, quick)
    server.score({**GSM8K, "solution_str": "#### 2"}, SLOW)
    text = server.get("/metrics").text

    assert metric(text, 'rewardstack_sample_duration_seconds_bucket{le="0.25",route="rule:slow"}') == 0
    assert metric(text, 'rewardstack_sample_duration_seconds_count{route="rule:slow"}') == 1
    assert metric(text, quick) == before + 1


def test_in_progress(server: RewardServer, gate: Gate) -> None:
    """A request counts while it is answered, over all processes; a scrape does not count itself."""
    eventually(lambda: told(server, IN_PROGRESS) == 0)
    threads = [in_background(partial(server.score, one)) for one in gate.samples(3)]
    eventually(lambda: told(server, IN_PROGRESS) == 3)
    gate.open()
    for thread in threads:
        thread.join()
    eventually(lambda: told(server, IN_PROGRESS) == 0)


def test_in_progress_with_a_process_that_is_killed(server: RewardServer, gate: Gate) -> None:
    """The requests of a killed process are no longer in progress."""
    threads = [in_background(partial(server.score, one)) for one in gate.samples(4)]
    eventually(lambda: told(server, IN_PROGRESS) == 4)
    before = server.workers()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(server.workers()) == 2 and not set(server.workers()) & set(before))
    for thread in threads:
        thread.join()
    eventually(lambda: told(server, IN_PROGRESS) == 0)


def test_verifiers(server: RewardServer, gate: Gate) -> None:
    """Busy and waiting verifications are counted while they last."""
    eventually(lambda: told(server, "rewardstack_verifier_up") == 1)
    thread = in_background(partial(server.score, *gate.samples(3)))
    eventually(lambda: told(server, 'rewardstack_verifier_busy{pool="slow"}') == 1)
    eventually(lambda: told(server, 'rewardstack_verifier_waiting{pool="slow"}') == 2)
    gate.open()
    thread.join()
    eventually(lambda: told(server, 'rewardstack_verifier_busy{pool="slow"}') == 0)


def test_killed_verifiers(connected: RewardServer) -> None:
    """A killed verification is counted by its reason."""
    timeouts, deaths = (f'rewardstack_verifier_killed_total{{reason="{name}"}}' for name in ("timeout", "died"))
    hanging = {"data_source": "rule_remote_hang", "solution_str": "slow"}
    connected.score(*({**hanging, "ground_truth": str(at)} for at in range(3)))
    assert (told(connected, timeouts), told(connected, deaths)) == (3, 0)
    connected.score({"data_source": "rule_remote_leaves", "solution_str": "now"})
    assert (told(connected, timeouts), told(connected, deaths)) == (3, 1)


def test_cache(connected: RewardServer, cache: Redis) -> None:
    """The metrics have the cache's memory, and whether it answers; a scrape hardly waits for it."""
    eventually(lambda: told(connected, "rewardstack_cache_up") == 1)
    assert told(connected, "rewardstack_cache_limit_bytes") == CACHE_BYTES
    assert 0 < told(connected, "rewardstack_cache_bytes") < CACHE_BYTES
    cache.freeze()
    try:
        text = connected.get("/metrics").text
        assert "rewardstack_cache_up 0.0" in text and "rewardstack_cache_bytes" not in text
    finally:
        cache.thaw()
    eventually(lambda: told(connected, "rewardstack_cache_up") == 1)


def test_a_queue_that_hangs(connected: RewardServer, queue: Queue) -> None:
    """A queue that does not answer delays a scrape, together with such a cache, by less than Prometheus waits."""
    assert sum(WAITS) < SCRAPE_TIMEOUT
    eventually(lambda: told(connected, "rewardstack_queue_up") == 1)
    queue.freeze()
    try:
        assert "rewardstack_queue_up 0.0" in connected.get("/metrics").text
    finally:
        queue.thaw()


def test_longest_wait(connected: RewardServer, queue: Queue, tmp_path: Path) -> None:
    """How long the first chunk has waited grows while there is no worker, and is 0 once one has taken it."""
    waits = "rewardstack_queue_oldest_seconds"
    eventually(lambda: told(connected, waits) == 0)
    started = time.monotonic()
    connected.post("/jobs", {"items": [GSM8K]})
    eventually(lambda: told(connected, waits) > 0.5)
    waited = told(connected, waits)
    connected.post("/jobs", {"items": [GSM8K]})
    waited_longer = told(connected, waits)
    most = time.monotonic() - started + 1
    assert waited <= waited_longer <= most
    worker = Worker(tmp_path, clean_environment(REWARD_QUEUE_URL=queue.url))
    try:
        eventually(lambda: told(connected, waits) == 0)
    finally:
        worker.stop()


def test_worker(connected: RewardServer, queue: Queue, tmp_path: Path) -> None:
    """A worker reports what it has scored, by route, and its verifiers, on its own port."""
    port = free_port()
    worker = Worker(tmp_path, clean_environment(REWARD_QUEUE_URL=queue.url, WORKER_METRICS_PORT=port))
    url = f"http://127.0.0.1:{port}/metrics"
    try:
        connected.post("/jobs", {"items": [GSM8K] * 3})
        worker.wait_until_ready()
        items = 'rewardstack_samples_total{route="rule:gsm8k",status="ok"}'
        eventually(lambda: metric(requests.get(url, timeout=60).text, items) == 3)
        assert metric(requests.get(url, timeout=60).text, "rewardstack_verifier_up") == 1
        assert told(connected, items) == 0
    finally:
        worker.kill()


@pytest.mark.nightly
def test_worker_whose_port_is_taken(queue: Queue) -> None:
    """A worker that cannot have its port says so, and does not start."""
    environment = clean_environment(REWARD_QUEUE_URL=queue.url, WORKER_METRICS_PORT=queue.port)
    command = [sys.executable, "-m", "rewardstack_rules.jobs.worker"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 1
    assert f"WORKER_METRICS_PORT: port {queue.port}: Address already in use" in done.stderr
