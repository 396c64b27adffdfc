"""Malformed input: named by file, line and field before anything is scored, with status 2 and no traceback."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.snippets import block

from .conftest import COMMAND, Cli, RewardServer
from .samples import own, read_jsonl, sample, samples, write_jsonl, write_parquet

CASES = json.loads(Path(__file__).with_name("malformed_rows.json").read_text())
LINES = {case["name"]: (case["line"].encode(), case["complaint"]) for case in CASES} | {
    "not UTF-8": (b'{"data_source": "\xff"}', "not UTF-8 text; expected JSON Lines"),
    "spread over lines": (b'{"a": 1', "not JSON: Expecting ',' delimiter at character 9; expected JSON Lines"),
    "too deep": (b"[" * 100_000, "nested too deeply"),
    "too long": (b'{"data_source": "%b"}' % (b"x" * (64 << 20)), "longer than 67,108,864 bytes"),
}


@pytest.mark.parametrize("kind", LINES)
def test_a_malformed_row_is_named_before_anything_is_scored(
    scoring: Cli, reward_server: RewardServer, tmp_path: Path, kind: str
) -> None:
    """File, line and what is wrong stand in one line; no row was sent."""
    line, complaint = LINES[kind]
    good, before = json.dumps(sample(2)).encode(), reward_server.items()
    (tmp_path / "in.jsonl").write_bytes(good + b"\n\n" + line + b"\n" + good + b"\n")
    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    assert (result.status, reward_server.items()) == (2, before)
    assert result.err.startswith("rewardstack: error: in.jsonl, line 3: ")
    assert complaint in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_numbers_that_json_lacks_become_null(scoring: Cli, tmp_path: Path) -> None:
    """NaN and infinite numbers of a row are null in OUT, which is JSON, also if it is written in two runs."""
    numbers = '"extra_info": {"a": NaN, "b": [1e999, -Infinity, 0.5]}'
    rows = [json.dumps(sample(number))[:-1] + f", {numbers}}}" for number in (1, 2)]
    for count in (1, 2):
        (tmp_path / "in.jsonl").write_text("\n".join(rows[:count]))
        assert scoring("score", "in.jsonl", "-o", "out.jsonl").status == 0
    text = (tmp_path / "out.jsonl").read_text()
    found = [json.loads(line, parse_constant=pytest.fail)["extra_info"] for line in text.splitlines()]
    assert found == [{"a": None, "b": [None, None, 0.5]}] * 2


def test_the_document_shows_what_is_said(scoring: Cli, tmp_path: Path) -> None:
    """The complaint in `docs/cli.md` is what is said of a row without a response."""
    write_jsonl(tmp_path / "rollouts.jsonl", [sample(1), sample(2), {"data_source": "gsm8k", "ground_truth": "3"}])
    said = scoring("score", "rollouts.jsonl", "-o", "scored.jsonl").err
    assert block("docs/cli.md", "", "rewardstack: error: rollouts.jsonl") == said


def test_a_malformed_row_of_a_table_is_named(scoring: Cli, tmp_path: Path) -> None:
    """`--table` complains as `-o` does."""
    write_jsonl(tmp_path / "in.jsonl", [sample(1), {}])
    assert "in.jsonl, line 2: data_source is missing" in scoring("score", "in.jsonl", "--table").err


def test_a_malformed_row_of_parquet_is_named(scoring: Cli, tmp_path: Path) -> None:
    """Parquet has rows where JSONL has lines."""
    write_parquet(tmp_path / "in.parquet", [sample(1), {**sample(2), "solution_str": None}])
    assert "in.parquet, row 2: solution_str" in scoring("score", "in.parquet", "-o", "out.jsonl").err


def test_an_option_that_one_row_has_wrong_is_its_own_affair(scoring: Cli, tmp_path: Path) -> None:
    """The row is unscored and heard of, with the field; all others are scored."""
    rows = samples(300)
    rows[290]["extra_info"] = {"server_url": "nowhere"}
    write_jsonl(tmp_path / "in.jsonl", rows)
    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    assert result.status == 3
    assert "gsm8k: 1 row unscored; first error: extra_info.server_url" in result.err
    assert "unscored: 1 row; where `reason` names a field, correct IN; then the same command with --force" in result.err
    assert "--retry-failed" not in result.err and "rewardstack check" not in result.err
    statuses = [row["status"] for row in read_jsonl(tmp_path / "out.jsonl")]
    assert (statuses.pop(290), set(statuses)) == ("unscored", {"ok"})


def test_an_option_that_all_rows_have_wrong_keeps_what_is_scored(scoring: Cli, tmp_path: Path) -> None:
    """The run ends where the rows are reached: the field is named, the rows before are kept."""
    rows = samples(300)
    for row in rows[256:]:
        row["extra_info"] = {"server_url": "nowhere"}
    write_jsonl(tmp_path / "in.jsonl", rows)
    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    assert result.status == 2
    assert "in.jsonl, lines 257 to 300: extra_info.server_url" in result.err
    assert "256 of 300 rows are in out.jsonl (" in result.err
    assert own(read_jsonl(tmp_path / "out.jsonl")) == rows[:256]


def test_an_error_before_the_first_score_leaves_no_file(scoring: Cli, tmp_path: Path) -> None:
    """If nothing is scored, neither OUT nor its provenance is left, and no advice to continue is printed."""
    write_jsonl(tmp_path / "in.jsonl", [{**one, "extra_info": {"server_url": "nowhere"}} for one in samples(8)])
    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    assert (result.status, [one.name for one in tmp_path.iterdir()]) == (2, ["in.jsonl"])
    assert "0 of 8 rows are scored" in result.err and "run the same command" not in result.err


@pytest.mark.parametrize("output", [("score", "in.jsonl", "-o", "out.jsonl"), ("score", "in.jsonl", "--table")])
def test_the_first_program_is_named_where_none_may_run(cli: Cli, tmp_path: Path, output: tuple[str, ...]) -> None:
    """Without `CODE=on`, the error names the first row that is a program, also as a part of a composite."""
    (tmp_path / "routes.json").write_text('{"routes": {"mixed": {"sum": ["length", "rule_remote_code"]}}}')
    cli.variables["REWARDSTACK_ROUTES"] = "routes.json"
    sources = ("gsm8k", "mixed", "code")
    write_jsonl(tmp_path / "in.jsonl", [{**sample(1), "data_source": source} for source in sources])
    result = cli(*output)
    assert result.status == 2
    assert "error: in.jsonl, line 2: CODE: programs are not run; set CODE=on to run" in result.err


COMMANDS = {
    "no file": (["absent.jsonl", "-o", "out.jsonl"], "there is no file absent.jsonl"),
    "directory": (["folder.jsonl", "-o", "out.jsonl"], "there is no file folder.jsonl"),
    "kind of IN": (["in.csv", "-o", "out.jsonl"], "in.csv ends neither in .jsonl nor in .parquet"),
    "kind of OUT": (["in.jsonl", "-o", "out.csv"], "out.csv ends neither in .jsonl nor in .parquet"),
    "OUT is IN": (["in.jsonl", "-o", "./in.jsonl", "--force"], "is IN itself"),
    "OUT is a directory": (["in.jsonl", "-o", "folder.jsonl"], "-o: folder.jsonl is a folder"),
    "OUT in no directory": (["in.jsonl", "-o", "absent/out.jsonl"], "-o: there is no folder absent; make it"),
    "parquet OUT in no directory": (["in.jsonl", "-o", "absent/out.parquet"], "-o: there is no folder absent; make it"),
    "not parquet": (["broken.parquet", "-o", "out.jsonl"], "broken.parquet: not a readable parquet file"),
    "no rows": (["empty.jsonl", "-o", "out.jsonl"], "empty.jsonl has no rows"),
    "no rows in parquet": (["empty.parquet", "-o", "out.parquet"], "empty.parquet has no rows"),
    "no rows for a table": (["empty.jsonl", "--table"], "empty.jsonl has no rows"),
    "no rows to estimate": (["empty.jsonl", "--dry-run"], "empty.jsonl has no rows"),
    "neither OUT nor table": (["in.jsonl"], "one of the arguments -o/--output --table --dry-run is required"),
    "chunk size": (["in.jsonl", "-o", "out.jsonl", "--chunk-size", "0"], "expected a positive whole number, got '0'"),
    "timeout": (["in.jsonl", "-o", "out.jsonl", "--timeout", "inf"], "expected a positive number, got 'inf'"),
    "policy": (["in.jsonl", "-o", "out.jsonl", "--on-error", "ignore"], "invalid choice: 'ignore'"),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_a_malformed_command_is_an_error(scoring: Cli, tmp_path: Path, case: str) -> None:
    """Each wrong argument is said in words, with status 2, and IN is left as it was."""
    arguments, complaint = COMMANDS[case]
    before = write_jsonl(tmp_path / "in.jsonl", samples(2)).read_bytes()
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "broken.parquet").write_text("PAR1")
    (tmp_path / "empty.jsonl").touch()
    pq.write_table(pa.Table.from_pylist(samples(1)).slice(1), tmp_path / "empty.parquet")
    result = scoring("score", *arguments)
    assert result.status == 2
    assert complaint in result.err
    assert (tmp_path / "in.jsonl").read_bytes() == before


def test_a_malformed_setting_is_named(scoring: Cli, tmp_path: Path) -> None:
    """An environment variable that cannot be used is an error that names it."""
    write_jsonl(tmp_path / "in.jsonl", samples(2))
    scoring.variables["REWARD_SERVER_TIMEOUT"] = "soon"
    result = scoring("score", "in.jsonl", "-o", "out.jsonl")
    assert result.status == 2
    assert "REWARD_SERVER_TIMEOUT" in result.err


def test_a_full_disk_is_said_in_a_line(scoring: Cli, tmp_path: Path) -> None:
    """What cannot be written is the machine's fault: status 1; with room again the run is taken up."""
    write_jsonl(tmp_path / "in.jsonl", samples(300))
    command = ("score", "in.jsonl", "-o", "out.jsonl", "--chunk-size", "8")
    limited = ("bash", "-c", 'ulimit -f 4; exec "$@"', "bash", *COMMAND, *command)
    # Python would leave compiled modules that are cut off, too.
    environment = {**scoring.environment(), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(limited, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "rewardstack: error: [Errno 27] File too large"
    assert scoring(*command).status == 0
    assert own(read_jsonl(tmp_path / "out.jsonl")) == samples(300)
