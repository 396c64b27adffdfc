"""`python -m rewardstack.ray_judge start`: the judge, in a Ray cluster that is there or one of its own, until Ctrl-C.

Exit status 0: it was ended; 1: the cluster or an engine is at fault; 2: the arguments or a setting.
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
"""Seconds between looks at the service,"""
ANSWER_TIMEOUT = 60.0
"""and that it has to answer."""


def main(argv: list[str] | None = None) -> int:
    """Runs the command line; gives its exit status."""
    given = _parser().parse_args(argv)
    stop = threading.Event()
    _heed_signals(stop)
    try:
        _serve(given, stop)
    except KeyboardInterrupt:
        return 0
    except (RewardstackError, OSError) as error:
        print(f"rewardstack.ray_judge: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def _heed_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: _interrupt(stop))


def _interrupt(stop: threading.Event) -> None:
    """Ends what waits: the service, or, at its start, whatever is under way; once."""
    if not stop.is_set():
        stop.set()
        raise KeyboardInterrupt


def _serve(given: argparse.Namespace, stop: threading.Event) -> None:
    for package in ("ray", "vllm"):
        if find_spec(package) is None:
            raise SettingsError(f"{package} is not installed here; pip install {package}", "ray")
    count = engines_asked_for(given.engines)
    options = {
        "served_name": given.served_name,
        "tensor_parallel_size": given.tensor_parallel_size,
        "max_model_len": given.max_model_len,
        "dtype": given.dtype,
        "gpu_memory_utilization": given.gpu_memory_utilization,
        "further": tuple(shlex.split(given.vllm_args)),
    }
    EngineOptions(given.model, **options)  # what is wrong is said before a cluster is started
    processors = max(os.cpu_count() or 1, count * given.tensor_parallel_size)
    with connected(given.address, processors) as variables:
        import ray

        _heed_signals(stop)  # Ray has put its own handlers in their place
        print(f"starting {count} engines with {given.model} ...", flush=True)
        service = start_reward_service(
            given.model, count, name=given.name, namespace=given.namespace, seconds=given.timeout, **options
        )
        try:
            _tell(given, variables)
            while not stop.wait(LOOK):
                ray.get(service.state.remote(), timeout=ANSWER_TIMEOUT)
        except (ray.exceptions.RayError, TimeoutError) as error:
            raise UnreachableError(f"the service is lost: {last_line(error)}") from error
        finally:
            stop_reward_service(service)


def _tell(given: argparse.Namespace, variables: dict[str, str]) -> None:
    found = {**variables, "LLM_JUDGE_RAY_ACTOR": f"{given.namespace}/{given.name}"}
    print("the judge is up, until Ctrl-C; trainers find it by")
    for name, text in found.items():
        print(f"  export {name}={shlex.quote(text)}")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m rewardstack.ray_judge", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    start = commands.add_parser("start", help="start the judge, and keep it up until Ctrl-C or SIGTERM")
    start.add_argument("--model", required=True, help="a folder, or a name on the model hub")
    start.add_argument("--served-name", default="", help="by which clients ask for it (default: the model)")
    start.add_argument("--engines", type=int, help="how many (default: REWARD_NUM_ENGINES, which is 1)")
    start.add_argument("--tensor-parallel-size", type=int, default=1, metavar="GPUS", help="GPUs of each (default: 1)")
    start.add_argument(
        "--max-model-len", type=int, metavar="TOKENS", help="of a prompt and its reply (default: what fits)"
    )
    start.add_argument("--dtype", default="auto", help="of weights and activations (default: the model's)")
    start.add_argument(
        "--gpu-memory-utilization", type=float, default=0.9, metavar="PART", help="of each GPU (default: 0.9)"
    )
    start.add_argument(
        "--vllm-args", default="", metavar="FLAGS", help="further flags of `vllm serve`, in one argument"
    )
    start.add_argument("--name", default=NAME, help=f"of the actor (default: {NAME})")
    start.add_argument("--namespace", default=RAY_NAMESPACE, help=f"of the actor (default: {RAY_NAMESPACE})")
    start.add_argument(
        "--address",
        default=os.environ.get("RAY_ADDRESS", ""),
        help="of a Ray cluster that is there (default: RAY_ADDRESS; else a cluster of its own)",
    )
    start.add_argument(
        "--timeout",
        type=float,
        default=START_SECONDS,
        metavar="SECONDS",
        help="for all engines to load (default: %(default)g)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
