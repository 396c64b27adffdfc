"""verl from 0.8 on: the reward of each sample by the route of its `data_source`, and beside it what became of it.

    reward.custom_reward_function.path=pkg://rewardstack.trainers.verl
    reward.custom_reward_function.name=compute_score

The managers `naive`, `dapo`, `gdpo` and `rate_limited` await `compute_score`; `remote`, which refuses a coroutine, has
`compute_score_sync`. verl calls by keyword, one sample a call, and makes `reward_extra_info` of the dict that it gets,
in which every sample must have the same keys (`verl/experimental/reward_loop` of 0.9.1). It may load this file by its
path, hence the absolute imports. What one of its workers asks for at about the same time is scored together. For 0.7
and before there is `rewardstack.trainers.verl_legacy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.core.arguments import warn_of_unknown
from rewardstack.core.batching import Batcher, BatchKey
from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.json_types import plain
from rewardstack.errors import RequestError, ScoringError
from rewardstack.score import OnError, Request, Score
from rewardstack.trainers.columns import names_of, options_of

Reward = float | dict[str, Any]
REMEDY = (
    "a sample without a score would be None, of which verl makes no tensor (TypeError in assemble_rm_scores); choose "
    "zero, which tells `failed` or `unscored` beside it, or lexical or raise"
)


class Arguments:
    """What a call has beside the sample: of the configuration, `custom_reward_function.reward_kwargs.NAME=VALUE`.

    Args:
        details: whether a reward is a dict, with `score` and how it came about; else it is a number.
        parts: names of a reward's parts that the dict has as well, such as `algorithm.gdpo_reward_keys` asks for; 0
            where there is no score.
        options: of the route, for every sample whose `extra_info` does not say otherwise; null says nothing.
        on_error: what a sample without a score is worth (`zero`, `lexical`, `raise`); None: as its route says.
        timeout: seconds after which the call ends whatever happens; None: as long as services make progress.
        others: verl's own, which no route needs; those that are not known are told in a warning.

    Raises:
        RequestError: `on_error` is "none".
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
        warn_of_unknown("reward_kwargs:", others)
        if on_error == "none":
            raise RequestError(f"on_error: none does not go with verl: {REMEDY}", "on_error")
        self._details, self._parts, self._options = details, names_of(parts, "parts"), plain(options or {})
        self.on_error, self.timeout = on_error, timeout

    def request(self, source: str, solution: Any, truth: Any, extra: Mapping[str, Any] | None) -> Request:
        """The sample that verl hands over."""
        return Request(source, solution, truth, options_of(extra, self._options))

    def reward(self, score: Score) -> Reward:
        """What verl takes of a score.

        Raises:
            RequestError: there is no value, as its route has it, or no part of a name in `parts`.
        """
        if score.value is None:
            raise RequestError(f"{score.source}: its route has on_error = none: {REMEDY}", "on_error")
        if not self._details:
            return score.value
        parts = {name: _part(score, name) for name in self._parts}
        return {**parts, **score.details}


async def compute_score(
    data_source: str,
    solution_str: Any,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Reward:
    """The reward of one sample, to be awaited.

    Args:
        data_source: names the route; `reward_kwargs.data_source=llm_judge_remote` has every sample judged.
        solution_str: what the policy wrote.
        ground_truth: a reference or a list of references.
        extra_info: of the row, with the options of its route.
        arguments: as `Arguments` has them.

    Raises:
        RequestError: as `Arguments` does.
        ConfigError, ScoringError: as `rewardstack.ascore` does.
    """
    call = Arguments(**arguments)
    request = call.request(data_source, solution_str, ground_truth, extra_info)
    options = call.on_error, call.timeout
    outcome = await _batcher.ask_one((request, options), BatchKey(name=options))
    if isinstance(outcome, ScoringError):
        raise outcome
    return call.reward(outcome)


def compute_score_sync(
    data_source: str,
    solution_str: Any,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Reward:
    """`compute_score` for the manager `remote`, whose processes block: the same arguments, result and errors."""
    call = Arguments(**arguments)
    requests = [call.request(data_source, solution_str, ground_truth, extra_info)]
    scores = api.score(requests, on_error=call.on_error, timeout=call.timeout)
    return call.reward(scores[0])


async def _scores(
    calls: Sequence[tuple[Request, tuple[OnError | None, float | None]]], _: SharedDeadline
) -> Sequence[Score | ScoringError]:
    """A score for each, or the error of one that ends in one: nothing is asked again for it, nor for its company."""
    on_error, timeout = calls[0][1]
    try:
        return await api.ascore([request for request, _ in calls], on_error=on_error, timeout=timeout)
    except ScoringError as error:
        return [one if one.value is not None else ScoringError.about(0, [one]) for one in error.scores]


_batcher = Batcher(_scores, window=0.002)


def _part(score: Score, name: str) -> float:
    known = score.parts or {}
    if score.status == "ok" and name not in known:
        there = ", ".join(known) or "none"
        raise RequestError(f"parts: {score.source} has no part {name!r}, but {there}: name these or no parts", "parts")
    return known.get(name, 0.0)
