"""Tables and a plot of what the four runs logged.

    python compare_runs.py skyrl-logs/*.log --plot rewards.svg

A run is known by its file's name, which is that of its script. Logs are those of `trainer.logger=console`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from plot import plot

Metrics = dict[int, dict[str, float]]
"""By step, numbers by name."""


class Run(NamedTuple):
    """One of the four configurations.

    Args:
        title: in the tables.
        gpus: that it takes, where the judge has one engine.
    """

    title: str
    gpus: int


RUNS = {
    "rule_based": Run("Sync Rule-Based", 1),
    "llm_judge_local": Run("Sync LLM Judge", 2),
    "rule_based_async": Run("Async Rule-Based", 2),
    "llm_judge_local_async": Run("Async LLM Judge", 3),
}
TIMES = {
    "Generate": "timing/generate",
    "Train": "timing/train_critic_and_policy",
    "Weight sync": "timing/sync_weights",
    "Step time": "timing/step",
}
REWARD, FAILED = "reward/avg_raw_reward", "environment/failed"
STEPS = (1, 5, 10, 20, 30, 40, 50)
ABSENT = "—"
_STEP = re.compile(r"\bStep (\d{1,9}): *$")
_NUMBER = re.compile(r"'([\w/@.-]{1,200})': '?(-?\d{1,30}(?:\.\d{1,30})?)'?[,}]")


def main() -> int:
    """Prints the tables; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help=f"one of {', '.join(RUNS)}, with .log")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="an SVG of the rewards by step")
    given = parser.parse_args()
    runs = {path.stem: read(path.read_text(errors="replace")) for path in given.logs}
    if unknown := [name for name in runs if name not in RUNS]:
        parser.error(f"{unknown[0]}.log is of none of {', '.join(RUNS)}")
    if empty := [name for name, steps in runs.items() if not steps]:
        parser.error(f"{empty[0]}.log has no step; trainer.logger has to be console")
    runs = {name: runs[name] for name in RUNS if name in runs}
    print("\n".join([*throughput(runs), "", *rewards(runs), *failures(runs)]))
    if given.plot:
        curves = {RUNS[name].title: _series(steps, REWARD) for name, steps in runs.items()}
        given.plot.write_text(plot(curves, "step", "mean reward"), encoding="utf-8")
    return 0


def read(text: str) -> Metrics:
    """The numbers of a log, by step.

    Args:
        text: what SkyRL printed, with whatever Ray puts before its lines.
    """
    steps: Metrics = defaultdict(dict)
    current: dict[str, float] = {}
    for line in text.splitlines():
        if begins := _STEP.search(line):
            current = steps[int(begins[1])]
        current.update((name, float(number)) for name, number in _NUMBER.findall(line))
    return dict(steps)


def throughput(runs: Mapping[str, Metrics]) -> list[str]:
    """Lines of the table of seconds, each a mean over all steps but the first, which also warms up.

    Args:
        runs: by name.
    """
    rows = [[word, *(_seconds(steps, name) for steps in runs.values())] for word, name in TIMES.items()]
    rows.append(["GPUs", *(str(RUNS[name].gpus) for name in runs)])
    lines = ["### Throughput", "", *_table(["Metric", *(RUNS[name].title for name in runs)], rows), ""]
    pairs = [
        ("Async speedup, rule-based", "rule_based", "rule_based_async"),
        ("Async speedup, LLM judge", "llm_judge_local", "llm_judge_local_async"),
        ("LLM judge overhead, sync", "rule_based", "llm_judge_local"),
        ("LLM judge overhead, async", "rule_based_async", "llm_judge_local_async"),
    ]
    times = {name: _mean(steps, TIMES["Step time"]) for name, steps in runs.items()}
    for word, first, second in pairs:
        before, after = times.get(first), times.get(second)
        if before and after:
            change = f"{abs(after / before - 1):.0%} {'less' if after < before else 'more'}"
            lines.append(f"- {word}: {before:.1f} s to {after:.1f} s a step, {change}")
    return lines


def rewards(runs: Mapping[str, Metrics]) -> list[str]:
    """Lines of the table of the mean reward at some steps.

    Args:
        runs: by name.
    """
    rows = []
    for step in STEPS:
        found = [steps.get(step, {}).get(REWARD) for steps in runs.values()]
        rows.append([str(step), *(ABSENT if value is None else f"{value:.3f}" for value in found)])
    return ["### Reward Trajectories", "", *_table(["Step", *(RUNS[name].title for name in runs)], rows)]


def failures(runs: Mapping[str, Metrics]) -> list[str]:
    """A line for each run in which samples had no score for an infrastructure's failure, and counted as 0.

    Args:
        runs: by name.
    """
    lines = [""]
    for name, steps in runs.items():
        shares = {step: share for step, share in _series(steps, FAILED).items() if share}
        if shares:
            worst = max(shares, key=shares.__getitem__)
            told = f"up to {shares[worst]:.1%} of the samples, at step {worst}"
            lines.append(f"WARNING: {RUNS[name].title}: failed in {len(shares)} steps, {told}; they count as 0")
    return lines if len(lines) > 1 else []


def _series(steps: Metrics, name: str) -> dict[int, float]:
    return {step: numbers[name] for step, numbers in sorted(steps.items()) if name in numbers}


def _mean(steps: Metrics, name: str) -> float | None:
    values = [*_series(steps, name).values()]
    return mean(values[1:] or values) if values else None


def _seconds(steps: Metrics, name: str) -> str:
    value = _mean(steps, name)
    return ABSENT if value is None else f"{value:.1f}s"


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    rule = ["---", *[":-:"] * (len(head) - 1)]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


if __name__ == "__main__":
    sys.exit(main())
