"""Converts the arguments of `compute_score` to requests, and the scores to the shape that the caller expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.core.deadline import TIMEOUT_RANGE, read_timeout
from rewardstack.core.json_types import is_array
from rewardstack.core.messages import is_conversation
from rewardstack.core.misspellings import warn_of_unknown
from rewardstack.errors import RequestError
from rewardstack.score import ON_ERROR, OnError, Request, Score

SINGULAR = ("data_source", "solution_str", "ground_truth", "extra_info")
"""The arguments of `compute_score` for one sample."""
PLURAL = tuple(f"{name}s" for name in SINGULAR)
"""The arguments of `compute_score` for a batch."""
OPTIONS = ("details", "on_error", "timeout")
"""The other arguments of `compute_score`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `compute_score`.

    Args:
        requests: the samples of the call.
        single: whether the caller expects one reward rather than a list.
        details: whether the caller expects a dict for each sample rather than a number.
        on_error: policy for samples without a score; None for their route's policy.
        timeout: time limit of the call in seconds; None for no limit.
    """

    requests: list[Request]
    single: bool
    details: bool
    on_error: OnError | None
    timeout: float | None

    def rewards(self, scores: Sequence[Score]) -> Any:
        """Return the scores in the shape that the caller expects."""
        rewards = [score.details if self.details else score.value for score in scores]
        return rewards[0] if self.single else rewards


def read_call(singular: Sequence[Any], plural: Sequence[Any], options: Mapping[str, Any]) -> Call:
    """Convert the arguments of `compute_score` to a `Call`.

    Plural arguments mean a batch. A list as `solution_str` means a batch, too, with one exception: a list of chat
    messages is a single response unless `data_source` is a list.

    Args:
        singular: `data_source`, `solution_str`, `ground_truth` and `extra_info`.
        plural: `data_sources`, `solution_strs`, `ground_truths` and `extra_infos`; None for a missing argument.
        options: `details`, `on_error` and `timeout`.

    Raises:
        RequestError: an argument is missing or malformed, or its length does not match.
    """
    data_source, solution_str = singular[:2]
    is_batch = _is_list(solution_str) and (_is_list(data_source) or not is_conversation(solution_str))
    single = all(plural_value is None for plural_value in plural) and not is_batch
    if unknown := options.keys() - {*OPTIONS}:
        given = zip(SINGULAR if single else PLURAL, singular, plural, strict=True)
        absent = [name for name, value, plural_value in given if value is None and plural_value is None]
        warn_of_unknown("compute_score: the argument", unknown, [*absent, *({*OPTIONS} - options.keys())])
    policy = _options(options)
    if single:
        requests = [Request(*singular)]
    else:
        values = [
            plural_value if plural_value is not None else value
            for plural_value, value in zip(plural, singular, strict=True)
        ]
        requests = _batch(*values)
    return Call(requests, single, *policy)


def _batch(sources: Any, solutions: Any, truths: Any, extras: Any) -> list[Request]:
    if not _is_list(solutions):
        got = "missing" if solutions is None else f"got {type(solutions).__name__}"
        raise RequestError(f"solution_strs: expected a list of strings, {got}", "solution_strs")
    count = len(solutions)
    columns = [
        _column(sources, count, "data_sources", shared=isinstance(sources, str)),
        list(solutions),
        _column(truths, count, "ground_truths", shared=truths is None),
        _column(extras, count, "extra_infos", shared=extras is None or isinstance(extras, Mapping)),
    ]
    return [Request(*row) for row in zip(*columns, strict=True)]


def _column(values: Any, count: int, name: str, *, shared: bool) -> list[Any]:
    if shared:
        return [values] * count
    if not _is_list(values):
        raise RequestError(
            f"{name}: expected a list of {count}, got {type(values).__name__}; pass one value per solution", name
        )
    if len(values) != count:
        why = f"expected {count} values, one per solution, got {len(values)}"
        raise RequestError(f"{name}: {why}", name)
    return list(values)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or is_array(value)


def _options(options: Mapping[str, Any]) -> tuple[bool, OnError | None, float | None]:
    on_error, timeout = options.get("on_error"), options.get("timeout")
    check_options(on_error, timeout)
    return bool(options.get("details", False)), on_error, timeout


def check_options(on_error: Any, timeout: Any) -> None:
    """Raise RequestError if the error policy or the timeout is invalid."""
    if on_error is not None and on_error not in ON_ERROR:
        raise RequestError(f"on_error: must be one of {', '.join(ON_ERROR)}, got {on_error!r}", "on_error")
    if timeout is not None and read_timeout(timeout) is None:
        raise RequestError(f"timeout: expected {TIMEOUT_RANGE}, got {timeout!r}", "timeout")


def check_requests(requests: Any) -> list[Request]:
    """Return the requests as a list; raise RequestError if they are not instances of `Request`."""
    items = list(requests) if isinstance(requests, Iterable) else None
    wrong = (
        f"{type(item).__name__} at position {index}"
        for index, item in enumerate(items or ())
        if not isinstance(item, Request)
    )
    got = type(requests).__name__ if items is None else next(wrong, "")
    if items is None or got:
        remedy = "write [Request(data_source, solution_str, ground_truth, extra_info)], or call compute_score"
        raise RequestError(f"requests: expected a list of rewardstack.Request, got {got}; {remedy}", "requests")
    return items
