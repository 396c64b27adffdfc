"""Score the rows of a file as a job of the reward server, and fetch scores while the job runs."""

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
from rewardstack_cli.options import row_to_request
from rewardstack_cli.pieces import Piece
from rewardstack_cli.provenance import Provenance, fetch_server_identity, server_provenance

POLL_INTERVAL = 1.0
"""Seconds between two requests for the state of the job."""
NOTICE_AFTER = 10
"""A notice is printed after this many requests that found the job queued and no new scores."""
NO_WORKER = "all workers are busy, or none runs: start one with the reward server's REWARD_QUEUE_URL"
ACTIVE_STATES = ("queued", "running")
"""The states of a job that has not ended."""


class JobScoring:
    """Scores a file as a job of the reward server; implements `options.Scoring`.

    Args:
        source: the file.
        data_source: the `data_source` of rows that have none.
        job_file: stores the ID of the file's job.
        force: whether to submit a new job even if the file already has one.
        cached: whether scores may be read from a cache and written to it.

    Raises:
        SettingsError: no reward server is set.
    """

    rescores = False  # a later run cannot retry single rows, because a job scores all of its rows

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
        return row_to_request(row, self._data_source, self._cached)

    async def provenance(self, sources: Iterable[str]) -> Provenance:
        """Return the provenance of the scores of these `data_source` names, as far as the server reports it."""
        server_identity = await fetch_server_identity(Settings.from_env())
        return {"options": {"--data-source": self._data_source}, **server_provenance(server_identity, sources)}

    async def submit(self) -> str:
        """Submit the file, unless a stored job can be used, and return the ID of the job.

        The stored job is used if `force` is not set, the server knows the job, and neither the samples nor their
        provenance have changed.
        """
        async with self._server:
            return await self._find_or_submit()

    async def pieces(
        self, rows: Iterator[Row], start: int, should_stop: Callable[[], bool]
    ) -> AsyncGenerator[Piece, None]:
        """Yield rows with their scores, in order, as the job produces them.

        Args:
            rows: the rows to score.
            start: index of the first of these rows in the file.
            should_stop: returns True to stop waiting; the job continues on the server.
        """
        async with self._server:
            job_id = await self._find_or_submit()
            times_queued = 0
            while not should_stop():
                state = await self._server.state(job_id)
                if state.get("error"):
                    raise _job_error(state)
                scores = [_parse_score(line) for line in await self._server.results(job_id, start)]
                if scores:
                    yield Piece(list(islice(rows, len(scores))), scores)
                    start += len(scores)
                elif state["status"] in ACTIVE_STATES:
                    times_queued += state["status"] == "queued"
                    if times_queued == NOTICE_AFTER:
                        say(f"job {job_id} is still queued: {NO_WORKER}")
                    await asyncio.sleep(POLL_INTERVAL)
                else:
                    _check_complete(state, start)
                    return
            say(f"the job {job_id} continues on the server")

    async def _find_or_submit(self) -> str:
        sources, records = set(), []
        for row in self._source.rows():
            request = self.request(row)
            warn_of_misspelled_fields([request])
            sources.add(request.data_source)
            records.append(_encode_request(request))
        if not records:
            raise self._source.no_rows_error()
        lines = b"".join(records)
        server_identity = await self._server.reward_types()
        provenance = json.dumps(server_provenance(server_identity, sources), sort_keys=True)
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


def _check_complete(state: dict[str, Any], rows: int) -> None:
    if state["status"] == "canceled":
        raise RewardstackError(f"job {state['job_id']} was canceled; --force submits the rows again")
    if rows != state["items"]:
        raise ReplyError(f"job {state['job_id']}: {rows} results for {state['items']} rows")


def _job_error(state: dict[str, Any]) -> RequestError:
    explanation = f"in the first row; the same option is invalid in all {state['items']} rows"
    return RequestError(f"job {state['job_id']}: {state['error']} ({explanation})", OPTIONS)


def _encode_request(request: Request) -> bytes:
    fields = {
        "data_source": request.data_source,
        "solution_str": request.solution_str,
        "ground_truth": request.ground_truth,
        "extra_info": request.extra_info,
    }
    return to_json(fields) + b"\n"


def _parse_score(line: dict[str, Any]) -> Score:
    """Parse a result line; the value of a row without a score is the one that the server's `on_error` policy sets."""
    value = line.get("value")
    try:
        [score] = read_scores([line])
        return score.with_value(None if value is None else float(value))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReplyError(f"the job's result {line.get('index')} is not a score") from error
