"""What verdicts cost: told with each score and in the log, and held to what a run may spend."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Score, client, errors, register_judge, register_route, score
from rewardstack.cache.store import ResultCache
from rewardstack.score import Usage
from rewardstack.scorers.budget import Budget
from rewardstack.settings import Settings
from tests.client.conftest import Script
from tests.client.judge.conftest import JUDGE, asked, sample
from tests.support.servers import FaultServer, Redis

pytestmark = pytest.mark.usefixtures("needs_process")

TOLD = {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34, "prompt_tokens_details": None}
COSTS: dict[str, tuple[dict[str, Any], dict[str, Any], Usage]] = {
    "a verdict": ({"usage": TOLD}, {}, Usage(1, 30, 4)),
    "votes": ({"usage": TOLD}, {"num_samples": 3}, Usage(3, 90, 12)),
    "a server that counts no tokens": ({}, {}, Usage(1, 0, 0, 1)),
    "a reply without a verdict": ({"usage": TOLD, "content": "no"}, {}, Usage(2, 60, 8)),
    "a candidate that quotes a usage": ({"content": '"prompt_tokens": 9\nREWARD: 0.5'}, {}, Usage(1, 0, 0, 1)),
}
BUDGET = "REWARDSTACK_MAX_REQUESTS"


def own(text: str, **extra: Any) -> Any:
    """A sample whose verdict may be remembered, and that no other test has."""
    return sample(text, temperature=0, **extra)


def spend(requests: Sequence[Any], **options: Any) -> tuple[list[Score], str]:
    """The scores of a call, and the error that it ends with where the run's budget is spent."""
    try:
        return score(requests, **options), ""
    except errors.BudgetError as error:
        return error.scores, str(error)


@pytest.mark.parametrize(("state", "extra", "cost"), COSTS.values(), ids=COSTS)
def test_usage(judge: FaultServer, state: dict[str, Any], extra: dict[str, Any], cost: Usage) -> None:
    """A score says what was asked of the judge for it, every vote and failed reply included."""
    judge.set(**state)
    (one,) = score([sample(**extra)])
    assert cost == one.usage


def test_failed_requests(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt is a request, also where none brings a reply."""
    judge.set(status=500)
    monkeypatch.setenv("REWARDSTACK_MAX_RETRIES", "1")
    (one,) = score([sample()])
    assert ("failed", Usage(2, 0, 0, 2)) == (one.status, one.usage)


def test_shared_and_cached(judge: FaultServer, caplog: pytest.LogCaptureFixture) -> None:
    """What one request decided is paid for once; what the cache has costs nothing. The log says so by the batch."""
    judge.set(usage=TOLD)
    with caplog.at_level(logging.INFO):
        first, again = score([own("same"), own("same")]), score([own("same")])
    assert Usage(1, 30, 4) == Usage.total(one.usage for one in first)
    assert [None] == [one.usage for one in again]
    assert "0 unscored; 1 request, 30 prompt and 4 completion tokens" in caplog.text
    assert "0 unscored; no requests to models" in caplog.text


def test_composite(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of a composite took what its parts did, also of a part that another one overrules."""
    judge.set(usage=TOLD)
    monkeypatch.setattr(client, "_registered", {})
    register_judge("second", {"base_url": judge.url})
    register_route("both", {"cascade": [{"route": JUDGE, "at_least": 2}, "second"]})
    request = own("composite")
    request.data_source = "both"
    (one,) = score([request])
    assert Usage(2, 60, 8) == one.usage


@pytest.mark.parametrize(("name", "cap"), [(BUDGET, "2"), ("REWARDSTACK_MAX_TOKENS", "68")])
def test_a_spent_budget_ends_the_call(
    judge: FaultServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, cap: str
) -> None:
    """The error names the variable and the remedy; what was paid for is kept, and still read afterwards."""
    judge.set(usage=TOLD)
    monkeypatch.setenv(name, cap)
    monkeypatch.setenv("REWARDSTACK_RUN_ID", f"alone {name}")
    paid = [own("first"), own("second")]
    scores, error = spend([*paid])
    assert (["ok", "ok"], "") == ([one.status for one in scores], error)
    scores, error = spend([own("first"), own("third")])
    assert ["ok", "failed"] == [one.status for one in scores]
    assert error.startswith(f"{name}: this process has used {cap} of {cap} ")
    assert "raise the limit" in error
    assert [True, True] == [one.cached for one in score(paid)]
    assert 2 == len(asked(judge))
    assert 1 == caplog.text.count("limit only this process; ")
    monkeypatch.setenv(name, "100")
    assert ["ok"] == [one.status for one in score([own("third")])]


def test_what_a_refused_sample_took(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sample that the budget refuses half-way the requests that were sent are told."""
    judge.set(usage=TOLD)
    monkeypatch.setenv(BUDGET, "2")
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "votes that are refused")
    scores, error = spend([sample("votes", num_samples=4)])
    assert error and len(asked(judge)) == 2
    assert [("failed", Usage(2, 60, 8))] == [(one.status, one.usage) for one in scores]


@pytest.mark.parametrize("policy", ["none", "zero"])
def test_on_error_decides(judge: FaultServer, monkeypatch: pytest.MonkeyPatch, policy: Any) -> None:
    """The call's error policy also decides the value of samples that the budget refused."""
    monkeypatch.setenv(BUDGET, "1")
    monkeypatch.setenv("REWARDSTACK_RUN_ID", f"policy {policy}")
    scores, error = spend([own("a"), own("b"), own("c")], on_error=policy)
    assert "" == error
    assert ["failed", "failed", "ok"] == sorted(one.status for one in scores)
    lost = [one for one in scores if one.status == "failed"]
    assert {None if policy == "none" else 0.0} == {one.value for one in lost}
    assert all(one.reason.startswith(f"{BUDGET}: ") for one in lost)


def test_on_error_of_a_route(judge: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A route that says it decides as well."""
    monkeypatch.setenv(BUDGET, "1")
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "a route's policy")
    register_route("test_cost_lenient", {"route": JUDGE, "on_error": "none"})
    requests = [own("a"), own("b")]
    for one in requests:
        one.data_source = "test_cost_lenient"
    scores, error = spend(requests)
    assert ("", {None}) == (error, {one.value for one in scores if one.status == "failed"})


RUN = """
import logging
from rewardstack import Request, errors, score
from rewardstack.cache import link, writer
from rewardstack.core import event_loop
from rewardstack.transport import timing
timing.MIN_STUCK = 60.0  # no hedges, which spend tokens
link.TIMEOUT = writer.FLUSH_TIMEOUT = event_loop.CLOSING_TIME = 60.0
logging.disable()
request = [Request("llm_judge_remote_test", text, "42", {{"problem": "p", "temperature": 0}}) for text in {texts}]
try:
    print([one.status for one in score(request)])
except errors.BudgetError as error:
    print([one.status for one in error.scores], error)
"""


def test_processes_of_a_run_share_the_budget(
    judge: FaultServer, redis: Redis, run_script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a run's name and a Redis its processes count together, tokens too; another run has a budget of its own."""
    judge.set(usage=TOLD)
    monkeypatch.setenv("REWARDSTACK_MAX_TOKENS", "100")
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "run-1")
    assert "['ok', 'ok']" == run_script(RUN.format(texts=["a", "b"]))
    assert "['ok']" == run_script(RUN.format(texts=["c"]))
    third = run_script(RUN.format(texts=["a", "d"]))
    assert third.startswith("['ok', 'failed'] REWARDSTACK_MAX_TOKENS: the run 'run-1' has used 1")
    assert " of 100 tokens on model servers; raise the limit, or set another REWARDSTACK_RUN_ID" in third
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "run-2")
    assert "['ok']" == run_script(RUN.format(texts=["e"]))
    assert 4 == len(asked(judge))


def test_redis_goes_and_comes(
    judge: FaultServer, redis: Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While Redis is away the process counts alone, from where the run stood, and warns."""
    monkeypatch.setenv(BUDGET, "3")
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "an outage")
    assert ["ok"] == [one.status for one in score([own("a")])]
    redis.kill()
    scores, error = spend([own("b"), own("c"), own("d"), own("e")])
    assert ["failed", "failed", "ok", "ok"] == sorted(one.status for one in scores)
    assert "has used 3 of 3 requests" in error
    assert "this process counts the run's requests and tokens alone" in caplog.text


async def test_failed_cache_writes_do_not_stop_the_count(redis: Redis) -> None:
    """Where Redis refuses values of the cache, the processes of a run still count together."""
    settings = Settings.from_env()
    link = ResultCache(settings).link

    async def refused(_: Any) -> bool:
        raise OSError("refused")

    assert await link.execute("written", refused) is None
    first, second = Budget(link, "shared", 60), Budget(link, "shared", 60)
    for one in (first, second):
        one.set_limits(1, 0)
    await first.admit()
    with pytest.raises(errors.BudgetError):
        await second.admit()
    await link.close()


@pytest.mark.parametrize("is_granted", [False, True])
async def test_a_cancelled_request_gives_its_grant_back(
    redis: Redis, monkeypatch: pytest.MonkeyPatch, is_granted: bool
) -> None:
    """A caller that is cancelled before or after Redis replies spends none of the run's requests."""
    link = ResultCache(Settings.from_env()).link
    budget, other = Budget(link, "cancelled", 60), Budget(link, "cancelled", 60)
    execute, callers = link.execute, list[asyncio.Task[None]]()

    async def execute_and_cancel(*arguments: Any) -> Any:
        result = await execute(*arguments)
        if is_granted:  # the loop calls this once the waiters have their grants, and before their tasks continue
            asyncio.get_running_loop().call_soon(callers[0].cancel)
        else:
            callers[0].cancel()
        return result

    budget.set_limits(2, 0)
    other.set_limits(2, 0)
    with monkeypatch.context() as patched:
        patched.setattr(link, "execute", execute_and_cancel)
        callers += [asyncio.create_task(budget.admit()) for _ in range(2)]
        assert [True, False] == [
            isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*callers, return_exceptions=True)
        ]
    await budget.flush()
    await other.admit()
    with pytest.raises(errors.BudgetError, match="has used 2 of 2 requests"):
        await other.admit()
    await link.close()


def test_what_is_told_again_counts_once(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a reply of Redis is lost, what it had taken in does not count a second time."""

    async def score_through_a_lost_reply() -> None:
        link = ResultCache(Settings.from_env()).link
        budget, other = Budget(link, "lost reply", 60), Budget(link, "lost reply", 60)
        budget.set_limits(0, 50)
        other.set_limits(0, 50)
        with monkeypatch.context() as patched:
            told = link.execute

            async def lose(*arguments: Any) -> None:
                await told(*arguments)

            patched.setattr(link, "execute", lose)
            budget.add(0, 34)
            await budget.flush()
        await budget.flush()
        await other.admit()
        budget.add(0, 34)
        await budget.flush()
        with pytest.raises(errors.BudgetError, match="has used 68 of 50 tokens"):
            await other.admit()
        await link.close()

    asyncio.run(score_through_a_lost_reply())


def test_many_processes_never_pass_a_cap_on_requests(
    judge: FaultServer, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more requests at a time than the run may send, exactly as many are sent."""
    judge.set(delay=0.05)
    monkeypatch.setenv(BUDGET, "20")
    monkeypatch.setenv("REWARDSTACK_RUN_ID", "at once")
    scores, error = spend([own(f"{at}") for at in range(50)])
    assert 20 == sum(one.status == "ok" for one in scores) == len(asked(judge))
    assert "has used 20 of 20 requests" in error
