"""The judge's parts under the name that the original of this example had for their file; they are rewardstack's."""

from __future__ import annotations

from rewardstack.ray_judge import FrozenRewardInferenceClient, RewardInferenceService, create_frozen_vllm_engines

__all__ = ["FrozenRewardInferenceClient", "RewardInferenceService", "create_frozen_vllm_engines"]
