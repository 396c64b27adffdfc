"""Read the file of golden responses: rows with `question` and `answer`, as a JSON list or one per line (`.jsonl`).

An `answer` is one or several references, in any format of `ground_truth`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rewardstack.errors import RequestError, SettingsError
from rewardstack.pipeline.items import parse_references
from rewardstack_rules.golden.responses import Answer, GoldenResponses


def load_golden(path: Path | None, threshold: float) -> GoldenResponses:
    """Return the golden responses of a file.

    Args:
        path: the file; None for an empty set of golden responses.
        threshold: minimum similarity between a prompt and its nearest question, from 0 to 1.

    Raises:
        SettingsError: the file cannot be read, or a row is malformed; the message names the file and the row.
    """
    if path is None:
        return GoldenResponses((), threshold)
    try:
        text = path.read_text("utf-8")
        rows = [json.loads(line) for line in text.split("\n") if line.strip()] if _is_jsonl(path) else json.loads(text)
    except (OSError, ValueError) as error:
        raise SettingsError(f"DATASET_PATH: {path} cannot be read: {error}", "DATASET_PATH") from error
    if not isinstance(rows, list):
        raise SettingsError(f"DATASET_PATH: {path} must hold a list of rows", "DATASET_PATH")
    return GoldenResponses((_row(path, number, row) for number, row in enumerate(rows, 1)), threshold)


def _is_jsonl(path: Path) -> bool:
    return path.suffix == ".jsonl"


def _row(path: Path, number: int, row: Any) -> tuple[str, Answer]:
    try:
        question, answer = row["question"], parse_references(row["answer"])
    except (KeyError, TypeError, RequestError) as error:
        raise SettingsError(
            f"DATASET_PATH: row {number} of {path} is malformed; it needs question (a string) and answer (a reference, "
            "or a list of references)",
            "DATASET_PATH",
        ) from error
    if not isinstance(question, str):
        raise SettingsError(f"DATASET_PATH: row {number} of {path}: question must be a string", "DATASET_PATH")
    return question, answer
