"""What goes in and what comes out: `Request`, `Item` and `Score`, and the `Usage` that a score took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Status = Literal["ok", "fallback", "unscored", "failed"]
OnError = Literal["zero", "lexical", "none", "raise"]

STATUSES: tuple[Status, ...] = ("ok", "fallback", "unscored", "failed")
ON_ERROR: tuple[OnError, ...] = ("zero", "lexical", "none", "raise")
NOTHING: Mapping[str, Any] = MappingProxyType({})
NO_REFERENCE = "the reference (ground_truth) is missing or empty"
"""The reason of a sample that cannot be scored without one."""


@dataclass(slots=True)
class Request:
    """One sample to score, as a trainer hands it over.

    Args:
        data_source: names the route; several may lead to one scorer.
        solution_str: what the policy wrote, or chat messages; of both, the last assistant turn counts.
        ground_truth: a reference, a list of references, `{"target": …}` with either, or None where none is needed.
        extra_info: the route's own options, and `server_url`, `api_key`, `timeout` (seconds).
    """

    data_source: str
    solution_str: Any
    ground_truth: Any = None
    extra_info: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Item:
    """One sample as a scorer sees it: checked, its references chosen.

    Args:
        solution: what the policy wrote.
        references: the references that the filters left, in order; empty where none was given.
        extra: `extra_info`, never None.
        data_source: by which it was asked for; a route's own name, where a route leads to a reward function.
        messages: the whole response, in chat messages or with the headers of its turns; None where `solution` is all.
    """

    solution: str
    references: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    data_source: str = ""
    messages: Any = None


class Usage(NamedTuple):
    """What was asked of services that cost: of judges and embedding servers.

    Args:
        requests: sent to them, each attempt.
        prompt_tokens: that they read, by their own count.
        completion_tokens: that they wrote.
        uncounted: requests to which no reply said how many tokens they took.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0

    @classmethod
    def total(cls, usages: Iterable[Usage | None]) -> Usage:
        """All of them together; None counts as nothing."""
        return cls(*map(sum, zip(*(one for one in usages if one is not None), strict=True)))

    @property
    def words(self) -> str:
        """Such as "724 requests, 1.2 M prompt and 60 k completion tokens"."""
        if not self.requests:
            return "no requests to models"
        requests = f"{self.requests:,} request{'s' if self.requests > 1 else ''}"
        if self.uncounted >= self.requests:
            return f"{requests}, tokens unknown"
        unknown = f", those of {self.uncounted:,} unknown" if self.uncounted > 0 else ""
        tokens = f"{_brief(self.prompt_tokens)} prompt and {_brief(self.completion_tokens)} completion tokens"
        return f"{requests}, {tokens}{unknown}"


def _brief(count: int) -> str:
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1e3:,.0f} k" if count < 10**6 else f"{count / 1e6:,.1f} M"


@dataclass(slots=True)
class Score:
    """What became of one sample.

    Args:
        value: the reward, or None where there is none (then `status` is `unscored` or `failed`).
        status: `ok`, `fallback`, `unscored` or `failed`.
        reason: why, in words; empty where the value says it all.
        source: the scorer, such as `rule:gsm8k`; not the `data_source`, by which a request finds its route.
        cached: whether the value was read rather than computed.
        latency_ms: milliseconds from the call to this score.
        label_mass: probability the judge put on its labels (`verdict: "logprob"` only).
        parts: the values of a reward's parts, by name.
        agreement: share of the votes that gave the most frequent value; None where there are not several votes.
        field: of the sample that is to blame where it is `unscored`, such as `extra_info.temperature`; empty where no
            single one is.
        usage: what it took of judges and embedding servers; None where nothing, as of a cached score or of a rule. What
            several samples share stands in one of them, so that a sum counts it once.
        volatile: whether another try may end otherwise, as of a program at its time limit; it is not cached.
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

    @classmethod
    def unscored(cls, reason: str, source: str = "", field: str | None = None) -> Score:
        """A sample that cannot be judged: its reference, an option or its own shape is at fault."""
        return cls(None, "unscored", reason, source, field=field or "")

    @classmethod
    def failed(cls, reason: str, source: str = "") -> Score:
        """A sample that the infrastructure did not score."""
        return cls(None, "failed", reason, source)

    @property
    def accuracy(self) -> float | None:
        """Return what verl calls `acc`: the part `acc` or `accuracy` of the reward if it has one, else the reward.

        verl's reward managers do the same for a function that returns a number. DAPO drops the groups in which all
        samples have the same `acc`, so a reward without such a part must not be rounded to right or wrong.
        """
        parts = self.parts or {}
        return parts.get("acc", parts.get("accuracy", self.value))

    @property
    def details(self) -> dict[str, float | None]:
        """Return the same numeric keys for every sample of every service, as verl needs them.

        `score` and `acc` are None only under `on_error="none"`; `label_mass` is 0 if no labels were read.
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

    def with_value(self, value: float | None) -> Score:
        """The same outcome with another value."""
        return replace(self, value=value)
