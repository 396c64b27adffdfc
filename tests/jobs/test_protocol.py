"""`/jobs` over HTTP: what is taken, told, streamed and canceled."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import redis
import requests

from rewardstack.core.wire import score_record
from rewardstack.score import Score
from rewardstack_rules.jobs.keys import SILENCE, WORKERS
from rewardstack_rules.jobs.ledger import Ledger
from rewardstack_rules.jobs.link import connect
from tests.jobs.conftest import CHUNK_SIZE, KEY, OTHER_KEY, PATIENT, Site, left_behind, sample, site
from tests.jobs.steps import begin
from tests.jobs.test_worker import chunks
from tests.rules.test_refusals import refusal
from tests.support.table import Table
from tests.support.waiting import eventually

SAMPLES = [sample(at) for at in range(2 * CHUNK_SIZE + 1)]
LINES = "".join(json.dumps(one) + "\n" for one in SAMPLES)
FILE = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n%s\r\n' % LINES.encode()
NDJSON = {"Content-Type": "application/x-ndjson"}
COMPARED = ("value", "status", "reason", "source")


def lines_of(reply: requests.Response) -> list[dict[str, Any]]:
    """The lines of a reply."""
    assert reply.status_code == 200, reply.text
    return [json.loads(line) for line in reply.text.splitlines()]


def pick(scores: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What does not change from one scoring to the next."""
    return [tuple(one[name] for name in COMPARED) for one in scores]


def test_scores_are_those_of_the_score_endpoint(jobs: Site) -> None:
    """A job's results are what /v1/score says of the same samples, each once, in order."""
    mixed = [*SAMPLES, sample(0, ground_truth=None), sample(0, data_source="math"), sample(0, solution_str=7)]
    job_id = jobs.submit(*mixed)

    state = jobs.end_of(job_id)
    results = lines_of(jobs.server.get(f"/jobs/{job_id}/results"))

    assert pick(results) == pick(jobs.server.score(*mixed))
    assert [one["index"] for one in results] == list(range(len(mixed)))
    assert (state["status"], state["items"], state["done"], state["progress"]) == ("finished", 14, 14, 1.0)
    assert state["statuses"] == {"ok": 12, "fallback": 0, "unscored": 2, "failed": 0}
    assert state["submitted_at"] <= state["started_at"] <= state["ended_at"] < state["expires_at"]


@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param({"data": LINES, "headers": NDJSON}, id="lines"),
        pytest.param({"data": "\ufeff" + LINES.replace("\n", "\r\n\n"), "headers": NDJSON}, id="blank lines and a BOM"),
        pytest.param({"data": iter([LINES[:100].encode(), LINES[100:].encode()]), "headers": NDJSON}, id="no length"),
        pytest.param({"files": {"file": ("samples.jsonl", LINES)}}, id="form"),
    ],
)
def test_an_upload_is_the_same_job(jobs: Site, request_of: dict[str, Any]) -> None:
    """However the samples come, under one key they are one job."""
    key = {"Idempotency-Key": f"upload-{jobs.folder}"}
    expected = jobs.submit(*SAMPLES, headers=key)
    if isinstance(data := request_of.get("data"), str):
        request_of = request_of | {"data": data.encode()}

    reply = requests.post(
        f"{jobs.server.url}/jobs", **{**request_of, "headers": {**request_of.get("headers", {}), **key}}, timeout=60
    )

    assert (202, expected) == (reply.status_code, reply.json()["job_id"])
    assert f"/jobs/{expected}" == reply.headers["Location"]


def test_idempotency(idle: Site) -> None:
    """The same key is the same job; with other samples it is a conflict; another tenant's is its own."""
    key = {"Idempotency-Key": "one"}
    first = idle.submit(*SAMPLES, headers=KEY | key)
    again = idle.submit(*SAMPLES, headers=KEY | key)
    other_tenant = idle.submit(*SAMPLES, headers=OTHER_KEY | key)
    without = idle.submit(*SAMPLES, headers=KEY)
    conflict = idle.server.post("/jobs", {"items": SAMPLES[1:]}, headers=KEY | key)

    assert first == again
    assert len({first, other_tenant, without}) == 3
    assert refusal(conflict) == (409, "Idempotency-Key")
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in (first, other_tenant, without))


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("DELETE", ""), ("GET", "/results")])
def test_somebody_elses_job_is_no_job(idle: Site, method: str, path: str) -> None:
    """What a tenant submitted is found with its key alone; all else is 404."""
    job_id = idle.submit(*SAMPLES, headers=KEY)
    url = f"{idle.server.url}/jobs"

    for ident, key in [(job_id, OTHER_KEY), ("0" * 32, KEY), (job_id.upper(), KEY), ("x" * 500, KEY), ("%2e%2e", KEY)]:
        assert refusal(requests.request(method, f"{url}/{ident}{path}", headers=key, timeout=60))[0] == 404
    assert refusal(requests.request(method, f"{url}/{job_id}{path}", timeout=60)) == (401, "Authorization")
    assert idle.state(job_id, headers=KEY)["status"] == "queued"


MALFORMED: list[tuple[str, str | bytes, int, str]] = [
    ("application/json", b"[]", 400, "body"),
    ("application/json", b"{}", 400, "items"),
    ("application/json", json.dumps({"items": [SAMPLES[0], 3]}), 400, "items[1]"),
    ("application/json", json.dumps({"items": [sample(0, data_source=3)]}), 400, "items[0].data_source"),
    ("application/json", json.dumps({"items": [sample(0, data_source="gsm9k")]}), 404, "items[0].data_source"),
    ("application/json", json.dumps({"items": [SAMPLES[0], sample(0, data_source="code")]}), 400, "CODE"),
    (
        "application/json",
        json.dumps({"items": [sample(0, data_source="reward_model")]}),
        400,
        "REWARD_MODEL_SERVER_URL",
    ),
    ("application/x-ndjson", LINES + "{\n", 400, "line 12"),
    ("application/x-ndjson", LINES + "[" * 50_000, 400, "line 12"),
    ("application/x-ndjson", LINES + "7\n", 400, "items[11]"),
    ("application/x-ndjson", LINES + json.dumps(sample(0, data_source="rule_remote_no")), 404, "items[11].data_source"),
    (
        "application/x-ndjson",
        LINES + json.dumps(sample(0, extra_info={"server_url": "http://x"})),
        *(400, "items[11].extra_info.server_url"),
    ),
    ("application/x-ndjson", b"\xff\xfe\x00", 400, "line 1"),
    ("text/csv", LINES, 415, "Content-Type"),
    ("multipart/form-data; boundary=x", b"--x--\r\n", 400, "body"),
    ("multipart/form-data; boundary=x", 2 * FILE + b"--x--\r\n", 400, "body"),
    ("multipart/form-data", b"--x--\r\n", 400, "body"),
    ("application/x-ndjson", LINES * 200, 413, "body"),
]


def test_malformed(idle: Site, table: Table) -> None:
    """What is malformed is refused, naming the place, and nothing of it stays in the queue."""
    for at, (kind, data, status, field) in enumerate(MALFORMED):
        with table.case(f"{at} {kind} {status} {field}"):
            before = left_behind(idle)
            content = data.encode() if isinstance(data, str) else data
            for body in (content, iter([content])):
                reply = idle.server.post("/jobs", data=body, headers=KEY | {"Content-Type": kind})
                assert refusal(reply) == (status, field)
            assert left_behind(idle) == before


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 256])
def test_malformed_idempotency_key(idle: Site, key: str) -> None:
    """A key is visible ASCII."""
    reply = idle.server.post("/jobs", {"items": SAMPLES}, headers={**KEY, "Idempotency-Key": key.encode("latin-1")})

    assert refusal(reply) == (400, "Idempotency-Key")


def test_a_refusal_in_the_middle_of_a_long_upload_is_read(jobs: Site) -> None:
    """The sender of 30 MB whose first line is wrong comes to know it."""
    reply = requests.post(f"{jobs.server.url}/jobs", data=b"{\n" + b" " * 30_000_000, headers=NDJSON, timeout=60)

    assert refusal(reply) == (400, "line 1")


def test_no_samples(jobs: Site) -> None:
    """A job without samples is finished at once."""
    job_id = jobs.submit()

    assert jobs.state(job_id)["status"] == "finished"
    assert lines_of(jobs.server.get(f"/jobs/{job_id}/results")) == []


def test_parts_of_results(jobs: Site) -> None:
    """`start` and `count` choose lines, whatever the chunks are."""
    job_id = jobs.submit(*SAMPLES)
    jobs.end_of(job_id)

    for start in range(len(SAMPLES) + 2):
        for count in (None, 0, 1, CHUNK_SIZE, CHUNK_SIZE + 1, 10**15 - 1):
            query = f"?start={start}" + ("" if count is None else f"&count={count}")
            found = [one["index"] for one in lines_of(jobs.server.get(f"/jobs/{job_id}/results{query}"))]
            assert found == list(range(len(SAMPLES)))[start:][:count]


@pytest.mark.parametrize(
    "query", ["start=-1", "start=x", "count=1.0", "count=" + "9" * 16, "partial=yes", "starts=2", "start=²"]
)
def test_malformed_parts(jobs: Site, query: str) -> None:
    """What is no number is refused, and so is a misspelled name."""
    reply = jobs.server.get(f"/jobs/{jobs.submit(*SAMPLES)}/results?{query}")

    assert refusal(reply) == (400, query.partition("=")[0])


@pytest.mark.nightly
def test_results_before_the_end(own: Site) -> None:
    """Before a job is complete its results are refused, unless they may be partial; these have no gaps."""
    own.add_worker(**PATIENT)
    items = [sample(at) for at in range(CHUNK_SIZE)]
    job_id = own.submit(*items, *(sample(at, data_source="rule_remote_held") for at in range(4 * CHUNK_SIZE)))
    eventually(lambda: own.state(job_id)["done"] >= CHUNK_SIZE)

    refused = own.server.get(f"/jobs/{job_id}/results")
    partial = lines_of(own.server.get(f"/jobs/{job_id}/results?partial=1"))

    assert refusal(refused) == (409, "partial")
    assert CHUNK_SIZE <= len(partial) < 5 * CHUNK_SIZE
    assert [one["index"] for one in partial] == list(range(len(partial)))
    assert own.state(job_id)["status"] == "running"


def test_cancel(own: Site) -> None:
    """A canceled job scores nothing more, keeps what it has, frees its key, and stays canceled."""
    key = {"Idempotency-Key": "one"}
    worker = own.add_worker(**PATIENT)
    sources = ["rule_remote_slow"] * CHUNK_SIZE + ["rule_remote_held"] * 39 * CHUNK_SIZE
    items = [sample(at, data_source=source) for at, source in enumerate(sources)]
    job_id = own.submit(*items, headers=key)
    eventually(lambda: len(set(own.begun())) > CHUNK_SIZE)

    state = requests.delete(f"{own.server.url}/jobs/{job_id}", timeout=60).json()
    fast = own.submit(sample(0))

    assert CHUNK_SIZE == state["done"]
    assert own.end_of(fast)["status"] == "finished"
    assert (state["status"], own.state(job_id)) == ("canceled", state)
    assert requests.delete(f"{own.server.url}/jobs/{job_id}", timeout=60).json() == state
    assert len(lines_of(own.server.get(f"/jobs/{job_id}/results?partial=1"))) == state["done"]
    assert job_id != own.submit(*items, headers=key)
    eventually(lambda: [one["outcome"] for one in chunks(worker, job_id)] == ["committed", "dropped"])


def test_a_result_after_the_end_is_counted(own: Site) -> None:
    """A result that a worker has for a job that was canceled meanwhile is dropped, and counted."""
    job_id, ledger = own.submit(sample(0)), Ledger(connect(own.queue.url))
    chunk = begin(ledger, job_id)
    requests.delete(f"{own.server.url}/jobs/{job_id}", timeout=60)

    assert ledger.commit(chunk, [score_record(Score(1.0))]) == "dropped"
    assert 'rewardstack_job_chunks_total{event="dropped"} 1.0' in own.server.get("/metrics").text


@pytest.mark.nightly
def test_expiry(tmp_path: Path) -> None:
    """After its time a job is forgotten, and nothing of it is left."""
    with site(tmp_path, REWARD_JOB_TTL=1) as here:
        here.add_worker()
        job_id = here.submit(*SAMPLES, headers={"Idempotency-Key": "one"})
        eventually(lambda: here.server.get(f"/jobs/{job_id}").status_code == 404)
        eventually(lambda: not left_behind(here))


def test_ended_jobs_are_reported(idle: Site) -> None:
    """`/v1/status` has the open jobs of a key, then those that have ended; none of another key."""
    canceled, queued = (idle.submit(sample(at), headers=KEY) for at in range(2))
    requests.delete(f"{idle.server.url}/jobs/{canceled}", headers=KEY, timeout=60)

    def reported(key: dict[str, str]) -> dict[str, str]:
        found = idle.server.get("/v1/status", headers=key).json()["own_jobs"]
        return {one["job_id"]: one["status"] for one in found}

    eventually(lambda: canceled in reported(KEY))
    states = reported(KEY)
    assert (states[queued], states[canceled]) == ("queued", "canceled")
    assert [*states].index(queued) < [*states].index(canceled)
    assert not {queued, canceled} & reported(OTHER_KEY).keys()


def test_dead_worker(idle: Site) -> None:
    """A worker whose heartbeats have ended is not counted, even if no other worker removes it."""
    redis.Redis.from_url(idle.queue.url).zadd(WORKERS, {"dead": time.time() - SILENCE - 1})
    assert "rewardstack_job_workers 0.0" in idle.server.get("/metrics", headers=KEY).text.splitlines()


def test_metrics(jobs: Site) -> None:
    """Jobs, chunks, samples and workers are counted over all processes."""

    def counts() -> dict[str, float]:
        lines = jobs.server.get("/metrics").text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    others = [f'rewardstack_jobs_open{{status="{status}"}}' for status in ("queued", "running")]
    eventually(lambda: not any(counts().get(one) for one in others))  # jobs of earlier tests
    before = counts()
    jobs.end_of(jobs.submit(*SAMPLES))
    after = counts()

    changed = {name: after[name] - before[name] for name in after if "_job" in name and after[name] != before.get(name)}
    changed = {name: count for name, count in changed.items() if not name.startswith("rewardstack_request")}
    assert changed == {
        'rewardstack_jobs_total{event="submitted"}': 1,
        'rewardstack_jobs_total{event="finished"}': 1,
        'rewardstack_job_chunks_total{event="committed"}': 3,
        'rewardstack_job_samples_total{status="ok"}': len(SAMPLES),
    }
    eventually(lambda: (counts()["rewardstack_queue_up"], counts()["rewardstack_job_workers"]) == (1, 1))
    assert 'rewardstack_jobs_open{status="running"}' in after and "rewardstack_queue_chunks" in after
