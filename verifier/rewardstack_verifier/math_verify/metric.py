"""Score responses against gold answers: `math_metric`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from rewardstack_verifier.math_verify.grader import verify
from rewardstack_verifier.math_verify.parser import ExprExtractionConfig, ExtractionTarget, parse

Metric = Callable[[list[str], list[str]], tuple[float, tuple[list[str], list[str]] | None]]
"""A function that takes gold texts and responses, and returns a score and the answers extracted from both."""


def math_metric(
    gold_extraction_target: Sequence[ExtractionTarget] = (ExprExtractionConfig(),),
    pred_extraction_target: Sequence[ExtractionTarget] = (ExprExtractionConfig(),),
    aggregation_function: Callable[[list[float]], float] = max,
    precision: int = 6,
) -> Metric:
    """Return a function that scores responses against gold answers.

    Args:
        gold_extraction_target: where the answer of a gold text may be.
        pred_extraction_target: where the answer of a response may be.
        aggregation_function: combines the scores of the responses; each score is 0.0 or 1.0.
        precision: no effect; decimals are compared by the digits that they show.

    Returns:
        The scoring function. It raises ValueError if a gold text has no answer.
    """

    def score(golds: list[str], predictions: list[str]) -> tuple[float, tuple[list[str], list[str]]]:
        right = [parse(one, gold_extraction_target) for one in golds]
        answers = [parse(one, pred_extraction_target) for one in predictions]
        if not all(right):
            gold = golds[right.index([])]
            raise ValueError(f"golds: no answer found in {gold!r:.80}; put the answer into \\boxed{{}}")
        scores = [float(any(verify(one, answer) for one in right)) for answer in answers]
        return aggregation_function(scores), ([*chain(*right)], [*chain(*answers)])

    return score
