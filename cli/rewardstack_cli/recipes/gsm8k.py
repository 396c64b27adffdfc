"""`rewardstack prepare gsm8k`: the word problems of GSM8K for the rule `gsm8k`.

The instruction, and the answer (what follows `####`, without commas), are those of verl's
`examples/data_preprocess/gsm8k.py`.
"""

from __future__ import annotations

import argparse
import re
from random import Random
from typing import Any

from rewardstack_cli.data.rows import Row
from rewardstack_cli.recipes.dataset import malformed, read_dataset, text_of
from rewardstack_cli.recipes.prepared import Dropped, Prepared, split_by_share

NAME = "gsm8k"
HUB = "openai/gsm8k"
CONFIG = "main"
INSTRUCTION = 'Let\'s think step by step and output the final answer after "####".'
METHODS = ("strict", "flexible")
MARK = "####"
NUMBER = re.compile(r"-?[0-9]{1,64}(?:\.[0-9]{1,64})?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this recipe."""
    parser.add_argument("--instruction", metavar="TEXT", default=INSTRUCTION, help="after each question (%(default)s)")
    parser.add_argument(
        "--method", choices=METHODS, default="strict", help="how the rule finds the answer (%(default)s)"
    )


def prepare(args: argparse.Namespace) -> Prepared:
    """Make the rows; rows of an input with a train and a test split keep their split.

    Raises:
        RewardstackError: the input cannot be read, or a row is malformed.
    """
    source = read_dataset(args.input, CONFIG)
    dropped, seen = Dropped(), set()
    parts: dict[str | None, list[Row]] = {"train": [], "test": [], None: []}
    for split, row in source.rows:
        question = " ".join(text_of(row, "question").split())
        _answer(row)
        if not question or question in seen:
            dropped.add("the question was read before" if question else "the question is empty", row)
            continue
        seen.add(question)
        parts[split].append(row)
    divided = split_by_share(parts[None], 0 if parts["test"] else args.test_share, Random(args.seed))
    splits: dict[str, list[dict[str, Any]]] = {}
    for split, rows in divided.items():
        whole = enumerate([*parts[split], *rows])
        splits[split] = [_row(split, index, row, args.instruction, args.method) for index, row in whole]
    settings = {"data_source": NAME, "instruction": args.instruction, "method": args.method}
    return Prepared([source], splits, settings, dropped)


def _answer(row: Row) -> str:
    """Return the number after the last `####` of a solution.

    Raises:
        RequestError: there is no `####`, or no number follows it.
    """
    solution = text_of(row, "answer")
    _, mark, last = solution.rpartition(MARK)
    number = last.strip().replace(",", "").removeprefix("$")
    if not mark or not NUMBER.fullmatch(number):
        found = f"{last.strip()[:40]!r}" if mark else "none"
        raise malformed(row, "answer", f"must end with `{MARK} NUMBER`, found {found}")
    return number


def _row(split: str, index: int, row: Row, instruction: str, method: str) -> dict[str, Any]:
    question, answer = text_of(row, "question").strip(), text_of(row, "answer")
    return {
        "data_source": NAME,
        "prompt": [{"role": "user", "content": f"{question} {instruction}".strip()}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": _answer(row)},
        "extra_info": {"split": split, "index": index, "question": question, "answer": answer, "method": method},
    }
