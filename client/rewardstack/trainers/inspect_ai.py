"""Inspect: a scorer for any route (a named way to score), `Task(dataset, scorer=rewardstack("gsm8k"))`.

This module needs inspect-ai 0.3.245 or later, for `Score.unscored`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from rewardstack.api import ascore
from rewardstack.score import OnError, Request

REASONS = {"failed": "grader_failed", "unscored": "scoring_failed"}
"""Inspect's reasons for a missing score, by status."""


@scorer(metrics=[mean(), stderr()])
def rewardstack(data_source: str, *, options: Mapping[str, Any] | None = None, on_error: OnError = "none") -> Scorer:
    """Return a scorer whose score is the reward, with the reason as explanation and the status in the metadata.

    A sample without a reward is logged as unscored, with the reason, and metrics do not count it.

    Args:
        data_source: the route.
        options: the options of the route, as in `extra_info`.
        on_error: reward of a sample that cannot be scored; `raise` ends the sample in an error, so that Inspect's
            `fail_on_error` and `eval-retry` apply.
    """

    async def score(state: TaskState, target: Target) -> Score:
        reference = [text for text in target if text] or None
        extra = {"question": state.input_text, **(options or {})}
        request = Request(data_source, state.output.completion, reference, extra)
        [found] = await ascore([request], on_error=on_error)
        fields = {"answer": request.solution_str, "explanation": found.reason or found.source}
        fields["metadata"] = {"source": found.source, **found.details}
        if found.value is None:
            return Score.unscored(reason=REASONS[found.status], **fields)
        return Score(value=found.value, **fields)

    return score
