"""`python -m rewardstack.ray_judge start`: run the judge in an existing or a new Ray cluster until Ctrl-C.

Exit status 0: stopped; 1: error in the cluster or an engine; 2: error in the arguments or a setting.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import threading
from importlib.util import find_spec

from rewardstack.errors import ConfigError, RewardstackError, SettingsError, UnreachableError
from rewardstack.ray_judge.cluster import connected
from rewardstack.ray_judge.options import EngineOptions
from rewardstack.ray_judge.service import NAME
from rewardstack.ray_judge.start import START_SECONDS, engines_asked_for, start_reward_service, stop_reward_service
from rewardstack.transport.ray_actor import last_line
from rewardstack_settings.kinds import RAY_NAMESPACE

LOOK = 5.0
"""Seconds between health checks of the service."""
ANSWER_TIMEOUT = 60.0
"""Timeout of a health check, in seconds."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status; see the module for its values."""
    given = _parser().parse_args(argv)
    stop = threading.Event()
    _handle_signals(stop)
    try:
        _serve(given, stop)
    except KeyboardInterrupt:
        return 0
    except (RewardstackError, OSError) as error:
        print(f"rewardstack.ray_judge: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def _handle_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _interrupt(stop))


def _interrupt(stop: threading.Event) -> None:
    """Interrupt the main thread at the first signal; ignore later ones."""
    if not stop.is_set():
        stop.set()
        raise KeyboardInterrupt


def _serve(given: argparse.Namespace, stop: threading.Event) -> None:
    for package in ("ray", "vllm"):
        if find_spec(package) is None:
            raise SettingsError(f"{package} is not installed; pip install {package}", "ray")
    count = engines_asked_for(given.engines)
    options = {
        "served_name": given.served_name,
        "tensor_parallel_size": given.tensor_parallel_size,
        "max_model_len": given.max_model_len,
        "dtype": given.dtype,
        "gpu_memory_utilization": given.gpu_memory_utilization,
        "further": tuple(shlex.split(given.vllm_args)),
    }
    EngineOptions(given.model, **options)  # report invalid options before starting a cluster
    processors = max(os.cpu_count() or 1, count * given.tensor_parallel_size)
    with connected(given.address, processors) as variables:
        import ray

        _handle_signals(stop)  # again, because Ray has installed its own handlers
        print(f"starting {count} engines with {given.model} ...", flush=True)
        service = start_reward_service(
            given.model, count, name=given.name, namespace=given.namespace, seconds=given.timeout, **options
        )
        try:
            _print_variables(given, variables)
            while not stop.wait(LOOK):
                ray.get(service.state.remote(), timeout=ANSWER_TIMEOUT)
        except (ray.exceptions.RayError, TimeoutError) as error:
            raise UnreachableError(f"the service is lost: {last_line(error)}") from error
        finally:
            stop_reward_service(service)


def _print_variables(given: argparse.Namespace, variables: dict[str, str]) -> None:
    found = {**variables, "LLM_JUDGE_RAY_ACTOR": f"{given.namespace}/{given.name}"}
    print("the judge is running (Ctrl-C stops it); set these variables for trainers:")
    for name, text in found.items():
        print(f"  export {name}={shlex.quote(text)}")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m rewardstack.ray_judge", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    start = commands.add_parser("start", help="run the judge until Ctrl-C or SIGTERM")
    start.add_argument("--model", required=True, help="a folder, or a name on the model hub")
    start.add_argument("--served-name", default="", help="model name for clients (default: the model)")
    start.add_argument("--engines", type=int, help="number of engines (default: REWARD_NUM_ENGINES, which is 1)")
    start.add_argument("--tensor-parallel-size", type=int, default=1, metavar="GPUS", help="per engine (default: 1)")
    start.add_argument(
        "--max-model-len", type=int, metavar="TOKENS", help="context length (default: what fits into memory)"
    )
    start.add_argument("--dtype", default="auto", help="type of weights and activations (default: the model's)")
    start.add_argument(
        "--gpu-memory-utilization",
        type=float,
        default=0.9,
        metavar="PART",
        help="share of each GPU's memory to use (default: 0.9)",
    )
    start.add_argument("--vllm-args", default="", metavar="FLAGS", help="more flags of `vllm serve`, in one argument")
    start.add_argument("--name", default=NAME, help=f"name of the actor (default: {NAME})")
    start.add_argument("--namespace", default=RAY_NAMESPACE, help=f"its namespace (default: {RAY_NAMESPACE})")
    start.add_argument(
        "--address",
        default=os.environ.get("RAY_ADDRESS", ""),
        help="address of an existing Ray cluster (default: RAY_ADDRESS; else start a new cluster)",
    )
    start.add_argument(
        "--timeout",
        type=float,
        default=START_SECONDS,
        metavar="SECONDS",
        help="seconds until all engines must have loaded (default: %(default)g)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
