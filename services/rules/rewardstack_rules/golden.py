"""Golden responses by prompt, for callers that send none.

The file is a JSON list, or has a JSON object a line (`.jsonl`), of rows with `question` and `answer`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rewardstack.errors import SettingsError
from rewardstack.references import as_references

Answer = tuple[str, ...]


class GoldenResponses:
    """Answers by question, looked up without a scan.

    Args:
        rows: (question, answer); an answer is a tuple of references.
    """

    def __init__(self, rows: Iterable[tuple[str, Answer]] = ()) -> None:
        self._exact: dict[str, set[Answer]] = {}
        self._normalised: dict[str, set[Answer]] = {}
        for question, answer in rows:
            self._exact.setdefault(question, set()).add(answer)
            self._normalised.setdefault(_normalise(question), set()).add(answer)

    def find(self, prompt: str) -> list[str] | None:
        """The references for a prompt.

        Args:
            prompt: is looked for as it is, then with its white space normalised.

        Returns:
            The answer's references; None where no question is the prompt, or several with different answers are.
        """
        answers = self._exact.get(prompt) or self._normalised.get(_normalise(prompt)) or set()
        return list(next(iter(answers))) if len(answers) == 1 else None


def _normalise(text: str) -> str:
    return " ".join(text.split())


def load_golden(path: Path | None) -> GoldenResponses:
    """The golden responses of a file; none where there is no file.

    Raises:
        SettingsError: the file cannot be read; the message names the row.
    """
    if path is None:
        return GoldenResponses()
    try:
        text = path.read_text("utf-8")
        rows = [json.loads(line) for line in text.split("\n") if line.strip()] if _is_jsonl(path) else json.loads(text)
    except (OSError, ValueError) as error:
        raise SettingsError(f"DATASET_PATH: {path} cannot be read: {error}", "DATASET_PATH") from error
    if not isinstance(rows, list):
        raise SettingsError(f"DATASET_PATH: {path} must hold a list of rows", "DATASET_PATH")
    return GoldenResponses(_row(path, number, row) for number, row in enumerate(rows, 1))


def _is_jsonl(path: Path) -> bool:
    return path.suffix == ".jsonl"


def _row(path: Path, number: int, row: Any) -> tuple[str, Answer]:
    try:
        question, answer = row["question"], as_references(row["answer"])
    except (KeyError, TypeError) as error:
        raise SettingsError(
            f"DATASET_PATH: row {number} of {path} needs the keys question and answer, a string each", "DATASET_PATH"
        ) from error
    if not isinstance(question, str):
        raise SettingsError(f"DATASET_PATH: row {number} of {path}: question must be a string", "DATASET_PATH")
    return question, answer
