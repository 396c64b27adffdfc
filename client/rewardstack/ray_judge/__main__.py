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
from rewardstack.ray_judge.cluster import connect
from rewardstack.ray_judge.options import EngineOptions
from rewardstack.ray_judge.service import NAME
from rewardstack.ray_judge.start import START_TIMEOUT, get_engine_count, start_reward_service, stop_reward_service
from rewardstack.transport.ray_actor import last_line
from rewardstack_settings.kinds import RAY_NAMESPACE

CHECK_INTERVAL = 5.0
"""Seconds between two health checks of the service."""
ANSWER_TIMEOUT = 60.0
"""Timeout of a health check, in seconds."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status; the module's docstring lists the values."""
    arguments = _parser().parse_args(argv)
    stop_event = threading.Event()
    _handle_signals(stop_event)
    try:
        _serve(arguments, stop_event)
    except KeyboardInterrupt:
        return 0
    except (RewardstackError, OSError) as error:
        print(f"rewardstack.ray_judge: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def _handle_signals(stop_event: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _interrupt(stop_event))


def _interrupt(stop_event: threading.Event) -> None:
    """Interrupt the main thread at the first signal; ignore later ones."""
    if not stop_event.is_set():
        stop_event.set()
        raise KeyboardInterrupt


def _serve(arguments: argparse.Namespace, stop_event: threading.Event) -> None:
    for package in ("ray", "vllm"):
        if find_spec(package) is None:
            raise SettingsError(f"{package} is not installed; pip install {package}", "ray")
    count = get_engine_count(arguments.engines)
    options = {
        "served_name": arguments.served_name,
        "tensor_parallel_size": arguments.tensor_parallel_size,
        "max_model_len": arguments.max_model_len,
        "dtype": arguments.dtype,
        "gpu_memory_utilization": arguments.gpu_memory_utilization,
        "further": tuple(shlex.split(arguments.vllm_args)),
    }
    EngineOptions(arguments.model, **options)  # report invalid options before starting a cluster
    processors = max(os.cpu_count() or 1, count * arguments.tensor_parallel_size)
    with connect(arguments.address, processors) as variables:
        import ray

        _handle_signals(stop_event)  # again, because Ray has replaced the handlers
        print(f"starting {count} engines with {arguments.model} ...", flush=True)
        service = start_reward_service(
            arguments.model,
            count,
            name=arguments.name,
            namespace=arguments.namespace,
            seconds=arguments.timeout,
            **options,
        )
        try:
            _print_variables(arguments, variables)
            while not stop_event.wait(CHECK_INTERVAL):
                ray.get(service.state.remote(), timeout=ANSWER_TIMEOUT)
        except (ray.exceptions.RayError, TimeoutError) as error:
            raise UnreachableError(f"the service is lost: {last_line(error)}") from error
        finally:
            stop_reward_service(service)


def _print_variables(arguments: argparse.Namespace, variables: dict[str, str]) -> None:
    variables_to_set = {**variables, "LLM_JUDGE_RAY_ACTOR": f"{arguments.namespace}/{arguments.name}"}
    print("the judge is running (Ctrl-C stops it); set these variables for trainers:")
    for name, text in variables_to_set.items():
        print(f"  export {name}={shlex.quote(text)}")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m rewardstack.ray_judge", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    start = commands.add_parser("start", help="run the judge until Ctrl-C or SIGTERM")
    start.add_argument("--model", required=True, help="a folder, or a name on the model hub")
    start.add_argument("--served-name", default="", help="model name for clients (default: the value of --model)")
    start.add_argument("--engines", type=int, help="number of engines (default: REWARD_NUM_ENGINES, else 1)")
    start.add_argument(
        "--tensor-parallel-size", type=int, default=1, metavar="GPUS", help="GPUs per engine (default: 1)"
    )
    start.add_argument(
        "--max-model-len", type=int, metavar="TOKENS", help="context length (default: the maximum that fits in memory)"
    )
    start.add_argument("--dtype", default="auto", help="type of weights and activations (default: the model's type)")
    share = "share of each GPU's memory to use (default: 0.9)"
    start.add_argument("--gpu-memory-utilization", type=float, default=0.9, metavar="SHARE", help=share)
    start.add_argument(
        "--vllm-args", default="", metavar="FLAGS", help="more flags of `vllm serve`, quoted as one argument"
    )
    start.add_argument("--name", default=NAME, help=f"name of the actor (default: {NAME})")
    start.add_argument(
        "--namespace", default=RAY_NAMESPACE, help=f"Ray namespace of the actor (default: {RAY_NAMESPACE})"
    )
    start.add_argument(
        "--address",
        default=os.environ.get("RAY_ADDRESS", ""),
        help="address of an existing Ray cluster (default: RAY_ADDRESS; without an address, start a new cluster)",
    )
    start.add_argument(
        "--timeout",
        type=float,
        default=START_TIMEOUT,
        metavar="SECONDS",
        help="maximum time until all engines are up (default: %(default)g)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
