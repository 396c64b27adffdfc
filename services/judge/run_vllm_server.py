"""Serve an LLM judge with vLLM: `python run_vllm_server.py --model Qwen/Qwen3-32B --port 8000`.

Needs Python 3.10 or later and nothing else: it takes the vLLM that this interpreter has, else the one in MODELS_DIR,
which it installs there after asking (`--yes`: without). Prints the address to export once the judge answers; ends on
Ctrl-C or SIGTERM, and leaves no process behind.
"""

from __future__ import annotations

import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from services.judge import engine  # noqa: E402 - the root is on the path only now
from services.judge.arguments import parse  # noqa: E402
from services.judge.engine import Vllm  # noqa: E402
from services.judge.interruption import Interruption  # noqa: E402
from services.judge.model import default, resolve  # noqa: E402
from services.judge.serving import WILDCARDS, Address, Serving  # noqa: E402
from services.models import environment, machine  # noqa: E402
from services.models.environment import Models  # noqa: E402
from services.models.machine import Gpu  # noqa: E402
from services.stack import ports  # noqa: E402
from services.stack.console import say, step  # noqa: E402
from services.stack.errors import StackError  # noqa: E402
from services.stack.rundir import RunDir  # noqa: E402
from services.stack.settings import Settings, load  # noqa: E402

ANY_OTHER_HOST = ("192.0.2.1", 9)
"""An address of a network for documentation: no packet is sent to it."""


def main(arguments: list[str]) -> int:
    """Serve until interrupted; returns the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _serve(arguments)
    except StackError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("the judge is stopped")
    return 0


def _serve(arguments: list[str]) -> None:
    settings = load(ROOT)
    wanted, options = parse(arguments, settings)
    ports.require_one_free("--port", wanted.host, wanted.port)
    models = Models(Path(settings["MODELS_DIR"]))
    gpus = machine.gpus()
    shares = machine.shares(gpus, wanted.replicas, options.tensor_parallel_size)
    found = _vllm(models, wanted.yes)
    model = resolve(wanted.model or default(gpus), found.python, models)
    address = Address(wanted.host, wanted.port)
    with _run_dir() as run, Interruption() as interruption:
        say(f"==> vLLM {found.version} on {_devices(found, gpus)}; logs are in {run.logs}")
        serving = Serving(run, address, settings, interruption.pause)
        try:
            with step(f"loading {model.name}"):
                serving.start(found, model, options, shares)
            _announce(model.name, address, settings)
            serving.watch()
        finally:
            serving.stop()


@contextmanager
def _run_dir() -> Iterator[RunDir]:
    """A directory for sockets and logs; it stays where an error ended the judge."""
    folder = tempfile.mkdtemp(prefix="judge-")
    run = RunDir(folder)
    run.make()
    try:
        yield run
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        raise


def _devices(vllm: Vllm, gpus: list[Gpu]) -> str:
    return "the processor" if vllm.for_cpu else f"{len(gpus)} GPU(s)"


def _vllm(models: Models, yes: bool) -> Vllm:
    """The vLLM of this interpreter, else that of MODELS_DIR, installed if the user agrees."""
    if found := engine.find(sys.executable):
        return found
    if not environment.ready(models):
        if reason := environment.obstacle(models):
            raise StackError(reason)
        question = f"vLLM is not installed here. Install it into {models.venv} (some gigabytes)? [y/N] "
        if not yes and not (sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")):
            raise StackError("vLLM is not installed here", "give --yes, or: pip install vllm")
        environment.make(models)
    if found := engine.find(models.python):
        return found
    raise StackError(f"{models.venv} has no vLLM", f"remove {models.venv}, then try again")


def _announce(name: str, address: Address, settings: Settings) -> None:
    say(f"\nThe judge is up and serves {name}. In the shell of your trainer:\n")
    on_this = "localhost" if address.here == "127.0.0.1" else address.here
    say(f"  export LLM_JUDGE_SERVER_URL=http://{on_this}:{address.port}")
    if address.host in WILDCARDS:
        say("\nOn other nodes:\n")
        say(f"  export LLM_JUDGE_SERVER_URL=http://{_own_address()}:{address.port}")
    if settings["LLM_JUDGE_SERVER_API_KEY"]:
        say("  export LLM_JUDGE_SERVER_API_KEY=...    # as it is set here")
    elif address.host in WILDCARDS:
        say("\nwarning: LLM_JUDGE_SERVER_API_KEY is empty: whoever reaches this machine may use the judge")


def _own_address() -> str:
    """The address by which other machines reach this one, its name where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ANY_OTHER_HOST)
        except OSError:
            return socket.gethostname()
        return str(probe.getsockname()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
