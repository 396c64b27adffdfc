"""Workers that are killed, stopped, cut off and lied to: every sample is scored, and appears once."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import redis
from rq import Queue as RqQueue
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.webhook import Webhook

from rewardstack_rules.jobs.chunk import QUEUE_RETRIES
from rewardstack_rules.jobs.delivery import FUNCTION, QUEUE
from tests.jobs.conftest import CHUNK_SIZE, PATIENT, Site, sample
from tests.rules.conftest import clean_environment
from tests.support.jobs import START_SECONDS, Worker
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

TOUCHED = "touched"
"""What entries of the queue that are not chunks would make in the folder of a site."""


def slow(count: int) -> list[dict[str, Any]]:
    """Samples that take their time."""
    return [sample(at, data_source="rule_remote_slow", solution_str=str(at)) for at in range(count)]


def held(count: int) -> list[dict[str, Any]]:
    """Samples that take until `Site.go_on`, with workers that are `PATIENT`."""
    return [{**one, "data_source": "rule_remote_held"} for one in slow(count)]


def results(here: Site, job_id: str) -> list[dict[str, Any]]:
    """The lines of a job's results."""
    return [json.loads(line) for line in here.server.get(f"/jobs/{job_id}/results").text.splitlines()]


def chunks(worker: Worker, job_id: str = "") -> list[dict[str, Any]]:
    """What a worker says in its log about the chunks it had, of one job or of all."""
    lines = [json.loads(line) for line in worker.log.read_text().splitlines() if '"message": "chunk"' in line]
    return [line for line in lines if job_id in ("", line["job_id"])]


def descendants(pid: int) -> set[int]:
    """The processes that came from a process, itself left out, by a mark that isolated processes inherit as `LC_*`."""
    mark = f"LC_JOB_MARK={pid}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
        except OSError:
            continue  # it has ended, or is not ours
    return found


def test_killed_in_the_middle_of_a_chunk(own: Site) -> None:
    """A killed worker's processes end with it; another worker scores what it had begun, soon, and once."""
    own.variables["LC_JOB_MARK"] = mark = os.getpid()
    first = own.add_worker(**PATIENT)
    job_id = own.submit(*held(2 * CHUNK_SIZE))
    eventually(lambda: len(own.begun()) > 0)
    assert len(descendants(mark)) > 2
    first.kill()
    eventually(lambda: not descendants(mark))
    own.go_on()
    own.add_worker()

    state = own.end_of(job_id)

    found = results(own, job_id)
    assert [(one["index"], one["value"]) for one in found] == [(at, float(at % 2 == 0)) for at in range(2 * CHUNK_SIZE)]
    assert (state["status"], state["statuses"]["ok"]) == ("finished", 2 * CHUNK_SIZE)
    assert {2, 1} == {one["attempts"] for one in chunks(own.workers[1])}


@pytest.mark.nightly
def test_a_stalled_worker_is_late(own: Site) -> None:
    """The result of a worker that was taken for dead does not count; the other's stays."""
    stalled = own.add_worker(**PATIENT)
    job_id = own.submit(*held(CHUNK_SIZE))
    eventually(lambda: len(own.begun()) > 0)
    stalled.freeze()
    own.go_on()
    own.add_worker()
    state = own.end_of(job_id)
    before = results(own, job_id)

    stalled.thaw()
    eventually(lambda: bool(chunks(stalled)))

    assert [one["outcome"] for one in chunks(stalled)] == ["dropped"]
    assert (own.state(job_id), results(own, job_id)) == (state, before)


@pytest.mark.nightly
def test_stopped_workers(own: Site) -> None:
    """SIGTERM ends a worker after its chunk, with status 0, and an idle one at once; the rest waits for another."""
    worker = own.add_worker(**PATIENT)
    job_id = own.submit(*held(4 * CHUNK_SIZE))
    eventually(lambda: len(own.begun()) > 0)

    worker.process.terminate()
    eventually(lambda: is_told_to_stop(own.queue.url))
    own.go_on()
    assert worker.process.wait(START_SECONDS) == 0

    assert own.state(job_id)["done"] == CHUNK_SIZE
    assert [one["outcome"] for one in chunks(worker)] == ["committed"]
    other = own.add_worker()
    assert own.end_of(job_id)["statuses"]["ok"] == 4 * CHUNK_SIZE
    eventually(lambda: len(chunks(other)) == 3)
    assert {1} == {one["attempts"] for one in chunks(other)}

    eventually(lambda: is_waited_at(own.queue.url))
    assert other.stop() == 0


def is_told_to_stop(url: str) -> bool:
    """Whether a busy worker of a queue has noted that it has to stop."""
    link = redis.Redis.from_url(url)
    return any(link.hexists(key, "shutdown_requested_date") for key in link.scan_iter("rq:worker:*"))


def is_waited_at(url: str) -> bool:
    """Whether a worker waits at a queue for the next chunk."""
    return any("b" in one["flags"] for one in redis.Redis.from_url(url).client_list())


def test_the_queue_is_killed(own: Site) -> None:
    """Workers wait for the queue's Redis; what was taken is still there, and is scored once."""
    own.add_worker()
    job_id = own.submit(*slow(3 * CHUNK_SIZE))
    eventually(lambda: len(own.begun()) > 0)
    own.queue.kill()
    time.sleep(2)
    own.queue.start()

    eventually(lambda: own.server.get(f"/jobs/{job_id}").status_code == 200)
    assert own.end_of(job_id)["statuses"]["ok"] == 3 * CHUNK_SIZE
    assert [one["index"] for one in results(own, job_id)] == list(range(3 * CHUNK_SIZE))


@pytest.mark.nightly
def test_the_queue_is_away_for_long(own: Site) -> None:
    """Workers that have given a queue up find it again, lose nothing, and can be stopped at any time."""
    first, second = own.add_worker(), own.add_worker()
    job_id = own.submit(*slow(CHUNK_SIZE))
    eventually(lambda: len(own.begun()) > 0)
    own.queue.kill()
    time.sleep(QUEUE_RETRIES + 10)
    own.queue.start()

    eventually(lambda: own.server.get(f"/jobs/{job_id}").status_code == 200)
    assert own.end_of(job_id)["statuses"]["ok"] == CHUNK_SIZE
    assert own.end_of(own.submit(sample(0)))["status"] == "finished"
    assert (0, 0) == (first.stop(), second.stop())


def test_deliveries_that_are_lost(own: Site) -> None:
    """Chunks that RQ does not know any more are sent again when their time has come."""
    link = redis.Redis.from_url(own.queue.url)
    job_id = own.submit(*(sample(at) for at in range(3 * CHUNK_SIZE)))
    link.delete(f"rq:queue:{QUEUE}")
    [due] = link.scan_iter("rewardstack:jobs:*:due")
    link.zadd(due, dict.fromkeys(map(str, range(3)), 0), xx=True)
    own.add_worker(REWARD_FUNCTIONS="")

    assert own.end_of(job_id)["statuses"]["ok"] == 3 * CHUNK_SIZE


def test_failures_of_the_infrastructure(jobs: Site) -> None:
    """What the infrastructure failed is tried again, and nothing else is; then it is a score like all others."""
    broken = jobs.folder / "broken"
    broken.touch()
    items = [
        sample(at, data_source="rule_remote_flaky", solution_str=text) for at, text in enumerate(["a", "bad", "b"])
    ]
    job_id = jobs.submit(*items)
    eventually(lambda: chunks(jobs.workers[0], job_id))
    assert jobs.state(job_id)["done"] == 0
    broken.unlink()

    assert jobs.end_of(job_id)["statuses"]["ok"] == 3
    eventually(lambda: outcomes(jobs, job_id)[-1] == "committed")
    assert {*outcomes(jobs, job_id)[:-1]} == {"postponed"}
    attempts = len(outcomes(jobs, job_id))  # two, unless this test was slower than the second one
    assert Counter((jobs.folder / "calls").read_text().split()) == {"a": 1, "b": 1, "bad": attempts}


def outcomes(here: Site, job_id: str) -> list[str]:
    """What became of the chunk of a job, each time that the first worker had it."""
    return [one["outcome"] for one in chunks(here.workers[0], job_id)]


def test_a_failure_that_stays(own: Site) -> None:
    """After the last attempt a sample is `failed`, and so is a job of such samples only."""
    own.add_worker(REWARD_JOB_RETRIES=0)
    (own.folder / "broken").touch()
    bad = sample(0, data_source="rule_remote_flaky", solution_str="bad")

    partly, wholly = own.submit(bad, sample(0)), own.submit(bad, bad)

    assert (own.end_of(partly)["status"], own.end_of(wholly)["status"]) == ("finished", "failed")
    found = [(one["status"], one["value"]) for one in results(own, partly)]
    assert found == [("failed", 0.0), ("ok", 1.0)]
    assert "out of order" in results(own, wholly)[0]["reason"]


class Trap:
    """What makes a directory when it is unpickled.

    Args:
        path: of the directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("kind", ["function", "pickle", "callback", "webhook"])
def test_foreign_entries_are_not_run(jobs: Site, kind: str) -> None:
    """A client that can write to the queue cannot make a worker call arbitrary code."""
    target = jobs.folder / TOUCHED
    link = redis.Redis.from_url(jobs.queue.url)
    function, arguments = {
        "function": ("os.mkdir", (str(target),)),
        "pickle": (FUNCTION, (Trap(target), 0)),
        **dict.fromkeys(("callback", "webhook"), (FUNCTION, ("0" * 32, 0))),
    }[kind]
    serializer: Any = pickle if kind == "pickle" else JSONSerializer
    job = Job.create(function, args=arguments, connection=link, serializer=serializer, description="")
    if kind == "callback":
        job._success_callback_name = "tests.jobs.test_worker.touch"
    listener = socket.create_server(("127.0.0.1", 0))
    if kind == "webhook":
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        job.webhooks = [Webhook(url, "finished"), Webhook(url, "failed")]
    RqQueue(QUEUE, connection=link, serializer=serializer).enqueue_job(job)
    eventually(lambda: not link.llen(f"rq:queue:{QUEUE}"))

    assert jobs.end_of(jobs.submit(sample(0)))["status"] == "finished"
    assert not target.exists()
    with listener, pytest.raises(BlockingIOError):
        listener.setblocking(False)
        listener.accept()


def touch(*arguments: Any) -> None:
    """What a callback would call; a worker finds it in the working directory of the tests."""
    Path(os.environ["JOB_TRACES"], TOUCHED).touch()


def test_settings() -> None:
    """Without a queue, or with a wrong one, a worker ends with one line that names the variable."""
    for url, complaint in [
        ("", "unset; name the Redis"),
        ("http://x", "REWARD_QUEUE_URL: its value is not"),
    ]:
        done = subprocess.run(
            [sys.executable, "-m", "rewardstack_rules.jobs.worker"],
            env=clean_environment(REWARD_QUEUE_URL=url),
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "REWARD_QUEUE_URL" in done.stderr and complaint in done.stderr


@pytest.mark.nightly
def test_interrupted_twice(own: Site) -> None:
    """A second SIGTERM ends a worker at once; its chunk is scored by another, and counts for no death."""
    worker = own.add_worker(**PATIENT)
    job_id = own.submit(*held(CHUNK_SIZE))
    eventually(lambda: len(own.begun()) > 0)

    def has_ended() -> bool:
        worker.process.send_signal(signal.SIGTERM)  # RQ takes those within a second for one
        return worker.process.poll() is not None

    eventually(has_ended)
    own.go_on()
    own.add_worker()

    assert own.end_of(job_id)["statuses"]["ok"] == CHUNK_SIZE
