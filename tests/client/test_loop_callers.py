"""Who may call: many threads, running event loops, an interpreter that exits; and who may not: our own loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from rewardstack import Request, acompute_score, compute_score, score
from rewardstack.core.batching import Batcher
from rewardstack.core.event_loop import loop_thread
from rewardstack.errors import LoopError
from rewardstack.pipeline import stages
from tests.client.conftest import Script
from tests.support.servers import FaultServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")


def test_64_threads(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 threads score one sample at a time; each gets its own scores, and requests are shared among them."""
    monkeypatch.setattr(stages, "Batcher", partial(Batcher, window=60.0))  # however slowly they come
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
        asyncio.run_coroutine_threadsafe(call(), loop_thread().loop).result(60)


def test_async_twin_on_our_own_loop(server: FaultServer) -> None:
    """The async twin works on the client's own loop, too."""

    async def call() -> float | None:
        value: float | None = await acompute_score("math", "abc")
        return value

    assert 3.0 == asyncio.run_coroutine_threadsafe(call(), loop_thread().loop).result(60)


def test_exit_with_a_hung_server(server: FaultServer, run_script: Script) -> None:
    """The interpreter exits although a server and a name server hang, and says nothing."""
    server.set(mode="hang")
    out = run_script("""
        import json, os, threading, time, urllib.request
        from rewardstack import compute_score
        from rewardstack.transport import http, timing

        asked = threading.Event()
        timing.LOG_AFTER = 3600.0
        http._look_up = lambda *names: asked.set() or time.sleep(3600)
        info = {"server_url": "http://names.invalid:6000"}
        threading.Thread(target=compute_score, args=("math", "abc"), daemon=True).start()
        threading.Thread(target=compute_score, args=("math", "abc", None, info), daemon=True).start()
        assert asked.wait(60)
        stats = os.environ["REWARD_SERVER_URL"] + "/_stats"
        while json.load(urllib.request.urlopen(stats)).get("requests", 0) < 1:
            time.sleep(0.05)
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

    def status(timeout: float) -> str:
        return score([Request("math", "shared", "1", {"timeout": timeout})])[0].status

    server.set(mode="hold")
    with ThreadPoolExecutor(1) as pool:
        patient = pool.submit(status, 60.0)
        eventually(lambda: server.stats()["requests"])
        assert "failed" == status(0.5)  # expires: the server holds its reply
        server.set(mode="ok")
        assert "ok" == patient.result()
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
