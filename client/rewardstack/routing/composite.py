"""Composite routes: weighted sum, majority, gate and cascade. See `docs/routing.md` for their syntax.

`on_part_error` says what happens if a part has no value (gates and cascades have more rules, see below):

- `"fail"`: the composite has no value either, and is `failed` if a part failed, else `unscored`.
- `"zero"`: the part counts as 0.
- `"skip"`: the part is left out.

With `"zero"` and `"skip"`, the composite's reason names the part. If the part failed, the composite's status is
`fallback`. A sum, a majority or a cascade always needs at least one part with a value.

In a gate, a `check` without a value closes the gate under `"zero"` and opens it under `"skip"`. Under `"skip"`, the
composite has no value if the gate is open and `then` has no value.

If a part of a cascade has no value, the next part scores the sample. The only exception is a failed part under
`"fail"`, which ends the cascade. If a later part has a value, the score of that part replaces the earlier scores, and
does not mention the parts without a value. If the last part has no value, but an earlier part had one, the result
depends on `on_part_error`: under `"fail"`, the cascade has no value; under `"zero"`, its value is 0; under `"skip"`,
its value is that of the last part with a value.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rewardstack.cause import Cause
from rewardstack.core.votes import agreement, majority
from rewardstack.score import Item, Score, Status

Evaluate = Callable[[str, Sequence[Item]], Awaitable[list[Score]]]
"""Scores items with the route of the given name, and returns one score for each item."""
OnPartError = Literal["fail", "zero", "skip"]
ON_PART_ERROR: tuple[OnPartError, ...] = ("fail", "zero", "skip")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a composite route.

    Args:
        route: the `data_source` whose route scores the part.
        weight: the part's factor in a sum.
        at_least: the lowest value that opens a gate, or that decides a cascade; None for no minimum.
        unsure: values between these bounds (exclusive) do not decide a cascade; None for no such range.
        agreement: minimum share of equal votes, from 0 to 1, for a value to decide a cascade; None for no minimum.
    """

    route: str
    weight: float = 1.0
    at_least: float | None = None
    unsure: tuple[float, float] | None = None
    agreement: float | None = None

    def decides(self, score: Score) -> bool:
        """Return whether this part's score, which must have a value, decides the cascade."""
        value = score.value or 0.0
        low, high = self.unsure or (value, value)
        reaches_minimum = self.at_least is None or value >= self.at_least
        return reaches_minimum and not low < value < high and (score.agreement or 0.0) >= (self.agreement or 0.0)


@dataclass(frozen=True, slots=True)
class _Combination(ABC):
    """A composite that scores every sample with all parts, concurrently."""

    parts: tuple[Part, ...]
    on_part_error: OnPartError = "fail"

    async def score(self, items: Sequence[Item], evaluate: Evaluate) -> list[Score]:
        """Return one score for each item, with the parts' values in `parts`."""
        columns = await asyncio.gather(*(evaluate(part.route, items) for part in self.parts))
        return [self._combine(row) for row in zip(*columns, strict=True)]

    @abstractmethod
    def _combine(self, scores: Sequence[Score]) -> Score:
        """Return the score of one sample, given its parts' scores in order."""
        ...


@dataclass(frozen=True, slots=True)
class WeightedSum(_Combination):
    """The weighted sum of the parts' values; `skip` distributes the weight of parts without a value over the others."""

    def _combine(self, scores: Sequence[Score]) -> Score:
        missing = _first_missing(self.parts, scores)
        if missing is not None and self.on_part_error == "fail":
            return missing
        with_value = [(part, score) for part, score in zip(self.parts, scores, strict=True) if score.value is not None]
        if not with_value:
            return missing or Score.unscored("no part has a value", cause=Cause.NO_PART)
        total = sum(part.weight * (score.value or 0.0) for part, score in with_value)
        if self.on_part_error == "skip":
            weight = sum(part.weight for part, _ in with_value)
            total *= sum(part.weight for part in self.parts) / weight if weight else 1.0
        return _composite_score(total, self.parts, scores)


@dataclass(frozen=True, slots=True)
class Majority(_Combination):
    """The most frequent value of the parts, or the mean of the most frequent values if there is a tie.

    The score's `agreement` is the share of parts with the most frequent value.
    """

    def _combine(self, scores: Sequence[Score]) -> Score:
        missing = _first_missing(self.parts, scores)
        values = [score.value for score in scores if score.value is not None]
        if not values or (missing is not None and self.on_part_error == "fail"):
            return missing or Score.unscored("no part has a value", cause=Cause.NO_PART)
        if self.on_part_error == "zero":
            values += [0.0] * (len(scores) - len(values))
        return replace(_composite_score(majority(values), self.parts, scores), agreement=agreement(values, len(scores)))


@dataclass(frozen=True, slots=True)
class Gate:
    """The score of `then` for samples with a `check` value of at least `check.at_least`; else the value `otherwise`."""

    check: Part
    then: Part
    otherwise: float = 0.0
    on_part_error: OnPartError = "fail"

    async def score(self, items: Sequence[Item], evaluate: Evaluate) -> list[Score]:
        """Return one score for each item; `then` scores only items that pass `check`."""
        checks = await evaluate(self.check.route, items)
        passed = [index for index, score in enumerate(checks) if self._passes(score)]
        then_scores = await evaluate(self.then.route, [items[index] for index in passed]) if passed else []
        scores = [self._score_if_closed(score) for score in checks]
        for index, score in zip(passed, then_scores, strict=True):
            scores[index] = self._score_if_open(checks[index], score)
        return scores

    def _passes(self, check: Score) -> bool:
        if check.value is None:
            return self.on_part_error == "skip"
        return check.value >= (self.check.at_least or 0.0)

    def _score_if_closed(self, check: Score) -> Score:
        if check.value is None and self.on_part_error == "fail":
            return _without_value(self.check, check)
        reason = "" if check.value is None else f"{self.check.route} below {self.check.at_least:g}"
        return _composite_score(self.otherwise, (self.check,), (check,), reason)

    def _score_if_open(self, check: Score, then_score: Score) -> Score:
        if then_score.value is None and self.on_part_error != "zero":
            return _without_value(self.then, then_score)
        score = _composite_score(
            then_score.value or 0.0, (self.check, self.then), (check, then_score), then_score.reason
        )
        return replace(score, agreement=then_score.agreement)


@dataclass(frozen=True, slots=True)
class Cascade:
    """The score of the first part that decides, or of the last part if none does.

    The parts score in order; each part scores only the samples that no earlier part has decided.
    """

    parts: tuple[Part, ...]
    on_part_error: OnPartError = "fail"

    async def score(self, items: Sequence[Item], evaluate: Evaluate) -> list[Score]:
        """Return one score for each item; later parts score only undecided items."""
        scores: list[Score] = [Score.unscored("no part", cause=Cause.NO_PART)] * len(items)
        undecided = list(range(len(items)))
        for part in self.parts:
            part_scores = await evaluate(part.route, [items[index] for index in undecided]) if undecided else []
            scored, undecided = undecided, []
            for index, score in zip(scored, part_scores, strict=True):
                scores[index] = self._merge(scores[index], part, score)
                if not self._decides(part, score):
                    undecided.append(index)
        return scores

    def _merge(self, earlier: Score, part: Part, score: Score) -> Score:
        """Return an item's score after one more part.

        If the part has a value or `earlier` has none, the item gets the part's `score`. If only `earlier` has a value,
        the item gets no value (`fail`), 0 (`zero`), or the value of `earlier` (`skip`).
        """
        if score.value is not None or earlier.value is None or self.on_part_error == "fail":
            return score
        missing = replace(_without_value(part, score), value=0.0)
        merged = missing if self.on_part_error == "zero" else replace(earlier, reason=missing.reason)
        status = _status((earlier, score))
        return replace(merged, status=status, cause=None if status == "ok" else missing.cause)

    def _decides(self, part: Part, score: Score) -> bool:
        if score.value is None:
            return score.status == "failed" and self.on_part_error == "fail"
        return part.decides(score)


DEGRADED = ("failed", "fallback")
"""The statuses of parts that make a composite with a value a fallback."""
Composite = WeightedSum | Majority | Gate | Cascade


def part_routes(composite: Composite) -> tuple[str, ...]:
    """Return the `data_source` of each part of a composite, in order; for a gate, of `check` and `then`."""
    parts = (composite.check, composite.then) if isinstance(composite, Gate) else composite.parts
    return tuple(part.route for part in parts)


def _first_missing(parts: Sequence[Part], scores: Sequence[Score]) -> Score | None:
    """Return a score without a value for the composite if a part has no value; None if all parts have values.

    The score's status and reason are those of the first failed part, or else of the first unscored part.
    """
    for status in ("failed", "unscored"):
        for part, score in zip(parts, scores, strict=True):
            if score.value is None and score.status == status:
                return _without_value(part, score)
    return None


def _without_value(part: Part, score: Score) -> Score:
    """Return a score without a value for the composite, with the status and reason of the part's `score`."""
    reason = f"{part.route}: {score.reason}"
    return Score(None, score.status, reason, score.source, field=score.field, cause=score.cause)


def _status(scores: Sequence[Score]) -> Status:
    """Return the status of a composite with a value: `fallback` if a part failed or is a fallback, else `ok`."""
    return "fallback" if any(score.status in DEGRADED for score in scores) else "ok"


def _composite_score(value: float, parts: Sequence[Part], scores: Sequence[Score], reason: str = "") -> Score:
    missing, status = _first_missing(parts, scores), _status(scores)
    return Score(
        value,
        status,
        missing.reason if missing else reason,
        source="+".join(dict.fromkeys(score.source for score in scores if score.source)),
        cached=all(score.cached for score in scores),
        label_mass=next((score.label_mass for score in scores if score.label_mass is not None), None),
        parts={part.route: score.value for part, score in zip(parts, scores, strict=True) if score.value is not None},
        cause=None if status == "ok" else next((score.cause for score in scores if score.status in DEGRADED), None),
    )
