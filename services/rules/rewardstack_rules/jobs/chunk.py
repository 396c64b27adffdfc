"""Score one chunk of a job in a worker. RQ calls the function `run` by its name.

| event | effect on the chunk |
| --- | --- |
| every sample has a score | committed |
| some samples are `failed` | postponed; then only these are scored again; after the last retry, committed |
| the run's budget for models is used up | committed; samples that were not scored for this reason are `failed` |
| a sample is malformed | the sample is `unscored`; the others are scored |
| scoring a sample raises, or the sample cannot be read | the sample is `failed`; the others are scored |
| a sample may wait for a model or a program | scored in a free background thread, else sent to `MODEL_QUEUE` |
| the job is canceled, or another worker has the chunk | dropped |
| scoring has taken `TURN_SECONDS`, and another tenant's chunk waits | released with the scores so far, and sent again |
| the worker dies | another worker starts the chunk; after `MAX_DEATHS` deaths its samples are `failed` |
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from rewardstack.cause import Cause
from rewardstack.core.groups import GroupOf, split_in_half
from rewardstack.core.wire import Record, score_record
from rewardstack.errors import BudgetError, ConfigError
from rewardstack.score import Request, Score
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.jobs.background import Background
from rewardstack_rules.jobs.delivery import Delivery
from rewardstack_rules.jobs.lease import Lease
from rewardstack_rules.jobs.ledger import Chunk, Ledger
from rewardstack_rules.jobs.link import connect
from rewardstack_rules.metrics import counters
from rewardstack_rules.scoring.cancellation import AbandonedError, IsWanted
from rewardstack_rules.scoring.evaluator import Evaluator
from rewardstack_rules.settings import Settings

MAX_DEATHS = 5
"""Number of workers that may die during a chunk before its samples are `failed`."""
FIRST_BATCH = 16
"""Number of samples that are scored first. If they take less than `TURN_SECONDS`, twice as many are next; if they take
more than twice as long, half as many."""
TURN_SECONDS = 5.0
"""Seconds after which a chunk makes room for one of another tenant, between two batches of samples."""
FIRST_DELAY, DELAY_FACTOR, MAX_DELAY = 5.0, 4.0, 300.0
"""Seconds before the first retry, the factor by which each later delay grows, and the longest delay in seconds."""
QUEUE_RETRIES = 30
"""Number of retries to reach the queue, about a second apart, so that a worker can wait while Redis restarts."""

log = logging.getLogger(__name__)


class WorkerContext(NamedTuple):
    """The objects that all chunks of a worker share.

    Args:
        evaluator: scores samples.
        ledger: claims and commits chunks.
        retries: maximum number of retries of a chunk with `failed` samples.
        delivery: queues a chunk again if this worker has no free thread for it.
        background: threads for chunks that wait for models or programs.
    """

    evaluator: Evaluator
    ledger: Ledger
    retries: int
    delivery: Delivery
    background: Background


@lru_cache(maxsize=1)
def worker_context() -> WorkerContext:
    """Return the shared objects of this process. The first call creates them, with settings from the environment."""
    settings = Settings.from_env()
    evaluator = Evaluator(settings, load_registry(settings.function_files, settings.code), counters)
    redis = connect(settings.queue_url, QUEUE_RETRIES)
    return WorkerContext(evaluator, Ledger(redis), settings.job_retries, Delivery(redis), Background())


def run(job_id: str, number: int) -> None:
    """Claim and score a chunk. Do nothing if it cannot be claimed.

    If the chunk may wait for models or programs, score it in a background thread; if none is free, release the chunk
    and send it to `MODEL_QUEUE`.

    Args:
        job_id: the job's id.
        number: number of the chunk, from 0.

    Raises:
        ServiceError: the queue did not answer; the chunk will be sent again.
    """
    context = worker_context()
    chunk = context.ledger.begin(job_id, number)
    if chunk is None:
        return
    if not context.evaluator.may_wait(request.data_source for request in chunk.pending.values()):
        _work(context, chunk)
    elif not context.background.start(partial(_work, context, chunk), partial(context.ledger.release, chunk)):
        context.ledger.release(chunk)
        context.delivery.send_to_model_queue((job_id, number))


def _work(context: WorkerContext, chunk: Chunk) -> None:
    """Score a chunk that this worker has claimed, and commit or postpone it."""
    started = time.monotonic()
    with Lease(context.ledger, chunk) as lease:
        try:
            replies, over_budget = _replies(context, chunk, lease.is_held)
        except AbandonedError:
            _log_outcome(chunk, (), "dropped", time.monotonic() - started)
            return
        done = {at: reply for at, reply in replies.items() if reply["status"] != "failed"}
        has_failed = any(at in replies and at not in done for at in chunk.pending)
        if len(replies) < len(chunk.samples):
            outcome = "released"
            context.ledger.release(chunk, done)
            context.delivery.send([(chunk.keys.job_id, chunk.number)])
        elif has_failed and not over_budget and chunk.postponements < context.retries and chunk.deaths < MAX_DEATHS:
            outcome = "postponed"
            context.ledger.postpone(chunk, _delay(chunk.postponements), done)
        else:
            outcome = context.ledger.commit(chunk, [replies[at] for at in range(len(chunk.samples))])
    _log_outcome(chunk, [*replies.values()], outcome, time.monotonic() - started)


def _replies(context: WorkerContext, chunk: Chunk, is_wanted: IsWanted) -> tuple[dict[int, Record], bool]:
    """Score the samples of a chunk.

    Returns:
        A reply (a score as JSON) for each sample, by position in the chunk, and whether the budget for models is used
        up. If another tenant's turn has come, some replies are missing.
    """
    over_budget = False
    try:
        if chunk.deaths >= MAX_DEATHS:
            why = f"{chunk.deaths} workers ended while they scored this sample's chunk"
            fault = Score.failed(why, cause=Cause.WORKERS_ENDED)
            scores = dict.fromkeys(chunk.pending, fault)
        else:
            scores, over_budget = _score_in_batches(context, chunk, is_wanted)
    except SystemExit:
        context.ledger.release(chunk)
        raise
    return {**chunk.known_replies, **{at: score_record(score) for at, score in scores.items()}}, over_budget


def _score_in_batches(context: WorkerContext, chunk: Chunk, is_wanted: IsWanted) -> tuple[dict[int, Score], bool]:
    """Return the scores by position in the chunk, and whether the budget for models is used up.

    Stop after a batch if `TURN_SECONDS` have passed and a chunk of another tenant waits.
    """
    scores: dict[int, Score] = {}
    over_budget, size, started = False, FIRST_BATCH, time.monotonic()
    left = [*chunk.pending.items()]
    while left:
        end = _end_of_batch([request for _, request in left], size, context.evaluator.group_of)
        batch, left = left[:end], left[end:]
        begun = time.monotonic()
        found, is_over = _score(context.evaluator, [request for _, request in batch], chunk.keys.tenant, is_wanted)
        scores.update(zip((at for at, _ in batch), found, strict=True))
        over_budget = over_budget or is_over
        now = time.monotonic()
        if now - begun < TURN_SECONDS:
            size *= 2
        elif now - begun > 2 * TURN_SECONDS:
            size = max(1, size // 2)
        if left and now - started > TURN_SECONDS and context.delivery.others_wait(chunk.keys.tenant):
            break
    return scores, over_budget


def _end_of_batch(requests: Sequence[Request], size: int, group_of: GroupOf[Request]) -> int:
    """Return the length of the shortest batch with at least `size` samples, or all, that divides no group."""
    end = min(size, len(requests))
    while (
        end < len(requests) and (group := group_of(requests[end])) is not None and group == group_of(requests[end - 1])
    ):
        end += 1
    return end


def _score(
    evaluator: Evaluator, requests: Sequence[Request], tenant: str, is_wanted: IsWanted
) -> tuple[list[Score], bool]:
    """Return the scores, and whether the budget for models is used up. If scoring raises, score each half again."""
    try:
        return evaluator.score(requests, limit=None, tenant=tenant, is_wanted=is_wanted), False
    except AbandonedError:
        raise
    except BudgetError as error:
        return error.scores, True
    except ConfigError as error:
        fault = error.as_score()
    except Exception as error:
        log.exception("scoring %d samples raised", len(requests))
        fault = Score.failed(f"scoring the sample raised {type(error).__name__}", cause=Cause.INTERNAL_ERROR)
    parts = split_in_half(requests, evaluator.group_of)
    if not parts[1]:
        return [fault] * len(requests), False
    (first, first_over), (second, second_over) = (_score(evaluator, part, tenant, is_wanted) for part in parts)
    return first + second, first_over or second_over


def _delay(postponements: int) -> float:
    return min(FIRST_DELAY * DELAY_FACTOR**postponements, MAX_DELAY)


def _log_outcome(chunk: Chunk, replies: Sequence[Record], outcome: str, seconds: float) -> None:
    fields = {
        "job_id": chunk.keys.job_id,
        "chunk": chunk.number,
        "outcome": outcome,
        "attempts": chunk.attempts,
        "items": len(replies),
        "statuses": dict(Counter(reply["status"] for reply in replies)),
        "ms": round(1000 * seconds, 1),
    }
    log.info("chunk", extra={"fields": fields})
