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

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rewardstack.api import ascore
from rewardstack.core.messages import Chat, has_more_than_text, response_text, to_chat
from rewardstack.errors import RequestError
from rewardstack.score import Request
from rewardstack.trainers.columns import first_present, merge_options

if TYPE_CHECKING:
    import verifiers.v1 as vf

REFERENCES = ("answer", "ground_truth", "expected_answer", "label")
"""Fields of a task's data that may have the reference; the first field that is set is used."""


async def reward(task: vf.TaskData, trace: vf.Trace, data_source: str = "") -> float:
    """Return the reward of a rollout; store status, reason and source in `trace.info["rewardstack"]`.

    Rules score the rollout's last reply; judges can also read the other turns, tool calls and tool outputs.

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
    prompt, response = _split(trace)
    messages = {"messages": prompt} if has_more_than_text(prompt) else {}
    extra = merge_options(getattr(task, "extra_info", None), {"question": task.prompt_text, **messages})
    [score] = await ascore([Request(source, response, reference, extra)], on_error="raise")
    trace.info["rewardstack"] = {"status": score.status, "reason": score.reason, "source": score.source}
    assert score.value is not None
    return score.value


def _split(trace: vf.Trace) -> tuple[Chat, str | Chat]:
    """Return the messages before the policy's first one, and those from it on, of the branch with the last reply.

    A branch is a path through the trace's graph of messages (`verifiers/v1/trace.py`, 0.4). If no branch ends with the
    last reply, e.g. because a sub-agent spoke last, the response is only this reply.
    """
    for branch in reversed(trace.branches):
        first = next((at for at, node in enumerate(branch.nodes) if node.sampled), len(branch.nodes))
        response = _to_chat(branch.nodes[first:])
        if (response_text(response) or "").strip() == trace.last_reply and response:
            return _to_chat(branch.nodes[:first]), response
    return Chat(), trace.last_reply


def _to_chat(nodes: Sequence[Any]) -> Chat:
    return to_chat([node.message.model_dump(mode="json", exclude_none=True) for node in nodes])
