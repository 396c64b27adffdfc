"""Who may ask: API keys, compared in constant time. A tenant is a key's short hash; the key itself goes nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest

from flask import Flask, g, request

from rewardstack.cache.key import tenant_of
from rewardstack_rules.http_errors import ApiError

OPEN_PATHS = frozenset({"/health", "/ready"})


def install(app: Flask, keys: Sequence[str]) -> None:
    """Lets in who has one of `keys`; everyone where there are none. `/health` and `/ready` are always open."""
    tenants = {key.encode(): tenant_of(key) for key in keys}

    def check() -> None:
        g.tenant = ""
        if not tenants or request.path in OPEN_PATHS:
            return
        given = _given_key().encode()
        known = [tenant for key, tenant in tenants.items() if compare_digest(key, given)]
        if not known:
            raise ApiError(401, "an API key is needed: Authorization: Bearer KEY, or X-API-Key: KEY", "Authorization")
        g.tenant = known[0]

    app.before_request(check)


def _given_key() -> str:
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else request.headers.get("X-API-Key", "")
