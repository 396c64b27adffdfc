"""Time that verl's reward loop takes with `rewardstack.trainers.verl`, compared to an empty reward function.

    make trainers t=verl   # creates .trainers/verl
    .venv/bin/python benchmarks/verl_loop.py

verl's reward loop with 8 workers in Ray scores 1,024 different samples with each of these in turn: an empty function, a
fast rule of a real reward server, a judge and a rule that take 50 ms (`slow_judge`, `slow_rule`; 256 samples for the
rule), and reward servers that refuse connections or never answer (timeout 5 s). There is no result cache. The exit
status is 1 if the fast rule takes more than 1.5 times as long as the empty function, if the loop has less than 0.9 of
the rate of `compute_score_batched` with the judge or the slow rule, or if a batch for one of the last two servers takes
more than 8 s.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PYTHON = ROOT / ".trainers/verl/bin/python"
SLOW_RULE = ROOT / "benchmarks/slow_rule.py"
DELAY = 0.05
TIMEOUT = 5.0
MOST_OF_EMPTY, LEAST_OF_BATCHED, MOST_DEAD_SECONDS = 1.5, 0.9, 8.0
WORKERS = 8
SLOW = {"judge of 50 ms": ("llm_judge_remote", 1, None), "rule of 50 ms": ("rule_remote_slow_rule", 4, 1)}
"""Slow scorers: `data_source`, divisor of the number of samples, and number of runs (None: that of `--runs`)."""
EMPTY = "empty"
"""`data_source` of the empty function."""


async def either(data_source: str, **sample: Any) -> Any:
    """Return 0 for `EMPTY`, else call `rewardstack.trainers.verl`, so that one loop of verl measures both."""
    from rewardstack.trainers import verl

    return {"score": 0.0} if data_source == EMPTY else await verl.compute_score(data_source, **sample)


def main() -> None:
    """Start the servers, and run the measurement with verl's interpreter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=5, help="runs of each in turn; the medians count")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        raise SystemExit(0 if _measure(arguments.samples, arguments.runs) else 1)
    if not PYTHON.exists():
        raise SystemExit("verl is not installed: make trainers t=verl")
    from benchmarks.judge_load import slow_judge
    from benchmarks.reward_server import reward_server

    with slow_judge(DELAY) as (judge, _), reward_server(REWARD_FUNCTIONS=str(SLOW_RULE)) as rules:
        urls = {"LLM_JUDGE_SERVER_URL": judge, "REWARD_SERVER_URL": f"http://127.0.0.1:{rules.port}"}
        own = {"PYTHONPATH": str(ROOT), "REWARD_CACHE_ITEMS": "0", "REWARD_CACHE_URL": "", "RAY_AUTH_MODE": "disabled"}
        command = [str(PYTHON), __file__, "--worker", *sys.argv[1:]]
        raise SystemExit(subprocess.run(command, cwd=ROOT, env={**os.environ, **own, **urls}, check=False).returncode)


def _measure(count: int, runs: int) -> bool:
    """Measure, print the figures, and return whether every bound is kept."""
    import ray

    from benchmarks import verl_batches

    with tempfile.TemporaryDirectory() as folder:
        model = verl_batches.tokenizer(Path(folder))
        ray.init(num_cpus=2 * WORKERS, include_dashboard=False, log_to_driver=False)
        function = [f"reward.custom_reward_function.path={__file__}", "reward.custom_reward_function.name=either"]
        config = verl_batches.configuration(model, *function, f"reward.num_workers={WORKERS}")
        with verl_batches.reward_loop(config) as loop:
            kept = _report(Bench(loop.compute_rm_score, model, count), runs)
        ray.shutdown()
    return kept


class Bench:
    """Times verl's loop and `compute_score_batched` on samples that are always new.

    Args:
        score: function of the loop that scores a batch.
        model: path of the policy's tokenizer.
        count: number of samples in a batch.
    """

    def __init__(self, score: Callable[[Any], Any], model: str, count: int) -> None:
        self._score = score
        self._model = model
        self._count = count
        self._made = 0

    def loop(self, source: str, part: int = 1, **extra: Any) -> float:
        """Return the seconds that verl's loop takes for a batch, or for 1/`part` of one."""
        from benchmarks.verl_batches import batch

        data = batch(self._samples(source, part, extra), self._model)
        return _seconds(lambda: self._score(data))

    def batched(self, source: str, part: int = 1) -> float:
        """Return the seconds that `compute_score_batched` takes for a batch, or for 1/`part` of one."""
        from rewardstack import compute_score_batched

        samples = self._samples(source, part, {})
        columns = [[one.source for one in samples], [one.solution for one in samples], [one.truth for one in samples]]
        return _seconds(lambda: compute_score_batched(*columns, details=True))

    def _samples(self, source: str, part: int, extra: Mapping[str, Any]) -> list[Any]:
        from benchmarks.verl_batches import Sample

        count = self._count // part
        self._made += count
        numbers = range(self._made - count, self._made)
        return [Sample(f"This is {number}.\n#### {number}", str(number), source, extra) for number in numbers]


def _report(bench: Bench, runs: int) -> bool:
    for source in (EMPTY, "gsm8k", "llm_judge_remote"):
        bench.loop(source)  # open connections and load what is loaded lazily
    bench.batched("llm_judge_remote")
    quick = [(bench.loop("gsm8k"), bench.loop(EMPTY)) for _ in range(runs)]
    kept = [_is_within("quick rule / empty function", quick, MOST_OF_EMPTY, at_most=True)]
    for name, (source, part, times) in SLOW.items():
        pairs = [(bench.batched(source, part), bench.loop(source, part)) for _ in range(times or runs)]
        kept.append(_is_within(f"{name}, rate / compute_score_batched", pairs, LEAST_OF_BATCHED, at_most=False))
    for name, server in {"refuses": _refusing, "never answers": _silent}.items():
        seconds = _dead(bench, server)
        print(f"server that {name}: {seconds:.2f} s (at most {MOST_DEAD_SECONDS} s)")
        kept.append(seconds <= MOST_DEAD_SECONDS)
    return all(kept)


def _is_within(what: str, pairs: list[tuple[float, float]], bound: float, *, at_most: bool) -> bool:
    ratio = median(over / under for over, under in pairs)
    shown = ", ".join(f"{over:.2f}/{under:.2f}" for over, under in pairs)
    print(f"{what}: {ratio:.2f} ({'at most' if at_most else 'at least'} {bound}); seconds {shown}")
    return ratio <= bound if at_most else ratio >= bound


def _dead(bench: Bench, server: Callable[[], Any]) -> float:
    with server() as url:
        return bench.loop("gsm8k", server_url=url, timeout=TIMEOUT)


@contextmanager
def _refusing() -> Iterator[str]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # without listening: connections are refused
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


@contextmanager
def _silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
