"""Rewards for reinforcement learning of language models, from services outside the trainer."""

from rewardstack.api import (
    acompute_score,
    acompute_score_batched,
    ascore,
    compute_score,
    compute_score_batched,
    score,
)
from rewardstack.client import register_route
from rewardstack.errors import RewardstackError
from rewardstack.score import Request, Score

__version__ = "0.1.0"

__all__ = [
    "Request",
    "RewardstackError",
    "Score",
    "acompute_score",
    "acompute_score_batched",
    "ascore",
    "compute_score",
    "compute_score_batched",
    "register_route",
    "score",
]
