"""The provenance of a file: what its scores depend on. A later run with other routes or settings is refused.

It is stored next to the file. Each section maps names to values: `options` of the command line, `routes` by source,
`settings` that are part of cache keys, and `services`, by source: what the service reports about itself. No section
contains a secret.
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

ASKING_SECONDS = 5.0
"""Maximum seconds for a service to report about itself; without an answer the run continues."""
SHOWN = 160
"""Maximum characters of a value in a message."""


class ProvenanceFile:
    """The file `OUT.provenance`, where OUT is the output file of a run.

    Args:
        output: OUT, or the temporary file that has its rows until OUT is complete.
    """

    def __init__(self, output: Path) -> None:
        self._path = output.with_name(output.name + ".provenance")

    def read(self) -> Provenance | None:
        """Return the stored provenance; None if there is no such file, or it is malformed."""
        return parse(self._path.read_bytes()) if self._path.is_file() else None

    def write(self, provenance: Provenance) -> None:
        """Write the file."""
        hidden = self._path.with_name(self._path.name + ".tmp")
        hidden.write_text(json.dumps(provenance, indent=1, sort_keys=True) + "\n")
        hidden.replace(self._path)

    def remove(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


def parse(data: bytes) -> Provenance | None:
    """Parse a provenance from JSON; return None for anything else."""
    try:
        sections = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(sections, dict) or not all(isinstance(values, dict) for values in sections.values()):
        return None
    return sections


def changes(before: Provenance, now: Provenance) -> list[str]:
    """Return the values that differ, in words; a value that only one provenance has is not a change."""
    changed = []
    for section, values in now.items():
        earlier = before.get(section, {})
        for name in sorted(values.keys() & earlier.keys()):
            if values[name] != earlier[name]:
                changed.append(_words(section, name, earlier[name], values[name]))
    return changed


def merged(before: Provenance, now: Provenance) -> Provenance:
    """Return both combined: the input may have new sources, and a service that is down may have answered before."""
    return {section: {**before.get(section, {}), **values} for section, values in now.items()}


def _words(section: str, name: str, before: Any, now: Any) -> str:
    if section == "services":
        return f"what scores {name} (its source, its model, or their versions)"
    whole = [json.dumps(value, ensure_ascii=False, sort_keys=True) for value in (before, now)]
    texts = [shorten(text, SHOWN, placeholder=" ...") for text in whole]
    return f"{f'the route of {name}' if section == 'routes' else name} was {texts[0]}, is {texts[1]}"


async def of_routes(routes: RouteTable, sources: Iterable[str], settings: Settings) -> Provenance:
    """Return what scores of these sources depend on if this machine routes them.

    Args:
        routes: route table of this machine.
        sources: sources of the rows.
        settings: settings of this machine.
    """
    defined = definitions(routes, sources)
    leaves = [source for source, fields in defined.items() if "kind" in fields]
    found = await asyncio.gather(*(_fingerprint(source, settings) for source in leaves))
    services: dict[str, Any] = {name: one for name, one in zip(leaves, found, strict=True) if one is not None}
    judged = [source for source in leaves if defined[source]["kind"] == "judge"]
    direct = {name for name, judge in routes.judges.items() if judge.base_url}
    relayed = [source for source in judged if defined[source]["target"] not in direct]
    if relayed and not settings.judge_urls:
        services |= of_server(await ask_server(settings), relayed)["services"]
    return {"routes": defined, "settings": settings.cache_key_settings if judged else {}, "services": services}


def of_server(reported: Mapping[str, Any], sources: Iterable[str]) -> Provenance:
    """Return what scores of these sources depend on if a reward server routes them.

    Args:
        reported: what the server returns at `/v1/reward_types`; missing fields are left out.
        sources: sources of the rows.
    """
    try:
        table = RouteTable(_route(pattern, fields) for pattern, fields in reported["routes"].items())
        defined = definitions(table, sources)
        functions = {name: about["fingerprint"] for name, about in reported["reward_types"].items()}
    except (KeyError, TypeError, AttributeError, ConfigError):
        defined, functions = {}, {}  # an older server, or no such route: then the server itself refuses the samples
    services: dict[str, Any] = {}
    for source, fields in defined.items():
        if fields.get("kind") == "judge":
            services[f"{source} on the reward server"] = reported.get("settings")
        elif fields.get("kind") == "rule":
            name = fields["target"] or source.removeprefix(RULE_PREFIX)
            services[f"{source} on the reward server"] = functions.get(name)
    return {"routes": defined, "services": services}


def _route(pattern: str, fields: Mapping[str, Any]) -> Route:
    if "kind" not in fields:
        return parse_route(pattern, fields)
    if "judge" in fields:
        return judge_route(parse_judge(fields["target"], fields["judge"]))
    if "reward_model" in fields:
        shaping = {name: fields[name] for name in (*SHAPING, "floor", "on_error") if name in fields}
        return reward_model_route(fields["target"], {**fields["reward_model"], **shaping})
    leaf = Leaf(fields["kind"], fields["target"])
    return Route(pattern.removesuffix("*"), leaf, not pattern.endswith("*"), fields.get("on_error"))


async def ask_server(settings: Settings) -> Mapping[str, Any]:
    """Return what the first reward server that answers reports about itself; empty if none answers."""
    headers = authorization(settings.reward_server_api_key)
    async with open_session() as session:
        for url in settings.reward_server_urls:
            asked = exchange(session, "GET", f"{url}/v1/reward_types", None, headers)
            with suppress(RewardstackError, asyncio.TimeoutError, ValueError):
                reported = json.loads(await asyncio.wait_for(asked, ASKING_SECONDS))
                return reported if isinstance(reported, dict) else {}
    return {}


async def _fingerprint(source: str, settings: Settings) -> str | None:
    try:
        return await run_async(fingerprint_on_loop(source, settings, ASKING_SECONDS))
    except RewardstackError:
        return None  # scoring reports the error
