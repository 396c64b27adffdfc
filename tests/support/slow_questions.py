"""What isolated processes run, with a question of mathematics that takes for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardstack_rules.scoring import task

FOR_EVER = "31415926535"
"""An answer that holds it is never decided."""


def execute(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What `task.execute` gives, unless a question takes for ever."""
    while any(FOR_EVER in answer for answer, *_ in asked.get("questions", ())):
        pass
    return task.execute(asked)
