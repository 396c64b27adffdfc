"""A look at the processes of an isolation, for its tests."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.launch import supervisor_handle

MakeClient = Callable[..., IsolationClient]


async def run_all(client: IsolationClient, tasks: Sequence[Mapping[str, Any]], **options: Any) -> list[dict[str, Any]]:
    """Run tasks at the same time, and return their results in order; the options are those of `run`."""
    return await asyncio.gather(*(client.run(task, **options) for task in tasks))


def directory_of(client: IsolationClient) -> Path:
    """Where a client's supervisor lives."""
    return supervisor_handle(client._config).directory


def supervisors_in(directory: Path) -> list[int]:
    """The supervisors that were started for this directory, whether or not anybody can reach them.

    Each has the command line of its parent, which watches over it.
    """
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            words = Path(f"/proc/{name}/cmdline").read_bytes().decode().split("\0")
            if "rewardstack_rules.isolation.supervisor" in words and str(directory) in words:
                found.append(int(name))
    return watched(found)


def watched(supervisors: Sequence[int]) -> list[int]:
    """The supervisors among these processes, without those that watch over one."""
    return [pid for parent in supervisors for pid in below(parent) if pid in supervisors]


async def until(client: IsolationClient, holds: Callable[[dict[str, int]], bool]) -> None:
    """Wait until something holds for the counts of a client's supervisor."""
    for _ in range(3000):
        if holds(stats := await client.stats()):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"waited in vain: {stats}")


async def zygote_of(client: IsolationClient) -> int:
    """Return the process id of a client's zygote; one that was killed has its successor soon."""
    for _ in range(3000):
        if found := [pid for pid in below((await client.stats())["pid"]) if alive(pid)]:
            [zygote] = found
            return zygote
        await asyncio.sleep(0.02)
    raise AssertionError("the supervisor has no zygote")


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    return stat_of(pid)[:1] not in ([], ["Z"])


def below(pid: int) -> list[int]:
    """The processes whose parent is this one, zombies among them."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and stat_of(name)[1:2] == [str(pid)]]


def stat_of(pid: int | str) -> list[str]:
    """State, parent and the rest of /proc/PID/stat; empty where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
