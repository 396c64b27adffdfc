"""`rewardstack submit`, as people run it, against a real reward server with workers."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import redis
import requests

from rewardstack_cli.jobs import scoring
from tests.cli.conftest import Cli
from tests.cli.samples import read_jsonl, write_jsonl
from tests.jobs.conftest import CHUNK_SIZE, KEY, PATIENT, Site, sample
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

ROWS = 23
Make = Callable[[Site], Cli]


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Make]:
    """Makes the command for a site."""
    made: list[Cli] = []

    def make(here: Site) -> Cli:
        made.append(Cli(tmp_path, {"REWARD_SERVER_URL": here.server.url}))
        return made[-1]

    yield make
    for process in (process for cli in made for process in cli.started):
        process.kill()
        process.communicate()


def rows(count: int = ROWS, **fields: Any) -> list[dict[str, Any]]:
    """Rows of a data file, with a field that no scorer knows."""
    return [{"id": f"row {at}", **sample(at, **fields)} for at in range(count)]


def submitted(here: Site) -> int:
    """How many jobs the queue has had."""
    return int(redis.Redis.from_url(here.queue.url).hget("rewardstack:jobs:counts", "jobs_submitted") or 0)


def test_rows_with_their_scores(jobs: Site, command: Make, tmp_path: Path) -> None:
    """OUT has the rows of IN with their scores, as `rewardstack score` writes them, and no trace of the job stays."""
    cli = command(jobs)
    write_jsonl(tmp_path / "in.jsonl", rows())

    result = cli("submit", "in.jsonl", "--wait", "-o", "job.jsonl")
    direct = cli("score", "in.jsonl", "-o", "direct.jsonl")

    assert (0, 0) == (result.status, direct.status), result.err
    assert "23 rows; ok 23" in result.out
    without_cached = [
        [{**row, "cached": None} for row in read_jsonl(tmp_path / name)] for name in ("job.jsonl", "direct.jsonl")
    ]
    assert without_cached[0] == without_cached[1]
    files = {"in.jsonl", *(f"{name}.jsonl{end}" for name in ("job", "direct") for end in ("", ".provenance"))}
    assert files == {path.name for path in tmp_path.glob("*.jsonl*")}


def test_again(jobs: Site, command: Make, tmp_path: Path) -> None:
    """A second run has nothing to do; with another OUT it takes the same job; with --force it submits a new one."""
    cli = command(jobs)
    write_jsonl(tmp_path / "in.jsonl", rows(solution_str="#### again"))
    before = submitted(jobs)
    for arguments, count in [(("one",), 1), (("one",), 1), (("two",), 1), (("two", "--force"), 2)]:
        name, *further = arguments
        assert cli("submit", "in.jsonl", "--wait", "-o", f"{name}.jsonl", *further).status == 0
        assert count == submitted(jobs) - before
    assert read_jsonl(tmp_path / "one.jsonl")[0]["status"] == "ok"


def test_no_cache(jobs: Site, command: Make, tmp_path: Path) -> None:
    """With `--no-cache` workers score again what they have scored before."""
    cli = command(jobs)
    write_jsonl(tmp_path / "in.jsonl", rows(solution_str="#### no cache"))
    for options in ((), ("--no-cache",), ("--no-cache",)):
        assert cli("submit", "in.jsonl", "--wait", "-o", "out.jsonl", "--force", *options).status == 0
        cached = [row["cached"] for row in read_jsonl(tmp_path / "out.jsonl")]
        assert not options or not any(cached)


def test_scored_otherwise(jobs: Site, command: Make, tmp_path: Path) -> None:
    """An OUT that another state of the server's function has scored is not taken for complete."""
    cli = command(jobs)
    write_jsonl(tmp_path / "in.jsonl", rows(solution_str="#### otherwise"))
    assert cli("submit", "in.jsonl", "--wait", "-o", "out.jsonl").status == 0
    kept = tmp_path / "out.jsonl.provenance"
    provenance = json.loads(kept.read_text())
    [(name, _)] = provenance["services"].items()
    kept.write_text(json.dumps({**provenance, "services": {name: "another"}}))

    result = cli("submit", "in.jsonl", "--wait", "-o", "out.jsonl")
    assert (2, True) == (result.status, f"out.jsonl was scored differently: the scorer of {name}" in result.err)
    assert cli("submit", "in.jsonl", "--wait", "-o", "out.jsonl", "--force").status == 0


def test_without_workers(own: Site, command: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that no worker takes is said to be queued, with the remedy; then it is scored."""
    said: list[str] = []

    def say(text: str) -> None:
        if not said:  # it is said again while the worker starts
            own.add_worker()
        said.append(text)

    monkeypatch.setattr(scoring, "NOTICE_AFTER", 1)
    monkeypatch.setattr(scoring, "say", say)
    write_jsonl(tmp_path / "in.jsonl", rows())
    assert command(own)("submit", "in.jsonl", "--wait", "-o", "out.jsonl").status == 0
    assert said
    assert all("is still queued" in line and "REWARD_QUEUE_URL" in line for line in said)


@pytest.mark.nightly
def test_interrupted(own: Site, command: Make, tmp_path: Path) -> None:
    """Ctrl-C leaves the job running; the same command resumes it, and OUT is as if nothing had happened."""
    cli = command(own)
    own.add_worker(**PATIENT)
    write_jsonl(tmp_path / "in.jsonl", [*rows(CHUNK_SIZE), *rows(ROWS - CHUNK_SIZE, data_source="rule_remote_held")])
    arguments = ("submit", "in.jsonl", "--wait", "-o", "out.jsonl")
    process = cli.start(*arguments)
    eventually(lambda: (tmp_path / "out.jsonl").exists() and len(read_jsonl(tmp_path / "out.jsonl")) > 0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    job_id = json.loads((tmp_path / "out.jsonl.job").read_text())["job_id"]

    assert process.returncode == 130
    assert f"the job {job_id} continues on the server" in err and "run the same command again to continue" in err
    own.go_on()
    assert own.end_of(job_id)["status"] == "finished"
    assert cli(*arguments).status == 0
    assert (1, ROWS) == (submitted(own), len(read_jsonl(tmp_path / "out.jsonl")))
    assert not (tmp_path / "out.jsonl.job").exists()


def test_without_waiting(jobs: Site, command: Make, tmp_path: Path) -> None:
    """Without --wait the command prints the job's id and how to get the scores; then --wait fetches them."""
    cli = command(jobs)
    write_jsonl(tmp_path / "in.jsonl", rows(solution_str="#### later"))

    first = cli("submit", "in.jsonl", "-o", "out.jsonl")
    job_id = first.out.strip()
    assert (0, "finished") == (first.status, jobs.end_of(job_id)["status"])
    assert "rewardstack submit in.jsonl --wait -o out.jsonl" in first.err
    second = cli("submit", "in.jsonl", "-o", "out.jsonl")
    assert job_id == second.out.strip()
    assert cli("submit", "in.jsonl", "--wait", "-o", "out.jsonl").status == 0
    assert len(read_jsonl(tmp_path / "out.jsonl")) == ROWS


def test_parquet(jobs: Site, command: Make, tmp_path: Path) -> None:
    """Parquet goes in and comes out, whatever it is."""
    cli = command(jobs)
    write_jsonl(tmp_path / "in.jsonl", rows(solution_str="#### parquet"))

    assert cli("submit", "in.jsonl", "--wait", "-o", "a.parquet").status == 0
    assert cli("submit", "a.parquet", "--wait", "-o", "b.parquet").status == 0

    first, second = (pyarrow.parquet.read_table(tmp_path / name).to_pylist() for name in ("a.parquet", "b.parquet"))
    assert first == second and len(first) == ROWS
    assert {"in.jsonl", "a.parquet", "b.parquet"} == {path.name for path in tmp_path.glob("*.*")}


def test_the_server_goes_away(own: Site, command: Make, tmp_path: Path) -> None:
    """While the queue is unavailable the command waits and says so; then it continues."""
    cli = command(own)
    write_jsonl(tmp_path / "in.jsonl", rows())
    own.queue.kill()
    process = cli.start("submit", "in.jsonl", "--wait", "-o", "out.jsonl")
    assert process.stderr is not None
    assert "waiting: " in process.stderr.readline()
    own.queue.start()
    own.add_worker(REWARD_FUNCTIONS="")

    process.communicate(timeout=60)
    assert (0, ROWS) == (process.returncode, len(read_jsonl(tmp_path / "out.jsonl")))


def test_a_canceled_job(own: Site, command: Make, tmp_path: Path) -> None:
    """A canceled job is an error that says how to start over; a job that has expired is simply submitted again."""
    cli = command(own)
    write_jsonl(tmp_path / "in.jsonl", rows())
    job_id = cli("submit", "in.jsonl", "-o", "out.jsonl").out.strip()
    requests.delete(f"{own.server.url}/jobs/{job_id}", timeout=60)
    own.add_worker(REWARD_FUNCTIONS="")

    canceled = cli("submit", "in.jsonl", "--wait", "-o", "out.jsonl")
    assert canceled.status == 1 and f"job {job_id} was canceled; --force" in canceled.err
    redis.Redis.from_url(own.queue.url).flushall()
    assert cli("submit", "in.jsonl", "--wait", "-o", "out.jsonl").status == 0
    assert len(read_jsonl(tmp_path / "out.jsonl")) == ROWS


def test_rows_without_a_score(jobs: Site, command: Make, tmp_path: Path) -> None:
    """The exit status tells of rows that nobody could score."""
    cli = command(jobs)
    write_jsonl(tmp_path / "in.jsonl", [*rows(2), {**rows(1)[0], "ground_truth": None}])

    assert cli("submit", "in.jsonl", "--wait", "-o", "out.jsonl").status == 3
    assert ["ok", "ok", "unscored"] == [row["status"] for row in read_jsonl(tmp_path / "out.jsonl")]


def test_an_option_wrong_in_every_row(jobs: Site, command: Make, tmp_path: Path) -> None:
    """The command ends with the error that the job ended with, however much of it came before."""
    write_jsonl(tmp_path / "in.jsonl", rows(12, extra_info={"method": "lax"}))

    result = command(jobs)("submit", "in.jsonl", "--wait", "-o", "out.jsonl")

    assert result.status == 2 and "extra_info.method: expected one of strict, flexible, got 'lax'" in result.err
    assert "(in the first row; the same option is invalid in all 12 rows)" in result.err


@pytest.mark.parametrize(
    ("content", "arguments", "variables", "status", "complaint"),
    [
        (rows(2), ("--wait",), {}, 2, "--wait needs -o OUT"),
        (rows(2), ("--wait", "-o", "out.jsonl"), {"REWARD_SERVER_URL": ""}, 2, "REWARD_SERVER_URL is not set"),
        ([*rows(2), {"id": 3}], ("--wait", "-o", "out.jsonl"), {}, 2, "in.jsonl, line 3: data_source is missing"),
        (rows(2, data_source="gsm9k"), ("--wait", "-o", "out.jsonl"), {}, 2, "gsm9k"),
        (rows(2, extra_info={"server_url": "x"}), (), {}, 2, "items[0].extra_info.server_url"),
    ],
)
def test_complaints(
    jobs: Site,
    command: Make,
    tmp_path: Path,
    content: list[dict[str, Any]],
    arguments: tuple[str, ...],
    variables: dict[str, str],
    status: int,
    complaint: str,
) -> None:
    """What is wrong is one line that names it; no job is submitted."""
    cli = command(jobs)
    cli.variables |= variables
    write_jsonl(tmp_path / "in.jsonl", content)
    before = submitted(jobs)

    result = cli("submit", "in.jsonl", *arguments)

    assert (status, before) == (result.status, submitted(jobs)), result.err
    assert complaint in result.err.splitlines()[-1]


def test_a_key(idle: Site, command: Make, tmp_path: Path) -> None:
    """The command sends its key, and with another one finds nothing of the job."""
    cli = command(idle)
    write_jsonl(tmp_path / "in.jsonl", rows())
    assert cli("submit", "in.jsonl").status == 1
    cli.variables["REWARD_SERVER_API_KEY"] = "first-key-of-tests"
    job_id = cli("submit", "in.jsonl").out.strip()
    assert idle.state(job_id, headers=KEY)["items"] == ROWS
