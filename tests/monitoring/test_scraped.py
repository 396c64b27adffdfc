"""Every panel and every alert asks for what a real scrape of the real servers holds."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from services.monitoring.dashboards import DASHBOARDS, EMBEDDING, JUDGE, Panel, Row
from tests.client.judge.conftest import FAKE_JUDGE
from tests.embedding_server.served import embedding_server, models_python
from tests.monitoring.conftest import Prometheus, Watch
from tests.monitoring.test_files import ALERTS
from tests.rules.conftest import RewardServer, clean_environment, running
from tests.support.jobs import Queue, Worker
from tests.support.servers import FaultServer, Redis, free_port
from tests.support.table import Table
from tests.support.vllm import VllmServer
from tests.support.waiting import eventually

KEY = "first-key-of-tests"
HOSTILE = Path(__file__).parents[1] / "rules/functions/hostile.py"
INTERVAL = "60s"
"""What Grafana would put for `$__rate_interval`."""
PANELS = [(row, panel) for board in DASHBOARDS for row in board.rows for panel in row.panels]
NAME = re.compile(r"\b(?:rewardstack_|te_|nginx_|vllm:)\w+")


class Watched(NamedTuple):
    """The stack's own servers under load, and who watches them."""

    server: RewardServer
    prometheus: Prometheus


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Does something again and again, in a thread."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(0.2):
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, watch: Watch) -> Iterator[Watched]:
    """A reward server with two processes, a cache, a queue and a worker, with samples of every outcome in flight."""
    folder = tmp_path_factory.mktemp("watched")
    with ExitStack() as stack:
        judge = FaultServer(script=FAKE_JUDGE)
        stack.callback(judge.kill)
        judge.set(usage={"prompt_tokens": 30, "completion_tokens": 4})
        routes = folder / "routes.json"
        routes.write_text(json.dumps({"judges": {"judge_that_answers": {"base_url": judge.url}}}))
        cache, queue = Redis(folder), Queue(folder)
        stack.callback(cache.kill)
        stack.callback(queue.kill)
        variables = {
            "REWARD_CACHE_URL": cache.url,
            "REWARD_QUEUE_URL": queue.url,
            "REWARDSTACK_ROUTES": routes,
            "REWARD_JOB_CHUNK_SIZE": 5,
            "REWARD_JOB_RETRIES": 0,
            "REWARD_FUNCTIONS": HOSTILE,
            "VERIFY_TIMEOUT": 5,
            "LLM_JUDGE_SERVER_URL": f"http://127.0.0.1:{free_port()}",
            "LLM_JUDGE_SERVER_TIMEOUT": 5,
            "EMBEDDING_SERVER_URL": f"http://127.0.0.1:{free_port()}",
            "EMBEDDING_SERVER_TIMEOUT": 5,
        }
        port = free_port()
        worker = Worker(folder, clean_environment(**variables, WORKER_METRICS_PORT=port))
        stack.callback(worker.kill)
        server = stack.enter_context(running(folder, "--workers", "2", **variables, REWARD_SERVER_API_KEYS=KEY))
        worker.wait_until_ready()
        prometheus = watch(key=KEY, rules=server.url, worker=f"http://127.0.0.1:{port}")
        stack.enter_context(meanwhile(lambda: traffic(server)))
        eventually(lambda: watched_long_enough(prometheus), lambda: "the load does not show")
        yield Watched(server, prometheus)


def traffic(server: RewardServer) -> None:
    """Samples of every outcome: right, cached, killed, failed, fallen back, unscored, judged; a group and a job."""
    now = time.monotonic()
    group = {"group_id": f"{now}"}
    items = [
        {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"},
        {"data_source": "gsm8k", "solution_str": f"#### {now}", "ground_truth": "1"},
        {"data_source": "gsm8k", "solution_str": "#### 1"},
        {"data_source": "math_verifier", "solution_str": rf"\boxed{{\frac{{{now}}}{{3}}}}", "ground_truth": "x"},
        {"data_source": "rule_remote_hang", "solution_str": "slow"},
        {"data_source": "llm_judge_remote", "solution_str": f"{now}", "ground_truth": "1"},
        {"data_source": "embedding_remote", "solution_str": f"{now}", "ground_truth": "1"},
        {"data_source": "judge_that_answers", "solution_str": f"{now}", "ground_truth": "1"},
        *(
            {"data_source": "gsm8k", "solution_str": f"#### {at}", "ground_truth": "1", "extra_info": group}
            for at in range(2)
        ),
    ]
    headers = {"X-API-Key": KEY}
    server.post("/v1/score", {"items": items}, headers=headers)
    server.post("/jobs", {"items": items[:3]}, headers=headers)


def watched_long_enough(prometheus: Prometheus) -> bool:
    """Whether counters have grown between scrapes, the rarest of them too."""
    grown = f'sum(increase(rewardstack_samples_total{{status="fallback"}}[{INTERVAL}])) > 0'
    done = f'max(increase(rewardstack_job_chunks_total{{event="committed"}}[{INTERVAL}])) > 0'
    counted = f"sum(increase(rewardstack_model_replies_counted_total[{INTERVAL}])) > 0"
    return all(map(prometheus.query, (grown, done, counted)))


def check(prometheus: Prometheus, panel: Panel) -> None:
    """Each query of a panel has a number, as soon as the load shows in its interval."""
    for legend, query in panel.queries.items():
        expression = query.replace("$__rate_interval", INTERVAL)
        samples = eventual_samples(prometheus, expression)
        labels = set(re.findall(r"{{(\w+)}}", legend))
        assert all(labels <= sample["metric"].keys() for sample in samples), f"{expression} lacks {labels}"


def eventual_samples(prometheus: Prometheus, expression: str) -> list[dict[str, Any]]:
    """The samples of an expression once one is a number: a rate of nothing is NaN."""
    samples: list[dict[str, Any]] = []

    def has_number() -> bool:
        samples[:] = prometheus.query(expression)
        return any(not math.isnan(float(sample["value"][1])) for sample in samples)

    eventually(has_number, lambda: f"{expression} has {samples}", seconds=180)
    return samples


def of_models(row: Row) -> bool:
    """Whether a row is about the model servers' own metrics."""
    return row in (JUDGE, EMBEDDING)


def test_panel(watched: Watched, table: Table) -> None:
    """Under load each query of each panel has an answer, with the labels that its legend names."""
    for row, panel in PANELS:
        if not of_models(row):
            with table.case(f"{row.title}: {panel.title}"):
                check(watched.prometheus, panel)


@pytest.mark.parametrize("alert", ALERTS)
def test_alert(watched: Watched, alert: str) -> None:
    """What an alert asks for is there, where it is the project's own."""
    asked = {name for name in NAME.findall(ALERTS[alert]["expr"]) if name.startswith("rewardstack_")}
    assert set() == asked - watched.prometheus.names()
    watched.prometheus.query(ALERTS[alert]["expr"])


def test_alerts_fire(watched: Watched) -> None:
    """A judge that is away, an embedding server that is away and functions that hang are what the alerts say."""
    for alert in ("SamplesFail", "SamplesFallBack", "VerifierKills"):
        asked = re.sub(r"\[\d+m\]", f"[{INTERVAL}]", ALERTS[alert]["expr"])
        eventually(lambda asked=asked: watched.prometheus.query(asked), partial(str, alert))  # type: ignore[misc]


def test_numbers_agree(watched: Watched) -> None:
    """Every process of a server tells the same, and the queue is told by the server alone."""
    for name, count in (("queue", 1), ("cache", 1), ("verifier", 2)):
        up = partial(watched.prometheus.query, f"rewardstack_{name}_up == 1")
        eventually(lambda up=up, count=count: len(up()) == count, partial(str, name))  # type: ignore[misc]


def ask_judge(vllm: VllmServer) -> None:
    """A prompt whose beginning is always the same."""
    beginning = "You judge answers. " * 40
    messages = [{"role": "user", "content": f"{beginning}{time.monotonic()}"}]
    body = {"model": vllm.model.name, "messages": messages, "max_tokens": 8}
    requests.post(f"{vllm.url}/v1/chat/completions", json=body, timeout=60).raise_for_status()


def test_judge_panels(vllm: VllmServer, watch: Watch) -> None:
    """Under load each query about the judge has an answer of a real vLLM."""
    prometheus = watch(judge=vllm.url)
    with meanwhile(lambda: ask_judge(vllm)):
        grown = "sum(increase(vllm:request_success_total[60s])) > 0"
        eventually(lambda: bool(prometheus.query(grown)), lambda: "the load does not show")
        for panel in JUDGE.panels:
            check(prometheus, panel)
    assert {name for name in names_asked() if name.startswith("vllm:")} <= prometheus.names()


def test_embedding_panels(needs_model: None, watch: Watch) -> None:
    """Under load each query about the embedding server has an answer of one that speaks as TEI does."""
    if (python := models_python()) is None:
        pytest.skip("sentence-transformers is not installed: make up, or set MODELS_DIR to where it is")
    with embedding_server(python) as server:
        prometheus = watch(embedding=server.url)
        body = {"inputs": ["one", "two"]}
        with meanwhile(lambda: requests.post(f"{server.url}/embed", json=body, timeout=60)):
            grown = "sum(increase(te_embed_count[60s])) > 0"
            eventually(lambda: bool(prometheus.query(grown)), lambda: "the load does not show")
            for panel in EMBEDDING.panels:
                check(prometheus, panel)
    assert {name for name in names_asked() if name.startswith("te_")} <= prometheus.names()


def names_asked() -> set[str]:
    """Names of metrics in all panels and alerts."""
    expressions = [query for _, panel in PANELS for query in panel.queries.values()]
    expressions += [alert["expr"] for alert in ALERTS.values()]
    return {name for expression in expressions for name in NAME.findall(expression)}
