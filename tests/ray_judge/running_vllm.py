"""The judge in Ray with real vLLM engines on the processor, as a user starts it and a trainer asks it.

`make ray` runs this file after `running_fake.py`; it takes some minutes, and 9 GiB of memory with the server beside it.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rewardstack
from rewardstack import Request
from rewardstack.ray_judge.guard import descendants
from services.judge.model import SMALL
from tests.ray_judge.cluster import JUDGE, environment, kill, processes_that_name, statuses
from tests.support import vllm
from tests.support.snippets import assert_shown, block
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.usefixtures("needs_process"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]

PAGE, MODEL = "docs/ray.md", "Qwen/Qwen2.5-1.5B-Instruct"
DIFFERS = r"(?<=RAY_ADDRESS=)\S+"
"""The address, on each machine."""
SAMPLES = 16
EXPORT = re.compile(r"export (\w+)=(\S+)")
RESTART_SECONDS = 240.0


class Started:
    """The judge that the command line has started.

    Args:
        process: of the command.
        said: what it has printed, with the variables that trainers need.
        home: that it was given.
    """

    def __init__(self, process: subprocess.Popen[str], said: str, home: Path) -> None:
        self.process = process
        self.said = said
        self.variables = variables = dict(EXPORT.findall(said))
        self.home = home
        self.folder = Path(variables["RAY_AUTH_TOKEN_PATH"]).parent


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """Two engines, which this process finds by the variables that are printed."""
    if lacking := vllm.missing():
        pytest.fail(lacking)
    home = tmp_path_factory.mktemp("home")
    options = ["--max-model-len", "2048", "--dtype", vllm.DTYPE, "--served-name", SMALL]
    typed = shlex.split(block(PAGE, "bash", "python -m").replace(MODEL, str(vllm.models().small_judge)))
    command = [sys.executable, *typed[1:], *options]
    own = environment({"VLLM_CPU_KVCACHE_SPACE": vllm.CACHE_GIB, "OMP_NUM_THREADS": "1"}, home)
    process = subprocess.Popen(command, env=own, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = ""
        while "LLM_JUDGE_RAY_ACTOR" not in said and (line := process.stdout.readline()):
            said += line
        assert "LLM_JUDGE_RAY_ACTOR" in said, f"it has ended; what it said: {said}"
        yield Started(process, said, home)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture
def in_ray(started: Started, monkeypatch: pytest.MonkeyPatch) -> Started:
    """The same, to which this process's variables point."""
    for name, text in started.variables.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("JUDGE_REVISION", "ray")
    monkeypatch.setenv("LLM_JUDGE_SERVER_TIMEOUT", "400")
    return started


def handle(started: Started) -> Any:
    """Of the service."""
    import ray

    namespace, _, name = started.variables["LLM_JUDGE_RAY_ACTOR"].partition("/")
    return ray.get_actor(name, namespace=namespace)


def samples(count: int, **extra: Any) -> list[Request]:
    """Samples that are all different, judged without chance."""
    given = {"temperature": 0, "max_new_tokens": 48, **extra}
    return [
        Request(JUDGE, f"6 times {one} is {6 * one}.", f"{6 * one}", {"problem": f"What is 6 times {one}?", **given})
        for one in range(count)
    ]


def test_page(started: Started) -> None:
    """What is typed prints what docs/ray.md shows."""
    assert_shown(block(PAGE, "text", "starting"), started.said.replace(str(vllm.models().small_judge), MODEL), DIFFERS)


@pytest.mark.parametrize("extra", [{}, {"verdict": "logprob", "label_mass_floor": 0}], ids=["words", "logprob"])
def test_equal_to_http(
    in_ray: Started, server: vllm.VllmServer, monkeypatch: pytest.MonkeyPatch, extra: dict[str, Any]
) -> None:
    """At temperature 0 scores are those of the same model over HTTP: in words, and by probabilities of labels."""
    scores = rewardstack.score(samples(SAMPLES, **extra))
    monkeypatch.delenv("LLM_JUDGE_RAY_ACTOR")
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", server.url)
    monkeypatch.setenv("JUDGE_REVISION", "http")
    over_http = rewardstack.score(samples(SAMPLES, **extra))
    assert not any(one.cached for one in (*scores, *over_http))
    told = [(one.status, one.value, one.label_mass) for one in scores]
    print(told)
    assert [one.status for one in scores] == [one.status for one in over_http]
    assert [one.value for one in scores] == pytest.approx([one.value for one in over_http], abs=1e-4)
    if extra:
        masses = [[one.label_mass for one in found] for found in (scores, over_http)]
        assert masses[0] == pytest.approx(masses[1], abs=1e-4)
    else:
        assert statuses(scores) == {"ok": SAMPLES}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[vllm.VllmServer]:
    """The same model over HTTP."""
    with vllm.running(tmp_path / "log", "--max-model-len", "2048", OMP_NUM_THREADS="1") as running:
        yield running


def test_lost_engine(in_ray: Started) -> None:
    """An engine that is killed in mid-batch loses no sample; it restarts, and nothing of the old one stays."""
    import ray

    assert statuses(rewardstack.score(samples(2)))
    service = handle(in_ray)
    first, second = ray.get(service.ready.remote(RESTART_SECONDS))
    old = [first, *descendants(first)]
    scores: list[rewardstack.Score] = []
    batch = threading.Thread(target=lambda: scores.extend(rewardstack.score(samples(2 * SAMPLES, max_new_tokens=32))))
    batch.start()
    seen: list[int] = []

    def is_busy() -> bool:
        seen.append(ray.get(service.state.remote())[0]["in_flight"])
        return seen[-1] > 0

    eventually(is_busy)
    kill(first)
    batch.join()
    print(f"{seen[-1]} were in flight at the engine that was killed; {statuses(scores)}")
    assert len(scores) == 2 * SAMPLES
    assert statuses(scores) == {"ok": 2 * SAMPLES}, {one.reason for one in scores}
    eventually(lambda: not any(Path(f"/proc/{one}").exists() for one in old), lambda: f"left: {old}", seconds=30)
    eventually(lambda: not any(one["lost"] for one in ray.get(service.state.remote())), seconds=RESTART_SECONDS)
    after = ray.get(service.ready.remote(RESTART_SECONDS))
    assert after[0] != first and after[1] == second


def test_ended(in_ray: Started) -> None:
    """Ended by SIGTERM, it leaves no process, no folder, and nothing of Ray's in $HOME."""
    import ray

    processes = [one for engine in ray.get(handle(in_ray).ready.remote(60)) for one in (engine, *descendants(engine))]
    ray.shutdown()
    in_ray.process.send_signal(signal.SIGTERM)
    assert in_ray.process.wait(60) == 0
    assert not in_ray.folder.exists()
    eventually(lambda: not processes_that_name(str(in_ray.folder)), seconds=30)
    eventually(lambda: not any(Path(f"/proc/{one}").exists() for one in processes), seconds=30)
    assert not (in_ray.home / ".ray").exists()
    assert not any("RAY" in name for name in os.listdir(in_ray.home))
