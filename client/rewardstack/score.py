"""The data types of scoring: `Request`, `Item`, `Score` and `Usage`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from rewardstack.cause import Cause

Status = Literal["ok", "fallback", "unscored", "failed"]
OnError = Literal["zero", "lexical", "none", "raise"]

STATUSES: tuple[Status, ...] = ("ok", "fallback", "unscored", "failed")
ON_ERROR: tuple[OnError, ...] = ("zero", "lexical", "none", "raise")
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
"""The `extra_info` of a sample without options."""
NO_REFERENCE = "the reference (ground_truth) is missing or empty"
"""The reason in the score of a sample that needs a reference and has none."""

MISSING_LOG = "rewardstack.missing"
"""Name of the logger that warns, once per batch, about samples that are failed, unscored or scored by a substitute.
Callers that report these samples themselves, such as the command line, silence this logger."""


@dataclass(slots=True)
class Request:
    """One sample to score, as passed by a trainer.

    Args:
        data_source: name of the data set, which selects the route (how to score the sample).
        solution_str: the response, as a string or as chat messages; only the last assistant turn is scored.
        ground_truth: a reference, or a list of references. Either may be inside an object, as `{"target": …}`. None if
            no reference is needed.
        extra_info: options of the scorer, and `server_url`, `api_key` and `timeout` (seconds) for this sample.
    """

    data_source: str
    solution_str: Any
    ground_truth: Any = None
    extra_info: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Item:
    """One validated sample for a scorer.

    Args:
        solution: the last assistant turn of the response.
        references: the references that pass the filters in `extra_info` (such as `target_gt`), in order.
        extra: the request's `extra_info`; empty if that is None.
        data_source: the `data_source` of the request.
        messages: the whole response, as chat messages or a `Transcript`; None if `solution` is the whole response.
        transcript: how the response was split into turns (`rewardstack_verifier.transcript.TRANSCRIPTS`).
    """

    solution: str
    references: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_OPTIONS)
    data_source: str = ""
    messages: Any = None
    transcript: str = "auto"


class Usage(NamedTuple):
    """Requests to judges, reward models and embedding servers, and their tokens.

    Args:
        requests: number of requests, including retries.
        prompt_tokens: prompt tokens, as the servers report them.
        completion_tokens: completion tokens, as the servers report them.
        uncounted: number of requests minus the number of replies that reported tokens. It is negative if a reply is
            counted in this usage, but its request in the usage of another score.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0

    @classmethod
    def total(cls, usages: Iterable[Usage | None]) -> Usage:
        """Return the sum of usages; None counts as nothing."""
        return cls(*map(sum, zip(*(usage for usage in usages if usage is not None), strict=True)))

    @property
    def summary(self) -> str:
        """A summary such as "724 requests, 1.2 M prompt and 60 k completion tokens"."""
        if not self.requests:
            return "no requests to models"
        requests = f"{self.requests:,} request{'s' if self.requests > 1 else ''}"
        if self.uncounted >= self.requests:
            return f"{requests}, tokens unknown"
        unknown = f" (unknown for {self.uncounted:,} of the requests)" if self.uncounted > 0 else ""
        tokens = f"{_brief(self.prompt_tokens)} prompt and {_brief(self.completion_tokens)} completion tokens"
        return f"{requests}, {tokens}{unknown}"


def _brief(count: int) -> str:
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1e3:,.0f} k" if count < 10**6 else f"{count / 1e6:,.1f} M"


@dataclass(slots=True)
class Score:
    """The score of one sample.

    Args:
        value: the reward; None if the sample has no score (then `status` is `unscored` or `failed`).
        status: `ok`, `fallback` (a substitute score), `unscored` (bad data) or `failed` (infrastructure).
        reason: explanation of the score; may be empty.
        source: the scorer, such as `rule:gsm8k`; not the `data_source`.
        cached: whether the value was read from a cache.
        latency_ms: milliseconds from the call to this score.
        label_mass: total probability of the one-token answers (labels) from which a judge's verdict is computed; set
            only for judges with `verdict: "logprob"`.
        parts: the values of the reward's components, by name; None if the reward has no components.
        agreement: share of the votes with the most frequent value; None if the score does not come from several votes.
        field: the invalid field of an `unscored` sample, such as `extra_info.temperature`; empty if the cause is not a
            single field.
        usage: usage of model servers; None if no request was sent, e.g. for a cached score or a rule. If several
            samples share a request, only one of their scores has the usage of the request, so that sums count it once.
        volatile: whether scoring the sample again may give another value, e.g. because a program reached its time
            limit. Such a score is not cached.
        cause: why the status is not `ok`; None if it is, or if nobody knows.
    """

    value: float | None
    status: Status = "ok"
    reason: str = ""
    source: str = ""
    cached: bool = False
    latency_ms: float = 0.0
    label_mass: float | None = None
    parts: dict[str, float] | None = None
    agreement: float | None = None
    field: str = ""
    usage: Usage | None = None
    volatile: bool = False
    cause: Cause | None = None

    @classmethod
    def unscored(cls, reason: str, source: str = "", field: str | None = None, cause: Cause | None = None) -> Score:
        """Return the score of a sample with an invalid reference, option or format."""
        return cls(None, "unscored", reason, source, field=field or "", cause=cause)

    @classmethod
    def failed(cls, reason: str, source: str = "", cause: Cause | None = None) -> Score:
        """Return the score of a sample that could not be scored because of an infrastructure failure."""
        return cls(None, "failed", reason, source, cause=cause)

    @property
    def accuracy(self) -> float | None:
        """The value of verl's `acc`: the part `acc` or `accuracy` of the reward if it has one, else the reward.

        verl's reward managers also use the reward as `acc` if a reward function returns only a number. The reward is
        not rounded to 0 or 1: rounding makes values equal, and DAPO drops groups in which all `acc` are equal.
        """
        parts = self.parts or {}
        return parts.get("acc", parts.get("accuracy", self.value))

    @property
    def details(self) -> dict[str, float | None]:
        """The score as a dict of numbers, with the same keys for every sample and service, as verl requires.

        `score` and `acc` are None only under `on_error="none"`; `label_mass` is 0 if the score has none.
        """
        return {
            "score": self.value,
            "acc": self.accuracy,
            "ok": float(self.status == "ok"),
            "fallback": float(self.status == "fallback"),
            "unscored": float(self.status == "unscored"),
            "failed": float(self.status == "failed"),
            "cached": float(self.cached),
            "latency_ms": self.latency_ms,
            "label_mass": self.label_mass or 0.0,
        }

    def copy(self, usage: Usage | None = None) -> Score:
        """Return a copy that can be changed without changing this score; the copy gets the given `usage`."""
        return Score(
            self.value,
            self.status,
            self.reason,
            self.source,
            self.cached,
            self.latency_ms,
            self.label_mass,
            None if self.parts is None else dict(self.parts),
            self.agreement,
            self.field,
            usage,
            self.volatile,
            self.cause,
        )

    def with_value(self, value: float | None) -> Score:
        """Return a copy with another value."""
        return replace(self, value=value)
