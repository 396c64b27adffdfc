"""Finds chunks that no worker scores, and sends them again: the worker died, RQ lost them, or a retry is due."""

from __future__ import annotations

import logging
import threading

from rewardstack.errors import ServiceError, UnreachableError
from rewardstack_rules.jobs.delivery import BATCH, Chunk, Delivery
from rewardstack_rules.jobs.heartbeat import ALIVE, READY, beat, reset
from rewardstack_rules.jobs.keys import OPEN, SILENCE, SWEEP, WORKERS, JobKeys
from rewardstack_rules.jobs.link import RedisClient, reaching, reading

INTERVAL = 2.0
"""Minimum seconds between two sweeps, by all workers together; also between a worker's heartbeats."""
PICK_UP = 5.0
"""Seconds after sending a chunk until it counts as lost, if it is neither queued nor started."""

log = logging.getLogger(__name__)


class Sweeper:
    """Sends heartbeats and sweeps, in a background thread, until it is stopped or the process ends.

    Args:
        redis: client of the queue's Redis.
        name: name of this worker.
    """

    def __init__(self, redis: RedisClient, name: str) -> None:
        self._redis = redis
        self._name = name
        self._delivery = Delivery(redis)
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start the background thread."""
        reset()
        threading.Thread(target=self._run, name="sweeper", daemon=True).start()

    def stop(self) -> None:
        """Send no more heartbeats, and remove their files."""
        self._stopping.set()
        reset()

    def sweep(self) -> int:
        """Send lost and due chunks again; return their number.

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
            # Postpone the next check, but do not shorten the lease of a worker that has just claimed the chunk.
            self._redis.zadd(keys["due"], {str(number): now + PICK_UP for _, number in lost}, xx=True, gt=True)
            self._delivery.send(lost)
        return len(lost)

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL):
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
