"""What a second run makes of an OUT that is there already."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from .conftest import Cli, RewardServer
from .samples import own, read_jsonl, sample, samples, statuses, write_jsonl

ROWS = 40


@pytest.fixture
def scored(scoring: Cli, tmp_path: Path) -> list[bytes]:
    """in.jsonl is scored in out.jsonl; returns the lines of the latter."""
    write_jsonl(tmp_path / "in.jsonl", samples(ROWS))
    assert scoring("score", "in.jsonl", "-o", "out.jsonl").status == 0
    return (tmp_path / "out.jsonl").read_bytes().splitlines(keepends=True)


def again(scoring: Cli, *arguments: str) -> Any:
    return scoring("score", "in.jsonl", "-o", "out.jsonl", *arguments)


def test_a_complete_out_is_left_alone(
    scoring: Cli, reward_server: RewardServer, tmp_path: Path, scored: list[bytes]
) -> None:
    """Nothing is scored, the summary is printed, the status is that of the scores."""
    before = reward_server.items()
    result = again(scoring)
    assert (result.status, reward_server.items()) == (0, before)
    assert "40 rows; ok 40" in result.out
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(scored)


@pytest.mark.parametrize("cut", [1, 30, 60, -2])
def test_an_incomplete_last_line_is_cut_off(
    scoring: Cli, reward_server: RewardServer, tmp_path: Path, scored: list[bytes], cut: int
) -> None:
    """However far the last line came, its row and those after are scored, and no other."""
    (tmp_path / "out.jsonl").write_bytes(b"".join(scored[:30]) + scored[30][:cut])
    before = reward_server.items()
    assert again(scoring).status == 0
    assert reward_server.items() - before == ROWS - 30
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(scored)


def test_zeros_at_the_end_are_cut_off(scoring: Cli, tmp_path: Path, scored: list[bytes]) -> None:
    """A machine that goes down can leave a block of zeros at the end of a file."""
    (tmp_path / "out.jsonl").write_bytes(b"".join(scored[:30]) + scored[30][:20] + b"\0" * 100_000)
    assert again(scoring).status == 0
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(scored)


def foreign_row(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:10], json.dumps({**sample(99), "value": 1.0}).encode() + b"\n"])


def without_scores(lines: list[bytes]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in own(map(json.loads, lines)))


def damaged(lines: list[bytes]) -> bytes:
    return b"".join([*lines[:10], lines[10].replace(b'"status"', b'"sta\0\0s"'), *lines[11:]])


def another_text(lines: list[bytes]) -> bytes:
    return b'{"note": "no scores, and no end of line"}'


@pytest.mark.parametrize(("make", "line"), [(foreign_row, 11), (without_scores, 1), (damaged, 11), (another_text, 1)])
def test_an_out_of_other_data_is_not_touched(
    scoring: Cli, tmp_path: Path, scored: list[bytes], make: Any, line: int
) -> None:
    """A file that was not written from this IN is left as it is; the message says where it differs and what to do."""
    content = make(scored)
    (tmp_path / "out.jsonl").write_bytes(content)
    result = again(scoring)
    assert result.status == 2
    assert f"out.jsonl was written from another IN, or is damaged: it differs at in.jsonl, line {line}" in result.err
    assert "name another OUT, or start over with --force" in result.err
    assert (tmp_path / "out.jsonl").read_bytes() == content


def test_an_out_of_more_rows_is_not_touched(scoring: Cli, tmp_path: Path, scored: list[bytes]) -> None:
    """An IN that was cut since does not cut OUT."""
    write_jsonl(tmp_path / "in.jsonl", samples(ROWS - 1))
    result = again(scoring)
    assert result.status == 2
    assert "has more rows than IN" in result.err
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(scored)


def test_force_starts_over(scoring: Cli, reward_server: RewardServer, tmp_path: Path, scored: list[bytes]) -> None:
    """`--force` overwrites whatever OUT has."""
    (tmp_path / "out.jsonl").write_bytes(b"notes\n" * 1000)
    before = reward_server.items()
    assert again(scoring, "--force").status == 0
    assert reward_server.items() - before == ROWS
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(scored)


def test_rows_added_to_in_are_scored(
    scoring: Cli, reward_server: RewardServer, tmp_path: Path, scored: list[bytes]
) -> None:
    """An IN that has grown since is taken up where OUT ends."""
    write_jsonl(tmp_path / "in.jsonl", samples(ROWS + 5))
    before = reward_server.items()
    assert again(scoring).status == 0
    assert reward_server.items() - before == 5
    assert own(read_jsonl(tmp_path / "out.jsonl")) == samples(ROWS + 5)


def with_failures(scored: list[bytes], *places: int) -> list[dict[str, Any]]:
    """The rows of OUT, of which some failed."""
    lines = [json.loads(line) for line in scored]
    for at in places:
        lines[at].update(value=0.0, status="failed", reason="no answer")
    return lines


@pytest.mark.parametrize("places", [(3, 20, 38, 39), (0,), (0, 1, 2, 20)])
def test_failed_rows_are_scored_again(
    scoring: Cli, reward_server: RewardServer, tmp_path: Path, scored: list[bytes], places: tuple[int, ...]
) -> None:
    """`--retry-failed` scores the failed rows again, wherever they are, and no others; a plain run scores none."""
    write_jsonl(tmp_path / "out.jsonl", with_failures(scored, *places))
    before = reward_server.items()
    plain = again(scoring)
    assert (plain.status, reward_server.items()) == (3, before)
    assert f"rows without a score: {len(places)};" in plain.err
    assert "the same command with --retry-failed scores only these rows again" in plain.err
    result = again(scoring, "--retry-failed")

    assert result.status == 0
    assert reward_server.items() - before == len(places)
    assert f"40 rows; ok 40; mean value 0.5000 ({len(places)} of them now" in result.out
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(scored)
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out.jsonl", "out.jsonl.provenance"}


def test_unscored_rows_are_scored_again(scoring: Cli, reward_server: RewardServer, tmp_path: Path) -> None:
    """`--retry-failed` scores unscored rows again, too, and the rows that OUT lacks."""
    rows = [sample(2), sample(4, ground_truth="no number"), sample(6)]
    write_jsonl(tmp_path / "in.jsonl", rows)
    assert again(scoring).status == 3
    write_jsonl(tmp_path / "in.jsonl", [*rows, sample(8)])
    before = reward_server.items()
    result = again(scoring, "--retry-failed")
    assert (result.status, reward_server.items() - before) == (3, 2)
    assert "4 rows; ok 3, unscored 1" in result.out
    assert statuses(read_jsonl(tmp_path / "out.jsonl")) == ["ok", "unscored", "ok", "ok"]


@pytest.mark.parametrize("arguments", [("--retry-failed", "--table"), ("-o", "out.jsonl", "--retry-failed", "--force")])
def test_retry_failed_contradicted(cli: Cli, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Without an OUT, or with one that is overwritten, there is nothing to retry."""
    write_jsonl(tmp_path / "in.jsonl", samples(1))
    result = cli("score", "in.jsonl", *arguments)
    assert (result.status, "--retry-failed" in result.err) == (2, True)


@pytest.mark.usefixtures("impatience")
def test_failed_rows_that_fail_again(scoring: Cli, tmp_path: Path, scored: list[bytes]) -> None:
    """Rows that fail again stay in OUT with the others, and a later run scores them."""
    write_jsonl(tmp_path / "out.jsonl", with_failures(scored, *range(5, 30)))
    own_server = scoring.variables["REWARD_SERVER_URL"]
    scoring.variables |= {"REWARD_SERVER_URL": "http://127.0.0.1:9", "REWARD_SERVER_TIMEOUT": "0.5"}  # expires
    failed = again(scoring, "--retry-failed", "--chunk-size", "8")
    left = read_jsonl(tmp_path / "out.jsonl")
    scoring.variables["REWARD_SERVER_URL"] = own_server

    assert failed.status == 3
    assert failed.err.count("gsm8k: 25 rows failed; first error: ") == 1
    assert (own(left), statuses(left).count("failed")) == (samples(ROWS), 25)
    assert again(scoring, "--retry-failed").status == 0
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(scored)


@pytest.mark.usefixtures("impatience")
def test_failed_rows_of_a_parquet_file(scoring: Cli, reward_server: RewardServer, tmp_path: Path) -> None:
    """The failed rows of a complete parquet OUT are scored again, too, and no others."""
    write_jsonl(tmp_path / "in.jsonl", samples(ROWS))
    own_server = scoring.variables["REWARD_SERVER_URL"]
    scoring.variables |= {"REWARD_SERVER_URL": "http://127.0.0.1:9", "REWARD_SERVER_TIMEOUT": "0.5"}  # expires
    assert scoring("score", "in.jsonl", "-o", "out.parquet").status == 3
    scoring.variables["REWARD_SERVER_URL"] = own_server
    before = reward_server.items()

    for _ in range(2):
        assert scoring("score", "in.jsonl", "-o", "out.parquet", "--retry-failed").status == 0
        assert reward_server.items() - before == ROWS
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl", "out.parquet"}


def test_numbers_that_are_none_can_be_taken_up(scoring: Cli, reward_server: RewardServer, tmp_path: Path) -> None:
    """A row with NaN, which differs from itself, is still recognised as the same row."""
    write_jsonl(tmp_path / "in.jsonl", [sample(2, noise=float("nan")), sample(3, big=10**30, text="\ud800")])
    again(scoring)
    before = reward_server.items()
    assert again(scoring).status == 0
    assert reward_server.items() == before


@pytest.mark.usefixtures("needs_process", "impatience")
def test_two_runs_do_not_write_one_out(cli: Cli, tmp_path: Path) -> None:
    """While one run writes OUT, another is refused; once it is gone, however it went, it is not."""
    write_jsonl(tmp_path / "in.jsonl", samples(ROWS))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cli.variables["REWARD_SERVER_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        first = cli.start("score", "in.jsonl", "-o", "out.jsonl")
        silent.accept()[0].close()
        cli.variables["REWARD_SERVER_TIMEOUT"] = "0.3"  # expires
        assert "another run is writing it" in cli.process("score", "in.jsonl", "-o", "out.jsonl").err
        first.send_signal(signal.SIGKILL)
        first.communicate()
        assert again(cli).status == 3
