"""What the result cache costs new samples and saves known ones, as `make up` has it, beside a bare Flask server.

    python benchmarks/result_cache.py

One run starts a Redis and three servers with two workers each: a bare Flask server that replies with constants, a
reward server without a result cache, and one with the Redis beside it. In turn they are sent the same generated samples
(`mix`), none twice, in batches of 64 from 4 clients; then the third is sent them again, three times. Its successor, new
processes with the same Redis, is sent them once more, and samples of a judge and an embedding server with them. New
samples must come to 0.9 of the rate without a cache, and whatever took algebra, a judge or an embedding must be found.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.load import BATCH, Batch, batches, send
from benchmarks.mix import Sample
from benchmarks.reward_server import Server, bare_server, reward_server
from rewardstack_rules.mathematics import Question, ask, decide_plainly
from tests.support.servers import FaultServer, Redis

CLIENTS = 4
WARMING = 4096
REPEATS = 3
"""Times that known samples are sent: by the last both processes of the server have met them."""
MODELS = ("llm_judge_remote", "embedding_remote")
BOUND = 0.9

Rates = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=12_800, help="samples of a round")
    parser.add_argument("--rounds", type=int, default=7, help="the median counts")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rounds = [list(batches(arguments.items, arguments.seed + at)) for at in range(arguments.rounds)]
    rates: Rates = defaultdict(list)
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
    """The variables of a reward server with a result cache, a judge and an embedding server that answer at once."""
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


def _measure(servers: dict[str, Server], rounds: Sequence[list[Batch]], seed: int, rates: Rates) -> None:
    warming = list(batches(WARMING, seed - 1))
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


def _send(server: Server, some: Sequence[Batch], rates: list[float] | None = None) -> list[tuple[Batch, Any]]:
    """The batches with their scores; the rate in samples a second is added to `rates`."""
    seconds, replies = send(server, some, CLIENTS)
    if rates is not None:
        rates.append(len(some) * BATCH / seconds)
    return [(batch, json.loads(content)["scores"]) for batch, content in replies]


def _ratio(rates: Rates, ours: str, theirs: str) -> float:
    """Of two rates of the same rounds."""
    return median(one / other for one, other in zip(rates[ours], rates[theirs], strict=True))


def _report(rates: Rates) -> None:
    lines = {
        "bare": "a bare Flask server, constants",
        "without": "new samples, without a result cache",
        "with": "new samples, with it",
        "again 0": "the same samples again",
        f"again {REPEATS - 1}": "both processes know them",
        "successor": "the same samples, new processes",
    }
    for name, line in lines.items():
        print(f"{line:<37}{median(rates[name]):>9,.0f} /s  {_ratio(rates, name, 'bare'):.2f} of the bare server's rate")
    print(f"new samples, with of without{_ratio(rates, 'with', 'without'):>18.2f}     at least {BOUND}")


def _report_found(of_rules: list[tuple[Batch, Any]], of_models: list[tuple[Batch, Any]]) -> int:
    """Prints what a new process found in the cache; how much of what it must find it did not."""
    pairs = [pair for batch, scores in of_rules for pair in zip(batch.samples, scores, strict=True)]
    kinds = {"algebra": [score for sample, score in pairs if _needs_algebra(sample)]}
    for _, scores in of_models:
        kinds[scores[0]["source"]] = scores
    for kind, scores in kinds.items():
        print(f"found by a new process: {kind:<21}{sum(score['cached'] for score in scores):>7,} of {len(scores):,}")
    return sum(not score["cached"] for scores in kinds.values() for score in scores)


def _needs_algebra(sample: Sample) -> bool:
    asked = ask(sample.response, [sample.reference])
    return isinstance(asked, Question) and decide_plainly(asked) is None


if __name__ == "__main__":
    main()
