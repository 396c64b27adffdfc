"""Tries a reward server: does it live, is it ready, what does it make of a sample."""

from __future__ import annotations

import time

from rewardstack.settings import Settings
from rewardstack_cli.probes.finding import Finding, Trouble
from rewardstack_cli.probes.http import LOGS, Names, Probed, probe

SAMPLE = {"data_source": "gsm8k", "solution_str": "6 * 7 = 42\n#### 42", "ground_truth": "42"}
SCORE = 1.0

NAMES = Names("REWARD_SERVER_URL", "REWARD_SERVER_API_KEY", "REWARD_SERVER_API_KEYS")


async def probe_reward_server(url: str, settings: Settings) -> Finding:
    """Tries the reward server at `url`.

    Args:
        url: its base URL.
        settings: with the key to send.
    """
    return await probe(url, settings.reward_server_api_key, NAMES, _probe)


async def _probe(server: Probed, finding: Finding) -> None:
    health = await server.ask_json("/health")
    if not isinstance(health, dict) or "version" not in health:
        raise Trouble("/health: not the answer of a reward server", NAMES.another)
    finding.version = str(health["version"])
    await server.ask_json("/ready")
    started = time.monotonic()
    reply = await server.ask_json("/v1/score", {"items": [SAMPLE]})
    elapsed = (time.monotonic() - started) * 1000
    try:
        score = reply["scores"][0]
        value, status, reason = score["value"], score["status"], score["reason"]
    except (KeyError, IndexError, TypeError):
        raise Trouble("/v1/score: not the answer of a reward server", NAMES.another) from None
    if status != "ok" or value != SCORE:
        message = f"a sample worth {SCORE} is {status} with {value} ({reason})"
        raise Trouble(message, f"it runs but does not score rightly; {LOGS}")
    finding.sample = f"{SAMPLE['data_source']}: {value} in {elapsed:.0f} ms"
