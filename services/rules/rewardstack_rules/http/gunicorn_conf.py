"""Configure gunicorn: `gunicorn -c python:rewardstack_rules.http.gunicorn_conf` starts the reward server.

The command needs no other argument, because this module names the application. gunicorn's master process starts the
isolated processes once, for all workers. Each worker calls `create_app` itself, so that a reload (SIGHUP) loads changed
reward functions and routes.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]

from rewardstack.core.descriptors import raise_open_file_limit
from rewardstack.core.secret_files import read_secret_files
from rewardstack.errors import ConfigError, UnreachableError
from rewardstack_rules import logs
from rewardstack_rules.metrics.directory import IN_MEMORY, clear_counts, make_metrics_dir
from rewardstack_rules.process import return_memory
from rewardstack_rules.scoring.pools import restart_pools, start_pools
from rewardstack_rules.scoring.reward_type import is_built_in, unknown_reward_type
from rewardstack_rules.settings import QUEUED_REQUESTS, SECRETS, Settings, warn_of_misspelled_settings

SPARE_THREADS = 16
"""Threads for probes and refusals, in addition to those of requests that work, wait, or wait for a place."""
IDLE_CONNECTIONS = 1000
"""Maximum number of connections of a worker without a request."""

try:
    read_secret_files(SECRETS)
    _settings = Settings.from_env()
except ConfigError as error:
    sys.exit(f"{type(error).__name__}: {error}")
_metrics_dir = _settings.metrics_dir or make_metrics_dir()
os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics_dir  # set before a worker imports prometheus_client, which reads it

wsgi_app = "rewardstack_rules.http.gunicorn_conf:application()"
bind = _settings.address
worker_class = "gthread"
workers = _settings.workers
# Threads are started when they are needed.
threads = _settings.threads + _settings.waiting_requests + QUEUED_REQUESTS + SPARE_THREADS
worker_connections = threads + IDLE_CONNECTIONS
graceful_timeout = _settings.drain_timeout
keepalive = 75  # longer than proxies keep idle connections, so that a proxy never uses one that is being closed
control_socket_disable = True
logconfig_dict = logs.LOGGING
worker_tmp_dir = IN_MEMORY

_reloading = Lock()


def application() -> Any:
    """Return a worker's application. On ConfigError, log one line, and exit with the status of a failed start."""
    from rewardstack_rules.http import app

    try:
        return app.create_app()
    except ConfigError as error:
        logs.log_failed_start(logging.getLogger("gunicorn.error"), error)
        sys.exit(Arbiter.WORKER_BOOT_ERROR)


def on_starting(server: Any) -> None:
    """Prepare the master before it listens: limits, metrics, settings and isolated processes."""
    raise_open_file_limit()  # a worker's connections alone may be 2,000
    return_memory()
    clear_counts(Path(_metrics_dir))
    warn_of_misspelled_settings()
    _check_reward_type(server)
    # Import the application's modules here, once, so that workers start faster and share their memory.
    from rewardstack_rules.http import app
    from rewardstack_rules.scoring.reload import Reloader

    if _settings.reload:
        server.reloader = Reloader(_settings, partial(_replace_workers, server), app.load_context)
    try:
        start_pools(_settings)
    except ConfigError as error:
        logs.log_failed_start(server.log, error)
        sys.exit(1)


def when_ready(server: Any) -> None:
    """Handle SIGHUP, and start the reloader if `RELOAD=on`, now that the master listens.

    gunicorn's own handler would replace the workers even if the new ones cannot start, and then exit.
    """
    # A signal handler must not wait and must not log, hence the thread.
    signal.signal(signal.SIGHUP, lambda *_: Thread(target=_reload, args=(server,), name="SIGHUP", daemon=True).start())
    if _settings.reload:
        server.reloader.start()


def _check_reward_type(server: Any) -> None:
    """Exit with a message if REWARD_TYPE is unknown. Without this check, each worker would log a traceback.

    If the type is not built in, a forked process checks it, so that the master loads no custom functions and routes.
    """
    if is_built_in(_settings):
        return
    child = os.fork()
    if child == 0:
        status = 0
        try:
            if error := unknown_reward_type(_settings):
                server.log.error(error)
                status = 1
        finally:
            os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        sys.exit(1)


def _reload(server: Any) -> None:
    """Load all files again if that succeeds in a forked process; runs in a thread of the master."""
    from rewardstack_rules.http import app
    from rewardstack_rules.scoring.reload import KEPT, try_to_load

    _, error = try_to_load(_settings, app.load_context)
    if error:
        server.log.error(KEPT, error)
    else:
        _replace_workers(server)


def _replace_workers(server: Any) -> None:
    """Start new isolated processes, then replace the workers; both load all files again.

    If the isolated processes do not start, those that run stay, and the workers, too. Runs in a thread of the master.
    """
    from rewardstack_rules.scoring.reload import KEPT

    with _reloading:
        try:
            restart_pools(_settings)
        except (ConfigError, UnreachableError) as error:
            server.log.error(KEPT, error)
        else:
            server.signal(signal.SIGHUP, None)  # gunicorn's own handler


def post_worker_init(worker: Any) -> None:
    """Exclude loaded objects from garbage collection. The first worker logs the line that start scripts wait for."""
    gc.collect()
    gc.freeze()
    if worker.age == 1:
        address = bind if _settings.socket else f"http://{bind}"
        worker.log.info("Running on %s", address)


def child_exit(server: Any, worker: Any) -> None:
    """Add the counts of an exited worker to the sum over all exited workers; runs in the master."""
    from rewardstack_rules.metrics.files import merge_ended

    merge_ended(Path(_metrics_dir), worker.pid)


def on_exit(server: Any) -> None:
    """Deregister this server from the status page after the last worker has exited; runs in the master."""
    from rewardstack.settings import Settings as ClientSettings
    from rewardstack_rules.status.recorder import Recorder

    with suppress(ConfigError):  # a worker has already reported the error
        Recorder(bind, _metrics_dir, ClientSettings.from_env().cache_url).leave()
