"""Make samples with known scores; each call makes new samples, so that no cache has their scores."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from rewardstack.score import Request, Score

ServiceName = Literal["rules", "judge", "embedding", "reward-model"]

TOLERANCE = 0.05
"""Maximum difference between two scores of the same sample: model servers round differently in different batches."""
TIMEOUT = 120.0
"""Maximum seconds that a model server may take for a sample; a CPU is slow."""
PROBLEM = "A baker sells 12 loaves a day on five days and 30 on Saturday. How many in the week?"
REFERENCE = "5 * 12 = 60 and 60 + 30 = 90. The answer is 90."


class Sample(NamedTuple):
    """A sample and the range of its right score.

    Args:
        request: the sample.
        low: lowest right value.
        high: highest right value.
        service: service that scores the sample.
        cacheable: whether the score is cached; scores of rules that run in the server's own process are not.
        exact: whether two scores of the sample differ by at most `TOLERANCE`. Written verdicts of a judge can differ
            more: they depend on the batch size, even at temperature 0.
    """

    request: Request
    low: float
    high: float
    service: ServiceName
    cacheable: bool = True
    exact: bool = True

    def describe_fault(self, score: Score) -> str:
        """Return what is wrong with a score; empty if it is right."""
        if score.status != "ok" or score.value is None:
            return f"{self.request.data_source}: {score.status}: {score.reason}"
        if not self.low <= score.value <= self.high:
            return f"{self.request.data_source}: {score.value}, expected {self.low:g} to {self.high:g}"
        return ""

    def with_timeout(self, seconds: float) -> Sample:
        """Return the same sample with a timeout of `seconds`."""
        request = self.request
        extra = {**(request.extra_info or {}), "timeout": seconds}
        return self._replace(request=Request(request.data_source, request.solution_str, request.ground_truth, extra))


def make_rule_samples() -> list[Sample]:
    """Return samples with right and wrong responses for several rules; an isolated process scores the last sample."""
    run = uuid.uuid4().hex
    return [
        _rule_sample("gsm8k", f"Run {run}: 5 * 12 + 30 = 90.\n#### 90", "90", 1.0),
        _rule_sample("gsm8k", f"Run {run}: 12 + 30 = 42.\n#### 42", "90", 0.0),
        _rule_sample("math", f"Run {run}: hence $x = \\boxed{{\\frac{{2}}{{4}}}}$.", "\\frac{1}{2}", 1.0),
        _rule_sample("math", f"Run {run}: hence $x = \\boxed{{\\frac{{3}}{{4}}}}$.", "\\frac{1}{2}", 0.0),
        _rule_sample("math_verifier", f"<think>Run {run}.</think><answer>$3$</answer>", "3", 1.5),
        _rule_sample("rule_remote_exact_match", run, run, 1.0),
        Sample(Request("rule_remote_regex_format", run, None, {"pattern": "[0-9a-f]{32}"}), 1.0, 1.0, "rules"),
    ]


def _rule_sample(source: str, response: str, reference: str, value: float) -> Sample:
    return Sample(Request(source, response, reference), value, value, "rules", cacheable=False)


def make_judge_samples() -> list[Sample]:
    """Return a sample with a written verdict, and a sample whose verdict is read from token probabilities.

    Every verdict from 0 to 1 is right, because the quality of the judge is not checked.
    """
    response = f"Run {uuid.uuid4().hex}: five days of 12 loaves are 60, with Saturday 60 + 30 = 90. The answer is 90."
    text = {"problem": PROBLEM, "temperature": 0, "timeout": TIMEOUT}
    logprob = {**text, "prompt_template": "binary", "verdict": "logprob", "label_mass_floor": 0}
    requests = [Request("llm_judge_remote_check", response, REFERENCE, extra) for extra in (text, logprob)]
    return [Sample(requests[0], 0.0, 1.0, "judge", exact=False), Sample(requests[1], 0.0, 1.0, "judge")]


def make_embedding_samples() -> list[Sample]:
    """Return a pair of equal texts and a pair of different texts."""
    text = f"Run {uuid.uuid4().hex}: air scatters the blue part of sunlight more than the red."
    extra = {"timeout": TIMEOUT}
    return [
        _embedding_sample(text, text, extra, 1 - TOLERANCE, 1.0),
        _embedding_sample("Bread rises because yeast makes gas.", text, extra, 0.0, 1 - TOLERANCE),
    ]


def _embedding_sample(response: str, reference: str, extra: Mapping[str, Any], low: float, high: float) -> Sample:
    return Sample(Request("embedding_remote_check", response, reference, extra), low, high, "embedding")


def make_reward_model_samples() -> list[Sample]:
    """Return a sample with a right answer and a sample with a wrong answer. Any score of these samples is accepted."""
    run = uuid.uuid4().hex
    extra = {"problem": PROBLEM, "timeout": TIMEOUT}
    requests = [Request("reward_model", f"Run {run}: the answer is {one}.", None, extra) for one in (90, 42)]
    return [Sample(request, -math.inf, math.inf, "reward-model") for request in requests]


SAMPLE_MAKERS = {
    "rules": make_rule_samples,
    "judge": make_judge_samples,
    "embedding": make_embedding_samples,
    "reward-model": make_reward_model_samples,
}


def make_samples(*services: ServiceName) -> list[Sample]:
    """Return new samples of these services."""
    return [sample for service in services for sample in SAMPLE_MAKERS[service]()]
