"""What the environment says to other programs, and programs that hang, keep no command from its work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.models import machine
from services.stack import settings
from services.stack.rundir import ROOT, RunDir
from services.up import deployment
from services.up.compose import engine
from tests.native.test_any_python import make
from tests.native.tree import Tree


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a program that hangs, the only one on PATH."""

    def made(name: str) -> None:
        path = tmp_path / "programs" / name
        path.parent.mkdir()
        path.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(3600)\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(path.parent))

    return made


@pytest.fixture
def fresh_nvidia_smi() -> Iterator[None]:
    """nvidia-smi is asked once a process: clear its cached answer before and after the test."""
    machine._query_nvidia_smi.cache_clear()
    yield
    machine._query_nvidia_smi.cache_clear()


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH"])
def test_of_another_python(needs_process: None, tmp_path: Path, name: str) -> None:
    """What a user's Python is told of its modules is not told to the stack's own."""
    tree, other = Tree(tmp_path / "tree"), tmp_path / "other"
    other.mkdir()
    (other / "argparse.py").write_text("raise RuntimeError('another module')\n")
    (other / "ipaddress.py").write_text("raise RuntimeError('another module')\n")
    tree.environment[name] = str(other)
    done = make(tree, "status")
    assert (done.returncode, done.stdout.startswith("ERROR: nothing runs here — make up\n")) == (2, True), done.stdout
    # What it finds wrong with this machine, such as too little memory, is not asked here.
    said = make(tree, "preflight").stdout
    assert [word for word in ("another module", "Traceback", "Fatal") if word in said] == [], said


@pytest.mark.usefixtures("needs_process", "fresh_nvidia_smi")
def test_a_driver_that_hangs(
    program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An nvidia-smi that does not answer, and cannot be ended, is said once, and its machine has no GPU."""
    program("nvidia-smi")
    held: list[subprocess.Popen[str]] = []
    monkeypatch.setattr(machine, "NVIDIA_SMI_SECONDS", 0.2)  # expires
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", lambda process: held.append(process))
        assert (machine.gpus(), machine.gpus()) == ([], [])
    assert [process.poll() for process in held] == [None]
    held[0].kill()
    held[0].communicate()
    assert capsys.readouterr().err.count("nvidia-smi does not answer in 0.2 s: no GPU is used\n") == 1


@pytest.mark.usefixtures("needs_process")
def test_an_engine_that_hangs(program: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A docker that does not answer is passed over, and the reason for local processes says so."""
    program("docker")
    monkeypatch.setattr(engine, "FIRST_ANSWER_SECONDS", 0.2)  # expires
    asked = settings.load(ROOT, {"RUN_DIR": str(tmp_path / "run")})
    assert deployment.choose(asked, RunDir(asked["RUN_DIR"])) == ("native", "docker info: no answer in 0.2 s")


def test_no_more_than_is_bearable() -> None:
    """A program that hangs is waited for 20 seconds at most."""
    assert max(machine.NVIDIA_SMI_SECONDS, engine.FIRST_ANSWER_SECONDS) <= 20


@pytest.mark.parametrize(
    ("named", "made", "warned"),
    [
        ("", False, False),
        (sys.executable, False, False),
        ("/nowhere/my python", False, True),
        ("/nowhere/my python", True, False),
    ],
)
def test_a_python_that_cannot_be_used(
    needs_process: None, tmp_path: Path, named: str, made: bool, warned: bool
) -> None:
    """One that PYTHON names and that `.venv` cannot be made with is said not to be taken, where one is to be made."""
    if made:
        (tmp_path / ".venv/bin").mkdir(parents=True)
        (tmp_path / ".venv/bin/pip").touch()
    command = ["sh", str(ROOT / "services/stack/find_python.sh")]
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHON": named}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    taken = named if named == sys.executable else f"{Path(sys.executable).parent}/python3"
    assert done.stdout == f"{taken}\n"
    assert ("warning: PYTHON: /nowhere/my python is not a Python" in done.stderr) == warned, done.stderr
