"""Describe the programs and files of a stack of local processes or Apptainer images.

Programs and files follow from the settings, the chosen model servers, and the table of services
(`services.stack.services_table`). `services.up.compose` describes a stack in Docker Compose.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from services.gateway import config as gateway
from services.gateway import tls
from services.gateway.tls import Tls
from services.judge import engine
from services.judge.model import Model, default, find, resolve
from services.models import machine
from services.models.environment import Models
from services.models.machine import Gpu
from services.stack import ports
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir, Running, boot_id
from services.stack.secrets import Secrets
from services.stack.services_table import SERVICES, Service
from services.stack.settings import Settings
from services.up import model_servers
from services.up.model_servers import EMBEDDING, JUDGE, REWARD_MODEL, ModelServer
from services.up.native import programs
from services.up.native.programs import Inputs, Program, Redis
from services.up.plan import RunningStack
from services.up.services import kind_of

EMBEDDING_SERVER = ROOT / "services/embedding/run_tei_python.py"
CACHES = {
    "XDG_CACHE_HOME": "",
    "VLLM_CACHE_ROOT": "vllm",
    "VLLM_CONFIG_ROOT": "vllm-config",
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}
"""Folder in `RunDir.caches` by variable, for files that vLLM and PyTorch would otherwise write to the user's home."""


class Launcher:
    """Builds the commands of model servers that are installed in MODELS_DIR."""

    def vllm(self, settings: Settings, gpus: Sequence[Gpu]) -> engine.Vllm:
        """Return the vLLM that is installed in the environment of the model servers.

        Raises:
            StackError: vLLM is not installed.
        """
        models = Models(Path(settings["MODELS_DIR"]))
        found = engine.find(models.python)
        if found is None:
            raise StackError(f"{models.venv} has no vLLM", f"remove {models.venv}, then make up again")
        return found

    def model(self, server: ModelServer, settings: Settings, gpus: list[Gpu]) -> Model:
        """Return the model that a judge or the reward model server loads.

        If JUDGE_MODEL is empty, the default judge loads a model that fits this machine.

        Raises:
            StackError: the model is not available.
        """
        models, name = Models(Path(settings["MODELS_DIR"])), model_servers.served_model(server, settings, "")
        if not name:
            return resolve(settings["JUDGE_MODEL"] or default(gpus), models.python, models)
        model = find(name, models.python, models)
        if model is None:
            field, remedy = server.switch, "name a folder"
            if server.judges:
                field, remedy = f"judges.{server.judges[0]}.model", "name a folder, or give the judge a base_url"
            raise StackError(f"{field}: no model hub can be reached, and {name} is not cached", remedy)
        return model

    def serve(
        self, vllm: engine.Vllm, model: Model, listen: Sequence[str], settings: Settings, service: Service
    ) -> list[str]:
        """Return the command of a judge or the reward model. The parameters are those of `engine.command`."""
        return engine.command(vllm, model, listen, settings, service)

    def embedding(self, settings: Settings, port: int, gpus: Sequence[str]) -> list[str]:
        """Return the command of the embedding server, which listens on a loopback port."""
        models = Models(Path(settings["MODELS_DIR"]))
        model = ["--model-id", settings["EMBEDDING_MODEL"]] if settings["EMBEDDING_MODEL"] else []
        return [models.python, str(EMBEDDING_SERVER), *model, "--hostname", "127.0.0.1", "--port", str(port)]


@dataclass(frozen=True)
class Runtime:
    """How programs are run: directly on this machine, or in images.

    Args:
        executables: paths of nginx and redis-server, by name.
        launcher: builds the commands of the model servers.
        wrap: converts a program to one that runs in an image. Without images, it returns the program unchanged.
        backend: the deployment: `native` or `apptainer`, as in the setting STACK.
    """

    executables: Mapping[str, str]
    launcher: Launcher = field(default_factory=Launcher)
    wrap: Callable[[Program], Program] = lambda program: program
    backend: str = "native"


@dataclass(frozen=True)
class Stack:
    """Description of a stack, before any file is written.

    Args:
        programs: programs of the services, in display order.
        watch: program that watches the services.
        configuration: text of configuration files, by file name.
        gateway: text of the gateway's configuration files, by file name.
        secrets: keys and passwords.
        urls: URLs of the services, by the client's environment variable.
        ports: address and port by name; the gateway's ports are first.
        host: host name or address at which this machine reaches the gateway.
        cache: Redis server of the result cache; None if there is no cache.
        backend: the deployment: `native` or `apptainer`, as in the setting STACK.
    """

    programs: Sequence[Program]
    watch: Program
    configuration: Mapping[str, str]
    gateway: Mapping[str, str]
    secrets: Secrets
    urls: Mapping[str, str]
    ports: Mapping[str, tuple[str, int]]
    host: str
    cache: Redis | None = None
    backend: str = "native"

    @property
    def names(self) -> list[str]:
        """Names of the services."""
        return [program.name for program in self.programs]

    def to_running_stack(self, settings: Settings, summarize: Callable[[], None]) -> RunningStack:
        """Return what the final check and the summary of `make up` need.

        Args:
            settings: settings of the stack.
            summarize: prints how to reach the stack.
        """
        addresses = {**self.urls, **({"REWARD_CACHE_URL": self.cache.url} if self.cache else {})}
        judge = next((engine.served_name(program.command) for program in self.programs if program.name == "judge"), "")
        return RunningStack(settings, self.names, addresses, judge, summarize)

    def files(self, run: RunDir) -> dict[str, str]:
        """Return the text of all files except those in `secrets`, by file name."""
        return {**programs.files([*self.programs, self.watch], run), **self.configuration, **self.gateway}

    def to_state(self, session: int) -> Running:
        """Return the state that `make up` saves once this stack runs.

        Args:
            session: session id of supervisord.
        """
        gateway_digest = programs.digest(part for name_and_text in self.gateway.items() for part in name_and_text)
        port_numbers = {name: port for name, (_, port) in self.ports.items()}
        has_tls = "tls.conf" in self.gateway
        names, backend = self.names, self.backend
        return Running(session, boot_id(), gateway_digest, self.host, port_numbers, names, has_tls, backend=backend)


def describe(
    settings: Settings, run: RunDir, runtime: Runtime, chosen: Sequence[ModelServer], running: Running | None
) -> Stack:
    """Return the description of the stack that `make up` would run; change nothing.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        runtime: the machine or images in which programs run.
        chosen: model servers to run.
        running: state of the running stack; None if none runs.

    Raises:
        StackError: there are too few GPUs, a model or the program of its server is missing, or a TLS file is unusable.
    """
    secrets, urls, has_rules = Secrets(run), model_servers.urls(settings, chosen), settings["RULES"] == "on"
    redis_servers = [programs.redis(service, settings, run, secrets) for service in ("cache", "queue") if has_rules]
    inputs = Inputs(settings, run, secrets, urls, redis_servers)
    wanted_ports = _ports(settings, chosen, running)
    backends = [programs.rules(settings, run, inputs)] if has_rules else []
    backends += ModelPrograms(settings, run, inputs, runtime.launcher).describe(chosen, wanted_ports)
    redis_programs = [server.program(settings, runtime.executables, run) for server in redis_servers]
    workers = programs.workers(settings, inputs) if has_rules else []
    nginx = programs.gateway(runtime.executables["nginx"], settings, run)
    listen = {name: settings.listen(port) for name, port in ports.GATEWAY.items()}
    tls_config, paths = _tls(settings, secrets), model_servers.paths(chosen)
    render_gateway = partial(gateway.files, settings=settings, listen=listen, tls=tls_config, paths=paths)
    servers = gateway_upstreams(backends, settings)
    return Stack(
        [runtime.wrap(program) for program in (*redis_programs, *backends, *workers, nginx)],
        programs.watch(settings, run, _discovery(settings, servers, render_gateway)),
        {f"{server.service}.conf": server.configuration for server in redis_servers},
        render_gateway(servers),
        secrets,
        urls,
        wanted_ports,
        settings.local_address,
        next(iter(redis_servers), None),
        runtime.backend,
    )


def _ports(settings: Settings, chosen: Sequence[ModelServer], running: Running | None) -> dict[str, tuple[str, int]]:
    """Return the address and number of each port of the stack, by name.

    If the embedding server runs already, its internal port stays the same.
    """
    wanted = model_servers.wanted_ports(settings, chosen)
    if EMBEDDING in chosen:
        before = running.ports.get(ports.EMBEDDING_BACKEND) if running else None
        wanted[ports.EMBEDDING_BACKEND] = ports.LOOPBACK, before or ports.find_free()
    return wanted


def _tls(settings: Settings, secrets: Secrets) -> Tls | None:
    """Add the TLS files to the secrets, and return the gateway's TLS configuration; None if TLS is off."""
    found = tls.contents(settings)
    for name, text in found.items():
        secrets.add(name, text)
    return Tls(secrets.folder, " ".join(map(secrets.digest, found))) if found else None


def gateway_upstreams(backends: Sequence[Program], settings: Settings) -> dict[str, list[str]]:
    """Return the addresses of each service's servers in nginx syntax. `watch` adds servers on other nodes later.

    Args:
        backends: programs behind the gateway.
        settings: settings of the stack.
    """
    servers: dict[str, list[str]] = {}
    for program in backends:
        servers.setdefault(program.service, []).append(program.server)
    for server in model_servers.discovered_servers(settings):
        servers.setdefault(server.name, [gateway.NO_SERVER])
    if REWARD_MODEL.name in servers:  # clients reach the reward model at the judge's port, so this port must exist
        servers.setdefault(JUDGE.name, [gateway.NO_SERVER])
    return servers


def _discovery(
    settings: Settings,
    servers: Mapping[str, Sequence[str]],
    render_gateway: Callable[[Mapping[str, Sequence[str]]], dict[str, str]],
) -> list[dict[str, Any]]:
    """Return the arguments of `watch.Upstream`, except `run`, for each service with a folder of replicas."""
    found = []
    for server in model_servers.discovered_servers(settings):
        file, folder = gateway.servers_file(server.name, settings), str(ROOT / settings[server.folder_setting])
        text = render_gateway({**servers, server.name: ["${SERVER}"]})[file]
        own = [address for address in servers[server.name] if address != gateway.NO_SERVER]
        found.append({"file": file, "text": text, "own": own, "folder": folder, "variable": server.url_setting})
    return found


class ModelPrograms:
    """Describes the programs of model servers, and assigns GPUs to them.

    Args:
        settings: settings of the stack.
        run: run directory, in which the sockets will be.
        inputs: variables, secrets and versions of the programs.
        launcher: builds the commands of the servers.
    """

    def __init__(self, settings: Settings, run: RunDir, inputs: Inputs, launcher: Launcher) -> None:
        self._settings, self._run, self._inputs, self._launcher = settings, run, inputs, launcher
        self._gpus = machine.gpus()
        self._free = [gpu.name for gpu in self._gpus]

    def describe(self, chosen: Sequence[ModelServer], wanted_ports: Mapping[str, tuple[str, int]]) -> list[Program]:
        """Return the programs of the chosen servers.

        Raises:
            StackError: there are too few GPUs, or a model is not available.
        """
        judges = model_servers.judges(chosen)
        found = self._judges(judges) if judges else []
        if REWARD_MODEL in chosen:
            found.append(self._reward_model())
        if EMBEDDING in chosen:
            found.append(self._embedding(wanted_ports[ports.EMBEDDING_BACKEND][1]))
        return found

    def _judges(self, judges: Sequence[ModelServer]) -> list[Program]:
        counts = [model_servers.replica_count(judge, self._settings) for judge in judges]
        size = self._settings.number("JUDGE_TENSOR_PARALLEL_SIZE")
        shares = iter(machine.split_gpus(self._gpus, sum(counts), size))
        found = []
        for judge, count in zip(judges, counts, strict=True):
            model = self._launcher.model(judge, self._settings, self._gpus)
            for number, share in enumerate(islice(shares, count), start=1):
                found.append(self._vllm(engine.replica_name(number, judge.name), model, share))
        return found

    def _reward_model(self) -> Program:
        """Return the program of the reward model, which gets a GPU if the machine has GPUs."""
        if self._gpus and not self._free:
            raise StackError("no GPU is left for the reward model", "take a smaller JUDGE_REPLICAS, or JUDGE=off")
        model = self._launcher.model(REWARD_MODEL, self._settings, self._gpus)
        return self._vllm(REWARD_MODEL.name, model, self._free[:1])

    def _embedding(self, port: int) -> Program:
        """Return the program of the embedding server, which gets a GPU if one is left."""
        share = self._reserve(self._free[:1])
        hub, keys, versions = self._inputs.model_server(EMBEDDING.name)
        command = self._launcher.embedding(self._settings, port, share)
        environment = {**hub, **_cache_variables(self._run), "CUDA_VISIBLE_DEVICES": ",".join(share)}
        fields = {"environment": environment, "keys": keys, "versions": versions}
        return programs.program(EMBEDDING.name, command, self._settings, server=f"127.0.0.1:{port}", **fields)

    def _vllm(self, name: str, model: Model, share: Sequence[str]) -> Program:
        service, listen = SERVICES[kind_of(name)], f"unix:{self._run.socket(name)}"
        installed = self._installed_vllm
        hub, keys, versions = self._inputs.model_server(service.name)
        sockets = ["--uds", str(self._run.socket(name))]
        command = self._launcher.serve(installed, model, sockets, self._settings, service)
        variables = engine.environment(installed, model, self._reserve(share), self._settings["VLLM_CPU_KVCACHE_SPACE"])
        environment = {**hub, **_cache_variables(self._run), **variables}
        fields = {"environment": environment, "keys": keys, "versions": {**versions, **engine.versions(installed)}}
        return programs.program(name, command, self._settings, server=listen, **fields)

    @cached_property
    def _installed_vllm(self) -> engine.Vllm:
        """The vLLM of all servers. It is cached, because finding it starts an interpreter."""
        return self._launcher.vllm(self._settings, self._gpus)

    def _reserve(self, share: Sequence[str]) -> Sequence[str]:
        """Remove the GPUs in `share` from the free GPUs, and return `share`."""
        self._free = [gpu for gpu in self._free if gpu not in share]
        return share


def _cache_variables(run: RunDir) -> dict[str, str]:
    """Return variables that put the caches and temporary files of model servers in the run directory.

    Models from the hub stay in the user's cache. Compiled code stays in the run directory after `make down`, so that
    the next start is faster.
    """
    caches = {name: str(run.caches / folder) for name, folder in CACHES.items()}
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return {"TMPDIR": str(run.temporary), **caches, "HF_HOME": os.environ.get("HF_HOME") or f"{cache}/huggingface"}
