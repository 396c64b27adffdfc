"""Align-Anything's protocol for `/get_reward` (`align_anything/models/remote_rm/reward_server.py`).

The body is `{"prompts", "responses", "golden_responses"?}`, the reply is `{"rewards", "statuses"}`. Unlike the
original, this server reads golden responses from the body, and its `statuses` distinguish a reward of 0.0 from a sample
without a score.
"""

from __future__ import annotations

from typing import Any

from flask import Response

from rewardstack_rules.http.protocols.body import read_rows
from rewardstack_rules.http.protocols.scoring import batch_reply, get_source, make_sample, score_samples


def answer(body: dict[str, Any]) -> Response:
    """Reply with the rewards of a batch.

    Raises:
        ApiError: 400; a list is missing, or its length is not the number of prompts.
    """
    rows = read_rows(body, ("prompts", "responses"), ("golden_responses",))
    source = get_source(body)
    return batch_reply(score_samples([make_sample(source, *row) for row in rows]))
