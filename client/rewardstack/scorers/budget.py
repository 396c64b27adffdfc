"""Count the requests and tokens that samples use on model servers, and enforce the limits of a run.

A request counts when it is sent, even if it fails. Tokens count when a reply reports them, so a run can exceed the
token limit by the tokens of the requests that are in flight. A run can exceed the request limit for two reasons only:
trial requests to judges (`judge.calls`) are counted but never refused, and while Redis is unavailable, each process
counts alone.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from rewardstack.cache.key import PREFIX
from rewardstack.cache.link import RedisLink
from rewardstack.errors import BudgetError
from rewardstack.score import Usage
from rewardstack.settings import MAX_REQUESTS, MAX_TOKENS

USAGE = b'"usage"'
TOKENS = re.compile(rb'"(prompt|completion)_tokens":\s{0,8}(\d{1,12})\b')
"""Matches the token counts in the JSON of a reply. Text that the model wrote cannot match, because JSON escapes the
quotation marks in it."""
RESERVE_SCRIPT = """
local before = redis.call('HMGET', KEYS[1], 'requests', 'tokens', ARGV[9] .. ':requests', ARGV[9] .. ':tokens')
local function missing(stored, reported, increment)
  return increment - math.max(0, tonumber(stored or reported) - reported)
end
local requests = math.max(tonumber(before[1] or '0'), ARGV[2]) + missing(before[3], ARGV[10], ARGV[4])
local tokens = math.max(tonumber(before[2] or '0'), ARGV[3]) + missing(before[4], ARGV[11], ARGV[5])
local granted = tonumber(ARGV[1])
if tonumber(ARGV[6]) > 0 then granted = math.min(granted, math.max(0, ARGV[6] - requests)) end
if tonumber(ARGV[7]) > 0 and tokens >= tonumber(ARGV[7]) then granted = 0 end
redis.call('HSET', KEYS[1], 'requests', requests + granted, 'tokens', tokens)
if ARGV[4] ~= '0' or ARGV[5] ~= '0' then
  redis.call('HSET', KEYS[1], ARGV[9] .. ':requests', ARGV[10] + ARGV[4], ARGV[9] .. ':tokens', ARGV[11] + ARGV[5])
end
redis.call('EXPIRE', KEYS[1], ARGV[8])
return {granted, requests + granted, tokens}
"""
"""Lua script that adds a process's unreported usage to the run's total, and grants requests within the limits.

The process also sends the last total that it got from Redis, in case Redis has lost the total. If Redis does not reply
in time, the process reports the same usage again. Redis stores how much each process has reported, so usage that is
reported twice counts once.
"""

log = logging.getLogger(__name__)

OnUsage = Callable[[str, Usage], None]
"""Callback that receives a scorer's source and the amount by which the scorer's usage changes.

When a request is sent, the change adds one to `requests` and one to `uncounted`. When the reply reports tokens, a
second change adds these tokens and subtracts one from `uncounted`.
"""


class Count(NamedTuple):
    """A number of requests, and the sum of their prompt and completion tokens."""

    requests: int = 0
    tokens: int = 0

    def plus(self, requests: int, tokens: int) -> Count:
        """Return the count increased by `requests` and `tokens`."""
        return Count(self.requests + requests, self.tokens + tokens)


class Budget:
    """The usage and limits of a run; belongs to one event loop.

    With a run ID, Redis and a limit, all processes of the run share one count in Redis. Otherwise each process counts
    alone. While Redis is unavailable, each process counts alone and adds its usage to Redis later. Calls of `admit`
    that wait for Redis at the same time share one command.

    Args:
        link: the connection to Redis.
        run_id: ID of the run; empty for none.
        ttl: seconds that the count stays in Redis after the last change.
    """

    def __init__(self, link: RedisLink, run_id: str, ttl: int) -> None:
        self._link = link
        self._run_id = run_id
        self._ttl = ttl
        self._shared = bool(run_id) and link.is_configured
        self._key = f"{PREFIX}spent:{blake2b(run_id.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
        self._limits = Count()
        self._total = Count()
        """Usage of the run, as far as this process knows."""
        self._unreported = Count()
        """The part of `_total` that this process has not reported to Redis yet."""
        self._reported = Count()
        """Usage that this process has reported to Redis since it started."""
        self._process = uuid4().hex
        self._waiting: list[asyncio.Future[bool]] = []
        self._has_new_usage = False
        self._sync_task: asyncio.Task[None] | None = None
        self._logged: set[str] = set()

    def set_limits(self, requests: int, tokens: int) -> None:
        """Set the limits of the run; 0 means no limit."""
        self._limits = Count(requests, tokens)
        if any(self._limits) and not self._shared:
            self._log_once(
                "alone",
                f"{MAX_REQUESTS} and {MAX_TOKENS} limit only this process; to limit all processes of a run, set "
                + ("REWARDSTACK_RUN_ID" if not self._run_id else "REWARD_CACHE_URL, with REWARD_CACHE on"),
            )

    async def admit(self) -> None:
        """Count a request that is about to be sent.

        Raises:
            BudgetError: the run has reached a limit.
        """
        if not (self._shared and any(self._limits)):
            granted = self._reserve_locally(1) > 0
        else:
            waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            self._start_sync()
            try:
                granted = await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled() and waiter.done() and waiter.result():
                    self.add(-1, 0)
                raise
        if not granted:
            raise self._error()

    def add(self, requests: int, tokens: int) -> None:
        """Add requests and tokens without checking the limits; a negative number gives back what was not sent."""
        self._total = self._total.plus(requests, tokens)
        if self._shared and any(self._limits):
            self._unreported = self._unreported.plus(requests, tokens)
            self._has_new_usage = True
            self._start_sync()

    async def flush(self) -> None:
        """Report the unreported usage to Redis; if Redis does not reply in time, the usage stays unreported."""
        if self._sync_task is not None:
            await asyncio.wait([self._sync_task])
        if self._shared and any(self._unreported):
            await self._reserve(0)

    def _start_sync(self) -> None:
        if self._sync_task is None or self._sync_task.done():
            self._sync_task = asyncio.create_task(self._sync())

    async def _sync(self) -> None:
        while self._waiting or self._has_new_usage:
            waiters = [waiter for waiter in self._waiting if not waiter.done()]
            self._waiting, self._has_new_usage = [], False
            granted = await self._reserve(len(waiters))
            waiters = [waiter for waiter in waiters if not waiter.done()]
            for position, waiter in enumerate(waiters):
                waiter.set_result(position < granted)
            if granted > len(waiters):  # callers were cancelled meanwhile
                self.add(len(waiters) - granted, 0)

    async def _reserve(self, wanted: int) -> int:
        """Report the unreported usage to Redis, and return how many of the `wanted` requests Redis grants.

        If Redis does not answer, return how many requests `_reserve_locally` grants.
        """
        total, unreported = self._total, self._unreported
        last_seen = total.plus(-unreported.requests, -unreported.tokens)
        arguments = wanted, *last_seen, *unreported, *self._limits, self._ttl, self._process, *self._reported

        def run_script(redis: Any) -> Any:
            return redis.eval(RESERVE_SCRIPT, 1, self._key, *arguments)

        result = await self._link.execute("counted", run_script)
        if result is None:
            self._log_once("away", "Redis is unavailable: this process counts the run's requests and tokens alone")
            granted = self._reserve_locally(wanted)
            self._unreported = self._unreported.plus(granted, 0)
            return granted
        self._logged.discard("away")
        granted, requests, tokens = map(int, result)
        self._unreported = self._unreported.plus(-unreported.requests, -unreported.tokens)
        self._reported = self._reported.plus(*unreported)
        self._total = self._unreported.plus(requests, tokens)
        return granted

    def _reserve_locally(self, wanted: int) -> int:
        """Return how many of the `wanted` requests the limits allow, as far as this process knows, and count them."""
        granted = wanted
        if self._limits.requests:
            granted = max(0, min(wanted, self._limits.requests - self._total.requests))
        if self._limits.tokens and self._total.tokens >= self._limits.tokens:
            granted = 0
        self._total = self._total.plus(granted, 0)
        return granted

    def _error(self) -> BudgetError:
        tokens = bool(self._limits.tokens) and self._total.tokens >= self._limits.tokens
        name, what = (MAX_TOKENS, "tokens") if tokens else (MAX_REQUESTS, "requests")
        spent, limit = self._total[tokens], self._limits[tokens]
        whose = f"the run {self._run_id!r}" if self._shared else "this process"
        other = "set another REWARDSTACK_RUN_ID" if self._shared else "start another process"
        spends = f"{whose} has used {spent:,} of {limit:,} {what} on model servers"
        return BudgetError(f"{name}: {spends}; raise the limit, or {other}", name)

    def _log_once(self, what: str, message: str) -> None:
        if what not in self._logged:
            self._logged.add(what)
            log.warning(message)


SENT_REQUEST = Usage(requests=1, uncounted=1)


def ignore_usage(source: str, usage: Usage) -> None:
    """Do nothing; the default callback of type `OnUsage`."""


class Meter:
    """Counts the usage of one scorer's requests; `pop` returns it for a sample's score, and starts a new count.

    Args:
        budget: the budget of the run.
        source: the scorer's source, such as `llm_judge`.
        on_usage: callback that receives each change of the usage.
        bounded: whether `admit` raises if the run has reached a limit; if False, requests are only counted.

    Attributes:
        limit: waits until a rate limit admits a request; None for no rate limit.
    """

    __slots__ = ("_bounded", "_budget", "_completion", "_counted", "_on_usage", "_prompt", "_sent", "_source", "limit")

    def __init__(self, budget: Budget, source: str, on_usage: OnUsage = ignore_usage, *, bounded: bool = True) -> None:
        self._budget = budget
        self._source = source
        self._on_usage = on_usage
        self._bounded = bounded
        self.limit: Callable[[], Awaitable[None]] | None = None
        self._clear()

    def _clear(self) -> None:
        self._sent = self._counted = self._prompt = self._completion = 0

    async def admit(self) -> None:
        """Count a request that is about to be sent, once `limit` admits it; if bounded, raise like `Budget.admit`."""
        if self.limit is not None:
            await self.limit()
        if self._bounded:
            await self._budget.admit()
        else:
            self._budget.add(1, 0)
        self._sent += 1
        self._on_usage(self._source, SENT_REQUEST)

    def count_tokens(self, reply: bytes) -> None:
        """Count the tokens that a reply reports; do nothing if it reports none."""
        start = reply.rfind(USAGE)
        tokens = {name: int(count) for name, count in TOKENS.findall(reply, start)} if start >= 0 else {}
        if b"prompt" not in tokens:
            return
        prompt, completion = tokens[b"prompt"], tokens.get(b"completion", 0)
        self._budget.add(0, prompt + completion)
        self._counted += 1
        self._prompt += prompt
        self._completion += completion
        self._on_usage(self._source, Usage(0, prompt, completion, -1))

    def pop(self) -> Usage | None:
        """Return the usage since the last call, and start a new count; return None if nothing was counted."""
        if not (self._sent or self._counted):
            return None
        usage = Usage(self._sent, self._prompt, self._completion, self._sent - self._counted)
        self._clear()
        return usage


class NewMeter(Protocol):
    """A callable that creates meters."""

    def __call__(self, source: str, *, bounded: bool = True) -> Meter:
        """Return a meter for the requests of the scorer `source`; see `Meter` for `bounded`."""
        ...
