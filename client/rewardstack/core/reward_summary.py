"""Summarize the rewards of a batch, and identify the samples of one group for statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from rewardstack.core.messages import is_conversation, last_text
from rewardstack.score import Request, Score

SCORED = ("ok", "fallback")
"""Statuses of samples whose values are rewards."""
TASKS = ("problem", "prompt", "messages", "question")
"""Fields of `extra_info` that may have the problem; the first one with a value counts, as in
`scorers.judge.conversation.TASK_FIELDS`."""
COMPARED_CHARACTERS = 2048
"""Number of characters at the start and at the end of a long text that are compared to find groups."""
MAX_REFERENCES = 8
"""Maximum number of a sample's references that are compared to find groups."""
MAX_PARTS = 16
"""Maximum number of score components (`Score.parts`) whose means are in a summary."""
MIN_RELATIVE_STD = 1e-9
"""A standard deviation of at most this share of the mean is a rounding error and counts as 0."""


class RewardSummary(NamedTuple):
    """Statistics of a batch's rewards: the values of samples with the status `ok` or `fallback`.

    Args:
        size: number of rewards; at least 1.
        mean: mean of the rewards.
        std: population standard deviation of the rewards.
        zeros: number of rewards that are 0.
        groups: number of groups with at least two rewards.
        flat: number of these groups whose rewards are all equal, so that their GRPO advantages are 0.
        parts: mean of each score component (`Score.parts`) that all rewards have, by name.
    """

    size: int
    mean: float
    std: float
    zeros: int
    groups: int
    flat: int
    parts: dict[str, float]

    @classmethod
    def from_batch(cls, requests: Sequence[Request], scores: Sequence[Score]) -> RewardSummary | None:
        """Return the summary of a batch; None if it has no rewards."""
        rewarded = [
            (request, score, score.value)
            for request, score in zip(requests, scores, strict=True)
            if score.value is not None and score.status in SCORED
        ]
        if not rewarded:
            return None
        values = [value for _, _, value in rewarded]
        groups: dict[bytes, list[float]] = {}
        for request, _, value in rewarded:
            if (group := group_of(request)) is not None:
                groups.setdefault(group, []).append(value)
        pairs = [group for group in groups.values() if len(group) > 1]
        mean = math.fsum(values) / len(values)
        std = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
        flat = sum(min(group) == max(group) for group in pairs)
        std = std if std > MIN_RELATIVE_STD * abs(mean) else 0.0
        parts = _parts([score for _, score, _ in rewarded])
        return cls(len(values), mean, std, values.count(0.0), len(pairs), flat, parts)

    @property
    def text(self) -> str:
        """A summary such as "512 rewards, mean 0.42, std 0.49, 58% zeros, 3 of 64 groups with all rewards equal"."""
        groups = f", {self.flat:,} of {self.groups:,} groups with all rewards equal" if self.groups else ""
        parts = "".join(f", {name} {mean:.3g}" for name, mean in self.parts.items())
        zeros = f"{self.zeros / self.size:.0%} zeros"
        return f"{self.size:,} rewards, mean {self.mean:.3g}, std {self.std:.3g}, {zeros}{groups}{parts}"


def _parts(scores: Sequence[Score]) -> dict[str, float]:
    """Return the means of the parts that all scores have."""
    names = [name for name in scores[0].parts or () if all(name in (score.parts or ()) for score in scores)]
    return {name: math.fsum((score.parts or {})[name] for score in scores) / len(scores) for name in names[:MAX_PARTS]}


def group_of(request: Request, tenant: str = "") -> bytes | None:
    """Return the 16-byte digest of a sample's group; None if the group is unknown.

    Samples are in the same group if they have the same `data_source` and `extra_info["group_id"]`, or, without group
    IDs, the same `data_source`, problem and references. The group is unknown if the sample has neither a group ID, nor
    a problem, nor references.

    Use this for statistics only: it accepts any sample, and compares only parts of long texts. Judges use
    `scorers.judge.groups.group_name`, which compares whole texts, and raises if a sample has neither group ID nor
    problem.

    Args:
        request: the sample.
        tenant: owner of the sample; samples of different tenants are never in one group.
    """
    extra = request.extra_info if isinstance(request.extra_info, Mapping) else {}
    group = extra.get("group_id")
    if isinstance(group, (str, int)):
        parts = ["id", _text(str(group))]
    else:
        problem = problem_of(extra)
        parts = [
            _text(last_text(problem, "user") if is_conversation(problem) else problem),
            _text(request.ground_truth),
        ]
    if not any(parts):
        return None
    text = "\0".join((tenant, request.data_source, *parts))
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def problem_of(extra: Mapping[str, Any]) -> Any:
    """Return the problem in `extra_info`, as a string or chat messages; None if there is no problem."""
    values = (extra.get(name) for name in TASKS)
    return next((value for value in values if value is not None and not (isinstance(value, str) and not value)), None)


def _text(value: Any, depth: int = 2) -> str:
    """Return a short text for a problem or reference; different values usually have different texts."""
    if isinstance(value, str):
        if len(value) <= 2 * COMPARED_CHARACTERS:
            return value
        return f"{len(value)} {value[:COMPARED_CHARACTERS]}{value[-COMPARED_CHARACTERS:]}"
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        return "\1".join(_text(element, depth - 1) for element in value[:MAX_REFERENCES]) if depth else str(len(value))
    return "" if value is None else str(value)[:COMPARED_CHARACTERS]
