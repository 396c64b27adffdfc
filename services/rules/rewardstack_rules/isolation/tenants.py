"""A queue of tasks in which tenants take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from rewardstack_rules.isolation.child_link import Task


class TenantQueue:
    """Waiting tasks by tenant; first in, first out for each tenant.

    When a task is popped, its tenant moves to the end of the tenants' order. Dropped tasks are skipped.
    """

    def __init__(self) -> None:
        self._waiting: dict[bytes, deque[Task]] = {}

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
                return task
        return None

    def waiting(self) -> list[bytes]:
        """Return the tenants that have a waiting task, in the order of their turns."""
        for tenant, tasks in [*self._waiting.items()]:
            while tasks and tasks[0].dropped:
                tasks.popleft()
            if not tasks:
                del self._waiting[tenant]
        return [*self._waiting]

    def next_tenant(self, served: Collection[bytes | None]) -> bytes | None:
        """Return the tenant whose turn it is; None if no task waits.

        Args:
            served: tenants that have a child. Tenants without one take their turn first.
        """
        waiting = self.waiting()
        return next((tenant for tenant in waiting if tenant not in served), waiting[0] if waiting else None)
