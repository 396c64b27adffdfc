"""Whether rewards drive training: the same GRPO run twice, with its rewards, and with them shuffled in each batch.

    python examples/trl/rises.py [--svg grpo_rises.svg] [--steps 60] [--seeds 3]

The task is to say eight words, by the reward server's function `length`; the policy is a tiny one of random weights.
Prints a line of JSON for each run: the mean reward of each step.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tiny_policy
import torch
from datasets import Dataset
from transformers import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from rewardstack.trainers.trl import RewardFunc, reward_func

WORDS = 8
LEARNING_RATE = 2e-3
WIDTH, HEIGHT, EDGE = 640, 360, 50
"""Of the drawing, in its units: the whole, and what is left around the plot."""
COLOURS = {"rewards": "#1f77b4", "shuffled": "#d62728"}


def main() -> None:
    """All runs, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3, help="how many policies are trained in both ways")
    parser.add_argument("--svg", type=Path, help="where the plot goes")
    options = parser.parse_args()
    curves = []
    for seed in range(options.seeds):
        for name in COLOURS:
            began = time.monotonic()
            curve = mean_rewards(options.steps, seed, shuffled=name == "shuffled")
            first, last = quarters(curve)
            told = {"run": name, "seed": seed, "first_quarter": round(first, 3), "last_quarter": round(last, 3)}
            told |= {"seconds": round(time.monotonic() - began, 1), "rewards": [round(one, 3) for one in curve]}
            print(json.dumps(told), flush=True)
            curves.append((name, curve))
    if options.svg:
        options.svg.write_text(plot(curves))


def mean_rewards(steps: int, seed: int, *, shuffled: bool) -> list[float]:
    """The mean reward of each step of a run.

    Args:
        steps: of GRPO, 64 completions each.
        seed: of the policy's weights, of the sampling and of the shuffling.
        shuffled: whether each completion gets the reward of another one of its batch.
    """
    torch.set_num_threads(1)
    rewards = reward_func("rule_remote_length", reference=None, extra_info={"target_length": WORDS}, name="words")
    with tempfile.TemporaryDirectory() as folder:
        tiny_policy.write(folder, seed)
        trainer = GRPOTrainer(
            model=folder,
            reward_funcs=[Shuffled(rewards, seed) if shuffled else rewards],
            train_dataset=Dataset.from_list([{"prompt": f"{number}+{number + 1}?"} for number in range(64)]),
            args=configuration(folder, steps, seed),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [line["rewards/words/mean"] for line in trainer.state.log_history if "rewards/words/mean" in line]


def configuration(folder: str, steps: int, seed: int) -> GRPOConfig:
    """Eight completions of at most 24 characters for each of eight prompts a step."""
    return GRPOConfig(
        output_dir=folder,
        max_steps=steps,
        seed=seed,
        per_device_train_batch_size=64,
        num_generations=8,
        max_completion_length=24,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        gradient_checkpointing=False,
        logging_steps=1,
        log_level="error",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        report_to=[],
    )


class Shuffled:
    """A reward function whose values are dealt out among the completions of the batch, so that their mean stays."""

    def __init__(self, rewards: RewardFunc, seed: int) -> None:
        self._rewards, self._random, self.__name__ = rewards, random.Random(seed), rewards.__name__

    async def __call__(self, **given: Any) -> list[float | None]:
        values = await self._rewards(**given)
        self._random.shuffle(values)
        return values


def quarters(curve: Sequence[float]) -> tuple[float, float]:
    """The mean over the first quarter of the steps, and over the last."""
    few = len(curve) // 4
    return sum(curve[:few]) / few, sum(curve[-few:]) / few


def plot(curves: Sequence[tuple[str, Sequence[float]]]) -> str:
    """The curves, each with its run's name, as SVG; a reward is from 0 to 1."""
    across, up, steps = WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE, len(curves[0][1])
    step, bottom = across / (steps - 1), HEIGHT - EDGE
    drawn = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">']
    drawn.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/><g font-size="12" fill="#333">')
    for tenths in range(0, 11, 2):
        y = bottom - up * tenths / 10
        drawn.append(f'<path d="M{EDGE} {y:.1f}h{across}" stroke="#ddd"/>')
        drawn.append(f'<text x="{EDGE - 8}" y="{y + 4:.1f}" text-anchor="end">{tenths / 10}</text>')
    for name, curve in curves:
        points = " ".join(f"{EDGE + step * x:.1f},{bottom - up * y:.1f}" for x, y in enumerate(curve))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.5"/>')
    for row, (name, colour) in enumerate(COLOURS.items()):
        drawn.append(f'<text x="{EDGE + 8}" y="{EDGE + 16 + 18 * row}" fill="{colour}">{name}</text>')
    for number in (1, steps):
        x = EDGE + step * (number - 1)
        drawn.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{number}</text>')
    drawn.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">step of GRPO</text>')
    drawn.append(f'<text x="{EDGE}" y="30">mean reward of a step: {WORDS} words wanted</text></g></svg>')
    return "\n".join(drawn) + "\n"


if __name__ == "__main__":
    main()
