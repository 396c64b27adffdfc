"""What is isolated, and how tightly: `IsolationConfig`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

MIB = 1024 * 1024


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class IsolationConfig:
    """What children run, and their bounds.

    Args:
        entry: `module:function`; the function takes a dict that JSON can hold and returns one.
        preload: import the entry before children are forked; False for a module that starts threads.
        warmup: `module:function` without arguments, called once before children are forked, to fill caches.
        fast: children for ordinary tasks; by default one a usable core.
        slow: how many slow tasks run at once, beside the fast ones.
        slow_after: seconds after which a running task counts as slow, unless it waited for a core most of the time.
        memory_bytes: address space that a child may add to what it was born with; a task that filled a quarter of it is
            not believed, and ends the child.
        tasks_per_child: tasks after which a child is replaced.
        growth_bytes: resident growth after which a child is replaced.
        max_frame_bytes: largest task or result, as JSON.
        confined: children keep only what `confinement.Confinement` leaves, if the kernel can enforce it.
        allow: groups of system calls, or single ones, that confined children keep beside.
        files: files and folders that confined children can read beside code.
        variables: names of the environment variables that children get beside `launch.INHERITED`.

    Raises:
        ValueError: a field is out of range; the message names it.
    """

    entry: str
    preload: bool = True
    warmup: str | None = None
    fast: int = field(default_factory=usable_cores)
    slow: int = field(default_factory=usable_cores)
    slow_after: float = 0.1
    memory_bytes: int = 1024 * MIB
    tasks_per_child: int = 4000
    growth_bytes: int = 128 * MIB
    max_frame_bytes: int = 16 * MIB
    confined: bool = False
    allow: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("entry", "warmup"):
            value = getattr(self, name)
            if value is not None and not all(value.partition(":")):
                raise ValueError(f"{name}: {value!r} is not of the form module:function")
        for name, value in asdict(self).items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value <= 0:
                raise ValueError(f"{name}: {value} is not above 0")

    def to_json(self) -> str:
        """This configuration as one argument of a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> IsolationConfig:
        """The configuration that `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        fields.update((name, tuple(value)) for name, value in fields.items() if isinstance(value, list))
        return cls(**fields)
