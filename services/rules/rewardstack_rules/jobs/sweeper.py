"""Finds chunks that nobody has, and sends them again: their worker died, RQ lost them, or their time has come."""

from __future__ import annotations

import logging
import threading

from rewardstack.errors import ServiceError, UnreachableError
from rewardstack_rules.jobs.delivery import BATCH, Chunk, Delivery
from rewardstack_rules.jobs.heartbeat import ALIVE, READY, beat, reset
from rewardstack_rules.jobs.keys import OPEN, SILENCE, SWEEP, WORKERS, JobKeys
from rewardstack_rules.jobs.link import RedisClient, reaching, reading

INTERVAL = 2.0
"""Seconds between two sweeps, whichever workers make them."""
PICK_UP = 5.0
"""Seconds that a chunk has, once sent, to be seen in the queue or begun."""

log = logging.getLogger(__name__)


class Sweeper:
    """Sweeps for as long as the process lives.

    Args:
        redis: of the queue.
        name: of this worker.
    """

    def __init__(self, redis: RedisClient, name: str) -> None:
        self._redis = redis
        self._name = name
        self._delivery = Delivery(redis)

    def start(self) -> None:
        """Goes on in a thread of its own."""
        reset()
        threading.Thread(target=self._run, name="sweeper", daemon=True).start()

    def sweep(self) -> int:
        """Sends lost and due chunks; returns how many.

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
                    log.warning("a job is not swept: %s", error)
        if sent:
            log.info("sent %d chunks again", sent)
        return sent

    def _now(self) -> float:
        seconds, microseconds = self._redis.time()
        return float(seconds + microseconds / 1e6)

    def _say_alive(self) -> None:
        now = self._now()
        self._redis.zadd(WORKERS, {self._name: now})
        self._redis.zremrangebyscore(WORKERS, 0, now - SILENCE)

    def _send(self, keys: JobKeys, now: float, waiting: set[Chunk]) -> int:
        overdue = [int(number) for number in self._redis.zrangebyscore(keys["due"], 0, now)]
        lost = [(keys.job_id, number) for number in overdue if (keys.job_id, number) not in waiting][:BATCH]
        if lost:
            # Later than now, but never earlier than a worker that has begun it meanwhile says.
            self._redis.zadd(keys["due"], {str(number): now + PICK_UP for _, number in lost}, xx=True, gt=True)
            self._delivery.send(lost)
        return len(lost)

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(INTERVAL):
            beat(ALIVE)
            try:
                with reaching():
                    self._say_alive()
                    beat(READY)
                    mine = self._redis.set(SWEEP, self._name, nx=True, px=int(INTERVAL * 1000))
                if mine:
                    self.sweep()
            except ServiceError as error:
                log.warning("no sweep: %s", error)
