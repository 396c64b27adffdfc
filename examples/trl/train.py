"""GRPO by TRL, with the rewards of a reward server and, if wanted, of a judge.

python examples/trl/train.py                                          # a tiny policy, on the processor
python examples/trl/train.py --model Qwen/Qwen2.5-0.5B-Instruct --judge
python examples/trl/train.py --rubric                                 # a judge decides criteria, one by one
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import tiny_policy
import torch
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from rewardstack.trainers.trl import reward_func

RUBRICS = [
    {"name": "steps", "criterion": "Shows the steps of the calculation", "points": 2},
    {"name": "result", "criterion": "Ends with a line `#### ` and a number", "points": 2},
    {"name": "chatter", "criterion": "Talks about something other than the question", "points": -2},
]
QUESTIONS = Path(__file__).with_name("questions.jsonl")
os.environ.setdefault("REWARDSTACK_MAX_FAILURE_RATE", "0.1")  # of the last 1,000 samples; then the run ends


def main() -> None:
    """Trains; TRL prints a line of its log each step."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="folder or name of a policy; by default one of random weights")
    parser.add_argument("--data", default=str(QUESTIONS), help="JSON lines with `prompt` and `answer`")
    parser.add_argument("--judge", action="store_true", help="ask the judge of LLM_JUDGE_SERVER_URL, too")
    parser.add_argument("--rubric", action="store_true", help="have the judge decide the criteria of RUBRICS")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--output", help="folder for the trained policy; by default none is kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if not options.model:
            tiny_policy.write(folder)
        trainer = GRPOTrainer(
            model=options.model or folder,
            reward_funcs=reward_funcs(judge=options.judge, rubric=options.rubric),
            train_dataset=load_dataset("json", data_files=options.data, split="train"),
            args=configuration(options.steps, options.output or folder),
        )
        trainer.train()
        if options.output:
            trainer.save_model(options.output)


def reward_funcs(*, judge: bool = False, rubric: bool = False) -> list:
    """A right answer, few words and, if wanted, what a judge thinks of it, as a whole or by criteria."""
    brevity = {"max_length": 2, "length_buffer": 40}
    funcs = [
        reward_func("gsm8k"),
        reward_func("rule_remote_length", reference=None, extra_info=brevity, name="brevity"),
    ]
    if judge:
        funcs.append(reward_func("llm_judge_remote"))
    if rubric:
        criteria = {"verdict": "rubric", "rubrics": RUBRICS}
        funcs.append(reward_func("llm_judge_remote", reference=None, extra_info=criteria, name="rubric"))
    return funcs


def configuration(steps: int, output: str) -> GRPOConfig:
    """A small one: 4 answers to each of 4 questions a step."""
    on_gpu = torch.cuda.is_available()
    return GRPOConfig(
        output_dir=output,
        max_steps=steps,
        per_device_train_batch_size=16,
        num_generations=4,
        max_completion_length=256 if on_gpu else 32,
        learning_rate=1e-6,
        logging_steps=1,
        use_cpu=not on_gpu,
        bf16=on_gpu,
        save_strategy="no",
        report_to=[],
    )


if __name__ == "__main__":
    main()
