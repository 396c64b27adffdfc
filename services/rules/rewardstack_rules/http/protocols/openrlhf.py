"""OpenRLHF's body of `/get_reward` (`openrlhf/utils/agent.py`).

`{"query": [prompt + response], "prompts", "labels"}` to `{"rewards", "scores", "extra_logs"}`, and `statuses` beside.
The trainer decodes a query from tokens with the special ones kept, so one may stand before the prompt and one at the
end. Of several servers all but the first are sent empty lists.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from flask import Response

from rewardstack.score import Request, Score
from rewardstack_rules.http.protocols.body import read_columns
from rewardstack_rules.http.protocols.scoring import batch_reply, make_sample, reward_of, score_samples, source_of

BEFORE_PROMPT = 64
"""Characters that may stand before the prompt: the token that begins a text."""
END_TOKEN = re.compile(
    r"(?:<\|[^<>|]{1,40}\|>|</s>|<eos>|<end_of_turn>|<\uff5cend\u2581of\u2581sentence\uff5c>)\s{0,8}\Z"
)
END_TOKEN_CHARACTERS = 64


def answer(body: dict[str, Any]) -> Response:
    """The rewards of what usually is one sample.

    Raises:
        ApiError: 400; a list is missing, or of another length than the queries.
    """
    rows = read_columns(body, ("query", "prompts"), ("labels",))
    source = source_of(body)
    return _reply(score_samples([_sample(source, *row) for row in rows]))


def _sample(source: str, query: Any, prompt: Any, label: Any) -> Request:
    if isinstance(query, str) and isinstance(prompt, str):
        query = response_in(query, prompt)
    return make_sample(source, prompt, query, label)


def response_in(query: str, prompt: str) -> str:
    """The response: what stands behind the prompt, without the tokens that end a text.

    Args:
        query: prompt and response, as decoded from tokens.
        prompt: as the trainer had it; where the query does not begin with it (the trainer cuts long prompts), all of
            the query is the response.
    """
    start = query.find(prompt, 0, len(prompt) + BEFORE_PROMPT)
    start = 0 if start < 0 else start + len(prompt)
    end = len(query)
    while found := END_TOKEN.search(query, max(start, end - END_TOKEN_CHARACTERS), end):
        end = found.start()
    return query[start:end]


def _reply(scores: Sequence[Score]) -> Response:
    # The same keys in every reply: the trainer joins the logs of its samples.
    logs = {name: [float(score.status == name) for score in scores] for name in ("failed", "unscored")}
    return batch_reply(scores, scores=[reward_of(score) for score in scores], extra_logs=logs)
