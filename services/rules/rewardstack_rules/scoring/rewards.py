"""Collect what `metrics.rewards` counts: the rewards of scored samples, with their bounds, parts and groups."""

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

MAX_CACHED_SOURCES = 10_000
"""Maximum number of sources (`data_source` names) whose `RouteInfo` is cached."""
FIXED_PARTS = frozenset({"positive", "negative", "similarity", "length_penalty", "logit"})
"""Names of the parts that are counted for judges, embedding servers and reward models.

A judge with a rubric has two parts. `positive` is how far the criteria with positive points are met, as an average from
0 to 1 that is weighted by their points. `negative` is this average for the criteria with negative points. An embedding
server has `similarity` and `length_penalty`, and a reward model has `logit`. Other parts are not counted.
"""
MAX_PARTS = 16
"""Maximum number of part names per reward function that become label values of metrics. Later names are ignored."""
MAX_PART_NAME_LENGTH = 64
"""Maximum number of characters of a part name that a reward function may choose. Longer names are not counted."""
MAX_SOURCE_LENGTH = 256
"""Maximum number of characters of a source whose `RouteInfo` is cached."""


class RouteInfo(NamedTuple):
    """What the metrics need to know about the route of a source.

    Args:
        name: the route's name if the route combines or shapes scores. The name is then the metric label. For other
            routes and unknown sources, the name is empty, and the metric label is the scorer (`Score.source`).
        bounds: the lowest and the highest possible reward.
        parts: names of the parts that are counted; None to count the first `MAX_PARTS` names.
    """

    name: str
    bounds: Bounds
    parts: frozenset[str] | None


class RewardReader:
    """Collects the rewards of scored samples.

    Args:
        routes: the route table.
        registry: the reward functions, which declare the ranges of their values.
    """

    def __init__(self, routes: RouteTable, registry: Registry) -> None:
        self._routes = routes
        self._registry = registry
        self._cached_info = lru_cache(MAX_CACHED_SOURCES)(self._read_info)
        self._names: dict[str, set[str]] = {}

    def labels(self, requests: Sequence[Request], scores: Sequence[Score]) -> list[str]:
        """Return the metric label of each sample: its route if the route combines or shapes scores, else its scorer.

        A sample without such a route and without a scorer has the label `none`.
        """
        return [
            self._info(request.data_source).name or score.source or "none"
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
            tenant: owner of the samples; samples of two tenants are never in the same group.
        """
        by_label: dict[str, Rewards] = {}
        for request, score, label in zip(requests, scores, labels, strict=True):
            if score.value is None or score.status not in SCORED:
                continue
            route = self._info(request.data_source)
            rewards = by_label.get(label)
            if rewards is None:
                rewards = by_label[label] = Rewards(route.bounds, [], {}, {})
            rewards.values.append(score.value)
            if score.parts:
                for name in self._counted_parts(label, route, score.parts):
                    rewards.parts.setdefault(name, []).append(score.parts[name])
            if (digest := group_of(request, tenant)) is not None:
                rewards.groups.setdefault(digest, []).append(score.value)
        return by_label

    def _counted_parts(self, label: str, route: RouteInfo, parts: Mapping[str, float]) -> Set[str]:
        """Return the names of the parts to count. A function may return arbitrary names, so their number is limited."""
        if route.parts is not None:
            return route.parts & parts.keys()
        known = self._names.setdefault(label, set())
        if len(known) < MAX_PARTS:
            known.update([name for name in parts if len(name) <= MAX_PART_NAME_LENGTH][: MAX_PARTS - len(known)])
        return known & parts.keys()

    def _info(self, source: str) -> RouteInfo:
        return self._cached_info(source) if len(source) <= MAX_SOURCE_LENGTH else self._read_info(source)

    def _read_info(self, source: str) -> RouteInfo:
        try:
            route = self._routes.find(source)
            bounds = self._bounds(source)
        except RewardstackError:  # an unknown source, or a part with an unknown function
            return RouteInfo("", (0.0, 1.0), FIXED_PARTS)
        if isinstance(route.target, Leaf):
            parts = None if route.target.kind == "rule" else FIXED_PARTS
        else:
            parts = frozenset(part_routes(route.target))
        return RouteInfo(_name(route), bounds, parts)

    def _bounds(self, source: str) -> Bounds:
        """Return the bounds of a source's rewards. Unlike `RouteTable.bounds`, use the declared ranges of functions."""
        route = self._routes.find(source)
        if isinstance(route.target, Leaf):
            if route.target.kind != "rule":
                return self._routes.bounds(source)
            bounds = self._registry.get(route.leaf_target(source)).range
        else:
            bounds = composite_bounds(route.target, map(self._bounds, part_routes(route.target)))
        return bounds if route.shaping is None else route.shaping.bounds(bounds)


def _name(route: Route) -> str:
    return "" if isinstance(route.target, Leaf) and route.shaping is None else route.name
