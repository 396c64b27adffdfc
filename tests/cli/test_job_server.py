"""The client of `/jobs`: how long it waits where it is refused, and how it reads results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rewardstack import endpoints
from rewardstack.cause import Cause
from rewardstack.core.wire import score_record
from rewardstack.errors import RejectedError, ReplyError
from rewardstack.score import Score, Usage
from rewardstack.settings import Settings
from rewardstack_cli.data.source import Source
from rewardstack_cli.jobs import server as job_server
from rewardstack_cli.jobs.job_file import JobFile
from rewardstack_cli.jobs.scoring import JobScoring
from rewardstack_cli.jobs.server import PAGE_SIZE, RETRY_INTERVAL, JobServer
from tests.cli.conftest import Cli
from tests.cli.samples import ADDED, own, read_jsonl, read_parquet, sample, write_jsonl, write_parquet
from tests.cli.scripted_server import Answer, scripted_server
from tests.support.endpoints import write_endpoints
from tests.support.servers import free_port

TIMEOUT = 40.0
Read = Callable[[Path], list[dict[str, Any]]]


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_honored_within_the_timeout(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """The client waits as long as the server's Retry-After says, but never longer than its own timeout."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    own = SimpleNamespace(sleep=sleep, TimeoutError=asyncio.TimeoutError)  # others sleep meanwhile, in other threads
    monkeypatch.setattr("rewardstack_cli.jobs.server.asyncio", own)
    refusals = [
        Answer({"error": "full"}, status, headers) for headers in ({"Retry-After": "7"}, {}, {"Retry-After": "3600"})
    ]
    with scripted_server(*refusals, Answer({"status": "finished"})) as server:
        variables = {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_TIMEOUT": str(TIMEOUT)}
        async with JobServer(Settings.from_env(variables)) as jobs:
            assert await jobs.state("one") == {"status": "finished"}

    first, second, third = slept
    assert (first, second) == (7, RETRY_INTERVAL) and 0 < third <= TIMEOUT


async def test_a_refused_key_is_said() -> None:
    """A key that the server refuses ends the wait at once, and the error names the variable."""
    with scripted_server(Answer({"error": "an API key is needed"}, 401)) as server:
        variables = {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_API_KEY": "secret"}
        async with JobServer(Settings.from_env(variables)) as jobs:
            with pytest.raises(
                RejectedError, match="401: an API key is needed; .* key in REWARD_SERVER_API_KEY"
            ) as one:
                await jobs.submit(b"{}", "key")
    assert "secret" not in str(one.value)


async def test_a_server_without_a_queue() -> None:
    """A server without a queue never accepts a job, so its 503 is not retried; the error has the remedy."""
    refusal = "this server accepts no jobs: it has no queue; set REWARD_QUEUE_URL"
    with scripted_server(Answer({"error": refusal, "field": "REWARD_QUEUE_URL"}, 503)) as server:
        async with JobServer(Settings.from_env({"REWARD_SERVER_URL": server.url})) as jobs:
            with pytest.raises(RejectedError, match="has no queue; set REWARD_QUEUE_URL on the server, or score"):
                await jobs.submit(b"{}", "key")
        assert len(server.asked) == 1


async def test_a_server_that_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage is waited out also where the file of servers names another server in the end, with another key."""
    monkeypatch.setattr(endpoints, "CHECK_INTERVAL", 0.0)
    monkeypatch.setattr(job_server, "RETRY_INTERVAL", 0.2)
    file = tmp_path / "endpoints.json"
    write_endpoints(file, {"REWARD_SERVER_URL": f"http://127.0.0.1:{free_port()}", "REWARD_SERVER_API_KEY": "old"})
    with scripted_server(Answer({"status": "finished"})) as server:
        async with JobServer(Settings.from_env({endpoints.VARIABLE: str(file)})) as jobs:
            asked = asyncio.create_task(jobs.state("one"))
            await asyncio.sleep(0.1)
            write_endpoints(file, {"REWARD_SERVER_URL": server.url, "REWARD_SERVER_API_KEY": "new"})
            assert await asked == {"status": "finished"}
        assert [one["headers"]["Authorization"] for one in server.asked] == ["Bearer new"]


async def test_silence_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who waits for a server that sends nothing is told which one, long before its time is over."""
    monkeypatch.setattr("rewardstack.transport.timing.LOG_AFTER", 0.1)
    with scripted_server(Answer({"status": "finished"}, delay=0.4)) as server:
        async with JobServer(Settings.from_env({"REWARD_SERVER_URL": server.url})) as jobs:
            await jobs.state("one")
        assert f"waiting: {server.url}/jobs/one has sent nothing for 0.1 s" in capsys.readouterr().err


async def score_of(line: dict[str, Any], folder: Path) -> Score:
    """What the client makes of one line of a job's results."""
    write_jsonl(folder / "in.jsonl", [sample(2)])
    source, state = Source(folder / "in.jsonl"), {"status": "finished", "items": 1}
    replies: tuple[Any, ...] = ({}, {"job_id": "one"}, state, {"index": 0, **line}, state, b"")
    with scripted_server(*map(Answer, replies)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("REWARD_SERVER_URL", server.url)
        job = JobScoring(source, None, JobFile(None), force=False, cached=True)
        [piece] = [one async for one in job.pieces(source.rows(), 0, lambda: False)]
    [score] = piece.scores
    return score


async def test_a_result_is_read_whole(tmp_path: Path) -> None:
    """All that a score says comes back from a job's results, and of one without a score the value of its policy."""
    scored = Score(0.5, "ok", "why", "rule:x", label_mass=0.9, parts={"a": 1.0}, agreement=0.75, usage=Usage(1, 2, 3))
    for score in (scored, Score(0.0, "unscored", "why", "rule:x", field="extra_info.method")):
        assert score == await score_of(score_record(score), tmp_path)


@pytest.mark.parametrize("more", [(), ("--wait",)])
def test_a_missing_folder_is_an_error_before_the_job_is_submitted(cli: Cli, more: tuple[str, ...]) -> None:
    """If OUT cannot be written, the error names its folder, and the server gets no request."""
    write_jsonl(cli.cwd / "in.jsonl", [sample(1)])
    with scripted_server(Answer(status=404)) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        result = cli("submit", "in.jsonl", "-o", "absent/out.jsonl", *more)
        assert (result.status, server.asked) == (2, [])
    assert "-o: there is no folder absent; make it, or name another file" in result.err


@pytest.mark.parametrize(
    ("kind", "write", "read"), [("jsonl", write_jsonl, read_jsonl), ("parquet", write_parquet, read_parquet)]
)
def test_every_field_is_kept(cli: Cli, kind: str, write: Callable[..., Path], read: Read) -> None:
    """A row of OUT has every field of its row of IN, and all that the job says of its score; the job gets all that a
    scorer may read."""
    given = [{**sample(at), "note": {"a": [1.5, None]}, "extra_info": {"problem": "ü", "index": at}} for at in range(2)]
    rows = read(write(cli.cwd / f"in.{kind}", given))
    scored = Score(0.5, "ok", "why", "rule:x", label_mass=0.9, parts={"a": 1.0}, usage=Usage(1, 2, 3))
    failed = Score(0.0, "failed", "no answer", "llm_judge", usage=Usage(1, 0, 0, 1), cause=Cause.TIMEOUT)
    lines = b"".join(
        json.dumps({"index": at, **score_record(one)}).encode() + b"\n" for at, one in enumerate((scored, failed))
    )
    answers = {
        "reward_types": Answer({}),
        "jobs": Answer({"job_id": "one"}),
        "one": Answer({"status": "finished", "items": 2}),
        **{
            f"results?partial=1&start={start}&count={PAGE_SIZE}": Answer(body) for start, body in ((0, lines), (2, b""))
        },
    }
    with scripted_server(Answer(status=404), **answers) as server:
        cli.variables["REWARD_SERVER_URL"] = server.url
        result = cli("submit", f"in.{kind}", "--wait", "-o", f"out.{kind}")
        [sent] = [one["body"] for one in server.asked if one["path"] == "/jobs"]
    out = read(cli.cwd / f"out.{kind}")
    assert (result.status, own(out)) == (3, rows), result.err
    first = {name: dict(value) if name == "parts" else value for name, value in out[0].items() if name in ADDED}
    usage = Usage(1, 2, 3)._asdict()
    added = {"value": 0.5, "status": "ok", "reason": "why", "cause": None, "cached": False}
    assert first == {**added, "parts": {"a": 1.0}, "label_mass": 0.9, "usage": usage}
    assert (out[1]["usage"], out[1]["cause"]) == (Usage(1, 0, 0, 1)._asdict(), "timeout")
    fields = ("data_source", "solution_str", "ground_truth", "extra_info")
    assert sent == [{name: row[name] for name in fields} for row in given]
    assert "--force submits all rows as a new job" in result.err


@pytest.mark.parametrize(
    "wrong", [{"status": "fine"}, {"value": "much"}, {"value": None}, {"details": 1}, {"usage": {}}, {"usage": 1}]
)
async def test_a_result_that_is_no_score(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A line that is no score ends the run, with its number."""
    with pytest.raises(ReplyError, match="the job's result 0 is not a score"):
        await score_of({**score_record(Score(1.0)), **wrong}, tmp_path)
