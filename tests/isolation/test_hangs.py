"""Somebody stops a process of the isolation under load: it is ended and replaced, and every task has a result."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from rewardstack_rules.isolation import watch
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.process import cpu_seconds
from rewardstack_rules.isolation.watch import TICK, Watchdog
from tests.isolation.processes import MakeClient, alive, below, run_all, stat_of, until, zygote_of
from tests.support.waiting import eventually

TASKS = [{"with": number} for number in range(200)]
ANSWERS = [{"value": number} for number in range(200)]

Start = Callable[[str], int]


async def test_supervisor_stopped(client: IsolationClient) -> None:
    """Tasks that a stopped supervisor holds are run by its successor; nothing of it is left."""
    supervisor = (await client.stats())["pid"]
    zygote = await zygote_of(client)
    old = [supervisor, zygote, *below(zygote)]
    os.kill(supervisor, signal.SIGSTOP)

    assert await asyncio.wait_for(run_all(client, TASKS, timeout=60), 120) == ANSWERS

    assert (await client.stats())["pid"] != supervisor
    eventually(lambda: not any(map(alive, old)))


async def test_zygote_stopped(client: IsolationClient) -> None:
    """A stopped zygote is replaced by its supervisor, with children that work."""
    supervisor, zygote = (await client.stats())["pid"], await zygote_of(client)
    os.kill(zygote, signal.SIGSTOP)

    deaths = await asyncio.wait_for(run_all(client, [{"do": "exit", "with": 1}] * 4, timeout=60), 120)

    assert deaths == [{"error": "killed"}] * 4
    assert await run_all(client, TASKS, timeout=60) == ANSWERS
    assert (await client.stats())["pid"] == supervisor
    assert not alive(zygote)


@pytest.mark.parametrize("which", ["zygote", "supervisor"])
async def test_programs_left_behind(client: IsolationClient, which: str) -> None:
    """Programs that a function left behind end with its zygote, and hold up neither supervisor nor watcher."""
    supervisor, zygote = (await client.stats())["pid"], await zygote_of(client)
    watcher = int(stat_of(supervisor)[1])
    left = await client.run({"do": "leave_behind"}, timeout=60)
    os.kill({"zygote": zygote, "supervisor": supervisor}[which], signal.SIGKILL)
    try:
        eventually(lambda: not alive(left["value"]))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(left["value"], signal.SIGKILL)

    assert await run_all(client, TASKS, timeout=60) == ANSWERS
    if which == "zygote":
        assert (await client.stats())["pid"] == supervisor
    else:
        eventually(lambda: not alive(watcher))


async def test_child_stopped(make_client: MakeClient) -> None:
    """What a stopped child was given runs out of time, nothing else does, and the child is ended."""
    client = make_client(fast=1)
    [child] = below(await zygote_of(client))
    os.kill(child, signal.SIGSTOP)

    given = asyncio.create_task(client.run({"with": "given"}, timeout=1))  # expires
    await until(client, lambda stats: stats["busy"] + stats["timeouts_total"] > 0)

    assert await run_all(client, TASKS, timeout=60) == ANSWERS
    assert await given == {"error": "timeout"}
    eventually(lambda: not alive(child))


async def test_watcher_killed(client: IsolationClient) -> None:
    """A supervisor that nobody watches over any more ends, and has a successor that is watched."""
    supervisor = (await client.stats())["pid"]
    watcher = int(stat_of(supervisor)[1])
    os.kill(watcher, signal.SIGKILL)
    eventually(lambda: not alive(supervisor))

    assert await run_all(client, TASKS, timeout=60) == ANSWERS

    assert int(stat_of((await client.stats())["pid"])[1]) not in (1, watcher)


async def test_short_stop(client: IsolationClient) -> None:
    """Who stands still for a moment is no hung process: supervisor and zygote stay."""

    async def supervisor_of(client: IsolationClient) -> int:
        return (await client.stats())["pid"]

    for find in (supervisor_of, zygote_of):
        stopped = await _stop_for_a_moment(client, find)
        assert await run_all(client, TASKS, timeout=60) == ANSWERS
        assert await find(client) == stopped


async def _stop_for_a_moment(client: IsolationClient, find: Callable[[IsolationClient], Awaitable[int]]) -> int:
    """Stop a process for a tick and return its id; do it again if this test was paused, so that it took longer."""
    while True:
        pid, start = await find(client), time.monotonic()
        with contextlib.suppress(ProcessLookupError):  # it was stopped for so long that it was killed
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(TICK)
            os.kill(pid, signal.SIGCONT)
        if time.monotonic() - start < 2 * TICK:
            return pid
        await run_all(client, TASKS, timeout=60)


@pytest.fixture
def start(needs_process: None) -> Iterator[Start]:
    """Starts a process that runs this Python code, all of them on one core; its process id."""
    started: list[subprocess.Popen[bytes]] = []
    core = min(os.sched_getaffinity(0))

    def make(code: str) -> int:
        prelude = f"import os, time; os.sched_setaffinity(0, {{{core}}})\n"
        started.append(subprocess.Popen([sys.executable, "-c", prelude + code]))
        return started[-1].pid

    yield make
    for process in started:
        process.kill()
        process.wait()


def test_starved(start: Start) -> None:
    """A process that waits for a core is not hung, however long it says nothing."""
    crowd = [start("while True: pass") for _ in range(3)]  # of which one that is paused leaves the core to others
    eventually(lambda: all(cpu_seconds(one) > 0.2 for one in crowd))
    starved = start("os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass")
    eventually(lambda: os.sched_getscheduler(starved) == os.SCHED_IDLE)
    watchdog = Watchdog(starved, ticks=10)

    for _ in range(20):
        time.sleep(0.1)
        assert not watchdog.is_hung()


@pytest.mark.parametrize("code", ["time.sleep(600)", "os.kill(os.getpid(), 19)"], ids=["waits", "is stopped"])
def test_hung(start: Start, code: str) -> None:
    """A process that says nothing and asks for no core is hung."""
    eventually(Watchdog(start(code), ticks=10).is_hung)


def test_stuck_in_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that says nothing and has all the core time that it asks for is hung."""
    seconds = itertools.count(step=1000)
    monkeypatch.setattr(watch, "cpu_seconds", lambda pid: next(seconds))
    monkeypatch.setattr(watch, "state", lambda pid: "R")
    watchdog = Watchdog(os.getpid(), ticks=3)

    assert [watchdog.is_hung() for _ in range(3)] == [False, False, True]
