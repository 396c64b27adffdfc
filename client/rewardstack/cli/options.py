"""How the rows of a run are scored."""

from __future__ import annotations

from dataclasses import dataclass

import rewardstack
from rewardstack.cli.data.rows import Row, to_request
from rewardstack.errors import RequestError, UnknownSourceError
from rewardstack.routes import RouteTable
from rewardstack.score import OnError, Request, Score


@dataclass(frozen=True)
class Options:
    """What the command line says.

    Args:
        routes: those in force.
        chunk_size: rows in flight.
        data_source: for rows that have none.
        on_error: what a row without a score is worth; None for its route's policy.
        timeout: seconds that a row may take in all; None for no limit.
    """

    routes: RouteTable
    chunk_size: int
    data_source: str | None = None
    on_error: OnError | None = None
    timeout: float | None = None

    def request(self, row: Row) -> Request:
        """The sample of `row`.

        Raises:
            RequestError: it is malformed, or no route takes it; the message names the place.
        """
        try:
            request = to_request(row.fields, self.data_source)
            self.routes.find(request.data_source)
        except (RequestError, UnknownSourceError) as error:
            raise RequestError(f"{row.place}: {error}", error.field) from error
        return request

    async def score(self, rows: list[Row]) -> list[Score]:
        """The scores of `rows`, in order; raises as `rewardstack.ascore` does."""
        requests = [self.request(row) for row in rows]
        return await rewardstack.ascore(requests, on_error=self.on_error, timeout=self.timeout)
