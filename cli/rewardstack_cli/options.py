"""Score the rows of a run.

`Scoring` is the interface. `Options` implements it with `rewardstack.ascore`; `jobs.scoring.JobScoring` implements it
with a job of the reward server.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

from rewardstack import api
from rewardstack.cache.key import CACHE_ENABLED
from rewardstack.client import group_of
from rewardstack.errors import BudgetError, ConfigError, RequestError, ScoringError, UnknownSourceError
from rewardstack.routing.routes import RULE_PREFIX, RouteTable
from rewardstack.routing.syntax import definitions
from rewardstack.score import OnError, Request, Score
from rewardstack.settings import Settings
from rewardstack_cli.console import say
from rewardstack_cli.data.rows import Row, to_request
from rewardstack_cli.failures import Failures
from rewardstack_cli.pieces import Piece, score_in_order
from rewardstack_cli.provenance import Provenance, routes_provenance


class Scoring(Protocol):
    """Scores the rows of a run.

    Attributes:
        rescores: whether a later run can retry rows that failed or are unscored.
        failures: the failures of the run so far.
    """

    @property
    def rescores(self) -> bool: ...

    @property
    def failures(self) -> Failures: ...

    def request(self, row: Row) -> Request:
        """Return the sample of `row`; raise `RequestError` if it is malformed."""
        ...

    async def provenance(self, sources: Iterable[str]) -> Provenance:
        """Return what the scores of these sources (`data_source` names) depend on."""
        ...

    def pieces(self, rows: Iterator[Row], start: int, should_stop: Callable[[], bool]) -> AsyncGenerator[Piece, None]:
        """Yield `rows` with their scores, in order.

        Args:
            rows: the rows to score.
            start: index of the first of these rows in the file.
            should_stop: returns True to end before all rows are scored.
        """
        ...


def row_to_request(row: Row, data_source: str | None, cached: bool) -> Request:
    """Return the sample in a row of a data file.

    Args:
        row: row of a data file.
        data_source: the `data_source` if the row has none.
        cached: whether the sample's score may be read from a cache and written to it.

    Raises:
        RequestError: the row is malformed; the message names file and position.
    """
    try:
        request = to_request(row.fields, data_source)
    except RequestError as error:
        raise RequestError(f"{row.location}: {error}", error.field) from error
    return request if cached else replace(request, extra_info={**(request.extra_info or {}), CACHE_ENABLED: False})


def note_unused_data_source(rows: Iterable[Row], data_source: str | None) -> None:
    """Print a note if `--data-source` has no effect, because all rows have a `data_source`."""
    if data_source is not None and all(row.fields.get("data_source") is not None for row in rows):
        say("--data-source is not used: all rows have a data_source")


@dataclass(frozen=True)
class Options:
    """Scores rows by calling `rewardstack.ascore` with the options of the command line.

    Args:
        routes: the route table.
        chunk_size: number of rows in flight.
        data_source: the `data_source` of rows that have none.
        on_error: policy for rows without a score; None for the policy of each row's route.
        timeout: total time limit of a row in seconds; None for no limit.
        cached: whether scores may be read from a cache and written to it.
        failures: counts the failures of the run, and stops routes that keep failing.
    """

    routes: RouteTable
    chunk_size: int
    data_source: str | None = None
    on_error: OnError | None = None
    timeout: float | None = None
    cached: bool = True
    failures: Failures = field(default_factory=Failures)

    def request(self, row: Row) -> Request:
        """Return the sample of `row`.

        Raises:
            RequestError: the row is malformed, or no route matches it; the message names file and position.
        """
        request = row_to_request(row, self.data_source, self.cached)
        try:
            self.routes.find(request.data_source)
        except UnknownSourceError as error:
            raise RequestError(f"{row.location}: {error}", error.field) from error
        return request

    @property
    def rescores(self) -> bool:
        """True: a later run can score single rows again."""
        return True

    async def provenance(self, sources: Iterable[str]) -> Provenance:
        """Return what the scores of these sources depend on, as far as their services report it."""
        options = {"--data-source": self.data_source, "--on-error": self.on_error}
        return {"options": options, **await routes_provenance(self.routes, sources, Settings.from_env())}

    async def pieces(
        self, rows: Iterator[Row], start: int, should_stop: Callable[[], bool]
    ) -> AsyncGenerator[Piece, None]:
        """Yield `rows` with their scores, in order; if a route keeps failing, its remaining rows are unscored."""
        async with aclosing(
            score_in_order(rows, self._score_active_routes, self.chunk_size, should_stop, self.group_of)
        ) as pieces:
            async for piece in pieces:
                for row, score in zip(piece.rows, piece.scores, strict=False):
                    self.failures.count(self._route(row), score)
                yield piece

    async def _score_active_routes(self, rows: list[Row]) -> list[Score]:
        """Return the scores of `rows` in order; rows of stopped routes are not sent."""
        scores = [self.failures.skipped_score(self._route(row)) for row in rows]
        active = [row for row, score in zip(rows, scores, strict=True) if score is None]
        try:
            results = iter(await self.score(active) if active else ())
        except (ScoringError, BudgetError) as error:
            results = iter(error.scores)
            error.scores = [next(results) if score is None else score for score in scores]
            raise
        return [next(results) if score is None else score for score in scores]

    def _route(self, row: Row) -> str:
        """Return the pattern of the route of a valid row."""
        source = row.fields.get("data_source")
        return self.routes.find(str(self.data_source if source is None else source)).pattern

    def group_of(self, row: Row) -> str | None:
        """Return the name of the group in which a judge compares the row; None if it is scored alone or malformed."""
        if not self.routes.has_comparisons:
            return None
        try:
            return group_of(self.routes, self.request(row))
        except RequestError:
            return None

    async def score(self, rows: list[Row]) -> list[Score]:
        """Return the scores of `rows` in order; raise what `rewardstack.ascore` raises."""
        requests = [self.request(row) for row in rows]
        try:
            return await api.ascore(requests, on_error=self.on_error, timeout=self.timeout)
        except ConfigError as error:
            for row, request in zip(rows, requests, strict=True):
                if error.field == "CODE" and self._is_program(request.data_source):
                    raise RequestError(f"{row.location}: {error}", error.field) from error
            raise

    def _is_program(self, source: str) -> bool:
        """Return whether samples of this source are programs, scored by the reward function `code`."""
        parts = definitions(self.routes, [source]).items()
        names = (fields.get("target") or name.removeprefix(RULE_PREFIX) for name, fields in parts)
        return "code" in names
