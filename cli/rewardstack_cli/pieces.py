"""Score rows in order, with a bounded number of rows in flight.

The rows in flight (a chunk) are sent in several pieces. As soon as the oldest piece in flight is done, the next piece
is sent. While a sample in the oldest piece is slow, the other pieces in flight are still scored.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from itertools import takewhile
from typing import NamedTuple

from rewardstack.core.groups import GroupOf, no_group, split_batches
from rewardstack.errors import BudgetError, ConfigError, RequestError, RewardstackError, ScoringError
from rewardstack.score import Score, Usage
from rewardstack_cli.data.rows import Row, text_size
from rewardstack_cli.failures import NOT_SENT

PIECES_PER_CHUNK = 8
"""Number of pieces in a chunk."""
PIECE_CHARACTERS = 8 << 20
"""Maximum total length of the texts in a piece's rows, in characters, unless a single row or group has more."""
GRACE = 1.0
"""Seconds that requests in flight may take to finish when a run stops early."""

ScoreRows = Callable[[list[Row]], Awaitable[list[Score]]]


class Piece(NamedTuple):
    """Rows and their scores.

    Args:
        rows: consecutive rows.
        scores: the scores of the rows, in order; if there is an error, only the scores before the first row that the
            error affects.
        error: the reason why the remaining rows have no scores; None if all rows have scores.
    """

    rows: list[Row]
    scores: list[Score]
    error: RewardstackError | None = None

    @property
    def usage(self) -> Usage:
        """The usage of all rows of the piece, also of rows whose scores are not in `scores`."""
        scores = self.error.scores if isinstance(self.error, ScoringError | BudgetError) else self.scores
        return Usage.total(score.usage for score in scores)


async def score_in_order(
    rows: Iterable[Row],
    score: ScoreRows,
    chunk_size: int,
    should_stop: Callable[[], bool],
    group_of: GroupOf[Row] = no_group,
) -> AsyncGenerator[Piece, None]:
    """Score `rows` and yield them in pieces, in order; a piece with an error is the last.

    Args:
        rows: rows to score.
        score: returns the scores of a list of rows, in order.
        chunk_size: number of rows in flight, rounded up to whole pieces; large groups can exceed it.
        should_stop: returns True to send no more rows; rows in flight are still yielded.
        group_of: returns the group of a row; the members of a group are in one piece.
    """
    pieces = split_batches(
        rows, max(1, chunk_size // PIECES_PER_CHUNK), lambda row: text_size(row.fields), PIECE_CHARACTERS, group_of
    )
    in_flight: deque[asyncio.Task[Piece]] = deque()
    try:
        while True:
            while len(in_flight) * max(1, chunk_size // PIECES_PER_CHUNK) < chunk_size and not should_stop():
                piece = next(pieces, None)
                if piece is None:
                    break
                in_flight.append(asyncio.create_task(score_piece(piece, score)))
            if not in_flight:
                return
            done = await in_flight.popleft()
            yield done
            if done.error is not None:
                return
    finally:
        if in_flight:
            await asyncio.wait(in_flight, timeout=GRACE)
        for task in in_flight:
            task.cancel()
        await asyncio.gather(*in_flight, return_exceptions=True)


async def score_piece(rows: list[Row], score: ScoreRows) -> Piece:
    """Score `rows` and return the piece; if rows caused an error, the error in the piece names them."""
    try:
        return Piece(rows, await score(rows))
    except ScoringError as error:
        scored_before = list(takewhile(lambda one: one.value is not None or one.source == NOT_SENT, error.scores))
        failed = error.scores[len(scored_before)]
        message = f"{rows[len(scored_before)].location}: {failed.status}: {failed.reason}"
        return Piece(rows, scored_before, ScoringError(message, error.scores))
    except BudgetError as error:
        # Keep only the scores before the first `failed` or `fallback`. A composite is a `fallback` if the budget
        # refused one of its parts.
        return Piece(rows, list(takewhile(lambda one: one.status in ("ok", "unscored"), error.scores)), error)
    except ConfigError as error:
        if not (error.field or "").startswith("extra_info"):
            return Piece(rows, [], error)
        place = rows[0].location
        if len(rows) > 1:
            kind, first = rows[0].position.split()
            place = f"{rows[0].file}, {kind}s {first} to {rows[-1].position.split()[1]}"
        return Piece(rows, [], RequestError(f"{place}: {error}", error.field))
    except RewardstackError as error:
        return Piece(rows, [], error)
