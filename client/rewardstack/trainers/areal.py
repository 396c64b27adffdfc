"""AReaL: a reward function, which AReaL calls in worker processes.

    workflow_kwargs = dict(reward_fn="rewardstack.trainers.areal.reward", ...)

The route (how to score) is the row's `data_source`, else `REWARD_TYPE`. The reference is the first of the columns
`answer`, `ground_truth`, `label` and `solution` that has a value.

AReaL 1.0.4 tries a call up to four times, with a timeout of 15 s per try (`areal/api/reward_api.py`). If the last try
times out, AReaL logs a warning and uses the reward 0. If the last try raises an exception, so does AReaL. Therefore
`reward` raises an exception after `TIMEOUT`, before AReaL's timeout. The 15 s also include the wait for a free worker
process. Start as many worker processes as there are concurrent calls; with fewer, AReaL's timeout may come first.
"""

from __future__ import annotations

from typing import Any

from rewardstack import api
from rewardstack.score import Request
from rewardstack.trainers.columns import TASKS, add_task, first_present, merge_options, require_rewards, route_name

TIMEOUT = 12.0
"""Timeout of a call in seconds; less than AReaL's 15 s, which include the transfer to and from the worker process."""
REFERENCES = ("answer", "ground_truth", "label", "solution")


def reward(prompt: Any, completions: str, prompt_ids: Any, completion_ids: Any, **row: Any) -> float:
    """Return the reward of a completion.

    Args:
        prompt: the prompt with the chat template applied. The scorer reads it if neither the row nor its `extra_info`
            has a field in `TASKS`.
        completions: one completion, despite AReaL's name for the argument.
        prompt_ids: unused.
        completion_ids: unused.
        row: the row's other columns. Only `data_source`, `extra_info` (options of the route) and the columns in
            `REFERENCES` and `TASKS` are read.

    Raises:
        ScoringError: the sample has no score.
        ConfigError: the route is unknown, or a setting is malformed.
        FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
    """
    source = route_name(row.get("data_source"))
    truth = first_present(row.get(name) for name in REFERENCES)
    task = {name: row[name] for name in TASKS if isinstance(row.get(name), str)}
    options = add_task(merge_options(row.get("extra_info"), task), prompt)
    scores = api.score([Request(source, completions, truth, options)], on_error="none", timeout=TIMEOUT)
    return require_rewards(scores, f"put it into one of the columns {', '.join(REFERENCES)}")[0]
