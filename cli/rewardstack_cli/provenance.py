"""What the scores of a file depended on, kept beside it, so that a run that goes on with other routes says so.

It has sections, each a value by name: `options` of the command line, `routes` by source, `settings` that are part of
cache keys, and `services`: by source what its scorer says of itself. No section holds a secret.
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

ASKING_SECONDS = 5.0
"""How long a service may take to say what it is; a file is taken up without, if it does not."""
SHOWN = 160
"""Characters of a value that a message shows."""


class ProvenanceFile:
    """The file `OUT.provenance`.

    Args:
        output: OUT, or what stands for it until it is complete.
    """

    def __init__(self, output: Path) -> None:
        self._path = output.with_name(output.name + ".provenance")

    def read(self) -> Provenance | None:
        """What is kept there; None where there is no such file."""
        return parse(self._path.read_bytes()) if self._path.is_file() else None

    def write(self, provenance: Provenance) -> None:
        """Keeps it, also when the command ends."""
        hidden = self._path.with_name(self._path.name + ".tmp")
        hidden.write_text(json.dumps(provenance, indent=1, sort_keys=True) + "\n")
        hidden.replace(self._path)

    def forget(self) -> None:
        """Removes the file."""
        self._path.unlink(missing_ok=True)


def parse(data: bytes) -> Provenance | None:
    """What was written as JSON; None for anything else."""
    try:
        sections = json.loads(data)
    except ValueError:
        return None
    if not isinstance(sections, dict) or not all(isinstance(values, dict) for values in sections.values()):
        return None
    return sections


def changes(before: Provenance, now: Provenance) -> list[str]:
    """What is another one now, in words; what only one of them knows is no change."""
    changed = []
    for section, values in now.items():
        earlier = before.get(section, {})
        for name in sorted(values.keys() & earlier.keys()):
            if values[name] != earlier[name]:
                changed.append(_words(section, name, earlier[name], values[name]))
    return changed


def merged(before: Provenance, now: Provenance) -> Provenance:
    """Both; an IN that has grown has further sources, and a service that is away now was asked before."""
    return {section: {**before.get(section, {}), **values} for section, values in now.items()}


def _words(section: str, name: str, before: Any, now: Any) -> str:
    if section == "services":
        return f"what scores {name} (its source, its model, or their versions)"
    whole = [json.dumps(value, ensure_ascii=False, sort_keys=True) for value in (before, now)]
    texts = [shorten(text, SHOWN, placeholder=" ...") for text in whole]
    return f"{f'the route of {name}' if section == 'routes' else name} was {texts[0]}, is {texts[1]}"


async def of_routes(routes: RouteTable, sources: Iterable[str], settings: Settings) -> Provenance:
    """What scores of these sources depend on where this machine routes them.

    Args:
        routes: in force here.
        sources: that the rows have.
        settings: of this machine.
    """
    defined = definitions(routes, sources)
    leaves = [source for source, fields in defined.items() if "kind" in fields]
    found = await asyncio.gather(*(_fingerprint(source, settings) for source in leaves))
    services: dict[str, Any] = {name: said for name, said in zip(leaves, found, strict=True) if said is not None}
    judged = [source for source in leaves if defined[source]["kind"] == "judge"]
    direct = {name for name, judge in routes.judges.items() if judge.base_url}
    relayed = [source for source in judged if defined[source]["target"] not in direct]
    if relayed and not settings.judge_urls:
        services |= of_server(await ask_server(settings), relayed)["services"]
    return {"routes": defined, "settings": settings.keyed if judged else {}, "services": services}


def of_server(said: Mapping[str, Any], sources: Iterable[str]) -> Provenance:
    """What scores of these sources depend on where a reward server routes them.

    Args:
        said: by it, at `/v1/reward_types`; what it does not say is left out.
        sources: that the rows have.
    """
    try:
        table = RouteTable(_route(pattern, fields) for pattern, fields in said["routes"].items())
        defined = definitions(table, sources)
        functions = {name: about["fingerprint"] for name, about in said["reward_types"].items()}
    except (KeyError, TypeError, AttributeError, ConfigError):
        defined, functions = {}, {}  # an older server, or one that will say itself that it has no such route
    services: dict[str, Any] = {}
    for source, fields in defined.items():
        if fields.get("kind") == "judge":
            services[f"{source} on the reward server"] = said.get("settings")
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
    """What the reward server says of itself; nothing where none answers."""
    headers = authorization(settings.reward_server_api_key)
    async with open_session() as session:
        for url in settings.reward_server_urls:
            asked = exchange(session, "GET", f"{url}/v1/reward_types", None, headers)
            with suppress(RewardstackError, asyncio.TimeoutError, ValueError):
                said = json.loads(await asyncio.wait_for(asked, ASKING_SECONDS))
                return said if isinstance(said, dict) else {}
    return {}


async def _fingerprint(source: str, settings: Settings) -> str | None:
    try:
        return await run_async(fingerprint_on_loop(source, settings, ASKING_SECONDS))
    except RewardstackError:
        return None  # whoever scores says why
