"""Throughput of the judge client, compared to a bare aiohttp loop and to `requests` in threads.

    python benchmarks/judge_client.py

A fake judge (`slow_judge`) answers every request after 0.2 s. `rewardstack.compute_score_batched` scores 16,000
different samples with prompts of 2 kB and 1,028 requests in flight. A bare aiohttp loop posts the same bodies, and so
does one session of `requests` in 1,028 threads, which serializes each body (`json=`), as the client's predecessor did.
Each of the three runs in a new process. The exit status is 1 if the client has less than 0.7 of aiohttp's rate or less
than 2.5 times the rate of `requests`, if the client's memory grows by more than 24 kB a sample, or if this growth per
sample is over 1.25 times as much with four times as many samples.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.judge_load import CHAT, post_all, slow_judge

DELAY = 0.2
IN_FLIGHT = 1028
LEAST_OF_AIOHTTP = 0.7
LEAST_OF_REQUESTS = 2.5
"""Minimum ratios of the client's rate to the rates of the two baselines, on 2 cores, where CPU time limits the rate."""
MOST_KB = 24.0
"""Maximum memory growth per sample during scoring, in kB. The samples do not count, as they exist before."""
MOST_BEND = 1.25
"""Maximum factor by which the memory per sample may grow with four times as many samples."""
CHARACTERS = {"problem": 500, "reference": 300, "candidate": 400}
GROUP = 8
"""Samples per problem."""
SCALES = (1, 4)
"""Factors of the number of samples at which memory is measured."""


class Run(NamedTuple):
    """What one process measured.

    Args:
        rate: requests a second.
        cpu_ms: milliseconds of CPU time a request.
        growth_kb: peak growth of the process's memory per sample, in kB.
    """

    rate: float
    cpu_ms: float
    growth_kb: float


def main() -> None:
    """Run the client and both baselines in turn, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=16_000)
    parser.add_argument("--runs", type=int, default=3, help="of the client and aiohttp, in turn; the medians count")
    parser.add_argument("--worker", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--bodies", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(_measure(arguments.worker, arguments.samples, arguments.url, arguments.bodies)))
        return
    if not _report(arguments.samples, arguments.runs):
        raise SystemExit(1)


def _report(samples: int, runs: int) -> bool:
    """Measure, print the figures, and return whether every bound is kept."""
    with tempfile.TemporaryDirectory() as folder:
        bodies = Path(folder, "bodies")
        with slow_judge(0.0, bodies) as (url, _):
            _worker("rewardstack", samples, url, bodies)
        size = bodies.stat().st_size / samples
        with slow_judge(DELAY) as (url, server_cpu):
            pairs = [[_worker(name, samples, url, bodies) for name in ("rewardstack", "aiohttp")] for _ in range(runs)]
            served = 1e3 * server_cpu() / (2 * samples * runs)
            slow = _worker("requests", samples, url, bodies)
            grown = [_worker("rewardstack", scale * samples, url, bodies).growth_kb for scale in SCALES]
    ours, bare = (Run(*map(median, zip(*side, strict=True))) for side in zip(*pairs, strict=True))
    of_bare = median(mine.rate / other.rate for mine, other in pairs)
    print(f"{samples:,} samples, {IN_FLIGHT:,} in flight, bodies of {size:,.0f} bytes, answered after {DELAY} s")
    print(f"most that the delay allows {IN_FLIGHT / DELAY:>8,.0f} /s; that the server can do {1e3 / served:,.0f} /s")
    of_slow = ours.rate / slow.rate
    figure("rewardstack", ours.rate, "/s", against="bare aiohttp", ratio=of_bare, least_ratio=LEAST_OF_AIOHTTP)
    figure("rewardstack", ours.rate, "/s", against="requests in threads", ratio=of_slow, least_ratio=LEAST_OF_REQUESTS)
    for name, run in (("rewardstack", ours), ("bare aiohttp", bare), ("requests in threads", slow)):
        figure(f"CPU time, {name}", run.cpu_ms, "ms", note=f"a request; {run.rate:,.0f} /s")
        print(f"{name:<20} {run.rate:>14,.0f} /s  {run.cpu_ms:.3f} ms of CPU time a request")
    print(f"ratio to aiohttp     {of_bare:>14.2f}     at least {LEAST_OF_AIOHTTP}; median of {runs} runs in turn")
    print(f"ratio to requests    {of_slow:>14.1f}     at least {LEAST_OF_REQUESTS}")
    for scale, kilobytes in zip(SCALES, grown, strict=True):
        print(f"memory               {kilobytes:>14.1f} kB a sample, of {scale * samples:,}; at most {MOST_KB:g}")
        figure("memory a sample", kilobytes, "kB", most=MOST_KB, note=f"of {scale * samples:,}")
    linear = max(grown) <= MOST_KB and grown[-1] <= MOST_BEND * grown[0]
    return of_bare >= LEAST_OF_AIOHTTP and of_slow >= LEAST_OF_REQUESTS and linear


def _worker(name: str, samples: int, url: str, bodies: Path) -> Run:
    arguments = ["--worker", name, "--samples", str(samples), "--url", url, "--bodies", str(bodies)]
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE)
    return Run(*json.loads(done.stdout))


def _measure(name: str, samples: int, url: str, bodies: Path) -> Run:
    work = CONTENDERS[name](samples, url, bodies)
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak, VmHWM
    started, cpu = time.perf_counter(), time.process_time()
    work()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return Run(samples / seconds, 1e3 * cpu / samples, (_memory("VmHWM") - before) / samples)


def _memory(field: str) -> int:
    """Return a field of `/proc/self/status` in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _rewardstack(samples: int, url: str, _: Path) -> Callable[[], None]:
    from rewardstack import compute_score_batched

    os.environ.update(LLM_JUDGE_SERVER_URL=url, REWARDSTACK_MAX_CONNECTIONS=str(IN_FLIGHT), REWARD_CACHE_URL="")
    made = list(_samples(samples))
    candidates, references, extras = (list(column) for column in zip(*made, strict=True))

    def work() -> None:
        rewards = compute_score_batched("llm_judge_remote_benchmark", candidates, references, extras)
        assert rewards == [0.5] * samples, "the judge says 0.5 to everything"

    return work


def _aiohttp(samples: int, url: str, bodies: Path) -> Callable[[], None]:
    lines = bodies.read_bytes().splitlines()[:samples]

    def work() -> None:
        assert len(post_all(url, lines, IN_FLIGHT)) == samples

    return work


def _requests(samples: int, url: str, bodies: Path) -> Callable[[], None]:
    import requests

    payloads = [json.loads(line) for line in bodies.read_bytes().splitlines()[:samples]]
    session = requests.Session()
    session.mount("http://", requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=IN_FLIGHT))

    def post(payload: object) -> str:
        reply = session.post(url + CHAT, json=payload, timeout=60)
        return str(reply.json()["choices"][0]["message"]["content"])

    def work() -> None:
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            assert len(list(pool.map(post, payloads))) == samples

    return work


CONTENDERS = {"rewardstack": _rewardstack, "aiohttp": _aiohttp, "requests": _requests}


def _samples(count: int) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield different triples of candidate, reference and `extra_info`, `GROUP` of them per problem."""
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(2000)]

    def text(kind: str) -> str:
        return " ".join(rng.choices(words, k=CHARACTERS[kind] // 7))

    problem = reference = ""
    for at in range(count):
        if at % GROUP == 0:
            problem, reference = text("problem"), text("reference")
        yield f"{at} {text('candidate')}", reference, {"problem": problem}


if __name__ == "__main__":
    main()
