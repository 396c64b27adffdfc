"""Rewards for ms-swift's GRPO, from a plugin with one line per reward:

    from rewardstack.trainers.ms_swift import register

    register("gsm8k", "gsm8k")
    register("judge", "llm_judge_remote")

The second argument is the route, i.e. how to score. Pass the plugin and the names of the rewards as
`--external_plugins plugin.py --reward_funcs gsm8k judge`.

ms-swift calls `f(completions, messages=…, trainer_state=…, <a list per column of the data set>)`
(`compute_rewards_per_func` in `swift/rl_core/grpo_algorithm.py`, 4.6). ms-swift accepts None, but sums with `nansum`,
so a missing reward would count as 0. The functions here raise an error instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.errors import RequestError, ScoringError
from rewardstack.score import OnError
from rewardstack.trainers.columns import Columns, names_of

GROUPS = "set per_device_train_batch_size to a multiple of num_generations, and group_size to num_generations"
"""What to do if a prompt's completions are divided over processes."""
COUNTS_AS_ZERO = "ms-swift counts a missing reward as 0"

Reward = Callable[..., Awaitable[list[float | None]]]


def register(
    name: str,
    data_source: str | None = None,
    *,
    reference: str | None = "solution",
    columns: Iterable[str] = (),
    extra_info: Mapping[str, Any] | None = None,
    on_error: OnError = "raise",
    timeout: float | None = None,
) -> None:
    """Register a reward function for `--reward_funcs`.

    Args:
        name: the name for `--reward_funcs` and in the logs.
        data_source: the route; None to read it from the column `data_source` of each row.
        reference: the column with the references; None if the route needs none.
        columns: further columns that become fields of `extra_info` for the route.
        extra_info: fields of `extra_info` for every row. The user's last message is added as `question`. The data
            set's column `extra_info` takes precedence over these fields, and `columns` over both.
        on_error: reward of a row without a score: an error (`raise`), a `lexical` score or `zero`.
        timeout: seconds after which scoring of a batch ends; None to wait as long as services make progress.

    Raises:
        RequestError: `on_error` is `none`, or `columns` is a string.
    """
    from swift.rewards import orms

    read = Columns(data_source, reference, names_of(columns, "columns"), dict(extra_info or {}))
    function = reward(name, read, on_error, timeout)
    orms[name] = lambda args=None: function


def reward(name: str, columns: Columns, on_error: OnError, timeout: float | None) -> Reward:
    """Return the function that ms-swift awaits; `columns` says which columns to read, the rest is as in `register`.

    The function raises `ScoringError`, with the row and the cause, if a row has no reward.

    Raises:
        RequestError: `on_error` is `none`.
    """
    if on_error == "none":
        raise RequestError(f"on_error: {COUNTS_AS_ZERO}; give raise, lexical or zero", "on_error")

    async def rewards(completions: Sequence[str], messages: Sequence[Any], **given: Any) -> list[float | None]:
        requests = columns.requests(messages, completions, given, given.get("response_token_ids"))
        api.check_groups(requests, GROUPS)
        try:
            return [one.value for one in await api.ascore(requests, on_error=on_error, timeout=timeout)]
        except ScoringError as error:
            remedy = f"fix the cause, or accept a 0 by register({name!r}, ..., on_error='zero')"
            message = f"reward {name}: {error}. {COUNTS_AS_ZERO}, so the run ends: {remedy}"
            raise ScoringError(message, error.scores) from error

    rewards.__name__ = name
    return rewards
