"""Describe the programs of the model servers. vLLM servers listen on Unix sockets, the embedding server on a port."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

from services.judge import engine
from services.judge.model import Model, default, find, resolve
from services.models import machine
from services.models.environment import Models
from services.models.machine import Gpu
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir
from services.stack.service_env import model_server_variables
from services.stack.services_table import SERVICES, Service
from services.stack.settings import Settings
from services.up import model_servers
from services.up.model_servers import EMBEDDING, REWARD_MODEL, ModelServer
from services.up.native.programs import Inputs, Program, program
from services.up.services import kind_of

EMBEDDING_SERVER = ROOT / "services/embedding/run_tei_python.py"


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
        """Return the model of a judge or the reward model. Only the default judge has a fallback model.

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
            raise StackError(f"{field}: no model hub can be reached and {name} is not in its cache", remedy)
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

    def describe(self, chosen: Sequence[ModelServer], embedding_port: int) -> list[Program]:
        """Return the programs of the chosen servers.

        Raises:
            StackError: there are too few GPUs, or a model is not available.
        """
        judges = model_servers.judges(chosen)
        found = self._judges(judges) if judges else []
        if REWARD_MODEL in chosen:
            found.append(self._reward_model())
        if EMBEDDING in chosen:
            found.append(self._embedding(embedding_port))
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
        environment = {**hub, **model_server_variables(self._run), "CUDA_VISIBLE_DEVICES": ",".join(share)}
        fields = {"environment": environment, "keys": keys, "versions": versions}
        return program(EMBEDDING.name, command, self._settings, server=f"127.0.0.1:{port}", **fields)

    def _vllm(self, name: str, model: Model, share: Sequence[str]) -> Program:
        service, listen = SERVICES[kind_of(name)], f"unix:{self._run.socket(name)}"
        installed = self._installed_vllm
        hub, keys, versions = self._inputs.model_server(service.name)
        sockets = ["--uds", str(self._run.socket(name))]
        command = self._launcher.serve(installed, model, sockets, self._settings, service)
        variables = engine.environment(installed, model, self._reserve(share), self._settings["VLLM_CPU_KVCACHE_SPACE"])
        environment = {**hub, **model_server_variables(self._run), **variables}
        fields = {"environment": environment, "keys": keys, "versions": {**versions, **engine.versions(installed)}}
        return program(name, command, self._settings, server=listen, **fields)

    @cached_property
    def _installed_vllm(self) -> engine.Vllm:
        """The vLLM of all servers. It is cached, because finding it starts an interpreter."""
        return self._launcher.vllm(self._settings, self._gpus)

    def _reserve(self, share: Sequence[str]) -> Sequence[str]:
        """Remove these GPUs from the free ones, and return them."""
        self._free = [gpu for gpu in self._free if gpu not in share]
        return share
