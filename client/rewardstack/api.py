"""The public API for trainers: `score`, `compute_score` with the signature that verl expects, and their async versions.

`import rewardstack` loads only this module and what it imports; the first call loads the rest of the package.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar, overload

from rewardstack.core.imports import import_lock
from rewardstack.errors import ConfigError, FailureRateError, ScoringError
from rewardstack.pipeline.arguments import PLURAL, SINGULAR, check_options, check_requests, read_call
from rewardstack.score import OnError, Request, Score

if TYPE_CHECKING:
    from typing_extensions import Unpack

Details = dict[str, float | None]
"""The result of `Score.details`."""
USER_ERRORS = ConfigError, ScoringError, FailureRateError
"""Errors whose message is enough to fix the cause; they are raised without the traceback from the event loop."""
P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=BaseException)

log = logging.getLogger("rewardstack")


class Policy(TypedDict, total=False):
    """The policy for samples without a score (`on_error`) and the time limit of a call (`timeout`, in seconds)."""

    on_error: OnError | None
    timeout: float | None


def score(requests: Iterable[Request], *, on_error: OnError | None = None, timeout: float | None = None) -> list[Score]:
    """Score samples, blocking until all are done.

    Args:
        requests: the samples.
        on_error: policy for samples without a score (`zero`, `lexical`, `none`, `raise`); None for the policy of each
            sample's route.
        timeout: time limit of the call in seconds; None to wait as long as the services make progress.

    Returns:
        One score for each request, in order.

    Raises:
        ConfigError: a `data_source` is unknown, a setting or an argument is malformed, or the run's budget is spent.
        ScoringError: a sample has no score and the policy is `raise`.
        FailureRateError: more of the recent samples failed than `REWARDSTACK_MAX_FAILURE_RATE` allows.
        LoopError: the caller runs on the client's own event loop, or the process is exiting.
    """
    check_options(on_error, timeout)
    return _score(check_requests(requests), on_error, timeout)


async def ascore(
    requests: Iterable[Request], *, on_error: OnError | None = None, timeout: float | None = None
) -> list[Score]:
    """Score samples without blocking the running event loop; see `score`."""
    check_options(on_error, timeout)
    return await _ascore(check_requests(requests), on_error, timeout)


@overload
def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    details: Literal[False] = False,
    **options: Unpack[Policy],
) -> float | None: ...
@overload
def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    details: Literal[True],
    **options: Unpack[Policy],
) -> Details: ...
@overload
def compute_score(
    *,
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    details: Literal[False] = False,
    **options: Unpack[Policy],
) -> list[float | None]: ...
@overload
def compute_score(
    *,
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    details: Literal[True],
    **options: Unpack[Policy],
) -> list[Details]: ...
@overload
def compute_score(*args: Any, **options: Any) -> Any: ...
def compute_score(
    data_source: Any = None,
    solution_str: Any = None,
    ground_truth: Any = None,
    extra_info: Any = None,
    *,
    data_sources: Any = None,
    solution_strs: Any = None,
    ground_truths: Any = None,
    extra_infos: Any = None,
    **options: Any,
) -> Any:
    """Return the reward of one sample, or the rewards of a batch if you pass plural arguments or lists.

    Args:
        data_source: the name of the sample's data set, which selects the route (how to score the sample).
        solution_str: the response, as a string or as chat messages; only the last assistant turn is scored.
        ground_truth: a reference, or a list of references. Either may be inside an object, as `{"target": …}`.
        extra_info: options of the scorer, and `server_url`, `api_key` and `timeout` (seconds) for this sample.
        data_sources: one per sample, or one for all.
        solution_strs: one per sample.
        ground_truths: one per sample, or None.
        extra_infos: one per sample, one for all, or None.
        options: `details` (True to return a dict per sample in place of a number), and `on_error` and `timeout` as in
            `score`.

    Returns:
        The reward as a float, or a list of rewards for a batch. With `details=True`, each reward is the dict
        `Score.details`. With `on_error="none"`, a missing reward is None.

    Raises:
        ConfigError, ScoringError, FailureRateError, LoopError: see `score`.
    """
    singular = data_source, solution_str, ground_truth, extra_info
    plural = data_sources, solution_strs, ground_truths, extra_infos
    call = read_call(singular, plural, options)
    return call.rewards(_score(call.requests, call.on_error, call.timeout))


@overload
def compute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    *,
    details: Literal[False] = False,
    **options: Unpack[Policy],
) -> list[float | None]: ...
@overload
def compute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    *,
    details: Literal[True],
    **options: Unpack[Policy],
) -> list[Details]: ...
@overload
def compute_score_batched(*args: Any, **options: Any) -> list[Any]: ...
def compute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    **options: Any,
) -> list[Any]:
    """Return the rewards of a batch, in order; see `compute_score` for arguments, results and errors."""
    batch = {"data_sources": data_sources, "solution_strs": solution_strs}
    rewards: list[Any] = compute_score(**batch, ground_truths=ground_truths, extra_infos=extra_infos, **options)
    return rewards


def _awaitable(blocking: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return the async version of `compute_score` or `compute_score_batched`, with the same signature and types."""
    parameters = signature(blocking)

    @wraps(blocking)
    async def async_version(*args: P.args, **kwargs: P.kwargs) -> R:
        arguments = parameters.bind(*args, **kwargs).arguments
        singular, plural = ([arguments.get(name) for name in names] for names in (SINGULAR, PLURAL))
        call = read_call(singular, plural, arguments.get("options", {}))
        rewards: R = call.rewards(await _ascore(call.requests, call.on_error, call.timeout))
        return rewards

    async_version.__name__ = async_version.__qualname__ = f"a{blocking.__name__}"
    async_version.__doc__ = f"Call `{blocking.__name__}` without blocking the running event loop."
    return async_version


acompute_score = _awaitable(compute_score)
acompute_score_batched = _awaitable(compute_score_batched)


def register_route(name: str, spec: object) -> None:
    """Add a route to this process's route table.

    Args:
        name: the `data_source` that the route matches; a `data_source` that begins with `NAME_` matches too.
        spec: another route's name, or a table as in a routes file (`docs/routing.md`).

    Raises:
        RouteError: the definition is malformed, or a route of this name exists.
    """
    with import_lock:
        from rewardstack.client import register
        from rewardstack.routing.syntax import parse_route
    register(parse_route(name, spec))


def register_judge(name: str, table: Mapping[str, Any]) -> None:
    """Add a judge to this process's route table, as a route of the same name.

    Args:
        name: the `data_source` that the judge scores, as in `register_route`.
        table: the judge's fields, as in the table `[judges.NAME]` of a routes file (`docs/routing.md`).

    Raises:
        RouteError: the definition is malformed, or a route of this name exists.
    """
    with import_lock:
        from rewardstack.client import register
        from rewardstack.routing.judges import parse_judge
        from rewardstack.routing.syntax import judge_route
    register(judge_route(parse_judge(name, table)))


def register_reward_model(name: str, table: Mapping[str, Any]) -> None:
    """Add a reward model to this process's route table, as a route of the same name.

    Args:
        name: the `data_source` that the reward model scores, as in `register_route`.
        table: the model's fields, as in the table `[reward_models.NAME]` of a routes file (`docs/reward_models.md`).

    Raises:
        RouteError: the definition is malformed, or a route of this name exists.
    """
    with import_lock:
        from rewardstack.client import register
        from rewardstack.routing.syntax import reward_model_route
    register(reward_model_route(name, table))


def check_groups(requests: Sequence[Request], remedy: str, threads: int | None = None) -> None:
    """Check that each judge that compares the responses to one prompt (a group) gets complete groups.

    Args:
        requests: the samples of a batch.
        remedy: the trainer's setting that keeps a group together; added to the error message.
        threads: number of threads that each score one sample at a time; None if the batch is scored in one call.

    Raises:
        RequestError: a judge that compares groups would get an incomplete group, or no `group_size` is set.
        ConfigError: a route is unknown, or a setting is malformed.
    """
    with import_lock:
        from rewardstack import client
        from rewardstack.settings import Settings
    client.check_groups(requests, Settings.from_env(), remedy, threads)


def _score(requests: list[Request], on_error: OnError | None, timeout: float | None) -> list[Score]:
    """Return the scores under the current settings; the caller has validated the arguments."""
    with import_lock:
        from rewardstack.client import score_on_loop
        from rewardstack.core.event_loop import run
        from rewardstack.settings import Settings
    try:
        return run(score_on_loop(requests, Settings.from_env(), on_error, timeout))
    except USER_ERRORS as error:
        raise _without_traceback(error) from error.__cause__


async def _ascore(requests: list[Request], on_error: OnError | None, timeout: float | None) -> list[Score]:
    """Return the scores without blocking the running event loop; see `_score`."""
    with import_lock:
        from rewardstack.client import score_on_loop
        from rewardstack.core.event_loop import run_async
        from rewardstack.settings import Settings
    try:
        return await run_async(score_on_loop(requests, Settings.from_env(), on_error, timeout))
    except USER_ERRORS as error:
        raise _without_traceback(error) from error.__cause__


def _without_traceback(error: E) -> E:
    """Log an error's traceback at level DEBUG, and return the error without it."""
    log.debug("traceback of the error", exc_info=True)
    return error.with_traceback(None)
