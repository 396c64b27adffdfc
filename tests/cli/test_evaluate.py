"""`rewardstack evaluate`: scores against labels, on a terminal, as JSON and as a page."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from rewardstack.score import Score
from rewardstack_cli import evaluate
from rewardstack_cli.data.source import Source
from rewardstack_cli.evaluation import classification_metrics, labels
from rewardstack_cli.evaluation.page import render_page
from rewardstack_cli.evaluation.report import Report, ReportOptions, Result
from rewardstack_cli.evaluation.scoring import load_injections
from rewardstack_cli.main import main
from tests.client.judge import conftest as judges
from tests.client.judge.conftest import asked
from tests.support.servers import FaultServer, free_port
from tests.support.snippets import blocks_of
from tests.support.waiting import eventually

from .conftest import ROOT, Cli
from .samples import sample, write_jsonl

LABELLED = ROOT / "examples/labelled_judgements.jsonl"
judge, one_judge = judges.judge, judges.one_judge
HOSTILE = "</td><script>alert(1)</script>]]> \ud800 ${x} {{y}}"
SCORED = [
    {"data_source": "a", "solution_str": "1", "ground_truth": "1", "label": 1, "value": 0.9, "status": "ok"},
    {"data_source": "a", "solution_str": "2", "ground_truth": "1", "label": False, "value": 0.8, "status": "ok"},
    {"data_source": "b", "solution_str": "3", "ground_truth": "3", "label": 0.7, "value": 0.0, "status": "failed"},
    {"data_source": "b", "solution_str": "4", "ground_truth": "3", "label": 0, "value": 0.1, "status": "fallback"},
    {"data_source": "b", "solution_str": "5", "ground_truth": "3", "label": 0, "value": 0.2, "status": "ok"},
]


def evaluated(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit status of a run in this process, and its report; no number of it is NaN or infinite."""
    status = main(["evaluate", *arguments, "--json", str(folder / "report.json")])
    report = json.loads((folder / "report.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    return status, report


def test_what_is_scored_already(tmp_path: Path) -> None:
    """A file that `score` wrote is read as it is; what has no score of its own is counted apart, never as 0."""
    write_jsonl(tmp_path / "out.jsonl", SCORED)
    status, report = evaluated(tmp_path, str(tmp_path / "out.jsonl"), "--scored")
    [setting] = report["settings"]
    assert status == 3
    assert setting["statuses"] == {"ok": 3, "fallback": 1, "unscored": 0, "failed": 1}
    assert (setting["figures"]["rows"], setting["figures"]["agreement"]) == (3, pytest.approx(2 / 3))
    assert setting["figures"]["confusion"]["false_positive"] == 1
    assert [(group["name"], group["figures"]["rows"]) for group in setting["groups"]] == [("a", 2), ("b", 1)]
    assert [group["figures"]["auc"] for group in setting["groups"]] == [1.0, None]
    assert [one["response"] for one in setting["disagreements"]] == ["2"]


def test_hostile_texts_are_shown(tmp_path: Path) -> None:
    """Whatever a response, a reference, a reason, a name or a source holds, the page has no script, and shows it."""
    row = {**SCORED[1], "data_source": HOSTILE, "solution_str": HOSTILE, "ground_truth": HOSTILE, "name": HOSTILE}
    write_jsonl(tmp_path / "out.jsonl", [row, {**row, "status": "failed", "reason": HOSTILE}])
    assert main(["evaluate", str(tmp_path / "out.jsonl"), "--scored", "--html", str(tmp_path / "page.html")]) == 3
    page = (tmp_path / "page.html").read_text()
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    assert not re.findall(r"(?:src|href)=|url\(|@import", page)
    assert "default-src 'none'" in page
    assert "2 rows; labeled right by label: 0; a response counts as right" in page


@pytest.mark.parametrize(
    ("row", "arguments", "named"),
    [
        ({"label": None}, (), "label is missing"),
        ({"label": "yes"}, (), "label: expected 0 or 1"),
        ({"label": math.nan}, (), "label"),
        ({"label": 2}, (), "label: expected 0 or 1"),
        ({}, ("--label", "correct"), "correct is missing"),
        ({}, ("--by", "topic"), "topic: expected"),
        ({"status": "fine"}, (), "status: expected one of"),
        ({"value": None}, (), "value: expected a number"),
        ({}, ("--injections",), "--scored"),
        ({}, ("--bins", "100000"), "--bins: at most"),
        ({}, ("--dry-run",), "--scored"),
        ({}, ("--html", "absent/page.html"), "--html: there is no folder absent; make it, or name another file"),
        ({}, ("--html", "."), "--html: . is a folder; name a file"),
    ],
)
def test_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: dict[str, Any], arguments: tuple[str, ...], named: str
) -> None:
    """A label, field or argument that cannot be used is named with its place, and nothing is written."""
    write_jsonl(tmp_path / "out.jsonl", [SCORED[0], {**SCORED[1], **row}])
    arguments = ("--scored", *arguments, "--json", str(tmp_path / "report.json"))
    assert main(["evaluate", str(tmp_path / "out.jsonl"), *arguments]) == 2
    said = capsys.readouterr().err
    assert named in said
    assert "line 2" in said or arguments[1].startswith("--")
    assert not (tmp_path / "report.json").exists()


def test_rules(scoring: Cli) -> None:
    """The shipped labelled set by a real reward server: some labels are not what the rules say."""
    result = scoring("evaluate", str(LABELLED), "--json", "report.json", "--html", "page.html")
    report = json.loads((scoring.cwd / "report.json").read_text())
    found = report["settings"][0]["figures"]
    assert (result.status, found["rows"], report["right"]) == (0, 40, 23)
    assert found["confusion"] == {"true_positive": 17, "false_positive": 2, "true_negative": 15, "false_negative": 6}
    assert "agreement" in result.out
    assert (scoring.cwd / "page.html").read_text().count("<svg") == 2


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Rows for a judge, one of which is right."""
    rows = [
        {"data_source": "llm_judge_remote_x", "solution_str": f"It is {at}.", "ground_truth": "1", "label": at == 1}
        for at in range(4)
    ]
    write_jsonl(tmp_path / "in.jsonl", rows)
    return tmp_path / "in.jsonl"


def test_two_settings(labelled: Path, judge: FaultServer, tmp_path: Path) -> None:
    """Each setting's options are put into every row, and the rows that one alone decides well are counted."""
    judge.set(by_model={"trusting": "REWARD: 1.0", "strict": "REWARD: 0.0"})
    options = ("--set", "model_name=trusting", "--against", "model_name=strict", "--against", "max_new_tokens=99")
    status, report = evaluated(tmp_path, str(labelled), *options)
    assert status == 0
    assert [setting["options"] for setting in report["settings"]] == [
        {"model_name": "trusting"},
        {"model_name": "strict", "max_new_tokens": 99},
    ]
    assert [setting["figures"]["agreement"] for setting in report["settings"]] == [0.25, 0.75]
    found = report["comparison"]
    assert (found["first_alone"], found["second_alone"], found["p"]) == (1, 3, pytest.approx(0.625))
    assert {body["max_tokens"] for body in asked(judge) if body["model"] == "strict"} == {99}


def test_injections(labelled: Path, judge: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wrong response is scored once more with each injection; what was taken for right before does not count."""
    judge.set(content=None)
    monkeypatch.setenv("REWARD_CACHE", "off")  # some injections reach the judge as the same text
    _, report = evaluated(tmp_path, str(labelled), "--injections")
    [setting] = report["settings"]
    refused = setting["figures"]["confusion"]["true_negative"]
    assert len(asked(judge)) == 4 + 3 * len(load_injections())
    assert {one["name"] for one in setting["injections"]} == set(load_injections())
    assert {one["of"] for one in setting["injections"]} == {refused}
    assert 0 < sum(one["fooled"] for one in setting["injections"]) < refused * len(load_injections())


def test_injections_without_a_score(labelled: Path) -> None:
    """A response that fails with an injection is told as such: it neither fooled the judge nor withstood."""
    rows = [*labels.read(Source(labelled).rows(), "label", "data_source", 0.5, None)]
    injected = iter([Score.failed("down"), Score(1.0), Score(0.0)])
    collected = Report(ReportOptions("file", "label", "data_source", 0.5, 10, 0), {"set": {}}, ["planted"])
    for row in rows:
        collected.add(row, [Result(Score(float(row.right)), () if row.right else [next(injected)])])
    report = collected.record()
    [found] = report["settings"][0]["injections"]
    assert found == {"name": "planted", "fooled": 1, "of": 2, "without": 1}
    assert not collected.is_complete
    assert "trials without a score, not counted: 1" in render_page(report)


def test_dry_run(labelled: Path, judge: FaultServer, capsys: pytest.CaptureFixture[str]) -> None:
    """The cost of both settings and of all injections is printed; no verdict is asked for and nothing is written."""
    options = ("--injections", "--against", "num_samples=2", "--against", "temperature=1", "--set", "temperature=1")
    assert main(["evaluate", str(labelled), *options, "--dry-run"]) == 0
    count = 4 + 3 * len(load_injections())
    printed = capsys.readouterr().out
    assert f"{2 * count} rows: " in printed and f"at most {3 * count:,} requests" in printed
    assert "nothing was scored" in printed
    assert not asked(judge)
    assert main(["evaluate", str(labelled), "--dry-run", "--label", "missing"]) == 2


def test_memory_is_that_of_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the rows, of which each has another score, take no more memory."""
    monkeypatch.setattr(classification_metrics, "MAX_VALUES", 100)
    peaks = []
    for count in (300, 300, 3_000):  # the first run also loads what each run needs
        rows = ({**SCORED[0], "value": at / count, "label": at % 2, "filler": "x" * 4000} for at in range(count))
        write_jsonl(tmp_path / "out.jsonl", rows)
        tracemalloc.start()
        try:
            assert main(["evaluate", str(tmp_path / "out.jsonl"), "--scored", "--disagreements", "5"]) == 0
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] - peaks[1] < (tmp_path / "out.jsonl").stat().st_size / 4, peaks


@pytest.mark.nightly
def test_memory_while_scoring(scoring: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the rows take no more memory where they are scored, either, under two settings."""
    monkeypatch.setattr(evaluate, "CHUNK_SIZE", 64)
    scoring.variables["REWARD_CACHE_ITEMS"] = "0"
    peaks = []
    for count in (200, 200, 2_000):
        rows = (sample(number, filler="x" * 4000, label=number % 2) for number in range(count))
        write_jsonl(scoring.cwd / "in.jsonl", rows)
        tracemalloc.start()
        try:
            assert scoring("evaluate", "in.jsonl", "--against", "method=flexible").status == 0
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] - peaks[1] < (scoring.cwd / "in.jsonl").stat().st_size / 4, peaks


def test_a_judge_that_fails(judge: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After 200 failures in a row the rest is left unscored, and counted as such."""
    monkeypatch.setattr(evaluate, "CHUNK_SIZE", 8)
    judge.set(status=400)
    row = {"data_source": "llm_judge_remote_x", "ground_truth": "1", "label": 1}
    write_jsonl(tmp_path / "in.jsonl", ({**row, "solution_str": f"It is {at}."} for at in range(300)))
    status, report = evaluated(tmp_path, str(tmp_path / "in.jsonl"))
    statuses = report["settings"][0]["statuses"]
    assert (status, sum(statuses.values()), statuses["ok"]) == (3, 300, 0)
    assert 200 <= statuses["failed"] <= 208


def test_an_interruption(
    judge: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C waits for the rows in flight and ends the evaluation without a report."""
    monkeypatch.setattr(evaluate, "CHUNK_SIZE", 8)
    judge.set(delay=0.3)
    row = {"data_source": "llm_judge_remote_x", "ground_truth": "1", "label": 1}
    write_jsonl(tmp_path / "in.jsonl", ({**row, "solution_str": f"It is {at}."} for at in range(400)))

    def interrupt() -> None:
        eventually(lambda: len(asked(judge)) > 0)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    status = main(["evaluate", str(tmp_path / "in.jsonl"), "--json", str(tmp_path / "report.json")])
    thread.join()
    assert (status, (tmp_path / "report.json").exists()) == (130, False)
    assert "waiting for the rows in flight" in capsys.readouterr().err
    assert len(asked(judge)) < 400


def test_too_many_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A field that has another value in each row is refused, because its figures say nothing."""
    write_jsonl(tmp_path / "out.jsonl", ({**SCORED[0], "id": at} for at in range(1001)))
    assert main(["evaluate", str(tmp_path / "out.jsonl"), "--scored", "--by", "id"]) == 2
    assert "--by: id has more than 1,000 values" in capsys.readouterr().err


def test_route_that_raises(labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A route that stops a training at its first failure does not stop an evaluation, which counts the failed rows."""
    route = '[routes.llm_judge_remote_x]\nroute = "llm_judge_remote"\non_error = "raise"\n'
    (tmp_path / "routes.toml").write_text(route)
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / "routes.toml"))
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    status, report = evaluated(tmp_path, str(labelled), "--timeout", "0.3")  # expires
    assert (status, report["settings"][0]["statuses"]["failed"]) == (3, report["rows"])


def test_document(scoring: Cli, judge: FaultServer) -> None:
    """The commands of docs/calibration.md about a judge run as they are printed, for somebody who has labelled rows."""
    scoring.variables["LLM_JUDGE_SERVER_URL"] = judge.url
    rows = [
        {**one, "data_source": "llm_judge_remote"} for one in map(json.loads, LABELLED.read_text().splitlines()[:3])
    ]
    write_jsonl(scoring.cwd / "labelled.jsonl", rows)
    blocks = [text for _, text in blocks_of("docs/calibration.md") if text.startswith("rewardstack evaluate labelled")]
    assert len(blocks) == 2
    for text in blocks:
        _, *arguments = shlex.split(text)
        assert scoring(*arguments).status == 0
    assert (scoring.cwd / "templates.html").is_file()
