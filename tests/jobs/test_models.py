"""Jobs whose samples wait for a judge or an embedding server, or run programs, leave the workers to rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from rewardstack_rules.jobs.background import MODEL_CHUNKS
from tests.code.cases import sample as program
from tests.jobs.conftest import CHUNK_SIZE, Site, sample, site
from tests.support.jobs import Worker
from tests.support.silent_model import SilentModel, silent_model
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")


@pytest.fixture(scope="module")
def model() -> Iterator[SilentModel]:
    """A judge and embedding server that answers no sample."""
    with silent_model() as one:
        yield one


@pytest.fixture(scope="module")
def here(model: SilentModel, needs_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site whose judge and embedding server answer nothing, with one worker."""
    variables: dict[str, Any] = {}
    for name in ("LLM_JUDGE", "EMBEDDING"):
        variables |= {f"{name}_SERVER_URL": model.url, f"{name}_SERVER_TIMEOUT": 600}
    with site(tmp_path_factory.mktemp("models"), **variables) as one:
        one.add_worker()
        yield one


def waiting_samples(source: str = "llm_judge_remote", **extra: Any) -> list[dict[str, Any]]:
    """Two samples that wait for the model."""
    return [sample(at, data_source=source, extra_info={"problem": "6*7?", **extra}) for at in range(2)]


def cancel(site: Site, jobs: list[str], model: SilentModel) -> None:
    """Cancel jobs, and wait until the model is asked for none of them any more."""
    for job in jobs:
        requests.delete(f"{site.server.url}/jobs/{job}", timeout=60)
    eventually(lambda: not model.waiting())


def outcomes(worker: Worker, job: str) -> list[tuple[str, int]]:
    """What became of the chunks of a job, and how often each had begun."""
    lines = [json.loads(line) for line in worker.log.read_text().splitlines() if '"message": "chunk"' in line]
    return [(line["outcome"], line["attempts"]) for line in lines if line["job_id"] == job]


@pytest.mark.parametrize("source", ["llm_judge_remote", "embedding_remote"])
def test_rules_are_done_while_models_are_silent(here: Site, model: SilentModel, source: str) -> None:
    """Ten jobs that wait for a model keep the only worker from no job of rules; canceled, they are dropped."""
    jobs = [here.submit(*waiting_samples(source, timeout=80_000)) for _ in range(10)]
    eventually(model.waiting)

    state = here.end_of(here.submit(*map(sample, range(2 * CHUNK_SIZE))))

    assert state["statuses"]["ok"] == 2 * CHUNK_SIZE
    assert [here.state(job)["done"] for job in jobs] == [0] * len(jobs)
    cancel(here, jobs, model)
    assert here.end_of(here.submit(sample(2)))["statuses"]["ok"] == 1


@pytest.mark.nightly
def test_rules_are_done_while_programs_run(needs_redis: None, tmp_path: Path) -> None:
    """A job of programs that use their whole limit keeps the only worker from no job of rules."""
    endless = program("while True: pass", {"inputs": [""], "outputs": [""]}, time_limit=60)
    with site(tmp_path, CODE="on", CODE_PROCESSES=1, CODE_TIMEOUT=600) as here:
        here.add_worker()
        job = here.submit(endless, endless)
        eventually(lambda: here.state(job)["status"] == "running")

        state = here.end_of(here.submit(*map(sample, range(CHUNK_SIZE))))

        assert state["statuses"]["ok"] == CHUNK_SIZE
        assert here.state(job)["done"] == 0
        requests.delete(f"{here.server.url}/jobs/{job}", timeout=60)


def test_a_timeout_without_end_harms_its_sample_alone(here: Site) -> None:
    """A sample with a timeout that is none is unscored by name, and the rule in the same job is scored."""
    wrong = [1e308, 1e9, 10**400, -1, 0, "9", True]
    samples = [one for timeout in wrong for one in waiting_samples(timeout=timeout)[:1]]

    state = here.end_of(here.submit(sample(0), *samples))

    assert (state["statuses"]["ok"], state["statuses"]["unscored"]) == (1, len(wrong))


def test_a_stopped_worker_hands_back_what_waits(here: Site, model: SilentModel) -> None:
    """A worker that is told twice to stop leaves chunks that wait for models to another, as if not begun."""
    jobs = [here.submit(*waiting_samples(timeout=70_000)) for _ in range(MODEL_CHUNKS + 1)]
    eventually(model.waiting)
    first = here.workers[-1]

    first.process.terminate()
    eventually(lambda: has_ended_after_another_signal(first))
    here.add_worker()

    eventually(model.waiting)
    assert [outcomes(first, job) for job in jobs] == [[]] * len(jobs)
    rule = here.submit(sample(2))
    assert here.end_of(rule)["statuses"]["ok"] == 1
    cancel(here, jobs, model)
    eventually(lambda: any(outcomes(here.workers[-1], job) == [("dropped", 1)] for job in jobs))


def has_ended_after_another_signal(worker: Worker) -> bool:
    """Return whether a worker has ended; send it SIGTERM again where it has not."""
    if worker.process.poll() is None:
        worker.process.terminate()
    return worker.process.poll() is not None
