"""AReaL: a reward function, which AReaL calls in worker processes.

    workflow_kwargs = dict(reward_fn="rewardstack.trainers.areal.reward", ...)

The route, i.e. how to score, is the row's `data_source`, else `REWARD_TYPE`. The reference is the column `answer`, else
`ground_truth`, `label` or `solution`. AReaL 1.0.4 tries a call four times, with 15 s each (`areal/api/reward_api.py`).
If the last try times out, AReaL only logs a warning and uses the reward 0. If it raises, AReaL raises the exception.
Therefore `reward` raises after `TIMEOUT`.
"""

from __future__ import annotations

from typing import Any

from rewardstack import api
from rewardstack.score import Request
from rewardstack.trainers.columns import TASKS, first_of, options_of, rewards_of, source_of, with_task

TIMEOUT = 12.0
"""Timeout of a call in seconds; less than AReaL's 15 s, which include the transfer to the worker process and back."""
REFERENCES = ("answer", "ground_truth", "label", "solution")


def reward(prompt: Any, completions: str, prompt_ids: Any, completion_ids: Any, **row: Any) -> float:
    """Return the reward of a completion.

    Args:
        prompt: the prompt with the chat template applied. A judge reads it if the row has no `problem` or `question`.
        completions: one completion, in spite of AReaL's name for the argument.
        prompt_ids: unused.
        completion_ids: unused.
        row: the row's other columns. Those named above and `extra_info`, with options of the route, are read.

    Raises:
        ScoringError: the sample has no score.
        ConfigError: the route is unknown, or a setting is malformed.
        FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
    """
    source = source_of(row.get("data_source"))
    truth = first_of(row.get(name) for name in REFERENCES)
    task = {name: row[name] for name in TASKS if isinstance(row.get(name), str)}
    options = with_task(options_of(row.get("extra_info"), task), prompt)
    scores = api.score([Request(source, completions, truth, options)], on_error="none", timeout=TIMEOUT)
    return rewards_of(scores, f"it is one of the columns {', '.join(REFERENCES)}")[0]
