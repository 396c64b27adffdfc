"""What `apptainer/stack.sh up` does: services out of images, on ports that are free."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from services.stack.rundir import RunDir
from services.stack.settings import Settings
from services.up import model_servers, named_judges
from services.up.apptainer import node
from services.up.apptainer.images import runtime
from services.up.apptainer.place import WAY, default_model, image_of, obstacle, runtime_of
from services.up.apptainer.up import up
from services.up.model_servers import EMBEDDING, ModelServer
from services.up.native.plan import changes
from services.up.native.supervisor import Supervisor
from services.up.plan import Plan, Service, in_gib

SERVICES = ("cache", "gateway", "queue", "rules", "worker")
MODELS_ALONE = ("gateway",)


def plan(settings: Settings, run: RunDir, reason: str) -> Plan:
    """What is done; nothing is changed by asking.

    Args:
        settings: of the stack.
        run: its directory.
        reason: for this way.

    Raises:
        StackError: the directory cannot hold sockets, or Apptainer is not installed or too old.
    """
    node.require_local(run.path)
    runtime()
    last, supervisor = run.recall(), Supervisor(run)
    running = last.services if last and supervisor.states() else []
    left = bool(running or supervisor.members())
    settings = node.with_ports(settings, last if left else None)
    servers = named_judges.servers(settings, default_model(settings))
    choice = model_servers.choose(settings, running, servers, partial(obstacle, servers=servers))
    full = node.with_keys(settings, run)
    names = SERVICES if settings["RULES"] == "on" else MODELS_ALONE
    return Plan(
        way=WAY,
        reason=reason,
        services=[*(_service(settings, name) for name in names), *(_model(one, settings) for one in choice.chosen)],
        running=running,
        ports=model_servers.wanted_ports(settings, choice.chosen),
        held=last.ports.values() if last and left else (),
        left_out=choice.left_out,
        warnings=[*choice.warnings, *outdated(settings, [*names, *(one.name for one in choice.chosen)])],
        carry_out=partial(up, settings, run, choice.chosen),
        changes=partial(changes, full, run, runtime_of(full, run), choice.chosen, last) if last and running else None,
    )


def outdated(settings: Settings, services: Iterable[str]) -> list[str]:
    """What is said of the images of services that were built from something else than they would be now.

    Args:
        settings: of the stack.
        services: their names.
    """
    images = dict.fromkeys(map(image_of, services))
    return [
        f"{image.file(settings)} was built before {' and '.join(changed)} changed, and runs as it is "
        f"(make sif t={image.name} builds it anew)"
        for image in images
        if (changed := image.outdated(settings))
    ]


def _service(settings: Settings, name: str) -> Service:
    copies = settings.number("WORKERS") if name == "worker" else 1
    return Service(name, str(image_of(name).file(settings)), copies)


def _model(server: ModelServer, settings: Settings) -> Service:
    served = settings["EMBEDDING_MODEL"] if server == EMBEDDING else server.model or default_model(settings)
    memory = f"about {in_gib(model_servers.memory(server, settings))}"
    runs = f"{image_of(server.name).file(settings)}, {served}".rstrip(", ")
    return Service(server.name, runs, model_servers.copies(server, settings), memory)
