"""Assign tasks to children, enforce timeouts, and move slow tasks to a separate pool.

A task waits in the fast queue until a fast child is free. A task counts as slow if it still runs after `slow_after`
seconds. If it had to wait for a core, it counts as slow once its CPU time reaches `FAIR_SHARE` of these seconds. A slow
task moves to the slow pool together with its child, whose priority is lowered. A new child takes the place of the moved
child in the fast pool. At most `slow` tasks run in the slow pool. If this pool is full, the slow task's child is
killed, and the task waits in the slow queue to start over. A task's timer runs only while the task has a child, so that
other tasks cannot cause its timeout.

A task that reports its progress gives its child's place to a waiting tenant once it has run for `STEP_SECONDS`, and
continues later from what it reported last.

A shared child (`IsolationConfig.shared`) takes the next task of the tenant whose turn it is. A child that is not shared
runs only tasks of one tenant, the tenant of its first task. To serve another tenant, such a child is replaced by a new
one, in two cases. If a waiting tenant has no child, an idle child is replaced immediately, and a child that has served
its tenant for `TURN_SECONDS` is replaced after its current task. If every waiting tenant has a child, a child is
replaced once it has been idle for `LINGER_SECONDS`, about the time that a fork takes.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable

from rewardstack_rules.isolation.child_link import Child, ChildPool, Task
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.frames import Frame, Kind, dump
from rewardstack_rules.isolation.tenants import TenantQueue
from rewardstack_rules.isolation.zygote_link import ZygoteLink

TIMEOUT, KILLED = dump({"error": "timeout"}), dump({"error": "killed"})
MAX_FAILURES = 8
"""Number of consecutive failed rounds after which the scheduler gives up. A round is one start of the zygote, or of all
children that are missing; it fails once, however many of its children fail."""

PAUSE_SECONDS = 0.05
"""Seconds before the next round after a failure. The pause doubles with each consecutive failure."""

TURN_SECONDS = 0.05
"""Seconds for which a child serves its tenant while another tenant waits without a child."""

STEP_SECONDS = 1.0
"""Seconds for which a task that reports its progress runs, at least, while another tenant waits."""

LINGER_SECONDS = 0.02
"""Seconds for which an idle child is kept for its tenant while another tenant could use one more child."""

TIMER_SLACK = 0.001
"""Tolerance in seconds, because a timer may fire early."""


class Scheduler:
    """Runs tasks in children.

    Args:
        config: the entry and the limits.
        loop: the supervisor's event loop.
        on_ready: called once, when the first child accepts tasks.
        on_broken: called with the reason when no child can be started.
    """

    def __init__(
        self,
        config: IsolationConfig,
        loop: asyncio.AbstractEventLoop,
        on_ready: Callable[[], None],
        on_broken: Callable[[str], None],
    ) -> None:
        self._config = config
        self._loop = loop
        self._on_ready: Callable[[], None] | None = on_ready
        self._on_broken = on_broken
        self._zygote = ZygoteLink(config, self, loop)
        self._zygote_ready = self._zygote_started = False
        self._ids = itertools.count(1)
        self._children: dict[int, Child] = {}
        self._idle: deque[Child] = deque()
        self._queue = TenantQueue()
        self._slow_queue = TenantQueue()
        self._round = self._failures = 0
        self._pause: asyncio.TimerHandle | None = None
        """The timer of the next round; None if there is no pause now."""
        self._linger: asyncio.TimerHandle | None = None
        self.killed = self.timeouts = self.recycled = self.switched = self.zygotes = 0

    def start(self) -> None:
        """Start the zygote. Children are started once it is ready."""
        self.zygotes += 1
        self._zygote_started = True
        self._zygote.start()

    def stop(self) -> None:
        """Stop the zygote and every child."""
        self._zygote.stop()

    def submit(self, task: Task) -> None:
        """Queue a task. `task.reply` is called once, unless the task is dropped first."""
        self._queue.append(task)
        self._dispatch()

    def drop(self, task: Task) -> None:
        """Cancel a task, so that it gets no reply.

        A waiting task is not started. A running task is stopped immediately if it is in the slow pool; in the fast
        pool, it is stopped when its timer fires, if it has not ended by then.
        """
        task.dropped = True
        task.body = b""
        if task.child is not None and task.child.pool is ChildPool.SLOW:
            self._retire(task.child)

    def stats(self) -> dict[str, int]:
        """Return the current numbers of children and waiting tasks, and counts since the start (`…_total`)."""
        children = self._children.values()
        return {
            "children": len(children),
            "busy": sum(child.task is not None for child in children),
            "slow": sum(child.task is not None and child.pool is ChildPool.SLOW for child in children),
            "queued": sum(1 for _ in self._queue),
            "slow_queued": sum(1 for _ in self._slow_queue),
            "killed_total": self.killed,
            "timeouts_total": self.timeouts,
            "recycled_total": self.recycled,
            "switched_total": self.switched,
            "zygotes_total": self.zygotes,
        }

    # notifications of the zygote

    def zygote_ready(self) -> None:
        """Fork children, now that the zygote is ready."""
        self._zygote_ready = True
        self._fill()

    def zygote_broken(self, message: str) -> None:
        """Give up: the entry cannot be loaded, so another zygote would fail, too."""
        self._on_broken(message)

    def zygote_died(self) -> None:
        """Requeue the tasks of all children, which died with the zygote, and start another zygote."""
        children = list(self._children.values())
        self._children.clear()
        self._idle.clear()
        for child in children:
            child.close()
            if child.task is not None:
                self._requeue(child, child.task, slow=child.pool is ChildPool.SLOW)
        if not any(child.was_ready for child in children):
            self._count_failure(self._round, "the zygote exited during startup")
        self._zygote_ready = self._zygote_started = False
        self._start_pause()

    def child_exited(self, ident: int) -> None:
        """Handle the exit of a child, which has been reaped."""
        child = self._children.get(ident)
        if child is not None:
            child.exited = True
            self._after_death(child)

    # notifications of children

    def child_frame(self, child: Child, frame: Frame) -> None:
        """Handle a frame in which a child reports that it is ready or has a result."""
        if frame.kind is Kind.READY:
            self._failures = 0
            if self._on_ready is not None:
                self._on_ready()
                self._on_ready = None
            self._free(child)
        elif child.task is None:
            self._retire(child)
        elif frame.id == child.task.id and frame.kind is Kind.PROGRESS:
            self._progress(child, child.task, frame.body)
        elif frame.id != child.task.id or frame.kind not in (Kind.RESULT, Kind.LAST):
            self._kill(child, KILLED)
        else:
            self._finish(child, frame.body)
            if frame.kind is Kind.LAST or child.pool is ChildPool.SLOW:
                self.recycled += 1
                self._retire(child)
            else:
                self._free(child)

    def child_disconnected(self, child: Child) -> None:
        """Kill a child whose connection ended. Its task is handled once the zygote confirms the child's death."""
        child.disconnected = True
        if child.id in self._children:
            self._zygote.kill(child.id)
            self._after_death(child)

    # pools

    def _free(self, child: Child) -> None:
        """Give a free child its next task. If it is a slow child and no slow task waits, retire it."""
        if child.pool is ChildPool.FAST:
            child.freed_at = self._loop.time()
            self._idle.append(child)
            self._dispatch()
            return
        tenant = self._slow_queue.next_tenant(())
        task = None if tenant is None else self._slow_queue.pop(tenant)
        if task is None:
            self._retire(child)
        else:
            self._run(child, task)

    def _dispatch(self) -> None:
        """Give idle children waiting tasks that they may run. Then retire idle children to make room for other tenants.

        A retired child is replaced by a new one, which has no tenant yet.
        """
        for child in [*self._idle]:
            if (task := self._task_for(child)) is not None:
                self._idle.remove(child)
                self._run(child, task)
        if self._idle and (replaceable := self._count_replaceable()) > 0:
            for child in [*self._idle][:replaceable]:
                self.switched += 1
                self._retire(child)

    def _task_for(self, child: Child) -> Task | None:
        tenant = child.tenant
        if tenant is None:
            tenant = self._queue.next_tenant(self._served_tenants())
        elif self._loop.time() - child.taken_at > TURN_SECONDS and self._count_unserved() > 0:
            return None
        return None if tenant is None else self._queue.pop(tenant)

    def _served_tenants(self) -> set[bytes | None]:
        """Return the tenants that have a fast child."""
        return {child.tenant for child in self._children.values() if child.pool is ChildPool.FAST}

    def _count_unserved(self) -> int:
        """Return how many tenants wait without a fast child, minus the number of fast children without a tenant.

        The second number is subtracted because each child without a tenant will serve one of those tenants.
        """
        served = self._served_tenants()
        fresh = sum(child.pool is ChildPool.FAST and child.tenant is None for child in self._children.values())
        return sum(tenant not in served for tenant in self._queue.waiting()) - fresh

    def _count_replaceable(self) -> int:
        """Return the number of idle children to replace with children for other tenants."""
        waiting = self._queue.waiting()
        if not waiting:
            return 0
        if (unserved := self._count_unserved()) > 0:
            return unserved
        if None in self._served_tenants():
            return 0
        left = LINGER_SECONDS - (self._loop.time() - self._idle[0].freed_at)
        if left <= TIMER_SLACK:
            return 1
        if self._linger is None:
            self._linger = self._loop.call_later(left, self._end_linger)
        return 0

    def _end_linger(self) -> None:
        self._linger = None
        self._dispatch()

    def _run(self, child: Child, task: Task) -> None:
        child.run(task)
        timeout = min(task.seconds, self._config.slow_after) if child.pool is ChildPool.FAST else task.seconds
        child.alarm = self._loop.call_later(timeout, self._on_timer, child, task)

    def _on_timer(self, child: Child, task: Task) -> None:
        """Handle the timer of a task: stop the task at its timeout, move it to the slow pool, or wait longer."""
        left = task.seconds - child.elapsed()
        cpu_shortfall = child.cpu_shortfall(self._config.slow_after) if child.pool is ChildPool.FAST else 0.0
        if task.dropped:
            self._retire(child)
        elif left <= TIMER_SLACK or (task.stop_if_slow and cpu_shortfall <= TIMER_SLACK):
            self.timeouts += 1
            self._kill(child, TIMEOUT)
        elif cpu_shortfall > TIMER_SLACK:
            child.alarm = self._loop.call_later(min(cpu_shortfall, left), self._on_timer, child, task)
        elif child.pool is ChildPool.FAST and self._count(ChildPool.SLOW) >= self._config.slow:
            self._requeue(child, task, slow=True)
            self._retire(child)
        else:
            if child.pool is ChildPool.FAST:
                child.pool = ChildPool.SLOW
                self._slow_queue.count_turn(task.tenant)
                self._zygote.renice(child.id)
                self._fill()
            child.alarm = self._loop.call_later(left, self._on_timer, child, task)

    def _progress(self, child: Child, task: Task, progress: bytes) -> None:
        """Note how far a task is. If another tenant waits for a place, stop the task; it continues later."""
        task.progress = progress
        others = sum(tenant != task.tenant for tenant in self._queue.waiting())
        free = sum(one.pool is ChildPool.FAST and one.task is None for one in self._children.values())
        if child.pool is ChildPool.FAST and others > free and child.elapsed() >= STEP_SECONDS:
            self.switched += 1
            self._requeue(child, task, slow=False)
            self._retire(child)

    def _requeue(self, child: Child, task: Task, slow: bool) -> None:
        """Detach a task from its child, and queue it to start over with its remaining seconds."""
        task.seconds -= child.elapsed()
        child.release()
        if task.dropped:
            return
        if task.seconds <= TIMER_SLACK:
            task.reply(TIMEOUT)
        elif slow:
            self._slow_queue.append(task)
        else:
            self._queue.appendleft(task)

    # children

    def _count(self, pool: ChildPool) -> int:
        return sum(child.pool is pool for child in self._children.values())

    def _fill(self) -> None:
        """Fill the fast pool. Start one slow child per task in the slow queue, as far as the slow pool has room."""
        if not self._zygote_ready or self._pause is not None:
            return
        for _ in range(self._config.fast - self._count(ChildPool.FAST)):
            self._spawn(ChildPool.FAST)
        starting = sum(child.pool is ChildPool.SLOW and child.task is None for child in self._children.values())
        free = self._config.slow - self._count(ChildPool.SLOW)
        waiting = sum(1 for _ in self._slow_queue)
        for _ in range(min(free, waiting - starting)):
            self._spawn(ChildPool.SLOW)

    def _spawn(self, pool: ChildPool) -> None:
        child = Child(next(self._ids), pool, self, self._config.max_frame_bytes, self._config.shared)
        child.round = self._round
        self._children[child.id] = child
        child.connect(self._loop, self._zygote)

    def _finish(self, child: Child, result: bytes) -> None:
        """Reply with the result of a child's task, unless the task was dropped."""
        task = child.task
        child.release()
        if task is not None and not task.dropped:
            task.reply(result)

    def _kill(self, child: Child, result: bytes) -> None:
        self.killed += 1
        self._finish(child, result)
        self._retire(child)

    def _retire(self, child: Child) -> None:
        """Kill a child, and start another one if its pool needs it."""
        child.release()
        child.close()
        if self._children.pop(child.id, None) is not None:
            self._zygote.kill(child.id)
        if child in self._idle:
            self._idle.remove(child)
        self._fill()

    def _after_death(self, child: Child) -> None:
        """Replace a dead child and requeue its task, once its last frames are read and the zygote has reaped it."""
        if child in self._idle:
            self._idle.remove(child)
        if not (child.disconnected and child.exited):
            return
        if not child.was_ready:
            self._count_failure(child.round, "a child exited during startup")
        if child.task is not None and child.task.child_died:
            self._kill(child, KILLED)
        elif child.task is not None:
            child.task.child_died = True  # the cause of the death is unknown, so the task gets one more child
            self._requeue(child, child.task, slow=child.pool is ChildPool.SLOW)
        self._retire(child)

    def _count_failure(self, started_in: int, message: str) -> None:
        """Count the failure of a round, and pause before the next one; do nothing if it has been counted.

        Args:
            started_in: the round in which the process that failed was started.
            message: the reason, in case that this was the last round.
        """
        if started_in < self._round:
            return
        self._round += 1
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            self._on_broken(message)
        else:
            self._start_pause()

    def _start_pause(self) -> None:
        """Start the next round after a pause, unless there is a pause already."""
        if self._pause is None:
            self._pause = self._loop.call_later(PAUSE_SECONDS * 2**self._failures, self._end_pause)

    def _end_pause(self) -> None:
        self._pause = None
        if self._zygote_started:
            self._fill()
        else:
            self.start()
