"""`rewardstack check`: tries each configured service, and says what to do about what fails."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from rewardstack.cli.console import new_table, out, plain_text
from rewardstack.cli.probes.cache import probe_cache
from rewardstack.cli.probes.embedding import probe_embedding
from rewardstack.cli.probes.finding import Finding
from rewardstack.cli.probes.judge import probe_judge
from rewardstack.cli.probes.reward_server import probe_reward_server
from rewardstack.errors import SettingsError
from rewardstack.settings import Settings


class Service(NamedTuple):
    """A service that can be configured.

    Args:
        name: what people call it.
        variable: that holds its addresses.
        addresses: those configured.
        probe: tries one of them.
    """

    name: str
    variable: str
    addresses: Callable[[Settings], Sequence[str]]
    probe: Callable[[str, Settings], Awaitable[Finding]]


SERVICES = (
    Service("reward server", "REWARD_SERVER_URL", lambda settings: settings.reward_server_urls, probe_reward_server),
    Service("LLM judge", "LLM_JUDGE_SERVER_URL", lambda settings: settings.judge_urls, probe_judge),
    Service("embedding server", "EMBEDDING_SERVER_URL", lambda settings: settings.embedding_urls, probe_embedding),
    Service("cache", "REWARD_CACHE_URL", lambda settings: list(filter(None, [settings.cache_url])), probe_cache),
)


def add_parser(commands: Any) -> None:
    """Adds the command; it has no arguments."""
    parser = commands.add_parser("check", help="try each configured service", description=__doc__)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Tries the services of the environment.

    Returns:
        The exit status: 0 where all work, 1 where one does not.

    Raises:
        SettingsError: a variable is malformed, or none is set.
    """
    settings = Settings.from_env()
    if not any(service.addresses(settings) for service in SERVICES):
        variables = " or ".join(service.variable for service in SERVICES)
        raise SettingsError(f"nothing to check: set {variables} (after `make up`: http://localhost:6000)")
    findings = asyncio.run(_probe_all(settings))
    out.print(_table(findings))
    troubles = [(service, finding) for service, found in findings for finding in found if finding.trouble]
    for service, finding in troubles:
        out.print(plain_text(f"{service.name} {finding.address}: {finding.trouble}", "red"), soft_wrap=True)
        out.print(plain_text(f"    {finding.trouble and finding.trouble.remedy}"), soft_wrap=True)
    return 1 if troubles else 0


async def _probe_all(settings: Settings) -> list[tuple[Service, list[Finding]]]:
    async def probe(service: Service) -> list[Finding]:
        return await asyncio.gather(*(service.probe(address, settings) for address in service.addresses(settings)))

    found = await asyncio.gather(*(probe(service) for service in SERVICES))
    return list(zip(SERVICES, found, strict=True))


def _table(findings: list[tuple[Service, list[Finding]]]) -> Table:
    table = new_table("service", "address", "state", "version", "sample")
    for service, found in findings:
        for finding in found:
            state = Text("FAILED", "red") if finding.trouble else Text("ok", "green")
            address, version = plain_text(finding.address), plain_text(finding.version)
            table.add_row(service.name, address, state, version, finding.sample)
        if not found:
            table.add_row(service.name, Text(f"{service.variable} is not set", "dim"), Text("-"), "", "")
    return table
