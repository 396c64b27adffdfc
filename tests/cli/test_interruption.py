"""A run over 4,000 rows that is interrupted, and taken up again: counted by the reward server itself."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.judge.conftest import FAKE_JUDGE
from tests.support.servers import FaultServer
from tests.support.waiting import eventually

from .conftest import Cli, RewardServer
from .samples import own, read_jsonl, read_parquet, sample, statuses, values, write_jsonl

ROWS = 4_000
CHUNK = 256
FIRST = 2 * CHUNK
"""Rows that a run has scored, at least, when it is interrupted."""
HELD = 3 * CHUNK
"""Place of a further row, for a judge that answers only after the interruption: the run cannot end before."""
JUDGED = sample(ROWS, data_source="llm_judge_remote", extra_info={"problem": "p"})
RULED = [sample(number, extra_info={"problem": "p"}) for number in range(ROWS)]
ALL = [*RULED[:HELD], JUDGED, *RULED[HELD:]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "in.jsonl", ALL)


@pytest.fixture(autouse=True)
def judge(needs_process: None, cli: Cli) -> Iterator[FaultServer]:
    """The judge, to which the command is pointed."""
    server = FaultServer(script=FAKE_JUDGE)
    server.set(held=0, content="REWARD: 1.0")
    cli.variables |= {"LLM_JUDGE_SERVER_URL": server.url, "LLM_JUDGE_SERVER_TIMEOUT": "3600"}
    yield server
    server.kill()


def interrupt(process: subprocess.Popen[str], out: Path, number: int) -> None:
    """Sends a signal once `out` has enough rows."""
    eventually(lambda: out.exists() and out.read_bytes().count(b"\n") >= FIRST)
    process.send_signal(number)


def check_complete(out: list[dict[str, object]]) -> None:
    assert own(out) == ALL
    assert values(out) == [float(row["id"] % 2 == 0) for row in ALL]
    assert statuses(out) == ["ok"] * len(ALL)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_nothing_is_scored_twice_after_an_interruption(
    scoring: Cli, judge: FaultServer, reward_server: RewardServer, source: Path, number: int, status: int
) -> None:
    """Ctrl-C (and SIGTERM) finishes what is in flight and says how to go on; the next run scores exactly the rest."""
    before, out = reward_server.items(), source.with_name("out.jsonl")
    process = scoring.start("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", str(CHUNK))
    interrupt(process, out, number)
    assert process.stderr is not None
    assert "waiting for the rows in flight" in process.stderr.readline()
    judge.set(held=None)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    kept = read_jsonl(out)
    assert FIRST <= len(kept) < len(ALL)
    assert f"{len(kept):,} of {len(ALL):,} rows are in out.jsonl; run the same command again to continue" in err
    assert reward_server.items() - before == sum(row["data_source"] == "gsm8k" for row in kept)

    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    assert result.status == 0
    check_complete(read_jsonl(out))
    assert reward_server.items() - before == ROWS


def test_a_killed_run_scores_at_most_a_chunk_twice(
    scoring: Cli, judge: FaultServer, reward_server: RewardServer, source: Path
) -> None:
    """After SIGKILL the next run takes up what is on disk; only rows that were in flight are scored again."""
    before, out = reward_server.items(), source.with_name("out.jsonl")
    process = scoring.start("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", str(CHUNK))
    interrupt(process, out, signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert out.read_bytes().count(b"\n") < ROWS
    judge.set(held=None)

    assert scoring("score", "in.jsonl", "-o", "out.jsonl").status == 0
    check_complete(read_jsonl(out))
    assert ROWS <= reward_server.items() - before <= ROWS + CHUNK


def test_a_killed_run_to_parquet_is_taken_up(
    scoring: Cli, judge: FaultServer, reward_server: RewardServer, source: Path
) -> None:
    """For parquet the scores are kept in a file beside OUT, which appears when it is complete."""
    before, out = reward_server.items(), source.with_name("out.parquet")
    partial = source.with_name("out.parquet.partial")
    process = scoring.start("score", "in.jsonl", "-o", "out.parquet", "--chunk-size", str(CHUNK))
    interrupt(process, partial, signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert not out.exists()
    judge.set(held=None)

    assert scoring("score", "in.jsonl", "-o", "out.parquet").status == 0
    check_complete(read_parquet(out))
    assert not partial.exists()
    assert ROWS <= reward_server.items() - before <= ROWS + CHUNK


@pytest.mark.usefixtures("needs_process")
def test_a_second_interrupt_drops_what_is_in_flight(cli: Cli, source: Path) -> None:
    """Where a service is silent, the first Ctrl-C waits for it and the second ends the run at once."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cli.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = cli.start("score", "in.jsonl", "-o", "out.jsonl")
        connection, _ = silent.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert "waiting for the rows in flight; interrupt again to drop them" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"0 of {len(ALL):,} rows are in out.jsonl; run the same command again to continue" in err
