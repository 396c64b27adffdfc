"""Whether a worker is heard of: `python -m rewardstack_rules.jobs.health` exits with 0 where one of this host's is.

Where the queue does not answer nobody is heard of, and workers wait for it: the exit status is `NOT_READY` then.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Collection

from rewardstack.core.secret_files import read_secret_files
from rewardstack.errors import ConfigError, ServiceError
from rewardstack_rules.jobs.keys import SILENCE, WORKERS
from rewardstack_rules.jobs.link import RedisClient, connect, reaching
from rewardstack_rules.process import NOT_READY
from rewardstack_rules.settings import SECRETS, Settings


def problem(redis: RedisClient, host: str, pids: Collection[int] | None = None) -> str:
    """What is wrong with a worker; empty where the queue has heard of it within the last `SILENCE` seconds.

    Args:
        redis: of the queue.
        host: that it runs on, as that knows itself.
        pids: process ids, of which its own is one; None for any worker of that host.

    Raises:
        ServiceError: the queue does not answer.
    """
    with reaching():
        seconds, _ = redis.time()
        heard = [name.decode() for name in redis.zrangebyscore(WORKERS, seconds - SILENCE, "+inf")]
    known = [name for name in heard if name.rpartition("-")[0] == host]
    if known if pids is None else any(f"{host}-{pid}" in known for pid in pids):
        return ""
    return "the queue has not heard of this worker"


def main() -> None:
    """Exits with a message where no worker of this host is heard of, or a setting is wrong."""
    try:
        read_secret_files(SECRETS)
        settings = Settings.from_env()
    except ConfigError as error:
        sys.exit(f"worker: {error}")
    try:
        trouble = problem(connect(settings.queue_url, retries=0), socket.gethostname())
    except ServiceError as error:
        print(f"worker: {error}", file=sys.stderr)
        sys.exit(NOT_READY)
    if trouble:
        sys.exit(f"worker: {trouble}")


if __name__ == "__main__":
    main()
