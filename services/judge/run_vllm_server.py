"""Serve an LLM judge with vLLM: `python run_vllm_server.py --model Qwen/Qwen3-32B --port 8000`.

The script requires only Python 3.10 or later. It uses the vLLM of this interpreter, else the vLLM in MODELS_DIR. If
neither exists, the script asks whether to install vLLM in MODELS_DIR; with `--yes`, it installs without asking. Once
the judge is healthy, the script prints the address to export. On Ctrl-C or SIGTERM, it stops all processes.

Several replicas (`--replicas`) run behind nginx under supervisord (`services.up.native.judges`). This needs `.venv`,
which the script creates.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "client")]

from rewardstack_settings.setting import InvalidSetting  # noqa: E402 - the root is on the path only now
from services.judge import engine  # noqa: E402
from services.judge.engine import Vllm  # noqa: E402
from services.judge.model import Model, default, resolve  # noqa: E402
from services.models import environment, machine  # noqa: E402
from services.models.environment import Models  # noqa: E402
from services.stack import ports, probes, venv  # noqa: E402
from services.stack.console import say  # noqa: E402
from services.stack.errors import StackError  # noqa: E402
from services.stack.os_errors import explain_os_error  # noqa: E402
from services.stack.processes import defer_signals  # noqa: E402
from services.stack.rundir import RunDir  # noqa: E402
from services.stack.settings import Settings, load, prefer_localhost  # noqa: E402
from services.stack.settings_table import TABLE  # noqa: E402

FROM_ENVIRONMENT = {
    "MODEL_ID": "JUDGE_MODEL",
    "PORT": "JUDGE_PORT",
    "DTYPE": "JUDGE_DTYPE",
    "MAX_MODEL_LEN": "JUDGE_MAX_MODEL_LEN",
    "GPU_MEMORY_UTILIZATION": "JUDGE_GPU_MEMORY_UTILIZATION",
}
"""Environment variables of the script, each with the stack setting that is its default."""
AS_SETTINGS = ("dtype", "max_model_len", "gpu_memory_utilization", "tensor_parallel_size")
"""Flags that override the stack setting of the same name, such as `JUDGE_DTYPE`."""
AS_FLAGS = ("max_num_seqs", "max_num_batched_tokens")
"""Flags that the script passes to vLLM only if they are set."""
WILDCARDS = ("0.0.0.0", "::", "")
POLL_SECONDS = 0.5
LOADING_STOP_GRACE = 5
"""Seconds from SIGTERM to SIGKILL for a server that is still loading. It has no requests yet, and ignores SIGTERM."""


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
    devices = "the CPU" if vllm.is_cpu_build else f"{len(gpus)} GPU(s)"
    judge = Judge(vllm, model, options.host, options.port, settings)
    say(f"==> vLLM {vllm.version} on {devices}: loading {model.name}")
    if len(shares) == 1:
        judge.serve_in_foreground(shares[0])
    else:
        judge.serve_replicas(shares)


def parse(
    arguments: Sequence[str], settings: Settings, environ: Mapping[str, str] = os.environ
) -> tuple[argparse.Namespace, Settings]:
    """Parse the command line. Flags override variables of the script, which override settings of the stack.

    Args:
        arguments: command-line arguments; unknown arguments are passed to vLLM.
        settings: settings of the stack.
        environ: the environment.

    Returns:
        The parsed flags (`model` may be empty), and the settings with the flags applied.

    Raises:
        StackError: a variable is malformed; the message names it.
    """
    values = {name: environ.get(name) or settings[setting] for name, setting in FROM_ENVIRONMENT.items()}
    for name, value in values.items():
        try:
            TABLE[name].read(value)
        except InvalidSetting as error:
            raise StackError(f"environment: {error}", f"unset {name}") from None
    known, unknown = _parser(values, settings.number("JUDGE_TENSOR_PARALLEL_SIZE")).parse_known_args(arguments)
    flags = [part for name in AS_FLAGS if (value := vars(known)[name]) for part in (_flag(name), value)]
    overrides = {f"JUDGE_{name.upper()}": str(vars(known)[name]) for name in AS_SETTINGS}
    return known, Settings({**settings, **overrides, "JUDGE_VLLM_ARGS": shlex.join([*flags, *unknown])})


def _parser(values: Mapping[str, str], tensor_parallel_size: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run_vllm_server.py",
        description="Serve an LLM judge with vLLM, on GPUs or CPUs. Flags that are not listed are passed to vLLM.",
        allow_abbrev=False,
    )
    parser.add_argument("--model", default=values["MODEL_ID"], help="a folder or a name on the model hub (MODEL_ID)")
    parser.add_argument("--port", type=int, default=int(values["PORT"]), help="port, default %(default)s (PORT)")
    parser.add_argument("--host", default=WILDCARDS[0], help="address to listen on, default %(default)s")
    parser.add_argument("--replicas", type=_count, default=1, help="servers behind one address, each with its own GPUs")
    parser.add_argument("--yes", action="store_true", help="install vLLM without asking if it is missing")
    memory = "share of each GPU's memory to use (GPU_MEMORY_UTILIZATION)"
    of_vllm: list[tuple[str, object, str, Callable[[str], Any]]] = [
        ("tensor_parallel_size", tensor_parallel_size, "number of GPUs per replica", _count),
        ("dtype", values["DTYPE"], "data type of weights and activations (DTYPE)", str),
        ("max_model_len", values["MAX_MODEL_LEN"], "maximum tokens of a prompt and its answer (MAX_MODEL_LEN)", str),
        ("gpu_memory_utilization", values["GPU_MEMORY_UTILIZATION"], memory, str),
        ("max_num_seqs", "", "maximum number of concurrent requests", str),
        ("max_num_batched_tokens", "", "maximum number of tokens in one step", str),
    ]
    for name, value, text, kind in of_vllm:
        parser.add_argument(*dict.fromkeys((_flag(name), f"--{name}")), default=value, help=text, type=kind)
    return parser


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


@dataclass(frozen=True)
class Judge:
    """A judge to serve, and its address."""

    vllm: Vllm
    model: Model
    host: str
    port: int
    settings: Settings

    def serve_in_foreground(self, share: Sequence[str]) -> None:
        """Run one server until it ends or is interrupted, then kill its whole process group.

        Raises:
            StackError: the server exited, or was not healthy in time.
        """
        command = engine.command(self.vllm, self.model, ["--host", self.host, "--port", str(self.port)], self.settings)
        path = os.pathsep.join([str(Path(self.vllm.python).parent), os.environ.get("PATH", os.defpath)])
        environment = {**os.environ, **self._environment(share), "PATH": path}
        if key := self.settings["LLM_JUDGE_SERVER_API_KEY"]:
            environment["VLLM_API_KEY"] = key
        process, stop_grace = None, LOADING_STOP_GRACE
        try:
            with defer_signals():
                # Do not run in the user's directory, whose modules would shadow those of vLLM.
                process = subprocess.Popen(
                    command, env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True
                )
            self._await_health(process)
            stop_grace = engine.JUDGE.stop_grace(self.settings)
            say(self._announcement())
            raise StackError(f"judge: exited with status {process.wait()}", "see the lines above")
        finally:
            if process:
                with defer_signals():
                    _end(process, stop_grace)

    def _await_health(self, process: subprocess.Popen[bytes]) -> None:
        timeout = self.settings.number(engine.JUDGE.startup_timeout)
        deadline = time.monotonic() + timeout
        while process.poll() is None:
            if not probes.http(f"{self._local_host}:{self.port}", "/health"):
                return
            if time.monotonic() > deadline:
                raise StackError(f"judge: not healthy after {timeout} s (MODEL_UP_TIMEOUT)", "see the lines above")
            time.sleep(POLL_SECONDS)
        raise StackError(f"judge: exited during startup with status {process.returncode}", "see the lines above")

    def serve_replicas(self, shares: Sequence[Sequence[str]]) -> None:
        """Replace this process with one that runs several servers and nginx under supervisord."""
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


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Send SIGTERM to a server, so that it drains. Kill its group once it has ended, or after `grace` seconds."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _find_or_install_vllm(models: Models, yes: bool) -> Vllm:
    """Return the vLLM of this interpreter, else the vLLM in MODELS_DIR, which is installed if it is missing.

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
            raise StackError("vLLM is not installed here", "pass --yes, or run: pip install vllm")
        environment.make(models)
    if found := engine.find(models.python):
        return found
    raise StackError(f"{models.venv} has no vLLM", f"remove {models.venv}, then try again")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
