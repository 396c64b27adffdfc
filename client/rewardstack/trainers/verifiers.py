"""verifiers and prime-rl: a reward function that the configuration can add to any taskset.

If the tasks' data have a `data_source`, set this flag:

    --env.taskset.task.rewards.rewardstack.fn rewardstack.trainers.verifiers:reward

Or write this into the TOML file:

    [env.taskset.task.rewards.rewardstack]
    fn = "rewardstack.trainers.verifiers:reward"

In your own task, call `reward` from a method with `@vf.reward`, and pass the route as `data_source`
(`docs/trainers.md`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewardstack.api import ascore
from rewardstack.errors import RequestError
from rewardstack.score import Request
from rewardstack.trainers.columns import first_present, merge_options

if TYPE_CHECKING:
    import verifiers.v1 as vf

REFERENCES = ("answer", "ground_truth", "expected_answer", "label")
"""Fields of a task's data that may have the reference; the first field that is set is used."""


async def reward(task: vf.TaskData, trace: vf.Trace, data_source: str = "") -> float:
    """Return the reward of a rollout's last reply; store status, reason and source in `trace.info["rewardstack"]`.

    Args:
        task: the task's data: the prompt, a reference if the route needs one, optionally `extra_info`.
        trace: the rollout.
        data_source: the route (how to score); by default the `data_source` of the task's data.

    Raises:
        ConfigError: no route is named, or the route is unknown.
        ScoringError: the sample has no score; the rollout ends in an error.
        FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
    """
    source = data_source or getattr(task, "data_source", "")
    if not source:
        raise RequestError("data_source: the task's data have no such field; add it, or pass the route", "data_source")
    reference = first_present(getattr(task, name, None) for name in REFERENCES)
    extra = merge_options(getattr(task, "extra_info", None), {"question": task.prompt_text})
    [score] = await ascore([Request(source, trace.last_reply, reference, extra)], on_error="raise")
    trace.info["rewardstack"] = {"status": score.status, "reason": score.reason, "source": score.source}
    assert score.value is not None
    return score.value
