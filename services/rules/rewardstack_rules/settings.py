"""Read the settings of the reward server and its workers from environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rewardstack.errors import SettingsError
from rewardstack.settings import READ as CLIENT_READ
from rewardstack.settings import read, warn_of_misspelled
from rewardstack.settings_table import TABLE as CLIENT_TABLE
from rewardstack_rules.confinement.syscalls import ADDABLE, GROUPS
from rewardstack_rules.isolation.config import usable_cores
from rewardstack_rules.jobs.limits import OPEN_JOBS, QUEUE_BYTES, Limits
from rewardstack_rules.settings_table import TABLE
from rewardstack_settings.setting import InvalidSetting, settings_for

READ = settings_for({**TABLE, **CLIENT_TABLE}, "rules", "worker")
"""The settings that the server or a worker reads, by name."""
DEFAULTS = {name: setting.default for name, setting in READ.items()}
"""The default of each variable that the server or a worker reads, as text."""
SECRETS = tuple(name for name, setting in READ.items() if setting.secret)
"""Variables that can hold a secret."""

FUNCTION_VARIABLES = "REWARD_FUNCTIONS_ENV"
FUNCTION_DATA, FUNCTION_ALLOW = "REWARD_FUNCTIONS_FILES", "REWARD_FUNCTIONS_ALLOW"
FUNCTION_SETTINGS = ("REWARD_FUNCTIONS", FUNCTION_VARIABLES, FUNCTION_DATA, FUNCTION_ALLOW)
CODE_SETTINGS = ("CODE", "CODE_PROCESSES", "CODE_TIMEOUT", "CODE_BOUNDARY", "CODE_PYTHON", "CODE_CXX")
FUSION, SANDBOX = "SANDBOX_FUSION_URL", "CODE_SANDBOX_URL"
RULE_SETTINGS = (*FUNCTION_SETTINGS, "VERIFY_TIMEOUT", "VERIFY_PROCESSES", *CODE_SETTINGS, FUSION, SANDBOX)
QUEUED_REQUESTS = 1000
"""Maximum number of requests that wait in each server process for one of its threads (REWARD_THREADS); more get 503."""
URL_WITH_PASSWORD = re.compile(r"://[^/?#\s]*@|^[^\s/@]+:[^\s/@]+@|[?&](?:password|passwd|pwd)=", re.IGNORECASE)
"""Matches a URL or address with user information (`user:password@`), or with a password in its query."""


@dataclass(frozen=True, slots=True)
class CodeSettings:
    """Settings for running generated programs (the reward function `code`).

    Args:
        processes: maximum number of samples whose programs run at the same time.
        timeout: CPU seconds that all tests of one sample may take together.
        python: path of the interpreter for the programs; empty for the server's own.
        compiler: path or name of the compiler for programs in C++ and C; empty for the one on PATH.
        fusion_urls: base URLs of the SandboxFusion servers that run programs; empty to run them here.
    """

    processes: int
    timeout: float
    python: str
    compiler: str
    fusion_urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """Settings for scoring by rules, in a reward server, a worker, an isolated process or a trainer.

    Args:
        function_files: Python files with custom reward functions.
        function_variables: names of additional environment variables that custom functions may read.
        function_data: additional absolute paths that confined custom functions can read, and write if `function_allow`
            has `write`.
        function_allow: additional permissions of confined custom functions (`confinement.syscalls.ADDABLE`).
        verify_timeout: timeout of one sample in an isolated process, in seconds.
        verify_processes: number of isolated processes for ordinary samples in a pool (`scoring.pools`). For slow
            samples, a pool may start up to the same number again. The pool for programs ignores this setting.
        code: settings for running programs, here or on SandboxFusion servers; None if programs are not run, or if the
            servers in `CODE_SANDBOX_URL` run them.
    """

    function_files: tuple[Path, ...]
    function_variables: tuple[str, ...]
    function_data: tuple[str, ...]
    function_allow: tuple[str, ...]
    verify_timeout: float
    verify_processes: int
    code: CodeSettings | None

    @staticmethod
    def from_env(environ: Mapping[str, str] = os.environ) -> RuleSettings:
        """Read only the settings for rules, because a trainer may use the server's other variables for something else.

        Raises:
            SettingsError: a variable is malformed or names a missing file; the message names the variable.
        """
        value = read({name: READ[name] for name in RULE_SETTINGS}, environ)
        return RuleSettings(
            _files("REWARD_FUNCTIONS", environ),
            _check_no_secrets(value[FUNCTION_VARIABLES], environ),
            tuple(map(_check_exists, value[FUNCTION_DATA])),
            _check_permissions(value[FUNCTION_ALLOW]),
            value["VERIFY_TIMEOUT"],
            value["VERIFY_PROCESSES"] or usable_cores(),
            _code(value),
        )


@dataclass(frozen=True, slots=True)
class Settings(RuleSettings):
    """Settings of a server or a worker.

    Args:
        api_keys: API keys that clients may use; empty for a server that needs no key.
        allowed_hosts: additional host names by which clients may address a server without keys.
        key_rate: maximum requests per second of each key, or of all clients together if there are no keys; None for no
            limit.
        reward_type: reward type of requests that do not name one, such as trainers' requests to `/get_reward`.
        dataset_path: file of questions and golden responses; None if there is none.
        golden_threshold: minimum similarity between a prompt and the nearest question of `dataset_path`, from 0 to 1.
        max_body_bytes: maximum size of a request body, in bytes.
        bytes_in_flight: maximum total size of the request bodies in each server process, in bytes.
        host: address to listen on.
        port: port to listen on.
        socket: path of a Unix socket to listen on instead of `host` and `port`; empty for none.
        workers: number of server processes.
        threads: maximum number of requests that each server process works on at the same time. After 0.1 s, a request
            that waits for models or isolated processes counts toward `waiting_requests` instead.
        waiting_requests: maximum number of requests that wait in each server process at the same time.
        drain_timeout: seconds that a stopping server may take to finish requests in flight.
        queue_url: URL of the Redis that holds jobs; empty for no jobs.
        job_chunk_size: number of samples of a job that a worker scores together.
        job_retries: maximum number of retries for the `failed` samples of a job.
        job_ttl: seconds that a job and its results are kept after the job ends.
        job_limits: limits of each API key in the queue.
        page_explains: whether the status page has a form that explains scores.
        metrics_dir: directory in which the processes of a server keep their counters; empty for a single process.
            prometheus_client does not get this value, but reads `PROMETHEUS_MULTIPROC_DIR` itself.
        worker_metrics_port: port of a worker's `/metrics`; 0 for none.
        reload: whether to reload reward functions and routes when they change.
    """

    api_keys: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
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
    drain_timeout: int
    queue_url: str
    job_chunk_size: int
    job_retries: int
    job_ttl: int
    job_limits: Limits
    page_explains: bool
    metrics_dir: str
    worker_metrics_port: int
    reload: bool

    @property
    def address(self) -> str:
        """The address that the server listens on, in the format of gunicorn's `bind`."""
        if self.socket:
            return f"unix:{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @staticmethod
    def from_env(environ: Mapping[str, str] = os.environ) -> Settings:
        """Read all settings of a server or a worker.

        Raises:
            SettingsError: a variable is malformed or names a missing file; the message names the variable.
        """
        value = read(READ, environ)
        dataset = _files("DATASET_PATH", environ)
        rules = RuleSettings.from_env(environ)
        return Settings(
            **{field.name: getattr(rules, field.name) for field in fields(rules)},
            api_keys=value["REWARD_SERVER_API_KEYS"],
            allowed_hosts=value["ALLOWED_HOSTS"],
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
            drain_timeout=value["DRAIN_TIMEOUT"],
            queue_url=value["REWARD_QUEUE_URL"],
            job_chunk_size=value["REWARD_JOB_CHUNK_SIZE"],
            job_retries=value["REWARD_JOB_RETRIES"],
            job_ttl=value["REWARD_JOB_TTL"],
            job_limits=Limits(value[OPEN_JOBS], value[QUEUE_BYTES]),
            page_explains=value["STATUS_PAGE_EXPLAIN"] == "on",
            metrics_dir=value["PROMETHEUS_MULTIPROC_DIR"],
            worker_metrics_port=value["WORKER_METRICS_PORT"],
            reload=value["RELOAD"] == "on",
        )


def warn_of_misspelled_settings() -> None:
    """Log which variables of the environment look like misspelled settings of the server, each once per process."""
    warn_of_misspelled((*READ, *CLIENT_READ))


def _code(value: Mapping[str, Any]) -> CodeSettings | None:
    """Return the settings for running programs; None if no programs run, or if CODE_SANDBOX_URL names their servers.

    Raises:
        SettingsError: both CODE_SANDBOX_URL and SANDBOX_FUSION_URL are set.
    """
    urls = value[FUSION]
    if urls and value[SANDBOX]:
        both = f"{FUSION} and {SANDBOX} are both set, but only one may name the servers that run programs"
        raise SettingsError(f"{both}; unset one of them", FUSION)
    if value[SANDBOX] or (value["CODE"] == "off" and not urls):
        return None
    processes = value["CODE_PROCESSES"] or usable_cores()
    return CodeSettings(processes, value["CODE_TIMEOUT"], value["CODE_PYTHON"], value["CODE_CXX"], urls)


def _check_no_secrets(names: tuple[str, ...], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return `names`; raise SettingsError if one of the variables holds a secret."""
    for name in names:
        if name.removesuffix("_FILE") in SECRETS:
            why = f"{name} is a secret, which reward functions never get; remove it"
            raise SettingsError(f"{FUNCTION_VARIABLES}: {why}", FUNCTION_VARIABLES)
        if URL_WITH_PASSWORD.search(environ.get(name, "")):
            why = f"{name} holds an address with a password, which reward functions never get; remove it"
            raise SettingsError(f"{FUNCTION_VARIABLES}: {why}", FUNCTION_VARIABLES)
    return names


def _check_exists(path: Path) -> str:
    """Return a path as text, with symbolic links resolved; raise SettingsError if it does not exist."""
    if not path.exists():
        raise SettingsError(f"{FUNCTION_DATA}: there is no {path}; correct the path, or remove it", FUNCTION_DATA)
    return str(path.resolve())


def _check_permissions(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return `names`; raise SettingsError if one of them is not in `ADDABLE`."""
    for name in names:
        if name not in ADDABLE:
            remedy = f"use {', '.join(GROUPS)}, or a system call such as sched_setaffinity"
            why = f"{name!r} is unknown or must not be allowed; {remedy}"
            raise SettingsError(f"{FUNCTION_ALLOW}: {why}", FUNCTION_ALLOW)
    return names


def _files(name: str, environ: Mapping[str, str]) -> tuple[Path, ...]:
    try:
        return READ[name].files(environ.get(name, ""), Path.cwd())
    except InvalidSetting as error:
        raise SettingsError(str(error), name) from None
