"""verifiers and prime-rl: a reward of any task set, by its configuration alone.

`--env.taskset.task.rewards.rewardstack.fn rewardstack.trainers.verifiers:reward`, or in TOML
`[env.taskset.task.rewards.rewardstack]` and `fn = "rewardstack.trainers.verifiers:reward"`, for tasks whose data name
their route in `data_source`. In a task of one's own `@vf.reward` calls it, and says the route (`docs/trainers.md`).
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
"""Fields of a task's data that hold the reference; the first that is there counts."""


async def reward(task: vf.TaskData, trace: vf.Trace, data_source: str = "") -> float:
    """The reward of a rollout's last reply; `trace.info["rewardstack"]` then says how it came about.

    Args:
        task: its data: the prompt, a reference if the route needs one, `extra_info` if there is any.
        trace: the rollout.
        data_source: names the route; by default the data do.

    Raises:
        ConfigError: no route is named, or none is known by the name.
        ScoringError: the sample has no score, by which the rollout ends in an error instead of a 0.
    """
    source = data_source or getattr(task, "data_source", "")
    if not source:
        raise RequestError("the task's data name no route: give them data_source, or say it in the call", "data_source")
    reference = first_of(getattr(task, name, None) for name in REFERENCES)
    extra = options_of(getattr(task, "extra_info", None), {"question": task.prompt_text})
    [score] = await ascore([Request(source, trace.last_reply, reference, extra)], on_error="raise")
    trace.info["rewardstack"] = {"status": score.status, "reason": score.reason, "source": score.source}
    assert score.value is not None
    return score.value
