"""The settings of the stack: `.env`, and the variables of the environment that beat it.

Every default stands in `.env`; here stands what each value must look like.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Mapping
from pathlib import Path

from services.stack import dotenv
from services.stack.checks import Check, address, anything, flags, matches, maybe, one_of, urls, whole
from services.stack.errors import StackError

SECRETS = (
    "CACHE_PASSWORD",
    "REWARD_SERVER_API_KEYS",
    "LLM_JUDGE_SERVER_API_KEY",
    "EMBEDDING_SERVER_API_KEY",
    "GRAFANA_ADMIN_PASSWORD",
)
"""Settings whose values are never shown."""

PART = matches(r"1|0?\.\d*[1-9]\d*", "a number above 0 and at most 1")
PORT = whole(1, 65_535)
SECONDS = whole(1, 86_400)
DURATION = matches(r"\d*[1-9]\d*(\.\d+)?|\d+\.\d*[1-9]\d*", "a number of seconds above 0")
NAME = matches(r"\S+", "a name without spaces")
SWITCH = one_of("on", "off", "auto")
REDIS_SIZE = matches(r"[1-9][0-9]*(kb|mb|gb)", "a size such as 512mb or 2gb", re.IGNORECASE)
MEMORY = matches(r"0|[1-9][0-9]*[kmg]", "a size such as 512m or 2g, or 0 for no bound")
GPUS = matches(r"all|[0-9]+(,[0-9]+)*", "all, or numbers of GPUs separated by commas")

CHECKS: dict[str, Check] = {
    "STACK": one_of("native", "compose", ""),
    "RUN_DIR": matches(r"\S+", "a path"),
    "UP_TIMEOUT": SECONDS,
    "BIND_ADDRESS": address,
    "REWARD_PORT": PORT,
    "JUDGE_PORT": PORT,
    "EMBEDDING_PORT": PORT,
    "GATEWAY_TIMEOUT": SECONDS,
    "MAX_BODY_BYTES": whole(1024, 2**40),
    "GATEWAY_IMAGE": NAME,
    "CACHE_PORT": PORT,
    "CACHE_PASSWORD": matches(r"[A-Za-z0-9._~-]*", "letters, digits and . _ ~ -, which a Redis URL can hold"),
    "CACHE_MAX_MEMORY": REDIS_SIZE,
    "REDIS_IMAGE": NAME,
    "REWARD_CACHE_TTL": whole(1, 10**9),
    "REWARD_CACHE_ITEMS": whole(0, 10**9),
    "QUEUE_PORT": PORT,
    "QUEUE_MAX_MEMORY": REDIS_SIZE,
    "WORKERS": whole(1, 256),
    "REWARD_JOB_CHUNK_SIZE": whole(1, 100_000),
    "REWARD_JOB_RETRIES": whole(0, 100),
    "REWARD_JOB_TTL": whole(1, 10**9),
    "REWARD_WORKERS": whole(1, 1024),
    "REWARD_THREADS": whole(1, 4096),
    "REWARD_GRACEFUL_TIMEOUT": whole(1, 3600),
    "VERIFY_TIMEOUT": whole(1, 3600),
    "VERIFY_PROCESSES": maybe(whole(1, 1024)),
    "REWARD_TYPE": matches(r"\S+", "the name of a reward function or route"),
    "REWARD_FUNCTIONS": anything,
    "DATASET_PATH": anything,
    "GOLDEN_THRESHOLD": PART,
    "REWARDSTACK_ROUTES": anything,
    "REWARD_SERVER_API_KEYS": anything,
    "MODELS_DIR": matches(r"\S+", "a path"),
    "MODEL_UP_TIMEOUT": SECONDS,
    "JUDGE": SWITCH,
    "JUDGE_MODEL": maybe(NAME),
    "JUDGE_REPLICAS": whole(1, 64),
    "JUDGE_TENSOR_PARALLEL_SIZE": whole(1, 64),
    "JUDGE_DTYPE": maybe(NAME),
    "JUDGE_MAX_MODEL_LEN": maybe(NAME),
    "JUDGE_GPU_MEMORY_UTILIZATION": PART,
    "JUDGE_VLLM_ARGS": flags,
    "VLLM_CPU_KVCACHE_SPACE": whole(1, 1024),
    "JUDGE_BALANCING": one_of("least_conn", "affinity"),
    "JUDGE_MAX_CONNS": whole(1, 1_000_000),
    "JUDGE_TIMEOUT": SECONDS,
    "VLLM_IMAGE": NAME,
    "VLLM_CPU_IMAGE": NAME,
    "LLM_JUDGE_SERVER_URL": urls,
    "LLM_JUDGE_SERVER_API_KEY": anything,
    "LLM_JUDGE_SERVER_TIMEOUT": DURATION,
    "LLM_JUDGE_MODEL": maybe(NAME),
    "JUDGE_REVISION": anything,
    "REWARDSTACK_RUN_ID": anything,
    "EMBEDDING": SWITCH,
    "EMBEDDING_MODEL": maybe(NAME),
    "TEI_IMAGE": NAME,
    "TEI_CPU_IMAGE": NAME,
    "TEI_CUDA_IMAGE": NAME,
    "EMBEDDING_SERVER_URL": urls,
    "EMBEDDING_SERVER_API_KEY": anything,
    "EMBEDDING_SERVER_TIMEOUT": DURATION,
    "MONITORING": one_of("on", "off"),
    "PROMETHEUS_PORT": PORT,
    "GRAFANA_PORT": PORT,
    "PROMETHEUS_RETENTION_DAYS": whole(1, 3650),
    "GRAFANA_ADMIN_PASSWORD": anything,
    "PROMETHEUS_IMAGE": NAME,
    "GRAFANA_IMAGE": NAME,
    "REWARDSTACK_IMAGE": NAME,
    "PYTHON_IMAGE": NAME,
    "BUILD_NETWORK": NAME,
    "COMPOSE_PROFILES": anything,
    "STACK_JUDGE_URL": urls,
    "STACK_EMBEDDING_URL": urls,
    "JUDGE_CPU_MODEL": NAME,
    "JUDGE_GPU_MODEL": NAME,
    "EMBEDDING_CPU_MODEL": NAME,
    "EMBEDDING_GPU_MODEL": NAME,
    "JUDGE_GPUS": GPUS,
    "EMBEDDING_GPU": GPUS,
    "VLLM_PROGRAM": flags,
    "TEI_PROGRAM": flags,
    "STOP_TIMEOUT": SECONDS,
    "GATEWAY_MEMORY": MEMORY,
    "RULES_MEMORY": MEMORY,
    "CACHE_MEMORY": MEMORY,
    "QUEUE_MEMORY": MEMORY,
    "PROMETHEUS_MEMORY": MEMORY,
    "GRAFANA_MEMORY": MEMORY,
    "JUDGE_MEMORY": MEMORY,
    "EMBEDDING_MEMORY": MEMORY,
    "JUDGE_SHM_SIZE": MEMORY,
}
"""Every setting of `.env`, and what its value must look like."""

RENAMED = {
    "PORT": "REWARD_PORT",
    "REWARD_SERVER_PORT": "REWARD_PORT",
    "GATEWAY_PORT": "REWARD_PORT",
    "REWARD_BIND_ADDRESS": "BIND_ADDRESS",
    "REDIS_PORT": "CACHE_PORT",
    "REDIS_PASSWORD": "CACHE_PASSWORD",
    "REDIS_MAXMEMORY": "CACHE_MAX_MEMORY",
    "REWARD_API_KEYS": "REWARD_SERVER_API_KEYS",
    "REWARD_MAX_BODY_BYTES": "MAX_BODY_BYTES",
    "RULES_WORKERS": "REWARD_WORKERS",
    "MODEL_ID": "JUDGE_MODEL or EMBEDDING_MODEL",
    "JUDGE_MODEL_ID": "JUDGE_MODEL",
    "EMBEDDING_MODEL_ID": "EMBEDDING_MODEL",
    "JUDGE_SERVER_URL": "LLM_JUDGE_SERVER_URL",
    "JUDGE_API_KEY": "LLM_JUDGE_SERVER_API_KEY",
}
"""Names under which these settings are known elsewhere, and theirs here."""

OURS = ("REWARD_", "GATEWAY_", "JUDGE_", "EMBEDDING_")
"""Other software sets the other old names too, so in the environment they are no mistake."""

SERVICE_LINK = "tcp://"
"""Kubernetes sets a variable such as GATEWAY_PORT=tcp://10.0.0.1:80 in every pod beside a service of that name."""


class Settings(dict[str, str]):
    """The value of every setting by name, each checked."""

    def number(self, name: str) -> int:
        """A setting that is a whole number."""
        return int(self[name])

    def url(self, port: str = "REWARD_PORT") -> str:
        """Where a client on this machine finds a service behind the gateway, by the setting of its port."""
        return f"http://{self.host}:{self[port]}"

    def listen(self, port: str) -> str:
        """The address and port that the gateway listens on for a service."""
        return f"{self.gateway_host}:{self[port]}"

    @property
    def host(self) -> str:
        """By which this machine reaches what listens on BIND_ADDRESS, an IPv6 address in brackets."""
        return "localhost" if self.open_to_all or self["BIND_ADDRESS"] == "127.0.0.1" else self.gateway_host

    @property
    def gateway_host(self) -> str:
        """The address the gateway listens on, an IPv6 one in brackets."""
        address = self["BIND_ADDRESS"]
        return f"[{address}]" if ":" in address else address

    @property
    def open_to_all(self) -> bool:
        """Whether the gateway listens on every address of the machine."""
        return ipaddress.ip_address(self["BIND_ADDRESS"]).is_unspecified

    @property
    def cache_url(self) -> str:
        """The stack's own Redis, with its password."""
        password = f":{self['CACHE_PASSWORD']}@" if self["CACHE_PASSWORD"] else ""
        return f"redis://{password}127.0.0.1:{self['CACHE_PORT']}/0"

    @property
    def cache_addresses(self) -> str:
        """Where the native cache listens, as Redis writes it: beyond loopback only with a password."""
        address = ipaddress.ip_address(self["BIND_ADDRESS"])
        if not self["CACHE_PASSWORD"] or address.is_loopback:
            return "127.0.0.1"
        return str(address) if str(address) == "0.0.0.0" else f"127.0.0.1 {address}"

    @property
    def queue_url(self) -> str:
        """The Redis of the native stack that holds jobs."""
        return f"redis://127.0.0.1:{self['QUEUE_PORT']}/0"


def load(root: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of the tree at `root`.

    Raises:
        StackError: a setting is missing, unknown, renamed or malformed; the message names it.
    """
    written = dotenv.read(root / ".env")
    for name in written.keys() - CHECKS.keys():
        raise StackError(f".env: {name} is no setting{_renamed(name)}", "docs/settings.md lists all of them")
    environ = {name: value for name, value in environ.items() if not value.startswith(SERVICE_LINK)}
    for old, new in RENAMED.items():
        if old.startswith(OURS) and old in environ:
            raise StackError(f"environment: {old} is no setting; it is called {new} here", f"set {new} instead")
    for name in CHECKS:
        if name not in written:
            raise StackError(f".env: {name} is missing", "put its line back; docs/settings.md has the default")
    settings = Settings({name: environ.get(name, value) for name, value in written.items()})
    for name, check in CHECKS.items():
        source = "environment" if name in environ else ".env"
        try:
            check(settings[name])
        except ValueError as error:
            shown = "its value" if name in SECRETS else repr(settings[name])
            raise StackError(f"{source}: {name}: {shown} is not {error}") from None
    return settings


def run_dir(root: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The one setting that finding a running stack takes: another one that is wrong must not keep it from stopping.

    Raises:
        StackError: `.env` cannot be read, or does not name it.
    """
    if path := environ.get("RUN_DIR") or dotenv.read(root / ".env").get("RUN_DIR"):
        return path
    raise StackError(".env: RUN_DIR is missing", "put its line back; docs/settings.md has the default")


def _renamed(name: str) -> str:
    if name in RENAMED:
        return f"; it is called {RENAMED[name]} here"
    close = difflib.get_close_matches(name, CHECKS, n=1)
    return f"; did you mean {close[0]}?" if close else ""
