"""What TRL and ms-swift hand to a reward function, read as requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewardstack.errors import RequestError
from rewardstack.score import Request
from rewardstack.trainers.columns import Columns

CASES = json.loads((Path(__file__).resolve().parents[2] / "cases/trainer_columns.json").read_text())
NOTHING: dict[str, Any] = {"data_source": None, "reference": None, "fields": (), "extra_info": {}, "remedy": "do this"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_columns(case: dict[str, Any]) -> None:
    """A row's columns become its request, or the one that is missing is named with the remedy."""
    columns = Columns(**{**NOTHING, **case["columns"]})
    given = {name: [value, value] for name, value in case["row"].items()}

    def read() -> list[Request]:
        return columns.requests([case["prompt"]] * 2, [case["completion"]] * 2, given)

    if "refused" in case:
        with pytest.raises(RequestError, match=case["refused"]):
            read()
    else:
        assert [Request(*case["request"])] * 2 == read()
