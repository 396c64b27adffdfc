"""Throughput of the reward server on mathematics over HTTP, compared to math_verify called in a loop.

    python benchmarks/rules.py
    python benchmarks/rules.py --memory

Starts a reward server with two workers and no result cache, and sends it generated samples (`mix`), all different, in
batches of 64 from 8 clients; every score must match its label. The baseline is
`math_verify.verify(parse(gold), parse(response))` on samples of the same kind, in one process of the same run, half of
them before the server runs and half after. `--memory` sends a million samples instead and compares the memory of all
server processes to that after 50,000.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.load import BATCH, Batch, batches, send
from benchmarks.mix import Sample, make_samples
from benchmarks.reward_server import Server, reward_server

CLIENTS = 8
PREPARED = 20_000
"""Samples that are generated before each timed round."""
EARLY, LATE = 50_000, 1_000_000
WARMING = 4096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=40_000)
    parser.add_argument("--baseline-items", type=int, default=3_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", action="store_true", help="compare the memory after a million samples")
    arguments = parser.parse_args()
    if arguments.memory:
        _memory(arguments.seed)
    else:
        _speed(arguments.items, arguments.baseline_items, arguments.seed)


def _speed(items: int, baseline_items: int, seed: int) -> None:
    half = baseline_items // 2
    seconds = _baseline(half, seed + 1)
    with reward_server() as server:
        _send(server, batches(make_samples(WARMING, seed + 2)))
        taken, wrong = _send(server, batches(make_samples(items, seed)))
    seconds += _baseline(half, seed + 3)
    ours, theirs = items / taken, 2 * half / seconds
    print(f"samples                {items:>10,}  of 200 to 2,400 characters, {BATCH} a request, {CLIENTS} clients")
    print(f"reward server          {ours:>10,.0f} /s")
    print(f"math_verify in a loop  {theirs:>10,.0f} /s  one process, {2 * half:,} samples")
    print(f"ratio                  {ours / theirs:>10.1f}")
    print(f"wrong scores           {sum(wrong.values()):>10,}  {dict(wrong) or ''}")
    baseline = "math_verify in a loop"
    note = f"{BATCH} a request, {CLIENTS} clients, two workers"
    figure("reward server", ours, "/s", against=baseline, ratio=ours / theirs, note=note)
    figure(baseline, theirs, "/s", note=f"one process, {2 * half:,} samples")
    figure("wrong scores", sum(wrong.values()), most=0, note=f"of {items:,}")
    if wrong:
        raise SystemExit(1)


def _memory(seed: int) -> None:
    with reward_server() as server:
        _, wrong = _send(server, batches(make_samples(EARLY, seed)))
        early = server.memory()
        for start in range(EARLY, LATE, EARLY):
            wrong += _send(server, batches(make_samples(EARLY, seed + start)))[1]
        late = server.memory()
    print(f"memory after {EARLY:>9,} samples  {early / 2**20:>8,.0f} MiB")
    print(f"memory after {LATE:>9,} samples  {late / 2**20:>8,.0f} MiB")
    print(f"ratio                           {late / early:>8.2f}")
    print(f"wrong scores                    {sum(wrong.values()):>8,}  {dict(wrong) or ''}")


def _baseline(count: int, seed: int) -> float:
    """Return the seconds that math_verify takes for this many samples."""
    from math_verify import parse, verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    samples = list(make_samples(count, seed))
    started = time.perf_counter()
    for sample in samples:
        verify(parse(f"${sample.reference}$"), parse(sample.response))
    return time.perf_counter() - started


def _send(server: Server, todo: Iterator[Batch]) -> tuple[float, Counter[str]]:
    """Send batches; return the seconds that the server took, and the number of wrong scores by kind and outcome.

    The seconds do not include generating the samples, which happens between timed rounds.
    """
    seconds = 0.0
    wrong: Counter[str] = Counter()
    while some := list(islice(todo, PREPARED // BATCH)):
        taken, replies = send(server, some, CLIENTS)
        seconds += taken
        for batch, content in replies:
            wrong += _wrong(batch.samples, json.loads(content)["scores"])
    return seconds, wrong


def _wrong(samples: list[Sample], scores: list[dict[str, Any]]) -> Counter[str]:
    return Counter(
        f"{sample.kind}, {sample.outcome}"
        for sample, score in zip(samples, scores, strict=True)
        if (score["status"], score["value"]) != ("ok", float(sample.right))
    )


if __name__ == "__main__":
    main()
