"""A queue of tasks in which tenants take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from rewardstack_rules.isolation.child_link import Task


class TenantQueue:
    """Waiting tasks by tenant; first in, first out for each tenant.

    The next turn is that of the tenant that had its last turn the longest time ago. So a tenant that comes when others
    have many tasks is next. Dropped tasks are skipped.
    """

    def __init__(self) -> None:
        self._waiting: dict[bytes, deque[Task]] = {}
        self._turns: dict[bytes, int] = {}
        """Number of the last turn of each tenant."""
        self._count = 0

    def __iter__(self) -> Iterator[Task]:
        return (task for tasks in self._waiting.values() for task in tasks if not task.dropped)

    def append(self, task: Task) -> None:
        """Add a task after the others of its tenant."""
        self._waiting.setdefault(task.tenant, deque()).append(task)

    def appendleft(self, task: Task) -> None:
        """Add a task before the others of its tenant."""
        self._waiting.setdefault(task.tenant, deque()).appendleft(task)

    def pop(self, tenant: bytes) -> Task | None:
        """Remove and return the next task of a tenant; None if the tenant has no waiting task."""
        tasks = self._waiting.pop(tenant, deque())
        while tasks:
            task = tasks.popleft()
            if not task.dropped:
                if tasks:
                    self._waiting[tenant] = tasks
                self.count_turn(tenant)
                return task
        return None

    def count_turn(self, tenant: bytes) -> None:
        """Note that a tenant has got a place; `pop` does so itself."""
        self._count += 1
        self._turns[tenant] = self._count

    def waiting(self) -> list[bytes]:
        """Return the tenants that have a waiting task, in the order of their turns."""
        for tenant, tasks in [*self._waiting.items()]:
            while tasks and tasks[0].dropped:
                tasks.popleft()
            if not tasks:
                del self._waiting[tenant]
        return sorted(self._waiting, key=lambda tenant: self._turns.get(tenant, 0))

    def next_tenant(self, served: Collection[bytes | None]) -> bytes | None:
        """Return the tenant whose turn it is; None if no task waits.

        Args:
            served: tenants that have a child. Tenants without one take their turn first.
        """
        waiting = self.waiting()
        return next((tenant for tenant in waiting if tenant not in served), waiting[0] if waiting else None)
