"""What servers say of themselves: asked together, believed for a while, and held on to while a server is gone."""

from __future__ import annotations

import asyncio
import gc

import pytest

from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.errors import DeadlineError, RejectedError, RewardstackError, SettingsError, UnreachableError
from rewardstack.scorers.destination import Destination
from rewardstack.transport import timing
from rewardstack.transport.discovery import Discovery

LONG = 60.0


class Server:
    """Answers with how often it was asked, after a moment, once it is open."""

    def __init__(self) -> None:
        self.asked = 0
        self.open = asyncio.Event()
        self.open.set()
        self.fault: RewardstackError | None = None

    async def ask(self, deadline: SharedDeadline) -> int:
        """As `Discovery.find` calls it."""
        self.asked += 1
        mine = self.asked
        await asyncio.sleep(0)
        await self.open.wait()
        if self.fault is not None:
            raise self.fault
        return mine


def deadline(seconds: float = LONG) -> SharedDeadline:
    """A caller's deadline."""
    return SharedDeadline(Deadline(seconds))


async def test_asked_together_and_once() -> None:
    """All who ask at the same time share a request; later ones are told what it brought; another server is another."""
    server, said = Server(), Discovery[str, int]()

    first = await asyncio.gather(*(said.find("a", server.ask, deadline()) for _ in range(5)))
    later = await said.find("a", server.ask, deadline())
    other = await said.find("b", server.ask, deadline())

    assert ([1] * 5, 1, 2) == (first, later, other)
    assert ("a" in said, "c" in said, said.last_answer("a", 0), said.last_answer("c", 0)) == (True, False, 1, 0)


async def test_each_waits_as_long_as_it_can() -> None:
    """Who has less time than the one who asked gives up alone; who has more asks again."""
    server, said = Server(), Discovery[str, int]()
    server.open.clear()
    first, patient = (asyncio.create_task(said.find("a", server.ask, deadline())) for _ in range(2))
    while not server.asked:
        await asyncio.sleep(0)
    with pytest.raises(DeadlineError, match="no answer in time"):
        await said.find("a", server.ask, deadline(0.1))  # expires: the server is not open

    server.fault = DeadlineError("the first one's time is up")
    server.open.set()
    server.open.clear()  # lets the first one's question go, and holds the next
    with pytest.raises(DeadlineError, match="the first one's time is up"):
        await first
    server.fault = None
    server.open.set()

    assert (2, 2) == (await patient, server.asked)


async def test_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was said holds for a while; then, or where that is of no use, the server is asked again."""
    server, said = Server(), Discovery[str, int]()

    assert [1, 1] == [await said.find("a", server.ask, deadline()) for _ in range(2)]
    assert 2 == await said.refresh("a", server.ask, deadline())
    monkeypatch.setattr(timing, "VALID_FOR", -1.0)
    assert 3 == await said.find("a", server.ask, deadline())


FAULTS = {"slow": None, "gone": UnreachableError("gone"), "no key": SettingsError("no key", "API_KEY")}


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_was_said_holds(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A server that does not answer any more is waited for briefly, and once; its next answer is heard nonetheless."""
    server, said = Server(), Discovery[str, int]()
    await said.find("a", server.ask, deadline())
    monkeypatch.setattr(timing, "VALID_FOR", -1.0)
    monkeypatch.setattr(timing, "OPTIONAL_WAIT", 0.1)  # expires: the slow server is not open
    server.fault = FAULTS[fault]
    if fault == "slow":
        server.open.clear()

    assert [1] * 100 == [await said.find("a", server.ask, deadline()) for _ in range(100)]

    assert 2 == server.asked
    if fault == "slow":
        server.open.set()
        while said.last_answer("a", 0) == 1:
            await asyncio.sleep(0.01)
        assert 2 == said.last_answer("a", 0)


async def test_nobody_waits_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that comes after all who waited have gone is no fault to be logged."""
    server, said, faults = Server(), Discovery[str, int](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    await said.find("a", server.ask, deadline())
    monkeypatch.setattr(timing, "VALID_FOR", -1.0)
    monkeypatch.setattr(timing, "OPTIONAL_WAIT", 0.05)  # expires: the server is not open
    server.fault = UnreachableError("gone")
    server.open.clear()

    assert 1 == await said.find("a", server.ask, deadline())
    server.open.set()
    while said._requests:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()

    assert not faults


async def test_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is raised even where the server was known."""
    server, said = Server(), Discovery[str, int]()
    await said.find("a", server.ask, deadline())
    monkeypatch.setattr(timing, "VALID_FOR", -1.0)
    server.fault = RejectedError("a wrong key", 401)

    with pytest.raises(RejectedError, match="a wrong key"):
        await said.find("a", server.ask, deadline())


def test_no_key_in_words() -> None:
    """A destination is written without its key, wherever it is logged."""
    assert "secret" not in f"{Destination(('http://judge',), 'secret')!r} {Destination(('http://judge',), 'secret')}"
