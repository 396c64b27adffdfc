"""Authenticates requests by API keys, which are compared in constant time.

Other modules get only the tenant, a short hash of the key. Trainers that cannot set a header can send a key as the
password of a URL (`http://any:KEY@host:6000/...`, which becomes HTTP's basic authentication). ROLL sends the key in a
header of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest

from flask import Flask, g, request

from rewardstack.cache.key import tenant_of
from rewardstack_rules.http.errors import ApiError

OPEN_PATHS = frozenset({"/health", "/ready"})
BEARERS = ("Authorization", "XRL-Authorization")


def install(app: Flask, keys: Sequence[str]) -> None:
    """Require one of `keys` for every request to `app`, unless `keys` is empty; `/health` and `/ready` need no key."""
    tenants = {key.encode(): tenant_of(key) for key in keys}

    def check() -> None:
        g.tenant = ""
        if not tenants or request.path in OPEN_PATHS:
            return
        given = _given_key().encode("utf-8", "surrogatepass")
        known = [tenant for key, tenant in tenants.items() if compare_digest(key, given)]
        if not known:
            raise ApiError(401, "an API key is needed: Authorization: Bearer KEY, or X-API-Key: KEY", "Authorization")
        g.tenant = known[0]

    app.before_request(check)


def _given_key() -> str:
    credentials = request.authorization
    if credentials is not None and credentials.type == "basic":
        return credentials.password or ""
    for name in BEARERS:
        scheme, _, key = request.headers.get(name, "").partition(" ")
        if scheme.lower() == "bearer":
            return key.strip()
    return request.headers.get("X-API-Key", "")
