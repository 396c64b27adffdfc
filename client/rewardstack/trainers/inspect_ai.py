"""Inspect (the evaluation framework inspect-ai): a scorer for any route, `Task(dataset, scorer=rewardstack("gsm8k"))`.

A route is a named way to score. This module needs inspect-ai 0.3.245 or later, because it uses `Score.unscored`.
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

    Inspect logs a sample without a reward as unscored, with the reason, and leaves it out of the metrics.

    Args:
        data_source: the route.
        options: the options of the route, as in `extra_info`.
        on_error: error policy for samples without a score; with `raise`, the sample ends with an error, so that
            Inspect's `fail_on_error` and `eval-retry` apply.
    """

    async def score(state: TaskState, target: Target) -> Score:
        reference = [text for text in target if text] or None
        extra = {"question": state.input_text, **(options or {})}
        request = Request(data_source, state.output.completion, reference, extra)
        [result] = await ascore([request], on_error=on_error)
        fields = {"answer": request.solution_str, "explanation": result.reason or result.source}
        fields["metadata"] = {"source": result.source, **result.details}
        if result.value is None:
            return Score.unscored(reason=REASONS[result.status], **fields)
        return Score(value=result.value, **fields)

    return score
