"""Samples whose right score is known beforehand, new ones at each call, so that no cache has met them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from rewardstack.score import Request, Score

ServiceName = Literal["rules", "judge", "embedding"]

CLOSE = 0.05
"""How far two scores of one sample may be apart where model servers compute them in batches of other sizes."""
TIMEOUT = 120.0
"""Seconds that a model server may take for a sample; one on a processor has not much to give."""
PROBLEM = "A baker sells 12 loaves a day on five days and 30 on Saturday. How many in the week?"
REFERENCE = "5 * 12 = 60 and 60 + 30 = 90. The answer is 90."


class Sample(NamedTuple):
    """One sample, and what its score must be.

    Args:
        request: the sample.
        low: the least value that is right.
        high: the greatest.
        service: that scores it.
        kept: whether its score is worth keeping: what a rule decides at once need not come from a cache.
        exact: whether it is worth the same in a batch of any size; a judge's written verdict is not, at temperature 0
            neither.
    """

    request: Request
    low: float
    high: float
    service: ServiceName
    kept: bool = True
    exact: bool = True

    def fault(self, score: Score) -> str:
        """What is wrong with a score, in words; empty for nothing."""
        if score.status != "ok" or score.value is None:
            return f"{self.request.data_source}: {score.status}: {score.reason}"
        if not self.low <= score.value <= self.high:
            return f"{self.request.data_source}: {score.value} where {self.low:g} to {self.high:g} is right"
        return ""

    def within(self, seconds: float) -> Sample:
        """The same sample, given up after `seconds`."""
        request = self.request
        extra = {**(request.extra_info or {}), "timeout": seconds}
        return self._replace(request=Request(request.data_source, request.solution_str, request.ground_truth, extra))


def rules() -> list[Sample]:
    """Samples of several reward functions, right and wrong ones; the last runs in a process of its own."""
    run = uuid.uuid4().hex
    return [
        _rule("gsm8k", f"Run {run}: 5 * 12 + 30 = 90.\n#### 90", "90", 1.0),
        _rule("gsm8k", f"Run {run}: 12 + 30 = 42.\n#### 42", "90", 0.0),
        _rule("math", f"Run {run}: hence $x = \\boxed{{\\frac{{2}}{{4}}}}$.", "\\frac{1}{2}", 1.0),
        _rule("math", f"Run {run}: hence $x = \\boxed{{\\frac{{3}}{{4}}}}$.", "\\frac{1}{2}", 0.0),
        _rule("math_verifier", f"<think>Run {run}.</think><answer>$3$</answer>", "3", 1.5),
        _rule("rule_remote_exact_match", run, run, 1.0),
        Sample(Request("rule_remote_regex_format", run, None, {"pattern": "[0-9a-f]{32}"}), 1.0, 1.0, "rules"),
    ]


def _rule(source: str, response: str, reference: str, value: float) -> Sample:
    return Sample(Request(source, response, reference), value, value, "rules", kept=False)


def judge() -> list[Sample]:
    """A sample whose verdict is a text, and one whose verdict is read from probabilities.

    How good the judge is does not matter here: every verdict from 0 to 1 is right.
    """
    response = f"Run {uuid.uuid4().hex}: five days of 12 loaves are 60, with Saturday 60 + 30 = 90. The answer is 90."
    text = {"problem": PROBLEM, "temperature": 0, "timeout": TIMEOUT}
    logprob = {**text, "prompt_template": "binary", "verdict": "logprob", "label_mass_floor": 0}
    requests = [Request("llm_judge_remote_check", response, REFERENCE, extra) for extra in (text, logprob)]
    return [Sample(requests[0], 0.0, 1.0, "judge", exact=False), Sample(requests[1], 0.0, 1.0, "judge")]


def embedding() -> list[Sample]:
    """A text and itself, and a text and another one."""
    text = f"Run {uuid.uuid4().hex}: air scatters the blue part of sunlight more than the red."
    extra = {"timeout": TIMEOUT}
    return [
        _pair(text, text, extra, 1 - CLOSE, 1.0),
        _pair("Bread rises because yeast makes gas.", text, extra, 0.0, 1 - CLOSE),
    ]


def _pair(response: str, reference: str, extra: Mapping[str, Any], low: float, high: float) -> Sample:
    return Sample(Request("embedding_remote_check", response, reference, extra), low, high, "embedding")


MAKERS = {"rules": rules, "judge": judge, "embedding": embedding}


def samples(*services: ServiceName) -> list[Sample]:
    """New ones of these services."""
    return [sample for service in services for sample in MAKERS[service]()]
