"""Check of jobs: the workers return each sample once, in order, and with the right score."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from rewardstack_cli.deep.samples import Sample, samples
from rewardstack_cli.deep.stack import REQUEST_TIMEOUT, LeftOut, Stack, require, wait_until
from rewardstack_cli.probes.http import Probed

JOB_SECONDS = 600.0
"""Maximum seconds until the job ends."""
COPIES = 5
"""Number of copies of each rule's sample in a job."""
ENDED = ("finished", "failed", "canceled")
"""The states of a job that has ended."""
NO_QUEUE = 503
"""HTTP status, without Retry-After, of a reward server that has no job queue."""


async def job(stack: Stack) -> str:
    """Check that a job with samples of every service finishes and returns each sample once, in order, scored right."""
    some = [sample for sample in samples(*stack.services) for _ in range(COPIES if sample.service == "rules" else 1)]
    started = time.monotonic()
    server = stack.servers("rules")[0]
    path = f"/jobs/{await _submit(server, some)}"

    async def has_ended() -> bool:
        return (await _state(server, path))["status"] in ENDED

    await wait_until(has_ended, JOB_SECONDS, f"{path} ends")
    state = await _state(server, path)
    require(state["status"] == "finished" and state["done"] == len(some), f"the job ended as {state}")
    _require_right(some, await server.ask(f"{path}/results", timeout=REQUEST_TIMEOUT))
    return f"{len(some)} samples in {time.monotonic() - started:.1f} s"


def _require_right(some: list[Sample], results: bytes) -> None:
    lines = [json.loads(line) for line in results.splitlines()]
    found = [line["index"] for line in lines]
    require(found == list(range(len(some))), f"the results are numbered {found}")
    for sample, line in zip(some, lines, strict=True):
        right = line["status"] == "ok" and sample.low <= line["value"] <= sample.high
        require(right, f"{sample.request.data_source}: {line}")


async def _submit(server: Probed, some: list[Sample]) -> str:
    """Submit a job twice with the same key, as a client that lost the first answer would, and return its id."""
    body = json.dumps({"items": [_item(sample) for sample in some]}).encode()
    key = uuid.uuid4().hex
    replies = [await server.reply("/jobs", body, REQUEST_TIMEOUT, Idempotency_Key=key) for _ in range(2)]
    if replies[0].status == NO_QUEUE and "Retry-After" not in replies[0].headers:
        raise LeftOut("the reward server has no queue")
    for reply in replies:
        require(reply.status == 202, f"/jobs answers {reply.status}: {reply.data[:200]!r}")
    first, again = (str(json.loads(reply.data)["job_id"]) for reply in replies)
    require(first == again, "the same Idempotency-Key made two jobs")
    return first


def _item(sample: Sample) -> dict[str, Any]:
    request = sample.request
    extra = {name: value for name, value in (request.extra_info or {}).items() if name != "timeout"}
    return {
        "data_source": request.data_source,
        "solution_str": request.solution_str,
        "ground_truth": request.ground_truth,
        "extra_info": extra,
    }


async def _state(server: Probed, path: str) -> dict[str, Any]:
    state: dict[str, Any] = await server.ask_json(path, timeout=REQUEST_TIMEOUT)
    return state
