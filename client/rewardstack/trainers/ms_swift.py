"""Rewards for ms-swift's GRPO, by a plugin of one line each:

    from rewardstack.trainers.ms_swift import register

    register("gsm8k", "gsm8k")
    register("judge", "llm_judge_remote")

of which its options name the file and the rewards: `--external_plugins plugin.py --reward_funcs gsm8k judge`.

ms-swift calls `f(completions, messages=…, trainer_state=…, <a list for each column of the data set>)`
(`compute_rewards_per_func` in `swift/rl_core/grpo_algorithm.py`, 4.6). It takes None for a row, too, but sums with
`nansum`: a missing reward would count as 0, hence it is an error here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from rewardstack import api
from rewardstack.errors import RequestError, ScoringError
from rewardstack.score import OnError
from rewardstack.trainers.columns import Columns, names_of

REMEDY = "give reference=None if none is needed"
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
    """Gives ms-swift's `--reward_funcs` a name.

    Args:
        name: for `--reward_funcs`, and of the reward in the logs.
        data_source: names the route; None: the data set's column `data_source` does, row by row.
        reference: the column that holds references; None where the route needs none.
        columns: further ones that the route reads, as fields of `extra_info`.
        extra_info: the same for every row; the data set's column of this name goes before it, and `columns` before
            both. What the user said last is there as `question`.
        on_error: what a row without a score is worth: an error (`raise`), a `lexical` score or a `zero`.
        timeout: seconds after which a batch ends whatever happens; None: as long as services make progress.

    Raises:
        RequestError: `on_error` is `none`.
    """
    from swift.rewards import orms

    read = Columns(data_source, reference, names_of(columns, "columns"), dict(extra_info or {}), REMEDY)
    made = reward(name, read, on_error, timeout)
    orms[name] = lambda args=None: made


def reward(name: str, columns: Columns, on_error: OnError, timeout: float | None) -> Reward:
    """The function that ms-swift awaits; arguments as `register` has them.

    Raises:
        RequestError: `on_error` is `none`.
        ScoringError: by the function: a row has no reward. It names the row and the cause.
    """
    if on_error == "none":
        raise RequestError(f"on_error: {COUNTS_AS_ZERO}; give raise, lexical or zero", "on_error")

    async def rewards(completions: Sequence[str], messages: Sequence[Any], **given: Any) -> list[float | None]:
        requests = columns.requests(messages, completions, given)
        try:
            return [one.value for one in await api.ascore(requests, on_error=on_error, timeout=timeout)]
        except ScoringError as error:
            _end(name, error)

    rewards.__name__ = name
    return rewards


def _end(name: str, error: ScoringError) -> NoReturn:
    remedy = f"mend its cause, or have it count as 0 by register({name!r}, ..., on_error='zero')"
    raise ScoringError(f"reward {name}: {error}. {COUNTS_AS_ZERO}, so it ends here: {remedy}", error.scores) from error
