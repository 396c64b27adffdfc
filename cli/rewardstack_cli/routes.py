"""`rewardstack routes`: which route scores which `data_source`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from textwrap import shorten
from typing import Any

from rewardstack.client import route_table
from rewardstack.routing.composite import Cascade, Composite, Gate, Majority, Part, WeightedSum, part_routes
from rewardstack.routing.judges import NamedJudge
from rewardstack.routing.reward_models import RewardModel
from rewardstack.routing.routes import Leaf, Route, RouteTable
from rewardstack.routing.syntax import definition
from rewardstack.score import OnError
from rewardstack.scorers.embedded import is_rule_local
from rewardstack.scorers.embedding import Embedding
from rewardstack.scorers.judge import NAMED_JUDGES_PATH, Judge
from rewardstack.scorers.reward_model import VARIABLE, RewardModelScorer
from rewardstack.scorers.reward_server import RemoteRule
from rewardstack.settings import Settings
from rewardstack_cli.console import Grid, plain_text, print_json, put

LEAF_SERVICES: dict[str, tuple[str, OnError]] = {
    "rule": ("reward server", RemoteRule.on_error),
    "judge": ("LLM judge", Judge.on_error),
    "embedding": ("embedding server", Embedding.on_error),
    "reward_model": ("reward model", RewardModelScorer.on_error),
}
"""The service and the default error policy of each kind of leaf. A leaf is a route without parts."""
COMPOSITE_KINDS: dict[type, str] = {WeightedSum: "sum", Majority: "majority", Gate: "gate", Cascade: "cascade"}
MAX_TEMPLATE = 40
"""Maximum characters of a template in the table."""
COMPOSITE_POLICY: OnError = "zero"
"""The default error policy of composites."""
CAPTION = "NAME matches NAME and NAME_...; NAME* matches all that begins with NAME; the longest match wins"


def add_parser(commands: Any) -> None:
    """Add the parser of `routes` to the subcommands."""
    parser = commands.add_parser("routes", help="show which route scores which data_source", description=__doc__)
    parser.add_argument("data_source", metavar="DATA_SOURCE", nargs="?", help="show only the route that matches it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print all routes, or only the route that matches DATA_SOURCE.

    Returns:
        The exit status, 0.

    Raises:
        UnknownSourceError: no route matches DATA_SOURCE.
        RouteError: a routes file is malformed.
    """
    routes = route_table(Settings.from_env())
    if args.json:
        selected = routes if args.data_source is None else [routes.find(args.data_source)]
        print_json([_route_record(route, routes) for route in selected])
        return 0
    if args.data_source is None:
        _show(routes, routes)
        return 0
    route = routes.find(args.data_source)
    put(plain_text(f"{args.data_source} matches the route {route.pattern}"))
    _show([route], routes)
    return 0


def _show(selected_routes: Iterable[Route], routes: RouteTable) -> None:
    table = Grid("data_source", "kind", "scored by", "without a score")
    for route in selected_routes:
        table.add_row(*map(plain_text, (route.pattern, *_describe_target(route, routes))))
    table.show()
    put(plain_text(CAPTION))


def _route_record(route: Route, routes: RouteTable) -> dict[str, Any]:
    """Return a route as a dict of JSON types: its name, pattern, definition and error policy."""
    return {
        "name": route.name,
        "takes": route.pattern,
        **definition(route),
        "on_error": _describe_target(route, routes)[2],
    }


def _describe_target(route: Route, routes: RouteTable) -> tuple[str, str, str]:
    """Return the kind of a route, its service or (for a composite) its parts, and its error policy."""
    negative_policy: OnError | None = "raise" if routes.bounds(route.name)[0] < 0 else None
    if isinstance(route.target, Leaf):
        service, policy = LEAF_SERVICES[route.target.kind]
        if route.target.kind == "rule" and is_rule_local(Settings.from_env()):
            service = "this process"
        scorer = route.target.target or "*" if route.target.judge is None else _describe_judge(route.target.judge)
        if route.target.reward_model is not None:
            scorer = _describe_reward_model(route.target.reward_model)
        return route.target.kind, f"{service}: {scorer}", route.on_error or negative_policy or policy
    policy = route.on_error or negative_policy or COMPOSITE_POLICY
    return COMPOSITE_KINDS[type(route.target)], ", ".join(_part_names(route.target)), policy


def _describe_reward_model(model: RewardModel) -> str:
    """Return the URLs and the model of a reward model, as text."""
    return "; ".join(filter(None, (", ".join(model.base_url) or VARIABLE, model.model)))


def _describe_judge(judge: NamedJudge) -> str:
    """Return the URLs, model and options of a judge of the routes file, as text."""
    address = ", ".join(judge.base_url) or f"below LLM_JUDGE_SERVER_URL, at /{NAMED_JUDGES_PATH}/{judge.name}"
    parts = [address, *filter(None, (judge.model, judge.api_key_env and f"key in {judge.api_key_env}"))]
    parts += [f"template {shorten(judge.template, MAX_TEMPLATE, placeholder=' ...')}"] if judge.template else []
    return "; ".join(parts + [f"{name} {value}" for name, value in judge.options.items()])


def _part_names(composite: Composite) -> list[str]:
    """Return the routes of a composite's parts; in a cascade, each with the condition for trying the next part."""
    if not isinstance(composite, Cascade):
        return list(part_routes(composite))
    return [" ".join([part.route, *filter(None, (_undecided_condition(part),))]) for part in composite.parts]


def _undecided_condition(part: Part) -> str:
    """Return the condition under which a part's value does not decide a cascade, so that the next part is tried.

    Empty if every value of the part decides.
    """
    below_condition = [f"below {part.at_least:g}"] if part.at_least is not None else []
    between_condition = [f"between {part.unsure[0]:g} and {part.unsure[1]:g}"] if part.unsure else []
    votes_condition = [f"if less than {part.agreement:g} of the votes agree"] if part.agreement is not None else []
    conditions = [*below_condition, *between_condition, *votes_condition]
    return f"(undecided {' or '.join(conditions)})" if conditions else ""
