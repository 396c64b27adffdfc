"""What the services take of the machine, before and after."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psutil

from tests.soak.stack import SoakStack

MIB = 2**20
GROWTH = 0.1
"""By which memory and file descriptors may grow, and file descriptors and processes shrink."""
MEMORY_SLACK = 8 * MIB
"""By which the memory of one service may grow in any case: a tenth of a little is less than the noise."""
FILES_SLACK = 16
"""So for file descriptors: what was just restarted opens some with its first work."""
SETTLED = 5
"""Times in a row that processes and files must be the same for the stack to be quiet."""
SETTLE_SECONDS = 90.0
"""nginx loads its cache in a process of its own for a minute after each start."""
TOTAL = "all"


@dataclass(frozen=True)
class Usage:
    """What some processes take.

    Args:
        processes: how many they are.
        files: descriptors that they have open.
        memory: bytes; what they share counts once (the sum of their PSS).
    """

    processes: int = 0
    files: int = 0
    memory: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.processes + other.processes, self.files + other.files, self.memory + other.memory)


Usages = Mapping[str, Usage]
"""By service; `TOTAL` is all of them together."""


def settled(stack: SoakStack) -> Usages:
    """What the services take once nothing changes any more, or `SETTLE_SECONDS` have gone by.

    Args:
        stack: that has nothing to do.
    """
    end, same = time.monotonic() + SETTLE_SECONDS, 0
    found = measured(stack)
    while same < SETTLED and time.monotonic() < end:
        time.sleep(1)
        before, found = found, measured(stack)
        same = same + 1 if _counts(before) == _counts(found) else 0
    return found


def measured(stack: SoakStack) -> Usages:
    """What the services take at this moment."""
    found: dict[str, Usage] = {}
    for process, service in stack.members():
        try:
            with process.oneshot():
                own = Usage(1, process.num_fds(), process.memory_full_info().pss)
        except psutil.NoSuchProcess:
            continue  # it ended meanwhile
        found[service] = found.get(service, Usage()) + own
    return {**dict(sorted(found.items())), TOTAL: sum(found.values(), Usage())}


def _counts(usages: Usages) -> list[tuple[str, int, int]]:
    return [(name, one.processes, one.files) for name, one in usages.items()]


def faults(before: Usages, after: Usages, *, memory: bool) -> Iterable[str]:
    """What is beyond bounds, in words. Less memory is none: what was restarted last has the least.

    Args:
        before: what the services took.
        after: what they take.
        memory: whether it is held to its bound as well.
    """
    for name in before.keys() | after.keys():
        then, now = before.get(name, Usage()), after.get(name, Usage())
        if abs(now.processes - then.processes) > GROWTH * then.processes:
            yield f"{name}: {then.processes} processes became {now.processes}"
        if abs(now.files - then.files) > max(FILES_SLACK, GROWTH * then.files):
            yield f"{name}: {then.files} open files became {now.files}"
        slack = 0 if name == TOTAL else MEMORY_SLACK
        if memory and now.memory - then.memory > max(slack, GROWTH * then.memory):
            yield f"{name}: {then.memory / MIB:.0f} MiB became {now.memory / MIB:.0f} MiB"


def table(before: Usages, after: Usages) -> str:
    """Both as text."""
    lines = [f"{'':<22}{'processes':>14}{'files':>16}{'memory, MiB':>20}{'ratio':>8}"]
    for name in dict.fromkeys([*before, *after]):
        then, now = before.get(name, Usage()), after.get(name, Usage())
        ratio = f"{now.memory / then.memory:.2f}" if then.memory else "-"
        lines.append(
            f"{name:<22}{then.processes:>7}{now.processes:>7}{then.files:>8}{now.files:>8}"
            f"{then.memory / MIB:>10.1f}{now.memory / MIB:>10.1f}{ratio:>8}"
        )
    return "\n".join(lines)
