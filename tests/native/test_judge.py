"""A judge in the native stack that is changed, fails and comes back; a stub stands in vLLM's place."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.models.environment import Models, requirements_digest
from services.stack.rundir import RunDir
from services.up.native.supervisor import Supervisor
from tests.native.test_stack import SERVICES, pids, statuses, up, working_in
from tests.native.tree import ROOT, Tree

pytestmark = pytest.mark.usefixtures("needs_stack")

STUB = ROOT / "tests/judge_launcher/stub"
KEY = "the-judges-own-key"
PYTHON = f"""#!/bin/sh
export PYTHONPATH={STUB} STUB_VLLM="$(cat "$(dirname "$0")/mode")" STUB_SECONDS="$(dirname "$0")/seconds"
exec {sys.executable} "$@"
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    """A running stack with a stub for a judge, and a key for it."""
    tree = Tree(tmp_path_factory.mktemp("judge") / "tree")
    add_stub(tree)
    try:
        assert {status for status, _ in statuses(up(tree))} == {"ok"}
        yield tree
    finally:
        tree.run("down")


def add_stub(tree: Tree) -> None:
    """Give a stack a stub for a judge."""
    models = Models(tree.path / "models")
    (models.venv / "bin").mkdir(parents=True)
    (models.venv / f".installed-cpu-{requirements_digest()}").touch()
    Path(models.python).write_text(PYTHON)
    Path(models.python).chmod(0o755)
    tree.environment |= {"JUDGE": "on", "JUDGE_MODEL": str(models.folder), "MODELS_DIR": str(models.folder)}
    tree.environment |= {"LLM_JUDGE_SERVER_API_KEY": KEY, "CUDA_VISIBLE_DEVICES": ""}
    take(tree, 0)
    behave(tree, "well")


def behave(stack: Tree, mode: str) -> None:
    """How the stub does from its next start on."""
    (stack.path / "models/venv/bin/mode").write_text(mode)


def take(stack: Tree, seconds: float) -> None:
    """How long a verdict of the stub takes from now on."""
    (stack.path / "models/venv/bin/seconds").write_text(str(seconds))


def told(stack: Tree, judge: str = "") -> dict[str, Any]:
    """What a replica tells of itself: the default judge's, or one below the path of another."""
    url = f"http://127.0.0.1:{stack.environment['JUDGE_PORT']}{judge}/v1/models"
    with urllib.request.urlopen(url, timeout=60) as reply:
        return dict(json.loads(reply.read()))


def score(stack: Tree, source: str) -> tuple[str, float]:
    """Status and value of a sample that the reward server scores by a route."""
    item = {"data_source": source, "solution_str": "Four.", "ground_truth": "4", "extra_info": {"question": "2 + 2?"}}
    request = urllib.request.Request(
        f"{stack.url}/v1/score", json.dumps({"items": [item]}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        [scored] = json.loads(reply.read())["scores"]
    return scored["status"], scored["value"]


class Load:
    """Scores new samples one after the other while it is entered; `failed` holds what was not `ok`."""

    def __init__(self, stack: Tree) -> None:
        self.url, self.scored, self.failed = f"{stack.url}/v1/score", 0, list[str]()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._score, args=(number,)) for number in range(2)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _score(self, thread: int) -> None:
        number = 0
        while not self._over.wait(0.005):
            number += 2
            text = f"#### {number + thread}"
            body = json.dumps({"items": [{"data_source": "gsm8k", "solution_str": text, "ground_truth": text[5:]}]})
            request = urllib.request.Request(self.url, body.encode(), {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as reply:
                    [score] = json.loads(reply.read())["scores"]
                if (score["status"], score["value"]) != ("ok", 1.0):
                    self.failed.append(str(score))
            except OSError as error:
                self.failed.append(str(error))
            self.scored += 1


@pytest.mark.nightly
def test_changed_under_load(stack: Tree) -> None:
    """With other flags and one more replica no reward request fails, and all but the judge keep their processes."""
    up(stack)
    before = pids(stack, (*SERVICES, "judge"))
    with Load(stack) as load:
        said = up(stack, JUDGE_VLLM_ARGS="--seed 7", JUDGE_REPLICAS="2", JUDGE_BALANCING="affinity")
    after = pids(stack, (*SERVICES, "judge"))
    assert (load.failed, load.scored > 0) == ([], True)
    assert [name for name in before if after[name] != before[name]] == ["judge"]
    assert "restarting judge (changed: its command)" in said and "starting judge-2" in said
    replies = [told(stack) for _ in range(8)]
    assert len({reply["pid"] for reply in replies}) == 2
    assert {reply["arguments"][-1] for reply in replies} == {"7"}


@pytest.mark.nightly
def test_key(stack: Tree) -> None:
    """The judge has its key, which stands on no command line; a new one restarts it and what asks it."""
    up(stack, LLM_JUDGE_SERVER_API_KEY="another-judges-key")
    before = pids(stack, (*SERVICES, "judge"))
    said = up(stack)
    after = pids(stack, (*SERVICES, "judge"))
    assert sorted(name for name in before if after[name] != before[name]) == ["judge", "rules", "worker"]
    assert told(stack)["environment"]["VLLM_API_KEY"] == KEY
    assert KEY not in said + "".join(str(process.command) for process in working_in(stack))


@pytest.mark.nightly
def test_named_judges(stack: Tree) -> None:
    """Judges of a routes file are started beside the default one, and what reward requests name is asked of them.

    One that goes from the file is stopped; all others keep their processes.
    """
    up(stack)
    names = (*SERVICES, "judge", "judge.small", "judge.small.2", "judge.large")
    before = pids(stack, names)
    models = {name: stack.path / "models" / name for name in ("small", "large")}
    for folder in models.values():
        folder.mkdir()
    tables = {name: f'[judges.{name}]\nmodel = "{folder}"\n' for name, folder in models.items()}
    file = stack.path / "judges.toml"
    file.write_text(tables["large"] + tables["small"] + "replicas = 2\n")
    plan = stack.run("plan", REWARDSTACK_ROUTES=str(file)).stdout
    assert [f"{name} " in plan for name in ("judge.small x2", "judge.large")] == [True, True]
    said = up(stack, REWARDSTACK_ROUTES=str(file))
    after = pids(stack, names)
    assert "starting judge.small.2" in said and sorted(after) == sorted(names)
    assert [name for name in names if before.get(name) == after[name]] == ["cache", "queue", "gateway", "judge"]
    assert len({told(stack, "/judges/small")["pid"] for _ in range(8)}) == 2
    assert [told(stack, f"/judges/{name}")["arguments"][1] for name in models] == [str(one) for one in models.values()]
    assert score(stack, "small") == ("ok", 0.5)
    assert "judge.small.2.log <==" in stack.run("logs", "--service", "judge.small.2").stdout
    file.write_text(tables["small"] + "replicas = 2\n")
    assert "judge.large stopped" in up(stack, REWARDSTACK_ROUTES=str(file))
    last = pids(stack, names)
    assert [last.get(name) == after[name] for name in names[5:]] == [True, True, True, False]


@pytest.mark.nightly
def test_never_healthy(stack: Tree) -> None:
    """A judge that is `auto` and dies is left out with its cause and a remedy and started no more; the rest is up."""
    behave(stack, "die")
    said = up(stack, JUDGE="auto", JUDGE_VLLM_ARGS="--seed 8")
    ended = "exited during startup: RuntimeError: the stub is out of memory"
    assert f"no judge: {ended}" in said and "JUDGE=off leaves the judge out" in said
    assert "export LLM_JUDGE_SERVER_URL" not in said
    assert sorted(pids(stack, (*SERVICES, "judge"))) == sorted(SERVICES)
    assert [process for process in working_in(stack) if "vllm" in " ".join(process.command)] == []
    behave(stack, "well")
    assert {status for status, _ in statuses(up(stack))} == {"ok"}
    assert "judge" in pids(stack, ("judge",))


@pytest.mark.nightly
def test_never_healthy_and_asked_for(stack: Tree) -> None:
    """Where it is `on`, `make up` fails, and names it; none of its replicas is started any more."""
    behave(stack, "die")
    result = stack.run("up", JUDGE_VLLM_ARGS="--seed 9", JUDGE_REPLICAS="2")
    assert result.returncode == 1
    assert re.search(r"ERROR: judge(-2)?: exited during startup: RuntimeError", result.stdout), result.stdout
    states = {state.name: state.state for state in Supervisor(RunDir(str(stack.path / ".run"))).states()}
    assert (states["judge"], states["judge-2"]) == ("STOPPED", "STOPPED")
    behave(stack, "well")


@pytest.mark.nightly
def test_interrupted_while_it_dies(stack: Tree) -> None:
    """A judge that dies since a `make up` that was interrupted was never well: the next one leaves it out."""
    behave(stack, "die")
    with stack.start("up", JUDGE="auto", JUDGE_VLLM_ARGS="--seed 10", UP_TIMEOUT="60") as process:
        assert process.stdout
        next(line for line in process.stdout if "starting judge" in line)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    said = up(stack, JUDGE="auto", JUDGE_VLLM_ARGS="--seed 10")
    behave(stack, "well")
    assert "no judge: exited during startup" in said
    assert "judge" not in pids(stack, (*SERVICES, "judge"))
