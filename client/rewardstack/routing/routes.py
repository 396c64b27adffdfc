"""The route table: maps a `data_source` (short: source) to the route with the longest matching prefix.

A `Route` defines how the samples of a source are scored. Its target is either a leaf, which has one scorer, or a
composite of other routes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rewardstack.core.imports import import_lock
from rewardstack.errors import RouteError, UnknownSourceError
from rewardstack.routing.composite import Cascade, Composite, part_routes
from rewardstack.routing.judges import Comparison, NamedJudge
from rewardstack.routing.reward_models import DEFAULT_FLOOR, REWARD_MODEL, RewardModel
from rewardstack.routing.shaping import BELOW_ZERO, NOT_NEGATIVE, RULE_BOUNDS, UNIT, Bounds, Shaping, composite_bounds
from rewardstack.routing.sources import DATA_SOURCES, EMBEDDING, JUDGE, PREFIXES, RULE_PREFIX
from rewardstack.score import OnError

RULES = (
    *("exact_match", "gsm8k", "math", "math_verifier", "multiple_choice"),
    *("qa_match", "list_match", "grid_match", "json_match"),
    *("code", "json_schema", "length", "overlong", "regex_format", "repetition"),
    *("example_coding", "example_math", "example_safety"),
)
"""The reward functions that every reward server has; a test compares this list with the server's registry."""
RULE_OPTIONS = (
    *("method", "format_score", "ngram_size", "repetition_unit", "pattern", "pattern_match", "schema"),
    *("target_length", "min_length", "max_length", "length_buffer", "length_unit"),
    *("extraction", "tolerance", "simplified"),
    *("completion_tokens", "max_response_length", "overlong_buffer", "overlong_penalty"),
    *("score", "time_limit", "memory_mb", "compare", "max_tests", "language", "extract"),
    *("metric", "answer_in", "floor", "max_tags", "punctuation", "ordered", "extra_rows", "json_fields", "typed"),
)
"""The fields of `extra_info` that the functions in `RULES` read; a test compares them with the server's registry."""
CODE = "code"
"""The reward function that runs programs."""
SINGLE_REFERENCE = (CODE, "list_match", "grid_match", "json_match")
"""Reward functions whose ground truth is one value, for example a set of tests, also if it is a list."""
MAX_CACHED = 4096
"""Maximum number of sources whose route is cached."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A route target with one scorer.

    Args:
        kind: kind of the scorer: `rule`, `judge`, `embedding` or `reward_model`.
        target: argument of the scorer, such as the name of a reward function. If it is empty, the argument is the part
            of the source after the route's name.
        judge: the judge in a routes file; None for the judge at `LLM_JUDGE_SERVER_URL`, and for other kinds of scorers.
        reward_model: the reward model; None for other kinds of scorers.
    """

    kind: str
    target: str
    judge: NamedJudge | None = None
    reward_model: RewardModel | None = None

    @property
    def verdict_identity(self) -> tuple[object, ...]:
        """The judge's `NamedJudge.verdict_identity`; empty for leaves without a named judge."""
        return () if self.judge is None else self.judge.verdict_identity

    @property
    def comparison(self) -> Comparison | None:
        """How the judge compares the members of a group; None if the leaf scores each sample alone."""
        return None if self.judge is None else self.judge.comparison

    @property
    def single_route(self) -> str:
        """The route that scores groups of one member; empty for none."""
        return "" if self.comparison is None else self.comparison.single_route


@dataclass(frozen=True, slots=True)
class Route:
    """Maps a source or a prefix of sources to a target.

    Args:
        name: the source or the prefix.
        target: the leaf or composite that scores the samples.
        exact: True to match the source `name`, and sources that begin with `name` and an underscore; False to match all
            sources that begin with `name`.
        on_error: policy for samples without a score; None for the default. If the route's values can be negative, the
            default is `raise`. Otherwise, the default is `zero` for a composite, and `Scorer.on_error` for a leaf.
        is_replaceable: whether another route of the same name may replace this route.
        shaping: shaping of the route's values; None to leave the values unchanged.
        transcript: how to split responses into turns; None for the process's setting.
    """

    name: str
    target: Leaf | Composite
    exact: bool = True
    on_error: OnError | None = None
    is_replaceable: bool = False
    shaping: Shaping | None = None
    transcript: str | None = None

    @property
    def pattern(self) -> str:
        """The route's name, with a `*` at the end if any suffix matches."""
        return self.name if self.exact else f"{self.name}*"

    def matches(self, source: str) -> bool:
        """Return whether the route matches `source`."""
        if not source.startswith(self.name):
            return False
        return not self.exact or len(source) == len(self.name) or source[len(self.name)] == "_"

    def leaf_target(self, source: str) -> str:
        """Return the scorer's argument for `source`: the leaf's `target` if it has one, else the source's suffix."""
        assert isinstance(self.target, Leaf)
        return self.target.target or source[len(self.name) :]


@dataclass(frozen=True, slots=True)
class _ResolvedRoute:
    """A source's route and properties derived from the route; `RouteTable` has a method for each field."""

    route: Route
    bounds: Bounds
    has_single_reference: bool
    comparisons: tuple[Comparison, ...]


class RouteTable:
    """All routes; the route with the longest matching prefix scores a source.

    A route matches its name and every source that begins with its name and an underscore, so `gsm8k_train` needs no
    route. For this reason, a misspelled source can match a shorter route than the one that is meant: `math_verifer`
    (without the second `i`) is scored by `math`, not by `math_verifier`. A warning then names the route that is
    probably meant.
    """

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self._routes: dict[str, Route] = {}
        self._resolved: dict[str, _ResolvedRoute] = {}
        for route in routes:
            self.add(route)

    def add(self, route: Route) -> None:
        """Add a route, or replace the route of the same name if that route is replaceable.

        Raises:
            RouteError: another route has this name and is not replaceable.
        """
        other = self._routes.get(route.name)
        if other is not None and not other.is_replaceable:
            why = "is built-in; choose another name" if other in builtin_routes() else "is defined twice; rename one"
            raise RouteError(f"route {route.name!r} {why}", route.name)
        self._routes[route.name] = route
        self._resolved.clear()

    def names(self) -> list[str]:
        """Return the patterns of the routes, sorted."""
        return sorted(route.pattern for route in self._routes.values())

    def __iter__(self) -> Iterator[Route]:
        return iter(sorted(self._routes.values(), key=lambda route: route.name))

    @property
    def judges(self) -> dict[str, NamedJudge]:
        """The named judges by name."""
        leaves = [route.target for route in self._routes.values() if isinstance(route.target, Leaf)]
        return {leaf.target: leaf.judge for leaf in leaves if leaf.judge is not None}

    @property
    def reward_models(self) -> dict[str, RewardModel]:
        """The reward models by name."""
        leaves = [route.target for route in self._routes.values() if isinstance(route.target, Leaf)]
        return {leaf.target: leaf.reward_model for leaf in leaves if leaf.reward_model is not None}

    @property
    def has_comparisons(self) -> bool:
        """Whether any judge compares the members of groups."""
        return any(judge.comparison is not None for judge in self.judges.values())

    def check_judges(self) -> None:
        """Raise RouteError if a composite uses a judge twice, or a cascade sets `agreement` for a part without votes.

        Only judges have votes.
        """
        for route in self:
            if not isinstance(route.target, Leaf):
                self._check_duplicate_judges(route.name, part_routes(route.target))
            if isinstance(route.target, Cascade):
                self._check_votes(route.name, route.target)

    def _check_duplicate_judges(self, name: str, parts: Sequence[str]) -> None:
        judges = [
            (part, leaf.verdict_identity) for part in parts if (leaf := self._leaf(part)) and leaf.kind == "judge"
        ]
        for index, (part, identity) in enumerate(judges):
            for earlier, other in judges[:index]:
                if identity == other:
                    why = f"{earlier!r} and {part!r} ask the same judge the same question; use different judges"
                    raise RouteError(f"route {name!r}: {why} (`[judges.NAME]`)", name)

    def _check_votes(self, name: str, cascade: Cascade) -> None:
        for part in cascade.parts:
            leaf = self._leaf(part.route) if part.agreement is not None else None
            if leaf is not None and leaf.kind != "judge":
                why = f"{part.route!r} has no votes that could agree; leave agreement out, or use a judge"
                raise RouteError(f"route {name!r}, cascade.agreement: {why}", "cascade.agreement")

    def _leaf(self, source: str) -> Leaf | None:
        """Return the leaf that scores a source; None for a composite of several parts, or if no route matches.

        A composite of one part counts as that part.
        """
        seen: set[str] = set()
        while source not in seen:
            seen.add(source)
            route = self._best_match(source)
            if route is None:
                break
            if isinstance(route.target, Leaf):
                return route.target
            parts = part_routes(route.target)
            source = parts[0] if len(parts) == 1 else source
        return None

    def find(self, source: str) -> Route:
        """Return the route that matches `source`.

        Raises:
            UnknownSourceError: no route matches `source` or a part of its route; the error lists the known routes.
            RouteError: the route contains itself.
        """
        return self._find(source).route

    def has_single_reference(self, source: str) -> bool:
        """Return whether a list in `ground_truth` is a single reference, instead of one reference per item.

        For example, a list of tests is a single reference for the reward function `code`.
        """
        return self._find(source).has_single_reference

    def comparisons(self, source: str) -> tuple[Comparison, ...]:
        """Return how the judges in a source's route compare groups; empty if no judge of the route compares groups."""
        return self._find(source).comparisons

    def bounds(self, source: str) -> Bounds:
        """Return the lowest and highest possible value for `source`; see `find` for the errors."""
        return self._find(source).bounds

    def _find(self, source: str) -> _ResolvedRoute:
        resolved = self._resolved.get(source) if isinstance(source, str) else None
        if resolved is None:
            route = self._search(source)
            self._check(route, ())
            self._warn_if_misspelled(source, route)
            resolved = self._resolve(route, source)
            if len(self._resolved) < MAX_CACHED:
                self._resolved[source] = resolved
        return resolved

    def _resolve(self, route: Route, source: str) -> _ResolvedRoute:
        if isinstance(route.target, Leaf):
            target = route.leaf_target(source)
            bounds = _leaf_bounds(route.target, target)
            has_single_reference = route.target.kind == "rule" and target in SINGLE_REFERENCE
            comparisons = tuple(filter(None, (route.target.comparison,)))
            if single := route.target.single_route:
                low, high = self._find(single).bounds
                bounds = min(bounds[0], low), max(bounds[1], high)
        else:
            parts = [self._find(part) for part in part_routes(route.target)]
            bounds = composite_bounds(route.target, [part.bounds for part in parts])
            has_single_reference = any(part.has_single_reference for part in parts)
            comparisons = tuple(comparison for part in parts for comparison in part.comparisons)
        return _ResolvedRoute(
            route, bounds if route.shaping is None else route.shaping.bounds(bounds), has_single_reference, comparisons
        )

    def check(self) -> None:
        """Raise RouteError if a part has no route, a route contains itself, or a `single_route` compares groups."""
        for route in self._routes.values():
            try:
                self._check(route, ())
            except UnknownSourceError as error:
                raise RouteError(f"route {route.name!r}: {error}", route.name) from error
            if isinstance(route.target, Leaf) and (single := route.target.single_route) and self.comparisons(single):
                field = f"judges.{route.name}.single_route"
                raise RouteError(f"{field}: {single!r} compares groups, too; name a route that does not", field)

    def check_policies(self) -> None:
        """Raise RouteError if a route whose values can be negative has the policy `zero`: it would reward failures."""
        for route in self:
            if route.on_error == "zero" and (low := self.bounds(route.name)[0]) < 0:
                why = (
                    f"its scores can be as low as {low:g}, so 0.0 would reward failed samples; choose raise or none, "
                    "or clip the scores at 0"
                )
                raise RouteError(f"route {route.name!r}, on_error: {why}", "on_error")

    def _check(self, route: Route, ancestors: tuple[str, ...]) -> None:
        """Raise if no route matches a part of `route`, or if `route` contains itself.

        `ancestors` has the names of the routes that contain this one, from the outermost.
        """
        if route.name in ancestors:
            raise RouteError(
                f"route {route.name!r} contains itself: {' > '.join((*ancestors, route.name))}", route.name
            )
        for part in linked_sources(route.target):
            self._check(self._search(part), (*ancestors, route.name))

    def _search(self, source: str) -> Route:
        if not isinstance(source, str) or not source:
            raise UnknownSourceError(
                f"data_source: expected a name of a route such as 'gsm8k', got {repr(source)[:50]}", "data_source"
            )
        match = self._best_match(source)
        if match is None:
            raise self._unknown(source)
        return match

    def _unknown(self, source: str) -> UnknownSourceError:
        """Return the error about a source without a route, with the most similar name and the remedy."""
        with import_lock:
            from rewardstack.core.misspellings import did_you_mean
        meant = did_you_mean(source, [route.name for route in self._routes.values()])
        message = (
            f"data_source {source!r} has no route; {meant}available: {', '.join(self.names())}; "
            f"for your own reward function {source!r} (REWARD_FUNCTIONS), use {RULE_PREFIX + source!r}; "
            "to add routes, set REWARDSTACK_ROUTES to a routes file"
        )
        return UnknownSourceError(message, "data_source")

    def _warn_if_misspelled(self, source: str, route: Route) -> None:
        """Log once if the source probably misspells another route, whose name begins with the name of `route`."""
        longer = [name for name in self._routes if name.startswith(route.name) and len(name) > len(route.name)]
        if longer and source != route.name:
            with import_lock:
                from rewardstack.core.misspellings import warn_of_misspelled_suffix
            warn_of_misspelled_suffix(route.name, source, tuple(longer))

    def _best_match(self, source: str) -> Route | None:
        """Return the route with the longest name that matches a source; None if no route matches."""
        matching = (route for route in self._routes.values() if route.matches(source))
        return max(matching, key=lambda route: len(route.name), default=None)


def linked_sources(target: Leaf | Composite) -> tuple[str, ...]:
    """Return the sources to which a route sends samples: the parts of a composite, or a leaf's `single_route`."""
    if isinstance(target, Leaf):
        return tuple(filter(None, (target.single_route,)))
    return tuple(part_routes(target))


def _leaf_bounds(leaf: Leaf, target: str) -> Bounds:
    """Return the bounds of a leaf's values; `target` is its `Route.leaf_target`."""
    if leaf.kind == "rule":
        return RULE_BOUNDS.get(target, NOT_NEGATIVE)
    if leaf.reward_model is not None:
        return leaf.reward_model.bounds
    return BELOW_ZERO if leaf.judge is not None and leaf.judge.may_be_negative else UNIT


def builtin_routes() -> list[Route]:
    """Return the built-in routes; users can replace those for verl's data sets and `REWARD_MODEL`."""
    names = [Route(name, Leaf("rule", rule), is_replaceable=True) for name, rule in DATA_SOURCES.items()]
    names += [Route(name, Leaf("rule", rule), exact=False, is_replaceable=True) for name, rule in PREFIXES.items()]
    return [Route(name, Leaf("rule", name)) for name in RULES] + [
        *names,
        Route(RULE_PREFIX, Leaf("rule", ""), exact=False),
        Route(JUDGE, Leaf("judge", JUDGE), exact=False),
        Route(EMBEDDING, Leaf("embedding", EMBEDDING), exact=False),
        Route(
            REWARD_MODEL,
            Leaf("reward_model", REWARD_MODEL, reward_model=RewardModel(REWARD_MODEL)),
            is_replaceable=True,
            shaping=Shaping(floor=DEFAULT_FLOOR),
        ),
    ]
