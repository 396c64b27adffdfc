"""A run over 4,000 rows that is interrupted, and taken up again: counted by the reward server itself."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import Cli, RewardServer
from .samples import own, read_jsonl, read_parquet, samples, statuses, values, write_jsonl

ROWS = 4_000
CHUNK = 256
FIRST = 2 * CHUNK
"""Rows that a run has scored, at least, when it is interrupted."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "in.jsonl", samples(ROWS))


def interrupt(process: subprocess.Popen[str], out: Path, rows: int, number: int) -> tuple[str, str]:
    """Sends a signal once `out` has that many rows; returns what the process wrote."""
    until = time.monotonic() + 60
    while not out.exists() or out.read_bytes().count(b"\n") < rows:
        assert process.poll() is None, "it ended before it could be interrupted"
        assert time.monotonic() < until
        time.sleep(0.005)
    process.send_signal(number)
    return process.communicate(timeout=60)


def check_complete(out: list[dict[str, object]]) -> None:
    assert own(out) == samples(ROWS)
    assert values(out) == [float(number % 2 == 0) for number in range(ROWS)]
    assert statuses(out) == ["ok"] * ROWS


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_nothing_is_scored_twice_after_an_interruption(
    scoring: Cli, reward_server: RewardServer, source: Path, number: int, status: int
) -> None:
    """Ctrl-C (and SIGTERM) finishes what is in flight and says how to go on; the next run scores exactly the rest."""
    before, out = reward_server.items(), source.with_name("out.jsonl")
    process = scoring.start("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", str(CHUNK))
    _, err = interrupt(process, out, FIRST, number)
    assert process.returncode == status
    kept = read_jsonl(out)
    assert FIRST <= len(kept) < ROWS
    assert f"{len(kept):,} of {ROWS:,} rows are in out.jsonl; run the same command again to continue" in err
    assert reward_server.items() - before == len(kept)

    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    assert result.status == 0
    check_complete(read_jsonl(out))
    assert reward_server.items() - before == ROWS


def test_a_killed_run_scores_at_most_a_chunk_twice(scoring: Cli, reward_server: RewardServer, source: Path) -> None:
    """After SIGKILL the next run takes up what is on disk; only rows that were in flight are scored again."""
    before, out = reward_server.items(), source.with_name("out.jsonl")
    process = scoring.start("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", str(CHUNK))
    interrupt(process, out, FIRST, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert out.read_bytes().count(b"\n") < ROWS

    assert scoring("score", "in.jsonl", "-o", "out.jsonl").status == 0
    check_complete(read_jsonl(out))
    assert ROWS <= reward_server.items() - before <= ROWS + CHUNK


def test_a_killed_run_to_parquet_is_taken_up(scoring: Cli, reward_server: RewardServer, source: Path) -> None:
    """For parquet the scores are kept in a file beside OUT, which appears when it is complete."""
    before, out = reward_server.items(), source.with_name("out.parquet")
    partial = source.with_name("out.parquet.partial")
    process = scoring.start("score", "in.jsonl", "-o", "out.parquet", "--chunk-size", str(CHUNK))
    interrupt(process, partial, FIRST, signal.SIGKILL)
    assert not out.exists()

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
            _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert f"0 of {ROWS:,} rows are in out.jsonl; run the same command again to continue" in err
