"""Store the provenance of scores: the routes, settings and services that they depend on.

The provenance is stored with the output file, so that a later run with other routes or settings is refused. It has
four sections, without secrets: `options` of the command line, `routes` by `data_source`, `settings` that are part of
cache keys, and `services`, the identity (code, model, version) that the service of each `data_source` reports.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import shorten
from typing import Any

from rewardstack.client import fingerprint_on_loop
from rewardstack.core.event_loop import run_async
from rewardstack.errors import ConfigError, RewardstackError
from rewardstack.routing.judges import parse_judge
from rewardstack.routing.routes import RULE_PREFIX, Leaf, Route, RouteTable
from rewardstack.routing.shaping import FIELDS as SHAPING
from rewardstack.routing.syntax import definitions, judge_route, parse_route, reward_model_route
from rewardstack.settings import Settings
from rewardstack.transport.http import authorization, exchange, open_session

Provenance = dict[str, dict[str, Any]]
"""The sections by name."""

IDENTITY_TIMEOUT = 5.0
"""Timeout in seconds for a service to report its identity; after it, the run continues without the identity."""
MAX_SHOWN = 160
"""Maximum characters of a value in a message."""


class ProvenanceFile:
    """The file `OUT.provenance` or, for a parquet OUT that is not complete, `OUT.partial.provenance`.

    Args:
        output: the path of OUT or `OUT.partial`.
    """

    def __init__(self, output: Path) -> None:
        self._path = output.with_name(output.name + ".provenance")

    def read(self) -> Provenance | None:
        """Return the stored provenance; None if there is no such file, or it is malformed."""
        return parse_provenance(self._path.read_bytes()) if self._path.is_file() else None

    def write(self, provenance: Provenance) -> None:
        """Write the file."""
        temporary = self._path.with_name(self._path.name + ".tmp")
        temporary.write_text(json.dumps(provenance, indent=1, sort_keys=True) + "\n")
        temporary.replace(self._path)

    def remove(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


def parse_provenance(data: bytes) -> Provenance | None:
    """Parse a provenance from JSON; return None if `data` is not a provenance."""
    try:
        sections = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(sections, dict) or not all(isinstance(values, dict) for values in sections.values()):
        return None
    return sections


def list_changes(before: Provenance, now: Provenance) -> list[str]:
    """Return a description of each value that differs; a value in only one provenance is not a change."""
    changed_values = []
    for section, values in now.items():
        stored = before.get(section, {})
        for name in sorted(values.keys() & stored.keys()):
            if values[name] != stored[name]:
                changed_values.append(_describe_change(section, name, stored[name], values[name]))
    return changed_values


def merge(before: Provenance, now: Provenance) -> Provenance:
    """Return `now`; a value that a section of `now` lacks is taken from `before`.

    For example, `now` lacks the identity of a service that is down.
    """
    return {section: {**before.get(section, {}), **values} for section, values in now.items()}


def _describe_change(section: str, name: str, before: Any, now: Any) -> str:
    if section == "services":
        return f"the scorer of {name} (its code, its model, or a version) has changed"
    full_texts = [json.dumps(value, ensure_ascii=False, sort_keys=True) for value in (before, now)]
    texts = [shorten(text, MAX_SHOWN, placeholder=" ...") for text in full_texts]
    return f"{f'the route of {name}' if section == 'routes' else name} was {texts[0]}, is {texts[1]}"


async def routes_provenance(routes: RouteTable, sources: Iterable[str], settings: Settings) -> Provenance:
    """Return the provenance of scores that are computed with the routes of this machine.

    Args:
        routes: route table of this machine.
        sources: the `data_source` names of the rows.
        settings: settings of this machine.
    """
    definition_by_source = definitions(routes, sources)
    leaves = [source for source, fields in definition_by_source.items() if "kind" in fields]
    fingerprints = await asyncio.gather(*(_fingerprint(source, settings) for source in leaves))
    services: dict[str, Any] = {name: one for name, one in zip(leaves, fingerprints, strict=True) if one is not None}
    judge_sources = [source for source in leaves if definition_by_source[source]["kind"] == "judge"]
    direct_judges = {name for name, judge in routes.judges.items() if judge.base_url}
    relayed_sources = [
        source for source in judge_sources if definition_by_source[source]["target"] not in direct_judges
    ]
    if relayed_sources and not settings.judge_urls:
        services |= server_provenance(await fetch_server_identity(settings), relayed_sources)["services"]
    return {
        "routes": definition_by_source,
        "settings": settings.cache_key_settings if judge_sources else {},
        "services": services,
    }


def server_provenance(server_identity: Mapping[str, Any], sources: Iterable[str]) -> Provenance:
    """Return the provenance of scores that are computed with the routes of a reward server.

    Args:
        server_identity: the server's reply at `/v1/reward_types`.
        sources: the `data_source` names of the rows.
    """
    try:
        table = RouteTable(_parse_route(pattern, fields) for pattern, fields in server_identity["routes"].items())
        definition_by_source = definitions(table, sources)
        functions = {name: about["fingerprint"] for name, about in server_identity["reward_types"].items()}
    except (KeyError, TypeError, AttributeError, ConfigError):
        # An older server reports no routes. A missing route is reported when the rows are scored.
        definition_by_source, functions = {}, {}
    services: dict[str, Any] = {}
    for source, fields in definition_by_source.items():
        if fields.get("kind") == "judge":
            services[f"{source} on the reward server"] = server_identity.get("settings")
        elif fields.get("kind") == "rule":
            name = fields["target"] or source.removeprefix(RULE_PREFIX)
            services[f"{source} on the reward server"] = functions.get(name)
    return {"routes": definition_by_source, "services": services}


def _parse_route(pattern: str, fields: Mapping[str, Any]) -> Route:
    if "kind" not in fields:
        return parse_route(pattern, fields)
    if "judge" in fields:
        return judge_route(parse_judge(fields["target"], fields["judge"]))
    if "reward_model" in fields:
        shaping = {name: fields[name] for name in (*SHAPING, "floor", "on_error") if name in fields}
        return reward_model_route(fields["target"], {**fields["reward_model"], **shaping})
    leaf = Leaf(fields["kind"], fields["target"])
    return Route(pattern.removesuffix("*"), leaf, not pattern.endswith("*"), fields.get("on_error"))


async def fetch_server_identity(settings: Settings) -> Mapping[str, Any]:
    """Return the reply at `/v1/reward_types` of the first reward server that answers; empty if no server answers."""
    headers = authorization(settings.reward_server_api_key)
    async with open_session() as session:
        for url in settings.reward_server_urls:
            request = exchange(session, "GET", f"{url}/v1/reward_types", None, headers)
            with suppress(RewardstackError, asyncio.TimeoutError, ValueError):
                server_identity = json.loads(await asyncio.wait_for(request, IDENTITY_TIMEOUT))
                return server_identity if isinstance(server_identity, dict) else {}
    return {}


async def _fingerprint(source: str, settings: Settings) -> str | None:
    try:
        return await run_async(fingerprint_on_loop(source, settings, IDENTITY_TIMEOUT))
    except RewardstackError:
        return None  # scoring reports the error
