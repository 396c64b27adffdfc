"""Usage of model servers (requests and tokens): counted per sample, and limited by the budget of a run.

A request counts when it is sent, even if it fails. Tokens count when a reply reports them. So the request limit holds
exactly, but the tokens of requests that are in flight when the token limit is reached come on top of the limit.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
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
"""The token counts in the JSON of a reply. Text that the model wrote cannot match, because its quotes are escaped."""
TAKE = """
local before = redis.call('HMGET', KEYS[1], 'requests', 'tokens', ARGV[9] .. ':requests', ARGV[9] .. ':tokens')
local function owed(known, told, more)
  return more - math.max(0, tonumber(known or told) - told)
end
local requests = math.max(tonumber(before[1] or '0'), ARGV[2]) + owed(before[3], ARGV[10], ARGV[4])
local tokens = math.max(tonumber(before[2] or '0'), ARGV[3]) + owed(before[4], ARGV[11], ARGV[5])
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
"""Lua script that adds a process's unreported usage to the run's count, and grants requests within the limits.

The process also sends the last count that it knows. If Redis has lost the run's count, this number restores it. Redis
stores how much each process has reported, so a report that is repeated after a lost reply counts once.
"""

log = logging.getLogger(__name__)

Spent = Callable[[str, Usage], None]
"""Callback that receives a scorer's source and a change of its usage. It is called when a request is sent, which adds
an `uncounted` request, and when the reply reports tokens, which adds the tokens and makes the request counted."""


class Count(NamedTuple):
    """The number of requests, and the sum of their prompt and completion tokens."""

    requests: int = 0
    tokens: int = 0

    def plus(self, requests: int, tokens: int) -> Count:
        """Return the count increased by `requests` and `tokens`."""
        return Count(self.requests + requests, self.tokens + tokens)


class Budget:
    """The usage and limits of a run; belongs to one event loop.

    With a run ID and Redis, all processes of the run share one count in Redis; otherwise each process counts alone.
    While Redis is unavailable, each process counts alone and adds its usage to Redis later. Calls of `admit` that
    wait for Redis at the same time share one command.

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
        self._caps = Count()
        self._known = Count()
        """Known usage of the run."""
        self._owed = Count()
        """The part of the known usage that this process has not reported to Redis yet."""
        self._told = Count()
        """Total usage that this process has reported to Redis."""
        self._process = uuid4().hex
        self._waiting: list[asyncio.Future[bool]] = []
        self._untold = False
        self._asking: asyncio.Task[None] | None = None
        self._logged: set[str] = set()

    def cap(self, requests: int, tokens: int) -> None:
        """Set the limits of the run; 0 means no limit."""
        self._caps = Count(requests, tokens)
        if any(self._caps) and not self._shared:
            self._log_once(
                "alone",
                f"{MAX_REQUESTS} and {MAX_TOKENS} hold for this process alone: for all processes of a run together set "
                + ("REWARDSTACK_RUN_ID" if not self._run_id else "REWARD_CACHE_URL, with REWARD_CACHE on"),
            )

    async def admit(self) -> None:
        """Count a request that is about to be sent.

        Raises:
            BudgetError: the run has reached a limit.
        """
        if not (self._shared and any(self._caps)):
            granted = self._grant(1) > 0
        else:
            turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            self._ask()
            granted = await turn
        if not granted:
            raise self._error()

    def add(self, requests: int, tokens: int) -> None:
        """Add usage without checking the limits."""
        self._known = self._known.plus(requests, tokens)
        if self._shared and any(self._caps):
            self._owed = self._owed.plus(requests, tokens)
            self._untold = True
            self._ask()

    async def flush(self) -> None:
        """Report the unreported usage to Redis, within a time limit."""
        if self._asking is not None:
            await asyncio.wait([self._asking])
        if self._shared and any(self._owed):
            await self._take(0)

    def _ask(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        while self._waiting or self._untold:
            turns, self._waiting, self._untold = self._waiting, [], False
            granted = await self._take(len(turns))
            for at, turn in enumerate(turns):
                if not turn.done():
                    turn.set_result(at < granted)

    async def _take(self, wanted: int) -> int:
        """Return how many of the `wanted` requests are granted, by Redis or, if it does not answer, by this process."""
        known, owed = self._known, self._owed
        least = known.plus(-owed.requests, -owed.tokens)
        arguments = wanted, *least, *owed, *self._caps, self._ttl, self._process, *self._told

        def take(redis: Any) -> Any:
            return redis.eval(TAKE, 1, self._key, *arguments)

        found = await self._link.execute("counted", take)
        if found is None:
            self._log_once("away", "Redis is unavailable: this process counts the run's requests and tokens alone")
            granted = self._grant(wanted)
            self._owed = self._owed.plus(granted, 0)
            return granted
        self._logged.discard("away")
        granted, requests, tokens = map(int, found)
        self._owed = self._owed.plus(-owed.requests, -owed.tokens)
        self._told = self._told.plus(*owed)
        self._known = self._owed.plus(requests, tokens)
        return granted

    def _grant(self, wanted: int) -> int:
        free = wanted
        if self._caps.requests:
            free = max(0, min(wanted, self._caps.requests - self._known.requests))
        if self._caps.tokens and self._known.tokens >= self._caps.tokens:
            free = 0
        self._known = self._known.plus(free, 0)
        return free

    def _error(self) -> BudgetError:
        tokens = bool(self._caps.tokens) and self._known.tokens >= self._caps.tokens
        name, what = (MAX_TOKENS, "tokens") if tokens else (MAX_REQUESTS, "requests")
        spent, cap = self._known[tokens], self._caps[tokens]
        whose = f"the run {self._run_id!r}" if self._shared else "this process"
        other = "set another REWARDSTACK_RUN_ID" if self._shared else "start another process"
        spends = f"{whose} has spent {spent:,} of {cap:,} {what} of judges and embedding servers"
        return BudgetError(f"{name}: {spends}; raise it, or {other}", name)

    def _log_once(self, what: str, message: str) -> None:
        if what not in self._logged:
            self._logged.add(what)
            log.warning(message)


SENT = Usage(requests=1, uncounted=1)


def tell_nobody(source: str, usage: Usage) -> None:
    """Do nothing; the default callback of type `Spent`."""


class Meter:
    """Counts the usage of one scorer's requests, until `take` returns it for a sample's score.

    Args:
        budget: the budget of the run.
        source: the scorer's source, such as `llm_judge`.
        told: callback that receives each change of the usage.
        bounded: whether the budget limits the requests; requests count in any case.
    """

    __slots__ = ("_bounded", "_budget", "_completion", "_counted", "_prompt", "_sent", "_source", "_told")

    def __init__(self, budget: Budget, source: str, told: Spent = tell_nobody, *, bounded: bool = True) -> None:
        self._budget = budget
        self._source = source
        self._told = told
        self._bounded = bounded
        self._clear()

    def _clear(self) -> None:
        self._sent = self._counted = self._prompt = self._completion = 0

    async def admit(self) -> None:
        """Count a request that is about to be sent; if the meter is bounded, raise as `Budget.admit` does."""
        if self._bounded:
            await self._budget.admit()
        else:
            self._budget.add(1, 0)
        self._sent += 1
        self._told(self._source, SENT)

    def read(self, reply: bytes) -> None:
        """Count the tokens that a reply reports; do nothing if it reports none."""
        start = reply.rfind(USAGE)
        found = {name: int(count) for name, count in TOKENS.findall(reply, start)} if start >= 0 else {}
        if b"prompt" not in found:
            return
        prompt, completion = found[b"prompt"], found.get(b"completion", 0)
        self._budget.add(0, prompt + completion)
        self._counted += 1
        self._prompt += prompt
        self._completion += completion
        self._told(self._source, Usage(0, prompt, completion, -1))

    def take(self) -> Usage | None:
        """Return the usage since the last call, and reset it; None if there is none."""
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
