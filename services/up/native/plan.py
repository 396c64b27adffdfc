"""Make the plan of `make up` for local processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from services.embedding.tei_python.settings import GPU_MODEL, PYPI_MODEL
from services.judge import model
from services.models import environment, machine
from services.models.environment import Models
from services.stack import packages
from services.stack.rundir import RunDir, Running
from services.stack.settings import Settings
from services.up import model_servers, named_judges
from services.up.model_servers import EMBEDDING, ModelServer
from services.up.native.stack import Runtime, describe
from services.up.native.supervisor import Supervisor
from services.up.native.up import up
from services.up.plan import Plan, Service, in_gib
from services.up.services import service_of

NO_MONITORING = "Prometheus and Grafana run in containers only"


def plan(settings: Settings, run: RunDir, reason: str) -> Plan:
    """Return the plan of `make up` without changing anything.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        reason: reason for this deployment.
    """
    last, supervisor = run.load(), Supervisor(run)
    running = last.services if last and supervisor.states() else []
    has_processes = bool(running or supervisor.members())
    default = settings["JUDGE_MODEL"] or model.default(machine.gpus())
    choice = model_servers.choose(settings, running, named_judges.servers(settings, default))
    is_ready = not choice.chosen or environment.is_ready(Models(Path(settings["MODELS_DIR"])))
    return Plan(
        backend="native",
        reason=reason,
        services=[*_services(settings), *(_model_service(server, settings) for server in choice.chosen)],
        running=running,
        ports=model_servers.wanted_ports(settings, choice.chosen),
        held=last.ports.values() if last and has_processes else (),
        left_out={**choice.left_out, **({"monitoring": NO_MONITORING} if settings["MONITORING"] == "on" else {})},
        warnings=choice.warnings,
        apply=partial(up, settings, run, choice.chosen),
        changes=partial(changes, settings, run, Runtime(packages.find()), choice.chosen, last)
        if last and running and is_ready
        else None,
    )


def changes(
    settings: Settings, run: RunDir, runtime: Runtime, chosen: Sequence[ModelServer], last: Running
) -> list[str]:
    """Return a line for each change that `make up` would make to the running stack, and a warning if memory is short.

    Args:
        settings: settings of the stack.
        run: run directory of the stack.
        runtime: the machine or images in which programs run.
        chosen: model servers to run.
        last: state of the running stack.

    Raises:
        StackError: `make up` would fail.
    """
    stack = describe(settings, run, runtime, chosen, last)
    lines = [f"stopping {name}" for name in last.services if name not in stack.names]
    for program in stack.programs:
        if program.name not in last.services:
            lines.append(f"starting {program.name}")
        elif program.has_changed(run):
            lines.append(f"restarting {program.name} (changed: {program.changes(run)})")
    if stack.to_state(last.session).gateway != last.gateway:
        lines.append("the gateway loads its new configuration")
    need = sum(_memory(stack.names, chosen)) - sum(_memory(last.services, chosen))
    if need > machine.free_memory():
        free = in_gib(machine.free_memory())
        lines.append(f"warning: the new services need {in_gib(need)} of memory, and {free} are free")
    return lines


def _memory(names: Iterable[str], chosen: Sequence[ModelServer]) -> Iterator[int]:
    """Yield the memory of each model server replica among these services, in bytes."""
    return (server.memory for name in names for server in chosen if service_of(name) == server.name)


def _services(settings: Settings) -> list[Service]:
    found = packages.find()
    nginx, redis = (found.get(name) or f"{name}, which is not installed yet" for name in ("nginx", "redis-server"))
    if settings["RULES"] == "off":
        return [Service("gateway", nginx)]
    return [
        Service("cache", redis, memory=f"up to {settings['CACHE_MAX_MEMORY']}"),
        Service("gateway", nginx),
        Service("queue", redis, memory=f"up to {settings['QUEUE_MAX_MEMORY']}"),
        Service("rules", f"gunicorn, {settings['REWARD_WORKERS']} server processes"),
        Service("worker", "rewardstack_rules.jobs.worker", settings.number("WORKERS")),
    ]


def _model_service(server: ModelServer, settings: Settings) -> Service:
    models, gpus = Models(Path(settings["MODELS_DIR"])), machine.gpus()
    if server == EMBEDDING:
        program, served = "run_tei_python.py", settings["EMBEDDING_MODEL"] or (GPU_MODEL if gpus else PYPI_MODEL)
    else:
        default = settings["JUDGE_MODEL"] or model.default(gpus)
        program, served = "vLLM", model_servers.served_model(server, settings, default)
    location = f" of {models.venv}" if environment.is_ready(models) else f", to be installed in {models.venv}"
    memory = f"about {in_gib(model_servers.memory(server, settings))}"
    return Service(server.name, f"{program}{location}, {served}", model_servers.replica_count(server, settings), memory)
