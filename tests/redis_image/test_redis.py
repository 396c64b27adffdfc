"""The result cache and the job queue on the Redis of the compose file."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
import redis

from rewardstack import Request, Score, score
from tests.jobs.conftest import sample, site
from tests.redis_image.conftest import Start
from tests.support.servers import fault_server
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_engine")


def scored(label: str, samples: int) -> list[Score]:
    """Scores of different samples."""
    return score([Request("math", f"{label} {at}", "1") for at in range(samples)])


def test_cache(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was scored is read back; a cache that is full drops the oldest, and no score suffers."""
    cache = start("cache", CACHE_MAX_MEMORY="3mb")
    monkeypatch.setenv("REWARD_CACHE_URL", cache.url)
    monkeypatch.setenv("REWARD_CACHE_ITEMS", "0")
    with fault_server() as server:
        monkeypatch.setenv("REWARD_SERVER_URL", server.url)
        assert {("ok", False)} == {(one.status, one.cached) for one in scored("first", 500)}
        eventually(lambda: {("ok", True)} == {(one.status, one.cached) for one in scored("first", 500)})
        link, labels = redis.Redis.from_url(cache.url), count()

        def fill() -> bool:
            # The client drops what a busy Redis does not take in time, so no fixed number of scores is sure to fill it.
            assert {"ok"} == {one.status for one in scored(f"more {next(labels)}", 5_000)}
            return bool(link.info("stats")["evicted_keys"])

        eventually(fill)
    assert link.info("memory")["used_memory"] <= 3.1 * 2**20


def test_a_cache_that_is_killed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cache everything is scored again."""
    cache = start("cache")
    monkeypatch.setenv("REWARD_CACHE_URL", cache.url)
    monkeypatch.setenv("REWARD_CACHE_ITEMS", "0")
    with fault_server() as server:
        monkeypatch.setenv("REWARD_SERVER_URL", server.url)
        scored("known", 100)
        cache.kill()
        assert {("ok", False)} == {(one.status, one.cached) for one in scored("known", 100)}


@pytest.mark.nightly
def test_a_queue_that_is_killed(start: Start, tmp_path: Path) -> None:
    """A job that was taken is there after a crash of the queue, and comes to its end."""
    queue = start("queue")
    with site(tmp_path, queue=queue) as here:
        job_id = here.submit(*(sample(at) for at in range(23)))
        queue.kill()
        queue.start()
        here.add_worker()
        state = here.end_of(job_id)
    assert (state["status"], state["statuses"]["ok"]) == ("finished", 23)


@pytest.mark.nightly
def test_a_full_queue(start: Start, tmp_path: Path) -> None:
    """A queue that is full takes no job, and drops none that it has."""
    queue = start("queue", QUEUE_MAX_MEMORY="4mb")
    big = [sample(at, solution_str="".join(map(chr, range(256 + at, 50_000)))) for at in range(60)]
    with site(tmp_path, queue=queue) as here:
        job_id = here.submit(*(sample(at) for at in range(23)))
        reply = here.server.post("/jobs", {"items": big})
        assert (reply.status_code, "full" in reply.text) == (503, True)
        assert here.state(job_id)["status"] == "queued"
