"""The environment `llm_as_a_judge_local`: the frozen judge says whether a response comes to the reference's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardstack.trainers.skyrl import RewardstackEnv

ROUTE = "llm_judge_remote"
OPTIONS = {"prompt_template": "binary", "temperature": 0.0}
"""Of the judge: it answers 1 or 0, whatever the form of the response. A row's `extra_info` may say otherwise."""


class GSM8kLLMJudgeLocalEnv(RewardstackEnv):
    """One response, judged by the Ray actor that `main_llm_judge_local.py` has started.

    Args:
        env_config: `environment.skyrl_gym.llm_as_a_judge_local`.
        extras: the columns of the row, with the reference in `reward_spec`.
    """

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__(env_config, extras, data_source=ROUTE, options=OPTIONS)
