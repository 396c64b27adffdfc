"""Check that a job of 20,000 samples loses and duplicates nothing while its workers and its queue are killed.

    python benchmarks/jobs_chaos.py [--items 20000] [--workers 3]

Each worker and the queue's Redis are killed once (SIGKILL), at different points of the job, and then started again, as
a supervisor would do. The samples are generated (`mix`), so their labels are known. The exit status is 0 only if each
sample appears exactly once in the results, in order, with its label as its value.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import requests

from benchmarks.killed_job import Outcome, run_with_kills
from benchmarks.mix import make_samples
from benchmarks.reward_server import reward_server
from tests.support.jobs import Queue, Worker

CHUNK_SIZE = 100


def main() -> int:
    """Run the job that the command line describes, print its result, and return the exit status."""
    parser = argparse.ArgumentParser(prog="jobs_chaos", description="Run a job while its workers and queue are killed.")
    parser.add_argument("--items", type=int, default=20_000, help="samples (%(default)s)")
    parser.add_argument("--workers", type=int, default=3, help="workers, each of which is killed once (%(default)s)")
    options = parser.parse_args()
    outcome = run(options.items, options.workers)
    for line in (*outcome.kills, *outcome.faults):
        print(line)
    print("chunks:", ", ".join(f"{name} {count:,}" for name, count in outcome.counts.items()))
    verdict = "FAULTY" if outcome.faults else "all results exactly once, in order, with their labels"
    print(f"{options.items:,} samples in {outcome.seconds:.1f} s: {verdict}")
    return 1 if outcome.faults else 0


def run(items: int, workers: int) -> Outcome:
    """Run a job of `items` samples on `workers` workers; kill each of them and the queue once."""
    samples = list(make_samples(items, seed=0))
    with tempfile.TemporaryDirectory() as folder, _stack(Path(folder), workers) as (url, queue, crew):
        return run_with_kills(url, samples, crew, queue, lambda: requests.get(f"{url}/metrics", timeout=60).text)


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


if __name__ == "__main__":
    sys.exit(main())
