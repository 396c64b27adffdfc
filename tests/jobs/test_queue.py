"""The queue itself: what the server makes of one that is not there, away, full, or that does not keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from rewardstack.errors import UnreachableError
from rewardstack_rules.jobs import store as stores
from rewardstack_rules.jobs.durability import confirm_written
from rewardstack_rules.jobs.keys import OPEN
from rewardstack_rules.jobs.link import NOT_THERE
from rewardstack_rules.jobs.store import JobStore
from tests.jobs.conftest import Site, left_behind, sample
from tests.jobs.steps import requests_of
from tests.rules.conftest import running
from tests.rules.test_refusals import refusal
from tests.support.table import Table
from tests.support.waiting import eventually

SAMPLES = [sample(at) for at in range(11)]


def test_without_a_queue(tmp_path: Path) -> None:
    """A server without a queue says so, and is ready all the same."""
    with running(tmp_path) as server:
        for reply in (server.post("/jobs", {"items": SAMPLES}), server.get("/jobs/" + "0" * 32)):
            assert refusal(reply) == (503, "REWARD_QUEUE_URL")
        assert server.get("/ready").status_code == 200


def test_a_queue_that_is_away(own: Site) -> None:
    """Without its Redis the server answers 503, and scores; when Redis is back, the jobs are all there."""
    job_id = own.submit(*SAMPLES)
    own.queue.kill()

    for reply in (own.server.post("/jobs", {"items": SAMPLES}), own.server.get(f"/jobs/{job_id}")):
        assert refusal(reply) == (503, None)
        assert reply.json()["error"].endswith(NOT_THERE)
        assert reply.headers["Retry-After"]
    assert own.server.score(sample(0))[0]["value"] == 1.0
    assert "rewardstack_queue_up 0.0" in own.server.get("/metrics").text
    own.queue.start()
    eventually(lambda: own.server.get(f"/jobs/{job_id}").status_code == 200)
    assert own.state(job_id)["status"] == "queued"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("appendonly", "no", "appendonly yes"),
        ("appendfsync", "everysec", "appendfsync always"),
        ("maxmemory-policy", "allkeys-lru", "noeviction"),
    ],
)
def test_a_queue_that_does_not_keep(own: Site, option: str, value: str, words: str) -> None:
    """No job is taken that the queue could lose; the reply says what to change."""
    link = redis.Redis.from_url(own.queue.url)
    link.config_set("maxmemory", "1gb")
    link.config_set(option, value)

    if option == "appendfsync" and link.info("server")["redis_version"] >= "7.2":
        pytest.skip("this Redis can be asked whether it has written")
    reply = own.server.post("/jobs", {"items": SAMPLES}, headers={"Idempotency-Key": "one"})

    assert refusal(reply) == (503, None)
    assert words in reply.json()["error"]
    assert link.hlen("rewardstack:jobs:open") == 0


def test_a_full_queue(own: Site) -> None:
    """Where its memory is full the queue takes no job, and says so; nothing is left behind."""
    link = redis.Redis.from_url(own.queue.url)
    before = left_behind(own)
    link.config_set("maxmemory", str(link.info("memory")["used_memory"] + 2**20))
    big = [sample(at, solution_str=str(at) * 100_000 + "".join(map(chr, range(256, 30_000)))) for at in range(100)]

    reply = own.server.post("/jobs", {"items": big})

    assert refusal(reply) == (503, None)
    assert "full" in reply.json()["error"]
    assert left_behind(own) == before


def test_what_a_queue_says_about_its_disk() -> None:
    """A Redis that can be asked is asked; where it does not confirm in time, there is no job."""
    for written, words in [(1, ""), (0, "did not write to its disk")]:
        link = Asked(written)
        if words:
            with pytest.raises(UnreachableError, match=words):
                confirm_written(link)
        else:
            confirm_written(link)
        assert "WAITAOF" in link.commands


def test_repeated_while_it_is_written(store: JobStore, monkeypatch: pytest.MonkeyPatch, table: Table) -> None:
    """A repeated request is accepted only for a job that is on disk, and then the job is kept."""
    kept, refused, again = "kept", "no disk", "submit the job again"
    for first, second, expected in [
        ("written", "written", [kept, kept]),
        ("written", "not written", [kept, refused]),
        ("not written", "written", [refused, kept]),
        ("not written", "not written", [refused, refused]),
        ("written", "withdrawn", [again, again]),
    ]:
        store.redis.flushall()
        replies = _submit_twice(store, monkeypatch, first, second)
        with table.case(f"{first}, then {second}"):
            jobs = {job.decode() for job in store.redis.hkeys(OPEN)}
            assert [kept if {reply} == jobs else reply.rpartition("; ")[2] for reply in replies] == expected
            assert len(jobs) == (kept in expected)


def _submit_twice(store: JobStore, monkeypatch: pytest.MonkeyPatch, *confirmations: str) -> list[str]:
    """Submit the same samples again while the first request waits for the disk.

    Args:
        store: the store.
        monkeypatch: replaces the check of the disk.
        confirmations: how the first and the second request's wait ends.

    Returns:
        For the first and the second request the id of the job, or the error.
    """
    replies: dict[int, str] = {}

    def confirm(_: Any) -> None:
        number = len(replies)
        replies[number] = ""
        if number == 0:
            submit(1)
        elif confirmations[number] == "withdrawn":
            store.cancel("", store.redis.hkeys(OPEN)[0].decode())
        if confirmations[number] == "not written":
            raise UnreachableError("no disk")

    def submit(number: int) -> None:
        try:
            found = store.submit(requests_of("a"), "", "the same key")
        except UnreachableError as error:
            found = str(error)
        replies[number] = found

    monkeypatch.setattr(stores, "confirm_written", confirm)
    submit(0)
    return [replies[0], replies[1]]


class Asked:
    """Stands for a Redis 7.2 that writes every second, which this machine may not have.

    Args:
        written: whether it says that it has written.
    """

    def __init__(self, written: int) -> None:
        self.commands: list[str] = []
        self._written = written

    def config_get(self, name: str) -> dict[str, str]:
        """Its options."""
        return {name: {"appendonly": "yes", "appendfsync": "everysec", "maxmemory": "0"}.get(name, "noeviction")}

    def pipeline(self, transaction: bool) -> Asked:
        """Itself."""
        return self

    def incr(self, name: str) -> Asked:
        """A write."""
        return self

    def execute_command(self, *command: Any) -> Asked:
        """Takes a command down."""
        self.commands.append(command[0])
        return self

    def execute(self) -> list[Any]:
        """The answers."""
        return [1, [self._written, 0]]
