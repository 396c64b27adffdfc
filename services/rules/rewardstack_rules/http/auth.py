"""Authenticate requests by API keys, which are compared in constant time.

Other modules get only the tenant, a short hash of the key. A trainer that cannot set a header can send its key as the
password in a URL (`http://any:KEY@host:6000/...`), which HTTP clients send as basic authentication. ROLL sends its key
in `XRL-Authorization`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest

from flask import Flask, g, request

from rewardstack.cache.key import tenant_of
from rewardstack_rules.http.errors import ApiError

OPEN_PATHS = frozenset({"/health", "/ready"})
MISSING = "an API key is needed: Authorization: Bearer KEY, or X-API-Key: KEY"
REJECTED = "the API key is not accepted; send one of the server's REWARD_SERVER_API_KEYS"
BEARERS = ("Authorization", "XRL-Authorization")


def install(app: Flask, keys: Sequence[str]) -> None:
    """Require one of `keys` for every request except to `OPEN_PATHS`; without keys, accept every request.

    Set `g.tenant` to the tenant of the request's key; empty if no key is required.
    """
    tenants = {key.encode(): tenant_of(key) for key in keys}

    def check() -> None:
        g.tenant = ""
        if not tenants or request.path in OPEN_PATHS:
            return
        sent = _sent_key().encode("utf-8", "surrogatepass")
        matches = [tenant for key, tenant in tenants.items() if compare_digest(key, sent)]
        if not matches:
            raise ApiError(401, REJECTED if sent else MISSING, "Authorization")
        g.tenant = matches[0]

    app.before_request(check)


def _sent_key() -> str:
    credentials = request.authorization
    if credentials is not None and credentials.type == "basic":
        return credentials.password or ""
    for name in BEARERS:
        scheme, _, key = request.headers.get(name, "").partition(" ")
        if scheme.lower() == "bearer":
            return key.strip()
    return request.headers.get("X-API-Key", "")
