"""What a trainer may do in a published cache: a real Redis with the configuration of a stack."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from rewardstack.cache.link import RedisLink
from rewardstack.cache.store import ResultCache
from rewardstack.score import Score
from rewardstack.scorers.budget import Budget
from rewardstack.settings import Settings
from rewardstack_cli.probes.cache import probe_cache
from rewardstack_rules.http.key_rate import SlidingWindow
from services.stack import probes
from services.stack.rundir import RunDir
from services.stack.secrets import Secrets
from services.up.native.programs import redis as described
from tests.native.nginx import load
from tests.support.servers import free_port, wait_for_port
from tests.support.table import Table
from tests.support.waiting import eventually

PASSWORD = "sesame"
KEY = "rewardstack:1:0123456789abcdef"
FORBIDDEN = (
    "CONFIG SET maxmemory 0",
    "CONFIG GET *",
    "CONFIG SET requirepass other",
    "ACL SETUSER default +@all",
    "ACL LIST",
    "SAVE",
    "SHUTDOWN NOSAVE",
    "FLUSHALL",
    "KEYS *",
    "SCAN 0",
    "MONITOR",
    "REPLICAOF host 6379",
    "SELECT 1",
    "CLIENT LIST",
    "SET rewardstack:rate:{LIMITER/tenant/30/1/second} 1000000000 EX 3600",
    "SET rewardstack:status:replicas 1",
    "GET other",
)
SCRIPTS = ("return redis.call('CONFIG', 'GET', '*')", "return redis.call('SET', 'rewardstack:rate:a', 1)")


@pytest.fixture
def urls(tmp_path: Path, needs_redis: None) -> Iterator[tuple[str, str]]:
    """A running cache's URLs: a trainer's, and the stack's own."""
    port, run = free_port(), RunDir(str(tmp_path))
    run.make()
    one = described(
        "cache", load(CACHE_PORT=port, CACHE_PASSWORD=PASSWORD, BIND_ADDRESS="127.0.0.1"), run, Secrets(run)
    )
    (tmp_path / "cache.conf").write_text(one.configuration)
    process = subprocess.Popen(("redis-server", tmp_path / "cache.conf"), stdout=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield f"redis://:{PASSWORD}@127.0.0.1:{port}/0", one.url
    finally:
        process.kill()
        process.wait()


def test_what_a_trainer_may_do(urls: tuple[str, str]) -> None:
    """The client reads and writes results and a run's count, and `rewardstack check` tries them, with the password."""
    url, own = urls
    settings = Settings.from_env({"REWARD_CACHE_URL": url, "REWARD_CACHE_ITEMS": "0"})

    async def use() -> dict[str, Score]:
        link = RedisLink(url)
        budget = Budget(link, "run", 60)
        budget.set_limits(2, 0)
        await budget.admit()
        await link.close()
        cache = ResultCache(settings)
        cache.put([(KEY, Score(0.5, "ok", "", "rule"))])
        await cache.flush()
        found = await cache.read_redis([KEY, KEY + "0"])
        await cache.close()
        assert (await probe_cache(url, settings)).problem is None
        return found

    assert [score.value for score in asyncio.run(use()).values()] == [0.5]
    with redis.Redis.from_url(own) as client:
        spent = client.scan(match="rewardstack:1:spent:*", count=1000)[1]
        assert client.hmget(spent[0], "requests") == [b"1"]


def test_what_a_trainer_may_not_do(urls: tuple[str, str], table: Table) -> None:
    """Neither administration nor other keys than results, not even from a script."""
    with redis.Redis.from_url(urls[0]) as trainer:
        for command in FORBIDDEN:
            with table.case(command), pytest.raises(redis.exceptions.NoPermissionError):
                trainer.execute_command(*command.split())
        for script in SCRIPTS:
            with table.case(script), pytest.raises(redis.exceptions.ResponseError, match="not allowed|can't"):
                trainer.eval(script, 0)


def test_a_blocked_cache_is_unhealthy(urls: tuple[str, str]) -> None:
    """An endless script of a trainer, which Redis cannot kill, is a fault that the stack's health check sees."""
    eventually(lambda: probes.redis(urls[1]) == "")
    with redis.Redis.from_url(urls[0]) as trainer:
        connection = trainer.connection_pool.get_connection()
        connection.send_command("EVAL", "redis.call('SET', KEYS[1], 1) while true do end", 1, KEY)
        eventually(lambda: probes.redis(urls[1]) != "")


def test_the_stack_may_do_all(urls: tuple[str, str]) -> None:
    """The reward server counts requests there, which nobody else can change."""
    window = SlidingWindow(1, urls[1])
    assert window.admits("tenant")
    with redis.Redis.from_url(urls[1]) as server:
        assert list(server.scan_iter("rewardstack:rate*"))
        assert server.config_get("maxmemory")
