"""Find chunks that no worker scores, and send them again: their worker died, RQ lost them, or their retry is due."""

from __future__ import annotations

import logging
import threading

from rewardstack.errors import ServiceError, UnreachableError
from rewardstack_rules.jobs.delivery import BATCH, ChunkId, Delivery
from rewardstack_rules.jobs.heartbeat import ALIVE, READY, reset, touch
from rewardstack_rules.jobs.keys import OPEN, SILENCE, SWEEP, WORKERS, JobKeys
from rewardstack_rules.jobs.link import RedisClient, parse_errors, redis_errors

INTERVAL = 2.0
"""Seconds between a worker's heartbeats, and minimum seconds between two sweeps, even by different workers."""
PICK_UP_SECONDS = 5.0
"""Seconds after which a chunk that was sent again, but is neither queued nor started, counts as lost again."""

log = logging.getLogger(__name__)


class Sweeper:
    """Sends heartbeats and searches for lost chunks in a background thread.

    Args:
        redis: client of the queue's Redis.
        name: name of this worker.
    """

    def __init__(self, redis: RedisClient, name: str) -> None:
        self._redis = redis
        self._name = name
        self._delivery = Delivery(redis)
        self._stopping = threading.Event()
        self._logged = ""

    def start(self) -> None:
        """Start the background thread."""
        reset()
        threading.Thread(target=self._run, name="sweeper", daemon=True).start()

    def stop(self) -> None:
        """Stop sending heartbeats, and remove the heartbeat files."""
        self._stopping.set()
        reset()

    def sweep(self) -> int:
        """Send lost and due chunks again, and return their number.

        Raises:
            ServiceError: the queue does not answer.
        """
        with redis_errors():
            now = self._now()
            waiting = self._delivery.waiting()
            sent = 0
            for job_id, tenant in self._redis.hgetall(OPEN).items():
                try:
                    with parse_errors():
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

    def _send(self, keys: JobKeys, now: float, waiting: set[ChunkId]) -> int:
        overdue = [int(number) for number in self._redis.zrangebyscore(keys["due"], 0, now)]
        lost = [(keys.job_id, number) for number in overdue if (keys.job_id, number) not in waiting][:BATCH]
        if lost:
            # Postpone the next check, but do not shorten the lease of a worker that has just claimed the chunk.
            self._redis.zadd(keys["due"], {str(number): now + PICK_UP_SECONDS for _, number in lost}, xx=True, gt=True)
            self._delivery.send(lost)
        return len(lost)

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL):
            touch(ALIVE)
            try:
                with redis_errors():
                    self._send_heartbeat()
                    touch(READY)
                    has_lock = self._redis.set(SWEEP, self._name, nx=True, px=int(INTERVAL * 1000))
                if has_lock:
                    self.sweep()
                self._logged = ""
            except ServiceError as error:
                if self._logged != str(error):
                    log.warning("cannot sweep jobs: %s", error)
                self._logged = str(error)
