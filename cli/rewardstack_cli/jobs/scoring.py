"""Score the rows of a file as a job of the reward server, and read the scores as the job produces them."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any

from rewardstack.core.fields import OPTIONS
from rewardstack.core.wire import read_scores
from rewardstack.errors import RejectedError, ReplyError, RequestError, RewardstackError
from rewardstack.score import Request, Score
from rewardstack.scorers.names import warn_of_misspelled_fields
from rewardstack.settings import Settings
from rewardstack_cli.console import say
from rewardstack_cli.data.rows import Row, to_json
from rewardstack_cli.data.source import Source
from rewardstack_cli.failures import Failures
from rewardstack_cli.jobs.job_file import JobFile
from rewardstack_cli.jobs.server import JobServer
from rewardstack_cli.options import sample_of
from rewardstack_cli.pieces import Piece
from rewardstack_cli.provenance import Provenance, ask_server, of_server

POLL = 1.0
"""Seconds between two requests for the state of the job."""
OPEN = ("queued", "running")
"""The states of a job that has not ended."""


class JobScoring:
    """Scores a file on the reward server's workers.

    Args:
        source: the file.
        data_source: the `data_source` of rows that have none.
        job_file: stores the ID of the file's job.
        force: whether to submit a new job even if an earlier job of the file is known.
        cached: whether scores may be read from a cache and written to it.

    Raises:
        SettingsError: no reward server is set.
    """

    rescores = False  # a job always scores all of its rows

    def __init__(self, source: Source, data_source: str | None, job_file: JobFile, force: bool, cached: bool) -> None:
        self._server = JobServer(Settings.from_env())
        self._source = source
        self._data_source = data_source
        self._job_file = job_file
        self._force = force
        self._cached = cached
        self.failures = Failures()

    def request(self, row: Row) -> Request:
        """Return the sample of `row`; the server checks whether a route matches it.

        Raises:
            RequestError: the row is malformed; the message names file and position.
        """
        return sample_of(row, self._data_source, self._cached)

    async def provenance(self, sources: Iterable[str]) -> Provenance:
        """Return what the scores of these sources depend on, as far as the server reports it."""
        reported = await ask_server(Settings.from_env())
        return {"options": {"--data-source": self._data_source}, **of_server(reported, sources)}

    async def submit(self) -> str:
        """Submit the file and return the job's ID; the ID of an earlier job of the same samples, if it is known."""
        async with self._server:
            return await self._job()

    async def pieces(
        self, rows: Iterator[Row], start: int, stopping: Callable[[], bool]
    ) -> AsyncGenerator[Piece, None]:
        """Yield rows with their scores, in order, as the job produces them.

        Args:
            rows: the rows to score.
            start: number of the first row, from 0.
            stopping: returns True to stop waiting; the job continues on the server.
        """
        async with self._server:
            job_id = await self._job()
            while not stopping():
                state = await self._server.state(job_id)
                if state.get("error"):
                    raise _wrong(state)
                scores = [_score(line) for line in await self._server.results(job_id, start)]
                if scores:
                    yield Piece(list(islice(rows, len(scores))), scores)
                    start += len(scores)
                elif state["status"] in OPEN:
                    await asyncio.sleep(POLL)
                else:
                    _complete(state, start)
                    return
            say(f"the job {job_id} continues on the server")

    async def _job(self) -> str:
        sources, records = set(), []
        for row in self._source.rows():
            request = self.request(row)
            warn_of_misspelled_fields([request])
            sources.add(request.data_source)
            records.append(_line(request))
        lines = b"".join(records)
        provenance = json.dumps(of_server(await self._server.reward_types(), sources), sort_keys=True)
        digest = blake2b(lines + provenance.encode(), digest_size=16).hexdigest()
        job_id = None if self._force else self._job_file.get(digest)
        if job_id is None or not await self._is_known(job_id):
            job_id = await self._server.submit(lines, digest + (secrets.token_hex(8) if self._force else ""))
            self._job_file.put(job_id, digest)
        return job_id

    async def _is_known(self, job_id: str) -> bool:
        try:
            await self._server.state(job_id)
        except RejectedError as error:
            if error.status != 404:
                raise
            return False
        return True


def _complete(state: dict[str, Any], rows: int) -> None:
    if state["status"] == "canceled":
        raise RewardstackError(f"job {state['job_id']} was canceled; --force submits the rows again")
    if rows != state["items"]:
        raise ReplyError(f"job {state['job_id']}: {rows} results for {state['items']} rows")


def _wrong(state: dict[str, Any]) -> RequestError:
    which = f"the first of {state['items']} rows; the same field is wrong in each"
    return RequestError(f"job {state['job_id']}: {state['error']} ({which})", OPTIONS)


def _line(request: Request) -> bytes:
    fields = {
        "data_source": request.data_source,
        "solution_str": request.solution_str,
        "ground_truth": request.ground_truth,
        "extra_info": request.extra_info,
    }
    return to_json(fields) + b"\n"


def _score(line: dict[str, Any]) -> Score:
    """Parse a result line; keep the value that the server's `on_error` policy has set for a row without a score."""
    value = line.get("value")
    try:
        [score] = read_scores([line])
        return score.with_value(None if value is None else float(value))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReplyError(f"the job's result {line.get('index')} is not a score") from error
