"""Sends one request to a service over HTTP; returns the reply or raises a typed error.

Names are resolved in daemon threads, so a hanging name server blocks neither the event loop nor the interpreter's exit.
After a failed connection, the name is resolved again, in case the server has moved.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from rewardstack.core.event_loop import run_in_daemon_thread
from rewardstack.errors import (
    OverloadError,
    RefusedError,
    ReplyError,
    ServiceError,
    SettingsError,
    UnreachableError,
)
from rewardstack.transport import timing
from rewardstack.transport.message import MAX_MESSAGE, Reply, get_body

MAX_REPLY_BYTES = 64 * 2**20
"""Maximum size of a reply, in bytes."""
MAX_SINGLE_READ = 2**16
"""Maximum Content-Length, in bytes, of a reply that is read in one piece."""

OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
"""Error numbers that mean that the process or machine has no free file descriptors."""


class DaemonResolver(AbstractResolver):
    """Resolves each name with `getaddrinfo` in its own daemon thread; aiohttp's connector caches the answers.

    While name servers do not answer, the last known addresses are used.
    """

    def __init__(self) -> None:
        self._addresses: dict[tuple[str, int, socket.AddressFamily], list[ResolveResult]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of `host`.

        Raises:
            OSError: `host` has no address, or name servers do not answer and no earlier address is known.
        """
        key = (host, port, family)
        earlier = self._addresses.get(key)
        lookup = run_in_daemon_thread("rewardstack-dns", partial(_look_up, host, port, family))
        try:
            self._addresses[key] = await asyncio.wait_for(lookup, timing.LOOKUP_TIMEOUT if earlier else None)
        except (socket.gaierror, asyncio.TimeoutError) as error:
            if not earlier or (isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN):
                raise
        return self._addresses[key]

    async def close(self) -> None:
        """Do nothing; the interface requires this method."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    addresses = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=int(address[1]),
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST,
        )
        for kind, _, protocol, _, address in addresses
    ]


def open_session() -> aiohttp.ClientSession:
    """Return a session for the running loop, without a connection limit: `Servers` limits the requests."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=timing.KEEPALIVE, resolver=DaemonResolver()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=timing.CONNECT_TIMEOUT),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def authorization(api_key: str) -> dict[str, str]:
    """Return the `Authorization` header for a bearer token; empty if the key is empty."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


@lru_cache(maxsize=1024)
def find_proxy(url: str) -> str | None:
    """Return the proxy that HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY set for `url`; None for no proxy.

    Loopback addresses never use a proxy. NO_PROXY may contain networks, such as `10.0.0.0/8`. This function
    replaces aiohttp's `trust_env`, which starts a thread for each request and so costs most of the throughput.

    Raises:
        SettingsError: the variable for `url` is set to something other than the URL of an HTTP proxy, e.g. to
            `socks5://…`; the error names the variable.
    """
    parts, proxies = urlsplit(url), getproxies()
    if parts.scheme not in ("http", "https"):
        return None
    variable = parts.scheme if parts.scheme in proxies else "all"
    proxy, host = proxies.get(variable, ""), parts.hostname or ""
    if (
        not proxy
        or is_loopback(host)
        or proxy_bypass(_host_and_port(parts))
        or _is_in_networks(host, proxies.get("no", ""))
    ):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if fault := _proxy_error(proxy):
        name = f"{variable.upper()}_PROXY"
        raise SettingsError(f"{name}: {fault}; correct it, or add {host} to NO_PROXY", name)
    return proxy


def _proxy_error(url: str) -> str:
    """Return why a proxy cannot be used, without showing its password; empty if the proxy can be used."""
    kind = url.partition("://")[0]
    if kind.lower() not in ("http", "https"):
        return f"{kind[:MAX_MESSAGE]}:// is not an HTTP proxy, the only supported kind"
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    return "" if is_address else f"not a proxy address, which has the form {kind}://HOST:PORT"


def _host_and_port(parts: SplitResult) -> str:
    """Return host and port of a URL, without user name and password."""
    return parts.netloc.rpartition("@")[2]


def _is_in_networks(host: str, networks: str) -> bool:
    """Return whether a host is an IP address in one of the comma-separated networks or addresses in `networks`."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for network in networks.split(","):
        with suppress(ValueError):
            if address in ipaddress.ip_network(network.strip().strip("[]"), strict=False):
                return True
    return False


def is_loopback(host: str) -> bool:
    """Return whether the host of a URL is a loopback name or address, or an unspecified address such as `0.0.0.0`."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


@lru_cache(maxsize=1024)
def display_url(url: str) -> str:
    """Return `url` for messages: without its query, and with the proxy that its requests use.

    Raises:
        SettingsError: the proxy is invalid; see `find_proxy`.
    """
    address = url.partition("?")[0]
    proxy = find_proxy(address)
    if proxy is None:
        return address
    parts = urlsplit(proxy)
    return f"{address} (through the proxy {parts.scheme}://{_host_and_port(parts)})"


class HttpService:
    """Sends requests over HTTP with a session from `open_session`; see `service.Service`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Coroutine[Any, Any, Reply]:
        """Send one request; see `send`."""
        return send(self._session, method, url, body, headers)


async def exchange(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> bytes:
    """Send one request and return the body of a 2xx reply; see `send` and `get_body` for arguments and errors."""
    return get_body(await send(session, method, url, body, headers))


async def send(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> Reply:
    """Send one request and return its reply.

    Args:
        session: a session from `open_session`.
        method: `GET` or `POST`.
        url: absolute URL.
        body: JSON, or None.
        headers: HTTP headers in addition to the content type.

    Raises:
        OverloadError: this process or machine has no file descriptors left.
        RefusedError: the connection was refused.
        UnreachableError: the connection failed for another reason, or was lost before the reply.
        ReplyError: the reply is too large, malformed or incomplete.
        SettingsError: the proxy is invalid; see `find_proxy`.
    """
    sent = {"Content-Type": "application/json", **headers} if body is not None else dict(headers)
    address = url.partition("?")[0]
    display, proxy = display_url(address), find_proxy(address)
    try:
        async with session.request(method, url, data=body, headers=sent, allow_redirects=False, proxy=proxy) as reply:
            return Reply(display, reply.status, reply.headers, await _read(reply))
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
        if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
            _forget_address(session, proxy or url)
        raise _to_service_error(error, display, "host" if proxy is None else "proxy") from error
    except aiohttp.ClientError as error:
        raise ReplyError(f"{display}: {_describe_fault(error)}") from None  # aiohttp's message contains the query


def _to_service_error(error: aiohttp.ClientError | OSError, display: str, target: str) -> ServiceError:
    """Return the typed error for a failed connection or an incomplete reply.

    Args:
        error: the error of aiohttp or of the operating system.
        display: the URL for messages.
        target: what the connection goes to: `host` or `proxy`.
    """
    if isinstance(error, aiohttp.ClientConnectorSSLError) and "WRONG_VERSION" in str(error):
        return UnreachableError(f"{display}: the server does not use TLS; write http:// in place of https://")
    if isinstance(error, aiohttp.ClientConnectorError):
        if error.os_error.errno in OUT_OF_DESCRIPTORS:
            return OverloadError("this process has no file descriptors left; raise `ulimit -n`")
        kind = RefusedError if error.os_error.errno == errno.ECONNREFUSED else UnreachableError
        return kind(f"{display}: {_describe_failure(error, target)}{error.os_error.strerror or error}")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return UnreachableError(f"{display}: the connection was not accepted within {timing.CONNECT_TIMEOUT:g} s")
    if isinstance(error, aiohttp.ClientPayloadError):
        return ReplyError(f"{display}: the reply is incomplete because the connection was lost")
    return UnreachableError(f"{display}: {error or type(error).__name__}")


def _forget_address(session: aiohttp.ClientSession, url: str) -> None:
    """Clear the cached address of the URL's host, so that the next connection resolves the name again."""
    parts = urlsplit(url)
    if parts.hostname and isinstance(session.connector, aiohttp.TCPConnector):
        session.connector.clear_dns_cache(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))


def _describe_failure(error: aiohttp.ClientConnectorError, target: str) -> str:
    """Return an explanation to put before the system's message about a failed connection; empty for none."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "host not found: " if target == "host" else "proxy host not found: "
    if error.os_error.errno != errno.ECONNREFUSED:
        return ""
    return "connection refused (is the server running?): " if target == "host" else "the proxy refuses the connection: "


def _describe_fault(error: aiohttp.ClientError) -> str:
    """Return what is wrong with a malformed reply, without showing the URL."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{error.status}, {' '.join(error.message.split())[:MAX_MESSAGE]}"
    return type(error).__name__


async def _read(reply: aiohttp.ClientResponse) -> bytes:
    if (
        reply.content_length is not None
        and reply.content_length <= MAX_SINGLE_READ
        and not reply.headers.get("Content-Encoding")
    ):
        return await reply.read()
    data = bytearray()
    async for part in reply.content.iter_chunked(2**16):
        data += part
        if len(data) > MAX_REPLY_BYTES:
            raise ReplyError(f"{display_url(str(reply.url))}: the reply is larger than {MAX_REPLY_BYTES} bytes")
    return bytes(data)
