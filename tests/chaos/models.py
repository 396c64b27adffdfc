"""The load on the model servers. The right score of a sample is the one that an idle stack gives it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from rewardstack import Request, Score
from tests.support.load.lanes import Lane
from tests.support.load.outcomes import Known

TIMEOUT = 120.0
"""Seconds that a model server may take for a sample; on the CPU it is slow."""
WAYS = ("direct", "server")
"""A model server's own address is set, or only the reward server's."""
JUDGE_WIDTH = 0.01
"""Between a judge's two labels: each sample has a place of its own on the scale, so that none passes for another."""
JUDGE_CLOSE = 0.05 * JUDGE_WIDTH
"""What the judge thinks likely varies with the batch in which vLLM computes it: with bfloat16 by up to 0.03."""
EMBEDDING_CLOSE = 0.01
QUESTION = "Is {CANDIDATE_SOLUTION} the same as {REFERENCE_SOLUTION}? A for yes, B for no."
CITIES = ("Canberra", "Sydney", "Oslo", "Bergen", "Ottawa", "Toronto", "Bern", "Zurich")
SENTENCES = (
    "Air scatters the blue part of sunlight more than the red.",
    "Blue light is scattered more strongly by air than red light.",
    "The sky looks blue because of the way air scatters sunlight.",
    "Bread rises because yeast makes gas.",
    "Yeast feeds on sugar, and the gas it makes lets the dough rise.",
    "The train to Oslo leaves at nine in the morning.",
    "At nine o'clock a train departs for Oslo.",
    "Water boils at a lower temperature on high mountains.",
)


def models(score: Callable[[Request], Score], count: int) -> list[Lane]:
    """Two lanes for each model server: directly, past every cache, and through the reward server.

    Args:
        score: returns the score of a sample on an idle stack, which is its right score.
        count: samples for each server.
    """
    judged = [measured(one, score(one), JUDGE_CLOSE) for one in _judge()[:count]]
    embedded = [measured(one, score(one), EMBEDDING_CLOSE) for one in _embedding()[:count]]
    return [
        *(Lane(f"judge {way}", way, 1.0, 2, judged) for way in WAYS),
        *(Lane(f"embedding {way}", way, 0.5, 2, embedded) for way in WAYS),
    ]


def _judge() -> list[Request]:
    """Samples whose verdicts are read from probabilities: those of a text can change with the batch."""
    extra = {
        "problem": "Which city is meant?",
        "prompt_template": QUESTION,
        "verdict": "logprob",
        "label_mass_floor": 0,
        "temperature": 0,
        "timeout": TIMEOUT,
    }
    pairs = list(product(CITIES, repeat=2))
    places = [at / len(pairs) for at in range(len(pairs))]
    labels = [{"A": place, "B": place + JUDGE_WIDTH} for place in places]
    return [
        Request("llm_judge_remote_chaos", one, other, {**extra, "labels": own})
        for (one, other), own in zip(pairs, labels, strict=True)
    ]


def _embedding() -> list[Request]:
    """Pairs of sentences, the same, alike and different; no vector is kept."""
    extra = {"timeout": TIMEOUT, "cache_enabled": False}
    return [Request("embedding_remote_chaos", one, other, extra) for one, other in product(SENTENCES, repeat=2)]


def measured(request: Request, score: Score, tolerance: float) -> Known:
    """A sample whose right score is the one of an idle stack.

    Args:
        request: the sample.
        score: of it.
        tolerance: how far off a right value may be.

    Raises:
        RuntimeError: it has no score.
    """
    if score.status != "ok" or score.value is None:
        raise RuntimeError(f"the quiet stack does not score: {score.status}: {score.reason}")
    return Known(request, score.value, tolerance)
