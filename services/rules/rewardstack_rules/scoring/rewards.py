"""Reads what `metrics.rewards` counts from scored samples: each sample's route, range, parts and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from rewardstack.core.reward_summary import SCORED, group_of
from rewardstack.errors import RewardstackError
from rewardstack.routing.composite import part_routes
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.routing.shaping import Bounds, composite_bounds
from rewardstack.score import Request, Score
from rewardstack_rules.functions.registry import Registry
from rewardstack_rules.metrics.batch import Rewards

SOURCES = 10_000
"""Number of sources whose routes are cached."""
FIXED_PARTS = frozenset({"positive", "negative", "similarity", "length_penalty", "logit"})
"""Parts that are counted of judges (the shares of a rubric's points), embedding servers and reward models."""
MOST_PARTS = 16
"""Number of part names that are counted for each reward function; further names are ignored."""
LONGEST_PART = 64
LONGEST_SOURCE = 256
"""Number of characters of a source that is cached."""


class Found(NamedTuple):
    """The route of a source.

    Args:
        name: label of the route's metrics; empty for a leaf without shaping, whose label is the scorer's name.
        bounds: the lowest and the highest value.
        parts: names of the parts that are counted; None for the first `MOST_PARTS` names.
    """

    name: str
    bounds: Bounds
    parts: frozenset[str] | None


class RewardReader:
    """Reads rewards of scored samples.

    Args:
        routes: the route table.
        registry: the reward functions, which know their ranges.
    """

    def __init__(self, routes: RouteTable, registry: Registry) -> None:
        self._routes = routes
        self._registry = registry
        self._known = lru_cache(SOURCES)(self._found)
        self._names: dict[str, set[str]] = {}

    def labels(self, requests: Sequence[Request], scores: Sequence[Score]) -> list[str]:
        """Return the label `route` of each sample: its scorer, or its route if that combines or shapes scores."""
        return [
            self._find(request.data_source).name or score.source or "none"
            for request, score in zip(requests, scores, strict=True)
        ]

    def rewards(
        self, requests: Sequence[Request], scores: Sequence[Score], labels: Sequence[str], tenant: str
    ) -> dict[str, Rewards]:
        """Return the rewards of samples with the status `ok` or `fallback`, by label.

        Args:
            requests: the samples.
            scores: their scores, in order.
            labels: their labels, from `labels`.
            tenant: owner of the samples; samples of two tenants are never one group.
        """
        found: dict[str, Rewards] = {}
        for request, score, label in zip(requests, scores, labels, strict=True):
            if score.value is None or score.status not in SCORED:
                continue
            route = self._find(request.data_source)
            rewards = found.get(label)
            if rewards is None:
                rewards = found[label] = Rewards(route.bounds, [], {}, {})
            rewards.values.append(score.value)
            if score.parts:
                for name in self._counted(label, route, score.parts):
                    rewards.parts.setdefault(name, []).append(score.parts[name])
            if (digest := group_of(request, tenant)) is not None:
                rewards.groups.setdefault(digest, []).append(score.value)
        return found

    def _counted(self, label: str, route: Found, parts: Mapping[str, float]) -> Set[str]:
        """Return the names of parts that are counted; a hostile function may return any number of names."""
        if route.parts is not None:
            return route.parts & parts.keys()
        known = self._names.setdefault(label, set())
        if len(known) < MOST_PARTS:
            known.update([name for name in parts if len(name) <= LONGEST_PART][: MOST_PARTS - len(known)])
        return known & parts.keys()

    def _find(self, source: str) -> Found:
        return self._known(source) if len(source) <= LONGEST_SOURCE else self._found(source)

    def _found(self, source: str) -> Found:
        try:
            route = self._routes.find(source)
            bounds = self._bounds(source)
        except RewardstackError:  # of a part that was never asked, because another one decided
            return Found("", (0.0, 1.0), FIXED_PARTS)
        if isinstance(route.target, Leaf):
            parts = None if route.target.kind == "rule" else FIXED_PARTS
        else:
            parts = frozenset(part_routes(route.target))
        return Found(_name(route), bounds, parts)

    def _bounds(self, source: str) -> Bounds:
        """Return the range of a source; unlike the route table, this server knows those of reward functions."""
        route = self._routes.find(source)
        if isinstance(route.target, Leaf):
            if route.target.kind != "rule":
                return self._routes.bounds(source)
            found = self._registry.get(route.leaf_target(source)).range
        else:
            found = composite_bounds(route.target, map(self._bounds, part_routes(route.target)))
        return found if route.shaping is None else route.shaping.bounds(found)


def _name(route: Route) -> str:
    return "" if isinstance(route.target, Leaf) and route.shaping is None else route.name
