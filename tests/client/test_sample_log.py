"""`REWARDSTACK_SAMPLE_LOG`: what is written, how large it gets, and what is read from it."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, score
from rewardstack.core import sample_log
from rewardstack.core.sample_log import SampleLog, extremes
from tests.support.servers import FaultServer


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(log: SampleLog, *values: float, owner: str = "", status: Any = "ok") -> None:
    requests = [Request("math", f"it is {value}", "1", {"problem": "p"}) for value in values]
    log.write(
        requests, [Score(value, status, "why", parts={"a": value}) for value in values], ["r"] * len(values), owner
    )


def test_client(server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of a trainer writes its samples, with score and texts, to a file that only its user may read."""
    path = tmp_path / "samples.jsonl"
    monkeypatch.setenv("REWARDSTACK_SAMPLE_LOG", str(path))
    monkeypatch.setenv("REWARDSTACK_SAMPLE_LOG_SHARE", "1")

    score([Request("gsm8k", "a" * 9000, "42"), Request("gsm8k", "43", None)])

    first, second = lines(path)
    assert (first["route"], first["data_source"], first["status"]) == ("gsm8k", "gsm8k", "ok")
    assert first["solution_str"] == "a" * sample_log.MAX_TEXT + "…" and first["ground_truth"] == "42"
    assert (second["solution_str"], second["ground_truth"], second["problem"]) == ("43", None, None)
    assert path.stat().st_mode & 0o777 == 0o600


def test_share(tmp_path: Path) -> None:
    """About that share is written, the same samples in each process."""
    for name in ("a", "b"):
        write(SampleLog(tmp_path / name, 0.1), *range(1000))

    written = [one["value"] for one in lines(tmp_path / "a")]
    assert 60 < len(written) < 140
    assert written == [one["value"] for one in lines(tmp_path / "b")]


def test_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processes write, there are two files of about the limit, and no line is broken."""
    monkeypatch.setattr(sample_log, "MAX_BYTES", 20_000)
    path = tmp_path / "log"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda at: write(SampleLog(path, 1.0), at, at), range(300)))

    assert {one.name for one in tmp_path.iterdir()} == {"log", "log.1"}
    assert all(one.stat().st_size < 21_000 for one in tmp_path.iterdir())
    assert all(line["route"] == "r" for one in tmp_path.iterdir() for line in lines(one))


def test_no_score_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that cannot be written is warned about once; so is a sample that is nested too deeply."""
    log = SampleLog(tmp_path / "missing" / "log", 1.0)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with caplog.at_level(logging.WARNING):
        write(log, 1.0)
        log.write([Request("math", "x", deep)], [Score(1.0)], ["r"])

    [record] = [one for one in caplog.records if one.name == SampleLog.__module__]  # not probes of other tests
    assert "REWARDSTACK_SAMPLE_LOG: cannot write to " in record.getMessage()


def test_extremes(tmp_path: Path) -> None:
    """The highest and lowest rewards of the last hour, each owner's apart; a broken line is left out."""
    path = tmp_path / "log"
    log = SampleLog(path, 1.0)
    write(log, *range(10), owner="one")
    write(log, 99.0, owner="other")
    write(log, -1.0, owner="one", status="failed")
    old = {**lines(path)[0], "at": 1.0, "value": 1000.0}
    path.with_name("log.1").write_text(f"{json.dumps(old)}\nbroken {{\n[]\n")

    found = extremes(path)

    [one] = found["one"]
    assert [line["value"] for line in one["highest"]] == [9, 8, 7]
    assert [line["value"] for line in one["lowest"]] == [0, 1, 2]
    assert [line["value"] for line in found["other"][0]["highest"]] == [99.0] and found["other"][0]["lowest"] == []
    assert "owner" not in one["highest"][0]
    assert extremes(tmp_path / "none") == {}


def test_numbers_that_json_lacks(tmp_path: Path) -> None:
    """An infinite number in a sample is logged as text, and a line that is not JSON is not read."""
    path = tmp_path / "log"
    request = Request("math", ["1", float("inf")], [float("nan")], {"problem": float("-inf")})
    path.write_text('{"at": NaN, "status": "ok", "value": 0, "owner": "", "route": "r"}\n')

    SampleLog(path, 1.0).write([request], [Score(1.0, "ok", "")], ["r"])

    written = json.loads(path.read_text().splitlines()[1], parse_constant=pytest.fail)
    assert (written["ground_truth"], written["problem"]) == ("[NaN]", "-Infinity")
    assert [one["value"] for one in extremes(path)[""][0]["highest"]] == [1.0]
