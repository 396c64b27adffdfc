"""Questions to a service over HTTP, and the remedies for the ways in which they go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from rewardstack.core.addresses import shown_url
from rewardstack.errors import OverloadError, RejectedError, ServiceError, SettingsError, UnreachableError
from rewardstack.transport.http import authorization, open_session, proxy_of, send
from rewardstack.transport.reply import Reply, body_of
from rewardstack_cli.console import wait_aloud
from rewardstack_cli.probes.finding import Finding, Trouble

PATIENCE = 10.0
"""Seconds for each question."""
LOGS = "look at its log (`make logs`)"


class Names(NamedTuple):
    """What the remedies speak of.

    Args:
        url: the variable that holds the service's addresses.
        api_key: the variable that holds its key.
        server_key: what holds the keys that the server takes.
        by: what starts the service; empty where that is not ours to say.
    """

    url: str
    api_key: str
    server_key: str
    by: str = " with `make up`"

    @property
    def another(self) -> str:
        """The remedy where another service answers."""
        return f"another service answers there; correct host and port in {self.url}"


class Probed:
    """A service that is asked, and its troubles.

    Args:
        url: its base URL.
        api_key: to send.
        session: that carries the questions.
        names: for the remedies.
        headers: sent beside the key.
        query: of every request, with its question mark; empty for none.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        session: aiohttp.ClientSession,
        names: Names,
        headers: Mapping[str, str] = MappingProxyType({}),
        query: str = "",
    ) -> None:
        self.names = names
        self.has_key = bool(api_key)
        self._url = url
        self._query = query
        self._headers = {**authorization(api_key), **headers}
        self._session = session

    async def reply(self, path: str, body: bytes | None = None, patience: float = PATIENCE, **headers: str) -> Reply:
        """What it answers within `patience` seconds, whatever the status.

        Args:
            path: behind the base URL.
            body: JSON to be posted; None for a GET.
            patience: seconds.
            headers: with `_` for `-`; `Authorization` in place of the key.

        Raises:
            Trouble: nothing comes.
        """
        given = {name.replace("_", "-"): text for name, text in headers.items()}
        method = "GET" if body is None else "POST"
        sent = send(self._session, method, self._url + path + self._query, body, {**self._headers, **given})
        try:
            return await wait_aloud(sent, patience, f"{shown_url(self._url)}{path}")
        except asyncio.TimeoutError:
            what = f"{path}: it takes the connection, and no answer comes within {patience:g} s"
            raise Trouble(what, f"it is overloaded or hangs; {LOGS}") from None
        except SettingsError as error:
            raise Trouble(f"{path}: {error}", f"correct {error.field}") from error
        except ServiceError as error:
            raise self.trouble(error) from error

    async def ask(self, path: str, body: bytes | None = None, patience: float = PATIENCE) -> bytes:
        """What it answers within `patience` seconds.

        Raises:
            Trouble: nothing, or an error.
        """
        reply = await self.reply(path, body, patience)
        try:
            return body_of(reply)
        except ServiceError as error:
            raise self.trouble(error) from error

    async def ask_json(self, path: str, body: Mapping[str, Any] | None = None, patience: float = PATIENCE) -> Any:
        """The JSON that it answers; raises as `ask` does, and where it is none."""
        try:
            return json.loads(await self.ask(path, None if body is None else json.dumps(body).encode(), patience))
        except ValueError:
            raise Trouble(f"{path}: the answer is not JSON", self.names.another) from None

    def trouble(self, error: ServiceError) -> Trouble:
        """What is wrong, without what the address may hold of secrets, and the remedy."""
        what = str(error).removeprefix(self._url).replace(self._url, shown_url(self._url))
        remedy = self._remedy(error)
        if proxy_of(self._url):
            host = urlsplit(self._url).hostname
            remedy = f"if {host} is reached without the proxy, name it in NO_PROXY; else {remedy}"
        return Trouble(what, remedy)

    def _remedy(self, error: ServiceError) -> str:
        if isinstance(error, UnreachableError):
            return self._connection_remedy(error.__cause__)
        if isinstance(error, OverloadError):
            return f"it is there and not ready, or a gateway finds nothing behind it; `make status`, and {LOGS}"
        if isinstance(error, RejectedError):
            return self._rejection_remedy(error.status)
        return f"a fault of the server's own, or another service; {LOGS}"

    def _rejection_remedy(self, status: int) -> str:
        url, api_key, server_key = self.names[:3]
        if status in (401, 403) and self.has_key:
            return f"{api_key} is none of the server's {server_key}; correct it"
        if status in (401, 403):
            return f"set {api_key} to one of the server's {server_key}"
        if status < 400:
            return f"set {url} to where it redirects"
        return self.names.another

    def _connection_remedy(self, cause: BaseException | None) -> str:
        url = self.names.url
        start = f"start it{self.names.by}, or correct {url}"
        if isinstance(cause, aiohttp.ClientConnectorDNSError):
            return f"no such host name; correct {url}, or the name service"
        if isinstance(cause, aiohttp.ClientSSLError):
            return "TLS failed: is the server's certificate trusted here (SSL_CERT_FILE), or does it speak plain http?"
        if isinstance(cause, asyncio.TimeoutError):
            return f"nothing answers at this address; correct {url}, or let the port through the firewall"
        if isinstance(cause, aiohttp.ClientConnectorError):
            return start
        return f"the connection ends without an answer in HTTP: does it speak https, or is it another service? {start}"


async def probe(
    url: str,
    api_key: str,
    names: Names,
    look: Callable[[Probed, Finding], Awaitable[None]],
    headers: Mapping[str, str] = MappingProxyType({}),
    query: str = "",
) -> Finding:
    """Tries a service in a session of its own.

    Args:
        url: its base URL.
        api_key: to send.
        names: for the remedies.
        look: asks it and writes down what it finds; raises Trouble.
        headers: to send beside the key.
        query: to send with every request.
    """
    finding = Finding(shown_url(url))
    try:
        async with open_session() as session:
            await look(Probed(url, api_key, session, names, headers, query), finding)
    except Trouble as trouble:
        finding.trouble = trouble
    return finding
