"""`make up`: from the settings to a table of scored samples."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import time
from functools import partial
from pathlib import Path

from services.native import packages, ports, render
from services.native.console import say, step, tail
from services.native.errors import StackError
from services.native.health import SERVICES
from services.native.launch import FROM_THE_SYSTEM
from services.native.rundir import ROOT, RunDir, Running, boot_id
from services.native.settings import GIVEN_TO, Settings, load
from services.native.supervision import State, Supervision

SAMPLES = ROOT / "examples/samples.jsonl"
TERMINAL = ("COLUMNS", "NO_COLOR", "TERM")
POLL_SECONDS = 0.2
ENDED = ("BACKOFF", "EXITED", "FATAL")


def up() -> None:
    """Start what does not run yet, wait until it is well, and score the shipped samples.

    Raises:
        StackError: a setting is wrong, a port is taken, a service does not come up, or a sample is not scored.
    """
    settings = load(ROOT)
    if settings["STACK"] == "compose":
        raise StackError("STACK=compose is not available yet", "leave STACK empty: the services run as local processes")
    run = RunDir(settings["RUN_DIR"])
    run.make()
    with run.lock():
        programs = packages.require()
        running = _start(settings, run, render.configuration(settings, run, programs))
        with step("waiting until every service is well"):
            wait(run, running, settings.number("UP_TIMEOUT"))
    with step(f"scoring {SAMPLES.relative_to(ROOT)}"):
        score_samples(settings)
    _farewell(settings, run)


def _start(settings: Settings, run: RunDir, files: dict[str, str]) -> Running:
    supervision = Supervision(run)
    given = _for_services(settings, run)
    describe = partial(
        Running,
        boot=boot_id(),
        settings=render.digest({**files, **given}),
        code=render.code_digest(settings),
        host="localhost" if settings.open_to_all else settings["BIND_ADDRESS"],
        ports={name: port for name, (_, port) in ports.wanted(settings).items()},
    )
    alive = bool(supervision.states())
    running = run.recall() if alive or supervision.members() else None
    if alive and running and running.settings == describe(0).settings:
        return _refresh(supervision, run, running, describe(running.session))
    ports.require_free(settings, running)
    if running:
        with step("the settings have changed: stopping" if alive else "ending what a supervisord that was killed left"):
            supervision.stop()
        ports.require_free(settings, None)
    with step("starting cache, rules and gateway under supervisord"):
        render.write(files, run)
        supervision.start({**_from_environment(*FROM_THE_SYSTEM), **given}, describe)
    return describe(0)


def _refresh(supervision: Supervision, run: RunDir, running: Running, wanted: Running) -> Running:
    supervision.start_stopped()
    if running.code == wanted.code:
        say("==> the services run already, with these settings")
        return running
    with step("the code or a file of the reward server has changed: restarting it"):
        supervision.restart("rules")
        run.remember(wanted)
    return wanted


def _from_environment(*names: str) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


def _for_services(settings: Settings, run: RunDir) -> dict[str, str]:
    derived = {
        **settings,
        "PROMETHEUS_MULTIPROC_DIR": str(run.path / "tmp/metrics"),
        "REWARD_CACHE_URL": settings.cache_url,
        "REWARD_SOCKET": str(run.rules_socket),
    }
    given = {name: derived[name] for names in GIVEN_TO.values() for name in names}
    return {**given, "RUN_DIR": settings["RUN_DIR"]}


def wait(run: RunDir, running: Running, seconds: float) -> None:
    """Wait until every service is well; names each as it becomes so.

    Raises:
        StackError: one ended, or time ran out; its last log lines are printed first.
    """
    supervision, start = Supervision(run), time.monotonic()
    first: dict[str, int] = {}
    waiting = {service.name: service for service in SERVICES}
    while waiting:
        ended = [state.name for state in supervision.states() if _ended(state, first)]
        late = time.monotonic() - start > seconds
        for name, service in list(waiting.items()):
            problem = service.probe(run, running)
            if name in ended or (problem and late):
                why = (
                    "it ends while it is starting" if name in ended else f"not well after {seconds:.0f} s (UP_TIMEOUT)"
                )
                say(f"--- last lines of {run.log(name)}\n{tail(run.log(name))}\n---")
                raise StackError(f"{name}: {why}: {problem}", f"{service.remedy}; then make up again")
            if not problem:
                say(f"    {name} is well after {time.monotonic() - start:.1f} s")
                del waiting[name]
        time.sleep(POLL_SECONDS if waiting else 0)


def _ended(state: State, first: dict[str, int]) -> bool:
    """Whether a service ended since it was first seen; supervisord may have started it again by now."""
    seen = first[state.name] = first.get(state.name) or state.pid
    return state.state in ENDED or state.pid != seen


def score_samples(settings: Settings) -> None:
    """Score the shipped samples with the command line, as a user would.

    Raises:
        StackError: a sample has a status other than `ok`.
    """
    key = settings["REWARD_SERVER_API_KEYS"].split(",")[0].strip()
    environment = {
        **_from_environment(*FROM_THE_SYSTEM, *TERMINAL),
        "REWARD_SERVER_URL": settings.url,
        "REWARD_SERVER_API_KEY": key,
    }
    command = [str(Path(sysconfig.get_path("scripts")) / "rewardstack"), "score", str(SAMPLES), "--table"]
    try:
        done = subprocess.run(command, env=environment, timeout=settings.number("UP_TIMEOUT"), check=False)
    except subprocess.TimeoutExpired:
        raise StackError(f"the samples are not scored after {settings['UP_TIMEOUT']} s", "make logs") from None
    if done.returncode != 0:
        raise StackError("not every sample has the status ok", "see the table, and make logs s=rules")


def _farewell(settings: Settings, run: RunDir) -> None:
    say("\nThe stack is up. For trainers and the command line:\n")
    say(f"  export REWARD_SERVER_URL={settings.url}")
    if settings["REWARD_SERVER_API_KEYS"]:
        say("  export REWARD_SERVER_API_KEY=...    # one of REWARD_SERVER_API_KEYS")
    say(f'  export PATH="{sysconfig.get_path("scripts")}:$PATH"')
    say(f"\nLogs are in {run.logs} (make logs), health: make status, stop: make down")
    if settings.gateway_host not in ("127.0.0.1", "[::1]") and not settings["REWARD_SERVER_API_KEYS"]:
        say("warning: REWARD_SERVER_API_KEYS is empty: whoever reaches BIND_ADDRESS may score")
