"""Which way `make up` starts the stack, and which way the other commands find it."""

from __future__ import annotations

import pytest

from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir, Running, boot_id
from services.stack.settings import Settings, load
from services.up import deployment
from services.up.compose import engine
from services.up.compose.engine import Engine
from services.up.compose.project import ComposeRecord
from services.up.compose.up import plan


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """An empty run directory."""
    made = RunDir(str(tmp_path_factory.mktemp("run")))
    made.make()
    return made


def asked(stack: str = "") -> Settings:
    """The shipped settings with this STACK."""
    return load(ROOT, {"STACK": stack})


def native() -> Running:
    """A native stack."""
    return Running(1, boot=boot_id(), gateway="", host="", ports={}, services=["cache"])


def answering(monkeypatch: pytest.MonkeyPatch, answers: bool) -> None:
    """Make the engine of this machine answer, or not."""
    found = (Engine("docker", gpus=False), "") if answers else (None, "docker is not installed")
    monkeypatch.setattr(engine, "find", lambda: found)


@pytest.mark.parametrize(
    ("stack", "engine_answers", "expected"),
    [("", True, "compose"), ("", False, "native"), ("native", True, "native"), ("compose", True, "compose")],
)
def test_first_start(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, stack: str, engine_answers: bool, expected: str
) -> None:
    """Containers where an engine answers, else local processes; STACK insists."""
    answering(monkeypatch, engine_answers)
    assert deployment.choose(asked(stack), run)[0] == expected


@pytest.mark.parametrize(
    ("stack", "engine_answers", "reason"),
    [
        ("", False, "docker is not installed"),
        ("", True, "a container engine answers"),
        ("native", True, "STACK=native"),
    ],
)
def test_says_why(run: RunDir, monkeypatch: pytest.MonkeyPatch, stack: str, engine_answers: bool, reason: str) -> None:
    """It says why it chose what it did."""
    answering(monkeypatch, engine_answers)
    assert reason in deployment.choose(asked(stack), run)[1]


def test_no_engine(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """STACK=compose without an engine is an error that says why, and the way out."""
    answering(monkeypatch, answers=False)
    with pytest.raises(StackError, match=r"no container engine: docker is not installed — .*STACK=native"):
        plan(asked("compose"), run, "STACK=compose")


@pytest.mark.parametrize("way", ["compose", "native"])
def test_what_runs_stays(run: RunDir, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """A running stack keeps its deployment even if the engine stops answering; STACK cannot change it meanwhile."""
    answering(monkeypatch, answers=way == "native")
    if way == "native":
        run.save(native())
    else:
        ComposeRecord("rewardstack", ["rules"]).save(run)
    assert deployment.running(run) == deployment.choose(asked(), run)[0] == way
    other = {"compose": "native", "native": "compose"}[way]
    with pytest.raises(StackError, match=f"STACK={other}: the stack is already running with STACK={way}"):
        deployment.choose(asked(other), run)


def test_stopped(run: RunDir) -> None:
    """A stack that was stopped runs no way, and its project is remembered for its volumes."""
    ComposeRecord("mine", ["rules"], up=False).save(run)
    assert deployment.running(run) == ""
    assert (last := ComposeRecord.load(run)) and last.project == "mine"
