"""Speed and accuracy of verifying answers of algebra, calculus and differential equations.

    python benchmarks/symbolic.py

Generates samples (`symbolic_mix`): a third are right (usually in another form than the reference), a third have one
wrong number, and a third answer another problem. Measures three things: a reward server with two workers and no result
cache over HTTP, in batches of 64 from 8 clients and with single requests; the verifier in one process; and math_verify
in one process on the first samples, with a timeout of 5 s. The exit status is 1 if the reward server misses the bound
of accuracy, latency of single requests, `failed` samples, undecided samples, or speed relative to math_verify.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from json import loads
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.figures import figure
from benchmarks.latency import measure
from benchmarks.load import BATCH, batches, send
from benchmarks.mix import Sample
from benchmarks.reward_server import Server, reward_server
from benchmarks.symbolic_mix import OUTCOMES, make_samples
from rewardstack_verifier import verify
from rewardstack_verifier.question import Question, ask
from rewardstack_verifier.shortcut import decide_fast_path
from rewardstack_verifier.verification import warm_up

CLIENTS = 8
BASELINE = "math_verify in a loop"
WARMING = 512
LEAST_MET = 0.99
"""Minimum share of correct scores for each outcome."""
LONGEST = 0.05
"""Bound for the 99th percentile of single requests, in seconds."""
MOST_UNDECIDED = 0.01
"""Maximum share of samples whose comparison is undecided."""
RATIO = 100
"""Minimum ratio to math_verify's rate."""
TIMEOUT = 5
"""Timeout in seconds of each call of math_verify, which parses or compares answers."""
_COMPARED = re.compile(r'^rewardstack_math_comparisons_total\{result="(\w+)"\} (\S+)$', re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=6000)
    parser.add_argument("--requests", type=int, default=1000, help="number of single requests")
    parser.add_argument("--baseline-items", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    samples = list(make_samples(arguments.items, arguments.seed))
    theirs, their_labels = _math_verify(samples[: arguments.baseline_items])
    print(f"samples                {len(samples):>8,}  {_by_text(samples):.0%} of equal answers decided by text")
    print(f"math_verify in a loop  {theirs:>8,.1f} /s  one process; correct scores {their_labels:.1%}")
    figure(BASELINE, theirs, "/s", note=f"one process, {TIMEOUT:g} s a sample; correct scores {their_labels:.1%}")
    _in_one_process(samples, theirs)
    with reward_server() as server:
        faults = _over_http(server, samples, arguments.seed, theirs)
        single = measure(
            server.connect(), make_samples(arguments.requests + 1, arguments.seed + 2), _times(arguments.requests)
        )
    print(single.line("single requests"))
    single.record("single requests", most=LONGEST)
    if single.percentile(99) > LONGEST:
        faults.append("the 99th percentile of single requests")
    if faults:
        raise SystemExit(f"beyond the bounds: {', '.join(faults)}")


def _over_http(server: Server, samples: list[Sample], seed: int, theirs: float) -> list[str]:
    """Send all samples, print the results, and return the names of the bounds that are missed."""
    send(server, list(batches(make_samples(WARMING, seed + 1))), CLIENTS)
    before = _compared(server)
    taken, replies = send(server, list(batches(iter(samples))), CLIENTS)
    compared = _compared(server) - before
    met, statuses, missed, failures = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for batch, content in replies:
        for sample, score in zip(batch.samples, loads(content)["scores"], strict=True):
            statuses[score["status"]] += 1
            failures[score["reason"]] += score["status"] != "ok"
            is_met = (score["status"], score["value"]) == ("ok", float(sample.right))
            met[sample.outcome] += is_met
            missed[f"{sample.kind}, {sample.outcome}"] += not is_met
    undecided = compared["undecided"] / len(samples)
    ours = len(samples) / taken
    print(f"reward server          {ours:>8,.0f} /s  {BATCH} a request, {CLIENTS} clients; {ours / theirs:.0f} times")
    figure("reward server", ours, "/s", against=BASELINE, ratio=ours / theirs, least_ratio=RATIO)
    shares = {outcome: met[outcome] * len(OUTCOMES) / len(samples) for outcome in OUTCOMES}
    for outcome, share in shares.items():
        print(f"correct scores         {share:>8.2%}  {outcome}")
        figure(f"correct scores, {outcome}", 100 * share, "%", least=100 * LEAST_MET)
    print(f"wrong scores           {dict(+missed) or 'none'}")
    print(f"undecided              {undecided:>8.2%}  {dict(compared)}")
    figure("samples that failed", statuses["failed"], most=0, note=f"of {len(samples):,}")
    figure("undecided", 100 * undecided, "%", most=100 * MOST_UNDECIDED)
    print(f"statuses               {dict(statuses)} {dict(+failures) or ''}")
    checks = {
        "correct scores": min(shares.values()) < LEAST_MET,
        "undecided": undecided > MOST_UNDECIDED,
        "samples that failed": statuses["failed"] > 0,
        "the ratio to math_verify": ours < RATIO * theirs,
    }
    return [what for what, is_beyond in checks.items() if is_beyond]


def _compared(server: Server) -> Counter[str]:
    connection = server.connect()
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return Counter({by: int(float(count)) for by, count in _COMPARED.findall(text)})


def _in_one_process(samples: Sequence[Sample], theirs: float) -> None:
    warm_up()
    seconds = []
    for sample in samples:
        started = time.perf_counter()
        verify(sample.response, sample.reference)
        seconds.append(time.perf_counter() - started)
    ordered = sorted(seconds)
    p50, p99 = (1000 * ordered[len(ordered) * share // 100] for share in (50, 99))
    rate = len(samples) / sum(seconds)
    print(f"one process            {rate:>8,.0f} /s  p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    figure("one process", rate, "/s", against=BASELINE, ratio=rate / theirs, note=f"p50 {p50:.1f} ms, p99 {p99:.1f} ms")


def _math_verify(samples: Sequence[Sample]) -> tuple[float, float]:
    """Return math_verify's samples a second and its share of correct results; after a timeout, its result is False."""
    from math_verify import parse
    from math_verify import verify as is_same

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    is_same(parse("$1$"), parse("$1$"))
    met = 0
    started = time.perf_counter()
    for sample in samples:
        gold = parse(f"${sample.reference}$", parsing_timeout=TIMEOUT)
        right = is_same(gold, parse(sample.response, parsing_timeout=TIMEOUT), timeout_seconds=TIMEOUT)
        met += right is sample.right
    return len(samples) / (time.perf_counter() - started), met / len(samples)


def _by_text(samples: Sequence[Sample]) -> float:
    """Return the share of equal answers that the fast path decides from the text."""
    equal = [sample for sample in samples if sample.right]
    asked = [ask(sample.response, [sample.reference]) for sample in equal]
    return sum(not isinstance(one, Question) or decide_fast_path(one) is not None for one in asked) / len(equal)


def _times(count: int) -> Callable[[], bool]:
    left = iter(range(count))
    return lambda: next(left, None) is not None


if __name__ == "__main__":
    main()
