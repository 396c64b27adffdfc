"""What `make up` does where the services are local processes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from services.embedding.tei_python.model_source import CARRIED, ON_GPU
from services.judge import model
from services.models import environment, machine
from services.models.environment import Models
from services.stack import packages, ports
from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up import model_servers, named_judges
from services.up.model_servers import EMBEDDING, ModelServer
from services.up.native.supervision import Supervision
from services.up.native.up import up
from services.up.plan import Plan, Service, in_gib

NO_MONITORING = "Prometheus and Grafana run in containers only"


def plan(settings: Settings, run: RunDir, reason: str) -> Plan:
    """What `make up` does; nothing is changed by asking.

    Args:
        settings: of the stack.
        run: its directory.
        reason: for local processes.
    """
    last, supervision = run.recall(), Supervision(run)
    running = last.services if last and supervision.states() else []
    left = bool(running or supervision.members())
    default = settings["JUDGE_MODEL"] or model.default(machine.gpus())
    choice = model_servers.choose(settings, running, named_judges.servers(settings, default))
    return Plan(
        way="native",
        reason=reason,
        services=[*_services(settings), *(_model_service(server, settings) for server in choice.chosen)],
        running=running,
        ports=ports.wanted(settings, ["REWARD_PORT", *(server.port for server in choice.chosen)]),
        held=last.ports.values() if last and left else (),
        left_out={**choice.left_out, **({"monitoring": NO_MONITORING} if settings["MONITORING"] == "on" else {})},
        carry_out=partial(up, settings, run, choice.chosen),
    )


def _services(settings: Settings) -> list[Service]:
    found = packages.find()
    nginx, redis = (found.get(name) or f"{name}, which is not installed yet" for name in ("nginx", "redis-server"))
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
        program, served = "run_tei_python.py", settings["EMBEDDING_MODEL"] or (ON_GPU if gpus else CARRIED)
    else:
        program, served = "vLLM", server.model or settings["JUDGE_MODEL"] or model.default(gpus)
    where = f" of {models.venv}" if environment.ready(models) else f", to be installed in {models.venv}"
    memory = f"about {in_gib(model_servers.memory(server, settings))}"
    return Service(server.name, f"{program}{where}, {served}", model_servers.copies(server, settings), memory)
