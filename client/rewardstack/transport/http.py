"""One HTTP exchange: every way it can go becomes bytes or an error of the tree."""

from __future__ import annotations

import errno
import html
import ipaddress
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from rewardstack.core.wire import REFUSED_FOR_GOOD
from rewardstack.errors import OverloadError, RejectedError, ReplyError, SettingsError, UnreachableError
from rewardstack.transport.resolver import DaemonResolver

CONNECT_TIMEOUT = 5.0
"""Seconds to make a connection."""
KEEPALIVE = 1.8
"""Seconds an idle connection is kept: less than the servers' own (vLLM 5 s, gunicorn 75 s), so none closes in use."""
REPLY_BYTES = 64 * 2**20
"""Largest reply that is read."""
AT_ONCE = 2**16
"""Bytes of a reply that is read in one piece, if it says its length beforehand."""
MESSAGE_CHARACTERS = 300
"""How much of a server's complaint is repeated."""
OVERLOADED = (408, 429, 502, 503, 504)
"""Statuses with which a service refuses for now (`OverloadError`); it is asked again until the deadline."""

OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


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


class Reply(NamedTuple):
    """An answer over HTTP, whatever its status.

    Args:
        url: that was asked, as errors name it.
        status: of the answer.
        headers: by name, of any case.
        data: its body.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    data: bytes


async def exchange(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> bytes:
    """The body of a 2xx reply to one request; arguments and errors are those of `send`, then of `body_of`."""
    return body_of(await send(session, method, url, body, headers))


async def send(
    session: aiohttp.ClientSession, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
) -> Reply:
    """One request and its reply.

    Args:
        session: from `open_session`.
        method: `GET` or `POST`.
        url: absolute.
        body: JSON, or None.
        headers: beside the content type.

    Raises:
        OverloadError: this process has no file descriptor left.
        UnreachableError: no connection, or one that broke.
        ReplyError: a reply that is too large or malformed.
        SettingsError: as `proxy_of` does.
    """
    sent = {"Content-Type": "application/json", **headers} if body is not None else dict(headers)
    address = url.partition("?")[0]
    named, proxy = shown(address), proxy_of(address)
    try:
        async with session.request(method, url, data=body, headers=sent, allow_redirects=False, proxy=proxy) as reply:
            return Reply(named, reply.status, reply.headers, await _read(reply))
    except aiohttp.ClientConnectorError as error:
        if error.os_error.errno in OUT_OF_DESCRIPTORS:
            raise OverloadError("no file descriptor left in this process; raise `ulimit -n`") from error
        obstacle = _obstacle(error, "host" if proxy is None else "proxy")
        raise UnreachableError(f"{named}: {obstacle}{error.os_error.strerror or error}") from error
    except aiohttp.ConnectionTimeoutError as error:
        raise UnreachableError(f"{named}: nothing takes the connection within {CONNECT_TIMEOUT:g} s") from error
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
        raise UnreachableError(f"{named}: {error or type(error).__name__}") from error
    except aiohttp.ClientError as error:
        raise ReplyError(f"{named}: {_fault(error)}") from None  # aiohttp's own words hold the query


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


def body_of(reply: Reply) -> bytes:
    """The body of a 2xx reply.

    Raises:
        OverloadError: 408, 429, 502, 503 or 504.
        RejectedError: a redirect, or any other 4xx; a 503 that is meant for good.
        ReplyError: any other 5xx.
    """
    if 200 <= reply.status < 300:
        return reply.data
    complaint = complaint_in(reply.data)
    message = f"{reply.url} answered {reply.status}{': ' if complaint else ''}{complaint}"
    if reply.status in OVERLOADED and REFUSED_FOR_GOOD not in reply.headers:
        raise OverloadError(message, _retry_after(reply.headers.get("Retry-After", "")))
    if reply.status < 500 or reply.status == 503:
        raise RejectedError(message, reply.status)
    raise ReplyError(message)


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


def complaint_in(data: bytes) -> str:
    """What the body of a refusal says, in one line: its `error` where it is JSON, its title where it is a page."""
    text = data[: 8 * MESSAGE_CHARACTERS].decode("utf-8", "replace")
    try:
        record: Any = json.loads(text)
    except ValueError:
        record = None
    if isinstance(record, dict):
        complaint = record.get("error") or record.get("message") or record
        text = complaint if isinstance(complaint, str) else json.dumps(complaint)
    elif text.lstrip().startswith("<"):
        text = _of_page(text)
    return " ".join(text.split())[:MESSAGE_CHARACTERS]


def _of_page(text: str) -> str:
    """What a page in HTML, as proxies and other services' servers send it, says: its title, or all but its tags."""
    title = re.search(r"(?i)<title[^<>]*>([^<]+)", text)
    return html.unescape(title[1] if title else re.sub(r"<[^<>]*>", " ", text))


def _retry_after(value: str) -> float:
    """Seconds; the header's other form, a date, is rare among the servers here and read as none."""
    return float(value) if value.isascii() and value.isdigit() else 0.0
