"""Prefix cache hit rate and throughput of a real vLLM on the prompts of the judge client.

    python benchmarks/judge_vllm.py

Serves the small demo model with three replicas on this machine's CPU. There are 8 samples per problem; a prompt has
about 600 tokens. The client sends its requests to one replica. A bare aiohttp loop posts the same bodies, then the same
bodies with the candidate before problem and reference, as the client's predecessor did. After that, the client uses
two and three replicas through the gateway, with three kinds of load balancing: least connections; affinity (a problem's
samples go to the same replica); and affinity with a limit of concurrent requests per replica (JUDGE_MAX_CONNS), which
is 1.25 times the replica's even share. Every run starts with empty prefix caches.

The replicas share the machine, so their rates say little about replicas with dedicated hardware; the number of tokens
that the busiest replica computes says more. The exit status is 1 if, on one replica, less than 70 % of the client's
prompt tokens come from the cache, or the client has less than 0.95 of the bare loop's rate. The benchmark is skipped if
MODELS_DIR has no vLLM.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.judge_load import post_all, slow_judge
from rewardstack import compute_score_batched
from tests.native.nginx import Gateway, load
from tests.support.vllm import VllmServer, missing, running_together

GROUP = 8
IN_FLIGHT = 64
LEAST_CACHED = 0.70
LEAST_OF_BARE = 0.95
HEADROOM = 1.25
"""Limit of concurrent requests per replica in bounded runs, as a multiple of a replica's even share."""
BALANCING = {"least_conn": False, "affinity": False, "affinity, bounded": True}
"""Load balancing methods, and whether each replica has a limit of concurrent requests."""
OPTIONS = {"max_new_tokens": 16, "temperature": 0.0}
SECTIONS = re.compile(r"(?s)(.*?)(Problem:\n.*?)(Candidate solution:\n.*)")
"""Parts of a prompt: constant text, problem with reference, candidate."""
COMMON = (
    "the a of to and in that it is was for on are with as his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some so these "
    "would other into has more her two like him see time could no make than first been its who now people my made over"
)
"""Words, most of which are a single token."""
LENGTHS = {"problem": 60, "reference": 45, "candidate": 60}
"""Number of words of each part."""


class Run(NamedTuple):
    """What one run measured.

    Args:
        cached: share of prompt tokens that came from the prefix cache, from 0 to 1.
        tokens: average number of tokens of a prompt.
        rate: samples a second.
        busiest: prompt tokens that the busiest replica computed.
    """

    cached: float
    tokens: float
    rate: float
    busiest: float


class Counts(NamedTuple):
    """Numbers of prompt tokens: those found in the prefix cache, and all that were looked up."""

    hits: float
    queries: float


def main() -> None:
    """Run all measurements in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=12, help=f"problems in a run, {GROUP} samples each")
    parser.add_argument("--runs", type=int, default=8, help="of client and bare loop, in turn; the medians count")
    parser.add_argument("--replicas", type=int, default=3, help="maximum number of replicas behind the gateway")
    arguments = parser.parse_args()
    if lacks := missing():
        print(f"skipped: {lacks}")
        return
    os.environ.update(REWARD_CACHE_URL="", REWARD_CACHE_ITEMS="0", REWARDSTACK_MAX_CONNECTIONS=str(IN_FLIGHT))
    with tempfile.TemporaryDirectory() as folder, running_together(Path(folder), arguments.replicas) as servers:
        if not _report(Path(folder), servers, arguments.groups, arguments.runs):
            raise SystemExit(1)


def _report(folder: Path, servers: Sequence[VllmServer], groups: int, runs: int) -> bool:
    """Measure, print the figures, and return whether every bound is kept."""
    samples = _samples(groups)
    bodies = _bodies(folder / "bodies", samples, servers[0].model.name)
    early = [_candidate_first(body) for body in bodies]
    one = servers[:1]
    for server in servers:
        _score(server.url, samples[:GROUP])
    contenders = (lambda: _score(one[0].url, samples), lambda: post_all(one[0].url, bodies, IN_FLIGHT))
    pairs = [_in_turn(one, len(samples), contenders, turned=bool(run % 2)) for run in range(runs)]
    ours, bare = (Run(*map(median, zip(*side, strict=True))) for side in zip(*pairs, strict=True))
    ratio = median(mine.rate / other.rate for mine, other in pairs)
    print(f"{len(samples)} samples, {GROUP} to a problem, {ours.tokens:.0f} tokens each, {IN_FLIGHT} in flight")
    figure("one replica", ours.rate, "/s", against="the bare loop", ratio=ratio, least_ratio=LEAST_OF_BARE)
    figure("tokens cached, one replica", 100 * ours.cached, "%", least=100 * LEAST_CACHED)
    _line("one replica: rewardstack", ours)
    _line("one replica: bare loop", bare)
    _line("one replica: candidate first", _measure(one, len(early), lambda: post_all(one[0].url, early, IN_FLIGHT)))
    for count in range(2, len(servers) + 1):
        for balancing, bounded in BALANCING.items():
            with _gateway(
                folder / f"gateway-{count}-{len(balancing)}", servers[:count], balancing, bounded=bounded
            ) as url:
                run = _measure(servers[:count], len(samples), lambda url=url: _score(url, samples))  # type: ignore[misc]
            _line(f"{count} replicas: {balancing}", run)
    print(f"ratio to the bare loop {ratio:.2f}, median of {runs} runs in turn; at least {LEAST_OF_BARE}")
    return ours.cached >= LEAST_CACHED and ratio >= LEAST_OF_BARE


def _line(title: str, run: Run) -> None:
    print(
        f"{title:<30} {100 * run.cached:>5.1f} % of prompt tokens cached  {run.busiest:>7,.0f} tokens computed by the "
        f"busiest  {run.rate:>6.1f} samples a second"
    )
    note = f"{100 * run.cached:.1f} % of prompt tokens cached, {run.busiest:,.0f} tokens computed by the busiest"
    figure(title, run.rate, "/s", note=note)


def _in_turn(
    servers: Sequence[VllmServer], samples: int, contenders: Sequence[Callable[[], object]], *, turned: bool
) -> list[Run]:
    """Run each contender once, in reverse order if `turned`; return the runs in the order of `contenders`."""
    runs = [_measure(servers, samples, work) for work in (contenders[::-1] if turned else contenders)]
    return runs[::-1] if turned else runs


def _measure(servers: Sequence[VllmServer], samples: int, work: Callable[[], object]) -> Run:
    for server in servers:
        urllib.request.urlopen(urllib.request.Request(f"{server.url}/reset_prefix_cache", b"")).close()
    before = [_counts(server) for server in servers]
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    spent = [
        Counts(*(after - earlier for after, earlier in zip(_counts(server), first, strict=True)))
        for server, first in zip(servers, before, strict=True)
    ]
    hits, queries = (sum(column) for column in zip(*spent, strict=True))
    return Run(hits / queries, queries / samples, samples / seconds, max(one.queries - one.hits for one in spent))


def _counts(server: VllmServer) -> Counts:
    with urllib.request.urlopen(f"{server.url}/metrics") as reply:
        text = reply.read().decode()
    hits, queries = (
        sum(map(float, re.findall(rf"^vllm:prefix_cache_{what}_total{{.*}} (\S+)$", text, re.MULTILINE)))
        for what in ("hits", "queries")
    )
    return Counts(hits, queries)


def _samples(groups: int) -> list[tuple[str, str, dict[str, object]]]:
    """Return triples of candidate, reference and `extra_info`, `GROUP` of them per problem."""
    rng, words = random.Random(1), COMMON.split()
    made = []
    for _ in range(groups):
        problem, reference = (" ".join(rng.choices(words, k=LENGTHS[kind])) for kind in ("problem", "reference"))
        for _ in range(GROUP):
            candidate = " ".join(rng.choices(words, k=LENGTHS["candidate"]))
            made.append((candidate, reference, {"problem": problem, **OPTIONS}))
    return made


def _score(url: str, samples: Sequence[tuple[str, str, dict[str, object]]]) -> None:
    os.environ["LLM_JUDGE_SERVER_URL"] = url
    candidates, references, extras = (list(column) for column in zip(*samples, strict=True))
    compute_score_batched("llm_judge_remote_benchmark", candidates, references, extras, on_error="raise")


def _bodies(record: Path, samples: Sequence[tuple[str, str, dict[str, object]]], model: str) -> list[bytes]:
    """Return the bodies that the client posts for the samples, without its initial probe of the judge."""
    with slow_judge(0.0, record) as (url, _):
        _score(url, [(candidate, reference, {**extra, "model_name": model}) for candidate, reference, extra in samples])
    bodies = record.read_bytes().splitlines()
    return [body for body in bodies if SECTIONS.fullmatch(json.loads(body)["messages"][-1]["content"])]


def _candidate_first(body: bytes) -> bytes:
    request = json.loads(body)
    message = request["messages"][-1]
    sections = SECTIONS.fullmatch(message["content"])
    assert sections is not None, "the default template has these sections"
    message["content"] = f"{sections[1]}{sections[3]}\n\n{sections[2]}"
    return json.dumps(request).encode()


@contextmanager
def _gateway(folder: Path, servers: Sequence[VllmServer], balancing: str, *, bounded: bool) -> Iterator[str]:
    most = math.ceil(HEADROOM * IN_FLIGHT / len(servers)) if bounded else 2 * IN_FLIGHT
    configured = load(JUDGE_BALANCING=balancing.partition(",")[0], JUDGE_MAX_CONNS=most)
    nginx = Gateway(folder, {"judge": [server.url.removeprefix("http://") for server in servers]}, configured)
    with ExitStack() as stack:
        stack.callback(nginx.stop)
        yield f"http://127.0.0.1:{nginx.ports['judge']}"


if __name__ == "__main__":
    main()
