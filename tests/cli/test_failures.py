"""A service that fails during a run: its route is stopped, the other routes go on, and each failure is counted once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack_cli import failures
from tests.client.judge.conftest import FAKE_JUDGE
from tests.support.servers import FaultServer, fault_server

from .conftest import Cli
from .samples import own, read_jsonl, read_parquet, sample, samples, write_jsonl, write_parquet

MAX_CONSECUTIVE = 20
"""Failures in a row that stop a route here, instead of 200: each row takes a millisecond of CPU time."""
PAIRS = 2 * MAX_CONSECUTIVE
CHUNK = 8
USAGE = {"prompt_tokens": 30, "completion_tokens": 4}
Read = Callable[[Path], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def few_consecutive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop a route after few failures in a row."""
    monkeypatch.setattr(failures, "MAX_CONSECUTIVE", MAX_CONSECUTIVE)


@pytest.fixture
def judge(cli: Cli) -> Iterator[FaultServer]:
    """A judge, to which the command is pointed, with a cache that keeps nothing."""
    server = FaultServer(script=FAKE_JUDGE)
    server.set(usage=USAGE, content="REWARD: 0.5")
    cli.variables |= {"LLM_JUDGE_SERVER_URL": server.url, "REWARD_CACHE_ITEMS": "0", "REWARDSTACK_MAX_RETRIES": "0"}
    yield server
    server.kill()


@pytest.fixture
def rules(cli: Cli) -> Iterator[FaultServer]:
    """A reward server, to which the command is pointed."""
    with fault_server() as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        yield server


def judged(number: int, **fields: Any) -> dict[str, Any]:
    """A sample for the judge."""
    return {**sample(number), "data_source": "llm_judge_remote_x", "extra_info": {"problem": "p"}, **fields}


def half_and_half() -> list[dict[str, Any]]:
    """Rows of two routes, alternating."""
    return [row for number in range(PAIRS) for row in (judged(number), sample(number))]


def status_of(rows: list[dict[str, Any]], source: str) -> list[str]:
    return [row["status"] for row in rows if row["data_source"] == source]


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(
    ("kind", "write", "read"), [("jsonl", write_jsonl, read_jsonl), ("parquet", write_parquet, read_parquet)]
)
def test_a_route_that_fails_is_stopped(
    cli: Cli, judge: FaultServer, tmp_path: Path, kind: str, write: Callable[..., Path], read: Read
) -> None:
    """After many failures in a row the rest of a route is left unscored, all other rows are scored, and the exit status
    is 3; with the service back, `--retry-failed` scores exactly the rows of that route."""
    rows = read(write(tmp_path / f"in.{kind}", half_and_half()))
    command = ("score", f"in.{kind}", "-o", f"out.{kind}", "--chunk-size", str(CHUNK))
    judge.set(status=400)
    result = cli(*command)
    out = read(tmp_path / f"out.{kind}")
    found = status_of(out, "llm_judge_remote_x")
    failed = found.count("failed")

    assert (result.status, own(out)) == (3, rows)
    assert status_of(out, "gsm8k") == ["ok"] * PAIRS
    assert MAX_CONSECUTIVE <= failed <= MAX_CONSECUTIVE + CHUNK
    assert found == ["failed"] * failed + ["unscored"] * (PAIRS - failed)
    assert {row["value"] for row in out if row["status"] == "unscored"} == {None}
    assert result.err.count(f"llm_judge_remote*: {MAX_CONSECUTIVE} consecutive rows failed; last error: ") == 1
    assert result.err.count(f"llm_judge_remote*: {failed} rows failed; first error: ") == 1
    not_sent = f"{PAIRS - failed} rows not sent, because {MAX_CONSECUTIVE} consecutive rows failed"
    assert f"llm_judge_remote*: {not_sent}" in result.err
    assert f"rows without a score: {PAIRS};" in result.err
    assert "samples failed" not in result.err, "a warning of each chunk"

    judge.set(reset=True, content="REWARD: 0.5")
    result = cli(*command, "--retry-failed")
    assert result.status == 0, result.err
    assert f"{PAIRS} of them now" in result.out
    assert judge.stats()["requests"] == PAIRS
    assert [row["value"] for row in read(tmp_path / f"out.{kind}")[::2]] == [0.5] * PAIRS


def test_failures_that_are_not_in_a_row(cli: Cli, rules: FaultServer, tmp_path: Path) -> None:
    """A route that fails now and then is never stopped; a run that fails from its first row on ends, with status 3."""
    write_jsonl(tmp_path / "in.jsonl", samples(3 * MAX_CONSECUTIVE))
    cli.variables["REWARDSTACK_MAX_RETRIES"] = "0"
    rules.set(mode="500")
    result = cli("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", "16")
    counts = status_of(read_jsonl(tmp_path / "out.jsonl"), "gsm8k")
    assert (result.status, len(counts)) == (3, 3 * MAX_CONSECUTIVE)
    assert counts.count("failed") <= MAX_CONSECUTIVE + 16


@pytest.mark.usefixtures("rules")
@pytest.mark.parametrize(("kind", "read"), [("jsonl", read_jsonl), ("parquet", read_parquet)])
def test_what_a_score_adds(cli: Cli, judge: FaultServer, tmp_path: Path, kind: str, read: Read) -> None:
    """A row has the values of its parts and what its judge used; they survive a run that scores other rows again."""
    routes = '[routes.mixed]\nsum = [{ route = "llm_judge_remote", weight = 0.7 }, { route = "gsm8k", weight = 0.3 }]\n'
    (tmp_path / "routes.toml").write_text(routes)
    cli.variables["REWARDSTACK_ROUTES"] = "routes.toml"
    broken = judged(4, data_source="mixed", ground_truth=None)
    write_jsonl(tmp_path / "in.jsonl", [judged(2, data_source="mixed"), broken])
    for arguments in ((), ("--retry-failed",)):
        assert cli("score", "in.jsonl", "-o", f"out.{kind}", *arguments).status == 3
        first, second = read(tmp_path / f"out.{kind}")
        used = {"requests": 1, **USAGE, "uncounted": 0}
        assert (dict(first["parts"]), first["usage"]) == ({"llm_judge_remote": 0.5, "gsm8k": 16.0}, used)
        assert (second["status"], second["parts"], second["label_mass"]) == ("unscored", None, None)


def test_label_mass(cli: Cli, judge: FaultServer, tmp_path: Path) -> None:
    """A row that was judged by label probabilities has their sum."""
    judge.set(chances={"1": 0.7, "0": 0.2})
    info = {"problem": "p", "verdict": "logprob", "labels": {"1": 1.0, "0": 0.0}}
    write_jsonl(tmp_path / "in.jsonl", [judged(2, extra_info=info)])
    result = cli("score", "in.jsonl", "-o", "out.jsonl")
    [row] = read_jsonl(tmp_path / "out.jsonl")
    assert (result.status, row["label_mass"]) == (0, pytest.approx(0.9)), row


@pytest.mark.parametrize(
    ("cause", "is_shown"),
    [
        ("function_raised", False),
        ("function_value", False),
        ("function_timeout", False),
        ("function_died", True),
        ("server_error", True),
        ("a cause of a later version", True),
        (None, True),
    ],
)
def test_check_is_suggested_for_services(
    cli: Cli, rules: FaultServer, tmp_path: Path, cause: str | None, is_shown: bool
) -> None:
    """`rewardstack check` is suggested if a service failed, but not if the user's own function did."""
    rules.set(said={"value": None, "status": "failed", "reason": "down", "cause": cause})
    (tmp_path / "routes.json").write_text('{"routes": {"mine": {"sum": ["gsm8k"]}}}')
    cli.variables["REWARDSTACK_ROUTES"] = str(tmp_path / "routes.json")
    write_jsonl(tmp_path / "in.jsonl", [sample(2)])
    results = [cli("score", "in.jsonl", "-o", "out.jsonl")]
    results += [cli("explain", "--data-source", source, "--solution", "x") for source in ("gsm8k", "mine")]
    assert [3, 1, 1] == [result.status for result in results]
    assert [is_shown] * 3 == ["`rewardstack check` checks the services" in one.out + one.err for one in results]
