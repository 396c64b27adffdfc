"""Tries the result cache: can one log in, write and read, and can the values there be read with this secret."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rewardstack.cache.key import PREFIX
from rewardstack.cache.seal import fits
from rewardstack.core.addresses import shown_url
from rewardstack.settings import Settings
from rewardstack_cli.probes.finding import Finding, Trouble

if TYPE_CHECKING:
    from redis.asyncio import Redis

PATIENCE = 5.0
"""Seconds for each question."""
KEPT = 60
"""Seconds the probe's entry stays if it cannot be deleted."""
LOOKED_AT = 100
"""Values whose seals are looked at, at most."""
SCANNED = 10_000
"""Keys among which they are looked for: other things may stand there too."""

FULL = "it is full; give it `maxmemory-policy allkeys-lru`, or more `maxmemory`"
ANOTHER = "another service answers there; correct host and port in REWARD_CACHE_URL"
HANGS = "it hangs (`make status`), a firewall drops the connection, or it speaks plain redis:// rather than rediss://"
SEALS = (
    "set REWARD_CACHE_SECRET to the one that the others have, the reward server among them, or unset it where they "
    "have none; where it was changed for all just now, values from before go by themselves"
)
START = "nothing listens there; start it with `make up`, or correct REWARD_CACHE_URL"


async def probe_cache(url: str, settings: Settings) -> Finding:
    """Tries the Redis at `url`.

    Args:
        url: with scheme, credentials and database.
        settings: with the secret of the values.
    """
    finding = Finding(shown_url(url))
    try:
        if find_spec("redis") is None:
            raise Trouble("the package redis is not installed", 'pip install "redis[hiredis]"')
        await _probe(url, finding, settings.cache_secret)
    except Trouble as trouble:
        finding.trouble = trouble
    return finding


async def _probe(url: str, finding: Finding, secret: str) -> None:
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    try:
        redis = Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    except ValueError as error:
        raise Trouble(str(error), "correct REWARD_CACHE_URL: redis://:PASSWORD@HOST:PORT/DATABASE") from error
    try:
        await _use(redis, finding)
        await _look_at_seals(redis, finding, secret)
    except (RedisError, OSError, asyncio.TimeoutError) as error:
        raise Trouble(str(error) or type(error).__name__, _remedy(error)) from error
    finally:
        await redis.aclose()


async def _use(redis: Redis, finding: Finding) -> None:
    finding.version = str((await redis.info("server")).get("redis_version", ""))
    key, value = f"rewardstack:check:{secrets.token_hex(8)}", secrets.token_bytes(8)
    started = time.monotonic()
    await redis.set(key, value, ex=KEPT)
    if await redis.get(key) != value:
        raise Trouble("what was written does not come back", FULL)
    finding.sample = f"written and read in {(time.monotonic() - started) * 1000:.1f} ms"
    await redis.delete(key)


async def _look_at_seals(redis: Redis, finding: Finding, secret: str) -> None:
    """Whether the values there are sealed as this process would seal them: some of them at least."""
    found: list[Any] = (await redis.scan(match=f"{PREFIX}*", count=SCANNED))[1]
    keys = found[:LOOKED_AT]
    values: list[Any] = await redis.mget(keys) if keys else []
    there = [(key.decode(errors="replace"), one) for key, one in zip(keys, values, strict=True) if one is not None]
    foreign = sum(not fits(secret, key, one) for key, one in there)
    if not foreign:
        return
    what = "not sealed with this REWARD_CACHE_SECRET" if secret else "sealed, and REWARD_CACHE_SECRET is not set"
    what = f"{foreign} of {len(there)} values there are {what}, so they are made anew"
    if foreign == len(there):
        raise Trouble(what, SEALS)
    finding.sample += f"; {what}"


def _remedy(error: Exception) -> str:
    from redis import exceptions

    text = str(error)
    remedies = (
        (exceptions.AuthenticationError, "put its password into REWARD_CACHE_URL: redis://:PASSWORD@HOST:PORT/0"),
        (
            exceptions.NoPermissionError,
            "its user may not do this; give it +@read +@write +@scripting +info on the keys rewardstack:*",
        ),
        (exceptions.OutOfMemoryError, FULL),
        (exceptions.ReadOnlyError, "this is a replica; put the primary's address into REWARD_CACHE_URL"),
        (exceptions.BusyLoadingError, "it is still loading its data; try again in a moment"),
        (exceptions.MaxConnectionsError, "it has no connection left; raise its `maxclients`"),
        (exceptions.InvalidResponse, ANOTHER),
        (
            (exceptions.TimeoutError, asyncio.TimeoutError),
            HANGS,
        ),
    )
    for kind, remedy in remedies:
        if isinstance(error, kind):
            return remedy
    return _connection_remedy(error, text)


def _connection_remedy(error: Exception, text: str) -> str:
    if "DB index" in text:
        return "REWARD_CACHE_URL names a database that it does not have; use /0"
    if isinstance(error.__cause__, ssl.SSLError) or "SSL" in text:
        return "TLS failed: does it speak plain redis:// rather than rediss://, and is its certificate trusted here?"
    if "Name or service not known" in text or "nodename" in text or "resolution" in text:
        return "no such host name; correct REWARD_CACHE_URL, or the name service"
    if "losed" in text or "reset" in text:
        return f"it ends the connection: does it speak TLS (rediss://)? Or {ANOTHER}"
    return START
