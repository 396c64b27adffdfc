"""Speed at which a new process gets scores from Redis, for samples that another process has scored.

    python benchmarks/cache.py

Starts Redis and a fake reward server. One process scores 10,000 different samples with responses of 2 kB, then new
processes score all of them again; the number of samples that reach the server again should be 0. For comparison, the
same run reads the same keys with a bare `MGET`, which no client of this Redis can beat.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from tests.support.servers import FaultServer, fault_server

RESPONSE_BYTES = 2048


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5, help="new processes that re-score; the median counts")
    parser.add_argument("--worker", choices=["score", "mget"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(_score(arguments.samples) if arguments.worker == "score" else _mget()))
        return
    with tempfile.TemporaryDirectory() as folder, _redis(folder) as cache, fault_server() as server:
        os.environ.update(REWARD_SERVER_URL=server.url, REWARD_CACHE_URL=cache)
        _report(arguments.samples, arguments.runs, server)


def _report(samples: int, runs: int, server: FaultServer) -> None:
    first = _worker("score", samples)
    asked = server.stats()["items"]
    again = [_worker("score", samples) for _ in range(runs)]
    added = server.stats()["items"] - asked
    bare = [_worker("mget", samples) for _ in range(runs)]
    seconds = _median([run["seconds"] for run in again])
    least = _median([run["seconds"] for run in bare])
    print(f"samples                      {samples:>10,}  responses of {RESPONSE_BYTES} bytes, all different")
    print(f"scored by the server         {first['rate']:>10,.0f} /s  first process, cache empty")
    print(f"re-scored from Redis         {samples / seconds:>10,.0f} /s  median of {runs} new processes")
    print(f"bare MGET of the same keys   {samples / least:>10,.0f} /s  upper bound for re-scoring")
    print(f"ratio to the bare MGET       {least / seconds:>10.2f}")
    print(f"items the server scored      {asked:>10,}  first process; re-scoring added {added}")
    print(f"samples read from the cache  {min(run['cached'] for run in again):>10,}  of {samples:,}, in the worst run")
    again_rate, scored, bare_mget = samples / seconds, "the first, by the server", "a bare MGET of the same keys"
    figure("re-scoring from Redis", again_rate, "/s", against=scored, ratio=again_rate / first["rate"])
    figure("re-scoring from Redis", again_rate, "/s", against=bare_mget, ratio=least / seconds)
    figure(scored, first["rate"], "/s", note="cache empty; the server replies at once")
    figure(bare_mget, samples / least, "/s", note="upper bound for re-scoring")
    figure("samples that the server scored again", added, note=f"of {runs} times {samples:,}")


def _score(samples: int) -> dict[str, float]:
    from rewardstack import Request, score

    filler = "x" * (RESPONSE_BYTES - 8)
    requests = [Request("math", f"{at:08d}{filler}", str(at)) for at in range(samples)]
    started = time.perf_counter()
    scores = score(requests)
    seconds = time.perf_counter() - started
    assert all(one.status == "ok" and one.value == RESPONSE_BYTES for one in scores)
    return {"seconds": seconds, "rate": samples / seconds, "cached": sum(one.cached for one in scores)}


def _mget() -> dict[str, float]:
    import redis

    connection = redis.Redis.from_url(os.environ["REWARD_CACHE_URL"])
    keys = list(connection.scan_iter(count=10_000))
    started = time.perf_counter()
    for start in range(0, len(keys), 1000):
        connection.mget(keys[start : start + 1000])
    return {"seconds": time.perf_counter() - started}


def _worker(kind: str, samples: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--worker", kind, "--samples", str(samples)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return result


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


@contextmanager
def _redis(folder: str) -> Iterator[str]:
    path = f"{folder}/redis.sock"
    options = ["--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
    process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    try:
        while not Path(path).exists():
            time.sleep(0.05)
        yield f"unix://{path}"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
