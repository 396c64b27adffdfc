"""`rewardstack check --deep`: what is wrong with a stack it finds, names and says what to do about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import pytest

from rewardstack import Score
from rewardstack.errors import UnreachableError
from rewardstack.score import OnError
from rewardstack.settings import DEFAULTS, Settings
from rewardstack.transport.http import open_session
from rewardstack_cli import check
from rewardstack_cli.deep import scores
from rewardstack_cli.deep.checks import CHECKS, Check, CheckResult, run_check
from rewardstack_cli.deep.outage import check_judge_outage, command_switch
from rewardstack_cli.deep.protocols import PROTOCOLS
from rewardstack_cli.deep.samples import Sample
from rewardstack_cli.deep.stack import CheckFailedError, CheckSkippedError, Stack
from rewardstack_cli.main import main
from rewardstack_cli.probes.finding import ProbeError
from tests.support.servers import free_port

from .conftest import Cli, RewardServer
from .scripted_server import Answer, scripted_server

WELL = {
    "health": Answer({"status": "ok", "version": "9.8.7"}),
    "ready": Answer({"ready": True}),
    "score": Answer({"scores": [{"value": 1.0, "status": "ok", "reason": ""}]}),
}
ADDRESSES = {
    "REWARD_SERVER_URL": "http://rewards",
    "LLM_JUDGE_SERVER_URL": "http://judge",
    "EMBEDDING_SERVER_URL": "http://embedding",
}


def checked(
    name: str, make: Callable[..., Stack] = Stack, require: Sequence[str] = (), **environment: str
) -> CheckResult:
    """What becomes of one check, of a stack that the environment names."""

    async def run() -> CheckResult:
        async with open_session() as session:
            return await run_check(name, CHECKS[name], make(Settings.from_env(environment), session), require)

    return asyncio.run(run())


def test_a_service_that_is_missing(cli: Cli) -> None:
    """Where a service does not answer nothing else is checked, and the remedy is that of the plain check."""
    cli.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{free_port()}"
    result = cli("check", "--deep")
    assert result.status == 1
    assert "    start it with `make up`" in result.out
    assert "skipping the deep checks" in result.err
    assert "jobs" not in result.out


def test_what_the_judge_is_sent() -> None:
    """The headers and the query that the environment names for its judge go to it and to no other server."""
    given = {"LLM_JUDGE_HEADERS": "X-Tenant: seven", "LLM_JUDGE_QUERY": "tenant=7"}

    async def ask(url: str) -> None:
        addresses = {"REWARD_SERVER_URL": url, "LLM_JUDGE_SERVER_URL": url}
        async with open_session() as session:
            stack = Stack(Settings.from_env({**addresses, **given}), session)
            for service in stack.services:
                for server in stack.servers(service):
                    await server.reply(f"/{service}")

    with scripted_server(Answer({})) as seen:
        asyncio.run(ask(seen.url))
    sent = {one["path"]: one["headers"].get("X-Tenant") for one in seen.asked}
    assert {"/rules": None, "/judge?tenant=7": "seven"} == sent


MISUSES = {
    "not deep": ["--require=jobs"],
    "half an outage": ["--deep", "--stop-judge=true"],
    "an outage of no judge": ["--deep", "--stop-judge=true", "--start-judge=true"],
    "no such check": ["--deep", "--require=jbos"],
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuses(cli: Cli, misuse: str) -> None:
    """Options that go together are asked for together, and checks have names."""
    cli.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{free_port()}"
    result = cli("check", *MISUSES[misuse])
    assert (result.status, "--" in result.err) == (2, True)


def test_a_stack_that_is_not_named(cli: Cli) -> None:
    """A cache alone is no stack."""
    cli.variables["REWARD_CACHE_URL"] = f"redis://127.0.0.1:{free_port()}"
    result = cli("check", "--deep")
    assert (result.status, "REWARD_SERVER_URL is not set" in result.err) == (2, True)


SERVED = {**dict.fromkeys([*PROTOCOLS, "rules"], "ok"), **dict.fromkeys(["paths", "keys", "judge", "jobs"], "left out")}


@pytest.mark.parametrize("name", SERVED)
def test_a_reward_server_alone(reward_server: RewardServer, name: str) -> None:
    """A real one speaks every protocol and scores by rules; what it is without is left out."""
    row = checked(name, REWARD_SERVER_URL=reward_server.url)
    assert (row.result, row.problem) == (SERVED[name], None)


def test_what_must_not_be_left_out(reward_server: RewardServer) -> None:
    """What is required and not there is at fault."""
    row = checked("jobs", require=["jobs"], REWARD_SERVER_URL=reward_server.url)
    assert (row.result, str(row.problem)) == (
        "FAILED",
        "left out, although --require names it: the reward server has no queue",
    )


FAULTS: dict[str, tuple[dict[str, Answer], str]] = {
    "keys": ({}, "rules: /v1/score answers 200 to a wrong key"),
    "paths": (
        {"unlisted": Answer("own", 404), "health": Answer({})},
        "rules: /unlisted answers 404, expected the gateway's own 404",
    ),
    "v1-score": ({}, "scores 1.0, expected 0"),
    "openrlhf": ({"get_reward?reward_type=math": Answer({"scores": []})}, "the reply could not be parsed: KeyError"),
    "roll": ({"submit?reward_type=math": Answer(b"<html>")}, "the answer is not JSON"),
    "jobs": ({"jobs": Answer({"error": "full"}, 503, {"Retry-After": "5"})}, "/jobs answers 503"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_servers(name: str) -> None:
    """A server that takes any key, shows what it should not or answers nonsense is found out, with a remedy."""
    answers, fault = FAULTS[name]
    with scripted_server(**{**WELL, **answers}) as server:
        row = checked(name, REWARD_SERVER_URL=server.url, REWARD_SERVER_API_KEY="key")
    assert row.result == "FAILED"
    assert row.problem is not None
    assert fault in str(row.problem) and row.problem.remedy


class Zeroes(Stack):
    """A stack that scores everything 0, as if it took failures for scores."""

    async def score(
        self, some: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None
    ) -> list[Score]:
        return [Score(0.0) for _ in some]


class Forgetful(Stack):
    """A stack that scores rightly, and remembers nothing."""

    async def score(
        self, some: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None
    ) -> list[Score]:
        return [Score(sample.low) for sample in some]


class Careless(Stack):
    """A stack that remembers everything, and does not notice that its judge is gone."""

    async def score(
        self, some: Sequence[Sample], *, direct: bool = False, on_error: OnError | None = None
    ) -> list[Score]:
        return [Score(sample.low, cached=True) for sample in some]


@pytest.mark.parametrize("name", ["rules", "embedding", "embedding-directly", "same-scores", "cache"])
def test_wrong_scores(name: str) -> None:
    """Scores of 0 for everything are found wrong."""
    assert "expected" in str(checked(name, Zeroes, **ADDRESSES).problem)


def test_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right scores that never come from the cache are found wrong."""
    monkeypatch.setattr(scores, "CACHE_TIMEOUT", 0.0)
    row = checked("cache", Forgetful, **ADDRESSES)
    assert "rule_remote_regex_format" in str(row.problem)
    assert row.problem is not None and "check that the reward server's cache is up" in row.problem.remedy


def test_zero_for_a_failure() -> None:
    """A judge that is down and scores all the same is found wrong, and is started again."""
    started: list[str] = []

    async def stop() -> None:
        started.clear()

    async def start() -> None:
        started.append("judge")

    async def run() -> None:
        async with open_session() as session:
            url = f"http://127.0.0.1:{free_port()}"
            stack = Careless(Settings.from_env({**ADDRESSES, "LLM_JUDGE_SERVER_URL": url}), session)
            await check_judge_outage(stop, start, stack)

    with pytest.raises(CheckFailedError, match=r"is ok \(0.0\), expected failed: the judge is down"):
        asyncio.run(run())
    assert started == ["judge"]


def test_commands(needs_process: None) -> None:
    """A command that fails is said with its own words; it is run without a shell; a missing one is named."""
    asyncio.run(command_switch("echo $HOME ; exit 1")())
    with pytest.raises(CheckFailedError, match="No such file"):
        asyncio.run(command_switch("ls /no-such-folder")())
    with pytest.raises(ProbeError, match="no-such-program"):
        asyncio.run(command_switch("no-such-program")())


def ending(error: Exception | None) -> Check:
    """A check that ends so."""

    async def end(stack: Stack) -> str:
        if error is not None:
            raise error
        return "all right"

    return Check(end, "mend it")


ENDS = {
    "first": None,
    "second": CheckFailedError("one is two"),
    "third": CheckSkippedError("there is none"),
    "fourth": UnreachableError("gone"),
    "fifth": ProbeError("worn out", "oil it"),
}


@pytest.fixture
def well(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment names a healthy reward server and nothing else."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    with scripted_server(**WELL) as server:
        monkeypatch.setenv("REWARD_SERVER_URL", server.url)
        yield


@pytest.mark.usefixtures("well")
def test_the_report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Each check has a row, one that fails hides none of the others, and what fails is named with its remedy."""
    monkeypatch.setattr(check, "CHECKS", {name: ending(error) for name, error in ENDS.items()})
    status = main(["check", "--deep"])
    out = capsys.readouterr().out
    rows = [line.split("│")[1:3] for line in out.splitlines() if line.startswith("│")]
    found = {name.strip(): result.strip() for name, result in rows}
    assert status == 1
    assert {name: found[name] for name in ENDS} == {
        "first": "ok",
        "second": "FAILED",
        "third": "left out",
        "fourth": "FAILED",
        "fifth": "FAILED",
    }
    assert all(line in out for line in ("second: one is two\n    mend it", "fifth: worn out\n    oil it"))


@pytest.mark.usefixtures("well")
def test_everything_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out does no harm: the exit status is 0."""
    monkeypatch.setattr(check, "CHECKS", {name: ending(ENDS[name]) for name in ("first", "third")})
    assert main(["check", "--deep"]) == 0


@pytest.mark.usefixtures("well")
def test_a_part_that_was_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A part that the environment switches on is not left out, and --wait waits for it during a rollout."""
    answers: list[Exception | None] = [CheckSkippedError("there is no queue")]

    async def roll_out(_: Stack) -> str:
        if error := answers.pop(0) if len(answers) > 1 else answers[0]:
            raise error
        return "all right"

    monkeypatch.setenv("REWARD_QUEUE_URL", "redis://queue")
    monkeypatch.setattr(check, "CHECKS", {"jobs": Check(roll_out, switches=CHECKS["jobs"].switches)})
    first = main(["check", "--deep"]), capsys.readouterr().out
    answers.append(None)
    second = main(["check", "--deep", "--wait", "60"]), capsys.readouterr().out

    assert [first[0], second[0]] == [1, 0]
    problem = "jobs: REWARD_QUEUE_URL is set, but still answered by a version without it: there is no queue"
    assert f"{problem}\n    wait for the rollout" in first[1] and "jobs:" not in second[1]


def test_the_servers_own_keys(cli: Cli) -> None:
    """Where the stack runs, the first of the keys that its server takes is sent."""
    with scripted_server(**WELL) as server:
        keys = "first-key-of-tests, second-key-of-tests"
        cli.variables |= {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_API_KEYS": keys}
        assert cli("check").status == 0
    assert server.asked[-1]["headers"]["Authorization"] == "Bearer first-key-of-tests"
