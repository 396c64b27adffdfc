"""Reads what `metrics.rewards` counts from scored samples: each sample's route, range, parts and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from rewardstack.core.messages import is_conversation, last_text
from rewardstack.errors import RewardstackError
from rewardstack.routing.composite import routes_of
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.routing.shaping import Bounds, composite_bounds
from rewardstack.score import Request, Score
from rewardstack_rules.functions.registry import Registry
from rewardstack_rules.metrics.rewards import Rewards

SOURCES = 10_000
"""Number of sources whose routes are cached."""
FIXED_PARTS = frozenset({"positive", "negative", "similarity", "length_penalty", "logit"})
"""Parts that are counted of judges (the shares of a rubric's points), embedding servers and reward models."""
MOST_PARTS = 16
"""Number of part names that are counted for each reward function; further names are ignored."""
LONGEST_PART = 64
TASKS = ("problem", "prompt", "messages", "question")
"""Fields of `extra_info` that may have the problem, in the order of `scorers.judge.conversation.TASKS`."""
READ = 2048
"""Number of characters, at the start and at the end of a text, that tell groups apart."""
MOST_REFERENCES = 8


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
        self._find = lru_cache(SOURCES)(self._found)
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
            if score.value is None or score.status not in ("ok", "fallback"):
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

    def _found(self, source: str) -> Found:
        try:
            route = self._routes.find(source)
            bounds = self._bounds(source)
        except RewardstackError:  # of a part that was never asked, because another one decided
            return Found("", (0.0, 1.0), FIXED_PARTS)
        if isinstance(route.target, Leaf):
            parts = None if route.target.kind == "rule" else FIXED_PARTS
        else:
            parts = frozenset(routes_of(route.target))
        return Found(_name(route), bounds, parts)

    def _bounds(self, source: str) -> Bounds:
        """Return the range of a source; unlike the route table, this server knows those of reward functions."""
        route = self._routes.find(source)
        if isinstance(route.target, Leaf):
            if route.target.kind != "rule":
                return self._routes.bounds(source)
            found = self._registry.get(route.target.target or source[len(route.name) :]).range
        else:
            found = composite_bounds(route.target, map(self._bounds, routes_of(route.target)))
        return found if route.shaping is None else route.shaping.bounds(found)


def _name(route: Route) -> str:
    return "" if isinstance(route.target, Leaf) and route.shaping is None else route.name


def group_of(request: Request, tenant: str) -> bytes | None:
    """Return the digest of a sample's group, of 16 bytes; None if nothing tells which prompt it answers.

    A group is what has the same `extra_info["group_id"]`, else the same source, problem and references.

    Args:
        request: the sample.
        tenant: owner of the sample.
    """
    extra = request.extra_info or {}
    group = extra.get("group_id")
    if isinstance(group, (str, int)):
        parts = ["id", _text(str(group))]
    else:
        problem = next((extra[name] for name in TASKS if extra.get(name)), None)
        parts = [
            _text(last_text(problem, "user") if is_conversation(problem) else problem),
            _text(request.ground_truth),
        ]
    if not any(parts):
        return None
    return blake2b("\0".join((tenant, request.data_source, *parts)).encode("utf-8", "replace"), digest_size=16).digest()


def _text(value: Any, depth: int = 2) -> str:
    """Return a text that is short for any value, and differs for problems and references that differ."""
    if isinstance(value, str):
        return value if len(value) <= 2 * READ else f"{len(value)} {value[:READ]}{value[-READ:]}"
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        return "\1".join(_text(one, depth - 1) for one in value[:MOST_REFERENCES]) if depth else str(len(value))
    return "" if value is None else str(value)[:READ]
