"""Inspect: a scorer of any route, `Task(dataset, scorer=rewardstack("gsm8k"))`.

It needs inspect-ai 0.3.245 or later, whose scores can say that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from rewardstack.api import ascore
from rewardstack.score import OnError, Request

REASONS = {"failed": "grader_failed", "unscored": "scoring_failed"}
"""What Inspect calls a score that there is not."""


@scorer(metrics=[mean(), stderr()])
def rewardstack(data_source: str, *, options: Mapping[str, Any] | None = None, on_error: OnError = "none") -> Scorer:
    """The reward of the output; the explanation says what was wrong, the metadata what became of the sample.

    A sample without a score is no 0: it stands in the log as unscored, with the reason, and no metric counts it.

    Args:
        data_source: names the route.
        options: the route's own, as in `extra_info`.
        on_error: what a sample without a score is worth; `raise` ends the sample in an error, so that Inspect's
            `fail_on_error` and `eval-retry` apply.
    """

    async def score(state: TaskState, target: Target) -> Score:
        reference = [text for text in target if text] or None
        extra = {"question": state.input_text, **(options or {})}
        request = Request(data_source, state.output.completion, reference, extra)
        [found] = await ascore([request], on_error=on_error)
        told = {"answer": request.solution_str, "explanation": found.reason or found.source}
        told["metadata"] = {"source": found.source, **found.details}
        if found.value is None:
            return Score.unscored(reason=REASONS[found.status], **told)
        return Score(value=found.value, **told)

    return score
