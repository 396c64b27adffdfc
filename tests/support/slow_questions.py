"""An entry function for isolated processes, with answers that are never decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardstack_rules.scoring import task

FOR_EVER = "31415926535"
"""The comparison of an answer that contains this text never ends."""


def execute(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of `task.execute`; loop forever if an answer contains `FOR_EVER`."""
    while any(FOR_EVER in answer for answer, *_ in asked.get("questions", ())):
        pass
    return task.execute(asked)
