"""Compute statistics of verified responses, per task and in total, as NeMo Gym's `nemo_gym/reward_profile.py` does.

The statistics have the same names and order as in NeMo Gym's `compute_aggregate_metrics`, and a statistic is omitted
in the same cases. Unlike NeMo Gym, this module does not need pandas.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewardstack_rules.http.errors import ApiError
from rewardstack_rules.http.protocols.body import json_type

TASK, ROLLOUT, REWARD = "_ng_task_index", "_ng_rollout_index", "reward"
FAILURE = "_ng_failure_class"
MAX_NUMBER = 1e150
"""Largest absolute value of a number in a response. Squares of larger numbers would overflow a float."""

Row = dict[str, float]


def aggregate(responses: Sequence[Any]) -> dict[str, Any]:
    """Return `group_level_metrics` (a record per task), `agent_metrics` (of all responses) and `key_metrics`.

    `key_metrics` has the means of `agent_metrics`.

    Args:
        responses: replies of `/verify`, each with the index of its task and of its rollout; both default to 0. In the
            field `response`, only `usage` is read.

    Raises:
        ApiError: 400; a response is not an object, has an invalid number, or has the indices of an earlier response.
    """
    tasks: dict[int, dict[int, tuple[Row, Row]]] = defaultdict(dict)
    for at, response in enumerate(responses):
        where = f"verify_responses[{at}]"
        if not isinstance(response, dict):
            raise ApiError(400, f"{where} must be an object, got {json_type(response)}", where)
        task, rollout = (_index(response, name, where) for name in (TASK, ROLLOUT))
        if rollout in tasks[task]:
            message = f"{where} is a duplicate of task {task}, rollout {rollout}; give each response its own {ROLLOUT}"
            raise ApiError(400, message, f"{where}.{ROLLOUT}")
        tasks[task][rollout] = _response_numbers(response, where)
    in_order = {task: dict(sorted(tasks[task].items())) for task in sorted(tasks)}
    groups = [_group(task, rollouts) for task, rollouts in in_order.items()]
    overall = _statistics([row for rollouts in tasks.values() for row, _ in rollouts.values()])
    means = {name: value for name, value in overall.items() if name.startswith("mean/")}
    return {"group_level_metrics": groups, "agent_metrics": overall, "key_metrics": means}


def _group(task: int, rollouts: Mapping[int, tuple[Row, Row]]) -> dict[str, Any]:
    count = len(rollouts)
    place = {"sample": {"agent_ref": {"name": "agent"}}, "num_rollouts": count, "expected_num_rollouts": count}
    complete = {"missing_num_rollouts": 0, "reward_profile_completion_pct": 100.0}
    infos = [
        {"rollout_id": f"{task}:{rollout}", TASK: task, ROLLOUT: rollout, **rollouts[rollout][1]}
        for rollout in rollouts
    ]
    computed = _statistics([row for row, _ in rollouts.values()])
    return {TASK: task, **computed, **place, **complete, "rollout_infos": infos}


def _statistics(rows: Sequence[Row]) -> dict[str, float]:
    """Return each statistic of each field, with names such as `mean/reward`.

    The standard deviation is omitted for a field that only one of several rows has.
    """
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    found = {}
    for statistic, compute in STATISTICS.items():
        for name, values in columns.items():
            if statistic != "std" or len(values) > 1 or len(rows) == 1:
                found[f"{statistic}/{name}"] = float(compute(values))
    return found


def _deviation(values: Sequence[float]) -> float:
    """Return the sample standard deviation of values; 0 for a single value."""
    middle = statistics.fmean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / max(len(values) - 1, 1))


STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "max": max,
    "min": min,
    "median": statistics.median,
    "std": _deviation,
}


def _response_numbers(response: Mapping[str, Any], where: str) -> tuple[Row, Row]:
    """Return the numbers of a response twice: in NeMo Gym's order for statistics, and in its order for `rollout_infos`.

    The reward of a failed sample is omitted, because NeMo Gym's collector excludes such samples.
    """
    own = _numbers({name: value for name, value in response.items() if name not in (TASK, ROLLOUT)}, f"{where}.")
    if response.get(FAILURE):
        own.pop(REWARD, None)
    inner = response.get("response")
    usage = inner.get("usage") if isinstance(inner, dict) else None
    used = _numbers(usage, f"{where}.response.usage.") if isinstance(usage, dict) else {}
    reward = {REWARD: own[REWARD]} if REWARD in own else {}
    return {**own, **used}, {**reward, **used, **own}


def _numbers(fields: Mapping[str, Any], within: str) -> Row:
    found = {}
    for name, value in fields.items():
        if isinstance(value, (int, float)):
            if not abs(value) <= MAX_NUMBER:
                raise ApiError(
                    400, f"{within}{name} must be a number from -{MAX_NUMBER:g} to {MAX_NUMBER:g}", within + name
                )
            found[name] = int(value) if isinstance(value, bool) else value
    return found


def _index(response: Mapping[str, Any], name: str, where: str) -> int:
    value = response.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ApiError(400, f"{where}.{name} must be an integer, got {json_type(value)}", f"{where}.{name}")
    return value
