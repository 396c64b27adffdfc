"""Who had what scored when, as the logs tell it: whose it was by a hash of the key, and nothing of what it held."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from rewardstack.cache.key import tenant_of
from tests.jobs.conftest import KEY, KEYS, OTHER_KEY, Site, sample, site
from tests.jobs.test_documentation import values
from tests.support.snippets import block
from tests.support.waiting import eventually

DOCUMENTED: list[Any] = values(block("docs/operations.md", "json", "{"))
WORDS = "a candidate's own words"
ENDLESS = """
import time
from rewardstack_rules import reward_function

@reward_function
def endless(response, reference=None):
    time.sleep(3600)
"""


@pytest.fixture(scope="module")
def audited(needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with a worker and two keys."""
    folder = tmp_path_factory.mktemp("audited")
    (folder / "endless.py").write_text(ENDLESS)
    own: dict[str, Any] = {"REWARD_FUNCTIONS": folder / "endless.py", "VERIFY_TIMEOUT": 3600}
    with site(folder, REWARD_SERVER_API_KEYS=KEYS, **own) as here:
        here.add_worker()
        yield here


def logs(here: Site) -> list[Path]:
    """Those of the server and its worker."""
    return [here.server.log, *(worker.log for worker in here.workers)]


def lines(here: Site, job_id: str) -> list[dict[str, Any]]:
    """What was logged of a job as such."""
    found = (line for log in logs(here) for line in log.read_text().splitlines() if '"message": "job"' in line)
    return [one for one in map(json.loads, found) if one["job_id"] == job_id]


def test_a_job_that_is_scored(audited: Site) -> None:
    """A line says who submitted what from where by which request, another how it ended; neither says what it held."""
    items = [{**sample(at), "solution_str": f"{WORDS} #### {at}"} for at in range(6)]
    sent = KEY | {"X-Request-Id": "a-request", "X-Forwarded-For": "10.0.0.1, 10.0.0.2", "Idempotency-Key": "once"}
    job_id = audited.submit(*items, sample(7, data_source="math"), headers=sent)
    assert job_id == audited.submit(*items, sample(7, data_source="math"), headers=sent)
    audited.end_of(job_id, headers=KEY)
    eventually(lambda: len(lines(audited, job_id)) >= 2)

    submitted, ended = lines(audited, job_id)
    assert submitted["bytes"] > 0 and ended["seconds"] >= 0
    assert (
        submitted.items()
        >= {
            "event": "submitted",
            "tenant": tenant_of("first-key-of-tests"),
            "items": 7,
            "sources": {"gsm8k": 6, "math": 1},
            "request_id": "a-request",
            "client": "10.0.0.2",
            "logger": "rewardstack_rules.jobs.audit",
        }.items()
    )
    assert [set(one) for one in (submitted, ended)] == [set(one) for one in DOCUMENTED]
    assert (ended["event"], ended["tenant"], ended["items"]) == ("finished", tenant_of("first-key-of-tests"), 7)
    assert ended["statuses"]["ok"] == 7
    written = "".join(log.read_text() for log in logs(audited))
    assert [word for word in (WORDS, "first-key-of-tests", "####") if word in written] == []


def test_a_job_that_is_canceled(audited: Site) -> None:
    """Who cancels a job is told once, however often it is done, and not where another key tries."""
    job_id = audited.submit(*(sample(at, data_source="rule_remote_endless") for at in range(40)), headers=KEY)
    for headers in (OTHER_KEY, KEY | {"X-Request-Id": "the-end"}, KEY):
        requests.delete(f"{audited.server.url}/jobs/{job_id}", headers=headers, timeout=60)

    assert [one["event"] for one in lines(audited, job_id)] == ["submitted", "canceled"]
    assert (
        lines(audited, job_id)[1].items()
        >= {
            "tenant": tenant_of("first-key-of-tests"),
            "request_id": "the-end",
            "client": "127.0.0.1",
        }.items()
    )


def test_sources_are_bounded(audited: Site) -> None:
    """A source is the client's to choose: a few of them are told, and not all of a long one."""
    sources = [f"gsm8k_{at}{'x' * 200}" for at in range(20)]
    job_id = audited.submit(*(sample(0, data_source=source) for source in sources), headers=KEY)
    requests.delete(f"{audited.server.url}/jobs/{job_id}", headers=KEY, timeout=60)

    told = lines(audited, job_id)[0]["sources"]
    assert (len(told), {len(source) for source in told}) == (10, {64})
