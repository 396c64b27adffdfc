"""Limit the requests per second of an API key. On a server without keys, the limit applies to all clients together.

All processes of all servers count requests together, in the Redis of the result cache. If there is no such Redis, or it
does not answer, each process counts its own requests.
"""

from __future__ import annotations

import logging
import time

from flask import Flask, g, request
from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from rewardstack.cache import link
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.request_log import QUIET

SETTING = "REWARD_KEY_RATE"
RETRY_AFTER = 1
"""Value of the Retry-After header, in seconds."""
UNLIMITED_PATHS = QUIET | {"/v1/reward_types"}
"""Paths without a limit. The gateway requests `/v1/reward_types` to check a key."""
PREFIX = "rewardstack:rate"

log = logging.getLogger(__name__)


def install(app: Flask, rate: int | None, cache_url: str) -> None:
    """Make `app` refuse requests of a key beyond the rate. Call this after `auth.install`, which sets the tenant.

    Args:
        app: the server's application.
        rate: maximum requests per second of a key; None for no limit.
        cache_url: URL of the Redis where all processes count; empty for none.
    """
    if rate is None:
        return
    window = SlidingWindow(rate, cache_url)
    why = f"{SETTING}: more than {rate} requests per second with this key; wait, or send more samples per request"

    def check() -> None:
        if request.path not in UNLIMITED_PATHS and not window.admits(g.tenant):
            raise ApiError(429, why, SETTING, RETRY_AFTER)

    app.before_request(check)


class SlidingWindow:
    """Counts each tenant's requests of the last second; thread-safe.

    Args:
        rate: maximum requests per second.
        cache_url: URL of the Redis where all processes count; empty to count in this process.
    """

    def __init__(self, rate: int, cache_url: str) -> None:
        self._rate = RateLimitItemPerSecond(rate)
        self._local = self._shared = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._retry_redis_at = 0.0
        if cache_url:
            once = Retry(NoBackoff(), 0)
            pool = ConnectionPool.from_url(
                cache_url, socket_timeout=link.TIMEOUT, socket_connect_timeout=link.TIMEOUT, retry=once
            )
            storage = RedisStorage(cache_url, connection_pool=pool, key_prefix=PREFIX)
            self._shared = SlidingWindowCounterRateLimiter(storage)

    def admits(self, tenant: str) -> bool:
        """Return whether another request of a tenant is within the rate; if it is, count it."""
        if time.monotonic() >= self._retry_redis_at:
            try:
                return self._shared.hit(self._rate, tenant)
            except RedisError as error:
                self._retry_redis_at = time.monotonic() + link.RETRY_AFTER
                log.warning("REWARD_CACHE_URL: cannot count requests in Redis, so each process counts alone: %s", error)
        return self._local.hit(self._rate, tenant)
