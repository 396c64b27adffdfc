"""Composite routes: weighted sum, majority, gate and cascade. See `docs/routing.md` for their syntax.

`on_part_error` says what happens if a part has no value. `"fail"`: the composite has no value either, and is `failed`
if a part failed, else `unscored`. `"zero"`: the part counts as 0. `"skip"`: the part is left out. With `"zero"` and
`"skip"` the reason of the composite names the part, and the status is `fallback` if the part failed. A sum or a
majority always needs at least one part with a value.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rewardstack.core.votes import agreement, majority
from rewardstack.score import Item, Score, Status

Evaluate = Callable[[str, Sequence[Item]], Awaitable[list[Score]]]
"""Scores items by the route with the given name, and returns one score for each item."""
OnPartError = Literal["fail", "zero", "skip"]
ON_PART_ERROR: tuple[OnPartError, ...] = ("fail", "zero", "skip")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a composite route.

    Args:
        route: the `data_source` by which the part is scored.
        weight: the part's factor in a sum.
        at_least: the lowest value that opens a gate, or that decides a cascade; None if any value decides.
        unsure: lower and upper bound of the values that do not decide a cascade, without the bounds; None for none.
        agreement: share of votes, from 0 to 1, that must agree for a value to decide a cascade; None for any share.
    """

    route: str
    weight: float = 1.0
    at_least: float | None = None
    unsure: tuple[float, float] | None = None
    agreement: float | None = None

    def decides(self, score: Score) -> bool:
        """Return whether a score with a value ends the cascade."""
        value = score.value or 0.0
        low, high = self.unsure or (value, value)
        enough = self.at_least is None or value >= self.at_least
        return enough and not low < value < high and (score.agreement or 0.0) >= (self.agreement or 0.0)


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
    """The weighted sum of the parts' values; the weight of skipped parts is distributed to the remaining parts."""

    def _combine(self, scores: Sequence[Score]) -> Score:
        valueless = _valueless(self.parts, scores)
        if valueless is not None and self.on_part_error == "fail":
            return valueless
        there = [(part, score) for part, score in zip(self.parts, scores, strict=True) if score.value is not None]
        if not there:
            return valueless or Score.unscored("no part has a value")
        total = sum(part.weight * (score.value or 0.0) for part, score in there)
        if self.on_part_error == "skip":
            whole, present = sum(p.weight for p in self.parts), sum(p.weight for p, _ in there)
            total *= whole / present if present else 1.0
        return _whole(total, self.parts, scores)


@dataclass(frozen=True, slots=True)
class Majority(_Combination):
    """The most frequent value of the parts, or the mean of equally frequent values; `agreement` is its share."""

    def _combine(self, scores: Sequence[Score]) -> Score:
        valueless = _valueless(self.parts, scores)
        values = [score.value for score in scores if score.value is not None]
        if not values or (valueless is not None and self.on_part_error == "fail"):
            return valueless or Score.unscored("no part has a value")
        if self.on_part_error == "zero":
            values += [0.0] * (len(scores) - len(values))
        return replace(_whole(majority(values), self.parts, scores), agreement=agreement(values, len(scores)))


@dataclass(frozen=True, slots=True)
class Gate:
    """The score of `then` for samples whose `check` reaches its `at_least`, else the value `otherwise`."""

    check: Part
    then: Part
    otherwise: float = 0.0
    on_part_error: OnPartError = "fail"

    async def score(self, items: Sequence[Item], evaluate: Evaluate) -> list[Score]:
        """Return one score for each item; `then` scores only items that pass `check`."""
        checks = await evaluate(self.check.route, items)
        passed = [at for at, score in enumerate(checks) if self._passes(score)]
        inner = await evaluate(self.then.route, [items[at] for at in passed]) if passed else []
        scores = [self._closed(score) for score in checks]
        for at, score in zip(passed, inner, strict=True):
            scores[at] = self._opened(checks[at], score)
        return scores

    def _passes(self, check: Score) -> bool:
        if check.value is None:
            return self.on_part_error == "skip"
        return check.value >= (self.check.at_least or 0.0)

    def _closed(self, check: Score) -> Score:
        if check.value is None and self.on_part_error == "fail":
            return _named(self.check, check)
        reason = "" if check.value is None else f"{self.check.route} below {self.check.at_least:g}"
        return _whole(self.otherwise, (self.check,), (check,), reason)

    def _opened(self, check: Score, inner: Score) -> Score:
        if inner.value is None and self.on_part_error != "zero":
            return _named(self.then, inner)
        opened = _whole(inner.value or 0.0, (self.check, self.then), (check, inner), inner.reason)
        return replace(opened, agreement=inner.agreement)


@dataclass(frozen=True, slots=True)
class Cascade:
    """Parts that score in order, each only the samples that no earlier part has decided.

    The first part that decides gives the score; if none does, the last part.
    """

    parts: tuple[Part, ...]
    on_part_error: OnPartError = "fail"

    async def score(self, items: Sequence[Item], evaluate: Evaluate) -> list[Score]:
        """Return one score for each item; later parts score only undecided items."""
        scores: list[Score] = [Score.unscored("no part")] * len(items)
        open_items = list(range(len(items)))
        for part in self.parts:
            found = await evaluate(part.route, [items[at] for at in open_items]) if open_items else []
            asked, open_items = open_items, []
            for at, score in zip(asked, found, strict=True):
                scores[at] = self._updated(scores[at], part, score)
                if not self._decides(part, score):
                    open_items.append(at)
        return scores

    def _updated(self, earlier: Score, part: Part, score: Score) -> Score:
        """Return an item's score after one more part; with `zero` or `skip`, a part without a value removes none."""
        if score.value is not None or earlier.value is None or self.on_part_error == "fail":
            return score
        valueless = replace(_named(part, score), value=0.0)
        kept = valueless if self.on_part_error == "zero" else replace(earlier, reason=valueless.reason)
        return replace(kept, status=_status((earlier, score)))

    def _decides(self, part: Part, score: Score) -> bool:
        if score.value is None:
            return score.status == "failed" and self.on_part_error == "fail"
        return part.decides(score)


Composite = WeightedSum | Majority | Gate | Cascade


def routes_of(composite: Composite) -> tuple[str, ...]:
    """Return the names of a composite's parts."""
    parts = (composite.check, composite.then) if isinstance(composite, Gate) else composite.parts
    return tuple(part.route for part in parts)


def _valueless(parts: Sequence[Part], scores: Sequence[Score]) -> Score | None:
    """Return the score of a composite with a part without a value (a failed part before an unscored one), else None."""
    for status in ("failed", "unscored"):
        for part, score in zip(parts, scores, strict=True):
            if score.value is None and score.status == status:
                return _named(part, score)
    return None


def _named(part: Part, score: Score) -> Score:
    return Score(None, score.status, f"{part.route}: {score.reason}", score.source, field=score.field)


def _status(scores: Sequence[Score]) -> Status:
    """Return the status of a composite with a value: `fallback` if a part failed or is a fallback, else `ok`."""
    return "fallback" if any(score.status in ("failed", "fallback") for score in scores) else "ok"


def _whole(value: float, parts: Sequence[Part], scores: Sequence[Score], reason: str = "") -> Score:
    valueless = _valueless(parts, scores)
    return Score(
        value,
        _status(scores),
        valueless.reason if valueless else reason,
        source="+".join(dict.fromkeys(score.source for score in scores if score.source)),
        cached=all(score.cached for score in scores),
        label_mass=next((score.label_mass for score in scores if score.label_mass is not None), None),
        parts={part.route: score.value for part, score in zip(parts, scores, strict=True) if score.value is not None},
    )
