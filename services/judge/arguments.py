"""Parse the command line and environment of `run_vllm_server.py`."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence

from rewardstack_settings.setting import InvalidSetting
from services.stack.errors import StackError
from services.stack.settings import Settings
from services.stack.settings_table import TABLE

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
EVERY_ADDRESS = "0.0.0.0"


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
    known, unknown = _parser(values, settings).parse_known_args(arguments)
    flags = [part for name in AS_FLAGS if (value := vars(known)[name]) for part in (f"--{_flag(name)}", value)]
    overrides = {f"JUDGE_{name.upper()}": str(vars(known)[name]) for name in AS_SETTINGS}
    return known, Settings({**settings, **overrides, "JUDGE_VLLM_ARGS": shlex.join([*flags, *unknown])})


def _parser(values: Mapping[str, str], settings: Settings) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run_vllm_server.py",
        description="Serve an LLM judge with vLLM, on GPUs or CPUs. Flags that are not listed are passed to vLLM.",
        allow_abbrev=False,
    )
    tensor_parallel = settings.number("JUDGE_TENSOR_PARALLEL_SIZE")
    parser.add_argument("--model", default=values["MODEL_ID"], help="a folder or a name on the model hub (MODEL_ID)")
    parser.add_argument("--port", type=int, default=int(values["PORT"]), help="default %(default)s (PORT)")
    parser.add_argument("--host", default=EVERY_ADDRESS, help="address to listen on, default %(default)s")
    parser.add_argument("--replicas", type=_count, default=1, help="servers behind one address, each on its own GPUs")
    parser.add_argument("--yes", action="store_true", help="install vLLM without asking if it is missing")
    memory = "part of a GPU's memory (GPU_MEMORY_UTILIZATION)"
    _add(parser, "tensor_parallel_size", tensor_parallel, "GPUs that one replica spreads over", _count)
    _add(parser, "dtype", values["DTYPE"], "of weights and activations (DTYPE)")
    _add(parser, "max_model_len", values["MAX_MODEL_LEN"], "tokens of a prompt and its answer (MAX_MODEL_LEN)")
    _add(parser, "gpu_memory_utilization", values["GPU_MEMORY_UTILIZATION"], memory)
    _add(parser, "max_num_seqs", "", "maximum number of concurrent requests")
    _add(parser, "max_num_batched_tokens", "", "maximum number of tokens in one step")
    return parser


def _add(parser: argparse.ArgumentParser, name: str, default: object, text: str, kind: type | object = str) -> None:
    """Add a flag of vLLM in two spellings, with hyphens and with underscores."""
    spellings = dict.fromkeys((f"--{_flag(name)}", f"--{name}"))
    parser.add_argument(*spellings, default=default, help=text, type=kind)  # type: ignore[arg-type]


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
