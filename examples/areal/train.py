"""AReaL's training on GSM8K with these rewards: `python train.py --config AREAL/examples/math/gsm8k_grpo.yaml`.

It is AReaL's `examples/math/gsm8k_rl.py` with another `reward_fn`. `REWARD_TYPE` names the route of rows that have no
`data_source`; GSM8K's have none, and AReaL asks for the answer in a box, which `math` reads.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

WORKFLOW = "areal.workflow.rlvr.RLVRWorkflow"
REWARD = "rewardstack.trainers.areal.reward"
NEEDED = {
    "GPUs (nvidia-smi is not there)": shutil.which("nvidia-smi"),
    "AReaL": importlib.util.find_spec("areal"),
    "rewardstack's client": importlib.util.find_spec("rewardstack"),
}


def main(arguments: list[str]) -> int:
    """Trains, or says what is missing and what it would train with; gives the exit status."""
    os.environ.setdefault("REWARD_TYPE", "math")
    os.environ.setdefault("REWARDSTACK_MAX_FAILURE_RATE", "0.1")  # of a process's last 1,000 samples
    missing = [what for what, found in NEEDED.items() if found is None]
    if missing or not arguments:
        print("Nothing was trained. It needs", "; ".join([*missing, "--config FILE, such as AReaL's gsm8k_grpo.yaml"]))
        print(f"It would train with the workflow {WORKFLOW},")
        print(f"reward_fn={REWARD}, REWARD_TYPE={os.environ['REWARD_TYPE']}.")
        return 1
    train(arguments)
    return 0


def train(arguments: list[str]) -> None:
    """AReaL's training.

    Args:
        arguments: of AReaL's own command line.
    """
    from areal import PPOTrainer
    from areal.api.cli_args import GRPOConfig, load_expr_config
    from areal.dataset import get_custom_dataset
    from areal.utils.hf_utils import load_hf_tokenizer

    config, _ = load_expr_config(arguments, GRPOConfig)
    tokenizer = load_hf_tokenizer(config.tokenizer_path)
    data = {
        f"{name}_dataset": get_custom_dataset(split=split, dataset_config=part, tokenizer=tokenizer)
        for name, split, part in (("train", "train", config.train_dataset), ("valid", "test", config.valid_dataset))
    }
    given = {"reward_fn": REWARD, "gconfig": config.gconfig, "tokenizer": config.tokenizer_path}
    with PPOTrainer(config, **data) as trainer:
        trainer.train(
            workflow=WORKFLOW,
            workflow_kwargs=given,
            eval_workflow=WORKFLOW,
            eval_workflow_kwargs={**given, "gconfig": config.gconfig.new(temperature=0.6)},
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
