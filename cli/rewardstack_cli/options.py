"""How the rows of a run are scored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from rewardstack import api
from rewardstack.cache.key import CACHE_ENABLED
from rewardstack.errors import RequestError, UnknownSourceError
from rewardstack.routing.routes import RouteTable
from rewardstack.score import OnError, Request, Score
from rewardstack.settings import Settings
from rewardstack_cli.data.rows import Row, to_request
from rewardstack_cli.pieces import Piece, score_in_order
from rewardstack_cli.provenance import Provenance, of_routes


class Scoring(Protocol):
    """Where the scores of a run's rows come from.

    Attributes:
        patience: rows that may all fail, one after the other, before the run is given up.
        retries_failed: whether a run over rows that have scores scores those again that failed.
    """

    @property
    def patience(self) -> int: ...

    @property
    def retries_failed(self) -> bool: ...

    def request(self, row: Row) -> Request:
        """The sample of `row`; raises `RequestError` for a malformed one."""
        ...

    async def provenance(self, sources: Iterable[str]) -> Provenance:
        """What the scores of rows of these sources depend on."""
        ...

    def pieces(self, rows: Iterator[Row], start: int, stopping: Callable[[], bool]) -> AsyncGenerator[Piece, None]:
        """The scores of `rows`, of which the first has the number `start` (from 0), until `stopping` says so."""
        ...


def sample_of(row: Row, data_source: str | None, cached: bool) -> Request:
    """The sample that a row holds.

    Args:
        row: of a data file.
        data_source: for rows that have none.
        cached: whether its score may be read from a cache, and kept.

    Raises:
        RequestError: it is malformed; the message names the place.
    """
    try:
        request = to_request(row.fields, data_source)
    except RequestError as error:
        raise RequestError(f"{row.place}: {error}", error.field) from error
    return request if cached else replace(request, extra_info={**(request.extra_info or {}), CACHE_ENABLED: False})


@dataclass(frozen=True)
class Options:
    """What the command line says.

    Args:
        routes: those in force.
        chunk_size: rows in flight.
        data_source: for rows that have none.
        on_error: what a row without a score is worth; None for its route's policy.
        timeout: seconds that a row may take in all; None for no limit.
        cached: whether scores may be read from a cache, and kept.
    """

    routes: RouteTable
    chunk_size: int
    data_source: str | None = None
    on_error: OnError | None = None
    timeout: float | None = None
    cached: bool = True

    def request(self, row: Row) -> Request:
        """The sample of `row`.

        Raises:
            RequestError: it is malformed, or no route takes it; the message names the place.
        """
        request = sample_of(row, self.data_source, self.cached)
        try:
            self.routes.find(request.data_source)
        except UnknownSourceError as error:
            raise RequestError(f"{row.place}: {error}", error.field) from error
        return request

    @property
    def patience(self) -> int:
        """As many rows as are in flight."""
        return self.chunk_size

    @property
    def retries_failed(self) -> bool:
        """Yes: only these rows are sent."""
        return True

    async def provenance(self, sources: Iterable[str]) -> Provenance:
        """What the scores of rows of these sources depend on, as far as their services say."""
        options = {"--data-source": self.data_source, "--on-error": self.on_error}
        return {"options": options, **await of_routes(self.routes, sources, Settings.from_env())}

    def pieces(self, rows: Iterator[Row], start: int, stopping: Callable[[], bool]) -> AsyncGenerator[Piece, None]:
        """The scores of `rows`, in order."""
        return score_in_order(rows, self.score, self.chunk_size, stopping)

    async def score(self, rows: list[Row]) -> list[Score]:
        """The scores of `rows`, in order; raises as `rewardstack.ascore` does."""
        requests = [self.request(row) for row in rows]
        return await api.ascore(requests, on_error=self.on_error, timeout=self.timeout)
