"""Metrics of processes that come and go."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import requests
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from rewardstack_rules.metrics import files as metrics_files
from tests.rules.conftest import RewardServer
from tests.rules.test_operations import metric
from tests.support.waiting import eventually

ITEM = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
KILLED = 6
SCORED = 'rewardstack_requests_total{code="200",endpoint="/v1/score"}'
Start = Callable[..., RewardServer]


def files(directory: Path) -> set[str]:
    """Names of the files that hold counts."""
    return {path.name for path in directory.glob("*.db")}


def replace_worker(server: RewardServer) -> None:
    """Kills a worker, and waits for another in its place."""
    before = server.workers()
    os.kill(before[0], signal.SIGKILL)
    eventually(lambda: len(server.workers()) == len(before) and set(server.workers()) != set(before))


@pytest.mark.nightly
def test_recycled_workers(start: Start, tmp_path: Path) -> None:
    """Workers that are replaced every few requests count nothing twice, forget nothing and leave no files behind."""
    counts = tmp_path / "counts"
    server = start(
        "--workers", "2", PROMETHEUS_MULTIPROC_DIR=counts, GUNICORN_CMD_ARGS="--max-requests 10 --max-requests-jitter 5"
    )
    first = set(server.workers())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: server.score(ITEM), range(60)))
    more: list[object] = []

    def are_replaced() -> bool:
        more.append(server.score(ITEM))  # until the one that answers less often has had enough
        return len(server.workers()) == 2 and not first & set(server.workers())

    eventually(are_replaced)
    text = server.get("/metrics").text

    assert metric(text, SCORED) == 60 + len(more)
    assert metric(text, 'rewardstack_request_duration_seconds_count{endpoint="/v1/score"}') == 60 + len(more)
    assert metric(text, 'rewardstack_samples_total{route="rule:gsm8k",status="ok"}') == 60 + len(more)
    eventually(lambda: len(files(counts)) <= 2 + 3 * len(server.workers()))
    assert {"counter_ended.db", "histogram_ended.db"} <= files(counts)


@pytest.mark.nightly
def test_scrapes_never_go_back(start: Start) -> None:
    """While workers are killed each scrape tells at least what the one before it told."""
    server = start("--workers", "2")
    done, seen = threading.Event(), [0.0]

    def scrape() -> None:
        while not done.is_set():
            with suppress(requests.RequestException):  # it met the worker that was killed
                seen.append(metric(server.get("/metrics").text, SCORED))

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        for _ in range(KILLED):
            for _ in range(10):
                server.score(ITEM)
            replace_worker(server)
        eventually(lambda: len(seen) > 10)
    finally:
        done.set()
        thread.join()

    assert sorted(seen) == seen
    assert metric(server.get("/metrics").text, SCORED) == 10 * KILLED


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    """A directory in which processes 1 to 3 have counted."""
    for pid in (1, 2, 3):
        for kind in metrics_files.KINDS:
            values = MmapedDict(str(tmp_path / f"{kind}_{pid}.db"))
            values.write_value(key("a"), 10.0**pid, 0.0)
            values.write_value(key(str(pid)), 1.0, 0.0)
            values.close()
    return tmp_path


def key(label: str) -> str:
    """A metric's name in a file."""
    return mmap_key("requests", "requests_total", ["code"], [label], "help")


def ended(directory: Path, kind: str) -> dict[str, float]:
    """The counts of the processes that have ended."""
    return {
        name: value for name, value, *_ in MmapedDict.read_all_values_from_file(str(directory / f"{kind}_ended.db"))
    }


def test_fold(counts: Path) -> None:
    """The counts of those that have ended are added up; the others' stay where they are."""
    metrics_files.merge_ended(counts, 1)
    metrics_files.merge_ended(counts, 3)

    assert files(counts) == {f"{kind}_{who}.db" for kind in metrics_files.KINDS for who in ("ended", "2")}
    for kind in metrics_files.KINDS:
        assert ended(counts, kind) == {key("a"): 1010.0, key("1"): 1.0, key("3"): 1.0}


def test_fold_during_a_scrape(counts: Path) -> None:
    """A scrape sees nothing move, and holds nobody up: what has ended meanwhile is added at the next occasion."""
    with metrics_files.merging_paused(counts):
        metrics_files.merge_ended(counts, 1)
        during = files(counts)
    metrics_files.merge_ended(counts, 2)

    assert "counter_1.db" in during and "counter_ended.db" not in during
    assert ended(counts, "counter") == {key("a"): 110.0, key("1"): 1.0, key("2"): 1.0}


def test_fold_of_one_that_counted_nothing(counts: Path) -> None:
    """A process that ended before it counted has no files, which is no fault."""
    metrics_files.merge_ended(counts, 99)

    assert {"counter_1.db", "counter_2.db", "counter_3.db"} <= files(counts)


def test_comparisons_are_counted(server: RewardServer) -> None:
    """Answers of mathematics that isolated processes compared are counted by what compared them, each question once."""
    compared = 'rewardstack_math_comparisons_total{result="values"}'
    rows = [
        {"data_source": "math", "solution_str": f"\\boxed{{{n}\\sqrt{{8}}x}}", "ground_truth": f"{2 * n}\\sqrt{{2}}x"}
        for n in (2003, 2005, 2005)
    ]
    before = metric(server.get("/metrics").text, compared)

    scores = server.score(*rows)

    assert [score["value"] for score in scores] == [1.0] * 3
    assert metric(server.get("/metrics").text, compared) == before + 2
