"""Table of services, with the command, probes, stop signal and limits of each.

Each deployment (native, Compose, Helm, Apptainer) renders these rows and adds only what differs: sockets or ports,
images or programs. `make settings` writes the rows to the compose files and the chart (`files/services.yaml`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from services.stack.settings_table import TABLE

DRAIN_TIMEOUT = "DRAIN_TIMEOUT"
"""Setting with the seconds that a stopping service may take to finish requests in flight."""
FACTORS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


@dataclass(frozen=True)
class Option:
    """A command-line option whose value is a setting. The option is omitted if the setting is empty.

    Args:
        flag: name of the option.
        setting: name of the setting.
        device: `gpu` or `cpu` if only servers on this device accept the option; empty for both.
    """

    flag: str
    setting: str
    device: str = ""


@dataclass(frozen=True)
class Probe:
    """Health checks of a service.

    Args:
        ready: path that answers 200 when the service accepts requests; empty for a service without HTTP.
        live: path that answers 200 while the process works, even if it is busy.
        command: command to run inside the container; it succeeds when the service accepts requests. It is used for
            services without HTTP, and by deployments that cannot probe over HTTP.
        live_command: command to run inside the container; it succeeds while the process works. If it is empty,
            `command` is used.
    """

    ready: str = ""
    live: str = ""
    command: tuple[str, ...] = ()
    live_command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Memory:
    """The memory limit of a container: `factor` times a setting.

    Args:
        setting: name of a setting whose value is a size, such as `512mb` or `2g`.
        factor: number by which the setting is multiplied. It is more than 1 for Redis, which needs more memory than
            `maxmemory`: for buffers, fragmentation, and copies of the pages that change while it saves.
    """

    setting: str
    factor: int = 1

    def bytes(self, settings: Mapping[str, str]) -> int:
        """Return the limit in bytes; 0 for no limit.

        Args:
            settings: values by name.
        """
        size = settings[self.setting].lower().removesuffix("b")
        digits = size.rstrip("kmg")
        return self.factor * int(digits) * FACTORS[size.removeprefix(digits)]


@dataclass(frozen=True)
class Service:
    """A service of the stack.

    Args:
        name: name of the service, the same in every deployment.
        start_order: services with lower numbers start earlier and stop later.
        command: program and fixed arguments; the deployment fills in `{model}` and `{config}`.
        options: additional arguments, whose values are settings.
        more_options: setting with additional arguments in shell syntax; they come last.
        port: port in a container or pod. It is 0 for services without a port, and for the gateway, which has several
            ports.
        probe: health checks.
        startup_timeout: setting with the maximum seconds until the service is healthy.
        stop_signal: signal that starts a graceful stop.
        stop_margin: seconds beyond DRAIN_TIMEOUT after which the service is killed.
        memory: memory limit of the container; None for no limit.
        environment: fixed environment variables.
        cpu_environment: additional environment variables on CPUs.
        secret_files: settings with secrets that the service reads from files. For the setting NAME, the environment
            variable `NAME_FILE` has the path of the file.
        secret_variables: settings with secrets that the service reads from environment variables, by name of the
            variable.
    """

    name: str
    start_order: int
    command: tuple[str, ...]
    options: tuple[Option, ...] = ()
    more_options: str = ""
    port: int = 0
    probe: Probe = Probe()
    startup_timeout: str = "UP_TIMEOUT"
    stop_signal: str = "TERM"
    stop_margin: int = 5
    memory: Memory | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    cpu_environment: Mapping[str, str] = field(default_factory=dict)
    secret_files: tuple[str, ...] = ()
    secret_variables: Mapping[str, str] = field(default_factory=dict)

    def stop_grace(self, settings: Mapping[str, str]) -> int:
        """Return the seconds from the stop signal until the service is killed.

        Args:
            settings: values by name.
        """
        return int(settings[DRAIN_TIMEOUT]) + self.stop_margin

    def arguments(self, settings: Mapping[str, str], device: str = "") -> list[str]:
        """Return the arguments of `options` with their values, without `more_options`.

        Args:
            settings: values by name.
            device: `gpu` or `cpu`.
        """
        options = (option for option in self.options if option.device in ("", device) and settings[option.setting])
        return [part for option in options for part in (option.flag, settings[option.setting])]


SCORING_SECRETS = tuple(
    name for name, setting in TABLE.items() if setting.secret and {"rules", "worker"} & {*setting.readers}
)
"""Secrets of the reward server and its workers."""
FRESH = 'fresh() { find "/tmp/rewardstack-worker/$1" -mmin "-$2" 2>/dev/null | grep -q .; }'
"""Shell function that succeeds if a worker has touched its heartbeat file $1 in the last $2 minutes. The module
`rewardstack_rules.jobs.heartbeat` touches these files."""
SILENT = "{ echo 'the worker has not shown for two minutes that it runs'; exit 1; }"
"""Shell commands that end the probe of a worker without a recent heartbeat."""
WORKER_PROBE = Probe(
    # Exit status 3 means that the worker is alive and waits for the queue, so `health.sh` does not restart it.
    command=(
        "sh",
        "-c",
        f"{FRESH}; fresh ready 0.5 && exit; fresh alive 2 || {SILENT}; "
        "echo 'the queue does not answer the worker'; exit 3",
    ),
    live_command=("sh", "-c", f"{FRESH}; fresh alive 2 || {SILENT}"),
)
"""Health checks of a worker. They are in shell, because starting Python takes too long on a busy machine."""
redis_server = partial(
    Service,
    start_order=10,
    command=("redis-server", "{config}"),
    port=6379,
    # A server that requires a password is also healthy.
    probe=Probe(
        command=(
            "sh",
            "-c",
            'said=$(redis-cli ping 2>&1); case $said in *PONG* | *NOAUTH*) ;; *) echo "$said"; exit 1 ;; esac',
        )
    ),
)
reward_server = partial(
    Service,
    command=("gunicorn", "--config", "python:rewardstack_rules.http.gunicorn_conf"),
    port=6000,
    probe=Probe("/ready", "/health", ("python", "-m", "rewardstack_rules.http.healthcheck")),
    stop_margin=15,
)
model_server = partial(
    Service, start_order=20, probe=Probe("/health", "/health"), startup_timeout="MODEL_UP_TIMEOUT", stop_margin=30
)
vllm_server = partial(
    model_server,
    port=8000,
    environment={"VLLM_NO_USAGE_STATS": "1"},
    # Threads are not bound to cores, because all servers would choose the same cores.
    cpu_environment={"VLLM_CPU_OMP_THREADS_BIND": "nobind"},
    # Clients reach the judge and the reward model at one port of the gateway, with one key.
    secret_variables={"VLLM_API_KEY": "LLM_JUDGE_SERVER_API_KEY", "HF_TOKEN": "HF_TOKEN"},
)

SERVICES = {
    service.name: service
    for service in (
        # The cache evicts results and stores nothing on disk, because results can be computed again.
        redis_server(
            "cache", options=(Option("--maxmemory", "CACHE_MAX_MEMORY"),), memory=Memory("CACHE_MAX_MEMORY", 2)
        ),
        # The queue never evicts. A job is saved to disk before the reward server accepts it with status 202.
        redis_server(
            "queue", options=(Option("--maxmemory", "QUEUE_MAX_MEMORY"),), memory=Memory("QUEUE_MAX_MEMORY", 3)
        ),
        # The sandbox is a reward server that only runs programs, without keys and without network access.
        reward_server(
            "sandbox",
            start_order=15,
            memory=Memory("SANDBOX_MEMORY"),
            environment={"CODE": "on", "REWARD_CACHE": "off"},
        ),
        reward_server("rules", start_order=30, memory=Memory("RULES_MEMORY"), secret_files=SCORING_SECRETS),
        vllm_server(
            "judge",
            command=("vllm", "serve", "{model}", "--config", "{config}"),
            options=(
                Option("--shutdown-timeout", DRAIN_TIMEOUT),
                Option("--dtype", "JUDGE_DTYPE"),
                Option("--max-model-len", "JUDGE_MAX_MODEL_LEN"),
                Option("--tensor-parallel-size", "JUDGE_TENSOR_PARALLEL_SIZE", "gpu"),
                Option("--gpu-memory-utilization", "JUDGE_GPU_MEMORY_UTILIZATION", "gpu"),
            ),
            more_options="JUDGE_VLLM_ARGS",
        ),
        # The reward model is a pooling model. Its maximum length and data type come from the model.
        vllm_server(
            "reward-model",
            command=(
                *("vllm", "serve", "{model}", "--config", "{config}"),
                *("--runner", "pooling", "--dtype", "auto", "--max-model-len", "auto"),
            ),
            options=(Option("--shutdown-timeout", DRAIN_TIMEOUT),),
            more_options="REWARD_MODEL_VLLM_ARGS",
        ),
        model_server(
            "embedding",
            command=("text-embeddings-router", "--model-id", "{model}"),
            port=8080,
            secret_variables={"API_KEY": "EMBEDDING_SERVER_API_KEY", "HF_TOKEN": "HF_TOKEN"},
        ),
        Service(
            "worker",
            start_order=35,
            command=("python", "-m", "rewardstack_rules.jobs.worker"),
            probe=WORKER_PROBE,
            stop_margin=15,
            memory=Memory("RULES_MEMORY"),
            secret_files=tuple(name for name in SCORING_SECRETS if "worker" in TABLE[name].readers),
        ),
        # The gateway stops after the services that reach model servers through it, and before the model servers.
        Service(
            "gateway",
            start_order=25,
            command=("nginx", "-c", "nginx.conf", "-e", "stderr"),
            probe=Probe("/gateway/health", "/gateway/health"),
            stop_signal="QUIT",
            memory=Memory("GATEWAY_MEMORY"),
        ),
    )
}
