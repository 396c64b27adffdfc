"""The reward server's settings: the one place of this package that reads the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rewardstack.errors import SettingsError
from rewardstack.settings import parse_number, parse_redis_url
from rewardstack_rules.isolation.config import MIB, IsolationConfig, usable_cores

DEFAULTS = {
    "REWARD_SERVER_API_KEYS": "",
    "REWARD_TYPE": "math_verifier",
    "REWARD_FUNCTIONS": "",
    "DATASET_PATH": "",
    "GOLDEN_THRESHOLD": "0.9",
    "MAX_BODY_BYTES": str(64 * MIB),
    "VERIFY_TIMEOUT": "5",
    "VERIFY_PROCESSES": "",
    "REWARD_HOST": "127.0.0.1",
    "REWARD_PORT": "6000",
    "REWARD_SOCKET": "",
    "REWARD_WORKERS": "2",
    "REWARD_THREADS": "32",
    "REWARD_GRACEFUL_TIMEOUT": "30",
    "REWARD_QUEUE_URL": "",
    "REWARD_JOB_CHUNK_SIZE": "200",
    "REWARD_JOB_RETRIES": "3",
    "REWARD_JOB_TTL": "604800",
    "PROMETHEUS_MULTIPROC_DIR": "",
    "WORKER_METRICS_PORT": "0",
}
"""Every variable the server reads, and its value where it is unset or empty."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says.

    Args:
        api_keys: keys that callers may use; empty for an open server.
        reward_type: what `/get_reward` scores by where the request names nothing.
        function_files: Python files with one's own reward functions.
        dataset_path: file of questions and golden answers; None for none.
        golden_threshold: how like a prompt the nearest question of that file must be, from 0 to 1.
        max_body_bytes: the longest body that is read.
        verify_timeout: seconds that one sample may take in an isolated process.
        verify_processes: isolated processes that work at the same time.
        host: address to listen on.
        port: port to listen on.
        socket: path of a Unix socket to listen on instead; empty for none.
        workers: server processes.
        threads: requests that each of them answers at the same time.
        graceful_timeout: seconds that a stopping server gives to requests under way.
        queue_url: the Redis that holds jobs; empty for none, and no jobs.
        job_chunk_size: samples of a job that a worker scores at a time.
        job_retries: further attempts for samples of a job that the infrastructure failed.
        job_ttl: seconds that a job and its results stay after its end.
        metrics_dir: where several processes keep their counts (prometheus_client reads the variable itself); empty for
            one process.
        worker_metrics_port: where a worker answers `/metrics`; 0 for nowhere.
    """

    api_keys: tuple[str, ...]
    reward_type: str
    function_files: tuple[Path, ...]
    dataset_path: Path | None
    golden_threshold: float
    max_body_bytes: int
    verify_timeout: float
    verify_processes: int
    host: str
    port: int
    socket: str
    workers: int
    threads: int
    graceful_timeout: int
    queue_url: str
    job_chunk_size: int
    job_retries: int
    job_ttl: int
    metrics_dir: str
    worker_metrics_port: int

    @property
    def address(self) -> str:
        """Where the server listens, as gunicorn's `bind` has it."""
        if self.socket:
            return f"unix:{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def isolation(self) -> IsolationConfig:
        """What runs in processes that can be killed; the same for all processes of one server."""
        return IsolationConfig(
            "rewardstack_rules.execute:execute",
            warmup="rewardstack_rules.execute:warm_up",
            fast=self.verify_processes,
            slow=self.verify_processes,
            max_frame_bytes=32 * MIB,
        )

    @staticmethod
    def from_env(environ: Mapping[str, str] = os.environ) -> Settings:
        """The settings of this moment.

        Raises:
            SettingsError: a variable is malformed, or names a file that is not there; the message says which.
        """
        raw = {name: environ.get(name) or default for name, default in DEFAULTS.items()}
        files = [part for part in raw["REWARD_FUNCTIONS"].split(os.pathsep) if part]
        dataset = raw["DATASET_PATH"]
        return Settings(
            api_keys=_keys(raw["REWARD_SERVER_API_KEYS"]),
            reward_type=raw["REWARD_TYPE"],
            function_files=tuple(_file("REWARD_FUNCTIONS", part) for part in files),
            dataset_path=_file("DATASET_PATH", dataset) if dataset else None,
            golden_threshold=parse_number(raw, "GOLDEN_THRESHOLD", float, most=1),
            max_body_bytes=parse_number(raw, "MAX_BODY_BYTES", int),
            verify_timeout=parse_number(raw, "VERIFY_TIMEOUT", float),
            verify_processes=parse_number(raw, "VERIFY_PROCESSES", int) if raw["VERIFY_PROCESSES"] else usable_cores(),
            host=raw["REWARD_HOST"],
            port=parse_number(raw, "REWARD_PORT", int, most=65535),
            socket=raw["REWARD_SOCKET"],
            workers=parse_number(raw, "REWARD_WORKERS", int),
            threads=parse_number(raw, "REWARD_THREADS", int),
            graceful_timeout=parse_number(raw, "REWARD_GRACEFUL_TIMEOUT", int),
            queue_url=parse_redis_url(raw["REWARD_QUEUE_URL"], "REWARD_QUEUE_URL"),
            job_chunk_size=parse_number(raw, "REWARD_JOB_CHUNK_SIZE", int),
            job_retries=parse_number(raw, "REWARD_JOB_RETRIES", int, above=-1),
            job_ttl=parse_number(raw, "REWARD_JOB_TTL", int),
            metrics_dir=raw["PROMETHEUS_MULTIPROC_DIR"],
            worker_metrics_port=parse_number(raw, "WORKER_METRICS_PORT", int, above=-1, most=65535),
        )


def _keys(text: str) -> tuple[str, ...]:
    keys = tuple(part.strip() for part in text.split(","))
    if not text:
        return ()
    if not all(keys) or not text.isascii():
        raise SettingsError(
            "REWARD_SERVER_API_KEYS has an empty key, or one that is not ASCII; write it like first-key,second-key",
            "REWARD_SERVER_API_KEYS",
        )
    return keys


def _file(name: str, text: str) -> Path:
    path = Path(text).expanduser().resolve()
    if not path.is_file():
        raise SettingsError(f"{name}: there is no file {text}; correct the path, or unset {name}", name)
    return path
