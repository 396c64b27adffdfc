"""Which references a sample has, and which of them the filters of `extra_info` leave."""

from __future__ import annotations

import json
from collections import UserList
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewardstack.errors import RequestError
from rewardstack.pipeline.items import filter_references, parse_references
from tests.support.table import Table

CASES = json.loads((Path(__file__).resolve().parents[1] / "cases" / "references.json").read_text())
FRUIT = ("red apple", "green pear", "pear")


def test_references_of_a_ground_truth(table: Table) -> None:
    """A ground truth holds its strings and numbers in order; what is blank or missing is no reference."""
    for case in CASES["held"]:
        with table.case(repr(case["ground_truth"])):
            assert tuple(case["references"]) == parse_references(case["ground_truth"])


LOADED: list[tuple[Any, tuple[str, ...]]] = [
    (("a", "b"), ("a", "b")),
    (np.array(["a", "b"]), ("a", "b")),
    (np.array(["a", None], dtype=object), ("a",)),
    (np.array("a"), ("a",)),
    (np.array([]), ()),
    (np.str_("a"), ("a",)),
    (np.int64(7), ("7",)),
    (np.float64(0.5), ("0.5",)),
    ([np.float32(0.5), np.int32(1)], ("0.5", "1")),
    (np.float32(0.1), ("0.1",)),
    (np.array([3.14, 0.1], np.float16), ("3.14", "0.1")),
    (np.array(0.1, np.float32), ("0.1",)),
    ({"target": np.array([[3.14]], np.float32)[0]}, ("3.14",)),
    (UserList(["a", "b"]), ("a", "b")),
    (float("nan"), ()),
    (["a", np.float64("nan")], ("a",)),
    ({"target": np.array(["a", "b"])}, ("a", "b")),
    (np.array({"target": np.array(["a"], dtype=object)}, dtype=object), ("a",)),
]


def test_references_from_a_data_loader(table: Table) -> None:
    """Tuples, NumPy arrays and scalars, as data loaders pass them, are read like lists and numbers; NaN is missing."""
    for ground_truth, references in LOADED:
        with table.case(f"{type(ground_truth).__name__} {ground_truth!r}"):
            assert references == parse_references(ground_truth)


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: repr(case["ground_truth"]))
def test_ground_truth_of_another_kind(case: dict[str, Any]) -> None:
    """A ground truth that is neither text nor number is refused by field and type."""
    with pytest.raises(RequestError, match=f"^ground_truth: expected .* got {case['type']}$"):
        parse_references(case["ground_truth"])


@pytest.mark.parametrize("case", CASES["without a target"], ids=lambda case: repr(case["ground_truth"]))
def test_object_without_a_target(case: dict[str, Any]) -> None:
    """An object that does not say which of its fields is the reference is refused, with what it has and the remedy."""
    with pytest.raises(RequestError) as raised:
        parse_references(case["ground_truth"])

    assert "ground_truth" == raised.value.field
    expected = f"needs the field 'target', but this object has {case['names']}; put the reference into 'target'"
    assert expected in str(raised.value)


def test_number_that_python_does_not_write() -> None:
    """An integer beyond what Python writes in digits is refused as any other unusable ground truth is."""
    with pytest.raises(RequestError, match="^ground_truth: "):
        parse_references(10**5000)


def test_filters(table: Table) -> None:
    """The filters leave what they name, in order; one that would leave nothing leaves all."""
    for case in CASES["filters"]:
        with table.case(case["name"]):
            assert tuple(case["chosen"]) == filter_references(FRUIT, case["extra_info"])


def test_targets_in_an_array() -> None:
    """`target_gt` may be a NumPy array."""
    assert ("green pear", "pear") == filter_references(FRUIT, {"target_gt": np.array(["pear", "green pear"])})


def test_target_of_another_kind() -> None:
    """A target that is no text is refused by its own name, not the ground truth's."""
    with pytest.raises(RequestError, match=r"^extra_info\.target_gt: expected .* got dict$"):
        filter_references(FRUIT, {"target_gt": [{"answer": "pear"}]})
