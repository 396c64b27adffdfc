"""A job of samples with known labels whose workers and queue are killed meanwhile, and what became of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import requests

from benchmarks.mix import Sample

OUTAGE = 0.5
"""Seconds between the death of a process and its next life."""
MOST_SECONDS = 500.0
LINES = {"Content-Type": "application/x-ndjson"}


class Mortal(Protocol):
    """Something that can be killed and started again."""

    def kill(self) -> None:
        """It is gone at once."""

    def start(self) -> None:
        """It runs again."""


class Blow(NamedTuple):
    """Something that is killed and started again.

    Args:
        share: of the samples that are done when it falls.
        name: what is killed.
        target: is killed.
    """

    share: float
    name: str
    target: Mortal


class Outcome(NamedTuple):
    """What became of a job.

    Args:
        seconds: from its submission to its end.
        blows: what was killed, and how much was done then.
        faults: what is wrong with the results, in words.
        counts: of the chunks, by event.
    """

    seconds: float
    blows: list[str]
    faults: list[str]
    counts: dict[str, int]


def ordeal(
    url: str, samples: Sequence[Sample], workers: Sequence[Mortal], queue: Mortal, read_metrics: Callable[[], str]
) -> Outcome:
    """Runs a job while every worker is killed in turn, and the queue in the middle.

    Args:
        url: of the reward server.
        samples: of the job.
        workers: that score it.
        queue: that holds it.
        read_metrics: the reward server's metrics.
    """
    started = time.monotonic()
    job = f"{url}/jobs/{_submit(url, samples)}"
    blows, late = [], []
    for blow in _plan(workers, queue):
        state = _fall(job, blow)
        blows.append(f"killed a {blow.name:<8} at {state['done']:>7,} of {state['items']:,} ({state['status']})")
        late += [blow.name] if state["done"] == state["items"] else []
    state = _wait(job, lambda state: state["status"] in ("finished", "failed"))
    seconds = time.monotonic() - started
    faults = [f"the job had ended when a {name} was killed; send more samples" for name in late]
    return Outcome(seconds, blows, [*faults, *_faults(job, samples, state)], _counts(read_metrics()))


def _submit(url: str, samples: Sequence[Sample]) -> str:
    rows = [{"data_source": "math", "solution_str": one.response, "ground_truth": one.reference} for one in samples]
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    reply = requests.post(f"{url}/jobs", data=body, headers=LINES, timeout=120)
    reply.raise_for_status()
    job_id: str = reply.json()["job_id"]
    return job_id


def _plan(workers: Sequence[Mortal], queue: Mortal) -> list[Blow]:
    """One blow for each worker and the queue, spread over the job; the queue's is the middle one."""
    middle = len(workers) // 2
    targets = [("worker", one) for one in workers]
    targets.insert(middle, ("queue", queue))
    return [Blow((at + 0.5) / (len(targets) + 0.5), name, target) for at, (name, target) in enumerate(targets)]


def _fall(job: str, blow: Blow) -> dict[str, Any]:
    """How the job stood when a blow fell; returns when the target runs again."""
    state = _wait(job, lambda state: state["done"] >= blow.share * state["items"])
    blow.target.kill()
    time.sleep(OUTAGE)
    blow.target.start()
    return state


def _wait(job: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The job's state once it is as wanted; the server answers 503 while the queue is away."""
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        reply = requests.get(job, timeout=60)
        if reply.status_code == 200 and until(state := reply.json()):
            found: dict[str, Any] = state
            return found
        time.sleep(0.02)
    raise SystemExit(f"the job does not go on: {reply.text}")


def _faults(job: str, samples: Sequence[Sample], state: dict[str, Any]) -> Iterator[str]:
    lines = [json.loads(line) for line in requests.get(f"{job}/results", timeout=120).text.splitlines()]
    if [line["index"] for line in lines] != list(range(len(samples))):
        yield f"{len(lines):,} lines, {len({line['index'] for line in lines}):,} different ones, or out of order"
    wrong = sum(
        (line["status"], line["value"]) != ("ok", float(one.right)) for line, one in zip(lines, samples, strict=False)
    )
    if wrong:
        yield f"{wrong:,} samples have another value than their label"
    if state["done"] != len(samples) or state["statuses"]["ok"] != len(samples):
        yield f"the job counts {state['statuses']}"


def _counts(metrics: str) -> dict[str, int]:
    name = 'rewardstack_job_chunks_total{event="'
    rows = [line.removeprefix(name).split('"} ') for line in metrics.splitlines() if line.startswith(name)]
    return {event: int(float(count)) for event, count in rows}
