"""The programs of the model servers: vLLM's replicas behind Unix sockets, and the embedding server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from services.judge import engine
from services.judge.model import Model, default, find, resolve
from services.models import machine
from services.models.environment import Models
from services.models.machine import Gpu
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.service_env import of_model_servers
from services.stack.settings import Settings
from services.up import model_servers
from services.up.model_servers import EMBEDDING, ModelServer
from services.up.native.programs import Inputs, Program, program

EMBEDDING_SERVER = ROOT / "services/embedding/run_tei_python.py"


class Launcher:
    """How model servers are started: from the environment in MODELS_DIR."""

    def vllm(self, settings: Settings, gpus: Sequence[Gpu]) -> engine.Vllm:
        """Return the vLLM that judges run.

        Raises:
            StackError: there is none.
        """
        models = Models(Path(settings["MODELS_DIR"]))
        found = engine.find(models.python)
        if found is None:
            raise StackError(f"{models.venv} has no vLLM", f"remove {models.venv}, then make up again")
        return found

    def model(self, judge: ModelServer, settings: Settings, gpus: list[Gpu]) -> Model:
        """Return the model of a judge; no other model replaces that of a named judge.

        Raises:
            StackError: it is not available.
        """
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

    def judge(self, vllm: engine.Vllm, model: Model, listen: Sequence[str], settings: Settings) -> list[str]:
        """Return the command of a judge; arguments as those of `engine.command`."""
        return engine.command(vllm, model, listen, settings)

    def embedding(self, settings: Settings, port: int, gpus: Sequence[str]) -> list[str]:
        """Return the command of the embedding server, which listens on a port of loopback and has these GPUs."""
        models = Models(Path(settings["MODELS_DIR"]))
        model = ["--model-id", settings["EMBEDDING_MODEL"]] if settings["EMBEDDING_MODEL"] else []
        return [models.python, str(EMBEDDING_SERVER), *model, "--hostname", "127.0.0.1", "--port", str(port)]


INSTALLED = Launcher()


def programs(
    settings: Settings,
    run: RunDir,
    chosen: Sequence[ModelServer],
    backend_port: int,
    inputs: Inputs,
    launcher: Launcher = INSTALLED,
) -> list[Program]:
    """Return the programs of the chosen servers.

    Args:
        run: where their sockets will be.
        chosen: servers.
        backend_port: the embedding server's own port.
        inputs: variables, secrets and versions.
        launcher: says how they are started.

    Raises:
        StackError: there are too few GPUs, or a model is not available.
    """
    gpus = machine.gpus()
    judges = model_servers.judges(chosen)
    made = _judges(judges, settings, run, gpus, inputs, launcher) if judges else []
    if EMBEDDING in chosen:
        taken = {name for one in made for name in one.environment.get("CUDA_VISIBLE_DEVICES", "").split(",")}
        left = [gpu.name for gpu in gpus if gpu.name not in taken][:1]
        hub, keys, versions = inputs.model_server("embedding")
        environment = {**hub, **of_model_servers(run), "CUDA_VISIBLE_DEVICES": ",".join(left)}
        started = launcher.embedding(settings, backend_port, left)
        fields = {"environment": environment, "keys": keys, "versions": versions}
        made.append(program("embedding", started, settings, server=f"127.0.0.1:{backend_port}", **fields))
    return made


def _judges(
    judges: Sequence[ModelServer],
    settings: Settings,
    run: RunDir,
    gpus: list[Gpu],
    inputs: Inputs,
    launcher: Launcher,
) -> list[Program]:
    """The replicas of each judge, all of which share the machine's GPUs."""
    found = launcher.vllm(settings, gpus)
    copies = [model_servers.copies(judge, settings) for judge in judges]
    shares = iter(machine.shares(gpus, sum(copies), settings.number("JUDGE_TENSOR_PARALLEL_SIZE")))
    hub, keys, versions = inputs.model_server("judge")
    made = []
    for judge, count in zip(judges, copies, strict=True):
        model = launcher.model(judge, settings, gpus)
        for number, share in enumerate(islice(shares, count), start=1):
            name = engine.replica_name(number, judge.name)
            started = launcher.judge(found, model, ["--uds", str(run.socket(name))], settings)
            own = engine.environment(found, model, share, settings["VLLM_CPU_KVCACHE_SPACE"])
            environment, read = {**hub, **of_model_servers(run), **own}, {**versions, **engine.versions(found)}
            fields = {"environment": environment, "keys": keys, "versions": read}
            made.append(program(name, started, settings, server=f"unix:{run.socket(name)}", **fields))
    return made
