"""Who may call: many threads, running event loops, an interpreter that exits; and who may not: our own loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rewardstack import acompute_score, compute_score
from rewardstack.core.event_loop import loop_thread
from rewardstack.errors import LoopError
from tests.client.conftest import Script
from tests.support.servers import FaultServer
from tests.support.waiters import impatient_and_patient

pytestmark = pytest.mark.usefixtures("needs_process")


def test_64_threads(server: FaultServer) -> None:
    """64 threads score one sample at a time; each gets its own scores, and requests are shared among them."""
    results: dict[int, list[float | None]] = {}

    def work(thread: int) -> None:
        results[thread] = [compute_score("math", "x" * (64 * at + thread + 1)) for at in range(20)]

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(64)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {thread: [64.0 * at + thread + 1 for at in range(20)] for thread in range(64)} == results
    assert 64 * 20 == server.stats()["items"] > 4 * server.stats()["requests"]


async def test_inside_a_running_loop(server: FaultServer) -> None:
    """Inside a caller's loop the blocking call works, and the twin leaves that loop free."""
    assert 3.0 == compute_score("math", "abc")
    server.set(mode="hold")
    scores = asyncio.gather(acompute_score("math", "abcd"), acompute_score("math", "abcde"))
    while server.stats()["items"] < 3:
        await asyncio.sleep(0.01)
    server.set(mode="ok")  # the replies wait for this, which only a free loop does
    assert [4.0, 5.0] == await scores


def test_on_our_own_loop_raises(server: FaultServer) -> None:
    """A blocking call from the client's own loop raises rather than waits for itself."""

    async def call() -> float | None:
        value: float | None = compute_score("math", "abc")
        return value

    with pytest.raises(LoopError, match="async version"):
        asyncio.run_coroutine_threadsafe(call(), loop_thread().loop).result(5)


def test_async_twin_on_our_own_loop(server: FaultServer) -> None:
    """The async twin works on the client's own loop, too."""

    async def call() -> float | None:
        value: float | None = await acompute_score("math", "abc")
        return value

    assert 3.0 == asyncio.run_coroutine_threadsafe(call(), loop_thread().loop).result(5)


def test_exit_with_a_hung_server(server: FaultServer, run_script: Script) -> None:
    """The interpreter exits although a server and a name server hang, and says nothing."""
    server.set(mode="hang")
    out = run_script("""
        import threading, time
        from rewardstack import compute_score
        import rewardstack.transport.http as resolver

        resolver._look_up = lambda *names: time.sleep(3600)
        info = {"server_url": "http://names.invalid:6000"}
        threading.Thread(target=compute_score, args=("math", "abc"), daemon=True).start()
        threading.Thread(target=compute_score, args=("math", "abc", None, info), daemon=True).start()
        time.sleep(0.5)
        print("exits")
    """)
    assert out == "exits"


def test_a_call_at_exit_is_an_error(server: FaultServer, run_script: Script) -> None:
    """A call in an `atexit` handler that runs after the client has stopped ends with an error, and does not hang."""
    out = run_script("""
        import asyncio, atexit
        from rewardstack import acompute_score, compute_score
        from rewardstack.errors import LoopError

        def call_late():
            for call in (lambda: compute_score("math", "abc"), lambda: asyncio.run(acompute_score("math", "abc"))):
                try:
                    print(call())
                except LoopError as error:
                    print("the process is exiting" in str(error))

        atexit.register(call_late)
        print(compute_score("math", "abc"))
    """)
    assert out.split() == ["3.0", "True", "True"]


def test_two_waiters_on_one_call(server: FaultServer) -> None:
    """Of two who wait for one call, the impatient one fails before the reply and the patient one gets the score."""
    server.set(mode="hold")
    assert ("failed", "ok") == impatient_and_patient("math", release=lambda: server.set(mode="ok"))
    assert 1 == server.stats()["requests"]


def test_call_that_nobody_waits_for(server: FaultServer) -> None:
    """A caller that is cancelled leaves the call to the others who wait for it."""

    async def both() -> float | None:
        server.set(mode="hold")
        first = asyncio.create_task(acompute_score("math", "shared"))
        second = asyncio.create_task(acompute_score("math", "shared"))
        while server.stats()["requests"] < 1:
            await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0)
        server.set(mode="ok")
        value: float | None = await second
        return value

    assert 6.0 == asyncio.run(both())
    assert 1 == server.stats()["requests"]
