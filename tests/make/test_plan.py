"""`make plan`: what `make up` would do and why, without doing it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from services.models import machine
from services.models.machine import GIB
from services.stack.rundir import ROOT, RunDir
from services.stack.settings import load
from services.up import up
from services.up.plan import Plan
from tests.native.tree import Tree

ASKED = {"WORKERS": "3", "EMBEDDING_MODEL": "org/model", "JUDGE": "auto"}


@pytest.fixture(autouse=True)
def a_small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has memory for the embedding server, and not for a judge."""
    monkeypatch.setattr(machine, "free_memory", lambda: 3 * GIB)
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "rewardstack-planned")


def planned(folder: Path, way: str, **values: str) -> Plan:
    """The plan for a stack with these settings, which nobody carries out."""
    return up.PLAN[way](load(ROOT, values), RunDir(str(folder / "run")), "it was asked for")


def require_right(plan: Plan) -> None:
    """It holds every service with what it runs, how often, and what memory a model takes; and why one is left out."""
    services = {service.name: service for service in plan.services}
    assert services.keys() == {"cache", "embedding", "gateway", "queue", "rules", "worker"}
    assert services["worker"].copies == 3
    assert services["embedding"].memory == "about 1.5 GiB" and services["embedding"].runs.endswith("org/model")
    assert plan.left_out["judge"].startswith("it needs 4.0 GiB of memory and 3.0 are free")
    assert not plan.running and not plan.held


def test_native(tmp_path: Path) -> None:
    """The plan of local processes is whole."""
    require_right(planned(tmp_path, "native", **ASKED))


@pytest.mark.usefixtures("needs_engine")
def test_compose(tmp_path: Path) -> None:
    """So is that of containers, which says of each image whether it is here."""
    plan = planned(tmp_path, "compose", **ASKED, REDIS_IMAGE="nobody/has:this")
    require_right(plan)
    assert {service.name for service in plan.services if "(to be fetched)" in service.runs} >= {"cache", "queue"}


def test_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints the way and the reason, a line a service, the ports by their settings, and what is left out."""
    planned(tmp_path, "native", REWARD_PORT="7000", BIND_ADDRESS="0.0.0.0", MONITORING="on").show()
    said = capsys.readouterr().out
    assert "deployment: local processes (it was asked for)\n" in said
    assert "no judge: it needs 4.0 GiB" in said and "no monitoring: " in said
    assert "REWARD_PORT=0.0.0.0:7000" in said
    assert "to be started" in said and "free memory: 3.0 GiB" in said


@pytest.mark.usefixtures("needs_process")
def test_nothing_is_done(tmp_path: Path) -> None:
    """`make plan` on a clean tree writes nothing and starts nothing."""
    tree = Tree(tmp_path / "tree")
    before = written(tree.path)
    result = tree.run("plan")
    assert (result.returncode, "rules " in result.stdout) == (0, True), result.stdout
    assert written(tree.path) == before
    assert tree.run("status").stdout.startswith("ERROR: nothing runs here")


def written(path: Path) -> set[Path]:
    """The files and folders of a tree, but for what Python keeps of its modules."""
    return {file for file in path.rglob("*") if "__pycache__" not in file.parts}


@pytest.mark.usefixtures("needs_process")
def test_what_keeps_it_from_being_done(tmp_path: Path) -> None:
    """A port that is taken makes `make plan` fail as it would `make up`, once it has printed the plan."""
    tree = Tree(tmp_path / "tree")
    tree.environment["CACHE_PORT"] = tree.environment["REWARD_PORT"]
    result = tree.run("plan")
    assert result.returncode == 1
    assert "REWARD_PORT and CACHE_PORT are both" in result.stdout and "free memory: " in result.stdout


def test_target(needs_process: None) -> None:
    """`make plan` is a target of the Makefile."""
    done = subprocess.run(["make", "--dry-run", "plan"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "services.up plan" in done.stdout
