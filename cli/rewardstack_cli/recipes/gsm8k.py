"""`rewardstack prepare gsm8k`: the word problems of GSM8K for the rule `gsm8k`.

As in verl's `examples/data_preprocess/gsm8k.py`, each question ends with an instruction, and the answer is the number
after `####`, without commas.
"""

from __future__ import annotations

import argparse
import re
from random import Random
from typing import Any

from rewardstack_cli.data.rows import Row
from rewardstack_cli.recipes.dataset import read_dataset, read_text, row_error
from rewardstack_cli.recipes.prepared import DroppedRows, Prepared, split_by_share

NAME = "gsm8k"
HUB = "openai/gsm8k"
TEST_SHARE_HELP = "share of the rows in the test split, if the input has no test split"
CONFIG = "main"
INSTRUCTION = 'Let\'s think step by step and output the final answer after "####".'
METHODS = ("strict", "flexible")
ANSWER_MARK = "####"
NUMBER = re.compile(r"-?[0-9]{1,64}(?:\.[0-9]{1,64})?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this recipe."""
    parser.add_argument(
        "--instruction", metavar="TEXT", default=INSTRUCTION, help="text after each question (%(default)s)"
    )
    parser.add_argument(
        "--method", choices=METHODS, default="strict", help="how the rule finds the answer (%(default)s)"
    )


def prepare(args: argparse.Namespace) -> Prepared:
    """Return the rows for trainers.

    A row with a known split stays in it. The other rows all go into the train split if the input has a test split;
    otherwise, they are divided by `--test-share`.

    Raises:
        RewardstackError: the input cannot be read, or a row is malformed.
    """
    source = read_dataset(args.input, CONFIG)
    dropped, seen = DroppedRows(), set()
    rows_by_split: dict[str | None, list[Row]] = {"train": [], "test": [], None: []}
    for split, row in source.rows:
        question = " ".join(read_text(row, "question").split())
        _parse_answer(row)
        if not question or question in seen:
            dropped.add("the question was read before" if question else "the question is empty", row)
            continue
        seen.add(question)
        rows_by_split[split].append(row)
    new_splits = split_by_share(rows_by_split[None], 0 if rows_by_split["test"] else args.test_share, Random(args.seed))
    splits: dict[str, list[dict[str, Any]]] = {}
    for split, rows in new_splits.items():
        numbered = enumerate([*rows_by_split[split], *rows])
        splits[split] = [_make_row(split, index, row, args.instruction, args.method) for index, row in numbered]
    settings = {"data_source": NAME, "instruction": args.instruction, "method": args.method}
    return Prepared([source], splits, settings, dropped)


def _parse_answer(row: Row) -> str:
    """Return the number after the last `####` of a solution.

    Raises:
        RequestError: there is no `####`, or no number follows it.
    """
    solution = read_text(row, "answer")
    _, marker, text_after = solution.rpartition(ANSWER_MARK)
    number = text_after.strip().replace(",", "").removeprefix("$")
    if not marker or not NUMBER.fullmatch(number):
        shown = f"{text_after.strip()[:40]!r}" if marker else "none"
        raise row_error(row, "answer", f"must end with `{ANSWER_MARK} NUMBER`, found {shown}")
    return number


def _make_row(split: str, index: int, row: Row, instruction: str, method: str) -> dict[str, Any]:
    question, answer = read_text(row, "question").strip(), read_text(row, "answer")
    return {
        "data_source": NAME,
        "prompt": [{"role": "user", "content": f"{question} {instruction}".strip()}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": _parse_answer(row)},
        "extra_info": {"split": split, "index": index, "question": question, "answer": answer, "method": method},
    }
