"""Probe the result cache: log in, write, read, and verify the signatures of stored values."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rewardstack.cache.key import PREFIX
from rewardstack.cache.signature import is_accepted
from rewardstack.core.addresses import shown_url
from rewardstack.settings import Settings
from rewardstack_cli.probes.finding import Finding, ProbeError

if TYPE_CHECKING:
    from redis.asyncio import Redis

TIMEOUT = 5.0
"""Timeout in seconds of each request."""
EXPIRY_SECONDS = 60
"""Expiry in seconds of the probe's entry, in case it cannot be deleted."""
MAX_CHECKED = 100
"""Maximum number of stored values whose signatures are verified."""
MAX_SCANNED = 10_000
"""Approximate number of keys that are scanned to find stored values."""

FULL = "the cache is full; set `maxmemory-policy allkeys-lru`, or raise `maxmemory`"
ANOTHER_SERVICE = "another service answers there; correct host and port in REWARD_CACHE_URL"
TIMED_OUT = (
    "the cache hangs (`make status`), a firewall drops the connection, or the cache speaks plain redis:// rather than "
    "rediss://"
)
SIGNATURES = (
    "set REWARD_CACHE_SECRET to the same value for all users of the cache, including the reward server, or for none. "
    "If you have just changed it for all users, do nothing: values with the old signature are replaced over time"
)
REFUSED = "connection refused; start it with `make up`, or correct REWARD_CACHE_URL"


async def probe_cache(url: str, settings: Settings) -> Finding:
    """Probe the Redis at `url`.

    Args:
        url: URL with scheme, credentials and database.
        settings: settings with the secret that signs values.
    """
    finding = Finding(shown_url(url))
    try:
        if find_spec("redis") is None:
            raise ProbeError("the package redis is not installed", 'pip install "redis[hiredis]"')
        await _probe(url, finding, settings.cache_secret)
    except ProbeError as problem:
        finding.problem = problem
    return finding


async def _probe(url: str, finding: Finding, secret: str) -> None:
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    try:
        redis = Redis.from_url(url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)
    except ValueError as error:
        raise ProbeError(str(error), "correct REWARD_CACHE_URL: redis://:PASSWORD@HOST:PORT/DATABASE") from error
    try:
        await _write_and_read(redis, finding)
        await _check_signatures(redis, finding, secret)
    except (RedisError, OSError, asyncio.TimeoutError) as error:
        raise ProbeError(str(error) or type(error).__name__, _remedy(error)) from error
    finally:
        await redis.aclose()


async def _write_and_read(redis: Redis, finding: Finding) -> None:
    finding.version = str((await redis.info("server")).get("redis_version", ""))
    key, value = f"rewardstack:check:{secrets.token_hex(8)}", secrets.token_bytes(8)
    started = time.monotonic()
    await redis.set(key, value, ex=EXPIRY_SECONDS)
    if await redis.get(key) != value:
        raise ProbeError("a value that was written cannot be read back", FULL)
    finding.sample = f"written and read in {(time.monotonic() - started) * 1000:.1f} ms"
    await redis.delete(key)


async def _check_signatures(redis: Redis, finding: Finding, secret: str) -> None:
    """Verify the signatures of some stored values.

    Raise `ProbeError` if all of them are invalid; if only some are, add a note to the finding.
    """
    from redis.exceptions import NoPermissionError

    try:
        found_keys: list[Any] = (await redis.scan(match=f"{PREFIX}*", count=MAX_SCANNED))[1]
    except NoPermissionError:  # a trainer's Redis user need not have the permission to list keys
        return
    keys = found_keys[:MAX_CHECKED]
    values: list[Any] = await redis.mget(keys) if keys else []
    stored = [(key.decode(errors="replace"), one) for key, one in zip(keys, values, strict=True) if one is not None]
    invalid = sum(not is_accepted(secret, key, one) for key, one in stored)
    if not invalid:
        return
    problem_text = (
        "not signed with this REWARD_CACHE_SECRET" if secret else "signed, and REWARD_CACHE_SECRET is not set"
    )
    problem_text = f"{invalid} of {len(stored)} values are {problem_text}, so they are recomputed"
    if invalid == len(stored):
        raise ProbeError(problem_text, SIGNATURES)
    finding.sample += f"; {problem_text}"


def _remedy(error: Exception) -> str:
    from redis import exceptions

    text = str(error)
    remedies = (
        (
            exceptions.AuthenticationError,
            "put the cache's password into REWARD_CACHE_URL: redis://:PASSWORD@HOST:PORT/0",
        ),
        (
            exceptions.NoPermissionError,
            "the Redis user lacks a permission; grant it +@read +@write +@scripting +info on the keys rewardstack:*",
        ),
        (exceptions.OutOfMemoryError, FULL),
        (exceptions.ReadOnlyError, "this is a replica; put the primary's address into REWARD_CACHE_URL"),
        (exceptions.BusyLoadingError, "Redis is still loading its data; try again in a moment"),
        (exceptions.MaxConnectionsError, "Redis has no connections left; raise `maxclients`"),
        (exceptions.InvalidResponse, ANOTHER_SERVICE),
        (
            (exceptions.TimeoutError, asyncio.TimeoutError),
            TIMED_OUT,
        ),
    )
    for kind, remedy in remedies:
        if isinstance(error, kind):
            return remedy
    if isinstance(error, exceptions.ResponseError) and "DB index" not in text:
        return "correct what Redis reports, or name another Redis in REWARD_CACHE_URL"
    return _connection_remedy(error, text)


def _connection_remedy(error: Exception, text: str) -> str:
    if "DB index" in text:
        return "REWARD_CACHE_URL names a database that the server does not have; use /0"
    if isinstance(error.__cause__, ssl.SSLError) or "SSL" in text:
        return "TLS failed: use redis:// if the cache speaks no TLS; otherwise, make its certificate trusted here"
    if "Name or service not known" in text or "nodename" in text or "resolution" in text:
        return "host not found; correct REWARD_CACHE_URL, or check DNS"
    if "losed" in text or "reset" in text:
        return f"the server closes the connection: use rediss:// if the cache speaks TLS. Otherwise, {ANOTHER_SERVICE}"
    if "No route to host" in text or "Errno 113" in text:
        return "the host cannot be reached; correct REWARD_CACHE_URL, or the network"
    return REFUSED
