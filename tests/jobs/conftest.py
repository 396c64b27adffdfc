"""Run real jobs: with a persistent queue, a reward server and workers, each in its own process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis

from rewardstack_rules.jobs import ledger as ledgers
from rewardstack_rules.jobs.ledger import Ledger
from rewardstack_rules.jobs.store import JobStore
from rewardstack_rules.settings import Settings
from tests.jobs.steps import LEASE, SIZE
from tests.rules.conftest import RewardServer, clean_environment, running
from tests.support.jobs import Queue, Worker
from tests.support.waiting import eventually

HERE = Path(__file__).parent
FUNCTIONS: dict[str, Any] = {"REWARD_FUNCTIONS": HERE / "functions" / "job_rewards.py"}
"""Variables of sites with the reward functions `slow`, `held` and `flaky`."""
PATIENT = {"VERIFY_TIMEOUT": 3600}
"""Variables of workers that wait for samples of `held`."""
CHUNK_SIZE = 5
ENDED = ("finished", "failed", "canceled")
KEYS = "first-key-of-tests,second-key-of-tests"
KEY = {"X-API-Key": "first-key-of-tests"}
OTHER_KEY = {"X-API-Key": "second-key-of-tests"}


def sample(at: int, **fields: Any) -> dict[str, Any]:
    """Return a sample whose value is 1.0 if `at` is even, else 0.0; `fields` replace or add fields."""
    return {"data_source": "gsm8k", "solution_str": f"#### {at}", "ground_truth": str(at + at % 2), **fields}


class AnyQueue(Protocol):
    """A Redis that can be killed and started again with its files."""

    url: str

    def kill(self) -> None: ...

    def start(self) -> None: ...


class Site:
    """A queue, a reward server and workers.

    Args:
        folder: folder for files and logs.
        queue: the queue; None to start a new one.
        variables: environment variables of the server and the workers.
    """

    def __init__(self, folder: Path, queue: AnyQueue | None = None, **variables: Any) -> None:
        self.folder = folder
        self.queue = queue or Queue(folder)
        self.variables = {
            "REWARD_QUEUE_URL": self.queue.url,
            "REWARD_JOB_CHUNK_SIZE": CHUNK_SIZE,
            "JOB_TRACES": folder,
            "REWARD_FUNCTIONS_ENV": "JOB_TRACES",
            "VERIFY_PROCESSES": 2,
            **variables,
        }
        self.server: RewardServer
        self.workers: list[Worker] = []

    def add_worker(self, **variables: Any) -> Worker:
        """Start another worker and wait until it is ready.

        Args:
            variables: environment variables in addition to those of the site.
        """
        environment = clean_environment(**{**self.variables, **variables})
        worker = Worker(self.folder, environment, f"worker-{len(self.workers)}")
        self.workers.append(worker)
        worker.wait_until_ready()
        return worker

    def kill(self) -> None:
        """Kill the workers and the queue."""
        for worker in self.workers:
            worker.kill()
        self.queue.kill()

    def submit(self, *items: dict[str, Any], headers: dict[str, str] | None = None) -> str:
        """Submit a job and return its id."""
        reply = self.server.post("/jobs", {"items": items}, headers=headers or {})
        assert reply.status_code == 202, reply.text
        job_id: str = reply.json()["job_id"]
        return job_id

    def state(self, job_id: str, **options: Any) -> dict[str, Any]:
        """Return the state of a job."""
        reply = self.server.get(f"/jobs/{job_id}", **options)
        assert reply.status_code == 200, reply.text
        state: dict[str, Any] = reply.json()
        return state

    def begun(self) -> list[str]:
        """Return the responses that the reward functions `slow` and `held` have begun to score."""
        traces = self.folder / "begun"
        return traces.read_text().splitlines() if traces.exists() else []

    def go_on(self) -> None:
        """Let the samples of the reward function `held` end."""
        (self.folder / "go on").touch()

    def end_of(self, job_id: str, seconds: float = 120, **options: Any) -> dict[str, Any]:
        """Wait until a job has ended and return its state."""
        eventually(lambda: self.state(job_id, **options)["status"] in ENDED, seconds=seconds)
        return self.state(job_id, **options)


def left_behind(here: Site) -> set[str]:
    """Return the Redis keys of jobs and tenants, without the keys that all jobs share."""
    found = redis.Redis.from_url(here.queue.url).scan_iter("rewardstack:jobs:*:*", count=1000)
    return {key.decode() for key in found}


@contextmanager
def site(folder: Path, queue: AnyQueue | None = None, *, processes: int = 1, **variables: Any) -> Iterator[Site]:
    """Run a queue and a reward server with `processes` processes for the time of the block, without workers."""
    here = Site(folder, queue, **variables)
    try:
        with running(folder, "--workers", str(processes), **here.variables) as here.server:
            yield here
    finally:
        here.kill()


@pytest.fixture(autouse=True, scope="session")
def redis_server(needs_redis: None) -> None:
    """Require Redis for all tests of this folder."""


@pytest.fixture(scope="session")
def jobs(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a site with a worker, for tests that kill nothing."""
    with site(tmp_path_factory.mktemp("jobs"), **FUNCTIONS) as here:
        here.add_worker()
        yield here


@pytest.fixture(scope="session")
def idle(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a site without workers, with two API keys and a limit of 100,000 bytes for bodies."""
    variables: dict[str, Any] = {"REWARD_SERVER_API_KEYS": KEYS, "MAX_BODY_BYTES": 100_000}
    with site(tmp_path_factory.mktemp("idle"), **variables) as here:
        yield here


@pytest.fixture(scope="session")
def shared(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run the server and the queue that `own` gives to one test after another."""
    with site(tmp_path_factory.mktemp("shared"), **FUNCTIONS) as here:
        yield here


def renew_queue(here: Site) -> None:
    """Restart the queue of a site, empty and with its original options."""

    def is_empty() -> bool:
        try:
            redis.Redis.from_url(here.queue.url).flushall()
        except redis.ConnectionError:  # Redis is still loading its files
            return False
        return here.server.get(f"/jobs/{'0' * 32}").status_code == 404

    here.queue.kill()
    here.queue.start()
    eventually(is_empty)


@pytest.fixture
def own(shared: Site, tmp_path: Path) -> Iterator[Site]:
    """Return a site without workers for this test alone: an empty queue, and a server without other jobs."""
    renew_queue(shared)
    here = Site(tmp_path, shared.queue, **FUNCTIONS)
    here.server = shared.server
    yield here
    for worker in here.workers:
        worker.kill()


@pytest.fixture(scope="module")
def queue(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    """Run a persistent Redis for a module."""
    one = Queue(tmp_path_factory.mktemp("queue"))
    yield one
    one.kill()


@pytest.fixture
def store(queue: Queue) -> JobStore:
    """Return the job store of an empty queue."""
    redis.Redis.from_url(queue.url).flushall()
    return JobStore(Settings.from_env({"REWARD_QUEUE_URL": queue.url, "REWARD_JOB_CHUNK_SIZE": str(SIZE)}))


@pytest.fixture
def ledger(store: JobStore, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Return the ledger of the same queue, whose leases do not end during a test."""
    monkeypatch.setattr(ledgers, "LEASE", LEASE)
    return Ledger(store.redis)
