"""Align-Anything's body of `/get_reward` (`align_anything/models/remote_rm/reward_server.py`).

`{"prompts", "responses", "golden_responses"?}` to `{"rewards", "statuses"}`. Beside the original, golden responses in
the body are used, and `statuses` tells a reward of 0.0 from a sample without a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response, jsonify

from rewardstack.score import Score
from rewardstack_rules.http_errors import unavailable
from rewardstack_rules.protocols.body import read_columns
from rewardstack_rules.protocols.scoring import all_failed, make_sample, reward_of, score_samples, source_of


def answer(body: dict[str, Any]) -> Response:
    """The rewards of a batch.

    Raises:
        ApiError: 400; a list is missing, or of another length than the prompts.
    """
    rows = read_columns(body, ("prompts", "responses"), ("golden_responses",))
    source = source_of(body)
    return _reply(score_samples([make_sample(source, *row) for row in rows]))


def _reply(scores: Sequence[Score]) -> Response:
    rewards = [reward_of(score) for score in scores]
    statuses = [score.status for score in scores]
    if all_failed(scores):
        return unavailable(f"no sample was scored: {scores[0].reason}", rewards=rewards, statuses=statuses)
    return jsonify(rewards=rewards, statuses=statuses)
