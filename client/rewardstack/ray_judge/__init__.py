"""Run a judge in a Ray cluster: the actor `reward_inference_service` and its vLLM engines, whose weights never change.

The actor replaces the judge's HTTP server: the client sends the actor the same requests. Ray and vLLM are imported when
an actor is created, not when this package is imported.
"""

from __future__ import annotations

from rewardstack.ray_judge.balancing import FrozenRewardInferenceClient
from rewardstack.ray_judge.engines import create_frozen_vllm_engines
from rewardstack.ray_judge.options import EngineOptions
from rewardstack.ray_judge.service import RewardInferenceService
from rewardstack.ray_judge.start import start_reward_service

__all__ = [
    "EngineOptions",
    "FrozenRewardInferenceClient",
    "RewardInferenceService",
    "create_frozen_vllm_engines",
    "start_reward_service",
]
