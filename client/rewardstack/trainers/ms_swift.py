"""ms-swift: rewards for GRPO, from a plugin with one line per reward:

    from rewardstack.trainers.ms_swift import register

    register("gsm8k", "gsm8k")
    register("judge", "llm_judge_remote")

The first argument is the reward's name, the second is the route (how to score). Pass the plugin and the names of the
rewards as `--external_plugins plugin.py --reward_funcs gsm8k judge`.

ms-swift calls `f(completions, messages=…, trainer_state=…, <a list per column of the data set>)`
(`compute_rewards_per_func` in `swift/rl_core/grpo_algorithm.py`, 4.6). It accepts None as a reward, but sums rewards
with `nansum`, so a missing reward would count as 0. The functions here raise an error instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from rewardstack import api
from rewardstack.errors import RequestError, ScoringError
from rewardstack.score import OnError
from rewardstack.trainers.columns import Columns, as_names, as_options, transcript_option

GROUPS = "set group_size to num_generations, and per_device_train_batch_size to a multiple of it"
"""The remedy if a prompt's completions are divided over processes."""
COUNTS_AS_ZERO = "ms-swift counts a missing reward as 0"

Reward = Callable[..., Awaitable[list[float | None]]]


def register(
    name: str,
    data_source: str | None = None,
    *,
    reference: str | None = "solution",
    columns: Iterable[str] = (),
    extra_info: Mapping[str, Any] | None = None,
    tokenizer: Any = None,
    on_error: OnError = "raise",
    timeout: float | None = None,
) -> None:
    """Register a reward function for `--reward_funcs`.

    Args:
        name: the name for `--reward_funcs` and in the logs.
        data_source: the route; None to read it from the column `data_source` of each row.
        reference: the column with the references; None if the route needs none.
        columns: further columns that become fields of `extra_info` for the route.
        extra_info: fields of `extra_info` for every row. The last user message is added as `question`. The data set's
            column `extra_info` takes precedence over these fields, and `columns` over both.
        tokenizer: the policy's tokenizer, whose chat template says how to split completions into turns; None to look
            for any known template.
        on_error: error policy for rows without a score: `raise`, `lexical` or `zero`.
        timeout: time limit for a batch in seconds; None for no limit besides the timeouts of the services.

    Raises:
        RequestError: `on_error` is `none`, or `columns` is a string.
    """
    from swift.rewards import orms

    options = {**transcript_option(tokenizer), **as_options(extra_info, "extra_info")}
    reader = Columns(data_source, reference, as_names(columns, "columns"), options)
    function = reward(name, reader, on_error, timeout)
    orms[name] = lambda args=None: function


def reward(name: str, columns: Columns, on_error: OnError, timeout: float | None) -> Reward:
    """Return the async reward function that `register` registers.

    If a row has no reward, the function raises a ScoringError that names the row and the cause.

    Args:
        name: the reward's name.
        columns: the columns to read.
        on_error: see `register`.
        timeout: see `register`.

    Raises:
        RequestError: `on_error` is `none`.
    """
    if on_error == "none":
        raise RequestError(f"on_error: {COUNTS_AS_ZERO}; choose raise, lexical or zero", "on_error")

    async def rewards(completions: Sequence[str], messages: Sequence[Any], **row_columns: Any) -> list[float | None]:
        requests = columns.requests(messages, completions, row_columns, row_columns.get("response_token_ids"))
        api.check_groups(requests, GROUPS)
        try:
            return [score.value for score in await api.ascore(requests, on_error=on_error, timeout=timeout)]
        except ScoringError as error:
            remedy = f"fix the cause, or accept the reward 0 with register({name!r}, ..., on_error='zero')"
            message = f"reward {name}: {error}. The run ends, because {COUNTS_AS_ZERO}: {remedy}"
            raise ScoringError(message, error.scores) from error

    rewards.__name__ = name
    return rewards
