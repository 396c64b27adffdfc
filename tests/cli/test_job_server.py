"""The client of `/jobs`: how long it waits where it is refused."""

from __future__ import annotations

import asyncio

import pytest

from rewardstack.cli.jobs.server import PAUSE, JobServer
from rewardstack.errors import RejectedError
from rewardstack.settings import Settings
from tests.cli.scripted_server import Answer, scripted_server

PATIENCE = 40.0


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_heeded_within_the_timeout(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """The server's own pause is kept, one that is longer than the client's patience is cut to that."""
    slept: list[float] = []
    rest = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await rest(0)

    monkeypatch.setattr("rewardstack.cli.jobs.server.asyncio.sleep", sleep)
    refusals = [
        Answer({"error": "full"}, status, headers) for headers in ({"Retry-After": "7"}, {}, {"Retry-After": "3600"})
    ]
    with scripted_server(*refusals, Answer({"status": "finished"})) as server:
        variables = {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_TIMEOUT": str(PATIENCE)}
        async with JobServer(Settings.from_env(variables)) as jobs:
            assert await jobs.state("one") == {"status": "finished"}

    first, second, third = (pause for pause in slept if pause >= PAUSE)
    assert (first, second) == (7, PAUSE) and 0 < third <= PATIENCE


async def test_a_refused_key_is_said() -> None:
    """A key that the server refuses ends the wait at once, and the error names the variable."""
    with scripted_server(Answer({"error": "an API key is needed"}, 401)) as server:
        variables = {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_API_KEY": "secret"}
        async with JobServer(Settings.from_env(variables)) as jobs:
            with pytest.raises(
                RejectedError, match="401: an API key is needed; .* key of REWARD_SERVER_API_KEY"
            ) as one:
                await jobs.submit(b"{}", "key")
    assert "secret" not in str(one.value)


async def test_silence_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who waits for a server that sends nothing is told which one, long before its time is over."""
    monkeypatch.setattr("rewardstack.cli.console.SAID_AFTER", 0.1)
    with scripted_server(Answer({"status": "finished"}, delay=0.4)) as server:
        async with JobServer(Settings.from_env({"REWARD_SERVER_URL": server.url})) as jobs:
            await jobs.state("one")
        assert f"waiting: {server.url}/jobs/one has sent nothing for 0.1 s" in capsys.readouterr().err
