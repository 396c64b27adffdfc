"""Overhead of the result cache for new samples, and its gain for samples scored before, as configured by `make up`.

    python benchmarks/result_cache.py

Starts Redis and three servers with two workers each: a bare Flask server that replies with constants, a reward server
without a result cache, and one with Redis as its cache. Each of them in turn gets the same generated samples (`mix`),
all different, in batches of 64 from 4 clients; then the server with Redis gets them three more times, and samples for
a judge and an embedding server. A new server with the same Redis gets all of these samples once more. The exit status
is 1 if the rate of new samples with the cache is less than 0.9 of the rate without it, or if the new server does not
find in the cache the result of every sample that needs algebra, a judge or an embedding.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.load import BATCH, Batch, batches, send
from benchmarks.mix import Sample, make_samples
from benchmarks.reward_server import Server, bare_server, reward_server
from rewardstack_verifier.question import Question, ask
from rewardstack_verifier.shortcut import decide_fast_path
from tests.support.servers import FaultServer, Redis

CLIENTS = 4
WARMING = 4096
REPEATS = 3
"""Number of times that the same samples are sent again. By the last time, both worker processes have cached them."""
MODELS = ("llm_judge_remote", "embedding_remote")
BOUND = 0.9


class RoundRate(NamedTuple):
    """Samples a second of a server in one round, and its CPU seconds per sample."""

    rate: float
    processor: float


RoundRates = dict[str, list[RoundRate]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=12_800, help="samples of a round")
    parser.add_argument("--rounds", type=int, default=7, help="the median counts")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rounds = [list(batches(make_samples(arguments.items, arguments.seed + at))) for at in range(arguments.rounds)]
    rates: RoundRates = defaultdict(list)
    with _cache_and_models() as variables:
        with ExitStack() as stack:
            servers = {"bare": stack.enter_context(bare_server()), "without": stack.enter_context(reward_server())}
            servers["with"] = stack.enter_context(reward_server(**variables))
            _measure(servers, rounds, arguments.seed, rates)
            _send(servers["with"], [_batch_for(name) for name in MODELS])
        with reward_server(**variables) as successor:
            found = [_send(successor, some, rates["successor"]) for some in rounds]
            of_models = _send(successor, [_batch_for(name) for name in MODELS])
    _report(rates)
    lost = _report_found([pair for some in found for pair in some], of_models)
    if lost or _ratio(rates, "with", "without") < BOUND:
        raise SystemExit(1)


@contextmanager
def _cache_and_models() -> Iterator[dict[str, str]]:
    """Start Redis, a fake judge and a fake embedding server; yield the settings of a reward server that uses them."""
    root = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cache = Redis(Path(folder))
        judge = FaultServer(script=root / "tests/client/judge/fake_judge.py")
        embedding = FaultServer(script=root / "tests/client/embedding/stand_in.py")
        for one in (cache, judge, embedding):
            stack.callback(one.kill)
        yield {
            "REWARD_CACHE_ITEMS": "",
            "REWARD_CACHE_URL": cache.url,
            "LLM_JUDGE_SERVER_URL": judge.url,
            "EMBEDDING_SERVER_URL": embedding.url,
        }


def _measure(servers: dict[str, Server], rounds: Sequence[list[Batch]], seed: int, rates: RoundRates) -> None:
    warming = list(batches(make_samples(WARMING, seed - 1)))
    for server in servers.values():
        _send(server, warming)
    for some in rounds:
        for name, server in servers.items():
            _send(server, some, rates[name])
        for repeat in range(REPEATS):
            _send(servers["with"], some, rates[f"again {repeat}"])


def _batch_for(source: str) -> Batch:
    rows = [
        {
            "data_source": source,
            "solution_str": f"It is {at}.",
            "ground_truth": str(at),
            "extra_info": {"temperature": 0},
        }
        for at in range(BATCH)
    ]
    return Batch(json.dumps({"items": rows}).encode(), [])


def _send(server: Server, some: Sequence[Batch], rates: list[RoundRate] | None = None) -> list[tuple[Batch, Any]]:
    """Send batches and return them with their scores; append the measured rate to `rates`."""
    before = server.processor_seconds()
    seconds, replies = send(server, some, CLIENTS)
    if rates is not None:
        samples = len(some) * BATCH
        rates.append(RoundRate(samples / seconds, (server.processor_seconds() - before) / samples))
    return [(batch, json.loads(content)["scores"]) for batch, content in replies]


def _ratio(rates: RoundRates, ours: str, theirs: str) -> float:
    """Return the median ratio of two servers' rates over the same rounds."""
    return median(one.rate / other.rate for one, other in zip(rates[ours], rates[theirs], strict=True))


def _report(rates: RoundRates) -> None:
    lines = {
        "bare": "a bare Flask server, constants",
        "without": "new samples, without a result cache",
        "with": "new samples, with it",
        "again 0": "the same samples again",
        f"again {REPEATS - 1}": "both processes know them",
        "successor": "the same samples, new processes",
    }
    print(f"{'':<37}{'rate':>12}{'vs. bare':>13}{'CPU':>13}")
    for name, line in lines.items():
        rate, taken = median(one.rate for one in rates[name]), median(one.processor for one in rates[name])
        print(f"{line:<37}{rate:>9,.0f} /s{_ratio(rates, name, 'bare'):>13.2f}{taken * 1e6:>10.0f} µs")
        figure(
            line,
            rate,
            "/s",
            against=lines["without"] if name != "without" else None,
            ratio=_ratio(rates, name, "without") if name != "without" else None,
            least_ratio=BOUND if name == "with" else None,
            note=f"{taken * 1e6:.0f} µs of CPU time a sample",
        )
    print(f"new samples, ratio with / without the cache {_ratio(rates, 'with', 'without'):.2f}, at least {BOUND}")


def _report_found(of_rules: list[tuple[Batch, Any]], of_models: list[tuple[Batch, Any]]) -> int:
    """Print what a new process found in the cache; return the number of results that it missed."""
    pairs = [pair for batch, scores in of_rules for pair in zip(batch.samples, scores, strict=True)]
    kinds = {"algebra": [score for sample, score in pairs if _needs_algebra(sample)]}
    for _, scores in of_models:
        kinds[scores[0]["source"]] = scores
    for kind, scores in kinds.items():
        cached = sum(score["cached"] for score in scores)
        print(f"found by a new process: {kind:<21}{cached:>7,} of {len(scores):,}")
        figure(f"found by a new process: {kind}", cached, least=len(scores))
    return sum(not score["cached"] for scores in kinds.values() for score in scores)


def _needs_algebra(sample: Sample) -> bool:
    question = ask(sample.response, [sample.reference])
    return isinstance(question, Question) and decide_fast_path(question) is None


if __name__ == "__main__":
    main()
