"""Configuration of isolated processes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

MIB = 1024 * 1024


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class IsolationConfig:
    """The function that children run, and the children's limits.

    Args:
        entry: the function to call, as `module:function`; it takes a dict of JSON types and returns one.
        warmup: a function without arguments, as `module:function`, that is called once before children are forked, to
            fill caches; None to call none.
        fast: number of children for ordinary tasks; by default one per usable core.
        slow: maximum number of slow tasks that run at the same time, in addition to ordinary tasks.
        slow_after: seconds after which a running task counts as slow, unless it waited for a core most of the time.
        memory_bytes: bytes of address space that a child may add after the fork. If a child's peak memory grows by
            more than a quarter of this limit, the result of the current task is discarded and the child ends.
        tasks_per_child: number of tasks after which a child is replaced.
        growth_bytes: growth of a child's peak memory, in bytes, after which the child is replaced. If this is more than
            an eighth of `memory_bytes`, the eighth is used.
        max_frame_bytes: maximum size of a task or a result as JSON, in bytes.
        confined: whether `confinement.Confinement` limits children, if the kernel supports it.
        allow: names of additional system calls, or of groups of them, that confined children may use.
        files: additional files and folders that confined children can read, and write if `allow` has `write`.
        variables: names of environment variables that children get in addition to `launch.INHERITED`.
        shared: whether a child may run tasks of several tenants. Tenants take turns whether or not they share children.

    Raises:
        ValueError: a field is out of range; the message names the field.
    """

    entry: str
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
    shared: bool = False

    def __post_init__(self) -> None:
        for name in ("entry", "warmup"):
            value = getattr(self, name)
            if value is not None and not all(value.partition(":")):
                raise ValueError(f"{name}: {value!r} is not of the form module:function")
        for name, value in asdict(self).items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and value <= 0:
                raise ValueError(f"{name}: {value} is not above 0")

    def to_json(self) -> str:
        """Return this configuration as JSON, for a command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> IsolationConfig:
        """Return the configuration that `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        fields.update((name, tuple(value)) for name, value in fields.items() if isinstance(value, list))
        return cls(**fields)
