"""AReaL: a reward function, which AReaL calls in processes of its own.

    workflow_kwargs = dict(reward_fn="rewardstack.trainers.areal.reward", ...)

The route is the row's `data_source`, else `REWARD_TYPE`; the reference is `answer`, else `ground_truth`, `label` or
`solution`. AReaL gives a call 15 s and four tries, and counts a timeout as 0 with no more than a warning. An exception
is tried as often and raised in the end (`areal/api/reward_api.py` of 1.0.4), so the function raises after `TIMEOUT`.
"""

from __future__ import annotations

from typing import Any

from rewardstack import api
from rewardstack.score import Request
from rewardstack.trainers.columns import TASKS, first_of, options_of, rewards_of, source_of, with_task

TIMEOUT = 12.0
"""Seconds per call; AReaL's 15 include the way to its process and back."""
REFERENCES = ("answer", "ground_truth", "label", "solution")


def reward(prompt: Any, completions: str, prompt_ids: Any, completion_ids: Any, **row: Any) -> float:
    """Return the reward of a completion.

    Args:
        prompt: a string with its chat template. A judge reads it if the row has no `problem` or `question`.
        completions: one completion.
        prompt_ids: unused, like `completion_ids`.
        row: the other columns: those above, and `extra_info` with the options of the route.

    Raises:
        ScoringError: the sample has no score.
        ConfigError: the route is unknown, or a setting malformed.
        FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
    """
    source = source_of(row.get("data_source"))
    truth = first_of(row.get(name) for name in REFERENCES)
    task = {name: row[name] for name in TASKS if isinstance(row.get(name), str)}
    options = with_task(options_of(row.get("extra_info"), task), prompt)
    scores = api.score([Request(source, completions, truth, options)], on_error="none", timeout=TIMEOUT)
    return rewards_of(scores, f"it is one of the columns {', '.join(REFERENCES)}")[0]
