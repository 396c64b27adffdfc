"""`rewardstack check`: test each configured service; with `--deep`, also run end-to-end checks of a running stack."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from rich.text import Text

from rewardstack.client import route_table
from rewardstack.core.secret_files import SERVER_KEYS
from rewardstack.errors import SettingsError
from rewardstack.routing.composite import part_routes
from rewardstack.routing.reward_models import REWARD_MODEL, RewardModel
from rewardstack.routing.routes import Leaf, RouteTable, builtin_routes
from rewardstack.scorers.judge import JudgeConfig
from rewardstack.scorers.reward_model import VARIABLE, urls_of_model
from rewardstack.settings import Settings
from rewardstack.transport.http import open_session
from rewardstack_cli.console import Grid, plain_text, print_json, put, say
from rewardstack_cli.deep.checks import CHECKS, Check, CheckResult, run_check, with_outage
from rewardstack_cli.deep.outage import command_switch
from rewardstack_cli.deep.stack import Stack
from rewardstack_cli.probes.cache import probe_cache
from rewardstack_cli.probes.embedding import probe_embedding
from rewardstack_cli.probes.finding import Finding, ProbeError
from rewardstack_cli.probes.judge import probe_judge, probe_judge_config
from rewardstack_cli.probes.reward_model import probe_reward_model
from rewardstack_cli.probes.reward_server import probe_reward_server, reward_servers
from rewardstack_cli.score import positive_number

JUDGE_URL, EMBEDDING_URL = "LLM_JUDGE_SERVER_URL", "EMBEDDING_SERVER_URL"
RETRY_INTERVAL = 1.0
"""Seconds between two rounds of probes. There is more than one round only with `--wait`."""
STATES = {"ok": "green", "left out": "dim", "FAILED": "red"}
"""The color of each state in a table."""


class Target(NamedTuple):
    """A service whose configured URLs are probed.

    Args:
        name: display name.
        variable: name of the environment variable, or of the field in a routes file, that sets the service's URLs.
        urls: returns the configured URLs.
        probe: probes one URL.
        routes: the user's routes that need the service. If there are any, a missing URL is an error.
    """

    name: str
    variable: str
    urls: Callable[[Settings], Sequence[str]]
    probe: Callable[[str, Settings], Awaitable[Finding]]
    routes: Sequence[str] = ()


SERVICES = (
    Target("reward server", "REWARD_SERVER_URL", reward_servers, probe_reward_server),
    Target("LLM judge", JUDGE_URL, lambda settings: settings.judge_urls, probe_judge),
    Target("embedding server", EMBEDDING_URL, lambda settings: settings.embedding_urls, probe_embedding),
    Target("cache", "REWARD_CACHE_URL", lambda settings: list(filter(None, [settings.cache_url])), probe_cache),
)


def _list_targets(settings: Settings) -> list[Target]:
    """Return `SERVICES` with their routes, and one target for each judge and reward model of the route table.

    Raises:
        RouteError: a routes file cannot be used.
    """
    routes = route_table(settings)
    leaves: dict[str, Callable[[Leaf], bool]] = {
        JUDGE_URL: lambda leaf: leaf.kind == "judge" and leaf.judge is None,
        EMBEDDING_URL: lambda leaf: leaf.kind == "embedding",
    }
    services = [
        one._replace(routes=_routes_with(leaves[one.variable], routes)) if one.variable in leaves else one
        for one in SERVICES
    ]
    judges = [_judge_target(JudgeConfig(judge)) for judge in routes.judges.values()]
    return [*services, *judges, *(_reward_model_target(model, routes) for model in routes.reward_models.values())]


def _routes_with(is_wanted: Callable[[Leaf], bool], routes: RouteTable) -> list[str]:
    """Return the names of the user's routes that have a wanted leaf (a target without parts), at any depth."""

    def has_leaf(source: str) -> bool:
        target = routes.find(source).target
        return is_wanted(target) if isinstance(target, Leaf) else any(map(has_leaf, part_routes(target)))

    built_in = builtin_routes()
    return [route.name for route in routes if route not in built_in and has_leaf(route.name)]


def _reward_model_target(model: RewardModel, routes: RouteTable) -> Target:
    name, variable = f"reward model {model.name}", f"reward_models.{model.name}.base_url"
    if not model.base_url:
        name, variable = name if model.name != REWARD_MODEL else "reward model", VARIABLE
    return Target(
        name,
        variable,
        lambda settings: urls_of_model(model, settings),
        partial(probe_reward_model, model),
        _routes_with(lambda leaf: leaf.reward_model == model, routes),
    )


def _judge_target(config: JudgeConfig) -> Target:
    probe = partial(probe_judge_config, config)
    return Target(f"judge {config.name}", config.url_setting, config.urls, probe, (config.name,))


def add_parser(commands: Any) -> None:
    """Add the parser of `check` to the subcommands."""
    parser = commands.add_parser("check", help="test each configured service, or a running stack", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--wait", type=positive_number(float, or_zero=True), default=0.0, metavar="SECONDS",
                        help="maximum time to wait until all services and their parts are there")  # fmt: skip
    deep = parser.add_argument_group("a running stack")
    deep.add_argument("--deep", action="store_true", help="run end-to-end checks of the stack, as a client")
    deep.add_argument("--require", metavar="CHECK", action="append", default=[], choices=[*CHECKS],
                      help="fail if this check is left out; repeat for more checks")  # fmt: skip
    deep.add_argument(
        "--stop-judge", metavar="COMMAND", help="command, run without a shell, that stops all judge replicas"
    )
    deep.add_argument("--start-judge", metavar="COMMAND", help="command, run without a shell, that starts them again")
    deep.add_argument("--loading-seconds", type=positive_number(float), default=1800.0, metavar="N",
                      help="maximum seconds until the judge answers after --start-judge (%(default)s)")  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check the configured services and, with `--deep`, the whole stack, and print what was found.

    Returns:
        The exit status: 0 if everything works, else 1.

    Raises:
        SettingsError: a variable is malformed, no service is configured, or an option needs another option or a
            variable that is not set.
        RouteError: a routes file cannot be used.
    """
    settings = _read_settings()
    services = _list_targets(settings)
    if not any(service.urls(settings) for service in services):
        variables = " or ".join(service.variable for service in SERVICES)
        raise SettingsError(
            f"no service is configured: set {variables}; after `make up`, set REWARD_SERVER_URL=http://localhost:6000"
        )
    checks = _select_checks(args, settings)
    return asyncio.run(_run(args, settings, services, checks))


async def _run(
    args: argparse.Namespace, settings: Settings, services: Sequence[Target], checks: Mapping[str, Check]
) -> int:
    deadline = time.monotonic() + args.wait
    findings = await _probe_until(settings, services, deadline)
    failed = _has_problem(findings)
    if not args.json:
        _services_table(findings).show()
        _print_problems(
            (f"{service.name} {one.address}".rstrip(), one.problem) for service, found in findings for one in found
        )
    if failed and checks:
        say("not all services work; skipping the deep checks")
    rows = [] if failed else await _run_checks(args, settings, checks, deadline)
    if args.json:
        print_json({"services": _service_records(findings), "checks": [_check_record(row) for row in rows]})
    elif rows:
        _checks_table(rows).show()
        _print_problems((row.check, row.problem) for row in rows)
    return 1 if failed or any(row.problem for row in rows) else 0


async def _run_checks(
    args: argparse.Namespace, settings: Settings, checks: Mapping[str, Check], deadline: float
) -> list[CheckResult]:
    """Run the checks in order; repeat one until the deadline while the stack is without a part that is asked for."""
    rows = []
    async with open_session() as session:
        stack = Stack(settings, session, args.loading_seconds)
        for name, check in checks.items():
            say(f"checking: {name}")
            row = await run_check(name, check, stack, args.require)
            while row.is_missing and (remaining := deadline - time.monotonic()) > 0:
                await asyncio.sleep(min(RETRY_INTERVAL, remaining))
                row = await run_check(name, check, stack, args.require)
            rows.append(row)
    return rows


def _service_records(findings: list[tuple[Target, list[Finding]]]) -> list[dict[str, Any]]:
    """Return the findings as dicts of JSON types; a service that has no URL and no routes has the state `unset`."""
    records = []
    for service, found in findings:
        for one in found or [Finding("")]:
            state = "unset" if not found else "FAILED" if one.problem else "ok"
            details = {"address": one.address or None, "state": state, "version": one.version, "sample": one.sample}
            records.append(
                {"service": service.name, "variable": service.variable, **details, **_problem_record(one.problem)}
            )
    return records


def _check_record(row: CheckResult) -> dict[str, Any]:
    details = {"check": row.check, "result": row.result, "seconds": round(row.seconds, 3), "found": row.found}
    return {**details, **_problem_record(row.problem)}


def _problem_record(problem: ProbeError | None) -> dict[str, str | None]:
    return {"problem": str(problem) if problem else None, "remedy": problem.remedy if problem else None}


def _read_settings() -> Settings:
    settings = Settings.from_env()
    server_key = os.environ.get(SERVER_KEYS, "").split(",")[0].strip()
    return replace(settings, reward_server_api_key=settings.reward_server_api_key or server_key)


def _select_checks(args: argparse.Namespace, settings: Settings) -> Mapping[str, Check]:
    """Return the deep checks to run.

    Raises:
        SettingsError: an option is set, but another option or a variable that it needs is not.
    """
    outage = bool(args.stop_judge), bool(args.start_judge)
    if not args.deep:
        if any(outage) or args.require:
            raise SettingsError("--require, --stop-judge and --start-judge need --deep")
        return {}
    if not settings.reward_server_urls:
        raise SettingsError(
            "REWARD_SERVER_URL is not set, and --deep checks a stack; after `make up`, set it to http://localhost:6000"
        )
    if not any(outage):
        return CHECKS
    if not all(outage) or not settings.judge_urls:
        raise SettingsError("--stop-judge and --start-judge must be set together, and need LLM_JUDGE_SERVER_URL")
    return with_outage(command_switch(args.stop_judge), command_switch(args.start_judge))


async def _probe_until(
    settings: Settings, services: Sequence[Target], deadline: float
) -> list[tuple[Target, list[Finding]]]:
    """Probe until every service with a URL works, or until the deadline, and return the last findings."""
    findings = await _probe_all(settings, services)
    while _is_worth_waiting(findings) and (remaining := deadline - time.monotonic()) > 0:
        await asyncio.sleep(min(RETRY_INTERVAL, remaining))
        findings = await _probe_all(settings, services)
    return findings


def _has_problem(findings: list[tuple[Target, list[Finding]]]) -> bool:
    return any(one.problem for _, found in findings for one in found)


def _is_worth_waiting(findings: list[tuple[Target, list[Finding]]]) -> bool:
    """Return whether a service with a URL has a problem. Waiting cannot help a service without a URL."""
    return any(one.problem and one.address for _, found in findings for one in found)


async def _probe_all(settings: Settings, services: Sequence[Target]) -> list[tuple[Target, list[Finding]]]:
    async def probe(service: Target) -> list[Finding]:
        urls = service.urls(settings)
        if service.routes and not urls:
            return [Finding("", problem=_missing_url_error(service))]
        return await asyncio.gather(*(service.probe(address, settings) for address in urls))

    found = await asyncio.gather(*(probe(service) for service in services))
    return list(zip(services, found, strict=True))


def _missing_url_error(service: Target) -> ProbeError:
    need = f"route{'s' * (len(service.routes) > 1)} {', '.join(service.routes)}"
    return ProbeError(
        f"{service.variable} is not set, but needed by the {need}", f"set {service.variable} to the URL of the server"
    )


def _services_table(findings: list[tuple[Target, list[Finding]]]) -> Grid:
    table = Grid("service", "address", "state", "version", "sample")
    for service, found in findings:
        for finding in found:
            state = _colored_state("FAILED" if finding.problem else "ok")
            address = plain_text(finding.address or f"{service.variable} is not set")
            version = plain_text(finding.version)
            table.add_row(service.name, address, state, version, finding.sample)
        if not found:
            table.add_row(service.name, Text(f"{service.variable} is not set", "dim"), Text("-"), "", "")
    return table


def _checks_table(rows: Sequence[CheckResult]) -> Grid:
    table = Grid("check", "result", "seconds", "found")
    for row in rows:
        table.add_row(row.check, _colored_state(row.result), f"{row.seconds:.1f}", plain_text(row.found))
    return table


def _colored_state(word: str) -> Text:
    return Text(word, STATES[word])


def _print_problems(rows: Iterable[tuple[str, ProbeError | None]]) -> None:
    """Print each problem and its remedy."""
    for name, problem in rows:
        if problem:
            put(plain_text(f"{name}: {problem}", "red"))
            put(Text("    ").append_text(plain_text(problem.remedy)))
