"""A worker for jobs: `python -m rewardstack_rules.jobs.worker`. Start as many as you need.

The main thread of a worker scores one chunk at a time. Meanwhile, background threads score up to four chunks that wait
for models or programs (`background`). A worker does not fork for each chunk, so connections, caches and isolated
processes are reused. After SIGTERM it finishes its chunks. If a second SIGTERM or a SIGKILL ends it earlier, other
workers score the chunks.
"""

from __future__ import annotations

import contextlib
import logging.config
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable
from types import FrameType
from typing import Any

from redis.exceptions import RedisError
from rq import Queue, SimpleWorker
from rq.exceptions import StopRequested
from rq.serializers import JSONSerializer

from rewardstack.core.descriptors import raise_open_file_limit
from rewardstack.core.secret_files import read_secret_files
from rewardstack.errors import ConfigError, SettingsError
from rewardstack_rules.jobs.chunk import QUEUE_RETRIES, worker_context
from rewardstack_rules.jobs.delivery import MODEL_QUEUE, QUEUE, ChunkJob, FairQueue
from rewardstack_rules.jobs.link import connect, first_line
from rewardstack_rules.jobs.sweeper import Sweeper
from rewardstack_rules.logs import LOGGING
from rewardstack_rules.metrics import counters
from rewardstack_rules.metrics.isolation import isolation_collectors
from rewardstack_rules.process import return_memory
from rewardstack_rules.scoring.pools import start_pools
from rewardstack_rules.scoring.reload import Reloader
from rewardstack_rules.settings import SECRETS, Settings, warn_of_misspelled_settings

LIFE_SECONDS = 60
"""Seconds without a heartbeat after which RQ no longer lists a worker. Workers send heartbeats more often."""
MAINTENANCE_SECONDS = 60
"""Seconds between two runs of RQ's maintenance."""
PAUSE = 2.0
"""Seconds before a worker that lost its connection to the queue reconnects."""
NO_CAPACITY_SECONDS = 1
"""Maximum seconds between two checks for a free background thread while all threads are in use."""

log = logging.getLogger("rewardstack_rules.jobs")


class Queues(FairQueue):
    """A queue of a worker. A worker without a free background thread does not read `MODEL_QUEUE`."""

    @classmethod
    def dequeue_any(cls, queues: Iterable[Queue], timeout: int | None, *arguments: Any, **named: Any) -> Any:
        """Return the next entry that this worker can handle, and the queue of the entry."""
        if not worker_context().background.has_capacity():
            queues = [queue for queue in queues if queue.name != MODEL_QUEUE]
            timeout = min(timeout, NO_CAPACITY_SECONDS) if timeout else timeout
        return super().dequeue_any(queues, timeout, *arguments, **named)


class ChunkWorker(SimpleWorker):
    """RQ's worker. Unlike RQ's class, it remembers after a reconnection that a signal has asked it to stop."""

    log_result_lifespan = False
    max_connection_wait_time = PAUSE

    stopping = False
    """Whether a signal has asked this process to stop."""
    reloading = False
    """Whether this process stops in order to restart with changed reward functions (`RELOAD=on`)."""

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        """Handle the first signal: finish the current chunks, then stop."""
        ChunkWorker.stopping = True
        super().request_stop(signum, frame)

    def _install_signal_handlers(self) -> None:
        super()._install_signal_handlers()
        if ChunkWorker.stopping:
            raise StopRequested


def main() -> None:
    """Run a worker until a signal stops it; exit with a message if a setting is invalid."""
    environment = dict(os.environ)  # for a restart, before `read_secret_files` changes the variables
    raise_open_file_limit()
    return_memory()
    logging.config.dictConfig(LOGGING)
    try:
        read_secret_files(SECRETS)
        settings = Settings.from_env()
        warn_of_misspelled_settings()
        if not settings.queue_url:
            raise SettingsError("REWARD_QUEUE_URL: unset; name the Redis that holds the jobs", "REWARD_QUEUE_URL")
        reloader = Reloader(settings, _reload) if settings.reload else None
        start_pools(settings)
        evaluator = worker_context().evaluator
        if settings.worker_metrics_port:
            counters.serve(settings.worker_metrics_port, [*isolation_collectors(evaluator)])
    except ConfigError as error:
        sys.exit(f"worker: {error}")
    name = f"{socket.gethostname()}-{os.getpid()}"
    sweeper = Sweeper(connect(settings.queue_url), name)
    sweeper.start()
    if reloader:
        reloader.start()
    log.info("Running as %s", name)
    with contextlib.suppress(StopRequested):  # raised if a signal arrives outside `worker.work`
        while True:
            _work(settings.queue_url)
            if ChunkWorker.stopping:
                break
            time.sleep(PAUSE)
    worker_context().background.finish()
    sweeper.stop()
    if ChunkWorker.reloading:
        os.execve(sys.executable, [sys.executable, "-m", "rewardstack_rules.jobs.worker"], environment)


def _reload() -> None:
    """Stop this worker as SIGTERM does; `main` then restarts it."""
    ChunkWorker.reloading = True
    os.kill(os.getpid(), signal.SIGTERM)


def _work(url: str) -> None:
    """Score chunks until a signal arrives or the queue is lost."""
    worker: ChunkWorker | None = None
    try:
        worker = ChunkWorker(
            [MODEL_QUEUE, QUEUE],  # read `MODEL_QUEUE` first, because its chunks have waited longer
            connection=connect(url, QUEUE_RETRIES),
            job_class=ChunkJob,
            queue_class=Queues,
            serializer=JSONSerializer,
            worker_ttl=LIFE_SECONDS,
            maintenance_interval=MAINTENANCE_SECONDS,
            log_job_description=False,
        )
        worker.work(logging_level="WARNING")
    except (RedisError, OSError) as error:
        log.warning("lost the connection to the queue, reconnecting: %s", first_line(error))
    finally:
        if worker is not None and worker.pubsub_thread is not None:
            worker.pubsub_thread.stop()  # RQ does not stop the thread if the queue is unreachable


if __name__ == "__main__":
    main()
