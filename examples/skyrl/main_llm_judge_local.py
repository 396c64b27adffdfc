"""Trains in SkyRL with a judge in the same Ray cluster: starts it, registers the environment, trains, ends it.

Arguments are SkyRL's, `KEY=VALUE`. The judge is told by variables: `REWARD_MODEL`, `REWARD_NUM_ENGINES` (1),
`REWARD_MAX_MODEL_LEN` (4096 tokens of a prompt and its reply), `REWARD_GPU_MEMORY_UTILIZATION` (0.9).
"""

from __future__ import annotations

import os
import sys

from rewardstack.ray_judge import start_reward_service
from rewardstack.ray_judge.service import NAME as JUDGE
from rewardstack.ray_judge.start import stop_reward_service
from rewardstack.trainers.skyrl import EXPERIMENT, configure, train

ENVIRONMENT = "llm_as_a_judge_local"
ENTRY_POINT = "llm_judge_local_env:GSM8kLLMJudgeLocalEnv"
MODEL = "Qwen/Qwen2.5-1.5B-Instruct"


def main(experiment: str = EXPERIMENT) -> None:
    """Trains; returns when it is done.

    Args:
        experiment: the class that trains, as `MODULE:CLASS`.

    Raises:
        RewardstackError: the judge does not start; says why.
        RayTaskError: what ended the training.
    """
    config = configure(sys.argv[1:], ENVIRONMENT)
    judge = start_reward_service(
        os.environ.get("REWARD_MODEL", MODEL),
        max_model_len=int(os.environ.get("REWARD_MAX_MODEL_LEN", "4096")),
        gpu_memory_utilization=float(os.environ.get("REWARD_GPU_MEMORY_UTILIZATION", "0.9")),
    )
    os.environ.pop("LLM_JUDGE_SERVER_URL", None)  # one judge of two, which both together would be an error
    os.environ["LLM_JUDGE_RAY_ACTOR"] = JUDGE
    try:
        train(config, ENVIRONMENT, ENTRY_POINT, experiment)
    finally:
        stop_reward_service(judge)


if __name__ == "__main__":
    main()
