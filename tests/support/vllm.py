"""Run a real vLLM on the CPU with the small demo model.

A start takes half a minute, so the tests of a run share one server, the fixture `vllm`.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from rewardstack_rules.isolation.process import die_with_parent
from services.judge import engine
from services.judge.model import SMALL, Model
from services.models.environment import Models
from services.stack import settings
from services.stack.rundir import ROOT
from tests.support.servers import free_port

START_SECONDS = 240
DTYPE = "float32"
"""In bfloat16, results depend on the batch on CPUs with AMX."""
CACHE_GIB = "1"
"""Size of the KV cache; with it, a server takes about 3 GiB of memory."""


def make_reward_models(folder: Path) -> Path:
    """Write the tiny reward models of `tests/reward_model_vllm` into a folder; return it."""
    here, script = models(), ROOT / "tests/reward_model_vllm/tiny_models.py"
    subprocess.run([here.python, str(script), str(here.small_judge), str(folder)], check=True, capture_output=True)
    return folder


class VllmServer:
    """A vLLM server in its own process group.

    Args:
        model: model to serve.
        log: file for its output.
        flags: additional flags of vLLM.
        environment: additional environment variables.
    """

    def __init__(self, model: Model, log: Path, *flags: str, **environment: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.model = model
        self._log = log
        found = engine.find(models().python)
        assert found is not None, "models() has a vLLM"
        listen = ["--host", "127.0.0.1", "--port", str(port)]
        own = settings.load(ROOT, {"JUDGE_DTYPE": DTYPE, "JUDGE_VLLM_ARGS": shlex.join(flags)})
        command = engine.command(found, model, listen, own)
        variables = {**os.environ, **engine.environment(found, model, [], CACHE_GIB), **environment}
        beside = str(Path(found.python).parent)
        variables["PATH"] = os.pathsep.join([beside, variables.get("PATH", os.defpath)])
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=partial(die_with_parent, os.getpid()),
            )

    def wait(self) -> None:
        """Return when it is healthy; raise RuntimeError with its last output if it ends or takes too long."""
        end = time.monotonic() + START_SECONDS
        while not self._is_healthy():
            if self._process.poll() is not None or time.monotonic() > end:
                said = self._log.read_text(errors="replace")[-3000:]
                raise RuntimeError(f"vLLM did not start:\n{said}")
            time.sleep(0.2)

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def freeze(self) -> None:
        """Stop its processes (SIGSTOP): it accepts connections, but does not reply."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue its processes after `freeze`."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it and all processes that it started."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def models() -> Models:
    """Return the folder of the model servers' virtual environment and the small models (MODELS_DIR)."""
    return Models(Path(settings.load(ROOT)["MODELS_DIR"]))


def missing() -> str:
    """Return what this machine lacks to run vLLM; empty if nothing is missing."""
    here = models()
    if not Path(here.python).exists() or engine.find(here.python) is None:
        return f"there is no vLLM in {here.venv}; `make up` makes it, MODELS_DIR names another"
    if not here.small_judge.exists():
        return f"the small judge is not unpacked in {here.small_judge}; `make up` does it"
    return ""


def small_model() -> Model:
    """Return the small demo model."""
    return Model(source=str(models().small_judge), name=SMALL, is_local=True)


@contextmanager
def running(log: Path, *flags: str, model: Model | None = None, **environment: str) -> Iterator[VllmServer]:
    """Yield a healthy server and kill it afterwards.

    Args:
        log: file for its output.
        flags: additional flags of vLLM.
        model: model to serve; None for the small demo model.
        environment: additional environment variables.
    """
    server = VllmServer(model or small_model(), log, *flags, **environment)
    try:
        server.wait()
        yield server
    finally:
        server.kill()


@contextmanager
def running_together(folder: Path, count: int) -> Iterator[list[VllmServer]]:
    """Yield several servers, which start concurrently and whose prefix caches can be reset (`/reset_prefix_cache`).

    Each server is bound to one core, because by default all of them would choose the same cores.

    Args:
        folder: folder for their logs.
        count: number of servers.
    """
    cores = sorted(os.sched_getaffinity(0))
    servers = []
    try:
        for number in range(count):
            own = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_CPU_OMP_THREADS_BIND": str(cores[number % len(cores)])}
            servers.append(VllmServer(small_model(), folder / f"vllm-{number}.log", **own))
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.kill()


@pytest.fixture(scope="session")
def vllm(needs_model: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """Run the real judge that all tests of a run share."""
    with running(tmp_path_factory.mktemp("vllm") / "log") as server:
        yield server
