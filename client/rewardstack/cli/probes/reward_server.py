"""Tries a reward server: does it live, is it ready, what does it make of a sample."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import aiohttp

from rewardstack.cli.probes.finding import Finding, Trouble, shown_url
from rewardstack.errors import OverloadError, RejectedError, ServiceError, UnreachableError
from rewardstack.settings import Settings
from rewardstack.transport.http import exchange, open_session

PATIENCE = 10.0
"""Seconds for each question."""
SAMPLE = {"data_source": "gsm8k", "solution_str": "6 * 7 = 42\n#### 42", "ground_truth": "42"}
SCORE = 1.0

LOGS = "look at its log (`make logs`)"
START = "start it with `make up`, or correct REWARD_SERVER_URL"
ANOTHER = "another service answers there; correct host and port in REWARD_SERVER_URL"


async def probe_reward_server(url: str, settings: Settings) -> Finding:
    """Tries the reward server at `url`.

    Args:
        url: its base URL.
        settings: with the key to send.
    """
    finding = Finding(shown_url(url))
    try:
        async with open_session() as session:
            await _probe(_Server(url, settings.reward_server_api_key, session), finding)
    except Trouble as trouble:
        finding.trouble = trouble
    return finding


class _Server:
    def __init__(self, url: str, api_key: str, session: aiohttp.ClientSession) -> None:
        self.has_key = bool(api_key)
        self._url = url
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session = session

    async def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON that it answers; raises `Trouble`."""
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        request = exchange(self._session, method, self._url + path, data, self._headers)
        try:
            return json.loads(await asyncio.wait_for(request, PATIENCE))
        except asyncio.TimeoutError:
            raise Trouble(f"{path}: no answer within {PATIENCE:g} s", f"it is overloaded or hangs; {LOGS}") from None
        except ValueError:
            raise Trouble(f"{path}: the answer is not JSON", ANOTHER) from None
        except ServiceError as error:
            what = str(error).removeprefix(self._url)
            raise Trouble(what.replace(self._url, shown_url(self._url)), _remedy(error, self.has_key)) from error


async def _probe(server: _Server, finding: Finding) -> None:
    health = await server.ask("/health")
    if not isinstance(health, dict) or "version" not in health:
        raise Trouble("/health: not the answer of a reward server", ANOTHER)
    finding.version = str(health["version"])
    await server.ask("/ready")
    started = time.monotonic()
    reply = await server.ask("/v1/score", {"items": [SAMPLE]})
    elapsed = (time.monotonic() - started) * 1000
    try:
        score = reply["scores"][0]
        value, status, reason = score["value"], score["status"], score["reason"]
    except (KeyError, IndexError, TypeError):
        raise Trouble("/v1/score: not the answer of a reward server", ANOTHER) from None
    if status != "ok" or value != SCORE:
        message = f"a sample worth {SCORE} is {status} with {value} ({reason})"
        raise Trouble(message, f"it runs but does not score rightly; {LOGS}")
    finding.sample = f"{SAMPLE['data_source']}: {value} in {elapsed:.0f} ms"


def _remedy(error: ServiceError, has_key: bool) -> str:
    if isinstance(error, UnreachableError):
        return _connection_remedy(error.__cause__)
    if isinstance(error, OverloadError):
        return f"it is there and not ready, or a gateway finds nothing behind it; `make status`, and {LOGS}"
    if isinstance(error, RejectedError):
        return _rejection_remedy(error.status, has_key)
    return f"a fault of the server's own, or another service; {LOGS}"


def _rejection_remedy(status: int, has_key: bool) -> str:
    if status in (401, 403) and has_key:
        return "REWARD_SERVER_API_KEY is none of the server's REWARD_SERVER_API_KEYS; correct it"
    if status in (401, 403):
        return "set REWARD_SERVER_API_KEY to one of the server's REWARD_SERVER_API_KEYS"
    if status < 400:
        return "set REWARD_SERVER_URL to where it redirects"
    return ANOTHER


def _connection_remedy(cause: BaseException | None) -> str:
    if isinstance(cause, aiohttp.ClientConnectorDNSError):
        return "no such host name; correct REWARD_SERVER_URL, or the name service"
    if isinstance(cause, aiohttp.ClientSSLError):
        return "TLS failed: is the server's certificate trusted here (SSL_CERT_FILE), or does it speak plain http?"
    if isinstance(cause, asyncio.TimeoutError):
        return "nothing answers at this address; correct REWARD_SERVER_URL, or let the port through the firewall"
    if isinstance(cause, aiohttp.ClientConnectorError):
        return f"nothing listens there; {START}"
    return f"the connection ends without an answer in HTTP: does it speak https, or is it another service? {START}"
