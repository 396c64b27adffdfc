"""verl: a reward function that scores each sample and logs its status.

The `data_source` of a sample names its route (how to score it). Configuration for verl 0.7.1 and later (for earlier
versions, omit `reward.`):

    reward.custom_reward_function.path=pkg://rewardstack.trainers.verl
    reward.custom_reward_function.name=compute_score

The function to name depends on verl's reward manager:

- `naive`, `dapo`, `gdpo` and `rate_limited`: `compute_score`, which is async.
- `remote`, and all managers up to verl 0.7.0 except `batch`: `compute_score_sync`.
- `batch` of verl 0.7.0: `compute_score_batched`.

verl makes a column of `reward_extra_info` from each key of the returned dicts. Therefore the dicts of all samples have
the same keys. Calls that a worker makes at about the same time are scored as one batch. Imports are absolute, because
verl may load this file by its path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.core.batching import Batcher, BatchKey
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.json_types import plain
from rewardstack.core.misspellings import warn_of_unknown
from rewardstack.errors import FailureRateError, RequestError, ScoringError
from rewardstack.score import OnError, Request, Score
from rewardstack.trainers.columns import as_names, as_options, count_samples, get_column, merge_options

Reward = float | dict[str, Any]
REMEDY = (
    "verl cannot make a tensor of None, the reward of a sample without a score (TypeError in assemble_rm_scores); use "
    "zero (which also sets `failed` or `unscored`), lexical or raise"
)


class Arguments:
    """The arguments of a call besides the sample; set them as `custom_reward_function.reward_kwargs.NAME=VALUE`.

    Args:
        details: whether to return a dict with `score`, `acc`, the status and more instead of a number.
        parts: names of parts of the reward to add to the dict, e.g. for `algorithm.gdpo_reward_keys`. If a sample's
            status is not `ok`, the parts that it lacks are 0.
        options: default options of the route; the sample's `extra_info` takes precedence.
        on_error: policy for samples without a score (`zero`, `lexical`, `raise`); None for the route's policy.
        timeout: time limit of a call in seconds; None for no limit besides the timeouts of the services.
        others: further arguments, which are ignored; a warning names them, except those that verl itself adds.

    Raises:
        RequestError: `on_error` is "none", or an argument has the wrong type.
    """

    def __init__(
        self,
        *,
        details: bool = True,
        parts: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        on_error: OnError | None = None,
        timeout: float | None = None,
        **others: Any,
    ) -> None:
        warn_of_unknown("reward_kwargs:", others, ("details", "parts", "options", "on_error", "timeout"))
        if on_error == "none":
            raise RequestError(f"on_error: none is not supported with verl: {REMEDY}", "on_error")
        self._details, self._parts = details, as_names(parts, "parts")
        self._options = plain(as_options(options, "options"))
        self.on_error, self.timeout = on_error, timeout

    def request(self, source: str, solution: Any, truth: Any, extra: Mapping[str, Any] | None) -> Request:
        """Return the request that scores one sample."""
        return Request(source, solution, truth, merge_options(extra, self._options))

    def reward(self, score: Score) -> Reward:
        """Return the reward in the form that verl accepts.

        Raises:
            RequestError: the sample has no score and its route has `on_error = none`; or the sample's status is `ok`,
                but its score lacks a part that `parts` names.
        """
        if score.value is None:
            raise RequestError(f"{score.source}: the sample's route has on_error = none: {REMEDY}", "on_error")
        if not self._details:
            return score.value
        details = score.details
        return {**{name: _part(score, name) for name in self._parts if name not in details}, **details}


async def compute_score(
    data_source: str,
    solution_str: Any,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Reward:
    """Return the reward of one sample.

    Args:
        data_source: the route; set `reward_kwargs.data_source=llm_judge_remote` to judge every sample.
        solution_str: the response.
        ground_truth: a reference or a list of references.
        extra_info: the row's `extra_info`, with options of the route.
        arguments: see `Arguments`.

    Raises:
        RequestError: see `Arguments`.
        ConfigError, ScoringError, FailureRateError: see `rewardstack.ascore`.
    """
    call = Arguments(**arguments)
    request = call.request(data_source, solution_str, ground_truth, extra_info)
    options = call.on_error, call.timeout
    outcome = await _batcher.ask_one((request, options), BatchKey(name=options))
    if isinstance(outcome, Exception):
        raise outcome
    return call.reward(outcome)


def compute_score_sync(
    data_source: str,
    solution_str: Any,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Reward:
    """Return the reward of one sample, like `compute_score`, for managers that do not support async functions."""
    return compute_score_batched([data_source], [solution_str], [ground_truth], [extra_info], **arguments)[0]


def compute_score_batched(
    data_sources: Sequence[str],
    solution_strs: Sequence[Any],
    ground_truths: Sequence[Any] | None = None,
    extra_infos: Sequence[Mapping[str, Any] | None] | None = None,
    **arguments: Any,
) -> list[Reward]:
    """Return the rewards of a batch in order, like `compute_score`; each list has one value per sample."""
    call = Arguments(**arguments)
    count = count_samples(solution_strs, "solution_strs")
    truths, extras = get_column(ground_truths, count, "ground_truths"), get_column(extra_infos, count, "extra_infos")
    rows = zip(get_column(data_sources, count, "data_sources"), solution_strs, truths, extras, strict=True)
    scores = api.score([call.request(*row) for row in rows], on_error=call.on_error, timeout=call.timeout)
    return [call.reward(score) for score in scores]


async def _scores(
    calls: Sequence[tuple[Request, tuple[OnError | None, float | None]]], _: SharedDeadline
) -> Sequence[Score | Exception]:
    """Return a score, a ScoringError or a FailureRateError for each request.

    These errors are returned, because after an exception the batcher would send each request of the batch again.
    """
    on_error, timeout = calls[0][1]
    try:
        return await api.ascore([request for request, _ in calls], on_error=on_error, timeout=timeout)
    except FailureRateError as error:
        return [error] * len(calls)
    except ScoringError as error:
        return [score if score.value is not None else ScoringError.about(0, [score]) for score in error.scores]


_batcher = Batcher(_scores, window=0.002)


def _part(score: Score, name: str) -> float:
    parts = score.parts or {}
    if score.status == "ok" and name not in parts:
        available = ", ".join(parts) or "none"
        raise RequestError(f"parts: {score.source} has no part {name!r}; available: {available}", "parts")
    return parts.get(name, 0.0)
