"""How a recipe's rows are judged: the options of the remote judge, which stand in each row's `extra_info`."""

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
"""Fields that `--extra` may set. An address or a key is the trainer's to know: it does not belong into data."""


def add_judge_options(parser: argparse.ArgumentParser) -> None:
    """Adds the judge's options to a recipe's."""
    group = parser.add_argument_group("judge", "written into each row's extra_info")
    group.add_argument(
        "--model", metavar="NAME", default=MODEL, help="'' leaves it to the trainer's settings (%(default)s)"
    )
    group.add_argument(
        "--template", metavar="NAME|FILE", default="default", help="a file's text is written (%(default)s)"
    )
    group.add_argument("--temperature", metavar="NUMBER", type=float, default=0.7, help="of sampling (%(default)s)")
    group.add_argument("--top-p", metavar="NUMBER", type=float, default=0.8, help="of sampling (%(default)s)")
    group.add_argument("--max-new-tokens", metavar="N", type=int, default=512, help="of the reply (%(default)s)")
    group.add_argument("--thinking", action="store_true", help="the judge may reason before it replies")
    group.add_argument("--extra", metavar="JSON", default="{}", help="further options of the judge, an object")


def judge_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options as fields of `extra_info`, checked as the judge would.

    Raises:
        RequestError: one of them cannot be used; names it.
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
        raise RequestError(f"--template: {name!r} is no file, and none of {', '.join(BUILTIN)}", "--template")
    return read_template(name)


def _extra(text: str) -> dict[str, Any]:
    try:
        extra = json.loads(text)
    except ValueError as error:
        raise RequestError(f"--extra: not JSON: {error}", "--extra") from error
    if not isinstance(extra, dict):
        raise RequestError(f"--extra: expected an object, got {type(extra).__name__}", "--extra")
    for name in extra.keys() - ALLOWED:
        raise RequestError(f"--extra: {name!r} is none of {', '.join(sorted(ALLOWED))}", "--extra")
    return extra
