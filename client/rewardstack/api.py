"""What trainers call: `score`, and `compute_score` in the shape that verl and its relatives use, each with a twin
to be awaited."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Literal, overload

from rewardstack.client import score_on_loop
from rewardstack.core.event_loop import run, run_async
from rewardstack.pipeline.arguments import check_options, read_call
from rewardstack.score import OnError, Request, Score
from rewardstack.settings import Settings

Details = dict[str, float | None]
"""The numbers of one sample, as `Score.details` has them."""


def score(requests: Iterable[Request], *, on_error: OnError | None = None, timeout: float | None = None) -> list[Score]:
    """Scores samples, blocking until all are done.

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
    return run(_scores(list(requests), on_error, timeout))


async def ascore(
    requests: Iterable[Request], *, on_error: OnError | None = None, timeout: float | None = None
) -> list[Score]:
    """`score` for use inside a running event loop, which it does not block."""
    check_options(on_error, timeout)
    return await run_async(_scores(list(requests), on_error, timeout))


def _scores(
    requests: list[Request], on_error: OnError | None, timeout: float | None
) -> Coroutine[Any, Any, list[Score]]:
    """The scores under the settings of this moment, for the loop to run; the options are checked."""
    return score_on_loop(requests, Settings.from_env(), on_error, timeout)


@overload
def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    details: Literal[False] = False,
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> float | None: ...
@overload
def compute_score(
    *,
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    details: Literal[False] = False,
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> list[float | None]: ...
@overload
def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    details: Literal[True],
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> Details: ...
@overload
def compute_score(
    *,
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    details: Literal[True],
    on_error: OnError | None = None,
    timeout: float | None = None,
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
    """The reward of one sample, or of a batch where the plural arguments or lists are given.

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
    plural = (data_sources, solution_strs, ground_truths, extra_infos)
    call = read_call((data_source, solution_str, ground_truth, extra_info), plural, options)
    return call.rewards(run(_scores(call.requests, call.on_error, call.timeout)))


@overload
async def acompute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    details: Literal[False] = False,
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> float | None: ...
@overload
async def acompute_score(
    *,
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    details: Literal[False] = False,
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> list[float | None]: ...
@overload
async def acompute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any = None,
    extra_info: Mapping[str, Any] | None = None,
    *,
    details: Literal[True],
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> Details: ...
@overload
async def acompute_score(
    *,
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    details: Literal[True],
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> list[Details]: ...
@overload
async def acompute_score(*args: Any, **options: Any) -> Any: ...
async def acompute_score(
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
    """`compute_score` for use inside a running event loop, which it does not block."""
    plural = (data_sources, solution_strs, ground_truths, extra_infos)
    call = read_call((data_source, solution_str, ground_truth, extra_info), plural, options)
    return call.rewards(await run_async(_scores(call.requests, call.on_error, call.timeout)))


@overload
def compute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    *,
    details: Literal[False] = False,
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> list[float | None]: ...
@overload
def compute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    *,
    details: Literal[True],
    on_error: OnError | None = None,
    timeout: float | None = None,
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
    """The rewards of a batch, in order; arguments, results and errors as `compute_score` has them."""
    call = read_call((None,) * 4, (data_sources, solution_strs, ground_truths, extra_infos), options)
    rewards: list[Any] = call.rewards(run(_scores(call.requests, call.on_error, call.timeout)))
    return rewards


@overload
async def acompute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    *,
    details: Literal[False] = False,
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> list[float | None]: ...
@overload
async def acompute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    *,
    details: Literal[True],
    on_error: OnError | None = None,
    timeout: float | None = None,
) -> list[Details]: ...
@overload
async def acompute_score_batched(*args: Any, **options: Any) -> list[Any]: ...
async def acompute_score_batched(
    data_sources: Any,
    solution_strs: Sequence[str],
    ground_truths: Any = None,
    extra_infos: Any = None,
    **options: Any,
) -> list[Any]:
    """`compute_score_batched` for use inside a running event loop, which it does not block."""
    call = read_call((None,) * 4, (data_sources, solution_strs, ground_truths, extra_infos), options)
    rewards: list[Any] = call.rewards(await run_async(_scores(call.requests, call.on_error, call.timeout)))
    return rewards
