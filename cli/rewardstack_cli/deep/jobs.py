"""Check that a job returns each sample once, in order, and with the right score."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from rewardstack_cli.deep.samples import Sample, make_samples
from rewardstack_cli.deep.stack import REQUEST_TIMEOUT, CheckSkippedError, Stack, require, wait_until
from rewardstack_cli.probes.http import ProbedService

JOB_TIMEOUT = 600.0
"""Maximum seconds until the job ends."""
COPIES = 5
"""Number of copies of each rule sample in the job. The job has only one copy of each sample of another service."""
ENDED = ("finished", "failed", "canceled")
"""The states of a job that has ended."""
NO_QUEUE = 503
"""HTTP status of `/jobs` if the reward server has no job queue. This response has no Retry-After header, unlike other
responses with the same status."""


async def check_job(stack: Stack) -> str:
    """Run a job with samples of every service, and check that it returns one right score for each sample, in order."""
    samples = [
        sample for sample in make_samples(*stack.services) for _ in range(COPIES if sample.service == "rules" else 1)
    ]
    started = time.monotonic()
    server = stack.servers("rules")[0]
    path = f"/jobs/{await _submit(server, samples)}"

    async def has_ended() -> bool:
        return (await _fetch_state(server, path))["status"] in ENDED

    await wait_until(has_ended, JOB_TIMEOUT, f"{path} has not ended")
    state = await _fetch_state(server, path)
    require(state["status"] == "finished" and state["done"] == len(samples), f"the job ended as {state}")
    _require_right(samples, await server.ask(f"{path}/results", timeout=REQUEST_TIMEOUT))
    return f"{len(samples)} samples in {time.monotonic() - started:.1f} s"


def _require_right(samples: list[Sample], results: bytes) -> None:
    lines = [json.loads(line) for line in results.splitlines()]
    indices = [line["index"] for line in lines]
    require(indices == list(range(len(samples))), f"expected the results 0 to {len(samples) - 1}, got {indices}")
    for sample, line in zip(samples, lines, strict=True):
        is_right = line["status"] == "ok" and sample.low <= line["value"] <= sample.high
        require(is_right, f"{sample.request.data_source}: expected {sample.low:g} to {sample.high:g}, got {line}")


async def _submit(server: ProbedService, samples: list[Sample]) -> str:
    """Submit a job twice with the same idempotency key, like a client that got no reply; return the job's ID."""
    body = json.dumps({"items": [_to_item(sample) for sample in samples]}).encode()
    key = uuid.uuid4().hex
    replies = [await server.reply("/jobs", body, REQUEST_TIMEOUT, Idempotency_Key=key) for _ in range(2)]
    if replies[0].status == NO_QUEUE and "Retry-After" not in replies[0].headers:
        raise CheckSkippedError("the reward server has no queue")
    for reply in replies:
        require(reply.status == 202, f"/jobs answers {reply.status}: {reply.data[:200]!r}")
    first, second = (str(json.loads(reply.data)["job_id"]) for reply in replies)
    require(first == second, "the same Idempotency-Key made two jobs")
    return first


def _to_item(sample: Sample) -> dict[str, Any]:
    request = sample.request
    extra = {name: value for name, value in (request.extra_info or {}).items() if name != "timeout"}
    return {
        "data_source": request.data_source,
        "solution_str": request.solution_str,
        "ground_truth": request.ground_truth,
        "extra_info": extra,
    }


async def _fetch_state(server: ProbedService, path: str) -> dict[str, Any]:
    state: dict[str, Any] = await server.ask_json(path, timeout=REQUEST_TIMEOUT)
    return state
