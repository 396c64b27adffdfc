"""Latency of ordinary samples while eight slow samples run until their deadline.

    python benchmarks/neighbours.py

Sends single requests with generated samples (`mix`), first alone, then while the server scores a batch of eight samples
whose reward function computes for minutes. The exit status is 1 if the 99th percentile during the slow batch exceeds
0.25 s, or if a score differs from its label.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.latency import measure, post, row
from benchmarks.mix import make_samples
from benchmarks.reward_server import Server, reward_server

ALLOWED = 0.25
SLOW = """
import time
from rewardstack_rules import reward_function

@reward_function
def slow(response, reference=None):
    end = time.monotonic() + 300
    while time.monotonic() < end:
        pass
    return 0.0
"""
SLOW_SAMPLES = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000, help="number of requests without the slow batch")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    samples = make_samples(1_000_000, arguments.seed)
    with tempfile.TemporaryDirectory() as folder, _server_with_slow_function(Path(folder)) as server:
        measure(server.connect(), samples, _for(200))
        alone = measure(server.connect(), samples, _for(arguments.requests))
        slow: list[dict[str, Any]] = []
        batch = threading.Thread(target=lambda: slow.extend(post(server.connect(), _slow_rows())[1]["scores"]))
        started = time.perf_counter()
        batch.start()
        beside = measure(server.connect(), samples, batch.is_alive)
        lasted = time.perf_counter() - started
    print(alone.line("alone"))
    print(beside.line("beside eight slow samples"))
    print(f"the slow samples took {lasted:.1f} s: {', '.join(sorted({one['reason'] for one in slow}))}")
    print(f"wrong scores {alone.wrong + beside.wrong}")
    alone.record("alone")
    beside.record("beside eight slow samples", alone=alone, most=ALLOWED)
    figure("wrong scores", alone.wrong + beside.wrong, most=0)
    if beside.percentile(99) > ALLOWED or alone.wrong + beside.wrong:
        raise SystemExit(1)


def _server_with_slow_function(folder: Path) -> AbstractContextManager[Server]:
    """Return a reward server that also has the slow reward function."""
    file = folder / "slow.py"
    file.write_text(SLOW)
    return reward_server(REWARD_FUNCTIONS=str(file))


def _for(count: int) -> Callable[[], bool]:
    left = iter(range(count))
    return lambda: next(left, None) is not None


def _slow_rows() -> list[dict[str, str]]:
    return [{**row(f"Sample {at}", ""), "data_source": "rule_remote_slow"} for at in range(SLOW_SAMPLES)]


if __name__ == "__main__":
    main()
