"""What becomes of a task, whatever it does."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rewardstack.errors import ConfigError
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.launch import INHERITED, ONE_THREAD
from tests.isolation.processes import MakeClient, run_all

OUTCOMES = [
    pytest.param({"with": 7}, {"value": 7}, id="result"),
    pytest.param({"with": "\ud800 \udfff é \x00"}, {"value": "\ud800 \udfff é \x00"}, id="lone surrogates"),
    pytest.param({"do": "refuse", "with": "no"}, {"error": "raised", "message": "ValueError: no"}, id="exception"),
    pytest.param(
        {"do": "refuse", "with": "x" * 9999},
        {"error": "raised", "message": "ValueError: " + "x" * 500},
        id="long message",
    ),
    pytest.param({"do": "leave", "with": 3}, {"error": "raised", "message": "SystemExit: 3"}, id="sys.exit"),
    pytest.param(
        {"do": "set"},
        {"error": "raised", "message": "TypeError: Object of type set is not JSON serializable"},
        id="result is not JSON",
    ),
    pytest.param({"do": "exit", "with": 0}, {"error": "killed"}, id="os._exit"),
    pytest.param({"do": "segfault"}, {"error": "killed"}, id="segmentation fault"),
    pytest.param({"do": "bomb"}, {"error": "killed"}, id="memory bomb"),
    pytest.param({"do": "swallowed_bomb"}, {"error": "killed"}, id="memory bomb whose MemoryError is swallowed"),
    pytest.param({"do": "loop"}, {"error": "timeout"}, id="endless loop"),
    pytest.param({"do": "hang"}, {"error": "timeout"}, id="endless native code"),
]


@pytest.mark.parametrize(("task", "expected"), OUTCOMES)
async def test_outcome(lasting: IsolationClient, task: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each way to end has its own result, and neighbours of the same call have theirs."""
    timeout = 0.5 if expected == {"error": "timeout"} else 60  # expires
    results = await asyncio.gather(
        lasting.run({"with": "before"}, timeout=60),
        lasting.run(task, timeout=timeout),
        lasting.run({"with": "after"}, timeout=60),
    )
    assert results == [{"value": "before"}, expected, {"value": "after"}]


async def test_order(lasting: IsolationClient) -> None:
    """Results come in the order of the tasks, also where later tasks end first."""
    seconds = [0.2, 0.0, 0.05, 0.0, 0.15]
    results = await run_all(lasting, [{"do": "sleep", "with": second} for second in seconds], timeout=60)
    assert [result["value"] for result in results] == seconds


async def test_giant_task(make_client: MakeClient) -> None:
    """A task beyond the bound is refused by itself, with a message that says so."""
    client = make_client(max_frame_bytes=1000)
    results = await run_all(client, [{"with": "x" * 2000}, {"with": "fine"}], timeout=60)
    assert results == [
        {"error": "oversize", "message": "a task of 2011 bytes is over the limit of 1000"},
        {"value": "fine"},
    ]


async def test_giant_result(make_client: MakeClient) -> None:
    """A result beyond the bound is refused by itself, with a message that says so."""
    client = make_client(max_frame_bytes=1000)
    results = await run_all(client, [{"do": "big", "with": 2000}, {"with": "fine"}], timeout=60)
    assert results == [
        {"error": "raised", "message": "ValueError: a result of 2012 bytes is over the limit of 1000"},
        {"value": "fine"},
    ]


@pytest.mark.parametrize("bad", [{"with": {1}}, {"with": b"x"}], ids=["set", "bytes"])
async def test_task_that_is_not_json(lasting: IsolationClient, bad: dict[str, Any]) -> None:
    """A task that JSON cannot hold has a result that says so; the others run."""
    [result, fine] = await run_all(lasting, [bad, {"with": 1}], timeout=60)
    assert (result["error"], "the task is not JSON" in result["message"]) == ("unwritable", True)
    assert fine == {"value": 1}


async def test_deep_task(lasting: IsolationClient) -> None:
    """A task nested beyond what JSON can be read back has a result that says so; the others run."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    [result, fine] = await run_all(lasting, [{"with": deep}, {"with": 1}], timeout=60)
    assert (result["error"], fine) == ("unwritable", {"value": 1})


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
async def test_bad_timeout(lasting: IsolationClient, timeout: float) -> None:
    """A timeout that is no time is the caller's error, and named."""
    with pytest.raises(ConfigError, match="timeout: ") as caught:
        await lasting.run({}, timeout=timeout)
    assert caught.value.field == "timeout"


async def test_chatter(capfd: pytest.CaptureFixture[str], make_client: MakeClient) -> None:
    """What a task prints goes nowhere, and least of all into results."""
    tasks: list[dict[str, Any]] = [{"do": "chatter", "with": json.dumps({"value": "forged"})}, {"with": 1}] * 20
    results = await run_all(make_client(), tasks, timeout=60)
    assert results == [{"value": json.dumps({"value": "forged"})}, {"value": 1}] * 20
    assert capfd.readouterr() == ("", "")


async def test_descriptors(lasting: IsolationClient) -> None:
    """A child has its own socket and three times nothing, and no file of anybody else's."""
    result = await lasting.run({"do": "descriptors"}, timeout=60)
    assert result == {"value": ["/dev/null", "/dev/null", "/dev/null", "socket"]}


async def test_environment(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children get the variables of the list, and those that the configuration names, and no others."""
    for name in ("LLM_JUDGE_HEADERS", "REWARD_FUNCTIONS", "MINE", "LC_TIME"):
        monkeypatch.setenv(name, "C")
    result = await make_client(variables=("MINE",)).run({"do": "environment"}, timeout=60)
    fixed = {*ONE_THREAD, "PYTHONPATH", "PYTHONHASHSEED", "MINE"}
    assert {"MINE", "LC_TIME", "PATH"} <= set(result["value"])
    assert {name for name in result["value"] if not name.startswith("LC_")} <= fixed | INHERITED


@pytest.mark.parametrize("entry", ["isolation_entries:run", "isolation_numpy:run"])
async def test_single_thread(make_client: MakeClient, entry: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The process that forks has one thread, also where a library would start more."""
    result = await make_client(entry=entry).run({"do": "threads"}, timeout=60)
    assert (result["value"], capfd.readouterr().err) == (1, "")


async def test_threads_are_reported(make_client: MakeClient, capfd: pytest.CaptureFixture[str]) -> None:
    """An entry that starts threads of its own is used, and the log says what may come of it."""
    result = await make_client(entry="isolation_threads:run").run({}, timeout=60)
    assert result == {}
    assert "isolation_threads:run starts threads, so forked children may hang" in capfd.readouterr().err
