"""`rewardstack score`: what comes out for what goes in, against the real reward server."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import Redis, fault_server, free_port

from .conftest import Cli, RewardServer
from .samples import ADDED, UNUSED, own, read_jsonl, sample, samples, statuses, values, write_jsonl

HARD = r"\boxed{\frac{\sin(2x)}{2\cos(x)} + y}"
"""Is compared in an isolated process."""


def test_a_row_of_out_is_the_row_of_in_with_its_score(scoring: Cli, tmp_path: Path) -> None:
    """Every field is kept, in order, and those of the score follow."""
    rows = [{"id": 1, "nested": {"a": [1.50, None, "ü\u2028"]}, **sample(2)}, sample(3)]
    write_jsonl(tmp_path / "in.jsonl", rows)
    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    out = read_jsonl(tmp_path / "out.jsonl")
    assert result.status == 0
    assert own(out) == rows
    assert list(out[0]) == [*rows[0], *ADDED]
    assert [[row[name] for name in ADDED] for row in out] == [
        [1.0, "ok", "", None, False, None, None, None],
        [0.0, "ok", "wrong answer: 4, the reference is 3", None, False, None, None, None],
    ]
    assert "out.jsonl: 2 rows; ok 2; mean value 0.5000" in result.out


@pytest.mark.parametrize(
    "row",
    [
        {"data_source": "gsm8k", "response": "#### 2", "ground_truth": "2"},
        {"data_source": "gsm8k", "solution_str": "#### 2", "reward_model": {"style": "rule", "ground_truth": "2"}},
        {"solution_str": None, "response": "#### 2", "ground_truth": None, "reward_model": {"ground_truth": "2"}},
        {"solution_str": "#### 2", "ground_truth": ["1", "2"], "extra_info": None},
        {"data_source": None, "solution_str": "#### 2", "ground_truth": 2, "extra_info": {"timeout": None}},
        {"data_source": "example_safety", "solution_str": "peace", "ground_truth": None},
    ],
)
def test_fields_may_have_their_other_names(scoring: Cli, tmp_path: Path, row: dict[str, Any]) -> None:
    """`response`, verl's `reward_model.ground_truth`, a list, a number, and `--data-source` for rows without one."""
    write_jsonl(tmp_path / "in.jsonl", [row])
    assert scoring("score", "in.jsonl", "-o", "out.jsonl", "--data-source", "gsm8k").status == 0
    [out] = read_jsonl(tmp_path / "out.jsonl")
    assert out == {**row, "value": 1.0, "status": "ok", "reason": "", "cached": False, **UNUSED}


def test_turns_of_every_shape(scoring: Cli, tmp_path: Path) -> None:
    """A row's response may have the items of OpenAI's responses; its last turn is scored, as by `/v1/score`."""
    cases = json.loads((Path(__file__).resolve().parents[1] / "cases/gym_turns.json").read_text())
    rows = [{"data_source": "math", "solution_str": case["output"], "ground_truth": "42"} for case in cases]
    write_jsonl(tmp_path / "in.jsonl", rows)
    assert scoring("score", "in.jsonl", "-o", "out.jsonl").status == 0
    assert values(read_jsonl(tmp_path / "out.jsonl")) == [case["math"] for case in cases]


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        (("score", "-o", "out.jsonl"), "all rows have a data_source"),
        (("score", "--table"), "all rows have a data_source"),
        (("evaluate", "--dry-run"), "all rows have a data_source"),
        (("submit",), "all rows have a data_source"),
        (("explain", "--row", "1"), "the row has a data_source"),
    ],
)
@pytest.mark.parametrize("source", ["gsm8k", None])
def test_a_data_source_that_no_row_needs(
    scoring: Cli, tmp_path: Path, arguments: tuple[str, ...], note: str, source: str | None
) -> None:
    """A note says once that `--data-source` has no effect; it is not printed if a row needs the option."""
    rows = [{**sample(2), "label": 1, "data_source": one} for one in (source, source or "gsm8k")]
    write_jsonl(tmp_path / "in.jsonl", rows)
    command, *options = arguments
    result = scoring(command, "in.jsonl", "--data-source", "gsm8k", *options)
    assert result.err.count(f"--data-source is not used: {note}") == (source is not None), result.err


def test_text_that_is_no_unicode_is_carried_through(scoring: Cli, tmp_path: Path) -> None:
    """A lone surrogate, a byte order mark and blank lines neither stop a run nor change a row."""
    line = '{"data_source": "gsm8k", "solution_str": "\\ud800 #### 2", "ground_truth": "2"}'
    (tmp_path / "in.jsonl").write_bytes(b"\xef\xbb\xbf" + f"{line}\n\n \n{line}".encode())
    assert scoring("score", "in.jsonl", "-o", "out.jsonl").status == 0
    assert own(read_jsonl(tmp_path / "out.jsonl")) == [json.loads(line)] * 2


def test_a_scored_file_can_be_scored_again(scoring: Cli, tmp_path: Path) -> None:
    """An OUT as IN: its old scores are replaced, not kept beside; a field of IN that is lost so is named."""
    old = {"value": 9, "status": "failed", "reason": "old", "cached": True, **UNUSED}
    new = {"value": 1.0, "status": "ok", "reason": "", "cached": False, **UNUSED}
    for fields, is_named in ((old, False), ({"usage": {"total_tokens": 9}}, True)):
        write_jsonl(tmp_path / "in.jsonl", [{**sample(2), **fields}])
        result = scoring("score", "in.jsonl", "-o", "out.jsonl", "--force")
        assert read_jsonl(tmp_path / "out.jsonl") == [{**sample(2), **new}]
        assert ("has the fields usage, which OUT replaces" in result.err) == is_named


def test_the_cache_is_used_and_shown(scoring: Cli, tmp_path: Path, start_redis: Callable[..., Redis]) -> None:
    """A second run of another process reads its scores from Redis, and says so."""
    scoring.variables["REWARD_CACHE_URL"] = start_redis().url
    write_jsonl(tmp_path / "in.jsonl", samples(300))
    scoring("score", "in.jsonl", "-o", "first.jsonl")
    result = scoring("score", "in.jsonl", "-o", "second.jsonl")
    assert {row["cached"] for row in read_jsonl(tmp_path / "second.jsonl")} == {True}
    assert "cached 100%" in result.out


def test_no_cache(scoring: Cli, tmp_path: Path, start_redis: Callable[..., Redis]) -> None:
    """With `--no-cache` rows that Redis has are scored again, and the rows of OUT are as IN has them."""
    scoring.variables["REWARD_CACHE_URL"] = start_redis().url
    write_jsonl(tmp_path / "in.jsonl", samples(30))
    scoring("score", "in.jsonl", "-o", "first.jsonl")
    result = scoring("score", "in.jsonl", "-o", "second.jsonl", "--no-cache")
    assert own(read_jsonl(tmp_path / "second.jsonl")) == samples(30)
    assert {row["cached"] for row in read_jsonl(tmp_path / "second.jsonl")} == {False}
    assert "cached" not in result.out


def test_rows_without_a_score_make_the_status_3(scoring: Cli, tmp_path: Path) -> None:
    """A row that cannot be judged is `unscored` with its reason, the others are scored, and scripts can notice."""
    write_jsonl(tmp_path / "in.jsonl", [sample(2), sample(4, ground_truth="no number"), sample(6)])
    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    out = read_jsonl(tmp_path / "out.jsonl")
    assert result.status == 3
    assert statuses(out) == ["ok", "unscored", "ok"]
    assert values(out) == [1.0, 0.0, 1.0]
    assert (out[1]["reason"], out[1]["cause"]) == ("the reference has no number", "bad_reference")
    assert "rows without a score: 1;" in result.err


def test_on_error_none_writes_null(scoring: Cli, tmp_path: Path) -> None:
    """The error policy of the command line decides the value of a row without a score."""
    write_jsonl(tmp_path / "in.jsonl", [sample(4, ground_truth=None)])
    assert scoring("score", "in.jsonl", "-o", "out.jsonl", "--on-error", "none").status == 3
    assert values(read_jsonl(tmp_path / "out.jsonl")) == [None]


def test_on_error_raise_stops_at_the_row_and_keeps_those_before(scoring: Cli, tmp_path: Path) -> None:
    """The first row without a score ends the run, named by file and line; what was scored before it is kept."""
    rows = samples(500)
    rows[400]["ground_truth"] = None
    write_jsonl(tmp_path / "in.jsonl", rows)
    result = scoring("score", "in.jsonl", "-o", "out.jsonl", "--on-error", "raise")
    assert result.status == 1
    assert "in.jsonl, line 401: unscored" in result.err
    assert "400 of 500 rows are in out.jsonl" in result.err
    assert own(read_jsonl(tmp_path / "out.jsonl")) == rows[:400]


def test_a_timeout_fails_the_rows_and_not_the_run(cli: Cli, tmp_path: Path) -> None:
    """`--timeout` bounds what a row may take; without a score by then it is `failed`."""
    write_jsonl(tmp_path / "in.jsonl", samples(3))
    with fault_server() as server:
        server.set(delay=3600)
        cli.variables["REWARD_SERVER_URL"] = server.url
        assert cli("score", "in.jsonl", "-o", "out.jsonl", "--timeout", "0.5").status == 3  # expires
    assert statuses(read_jsonl(tmp_path / "out.jsonl")) == ["failed"] * 3


def test_no_server_configured_is_an_error_of_the_settings(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without REWARD_SERVER_URL and without the rules nothing is scored and the message says what to set."""
    monkeypatch.setitem(sys.modules, "rewardstack_rules", None)
    write_jsonl(tmp_path / "in.jsonl", samples(3))
    result = cli("score", "in.jsonl", "-o", "out.jsonl")
    assert result.status == 2
    assert "REWARD_SERVER_URL is not set" in result.err


@pytest.mark.usefixtures("needs_process")
def test_rules_in_the_command_itself(cli: Cli, tmp_path: Path) -> None:
    """Without REWARD_SERVER_URL the command runs rules itself, and says so once."""
    row = {"data_source": "math", "solution_str": HARD, "ground_truth": r"\sin(x) + y"}
    write_jsonl(tmp_path / "in.jsonl", [row, {**row, "ground_truth": "y"}])
    result = cli.process("score", "in.jsonl", "-o", "out.jsonl")
    assert (result.status, [row["value"] for row in read_jsonl(tmp_path / "out.jsonl")]) == (0, [1.0, 0.0]), result.err
    assert result.err.count("rules run on this machine") == 1


def test_a_wrong_key_fails_the_rows(cli: Cli, tmp_path: Path) -> None:
    """A server that refuses the key leaves the rows without a score, and the reason says whose key it is."""
    write_jsonl(tmp_path / "in.jsonl", samples(3))
    with fault_server() as server:
        server.set(mode="401")
        cli.variables["REWARD_SERVER_URL"] = server.url
        result = cli("score", "in.jsonl", "-o", "out.jsonl")
    assert result.status == 3
    assert "gsm8k: 3 rows failed; first error: " in result.err
    assert "no key was sent; set REWARD_SERVER_API_KEY" in result.err
    assert statuses(read_jsonl(tmp_path / "out.jsonl")) == ["failed"] * 3


def test_memory_is_bounded_by_the_chunk(scoring: Cli, tmp_path: Path) -> None:
    """Ten times the rows take no more memory, except for the results that the client keeps, which are off here."""
    scoring.variables["REWARD_CACHE_ITEMS"] = "0"
    chunk, size = 128, 4000
    command = ("score", "in.jsonl", "-o", "out.jsonl", "--force", "--chunk-size", str(chunk))
    peaks = []
    for count in (400, 400, 4_000):  # the first run also loads what each run needs
        write_jsonl(tmp_path / "in.jsonl", (sample(number, filler="x" * size) for number in range(count)))
        tracemalloc.start()
        try:
            assert scoring(*command).status == 0
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    # two more chunks may be in progress at a time
    assert peaks[2] < peaks[1] + 2 * chunk * size, "a row leaves more than 300 bytes"


def test_a_table_shows_each_sample(scoring: Cli, tmp_path: Path) -> None:
    """`--table` prints name (or line), route, value, status and time, and writes nothing."""
    rows = [sample(2, name="apples"), sample(3), {**sample(4), "data_source": "rule_remote_exact_match"}]
    write_jsonl(tmp_path / "in.jsonl", rows)
    result = scoring("score", "in.jsonl", "--table")
    cells = [[cell.strip() for cell in line.split("│")[1:5]] for line in result.out.splitlines() if "│" in line]
    assert result.status == 0
    assert cells == [
        ["apples", "gsm8k", "1", "ok"],
        ["line 2", "gsm8k", "0", "ok"],
        ["line 3", "rule_remote_*", "0", "ok"],
    ]
    assert "cached" not in result.out
    assert os.listdir(tmp_path) == ["in.jsonl"]


def test_a_table_says_what_is_from_the_cache(scoring: Cli, tmp_path: Path, start_redis: Callable[..., Redis]) -> None:
    """Where there is a cache, `--table` says of each score whether it is from there."""
    scoring.variables["REWARD_CACHE_URL"] = start_redis().url
    write_jsonl(tmp_path / "in.jsonl", [sample(2)])
    for cached in ("no", "yes"):
        out = scoring("score", "in.jsonl", "--table").out
        [row] = [line.split("│") for line in out.splitlines() if "gsm8k" in line]
        assert "cached" in out and row[5].strip() == cached


def test_a_table_with_a_row_that_is_not_ok_fails(scoring: Cli, tmp_path: Path) -> None:
    """The status is 3, and the row is named with its reason."""
    write_jsonl(tmp_path / "in.jsonl", [sample(2), sample(4, name="pears", ground_truth=None)])
    result = scoring("score", "in.jsonl", "--table")
    assert result.status == 3
    assert "pears: unscored: " in result.out


def test_a_table_names_the_line_of_an_error(scoring: Cli, tmp_path: Path) -> None:
    """With `--on-error raise`, the error names the file and the line, as with `-o`; blank lines count."""
    path = write_jsonl(tmp_path / "in.jsonl", [sample(2), sample(4, ground_truth=None)])
    path.write_text("\n" + path.read_text())
    result = scoring("score", "in.jsonl", "--table", "--on-error", "raise")
    assert (result.status, result.out) == (1, "")
    assert "error: in.jsonl, line 3: unscored: the reference (ground_truth) is missing or empty" in result.err


def test_a_table_does_not_let_samples_steer_the_terminal(scoring: Cli, tmp_path: Path) -> None:
    """Escape sequences and markup in a sample's name are shown as text."""
    write_jsonl(tmp_path / "in.jsonl", [sample(2, name="\x1b[31mred [bold]fat[/bold]")])
    out = scoring("score", "in.jsonl", "--table").out
    assert "[bold]fat[/bold]" in out
    assert "\x1b" not in out


def test_a_table_is_for_small_files(scoring: Cli, reward_server: RewardServer, tmp_path: Path) -> None:
    """More than 1,000 rows are refused before any is scored."""
    before = reward_server.items()
    write_jsonl(tmp_path / "in.jsonl", samples(1001))
    result = scoring("score", "in.jsonl", "--table")
    assert (result.status, reward_server.items()) == (2, before)
    assert "-o OUT" in result.err


@pytest.mark.usefixtures("impatience")
def test_a_dead_server_fails_the_rows(cli: Cli, tmp_path: Path) -> None:
    """Nobody there: every row is `failed` with the reason, none is passed off as scored."""
    cli.variables |= {
        "REWARD_SERVER_URL": f"http://127.0.0.1:{free_port()}",
        "REWARD_SERVER_TIMEOUT": "0.5",  # expires
    }
    write_jsonl(tmp_path / "in.jsonl", samples(3))
    assert cli("score", "in.jsonl", "-o", "out.jsonl").status == 3
    assert statuses(read_jsonl(tmp_path / "out.jsonl")) == ["failed"] * 3
