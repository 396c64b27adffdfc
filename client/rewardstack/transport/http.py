"""One exchange with a service, over HTTP or with a Ray actor: every way it can go becomes a reply or an error.

Names resolve in daemon threads: neither the loop nor the interpreter's exit waits for a name server that hangs. A name
whose address refuses is looked up again, so that a server that moved is found.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from rewardstack.core.imports import importing
from rewardstack.errors import (
    OverloadError,
    RefusedError,
    ReplyError,
    ServiceError,
    SettingsError,
    UnreachableError,
)
from rewardstack.transport.daemon_thread import in_daemon_thread
from rewardstack.transport.reply import MESSAGE_CHARACTERS, Reply, body_of
from rewardstack_settings.kinds import RAY_SCHEME

CONNECT_TIMEOUT = 5.0
"""Seconds to make a connection."""
KEEPALIVE = 1.8
"""Seconds an idle connection is kept: less than the servers' own (vLLM 5 s, gunicorn 75 s), so none closes in use."""
REPLY_BYTES = 64 * 2**20
"""Largest reply that is read."""
AT_ONCE = 2**16
"""Bytes of a reply that is read in one piece, if it says its length beforehand."""

LOOKUP_TIMEOUT = 2.0
"""Seconds to wait for a name whose address is known from before."""
OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class DaemonResolver(AbstractResolver):
    """The system's own resolution (`getaddrinfo`), a thread a look-up; the connector caches the answers.

    While name servers do not answer, a name has its last known addresses. One that they deny has none.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, socket.AddressFamily], list[ResolveResult]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of `host`.

        Raises:
            OSError: there are none.
        """
        key = (host, port, family)
        known = self._known.get(key)
        look_up = in_daemon_thread("rewardstack-dns", partial(_look_up, host, port, family))
        try:
            self._known[key] = await asyncio.wait_for(look_up, LOOKUP_TIMEOUT if known else None)
        except (socket.gaierror, asyncio.TimeoutError) as error:
            if not known or (isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN):
                raise
        return self._known[key]

    async def close(self) -> None:
        """Nothing to close."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    return [
        ResolveResult(
            hostname=host,
            host=str(address[0]),
            port=int(address[1]),
            family=kind,
            proto=protocol,
            flags=socket.AI_NUMERICHOST,
        )
        for kind, _, protocol, _, address in found
    ]


def open_session() -> aiohttp.ClientSession:
    """A session for the running loop; how many connections are open is the limiters' affair, not its own."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE, resolver=DaemonResolver()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def authorization(api_key: str) -> dict[str, str]:
    """The header that carries a key as a bearer token; none where the key is empty."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


@lru_cache(maxsize=1024)
def proxy_of(url: str) -> str | None:
    """The proxy that the environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY) names for `url`, None for none.

    This machine itself is never asked through one; NO_PROXY may name networks too, such as `10.0.0.0/8`. aiohttp's own
    `trust_env` looks it up in a thread for every request, which costs most of the throughput.

    Raises:
        SettingsError: it is no HTTP proxy, such as `socks5://…`, or no address; names the variable.
    """
    parts, proxies = urlsplit(url), getproxies()
    if parts.scheme not in ("http", "https"):
        return None
    variable = parts.scheme if parts.scheme in proxies else "all"
    proxy, host = proxies.get(variable, ""), parts.hostname or ""
    if not proxy or is_loopback(host) or proxy_bypass(_place(parts)) or _is_within(host, proxies.get("no", "")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if fault := _fault_of_proxy(proxy):
        name = f"{variable.upper()}_PROXY"
        raise SettingsError(f"{name}: {fault}; set one that is, or name {host} in NO_PROXY", name)
    return proxy


def _fault_of_proxy(url: str) -> str:
    """Why a proxy cannot be used, without its password; empty where it can."""
    kind = url.partition("://")[0]
    if kind.lower() not in ("http", "https"):
        return f"{kind[:MESSAGE_CHARACTERS]}:// is no HTTP proxy, and no other is used here"
    try:
        parts = urlsplit(url)
        is_one = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    return "" if is_one else f"it is no address of a proxy, which is {kind}://HOST:PORT"


def _place(parts: SplitResult) -> str:
    """Host and port of a URL, without the name and password that may stand before them."""
    return parts.netloc.rpartition("@")[2]


def _is_within(host: str, named: str) -> bool:
    """Whether a host is an address in one of the networks, or one of the addresses, among names with commas between."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for name in named.split(","):
        with suppress(ValueError):
            if address in ipaddress.ip_network(name.strip().strip("[]"), strict=False):
                return True
    return False


def is_loopback(host: str) -> bool:
    """Whether a host of a URL is this machine by its name or address, `0.0.0.0` as servers print it included."""
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
def shown(url: str) -> str:
    """`url` as errors name it: without its query, and with the proxy that its requests go through, where there is one.

    Raises:
        SettingsError: as `proxy_of` does.
    """
    address = url.partition("?")[0]
    proxy = proxy_of(address)
    if proxy is None:
        return address
    parts = urlsplit(proxy)
    return f"{address} (through the proxy {parts.scheme}://{_place(parts)})"


async def exchange(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> bytes:
    """Return the body of a 2xx reply to one request; arguments and errors are those of `send`, then of `body_of`."""
    return body_of(await send(session, method, url, body, headers))


async def send(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> Reply:
    """Send one request and return its reply.

    Args:
        session: from `open_session`.
        method: `GET` or `POST`.
        url: absolute; that of a Ray actor is asked as `ray_actor.send` does.
        body: JSON, or None.
        headers: beside the content type.

    Raises:
        OverloadError: this process has no file descriptor left.
        RefusedError: nothing listens there.
        UnreachableError: no connection otherwise, or one that broke before there was a reply.
        ReplyError: a reply that is too large or malformed, or breaks off.
        SettingsError: as `proxy_of` does.
    """
    if url.startswith(RAY_SCHEME):
        with importing:
            from rewardstack.transport import ray_actor
        return await ray_actor.send(method, url, body, headers)
    sent = {"Content-Type": "application/json", **headers} if body is not None else dict(headers)
    address = url.partition("?")[0]
    named, proxy = shown(address), proxy_of(address)
    try:
        async with session.request(method, url, data=body, headers=sent, allow_redirects=False, proxy=proxy) as reply:
            return Reply(named, reply.status, reply.headers, await _read(reply))
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
        if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
            _forget_address(session, proxy or url)
        raise _meaning(error, named, "host" if proxy is None else "proxy") from error
    except aiohttp.ClientError as error:
        raise ReplyError(f"{named}: {_fault(error)}") from None  # aiohttp's own words hold the query


def _meaning(error: aiohttp.ClientError | OSError, named: str, asked: str) -> ServiceError:
    """Return what it means that the connection to the host, or to the proxy before it, brought no reply."""
    if isinstance(error, aiohttp.ClientConnectorError):
        if error.os_error.errno in OUT_OF_DESCRIPTORS:
            return OverloadError("no file descriptor left in this process; raise `ulimit -n`")
        kind = RefusedError if error.os_error.errno == errno.ECONNREFUSED else UnreachableError
        return kind(f"{named}: {_obstacle(error, asked)}{error.os_error.strerror or error}")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return UnreachableError(f"{named}: nothing takes the connection within {CONNECT_TIMEOUT:g} s")
    if isinstance(error, aiohttp.ClientPayloadError):
        return ReplyError(f"{named}: the reply broke off")
    return UnreachableError(f"{named}: {error or type(error).__name__}")


def _forget_address(session: aiohttp.ClientSession, url: str) -> None:
    """Have the host's name looked up again at its next connection: the service may have moved."""
    parts = urlsplit(url)
    if parts.hostname and isinstance(session.connector, aiohttp.TCPConnector):
        session.connector.clear_dns_cache(parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))


def _obstacle(error: aiohttp.ClientConnectorError, asked: str) -> str:
    """What the system's own words for a failed connection to the host, or to the proxy before it, mean, if known."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the {asked}'s name is not known: "
    if error.os_error.errno != errno.ECONNREFUSED:
        return ""
    return "connection refused, nothing listens there: " if asked == "host" else "the proxy refuses the connection: "


def _fault(error: aiohttp.ClientError) -> str:
    """What is wrong with a reply, in words that do not hold its URL."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{error.status}, {' '.join(error.message.split())[:MESSAGE_CHARACTERS]}"
    return type(error).__name__


async def _read(reply: aiohttp.ClientResponse) -> bytes:
    if (
        reply.content_length is not None
        and reply.content_length <= AT_ONCE
        and not reply.headers.get("Content-Encoding")
    ):
        return await reply.read()
    data = bytearray()
    async for part in reply.content.iter_chunked(2**16):
        data += part
        if len(data) > REPLY_BYTES:
            raise ReplyError(f"{shown(str(reply.url))}: the reply is larger than {REPLY_BYTES} bytes")
    return bytes(data)
