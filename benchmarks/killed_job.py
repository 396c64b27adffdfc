"""Score a job of samples with known labels while its workers and its queue are killed, and check the results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import requests

from benchmarks.mix import Sample

OUTAGE = 0.5
"""Seconds between killing a process and starting it again."""
MOST_SECONDS = 500.0
LINES = {"Content-Type": "application/x-ndjson"}


class Restartable(Protocol):
    """A process that can be killed and started again."""

    def kill(self) -> None:
        """Kill the process immediately."""

    def start(self) -> None:
        """Start the process again."""


class PlannedKill(NamedTuple):
    """A planned kill and restart.

    Args:
        share: share of the samples that are done at the time of the kill, from 0 to 1.
        name: name of the target in the report.
        target: process to kill.
    """

    share: float
    name: str
    target: Restartable


class Outcome(NamedTuple):
    """Result of a job.

    Args:
        seconds: time from submission to end.
        kills: a line for each kill, with the progress at that time.
        faults: descriptions of what is wrong with the results.
        counts: number of chunks by event, from the metric `rewardstack_job_chunks_total`.
    """

    seconds: float
    kills: list[str]
    faults: list[str]
    counts: dict[str, int]


def run_with_kills(
    url: str,
    samples: Sequence[Sample],
    workers: Sequence[Restartable],
    queue: Restartable,
    read_metrics: Callable[[], str],
) -> Outcome:
    """Run a job while each worker and the queue are killed once, at different points of the job.

    Args:
        url: base URL of the reward server.
        samples: samples of the job.
        workers: workers that score the job.
        queue: Redis that holds the job.
        read_metrics: returns the reward server's metrics as text.
    """
    started = time.monotonic()
    job = f"{url}/jobs/{_submit(url, samples)}"
    kills, late = [], []
    for kill in _plan(workers, queue):
        state = _kill_when_due(job, kill)
        kills.append(f"killed a {kill.name:<8} at {state['done']:>7,} of {state['items']:,} ({state['status']})")
        late += [kill.name] if state["done"] == state["items"] else []
    state = _wait(job, lambda state: state["status"] in ("finished", "failed"))
    seconds = time.monotonic() - started
    faults = [f"the job had ended when a {name} was killed; send more samples" for name in late]
    return Outcome(seconds, kills, [*faults, *_faults(job, samples, state)], _counts(read_metrics()))


def _submit(url: str, samples: Sequence[Sample]) -> str:
    rows = [{"data_source": "math", "solution_str": one.response, "ground_truth": one.reference} for one in samples]
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    reply = requests.post(f"{url}/jobs", data=body, headers=LINES, timeout=120)
    reply.raise_for_status()
    job_id: str = reply.json()["job_id"]
    return job_id


def _plan(workers: Sequence[Restartable], queue: Restartable) -> list[PlannedKill]:
    """Return a kill for each worker, with one for the queue after half of them, spread over the job."""
    middle = len(workers) // 2
    targets = [("worker", one) for one in workers]
    targets.insert(middle, ("queue", queue))
    return [PlannedKill((at + 0.5) / (len(targets) + 0.5), name, target) for at, (name, target) in enumerate(targets)]


def _kill_when_due(job: str, kill: PlannedKill) -> dict[str, Any]:
    """Kill and restart a target once the job is far enough; return the job's state just before the kill."""
    state = _wait(job, lambda state: state["done"] >= kill.share * state["items"])
    kill.target.kill()
    time.sleep(OUTAGE)
    kill.target.start()
    return state


def _wait(job: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Poll the job until its state satisfies `until`, and return that state.

    Error statuses are ignored: while the queue is down, the server replies 503.
    """
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        reply = requests.get(job, timeout=60)
        if reply.status_code == 200 and until(state := reply.json()):
            found: dict[str, Any] = state
            return found
        time.sleep(0.02)
    raise SystemExit(f"the job makes no progress: {reply.text}")


def _faults(job: str, samples: Sequence[Sample], state: dict[str, Any]) -> Iterator[str]:
    lines = [json.loads(line) for line in requests.get(f"{job}/results", timeout=120).text.splitlines()]
    if [line["index"] for line in lines] != list(range(len(samples))):
        distinct = len({line["index"] for line in lines})
        yield f"results are incomplete, duplicated or out of order: {len(lines):,} lines, {distinct:,} distinct indices"
    wrong = sum(
        (line["status"], line["value"]) != ("ok", float(one.right)) for line, one in zip(lines, samples, strict=False)
    )
    if wrong:
        yield f"{wrong:,} samples have a value that differs from their label"
    if state["done"] != len(samples) or state["statuses"]["ok"] != len(samples):
        yield f"the job counts {state['statuses']}"


def _counts(metrics: str) -> dict[str, int]:
    name = 'rewardstack_job_chunks_total{event="'
    rows = [line.removeprefix(name).split('"} ') for line in metrics.splitlines() if line.startswith(name)]
    return {event: int(float(count)) for event, count in rows}
