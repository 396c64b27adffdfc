"""How many requests a second one API key may make; on an open server all clients together.

All processes of all servers count together in the Redis of the result cache; where there is none, or it does not
answer, each process counts for itself.
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

from rewardstack.cache.link import REST, WAIT
from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.request_log import QUIET

SETTING = "REWARD_KEY_RATE"
AFTER = 1
"""Seconds after which a key may make requests again."""
FREE = QUIET | {"/v1/reward_types"}
"""Paths that count for nothing; by the last the gateway asks whether a key is known."""
PREFIX = "rewardstack:rate"

log = logging.getLogger(__name__)


def install(app: Flask, rate: int | None, cache_url: str) -> None:
    """Refuses the requests of a key that makes too many. It comes behind what finds out whose they are.

    Args:
        app: the server's.
        rate: requests a second; None for no limit.
        cache_url: the Redis that counts them; empty for none.
    """
    if rate is None:
        return
    window = SlidingWindow(rate, cache_url)
    why = f"{SETTING}: more than {rate} requests a second with this key; wait, or send more samples in each"

    def check() -> None:
        if request.path not in FREE and not window.admits(g.tenant):
            raise ApiError(429, why, SETTING, AFTER)

    app.before_request(check)


class SlidingWindow:
    """Counts the requests of the last second; for any thread.

    Args:
        rate: requests a second that are admitted.
        cache_url: where all processes count; empty for here.
    """

    def __init__(self, rate: int, cache_url: str) -> None:
        self._rate = RateLimitItemPerSecond(rate)
        self._own = self._shared = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._rests_until = 0.0
        if cache_url:
            once = Retry(NoBackoff(), 0)
            pool = ConnectionPool.from_url(cache_url, socket_timeout=WAIT, socket_connect_timeout=WAIT, retry=once)
            storage = RedisStorage(cache_url, connection_pool=pool, key_prefix=PREFIX)
            self._shared = SlidingWindowCounterRateLimiter(storage)

    def admits(self, tenant: str) -> bool:
        """Whether one more request of a tenant is within its rate."""
        if time.monotonic() >= self._rests_until:
            try:
                return self._shared.hit(self._rate, tenant)
            except RedisError as error:
                self._rests_until = time.monotonic() + REST
                log.warning("the cache (REWARD_CACHE_URL) counts no requests, each process does: %s", error)
        return self._own.hit(self._rate, tenant)
