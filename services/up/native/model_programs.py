"""The programs of the model servers: vLLM's replicas behind Unix sockets, and the embedding server."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from services.judge import engine
from services.judge.model import Model, default, find, resolve
from services.models import machine
from services.models.environment import Models
from services.models.machine import Gpu
from services.stack import ports
from services.stack.errors import StackError
from services.stack.given import of_model_servers
from services.stack.rundir import ROOT, RunDir, Running
from services.stack.settings import Settings
from services.up import model_servers
from services.up.model_servers import EMBEDDING, ModelServer
from services.up.native.environments import Environments
from services.up.native.programs import Program

PRIORITY = 20
START_SECONDS = 5
STOP_SECONDS = 30
EMBEDDING_SERVER = ROOT / "services/embedding/run_tei_python.py"


class Launcher(Protocol):
    """How model servers are started: as they are installed here, or out of images."""

    def vllm(self, settings: Settings, gpus: Sequence[Gpu]) -> engine.Vllm:
        """The vLLM that judges run.

        Raises:
            StackError: there is none.
        """

    def model(self, judge: ModelServer, settings: Settings, gpus: list[Gpu]) -> Model:
        """The model of a judge.

        Raises:
            StackError: it cannot be had.
        """

    def judge(self, vllm: engine.Vllm, model: Model, listen: Sequence[str], options: engine.Options) -> list[str]:
        """The command of a judge; arguments as those of `engine.command`."""

    def embedding(self, settings: Settings, port: int, gpus: Sequence[str]) -> list[str]:
        """The command of the embedding server, which listens on a port of loopback and has these GPUs."""


class Installed:
    """Model servers of the environment in MODELS_DIR."""

    def vllm(self, settings: Settings, gpus: Sequence[Gpu]) -> engine.Vllm:
        """As the protocol says."""
        models = Models(Path(settings["MODELS_DIR"]))
        found = engine.find(models.python)
        if found is None:
            raise StackError(f"{models.venv} has no vLLM", f"remove {models.venv}, then make up again")
        return found

    def model(self, judge: ModelServer, settings: Settings, gpus: list[Gpu]) -> Model:
        """The model of a judge; a named one is asked for its own, for which no other stands in."""
        models = Models(Path(settings["MODELS_DIR"]))
        if not judge.model:
            return resolve(settings["JUDGE_MODEL"] or default(gpus), models.python, models)
        model = find(judge.model, models.python, models)
        if model is None:
            raise StackError(
                f"judges.{judge.judges[0]}.model: no model hub can be reached and {judge.model} is not in its cache",
                "name a folder, or give the judge a base_url",
            )
        return model

    def judge(self, vllm: engine.Vllm, model: Model, listen: Sequence[str], options: engine.Options) -> list[str]:
        """As the protocol says."""
        return engine.command(vllm, model, listen, options)

    def embedding(self, settings: Settings, port: int, gpus: Sequence[str]) -> list[str]:
        """As the protocol says."""
        models = Models(Path(settings["MODELS_DIR"]))
        model = ["--model-id", settings["EMBEDDING_MODEL"]] if settings["EMBEDDING_MODEL"] else []
        listen = ["--hostname", "127.0.0.1", "--port", str(port)]
        return [models.python, str(EMBEDDING_SERVER), *model, *listen]


INSTALLED = Installed()


def programs(
    settings: Settings,
    run: RunDir,
    chosen: Sequence[ModelServer],
    backend: int,
    given: Environments,
    launcher: Launcher = INSTALLED,
) -> list[Program]:
    """The programs of the chosen servers.

    Args:
        settings: of the stack.
        run: where their sockets will be.
        chosen: servers.
        backend: the embedding server's own port.
        given: variables, secrets and versions.
        launcher: says how they are started.

    Raises:
        StackError: there are too few GPUs, or a model cannot be had.
    """
    gpus = machine.gpus()
    judges = model_servers.judges(chosen)
    made = _judges(judges, settings, run, gpus, given, launcher) if judges else []
    if EMBEDDING in chosen:
        taken = {name for program in made for name in program.environment.get("CUDA_VISIBLE_DEVICES", "").split(",")}
        left = [gpu.name for gpu in gpus if gpu.name not in taken]
        made.append(_embedding(settings, run, backend, left[:1], given, launcher))
    return made


def _judges(
    judges: Sequence[ModelServer],
    settings: Settings,
    run: RunDir,
    gpus: list[Gpu],
    given: Environments,
    launcher: Launcher,
) -> list[Program]:
    """The replicas of each judge, all of which share the machine's GPUs."""
    found = launcher.vllm(settings, gpus)
    options = engine.Options(
        dtype=settings["JUDGE_DTYPE"],
        max_model_len=settings["JUDGE_MAX_MODEL_LEN"],
        gpu_memory_utilization=settings["JUDGE_GPU_MEMORY_UTILIZATION"],
        tensor_parallel_size=settings.number("JUDGE_TENSOR_PARALLEL_SIZE"),
        further=tuple(shlex.split(settings["JUDGE_VLLM_ARGS"])),
    )
    copies = [model_servers.copies(judge, settings) for judge in judges]
    shares = iter(machine.shares(gpus, sum(copies), options.tensor_parallel_size))
    hub, keys, versions = given.model_server("judge")
    made = []
    for judge, count in zip(judges, copies, strict=True):
        model = launcher.model(judge, settings, gpus)
        for number, share in enumerate(islice(shares, count), start=1):
            name = engine.replica_name(number, judge.name)
            command = launcher.judge(found, model, ["--uds", str(run.socket(name))], options)
            own = engine.environment(found, model, share, settings["VLLM_CPU_KVCACHE_SPACE"])
            made.append(replica(name, command, run, {**hub, **of_model_servers(run), **own}, keys, versions))
    return made


def replica(
    name: str,
    command: Sequence[str],
    run: RunDir,
    environment: Mapping[str, str],
    keys: Mapping[str, Path],
    versions: Mapping[str, str],
) -> Program:
    """A replica of the judge, which listens on the socket of its name."""
    return Program(
        name,
        command,
        PRIORITY,
        server=f"unix:{run.socket(name)}",
        start_seconds=START_SECONDS,
        stop_seconds=STOP_SECONDS,
        environment=environment,
        keys=keys,
        versions=versions,
    )


def _embedding(
    settings: Settings, run: RunDir, port: int, gpus: list[str], given: Environments, launcher: Launcher
) -> Program:
    hub, keys, versions = given.model_server("embedding")
    return Program(
        "embedding",
        launcher.embedding(settings, port, gpus),
        PRIORITY,
        server=f"127.0.0.1:{port}",
        start_seconds=START_SECONDS,
        stop_seconds=STOP_SECONDS,
        environment={**hub, **of_model_servers(run), "CUDA_VISIBLE_DEVICES": ",".join(gpus)},
        keys=keys,
        versions=versions,
    )


def backend_port(running: Running | None) -> int:
    """The port behind the gateway: the one that runs keeps its own."""
    return (running.ports.get(ports.EMBEDDING_BACKEND) if running else None) or ports.free()
