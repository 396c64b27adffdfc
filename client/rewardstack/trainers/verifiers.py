"""verifiers and prime-rl: a reward function that configuration adds to any task set.

For tasks whose data have a `data_source`, use `--env.taskset.task.rewards.rewardstack.fn
rewardstack.trainers.verifiers:reward`, or in TOML `[env.taskset.task.rewards.rewardstack]` with
`fn = "rewardstack.trainers.verifiers:reward"`. In your own task, call `reward` from a method with `@vf.reward` and pass
the route as `data_source` (`docs/trainers.md`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewardstack.api import ascore
from rewardstack.errors import RequestError
from rewardstack.score import Request
from rewardstack.trainers.columns import first_of, options_of

if TYPE_CHECKING:
    import verifiers.v1 as vf

REFERENCES = ("answer", "ground_truth", "expected_answer", "label")
"""Fields of a task's data that may have the reference; the first one that is set counts."""


async def reward(task: vf.TaskData, trace: vf.Trace, data_source: str = "") -> float:
    """Return the reward of a rollout's last reply; set `trace.info["rewardstack"]` to its status, reason and source.

    Args:
        task: the task's data: the prompt, a reference if the route needs one, optionally `extra_info`.
        trace: the rollout, which receives the status.
        data_source: the route, i.e. how to score; by default the `data_source` of the task's data.

    Raises:
        ConfigError: no route is named, or the route is unknown.
        ScoringError: the sample has no score; the rollout ends in an error.
        FailureRateError: too many samples failed (`REWARDSTACK_MAX_FAILURE_RATE`).
    """
    source = data_source or getattr(task, "data_source", "")
    if not source:
        raise RequestError("data_source: the task's data have none; add it, or pass the route", "data_source")
    reference = first_of(getattr(task, name, None) for name in REFERENCES)
    extra = options_of(getattr(task, "extra_info", None), {"question": task.prompt_text})
    [score] = await ascore([Request(source, trace.last_reply, reference, extra)], on_error="raise")
    trace.info["rewardstack"] = {"status": score.status, "reason": score.reason, "source": score.source}
    assert score.value is not None
    return score.value
