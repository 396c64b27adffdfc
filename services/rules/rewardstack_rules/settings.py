"""The reward server's settings: the one place of this package that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rewardstack.errors import SettingsError
from rewardstack.settings import read
from rewardstack.settings_table import TABLE as CLIENT_TABLE
from rewardstack_rules.isolation.config import usable_cores
from rewardstack_rules.jobs.limits import OPEN_JOBS, QUEUE_BYTES, Limits
from rewardstack_rules.settings_table import TABLE
from rewardstack_settings.setting import Malformed, read_by

READ = read_by({**TABLE, **CLIENT_TABLE}, "rules", "worker")
DEFAULTS = {name: setting.default for name, setting in READ.items()}
"""Every variable that the server or a worker reads, and its value where it is unset or empty."""
SECRETS = tuple(name for name, setting in READ.items() if setting.secret)
"""Those that can hold a secret."""


RULES = ("REWARD_FUNCTIONS", "VERIFY_TIMEOUT", "VERIFY_PROCESSES")


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """What rules need, wherever they run: in the reward server, a worker, an isolated process or a trainer.

    Args:
        function_files: Python files with one's own reward functions.
        verify_timeout: seconds that one sample may take in an isolated process.
        verify_processes: isolated processes that work at the same time.
    """

    function_files: tuple[Path, ...]
    verify_timeout: float
    verify_processes: int

    @staticmethod
    def from_env(environ: Mapping[str, str] = os.environ) -> RuleSettings:
        """The settings of this moment; no other variable of the server is read, for a trainer may use its name.

        Raises:
            SettingsError: a variable is malformed, or names a file that is not there; the message says which.
        """
        value = read({name: READ[name] for name in RULES}, environ)
        return RuleSettings(
            _files("REWARD_FUNCTIONS", environ), value["VERIFY_TIMEOUT"], value["VERIFY_PROCESSES"] or usable_cores()
        )


@dataclass(frozen=True, slots=True)
class Settings(RuleSettings):
    """What the environment says of a server or a worker.

    Args:
        api_keys: keys that callers may use; empty for an open server.
        key_rate: requests a second that each of them may make; None for no limit.
        reward_type: what `/get_reward` scores by where the request names nothing.
        dataset_path: file of questions and golden answers; None for none.
        golden_threshold: how like a prompt the nearest question of that file must be, from 0 to 1.
        max_body_bytes: the longest body that is read.
        bytes_in_flight: of bodies that each server process holds at once.
        host: address to listen on.
        port: port to listen on.
        socket: path of a Unix socket to listen on instead; empty for none.
        workers: server processes.
        threads: requests that each of them answers at the same time, beside those that wait for models.
        waiting_requests: requests of each of them that may wait for models at the same time.
        graceful_timeout: seconds that a stopping server gives to requests under way.
        queue_url: the Redis that holds jobs; empty for none, and no jobs.
        job_chunk_size: samples of a job that a worker scores at a time.
        job_retries: further attempts for samples of a job that the infrastructure failed.
        job_ttl: seconds that a job and its results stay after its end.
        job_limits: what each key may have in the queue.
        page_explains: whether the status page has a form by which samples are explained.
        metrics_dir: where several processes keep their counts (prometheus_client reads the variable itself); empty for
            one process.
        worker_metrics_port: where a worker answers `/metrics`; 0 for nowhere.
    """

    api_keys: tuple[str, ...]
    key_rate: int | None
    reward_type: str
    dataset_path: Path | None
    golden_threshold: float
    max_body_bytes: int
    bytes_in_flight: int
    host: str
    port: int
    socket: str
    workers: int
    threads: int
    waiting_requests: int
    graceful_timeout: int
    queue_url: str
    job_chunk_size: int
    job_retries: int
    job_ttl: int
    job_limits: Limits
    page_explains: bool
    metrics_dir: str
    worker_metrics_port: int

    @property
    def address(self) -> str:
        """Where the server listens, as gunicorn's `bind` has it."""
        if self.socket:
            return f"unix:{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @staticmethod
    def from_env(environ: Mapping[str, str] = os.environ) -> Settings:
        """The settings of this moment.

        Raises:
            SettingsError: a variable is malformed, or names a file that is not there; the message says which.
        """
        value = read(READ, environ)
        dataset = _files("DATASET_PATH", environ)
        rules = RuleSettings.from_env(environ)
        return Settings(
            rules.function_files,
            rules.verify_timeout,
            rules.verify_processes,
            api_keys=value["REWARD_SERVER_API_KEYS"],
            key_rate=value["REWARD_KEY_RATE"],
            reward_type=value["REWARD_TYPE"],
            dataset_path=dataset[0] if dataset else None,
            golden_threshold=value["GOLDEN_THRESHOLD"],
            max_body_bytes=value["MAX_BODY_BYTES"],
            bytes_in_flight=value["REWARD_BYTES_IN_FLIGHT"],
            host=value["REWARD_HOST"],
            port=value["REWARD_PORT"],
            socket=value["REWARD_SOCKET"],
            workers=value["REWARD_WORKERS"],
            threads=value["REWARD_THREADS"],
            waiting_requests=value["REWARD_WAITING_REQUESTS"],
            graceful_timeout=value["REWARD_GRACEFUL_TIMEOUT"],
            queue_url=value["REWARD_QUEUE_URL"],
            job_chunk_size=value["REWARD_JOB_CHUNK_SIZE"],
            job_retries=value["REWARD_JOB_RETRIES"],
            job_ttl=value["REWARD_JOB_TTL"],
            job_limits=Limits(value[OPEN_JOBS], value[QUEUE_BYTES]),
            page_explains=value["STATUS_PAGE_EXPLAIN"] == "on",
            metrics_dir=value["PROMETHEUS_MULTIPROC_DIR"],
            worker_metrics_port=value["WORKER_METRICS_PORT"],
        )


def _files(name: str, environ: Mapping[str, str]) -> tuple[Path, ...]:
    try:
        return READ[name].files(environ.get(name, ""), Path.cwd())
    except Malformed as error:
        raise SettingsError(str(error), name) from None
