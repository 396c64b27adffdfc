"""`make up` with local processes: make the plan and apply it.

`describe` (stack.py) decides what runs, without changing anything. This module writes the files and secrets of the
stack, starts or updates supervisord (supervisor.py), and waits until every service is healthy (health.py). Afterwards,
supervisord and `watch` keep the services running.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from services.embedding.tei_python.settings import GPU_MODEL, PYPI_MODEL
from services.judge import model
from services.models import environment, machine
from services.models.environment import Models
from services.stack import packages, processes, template
from services.stack.console import done, first_error, say, step, tail
from services.stack.errors import StackError
from services.stack.processes import SYSTEM_VARIABLES, from_environment
from services.stack.rundir import ROOT, RunDir, Running
from services.stack.services_table import SERVICES
from services.stack.settings import Settings
from services.up import model_servers, named_judges, summary
from services.up.model_servers import EMBEDDING, ModelServer
from services.up.native import health
from services.up.native.programs import Program
from services.up.native.stack import Runtime, Stack, describe
from services.up.native.supervisor import State, Supervisor
from services.up.plan import Plan, RunningStack, Service, in_gib
from services.up.services import TAKEN, kind_of, remedy, service_of

NO_MONITORING = "Prometheus and Grafana run in containers only"
FUNCTIONS_SECONDS = 10.0
"""Timeout of `require_functions` in seconds. If loading the reward functions takes longer, they are checked only when
the reward server starts."""
POLL_SECONDS = 0.2
SAY_SECONDS = 30.0
ENDED = ("BACKOFF", "EXITED", "FATAL")


class StartupTimeout(StackError):
    """Raised if a service exits or does not become healthy in time, or if its port is taken.

    Args:
        service: name of the service.
        reason: reason why the service is not healthy.
        healthy: names of the services that have been healthy since they were started.
    """

    def __init__(self, service: str, reason: str, healthy: Collection[str]) -> None:
        super().__init__(f"{service}: {reason}", f"{remedy(service, reason)}; then make up again")
        self.service, self.healthy = service, healthy


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


def up(settings: Settings, run: RunDir, chosen: Sequence[ModelServer]) -> RunningStack:
    """Install programs, start services that do not run yet, and wait until they are healthy.

    Raises:
        StackError: a program cannot be installed, or a service does not become healthy.
    """
    runtime, chosen = Runtime(packages.require()), model_servers.install(chosen, settings)
    stack = start(settings, run, runtime, chosen)
    cache = stack.cache.published if stack.cache else ""
    return stack.to_running_stack(settings, partial(summary.print_summary, settings, stack.urls, str(run.logs), cache))


def start(settings: Settings, run: RunDir, runtime: Runtime, chosen: Sequence[ModelServer]) -> Stack:
    """Start the stack with installed programs, wait until it is healthy, and return its description.

    An optional model server that does not become healthy is left out.

    Raises:
        StackError: a service does not become healthy.
    """
    supervisor = Supervisor(run)
    if not supervisor.states() and supervisor.members():
        with step("ending processes of a killed supervisord", "processes of a killed supervisord ended"):
            supervisor.stop()
    while True:
        stack, logged = describe(settings, run, runtime, chosen, run.load()), run.log_sizes()
        require_functions(settings, stack.programs)
        apply(supervisor, run, stack, from_environment(*SYSTEM_VARIABLES))
        try:
            Startup(run, settings, logged).wait()
            break
        except StartupTimeout as error:
            chosen = _drop_server(error, chosen, settings, supervisor)
    return stack


def require_functions(settings: Settings, services: Sequence[Program]) -> None:
    """Check that the user's reward functions can be loaded, before a running reward server is restarted.

    Args:
        settings: settings of the stack.
        services: programs to run.

    Raises:
        StackError: the functions cannot be loaded; the message says why.
    """
    files = settings.files("REWARD_FUNCTIONS")
    if not files:
        return
    rules = next(service for service in services if service.name == "rules")
    with subprocess.Popen(
        [*rules.prefix, rules.command[0], "-m", "rewardstack_rules.functions.catalog", *map(str, files)],
        env={**from_environment(*SYSTEM_VARIABLES), **rules.environment},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            _, printed = process.communicate(timeout=FUNCTIONS_SECONDS)
        except subprocess.TimeoutExpired:
            return
        finally:
            # Also end the children of the check, and the process that runs the image.
            processes.end(lambda: processes.members(process.pid))
    if process.returncode != 0:
        why = (printed.strip().splitlines() or ["it printed nothing"])[-1]
        raise StackError(f"REWARD_FUNCTIONS: {why.removeprefix('REWARD_FUNCTIONS: ')}")


def apply(supervisor: Supervisor, run: RunDir, stack: Stack, environment: Mapping[str, str]) -> None:
    """Write the files of a stack, and start it or apply the changes to the running stack.

    Args:
        supervisor: supervisord of the run directory.
        run: run directory of the stack.
        stack: description of the stack.
        environment: environment of supervisord, if it must be started.
    """
    running = run.load() if supervisor.states() else None
    why = {program.name: program.changes(run) for program in (*stack.programs, stack.watch)}
    stack.secrets.write()
    template.write(stack.files(run), run.path)
    if running:
        _update(supervisor, run, stack.to_state(running.session), running, why)
        return
    with step(f"starting {', '.join(stack.names)}", f"{', '.join(stack.names)} started"):
        supervisor.start(environment, stack.to_state)


def _update(supervisor: Supervisor, run: RunDir, wanted: Running, running: Running, why: Mapping[str, str]) -> None:
    added, changed, removed = supervisor.reread()
    # Save first, so that restarted services do not count as healthy even if the update is interrupted.
    healthy = {*running.healthy} - {*added, *changed, *removed}
    run.save(replace(running, healthy=sorted(healthy)))
    if wanted.gateway != running.gateway:
        with step("reloading the gateway", "gateway reloaded"):
            supervisor.reload_gateway()
    for name in removed:
        with step(f"stopping {name}", f"{name} stopped"):
            supervisor.remove(name, running.healthy)
    for name in changed:
        with step(f"restarting {name} (changed: {why.get(name, 'its supervisord options')})"):
            supervisor.remove(name, running.healthy)
            supervisor.add(name)
    for name in added:
        say(f"starting {name}")
        supervisor.add(name)
    started = {*added, *changed, *supervisor.start_stopped()}
    run.save(replace(wanted, healthy=sorted(healthy - started)))
    if not started and wanted == replace(running, healthy=[]):
        say("the services already run with these settings")


@dataclass
class Startup:
    """Waits until services are healthy.

    Args:
        run: run directory of the stack.
        settings: settings of the stack.
        logged: size of each log in bytes before the start, by file name; only text after it is searched for errors.
    """

    run: RunDir
    settings: Settings
    logged: Mapping[str, int] = field(default_factory=dict)
    _start: float = field(default_factory=time.monotonic)
    _first: dict[str, int] = field(default_factory=dict)

    def wait(self) -> None:
        """Wait until every service is healthy, and print a line for each service.

        Raises:
            StartupTimeout: a service exited or took too long, or its port is taken.
        """
        supervisor, running = Supervisor(self.run), self.run.load()
        waiting, printed = list(running.services if running else ()), 0.0
        while running and waiting:
            states = {state.name: state for state in supervisor.states()}
            ended = {state.name for state in states.values() if self._ended(state)}
            for name in list(waiting):
                if conflict := health.port_conflict(name, self.run, running):
                    raise StartupTimeout(name, conflict, running.healthy)
                problem = health.problem(name, self.run, running)
                problem = problem or states.get(name, State(name, "UNKNOWN", 0, 0)).problem
                if why := self._failed(name, name in ended, problem):
                    raise StartupTimeout(name, f"{why}: {self._cause(name) or problem}", running.healthy)
                if not problem:
                    done(f"{name} healthy", self._elapsed)
                    waiting.remove(name)
                    if name not in running.healthy:
                        running.healthy.append(name)
                        self.run.save(running)
            if waiting and self._elapsed - printed > SAY_SECONDS:
                printed = self._elapsed
                say(f"  {', '.join(waiting)}: still starting after {printed:.0f} s (make logs s={waiting[0]})")
            time.sleep(POLL_SECONDS if waiting else 0)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _failed(self, name: str, ended: bool, problem: str) -> str:
        if ended:
            return "exited during startup"
        limit = SERVICES[kind_of(name)].startup_timeout
        is_late = problem and self._elapsed > self.settings.number(limit)
        return f"not healthy after {self.settings[limit]} s ({limit})" if is_late else ""

    def _cause(self, name: str) -> str:
        """Print the last log lines of a service, and return its first error."""
        log = self.run.log(name)
        say(f"--- last lines of {log}\n{tail(log)}\n---")
        return first_error(log, self.logged.get(log.name, 0))

    def _ended(self, state: State) -> bool:
        """Return whether a service has exited since it was first seen, even if supervisord has restarted it."""
        seen = self._first[state.name] = self._first.get(state.name) or state.pid
        return state.state in ENDED or state.pid != seen


def _drop_server(
    error: StartupTimeout, chosen: Sequence[ModelServer], settings: Settings, supervisor: Supervisor
) -> list[ModelServer]:
    """Stop an optional model server that did not become healthy, and return the other model servers.

    Raises:
        StartupTimeout: the stack needs this service, or the service was healthy before. If another process has the
            service's port, the whole stack is stopped first, because workers would send that process samples and keys.
    """
    service = service_of(error.service)
    left = model_servers.exclude(chosen, service)
    dropped = [server for server in chosen if server not in left]
    is_needed = not dropped or any(model_servers.is_required(server, settings) for server in dropped)
    # Do not stop a service that was healthy before, because supervisord keeps restarting it.
    if error.service not in error.healthy:
        for state in supervisor.states():
            if service_of(state.name) == service and state.name not in error.healthy:
                supervisor.halt(state.name)
    if is_needed or error.service in error.healthy:
        if TAKEN in error.problem:
            with step("stopping the services, which would send keys and prompts to that port"):
                supervisor.stop()
        raise error
    say(f"no {error}")
    return left
