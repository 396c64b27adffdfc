"""Send HTTP requests to a service that is probed, and suggest remedies for failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp

from rewardstack.core.addresses import shown_url, wrong_url_remedy
from rewardstack.errors import OverloadError, RejectedError, ServiceError, SettingsError, UnreachableError
from rewardstack.transport.http import authorization, find_proxy, open_session
from rewardstack.transport.message import Reply, get_body
from rewardstack.transport.service import find_service
from rewardstack_cli.console import wait_with_notice
from rewardstack_cli.probes.finding import Finding, ProbeError

TIMEOUT = 10.0
"""Default timeout of a request, in seconds."""
LOGS = "look at the service's log (`make logs`)"


class RemedyNames(NamedTuple):
    """Names of settings, for remedies.

    Args:
        url: name of the setting with the service's URLs.
        api_key: name of the setting with the service's key.
        server_key: phrase for the keys that the server accepts, such as "keys (--api-key)".
        started_by: phrase after "start it", such as " with `make up`"; empty for an external service.
    """

    url: str
    api_key: str
    server_key: str
    started_by: str = " with `make up`"

    @property
    def another_service(self) -> str:
        """The remedy if another service answers at the URL."""
        return wrong_url_remedy("", self.url)


REFUSED_REQUEST = (400, 422)
"""HTTP statuses of a server that has read a request and refuses it."""


class ProbedService:
    """A service that is probed over HTTP.

    Args:
        url: base URL of the service.
        api_key: key to send.
        session: HTTP session for the requests.
        names: names for the remedies.
        headers: headers in addition to the key.
        query: query string of every request, with the question mark; empty for none.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        session: aiohttp.ClientSession,
        names: RemedyNames,
        headers: Mapping[str, str] = MappingProxyType({}),
        query: str = "",
    ) -> None:
        self.names = names
        self.has_key = bool(api_key)
        self._url = url
        self._query = query
        self._headers = {**authorization(api_key), **headers}
        self._session = session

    async def reply(self, path: str, body: bytes | None = None, timeout: float = TIMEOUT, **headers: str) -> Reply:
        """Send a request and return the reply, whatever its status.

        Args:
            path: path below the base URL.
            body: JSON to post; None for a GET.
            timeout: timeout in seconds.
            headers: additional headers, with `_` in place of `-` in their names. If they contain `Authorization`, it
                is sent instead of the key.

        Raises:
            ProbeError: there is no reply.
        """
        extra_headers = {name.replace("_", "-"): text for name, text in headers.items()}
        method = "GET" if body is None else "POST"
        service = find_service(self._session, self._url)
        call = service.send(method, self._url + path + self._query, body, {**self._headers, **extra_headers})
        try:
            return await wait_with_notice(call, timeout, f"{shown_url(self._url)}{path}")
        except asyncio.TimeoutError:
            problem_text = f"{path}: the server accepts the connection, but sends no answer within {timeout:g} s"
            raise ProbeError(problem_text, f"the server is overloaded or hangs; {LOGS}") from None
        except SettingsError as error:
            raise ProbeError(f"{path}: {error}", f"correct {error.field}") from error
        except ServiceError as error:
            raise self.probe_error(error) from error

    async def ask(self, path: str, body: bytes | None = None, timeout: float = TIMEOUT) -> bytes:
        """Send a request and return the body of a successful reply.

        Raises:
            ProbeError: there is no reply, or the reply is an error.
        """
        reply = await self.reply(path, body, timeout)
        try:
            return get_body(reply)
        except ServiceError as error:
            raise self.probe_error(error) from error

    async def ask_json(self, path: str, body: Mapping[str, Any] | None = None, timeout: float = TIMEOUT) -> Any:
        """Send a request and return the parsed JSON of a successful reply.

        Raises:
            ProbeError: there is no reply, or the reply is an error or not JSON.
        """
        try:
            return json.loads(await self.ask(path, None if body is None else json.dumps(body).encode(), timeout))
        except ValueError:
            raise ProbeError(f"{path}: the answer is not JSON", self.names.another_service) from None

    def probe_error(self, error: ServiceError) -> ProbeError:
        """Convert an error of the service to a `ProbeError` with a remedy; secrets in the URL are left out."""
        problem_text = str(error).removeprefix(self._url).replace(self._url, shown_url(self._url))
        remedy = self._remedy(error)
        if find_proxy(self._url):
            host = urlsplit(self._url).hostname
            remedy = f"the request uses a proxy: add {host} to NO_PROXY if the host needs none; otherwise, {remedy}"
        return ProbeError(problem_text, remedy)

    def _remedy(self, error: ServiceError) -> str:
        if isinstance(error, UnreachableError):
            return self._connection_remedy(error.__cause__)
        if isinstance(error, OverloadError) and error.status == HTTPStatus.TOO_MANY_REQUESTS:
            return "the server is overloaded, or its rate limit is reached; try again later"
        if isinstance(error, OverloadError):
            return f"the server is not ready, or a gateway has no server behind it; run `make status`, and {LOGS}"
        if isinstance(error, RejectedError):
            return self._rejection_remedy(error.status)
        return f"the server failed, or another service answers; {LOGS}"

    def _rejection_remedy(self, status: int) -> str:
        url, api_key, server_key = self.names[:3]
        if status in (401, 403) and self.has_key:
            return f"{api_key} is not one of the server's {server_key}; correct it"
        if status in (401, 403):
            return f"set {api_key} to one of the server's {server_key}"
        if status < 400:
            return f"set {url} to the target of the redirect"
        if status in REFUSED_REQUEST:
            return "the server is there, but refuses the request; change or omit the option that its message names"
        return wrong_url_remedy(self._url, url)

    def _connection_remedy(self, cause: BaseException | None) -> str:
        url = self.names.url
        start = f"start it{self.names.started_by}, or correct {url}"
        if isinstance(cause, aiohttp.ClientConnectorDNSError):
            return f"host not found; correct {url}, or check DNS"
        if isinstance(cause, aiohttp.ClientSSLError):
            return (
                f"TLS failed: use http:// in {url} if the server speaks no TLS; otherwise, make its certificate "
                "trusted here (SSL_CERT_FILE)"
            )
        if isinstance(cause, asyncio.TimeoutError):
            return f"nothing answers at this address; correct {url}, or open the port in the firewall"
        if isinstance(cause, aiohttp.ClientConnectorError):
            return start
        return (
            "the connection closed without an HTTP answer: the server needs https://, or another service answers "
            f"there; {start}"
        )


async def probe(
    url: str,
    api_key: str,
    names: RemedyNames,
    check: Callable[[ProbedService, Finding], Awaitable[None]],
    headers: Mapping[str, str] = MappingProxyType({}),
    query: str = "",
) -> Finding:
    """Open an HTTP session, probe a service, and return the finding.

    Args:
        url: base URL of the service.
        api_key: key to send.
        names: names for the remedies.
        check: sends requests and stores the results in the finding; raises `ProbeError` if something is wrong.
        headers: headers in addition to the key.
        query: query string of every request, with the question mark; empty for none.
    """
    finding = Finding(shown_url(url))
    try:
        async with open_session() as session:
            await check(ProbedService(url, api_key, session, names, headers, query), finding)
    except ProbeError as problem:
        finding.problem = problem
    return finding
