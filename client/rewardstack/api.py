"""What trainers call: `score`, and `compute_score` in the shape that verl and similar trainers use, and async twins.

This module and what it imports are all that `import rewardstack` loads; the first call loads the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar, overload

from rewardstack.core.imports import importing
from rewardstack.pipeline.arguments import check_options, read_call
from rewardstack.score import OnError, Request, Score

if TYPE_CHECKING:
    from typing_extensions import Unpack

Details = dict[str, float | None]
"""The numbers of one sample, as `Score.details` has them."""
SINGULAR = ("data_source", "solution_str", "ground_truth", "extra_info")
PLURAL = tuple(f"{name}s" for name in SINGULAR)
P = ParamSpec("P")
R = TypeVar("R")


class Policy(TypedDict, total=False):
    """What a call may say of samples without a score (`on_error`) and of its end (`timeout`, in seconds)."""

    on_error: OnError | None
    timeout: float | None


def score(requests: Iterable[Request], *, on_error: OnError | None = None, timeout: float | None = None) -> list[Score]:
    """Score samples, blocking until all are done.

    Args:
        requests: the samples.
        on_error: what a sample without a score is worth (`zero`, `lexical`, `none`, `raise`); None: as its route says.
        timeout: seconds after which the call ends whatever happens; None: as long as services make progress.

    Returns:
        One score for each request, in order.

    Raises:
        ConfigError: a source is unknown, or a setting or argument malformed.
        ScoringError: a sample has no score and the policy is `raise`.
        LoopError: called on the client's own event loop.
    """
    check_options(on_error, timeout)
    return _score(list(requests), on_error, timeout)


async def ascore(
    requests: Iterable[Request], *, on_error: OnError | None = None, timeout: float | None = None
) -> list[Score]:
    """`score` for use inside a running event loop, which it does not block."""
    check_options(on_error, timeout)
    return await _ascore(list(requests), on_error, timeout)


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
    """Return the reward of one sample, or of a batch where the plural arguments or lists are given.

    Args:
        data_source: names the route.
        solution_str: what the policy wrote: a string, or chat messages, of which the assistant's last one counts.
        ground_truth: a reference, a list of references, or `{"target": …}` with either.
        extra_info: the route's options, and `server_url`, `api_key`, `timeout` (seconds).
        data_sources: one a sample, or one for all; the other plurals likewise.
        solution_strs: one a sample.
        ground_truths: one a sample, or None.
        extra_infos: one a sample, one for all, or None.
        options: `details` (True: a dict for verl, with the same numeric keys for every sample), `on_error`, `timeout`.

    Returns:
        The reward as a float, or a list of them for a batch; under `details=True` dicts with `score` and more. None
        stands for no reward under `on_error="none"`.

    Raises:
        ConfigError, ScoringError, LoopError: as `score` does.
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
    """Return the rewards of a batch, in order; arguments, results and errors as `compute_score` has them."""
    batch = {"data_sources": data_sources, "solution_strs": solution_strs}
    rewards: list[Any] = compute_score(**batch, ground_truths=ground_truths, extra_infos=extra_infos, **options)
    return rewards


def _awaitable(blocking: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return the async twin of `compute_score` or `compute_score_batched`, with its signature and types."""
    parameters = signature(blocking)

    @wraps(blocking)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> R:
        named = parameters.bind(*args, **kwargs).arguments
        singular, plural = ([named.get(name) for name in names] for names in (SINGULAR, PLURAL))
        call = read_call(singular, plural, named.get("options", {}))
        rewards: R = call.rewards(await _ascore(call.requests, call.on_error, call.timeout))
        return rewards

    twin.__name__ = twin.__qualname__ = f"a{blocking.__name__}"
    twin.__doc__ = f"`{blocking.__name__}` for use inside a running event loop, which it does not block."
    return twin


acompute_score = _awaitable(compute_score)
acompute_score_batched = _awaitable(compute_score_batched)


def register_route(name: str, spec: object) -> None:
    """Add a route to this process's table.

    Args:
        name: the `data_source` it takes; also whatever begins with it and an underscore.
        spec: another route's name, or a table as in a routes file (`docs/routing.md`).

    Raises:
        RouteError: it is malformed, or there is a route of that name.
    """
    with importing:
        from rewardstack import client
    client.register_route(name, spec)


def register_judge(name: str, table: Mapping[str, Any]) -> None:
    """Add a judge to this process's table, as a route of its name.

    Args:
        name: the `data_source` it takes; also whatever begins with it and an underscore.
        table: as `[judges.NAME]` in a routes file (`docs/routing.md`).

    Raises:
        RouteError: it is malformed, or there is a route of that name.
    """
    with importing:
        from rewardstack import client
    client.register_judge(name, table)


def register_reward_model(name: str, table: Mapping[str, Any]) -> None:
    """Add a reward model to this process's table, as a route of its name.

    Args:
        name: the `data_source` it takes; also whatever begins with it and an underscore.
        table: as `[reward_models.NAME]` in a routes file (`docs/reward_models.md`).

    Raises:
        RouteError: it is malformed, or there is a route of that name.
    """
    with importing:
        from rewardstack import client
    client.register_reward_model(name, table)


def _score(requests: list[Request], on_error: OnError | None, timeout: float | None) -> list[Score]:
    """Return the scores under the settings of this moment; the options are checked."""
    with importing:
        from rewardstack.client import scores
        from rewardstack.core.event_loop import run
    return run(scores(requests, on_error, timeout))


async def _ascore(requests: list[Request], on_error: OnError | None, timeout: float | None) -> list[Score]:
    """`_score` for use inside a running event loop."""
    with importing:
        from rewardstack.client import scores
        from rewardstack.core.event_loop import run_async
    return await run_async(scores(requests, on_error, timeout))
