"""Parse the judge's options for a recipe, which writes them into the `extra_info` of each row."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rewardstack.errors import RequestError
from rewardstack.scorers.judge.options import read_options
from rewardstack.scorers.judge.templates import BUILTIN, read_template
from rewardstack.scorers.names import JUDGE_OPTIONS

MODEL = "Qwen/Qwen3-32B"
ALLOWED = frozenset(JUDGE_OPTIONS) - {"prompt_template_path"} | {"timeout"}
"""Fields that `--extra` may set. The judge's URL and key are settings of the trainer and do not belong in data."""


def add_judge_options(parser: argparse.ArgumentParser) -> None:
    """Add the judge's options to the arguments of a recipe."""
    group = parser.add_argument_group("judge", "written into each row's extra_info")
    group.add_argument(
        "--model",
        metavar="NAME",
        default=MODEL,
        help="the judge's model (default: %(default)s); '' uses the model in the trainer's settings",
    )
    group.add_argument(
        "--template",
        metavar="NAME|FILE",
        default="default",
        help="a built-in template, or a file; the text of a file is written into the rows (%(default)s)",
    )
    group.add_argument(
        "--temperature", metavar="NUMBER", type=float, default=0.7, help="sampling temperature (%(default)s)"
    )
    group.add_argument("--top-p", metavar="NUMBER", type=float, default=0.8, help="top-p of sampling (%(default)s)")
    group.add_argument(
        "--max-new-tokens", metavar="N", type=int, default=512, help="maximum tokens of the reply (%(default)s)"
    )
    group.add_argument("--thinking", action="store_true", help="let the judge reason before it replies")
    group.add_argument("--extra", metavar="JSON", default="{}", help="more options of the judge, as a JSON object")


def judge_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options as fields of `extra_info`, after validating them as the judge's scorer does.

    Raises:
        RequestError: an option is invalid; the message names the option.
    """
    options: dict[str, Any] = {
        "prompt_template": args.template if args.template in BUILTIN else _template(args.template),
        "temperature": args.temperature,
        "top_p": args.top_p,
        "max_new_tokens": args.max_new_tokens,
        "enable_thinking": args.thinking,
    }
    if args.model:
        options = {"model_name": args.model, **options}
    options |= _extra(args.extra)
    read_options(options)
    return options


def _template(name: str) -> str:
    if not Path(name).is_file():
        raise RequestError(f"--template: {name!r} is neither a file nor one of {', '.join(BUILTIN)}", "--template")
    return read_template(name)


def _extra(text: str) -> dict[str, Any]:
    try:
        extra = json.loads(text)
    except ValueError as error:
        raise RequestError(f"--extra: not JSON: {error}", "--extra") from error
    if not isinstance(extra, dict):
        raise RequestError(f"--extra: expected an object, got {type(extra).__name__}", "--extra")
    for name in extra.keys() - ALLOWED:
        raise RequestError(f"--extra: {name!r} is not one of {', '.join(sorted(ALLOWED))}", "--extra")
    return extra
