"""What becomes of a sample, by what happened: the rows of the table in `docs/routing.md`, each of which is run here."""

from __future__ import annotations

import codecs
import json
import logging
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rewardstack import Request, Score, score
from rewardstack.core.wire import read_scores, score_record
from rewardstack.errors import ConfigError, RewardstackError
from rewardstack.pipeline import missing
from rewardstack_rules.functions.catalog import load_registry
from rewardstack_rules.functions.registry import Rule
from rewardstack_rules.metrics import counters
from rewardstack_rules.scoring.evaluator import Evaluator
from rewardstack_rules.settings import Settings
from tests.client.embedding.conftest import STAND_IN
from tests.client.judge.conftest import JUDGE, forget, judge, one_judge
from tests.support.servers import FaultServer
from tests.support.table import Table

ROOT = Path(__file__).resolve().parents[2]
ROWS = json.loads((ROOT / "tests" / "cases" / "statuses.json").read_text())
SOURCES = {"judge": JUDGE, "embedding": "embedding_remote", "rule": "gsm8k"}
HEADING = "| what happened | status | cause | reward | the caller gets |\n| --- | --- | --- | --- | --- |\n"

__all__ = ["judge", "one_judge"]


@pytest.fixture(scope="module")
def embedding() -> Iterator[FaultServer]:
    """A stand-in for an embedding server."""
    one = FaultServer(script=STAND_IN)
    yield one
    one.kill()


@pytest.fixture
def servers(judge: FaultServer, embedding: FaultServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, FaultServer]:
    """A judge and an embedding server that the environment names; nothing is remembered."""
    monkeypatch.setenv("EMBEDDING_SERVER_URL", embedding.url)
    monkeypatch.setenv("REWARD_CACHE", "off")
    both = {"judge": judge, "embedding": embedding}
    forget_both(both, monkeypatch)
    return both


def forget_both(servers: dict[str, FaultServer], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next case find both servers as a test does, and warn as if it were the first."""
    missing.missing_warnings.log_repeats(math.inf)
    forget(servers["judge"], monkeypatch)
    servers["embedding"].set(mode="ok")


@pytest.fixture(scope="module")
def evaluate() -> Callable[..., list[Score]]:
    """What the endpoints of a reward server ask, with a reward function that raises."""
    registry = load_registry([])
    registry.add(Rule("raises", lambda *_: 1 / 0, "raises", isolated=False))  # type: ignore[arg-type]
    evaluator = Evaluator(Settings.from_env({}), registry)
    return lambda requests: evaluator.score(requests, limit=None, tenant="")


def requests_of(run: dict[str, Any]) -> list[Request]:
    """The samples of a run: `response` and `reference`, and what else stands there in `extra_info`."""
    source = run.get("source", SOURCES[run["by"]])
    return [_request(source, **sample) for sample in run["samples"]]


def _request(source: str, response: Any = "42", reference: Any = "42", **extra: Any) -> Request:
    if isinstance(response, list):
        text, times = response
        response = text * times
    return Request(source, response, reference, {"problem": "What is 6 times 7?", **extra})


def warnings(records: Sequence[logging.LogRecord]) -> list[str]:
    """What of the log warns of samples; that a server is slow to answer, as on a busy machine, does not."""
    told = (record for record in records if not record.name.startswith("rewardstack.transport"))
    return [record.getMessage() for record in told if record.levelno >= logging.WARNING]


def test_row(
    servers: dict[str, FaultServer],
    evaluate: Callable[..., list[Score]],
    caplog: pytest.LogCaptureFixture,
    table: Table,
) -> None:
    """The first sample has the row's status and value, and its caller hears of it as the row says."""
    for row in ROWS:
        for at, run in enumerate(row["runs"]):
            with table.case(f"{row['what'][:40]} {run['by']} {at}"), pytest.MonkeyPatch.context() as patch:
                forget_both(servers, patch)
                for name, text in run.get("environment", {}).items():
                    patch.setenv(name, text)
                if "set" in run:
                    servers[run["by"]].set(**run["set"])
                caplog.clear()
                assert_row(row, run, evaluate if run["by"] == "rule" else score, caplog)


def assert_row(
    row: dict[str, Any], run: dict[str, Any], ask: Callable[..., list[Score]], caplog: pytest.LogCaptureFixture
) -> None:
    """Score a run's samples, and compare the first outcome and the log with the row."""
    if not row["status"]:
        with pytest.raises(ConfigError) as caught:
            ask(requests_of(run))
        assert run["says"] in str(caught.value)
        return
    first = ask(requests_of(run))[0]
    assert (row["status"], run.get("value", 0.0)) == (first.status, pytest.approx(first.value))
    assert (None if first.cause is None else first.cause.value) == run.get("cause")
    assert (row["heard"] == "a warning") == bool(warnings(caplog.records))
    assert any(run.get("says", "") in line for line in warnings(caplog.records)) or "says" not in run


def scramble(text: str) -> str:
    """Replace every letter."""
    return codecs.encode(text, "rot13")


@pytest.fixture
def scrambled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no message of ours have a word that it has: those of errors, and the reasons of scores."""
    new_score = Score.__init__

    def init(self: Score, value: float | None, status: Any = "ok", reason: str = "", *args: Any, **fields: Any) -> None:
        new_score(self, value, status, scramble(reason), *args, **fields)

    monkeypatch.setattr(Score, "__init__", init)
    monkeypatch.setattr(RewardstackError, "__str__", lambda error: scramble(Exception.__str__(error)))


@pytest.mark.usefixtures("scrambled")
def test_no_metric_depends_on_words(
    servers: dict[str, FaultServer], evaluate: Callable[..., list[Score]], table: Table
) -> None:
    """Whatever the words of messages are, a sample is counted with the cause of its row, here and behind a server."""
    for row in (row for row in ROWS if row["status"]):
        for at, run in enumerate(row["runs"]):
            with table.case(f"{row['what'][:40]} {run['by']} {at}"), pytest.MonkeyPatch.context() as patch:
                forget_both(servers, patch)
                if "set" in run:
                    servers[run["by"]].set(**run["set"])
                first = (evaluate if run["by"] == "rule" else score)(requests_of(run))[0]
                for one in (first, *read_scores([score_record(first)])):
                    assert counted(one) == ((row["status"], run["cause"]) if "cause" in run else None)


def counted(one: Score) -> tuple[str, str] | None:
    """Count a score; return the labels of its cause in the metric, None if it is not counted there."""
    route = uuid.uuid4().hex
    counters.count_scores([one], [route])
    found = [sample.labels for metric in counters.CAUSES.collect() for sample in metric.samples]
    return next(((labels["status"], labels["cause"]) for labels in found if labels["route"] == route), None)


def test_the_document_has_the_rows() -> None:
    """`docs/routing.md` has the table of these rows, and no other."""
    rows = [
        f"| {row['what']} | {_code(row['status'])} | {_causes(row)} | {row['reward']} | {row['heard']} |\n"
        for row in ROWS
    ]
    assert HEADING + "".join(rows) + "\n" in (ROOT / "docs" / "routing.md").read_text()


def _causes(row: dict[str, Any]) -> str:
    causes = dict.fromkeys(run["cause"] for run in row["runs"] if "cause" in run)
    return ", ".join(map(_code, causes))


def _code(status: str) -> str:
    return f"`{status}`" if status else ""
