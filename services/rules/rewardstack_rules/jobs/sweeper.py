"""Finds chunks without a worker, and sends them again: their worker died, RQ lost them, or a retry is due."""

from __future__ import annotations

import logging
import threading

from rewardstack.errors import ServiceError, UnreachableError
from rewardstack_rules.jobs.delivery import BATCH, Chunk, Delivery
from rewardstack_rules.jobs.heartbeat import ALIVE, READY, beat, reset
from rewardstack_rules.jobs.keys import OPEN, SILENCE, SWEEP, WORKERS, JobKeys
from rewardstack_rules.jobs.link import RedisClient, reaching, reading

INTERVAL = 2.0
"""Seconds between two sweeps, by any worker."""
PICK_UP = 5.0
"""Seconds for a sent chunk to appear in the queue or to be started."""

log = logging.getLogger(__name__)


class Sweeper:
    """Sweeps until the process ends.

    Args:
        redis: of the queue.
        name: of this worker.
    """

    def __init__(self, redis: RedisClient, name: str) -> None:
        self._redis = redis
        self._name = name
        self._delivery = Delivery(redis)

    def start(self) -> None:
        """Start to sweep in a background thread."""
        reset()
        threading.Thread(target=self._run, name="sweeper", daemon=True).start()

    def sweep(self) -> int:
        """Send lost and due chunks; return their number.

        Raises:
            ServiceError: the queue does not answer.
        """
        with reaching():
            now = self._now()
            waiting = self._delivery.waiting()
            sent = 0
            for job_id, tenant in self._redis.hgetall(OPEN).items():
                try:
                    with reading():
                        sent += self._send(JobKeys(tenant.decode(), job_id.decode()), now, waiting)
                except UnreachableError as error:
                    log.warning("cannot sweep a job: %s", error)
        if sent:
            log.info("sent %d chunks again", sent)
        return sent

    def _now(self) -> float:
        seconds, microseconds = self._redis.time()
        return float(seconds + microseconds / 1e6)

    def _send_heartbeat(self) -> None:
        now = self._now()
        self._redis.zadd(WORKERS, {self._name: now})
        self._redis.zremrangebyscore(WORKERS, 0, now - SILENCE)

    def _send(self, keys: JobKeys, now: float, waiting: set[Chunk]) -> int:
        overdue = [int(number) for number in self._redis.zrangebyscore(keys["due"], 0, now)]
        lost = [(keys.job_id, number) for number in overdue if (keys.job_id, number) not in waiting][:BATCH]
        if lost:
            # Set the time later than now, but not before the end of a lease that a worker has just taken.
            self._redis.zadd(keys["due"], {str(number): now + PICK_UP for _, number in lost}, xx=True, gt=True)
            self._delivery.send(lost)
        return len(lost)

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(INTERVAL):
            beat(ALIVE)
            try:
                with reaching():
                    self._send_heartbeat()
                    beat(READY)
                    mine = self._redis.set(SWEEP, self._name, nx=True, px=int(INTERVAL * 1000))
                if mine:
                    self.sweep()
            except ServiceError as error:
                log.warning("cannot sweep jobs: %s", error)
