"""A job of 20,000 samples while every worker is killed in turn, and the queue once: nothing lost, nothing twice.

    python benchmarks/jobs_chaos.py [--items 20000] [--workers 3]

Each worker is killed with SIGKILL at its own point of the job's progress, the queue's Redis at the middle, and started
again as a supervisor would. The samples are those of the mix (`mix`), whose labels are known. Exits with 1 unless each
sample appears once in the results, in order, with its label as its value.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import requests

from benchmarks.mix import Sample, make_samples
from benchmarks.reward_server import reward_server
from tests.support.jobs import Queue, Worker

CHUNK_SIZE = 100
OUTAGE = 1.0
"""Seconds between the death of a process and its next life."""
MOST_SECONDS = 500.0
LINES = {"Content-Type": "application/x-ndjson"}


class Blow(NamedTuple):
    """Something that is killed and started again.

    Args:
        share: of the samples that are done when it falls.
        name: what is killed.
        kill: does it.
        revive: undoes it.
    """

    share: float
    name: str
    kill: Callable[[], None]
    revive: Callable[[], None]


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


def main() -> int:
    """Reads the arguments, runs the job, prints what became of it; the exit status."""
    parser = argparse.ArgumentParser(prog="jobs_chaos", description="A job while its workers and its queue are killed.")
    parser.add_argument("--items", type=int, default=20_000, help="samples (%(default)s)")
    parser.add_argument("--workers", type=int, default=3, help="of which each is killed once (%(default)s)")
    options = parser.parse_args()
    outcome = run(options.items, options.workers)
    for line in (*outcome.blows, *outcome.faults):
        print(line)
    print("chunks:", ", ".join(f"{name} {count:,}" for name, count in outcome.counts.items()))
    verdict = "FAULTY" if outcome.faults else "each of them once, in order, with its label"
    print(f"{options.items:,} samples in {outcome.seconds:.1f} s: {verdict}")
    return 1 if outcome.faults else 0


def run(items: int, workers: int) -> Outcome:
    """Runs a job of `items` samples on `workers` workers, and kills all of them and the queue."""
    samples = list(make_samples(items, seed=0))
    with tempfile.TemporaryDirectory() as folder, _stack(Path(folder), workers) as (url, queue, crew):
        started = time.monotonic()
        job = f"{url}/jobs/{_submit(url, samples)}"
        blows = _let_fall(job, _plan(queue, crew))
        state = _wait(job, lambda state: state["status"] in ("finished", "failed"))
        seconds = time.monotonic() - started
        return Outcome(seconds, blows, list(_faults(job, samples, state)), _counts(url))


@contextmanager
def _stack(folder: Path, workers: int) -> Iterator[tuple[str, Queue, list[Worker]]]:
    queue = Queue(folder)
    crew: list[Worker] = []
    environment = {"REWARD_QUEUE_URL": queue.url, "REWARD_JOB_CHUNK_SIZE": str(CHUNK_SIZE), "REWARD_CACHE_ITEMS": "0"}
    try:
        with reward_server(**environment) as server:
            for number in range(workers):
                crew.append(Worker(folder, os.environ | environment, f"worker-{number}"))
            for worker in crew:
                worker.wait_until_ready()
            yield f"http://127.0.0.1:{server.port}", queue, crew
    finally:
        for process in (*crew, queue):
            process.kill()


def _submit(url: str, samples: list[Sample]) -> str:
    rows = [{"data_source": "math", "solution_str": one.response, "ground_truth": one.reference} for one in samples]
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    reply = requests.post(f"{url}/jobs", data=body, headers=LINES, timeout=120)
    reply.raise_for_status()
    job_id: str = reply.json()["job_id"]
    return job_id


def _plan(queue: Queue, crew: list[Worker]) -> list[Blow]:
    """One blow for each worker and the queue, spread over the job; the queue's is the middle one."""
    targets: list[Any] = [*crew[: len(crew) // 2], queue, *crew[len(crew) // 2 :]]
    return [
        Blow((at + 0.5) / (len(targets) + 0.5), type(target).__name__.lower(), target.kill, target.start)
        for at, target in enumerate(targets)
    ]


def _let_fall(job: str, blows: list[Blow]) -> list[str]:
    told = []
    for blow in blows:
        state = _wait(job, lambda state, share=blow.share: state["done"] >= share * state["items"])  # type: ignore[misc]
        blow.kill()
        time.sleep(OUTAGE)
        blow.revive()
        told.append(f"killed a {blow.name:<8} at {state['done']:>7,} of {state['items']:,} ({state['status']})")
    return told


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


def _faults(job: str, samples: list[Sample], state: dict[str, Any]) -> Iterator[str]:
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


def _counts(url: str) -> dict[str, int]:
    text = requests.get(f"{url}/metrics", timeout=60).text
    name = 'rewardstack_job_chunks_total{event="'
    rows = [line.removeprefix(name).split('"} ') for line in text.splitlines() if line.startswith(name)]
    return {event: int(float(count)) for event, count in rows}


if __name__ == "__main__":
    sys.exit(main())
