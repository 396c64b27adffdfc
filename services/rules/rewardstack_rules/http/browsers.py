"""Stop web pages from sending requests to this server through the browser of a user who can reach it.

A page of another site can make the browser send requests here, and the browser adds a password that it has stored for
this server. The browser marks such requests with headers (Fetch Metadata, `Origin`), and this server refuses them. With
DNS rebinding, a page points its own host name to this server, so the browser does not mark its requests. Therefore a
server without API keys answers only to host names that no attacker can own. The gateway has the same rules for model
servers (`helm/rewardstack/files/gateway/browsers.conf.template`).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from functools import cache
from urllib.parse import urlsplit

from flask import Flask, request

from rewardstack_rules.http.errors import BROWSER_PATHS, ApiError

SETTING = "ALLOWED_HOSTS"
LINKABLE_PATHS = BROWSER_PATHS | {"/health", "/ready"}
"""Paths that pages of any site may link to. Requests to them change nothing, and other sites cannot read the reply."""
OTHER_SITES = frozenset({"cross-site", "same-site"})
"""Values of `Sec-Fetch-Site` in requests from a page of another origin."""
NEVER_DELEGATED = (".localhost", ".internal", ".svc", ".cluster.local")
"""Domains in which nobody can register public names."""


def install(app: Flask, allowed: Collection[str], has_keys: bool) -> None:
    """Refuse requests from pages of other sites. Without keys, also check the host name (`is_own_host`).

    Args:
        app: the server's application.
        allowed: additional host names of the server; a name that begins with a dot allows every subdomain.
        has_keys: whether clients must send an API key. If they must, host names are not checked: a browser that has
            stored a key for the server's own host name does not send it to the host name of another site's page.
    """

    def check() -> None:
        if is_cross_site() and request.path not in LINKABLE_PATHS:
            message = "a web page of another site sent this request (Sec-Fetch-Site, Origin); send it from a program"
            raise ApiError(403, message, "Origin")
        if not has_keys and not is_own_host(host_name(request.host), allowed):
            raise ApiError(
                403,
                f"Host: {request.host!a} is not a known name of this server, and a server without API keys accepts "
                f"only known names; add the name to {SETTING}, use the IP address, or set REWARD_SERVER_API_KEYS",
                "Host",
            )

    app.before_request(check)


def is_cross_site() -> bool:
    """Return whether a browser sent the request on behalf of a page of another origin.

    Browsers send `Sec-Fetch-Site` only to https and loopback addresses. To other addresses they send `Origin` with each
    POST, so `Origin` is compared with `Host` if there is no `Sec-Fetch-Site`.
    """
    site = request.headers.get("Sec-Fetch-Site", "").lower()
    if site:
        return site in OTHER_SITES
    origin = request.headers.get("Origin")
    return origin is not None and origin.lower().partition("://")[2] != request.headers.get("Host", "").lower()


def host_name(authority: str) -> str:
    """Return the host name in a `Host` header, without port, brackets and trailing dot.

    If the header has no host name, return an empty string; if it is malformed, return it unchanged.
    """
    try:
        return (urlsplit(f"//{authority}").hostname or "").removesuffix(".")
    except ValueError:
        return authority


def is_own_host(host: str, allowed: Collection[str]) -> bool:
    """Return whether a host name is a name of this server, or one that no attacker can register.

    Args:
        host: the host name, in lower case.
        allowed: additional names of the server, as in `install`.
    """
    if "." not in host or host.endswith(NEVER_DELEGATED) or _is_address(host):
        return True
    if any(host == name or (name.startswith(".") and host.endswith(name)) for name in allowed):
        return True
    return host in _machine_names()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@cache
def _machine_names() -> frozenset[str]:
    """Return the machine's host names. They are cached, because `getfqdn` may query DNS."""
    name = socket.gethostname().lower()
    return frozenset({name, f"{name}.local", socket.getfqdn().lower()})
