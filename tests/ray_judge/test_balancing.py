"""Whose turn it is among the engines of a judge in Ray, and what becomes of requests where they are lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from rewardstack.errors import UnreachableError
from rewardstack.ray_judge import FrozenRewardInferenceClient, balancing
from rewardstack.ray_judge.balancing import Response

CHAT = ("POST", "/v1/chat/completions", b"{}")


class Engine:
    """One that answers once it may, and is lost on demand."""

    def __init__(self, number: int) -> None:
        self.name = f"engine {number}"
        self.lost = False
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def request(self, method: str, path: str, body: bytes) -> Response:
        self.asked += 1
        await self.may_answer.wait()
        if self.lost:
            raise UnreachableError(f"{self.name}: ActorUnavailableError")
        return 200, self.name.encode()

    async def ping(self) -> int:
        if self.lost:
            raise UnreachableError(f"{self.name}: it restarts")
        return 7


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that were lost are looked at often."""
    monkeypatch.setattr(balancing, "CHECK_INTERVAL", 0.01)


def reason(answer: Response) -> str:
    """What a refusal says."""
    return str(json.loads(answer[1])["error"])


async def until(holds: Callable[[], bool]) -> None:
    """Returns when something holds."""

    async def look() -> None:
        while not holds():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(look(), 60)


async def test_least_loaded() -> None:
    """Requests that wait are spread evenly."""
    engines = [Engine(one) for one in range(3)]
    client = FrozenRewardInferenceClient(engines)
    for one in engines:
        one.may_answer.clear()
    asked = [asyncio.ensure_future(client.request(*CHAT, 60)) for _ in range(9)]
    await until(lambda: sum(one.asked for one in engines) == 9)
    assert [one.asked for one in engines] == [3, 3, 3]
    for one in engines:
        one.may_answer.set()
    assert [status for status, _ in await asyncio.gather(*asked)] == [200] * 9


async def test_lost_engine() -> None:
    """What an engine was asked that is lost, another one answers; it is left out until it answers again."""
    first, second = engines = [Engine(1), Engine(2)]
    client = FrozenRewardInferenceClient(engines)
    first.lost = True
    answers = await asyncio.gather(*[client.request(*CHAT, 60) for _ in range(8)])
    assert answers == [(200, b"engine 2")] * 8
    before = first.asked
    await client.request(*CHAT, 60)
    assert first.asked == before and client.is_up
    assert "restarts" in str(client.state()[0]["lost"]) or "Unavailable" in str(client.state()[0]["lost"])
    first.lost = False
    await until(lambda: not client.state()[0]["lost"])
    second.lost = True
    assert await client.request(*CHAT, 60) == (200, b"engine 1")


async def test_no_engine() -> None:
    """With no engine up a request is refused for now, with the reasons."""
    engines = [Engine(1), Engine(2)]
    client = FrozenRewardInferenceClient(engines)
    for one in engines:
        one.lost = True
    answer = await client.request(*CHAT, 60)
    assert answer[0] == 503 and not client.is_up
    assert "no engine is up" in reason(answer) and "engine 1" in reason(answer) and "engine 2" in reason(answer)


async def test_full() -> None:
    """Past what the engines hold, requests are refused for now, as by a server with a full queue."""
    engine = Engine(1)
    engine.may_answer.clear()
    client = FrozenRewardInferenceClient([engine], max_in_flight=2)
    asked = [asyncio.ensure_future(client.request(*CHAT, 60)) for _ in range(2)]
    await until(lambda: engine.asked == 2)
    refused = await client.request(*CHAT, 60)
    assert refused[0] == 429 and "2 requests are in flight" in reason(refused)
    engine.may_answer.set()
    assert [status for status, _ in await asyncio.gather(*asked)] == [200, 200]
    assert client.state() == [{"name": "engine 1", "in_flight": 0, "lost": ""}]


async def test_deadline() -> None:
    """An engine that does not answer in time is no outage: the request is answered with that reason."""
    engine = Engine(1)
    engine.may_answer.clear()
    client = FrozenRewardInferenceClient([engine])
    answer = await client.request(*CHAT, 0.05)  # expires
    assert answer[0] == 504 and "no answer from engine 1" in reason(answer)
    assert client.state() == [{"name": "engine 1", "in_flight": 0, "lost": ""}]
