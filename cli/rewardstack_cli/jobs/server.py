"""Send requests to the reward server's `/jobs`, and retry them during an outage."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rewardstack.errors import (
    OverloadError,
    RejectedError,
    ReplyError,
    RequestError,
    SettingsError,
    UnreachableError,
)
from rewardstack.scorers.destination import Servers
from rewardstack.scorers.reward_server import reward_servers
from rewardstack.settings import Settings
from rewardstack.transport.http import authorization, open_session, send
from rewardstack.transport.message import get_body, to_error
from rewardstack_cli.console import say, wait_with_notice

REQUEST_TIMEOUT = 300.0
"""Timeout in seconds of one request."""
RETRY_INTERVAL = 1.0
"""Seconds between two attempts, unless the server's Retry-After is longer."""
PAGE_SIZE = 5000
"""Maximum number of results in one request."""
NO_QUEUE = b'"REWARD_QUEUE_URL"'
"""Value of `field`, with its quotes, in the JSON error of a server without a job queue."""


class JobServer:
    """A client of the reward server's `/jobs`; an async context manager.

    Args:
        settings: the settings with the reward server's URLs, key and timeout. Until the timeout, a request that fails
            is retried, at each URL in turn. A request that the server rejects is not retried.

    Raises:
        SettingsError: no reward server is set.
    """

    def __init__(self, settings: Settings) -> None:
        if not settings.reward_server_urls:
            raise SettingsError("REWARD_SERVER_URL is not set: set it to the reward server that runs the job")
        self._settings = settings
        self._retry_seconds = settings.reward_server_timeout

    async def __aenter__(self) -> JobServer:
        self._session = open_session()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def reward_types(self) -> dict[str, Any]:
        """Return the reply of `/v1/reward_types`; empty if the server rejects the request (it may lack this path)."""
        try:
            return _parse_object(await self._ask("GET", "/v1/reward_types"))
        except RejectedError:
            return {}

    async def submit(self, lines: bytes, key: str) -> str:
        """Submit samples as a job and return the job's ID.

        Args:
            lines: the samples as JSON lines.
            key: idempotency key; a second submission with the same key returns the same job.

        Raises:
            RequestError: a sample is malformed, or no route has its `data_source`.
            RejectedError: the server refuses the job for another reason.
        """
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        try:
            return str(_parse_object(await self._ask("POST", "/jobs", lines, headers))["job_id"])
        except RejectedError as error:
            if error.status in (400, 404) and error.field:
                raise RequestError(str(error), error.field) from error
            raise

    async def state(self, job_id: str) -> dict[str, Any]:
        """Return the state of a job.

        Raises:
            RejectedError: the server has no such job.
        """
        return _parse_object(await self._ask("GET", f"/jobs/{job_id}"))

    async def results(self, job_id: str, start: int) -> list[dict[str, Any]]:
        """Return at most `PAGE_SIZE` of the existing results, from index `start` on."""
        path = f"/jobs/{job_id}/results?partial=1&start={start}&count={PAGE_SIZE}"
        lines = [_parse_object(line) for line in (await self._ask("GET", path)).splitlines()]
        if [line.get("index") for line in lines] != list(range(start, start + len(lines))):
            raise ReplyError(f"job {job_id}: the server returned results that were not asked for")
        return lines

    def _servers(self) -> Servers:
        """Return the current reward servers, or the previous ones if the endpoints file now lists none."""
        current = self._settings.with_current_servers()
        self._settings = current if current.reward_server_urls else self._settings
        return reward_servers(self._settings)

    async def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        deadline = time.monotonic() + self._retry_seconds
        for attempt in range(2**31):
            servers = self._servers()
            urls, api_key = servers.default
            url = urls[attempt % len(urls)]
            call = self._send(method, url + path, body, {**authorization(api_key), **(headers or {})})
            try:
                return await wait_with_notice(call, REQUEST_TIMEOUT, f"{url}{path}")
            except RejectedError as error:
                raise servers.with_key_hint(error, servers.default) from error
            except (OverloadError, ReplyError, UnreachableError, asyncio.TimeoutError) as error:
                last_error = error if str(error) else UnreachableError(f"{url}: no answer in {REQUEST_TIMEOUT:g} s")
            remaining = deadline - time.monotonic()
            if remaining < 0:
                break
            if attempt == 0:
                say(f"waiting: {last_error}")
            retry_after = last_error.retry_after if isinstance(last_error, OverloadError) else 0.0
            await asyncio.sleep(min(max(RETRY_INTERVAL, retry_after), remaining))
        raise last_error

    async def _send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        reply = await send(self._session, method, url, body, headers)
        if reply.status == 503 and NO_QUEUE in reply.data:  # waiting does not help
            raise RejectedError(f"{to_error(reply)} on the server, or score the file with `rewardstack score`", 503)
        return get_body(reply)


def _parse_object(data: bytes) -> dict[str, Any]:
    try:
        record = json.loads(data)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise ReplyError("the reward server's answer is not a JSON object")
    return record
