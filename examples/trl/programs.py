"""Ten steps of GRPO by TRL on one-line programs, which the reward server runs against tests (CODE=on).

    python examples/trl/programs.py                                          # a tiny policy, on the processor
    python examples/trl/programs.py --model Qwen/Qwen2.5-Coder-0.5B-Instruct --extract fence

The reward is the share of tests that a program passes. The tiny policy has random weights and learns nothing of value.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import tiny_policy
from datasets import load_dataset
from train import configuration
from trl import GRPOTrainer

from rewardstack.trainers.trl import reward_func

PROGRAMS = Path(__file__).with_name("programs.jsonl")


def main() -> None:
    """Trains; TRL prints a line of its log each step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="folder or name of a policy; by default one of random weights")
    parser.add_argument("--data", default=str(PROGRAMS), help="JSON lines with `prompt` and `tests`")
    parser.add_argument("--extract", default="response", choices=["response", "fence"], help="where the program is")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not options.model:
            tiny_policy.write(folder)
        share = {"score": "share", "time_limit": 1, "extract": options.extract}
        trainer = GRPOTrainer(
            model=options.model or folder,
            reward_funcs=[reward_func("code", reference="tests", extra_info=share)],
            train_dataset=load_dataset("json", data_files=options.data, split="train"),
            args=configuration(options.steps, folder),
        )
        trainer.train()


if __name__ == "__main__":
    main()
