"""OpenRLHF's protocol for `/get_reward` (`openrlhf/utils/agent.py`).

The body is `{"query": [prompt + response], "prompts", "labels"}`, the reply is `{"rewards", "scores", "extra_logs",
"statuses"}`. Empty lists are accepted, because OpenRLHF distributes its queries over several servers, and versions
before 0.11.2 send empty lists to all servers but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response

from rewardstack.core.responses import extract_response
from rewardstack.score import Request, Score
from rewardstack_rules.http.protocols.body import read_rows
from rewardstack_rules.http.protocols.scoring import batch_reply, get_source, make_sample, reward_value, score_samples


def answer(body: dict[str, Any]) -> Response:
    """Reply with the rewards of a batch, which usually has one sample.

    Raises:
        ApiError: 400; a list is missing, or its length is not the number of queries.
    """
    rows = read_rows(body, ("query", "prompts"), ("labels",))
    source = get_source(body)
    return _reply(score_samples([_sample(source, *row) for row in rows]))


def _sample(source: str, query: Any, prompt: Any, label: Any) -> Request:
    return make_sample(source, prompt, extract_response(query, prompt), label)


def _reply(scores: Sequence[Score]) -> Response:
    # Every reply has the same keys, because the trainer concatenates the logs of its samples.
    logs = {name: [float(score.status == name) for score in scores] for name in ("failed", "unscored")}
    return batch_reply(scores, scores=[reward_value(score) for score in scores], extra_logs=logs)
