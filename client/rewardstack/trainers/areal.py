"""AReaL's rewards, a function that it hands to processes of its own.

    workflow_kwargs = dict(reward_fn="rewardstack.trainers.areal.reward", ...)

A row's route is its `data_source`, else `REWARD_TYPE`; its reference `answer`, else `ground_truth`, `label` or
`solution`. AReaL gives a call 15 s, four times, and counts what has not ended then as 0 with no more than a warning;
what raises it tries as often, and raises in the end (`areal/api/reward_api.py` of 1.0.4). Hence the time here.
"""

from __future__ import annotations

from typing import Any

from rewardstack import api
from rewardstack.errors import ScoringError
from rewardstack.score import NO_REFERENCE, Request
from rewardstack.trainers.columns import TASKS, first_of, options_of, source_of, with_task

SECONDS = 12.0
"""That a call may take; AReaL's 15 also hold the way to its process and back."""
REFERENCES = ("answer", "ground_truth", "label", "solution")


def reward(prompt: Any, completions: str, prompt_ids: Any, completion_ids: Any, **row: Any) -> float:
    """The reward of a completion.

    Args:
        prompt: as a text, with its chat template; what a judge is told where the row has no `problem` or `question`.
        completions: the one that the policy wrote.
        prompt_ids: tokens, which are not read; `completion_ids` neither.
        row: the data's other columns; those above are read, and `extra_info`, the route's options.

    Raises:
        ScoringError: the sample failed, or cannot be judged, such as one without a reference.
        ConfigError: the route is unknown, or a setting malformed.
    """
    source = source_of(row.get("data_source"))
    truth = first_of(row.get(name) for name in REFERENCES)
    asked = {name: row[name] for name in TASKS if isinstance(row.get(name), str)}
    options = with_task(options_of(row.get("extra_info"), asked), prompt)
    [score] = api.score([Request(source, completions, truth, options)], on_error="none", timeout=SECONDS)
    if score.value is None:
        where = f"; a row has it as {', '.join(REFERENCES)}" if score.reason == NO_REFERENCE else ""
        raise ScoringError(f"{score.status}: {score.reason}{where}", [score])
    return score.value
