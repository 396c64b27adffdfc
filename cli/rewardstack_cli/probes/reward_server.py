"""Probe a reward server: whether it is up and ready, and scores a sample. Without a server, probe the local rules."""

from __future__ import annotations

import time
from importlib.metadata import version

from rewardstack.api import ascore
from rewardstack.errors import ConfigError
from rewardstack.routing.sources import RULE_PREFIX
from rewardstack.score import Request
from rewardstack.scorers.embedded import DISTRIBUTION, is_rule_local
from rewardstack.settings import Settings
from rewardstack_cli.probes.finding import Finding, ProbeError
from rewardstack_cli.probes.http import LOGS, ProbedService, RemedyNames, probe

SAMPLE = {"data_source": "gsm8k", "solution_str": "6 * 7 = 42\n#### 42", "ground_truth": "42"}
SCORE = 1.0
"""The right score of `SAMPLE`, and of the sample for an isolated process."""

LOCAL = "this process"
"""Used in place of a URL if rules run in this process, without a server; also shown as the address."""
SAMPLE_TIMEOUT = 60.0
"""Timeout in seconds of a sample that is scored in this process. The first sample also starts the worker processes."""
INSTALL = f"correct the setting, reinstall {DISTRIBUTION}, or name a reward server in REWARD_SERVER_URL"
NAMES = RemedyNames("REWARD_SERVER_URL", "REWARD_SERVER_API_KEY", "keys (REWARD_SERVER_API_KEYS)")


def reward_servers(settings: Settings) -> tuple[str, ...]:
    """Return the addresses to probe: the URLs of the reward servers, or `LOCAL` if rules run in this process.

    Empty if no reward server is set and rules do not run in this process.
    """
    return settings.reward_server_urls or ((LOCAL,) if is_rule_local(settings) else ())


async def probe_reward_server(url: str, settings: Settings) -> Finding:
    """Probe the reward server at `url`.

    Args:
        url: base URL of the server, or `LOCAL`.
        settings: settings with the key to send.
    """
    if url == LOCAL:
        return await _probe_local_rules()
    return await probe(url, settings.reward_server_api_key, NAMES, _probe)


async def _probe_local_rules() -> Finding:
    """Score one sample in this process and one in an isolated process."""
    finding = Finding(LOCAL, version(DISTRIBUTION))
    uncached = {"cache_enabled": False}
    request = Request(RULE_PREFIX + SAMPLE["data_source"], SAMPLE["solution_str"], SAMPLE["ground_truth"], uncached)
    isolated = Request(f"{RULE_PREFIX}regex_format", "42", None, {"pattern": "[0-9]+", **uncached})
    try:
        for one in (isolated, request):
            started = time.monotonic()
            [score] = await ascore([one], on_error="none", timeout=SAMPLE_TIMEOUT)
            elapsed = (time.monotonic() - started) * 1000
            if score.status != "ok" or score.value != SCORE:
                what = f"expected {SCORE}, got {score.status} with {score.value} ({score.reason})"
                raise ProbeError(f"{one.data_source}: {what}", INSTALL)
    except ConfigError as error:
        finding.problem = ProbeError(str(error), INSTALL)
    except ProbeError as problem:
        finding.problem = problem
    else:
        finding.sample = f"{SAMPLE['data_source']}: {SCORE} in {elapsed:.0f} ms"
    return finding


async def _probe(server: ProbedService, finding: Finding) -> None:
    health = await server.ask_json("/health")
    if not isinstance(health, dict) or "version" not in health:
        raise ProbeError("/health: not the answer of a reward server", NAMES.another_service)
    finding.version = str(health["version"])
    await server.ask_json("/ready")
    started = time.monotonic()
    reply = await server.ask_json("/v1/score", {"items": [SAMPLE]})
    elapsed = (time.monotonic() - started) * 1000
    try:
        score = reply["scores"][0]
        value, status, reason = score["value"], score["status"], score["reason"]
    except (KeyError, IndexError, TypeError):
        raise ProbeError("/v1/score: not the answer of a reward server", NAMES.another_service) from None
    if status != "ok" or value != SCORE:
        message = f"expected {SCORE}, got {status} with {value} ({reason})"
        raise ProbeError(f"{SAMPLE['data_source']}: {message}", f"it runs but scores wrongly; {LOGS}")
    finding.sample = f"{SAMPLE['data_source']}: {value} in {elapsed:.0f} ms"
