"""A judge with frozen weights as a Ray actor, `reward_inference_service`, with vLLM engines that never sync weights.

Ray and vLLM are imported when an actor is created, not by this package. It has no prompts and no parsers: the client
sends the actor the same requests as a server, and reads the same replies.
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
