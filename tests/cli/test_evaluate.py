"""`rewardstack evaluate`: scores against labels, on a terminal, as JSON and as a page."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from rewardstack.score import Score
from rewardstack_cli.data.source import Source
from rewardstack_cli.evaluation import labels
from rewardstack_cli.evaluation.page import page
from rewardstack_cli.evaluation.report import Setting, Terms, make_report
from rewardstack_cli.evaluation.scoring import injections
from rewardstack_cli.main import main
from tests.client.judge import conftest as judges
from tests.client.judge.conftest import asked
from tests.support.servers import FaultServer, free_port
from tests.support.snippets import blocks_of

from .conftest import ROOT, Cli
from .samples import write_jsonl

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
    assert len(asked(judge)) == 4 + 3 * len(injections())
    assert {one["name"] for one in setting["injections"]} == set(injections())
    assert {one["of"] for one in setting["injections"]} == {refused}
    assert 0 < sum(one["fooled"] for one in setting["injections"]) < refused * len(injections())


def test_injections_without_a_score(labelled: Path) -> None:
    """A response that fails with an injection is told as such: it neither fooled the judge nor withstood."""
    rows = labels.read(Source(labelled).rows(), "label", "data_source", 0.5, None)
    wrong = [Score(0.0) for row in rows if not row.right]
    injected = {"planted": [Score.failed("down"), Score(1.0), *wrong[2:]]}
    setting = Setting("set", {}, [Score(float(row.right)) for row in rows], injected)
    report = make_report(rows, [setting], Terms("file", "label", "data_source", 0.5, 10, 0))
    [found] = report["settings"][0]["injections"]
    assert found == {"name": "planted", "fooled": 1, "of": len(wrong) - 1, "without": 1}
    assert "1 had no score with an injection" in page(report)


def test_route_that_raises(labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A route that stops a training at its first failure does not stop an evaluation, which counts the failed rows."""
    route = '[routes.llm_judge_remote_x]\nroute = "llm_judge_remote"\non_error = "raise"\n'
    (tmp_path / "routes.toml").write_text(route)
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(tmp_path / "routes.toml"))
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", f"http://127.0.0.1:{free_port()}")
    status, report = evaluated(tmp_path, str(labelled), "--timeout", "0.3")
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
