"""Serve an LLM judge with vLLM: `python run_vllm_server.py --model Qwen/Qwen3-32B --port 8000`.

The script requires only Python 3.10 or later. It uses the vLLM of this interpreter, else the vLLM in MODELS_DIR. If
neither exists, the script asks whether to install vLLM in MODELS_DIR; with `--yes`, it installs without asking. Once
the judge is healthy, the script prints the address to export. On Ctrl-C or SIGTERM, it stops all processes.

Several replicas (`--replicas`) run as a native stack with only judges and gateway. Such a stack needs `.venv`, which
the script creates.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from services.judge import engine, foreground  # noqa: E402 - the root is on the path only now
from services.judge.arguments import parse  # noqa: E402
from services.judge.engine import Vllm  # noqa: E402
from services.judge.model import Model, default, resolve  # noqa: E402
from services.models import environment, machine  # noqa: E402
from services.models.environment import Models  # noqa: E402
from services.models.machine import Gpu  # noqa: E402
from services.stack import ports, venv  # noqa: E402
from services.stack.console import say  # noqa: E402
from services.stack.errors import StackError  # noqa: E402
from services.stack.os_errors import explain_os_error  # noqa: E402
from services.stack.rundir import RunDir  # noqa: E402
from services.stack.settings import Settings, load, prefer_localhost  # noqa: E402

WILDCARDS = ("0.0.0.0", "::", "")


def main(arguments: list[str]) -> int:
    """Serve until interrupted; return the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _serve(arguments)
    except (StackError, OSError) as error:
        print(f"ERROR: {explain_os_error(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("the judge is stopped")
    return 0


def _serve(arguments: list[str]) -> None:
    options, settings = parse(arguments, load(ROOT))
    ports.require_one_free("--port", options.host, options.port)
    models = Models(Path(settings["MODELS_DIR"]))
    gpus = machine.gpus()
    shares = machine.split_gpus(gpus, options.replicas, options.tensor_parallel_size)
    vllm = _find_or_install_vllm(models, options.yes)
    model = resolve(options.model or default(gpus), vllm.python, models)
    judge = Judge(vllm, model, options.host, options.port, settings)
    say(f"==> vLLM {vllm.version} on {_devices(vllm, gpus)}: loading {model.name}")
    if len(shares) == 1:
        judge.serve_in_foreground(shares[0])
    else:
        judge.serve_replicas(shares)


@dataclass(frozen=True)
class Judge:
    """A judge to serve, and its address."""

    vllm: Vllm
    model: Model
    host: str
    port: int
    settings: Settings

    def serve_in_foreground(self, share: Sequence[str]) -> None:
        """Run one server in the foreground until it is interrupted."""
        listen = ["--host", self.host, "--port", str(self.port)]
        environment = {**os.environ, **self._environment(share), "PATH": self._path}
        if key := self.settings["LLM_JUDGE_SERVER_API_KEY"]:
            environment["VLLM_API_KEY"] = key
        foreground.serve(
            engine.command(self.vllm, self.model, listen, self.settings),
            environment,
            f"{self._local_host}:{self.port}",
            self.settings.number(engine.JUDGE.startup_timeout),
            engine.JUDGE.stop_grace(self.settings),
            lambda: say(self._announcement()),
        )

    def serve_replicas(self, shares: Sequence[Sequence[str]]) -> None:
        """Replace this process by a process that runs several servers and nginx under supervisord."""
        venv.make()
        run = RunDir(tempfile.mkdtemp(prefix="judge-"))
        run.make()
        names = [engine.replica_name(number) for number in range(1, len(shares) + 1)]
        replicas = [
            {
                "command": engine.command(self.vllm, self.model, ["--uds", str(run.socket(name))], self.settings),
                "environment": self._environment(share),
            }
            for name, share in zip(names, shares, strict=True)
        ]
        description = {
            "host": self.host,
            "port": self.port,
            "here": self._local_host,
            "model": self.model.name,
            "replicas": replicas,
            "announcement": self._announcement(),
        }
        (run.path / "judges.json").write_text(json.dumps(description), encoding="utf-8")
        say(f"    logs are in {run.logs}")
        os.chdir(ROOT)
        python = str(venv.VENV / "bin/python")
        os.execv(python, [python, "-m", "services.up.native.judges", str(run.path)])

    @property
    def _local_host(self) -> str:
        """Host at which this machine reaches the judge."""
        return "127.0.0.1" if self.host in WILDCARDS else self.host

    @property
    def _path(self) -> str:
        return os.pathsep.join([str(Path(self.vllm.python).parent), os.environ.get("PATH", os.defpath)])

    def _environment(self, share: Sequence[str]) -> dict[str, str]:
        return engine.environment(self.vllm, self.model, share, self.settings["VLLM_CPU_KVCACHE_SPACE"])

    def _announcement(self) -> str:
        host = prefer_localhost(self._local_host)
        lines = [
            f"\nThe judge is up and serves {self.model.name}. In the shell of your trainer:\n",
            f"  export LLM_JUDGE_SERVER_URL=http://{host}:{self.port}",
        ]
        if self.host in WILDCARDS:
            lines += ["\nOn other nodes:\n", f"  export LLM_JUDGE_SERVER_URL=http://{ports.own_address()}:{self.port}"]
        if self.settings["LLM_JUDGE_SERVER_API_KEY"]:
            lines += ["  export LLM_JUDGE_SERVER_API_KEY=...    # as it is set here"]
        elif self.host in WILDCARDS:
            lines += [
                "\nwarning: LLM_JUDGE_SERVER_API_KEY is empty: anyone who can reach this machine can use the judge"
            ]
        return "\n".join(lines)


def _devices(vllm: Vllm, gpus: list[Gpu]) -> str:
    return "the CPU" if vllm.is_cpu_build else f"{len(gpus)} GPU(s)"


def _find_or_install_vllm(models: Models, yes: bool) -> Vllm:
    """Return the vLLM of this interpreter, else that of MODELS_DIR. Install the latter if it is missing.

    Raises:
        StackError: vLLM cannot be installed, or the user does not agree.
    """
    if found := engine.find(sys.executable):
        return found
    if not environment.is_ready(models):
        if reason := environment.unsupported_reason(models):
            raise StackError(reason)
        question = f"vLLM is not installed here. Install it into {models.venv} (some gigabytes)? [y/N] "
        if not yes and not (sys.stdin.isatty() and input(question).strip().lower() in ("y", "yes")):
            raise StackError("vLLM is not installed here", "give --yes, or: pip install vllm")
        environment.make(models)
    if found := engine.find(models.python):
        return found
    raise StackError(f"{models.venv} has no vLLM", f"remove {models.venv}, then try again")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
