"""The judge in a real Ray cluster, with fake engines: what is lost, where engines are placed, what is left.

`make ray` runs this file, which `make test` does not collect: it needs Ray.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rewardstack
from rewardstack.errors import ConfigError, UnreachableError
from rewardstack.ray_judge import start
from rewardstack.ray_judge.service import NAME
from rewardstack.ray_judge.start import start_reward_service, stop_reward_service
from tests.ray_judge.cluster import PLACE_SECONDS, environment, kill, logical, processes_that_name, samples, statuses
from tests.ray_judge.fake_engine import RESTART_SECONDS, SLOW, SLOW_SECONDS, FakeEngine, TensorParallelEngine, reward_of
from tests.support.snippets import block
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.usefixtures("needs_process"),
    pytest.mark.filterwarnings("ignore"),
]

MESSAGES = [{"role": "user", "content": "Is it 42?"}]
GPUS = 4
PAGE = "docs/ray.md"
FAKE_ENGINES = """
import functools, sys
import rewardstack.ray_judge as judges
from tests.ray_judge.fake_engine import FakeEngine
judges.start_reward_service = functools.partial(judges.start_reward_service, engine=FakeEngine)
"""
"""Before a script of the page: its engines need no model."""
TRAINER = """
import json, rewardstack
from tests.ray_judge.cluster import samples
print(json.dumps([one.value for one in rewardstack.score(samples(8))]))
"""
SCRIPT = Path(__file__).with_name("training_script.py")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which nothing may appear."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[dict[str, str]]:
    """The variables by which other processes find this one's cluster of four logical GPUs."""
    with logical(home, processors=16, gpus=GPUS) as variables:
        yield variables


@contextmanager
def service(count: int = 2, **given: Any) -> Iterator[Any]:
    """The handle of a service that ends with the block."""
    given = {"engine": FakeEngine, "seconds": 60.0, **given}
    handle = start_reward_service("fake", count, **given)
    try:
        yield handle
    finally:
        stop_reward_service(handle)


def got(reference: Any, seconds: float = 60) -> Any:
    """What comes of a call."""
    import ray

    return ray.get(reference, timeout=seconds)


@pytest.fixture
def own_actor(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a test's own actor, to which LLM_JUDGE_RAY_ACTOR points."""
    name = f"judge.{request.node.originalname}"
    monkeypatch.setenv("LLM_JUDGE_RAY_ACTOR", name)
    monkeypatch.setenv("JUDGE_REVISION", name)
    return name


def test_calls(cluster: dict[str, str]) -> None:
    """The service gives the text of one reply, of several in order, and says what it serves."""
    with service() as judge:
        said = got(judge.score.remote(MESSAGES, temperature=0.0, max_tokens=16))
        assert said == f"REWARD: {reward_of('Is it 42?'):.3f}"
        chats = [[{"role": "user", "content": f"Is it {one}?"}] for one in range(20)]
        replies = got(judge.score_batch.remote(chats))
        assert replies == [f"REWARD: {reward_of(f'Is it {one}?'):.3f}" for one in range(20)]
        assert got(judge.models.remote())["data"][0]["id"] == "fake"


def test_client_of_another_job(cluster: dict[str, str], home: Path) -> None:
    """A process of another job and namespace finds it by its name, and scores what this one would."""
    variables = {**cluster, "LLM_JUDGE_RAY_ACTOR": f"another/{NAME}"}
    with service(namespace="another"):
        done = subprocess.run(
            [sys.executable, "-c", TRAINER],
            env=environment(variables, home),
            capture_output=True,
            text=True,
            check=True,
        )
        values = json.loads(done.stdout)
    assert len(values) == 8 and all(0 <= value < 1 for value in values), done.stderr
    assert "Traceback" not in done.stderr


def in_mid_batch(count: int, meanwhile: Callable[[], None], text: str = SLOW) -> list[rewardstack.Score]:
    """The scores of samples that take `SLOW_SECONDS`, while something happens."""
    scores: list[rewardstack.Score] = []
    batch = threading.Thread(target=lambda: scores.extend(rewardstack.score(samples(count, text))))
    batch.start()
    time.sleep(SLOW_SECONDS / 3)
    meanwhile()
    batch.join()
    return scores


def test_lost_engine(cluster: dict[str, str], own_actor: str) -> None:
    """An engine that is killed in mid-batch loses no sample: the other one is asked, and the engine restarts."""
    with service(name=own_actor) as judge:
        first, second = got(judge.ready.remote(60))
        scores = in_mid_batch(64, lambda: kill(first))
        assert statuses(scores) == {"ok": 64}
        eventually(lambda: all(not one["lost"] for one in got(judge.state.remote())), seconds=60)
        after = got(judge.ready.remote(60))
        assert after[0] != first and after[1] == second
        assert statuses(rewardstack.score(samples(16))) == {"ok": 16}


def test_no_engine_left(cluster: dict[str, str], own_actor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every engine is lost, samples fail within their time with that reason, none is a 0 that counts."""
    with service(name=own_actor) as judge:
        processes = got(judge.ready.remote(60))
        assert statuses(rewardstack.score(samples(4))) == {"ok": 4}
        monkeypatch.setenv("LLM_JUDGE_SERVER_TIMEOUT", str(RESTART_SECONDS / 3))  # expires: the engines restart
        for process in processes:
            kill(process)
        scores = rewardstack.score(samples(16, "Now it is"))
        assert statuses(scores) == {"failed": 16}
        assert all("no engine is up" in score.reason for score in scores), scores[0].reason
        monkeypatch.delenv("LLM_JUDGE_SERVER_TIMEOUT")
        eventually(lambda: all(not one["lost"] for one in got(judge.state.remote())), seconds=60)
        # After an outage, a single sample is sent first; the others fail at once until it is scored.
        eventually(lambda: statuses(rewardstack.score(samples(16, "Now it is"))) == {"ok": 16}, seconds=60)


def test_lost_service(cluster: dict[str, str], own_actor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the actor itself is gone, samples fail with its name; another one of that name is found."""
    with service(name=own_actor):
        assert statuses(rewardstack.score(samples(4))) == {"ok": 4}
    monkeypatch.setenv("LLM_JUDGE_SERVER_TIMEOUT", "2")  # expires: nobody is there
    scores = rewardstack.score(samples(8, "Then it is"))
    assert statuses(scores) == {"failed": 8}
    assert all(own_actor in score.reason for score in scores), scores[0].reason
    monkeypatch.delenv("LLM_JUDGE_SERVER_TIMEOUT")
    with service(name=own_actor):
        # A health probe has to find the new one.
        eventually(lambda: statuses(rewardstack.score(samples(8, "Then it is"))) == {"ok": 8})


def test_tensor_parallel(cluster: dict[str, str]) -> None:
    """With a tensor parallelism of 2 each engine has two workers on one node, each with a GPU of its own."""
    with service(engine=TensorParallelEngine, tensor_parallel_size=2) as judge:
        replies = [json.loads(got(judge.score.remote([{"role": "user", "content": str(one)}]))) for one in range(12)]
    engines = {one["process"]: one for one in replies}
    gpus = [gpu for one in engines.values() for worker in one["workers"] for gpu in worker["gpus"]]
    assert len(gpus) == len(set(gpus)) == 2 * len(engines)
    for one in engines.values():
        assert [len(worker["gpus"]) for worker in one["workers"]] == [1, 1]
        assert [worker["group"] for worker in one["workers"]] == [one["group"]] * 2
        assert len({worker["node"] for worker in one["workers"]}) == 1
        assert one["gpus"] == [] and one["indices"] == "0,1" and one["per_worker"] == "1"


def test_no_place(cluster: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines for which the cluster has no GPUs are an error that says what is lacking, and leave nothing behind."""
    monkeypatch.setattr(start, "PLACEMENT_TIMEOUT", PLACE_SECONDS)
    with pytest.raises(ConfigError, match=r"engine \d: no node of the Ray cluster has 2 times 1 GPU and 1 CPU free"):
        start_reward_service("fake", 3, engine=TensorParallelEngine, tensor_parallel_size=2)
    with service(count=GPUS) as judge:
        assert len(got(judge.ready.remote(60))) == GPUS


def test_broken_model(cluster: dict[str, str]) -> None:
    """An engine that cannot start is an error with its own words."""
    with pytest.raises(UnreachableError, match="there is no such model"):
        start_reward_service("broken", 1, engine=FakeEngine)


def test_name_taken(cluster: dict[str, str]) -> None:
    """A second service of the same name is refused by name, and the first stays."""
    with service(count=1) as judge:
        with pytest.raises(ConfigError, match=f"{NAME}.*already"):
            start_reward_service("fake", 1, engine=FakeEngine)
        assert got(judge.score.remote(MESSAGES)).startswith("REWARD")


def test_joining(cluster: dict[str, str], home: Path) -> None:
    """A script within a cluster that is there leaves that as it was: no actor of it stays, and no place is taken."""
    import ray

    done = run_script(cluster, home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["REWARD:", f"{reward_of('Is it 42?'):.3f}"]
    with pytest.raises(ValueError):
        ray.get_actor(NAME, namespace="rewardstack")
    eventually(lambda: ray.available_resources().get("GPU") == GPUS, seconds=30)
    assert list(home.rglob("*")) == []


def test_nothing_is_left(tmp_path: Path) -> None:
    """A script with a cluster of its own leaves no process, no folder, and nothing in $HOME."""
    done = run_script({}, tmp_path)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.split()[2])
    assert folder.name.startswith("ray-judge-") and not folder.exists()
    eventually(lambda: not processes_that_name(str(folder)), seconds=30)
    assert list(tmp_path.rglob("*")) == []


def test_page(cluster: dict[str, str], home: Path) -> None:
    """The training script and the trainer of docs/ray.md do what they say, one while the other runs."""
    script, trainer = block(PAGE, "python", "import ray"), block(PAGE, "python", "from rewardstack import")
    [(name, actor)] = re.findall(r"export (\w+)=(\S+)", block(PAGE, "bash", "export"))
    beside = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {trainer + 'print(score)'!r}], check=True)"
    program = "\n".join((FAKE_ENGINES, script, "sys.stdout.flush()", beside))
    variables = environment({**cluster, name: actor}, home)
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    reply, score = done.stdout.splitlines()
    assert reply.startswith("REWARD: ") and 0 <= float(score) < 1


def test_check(cluster: dict[str, str], home: Path) -> None:
    """`rewardstack check` tries the actor as it tries a server."""
    variables = environment({**cluster, "LLM_JUDGE_RAY_ACTOR": NAME, "COLUMNS": "200"}, home)
    with service(count=1):
        done = subprocess.run(
            [sys.executable, "-m", "rewardstack_cli", "check"],
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert f"ray://rewardstack/{NAME}" in done.stdout and "verdict 0." in done.stdout, done.stdout + done.stderr


def run_script(variables: dict[str, str], home: Path) -> subprocess.CompletedProcess[str]:
    """A training script that starts the service, asks it, and ends."""
    command = [sys.executable, str(SCRIPT), variables.get("RAY_ADDRESS", "")]
    given = {**environment(variables, home), "PYTHONPATH": os.environ["PYTHONPATH"]}
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=120)
