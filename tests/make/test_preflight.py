"""What `make up` looks at before anything is installed."""

from __future__ import annotations

import errno
import locale
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from services.models import environment, machine
from services.models.machine import GIB
from services.stack import packages, ports, rundir, space, venv
from services.stack.errors import StackError
from services.stack.rundir import ROOT, RunDir, Running, boot_id, require_safe_path
from services.stack.settings import SETTINGS
from services.up import command_line as commands
from services.up import preflight
from services.up.compose import engine

TAKEN = 7123
"""The port that another process has on the machine of `free`."""


@pytest.fixture
def free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that has what it takes for local processes without models; the run directory.

    Nothing of the machine on which the tests run is looked at: neither its ports, memory and disk nor its limits.
    """
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    values = {"STACK": "native", "JUDGE": "off", "EMBEDDING": "off", "RUN_DIR": str(tmp_path / "run")}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ports, "_refusal", lambda _, port: OSError(errno.EADDRINUSE, "") if port == TAKEN else None)
    monkeypatch.setattr(ports, "listener", lambda port: ports.Listener("another (pid 812)"))
    monkeypatch.setattr(packages, "missing_programs", list)
    monkeypatch.setattr(machine, "free_memory", lambda: 8 * GIB)
    monkeypatch.setattr(space, "free", lambda path: 100 * GIB)
    monkeypatch.setattr(resource, "getrlimit", lambda limit: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return tmp_path / "run"


def test_no_problems(free: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing is wrong nothing is said, and nothing is written."""
    preflight.check()
    assert capsys.readouterr().out == "" and not free.exists()


@pytest.mark.usefixtures("free")
def test_all_problems_in_one_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """One report names every problem, each with its remedy."""
    monkeypatch.setattr(packages, "missing_programs", lambda: ["nginx"])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preflight, "RUN_BYTES", 2**60)
    monkeypatch.setattr(venv, "disk_bytes", dict)
    monkeypatch.setattr(space, "free", lambda path: 5 * GIB)
    monkeypatch.setattr(environment, "unsupported_reason", lambda models: "vLLM needs a CPU with AVX2")
    monkeypatch.setenv("EMBEDDING", "on")
    monkeypatch.setenv("REWARD_PORT", str(TAKEN))
    with pytest.raises(StackError) as caught:
        preflight.check()
    said = f"ERROR: {caught.value}"
    problems = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR: ")]
    assert [problem.partition(" — ")[0].partition(":")[0] for problem in problems] == [
        f"{os.environ['RUN_DIR']} need {2**30:.1f} GiB of disk, and 5.0 are free",
        "missing packages",
        "REWARD_PORT",
        "EMBEDDING=on",
    ]
    assert said.count(" — ") == 4


@pytest.mark.usefixtures("free")
def test_little_memory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Memory that may not do is warned of."""
    monkeypatch.setattr(machine, "free_memory", lambda: GIB // 5)
    preflight.check()
    assert "warning: 0.2 GiB of memory are free, and the services need 0.5" in capsys.readouterr().out


def test_running(free: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack that runs has its ports, and is not asked for them."""
    run = RunDir(str(free))
    run.make()
    run.save(Running(1, boot=boot_id(), gateway="", host="", ports={}, services=["cache"]))
    monkeypatch.setenv("REWARD_PORT", str(TAKEN))
    preflight.check()


@pytest.mark.usefixtures("free")
@pytest.mark.parametrize("may_raise", [False, True])
def test_few_processes(monkeypatch: pytest.MonkeyPatch, may_raise: bool) -> None:
    """A limit that supervisord would not start under is named, unless this user may raise it."""

    def refused(limit: int, values: tuple[int, int]) -> None:
        if not may_raise:
            raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda limit: (100, 100 if limit == resource.RLIMIT_NPROC else -1))
    monkeypatch.setattr(resource, "setrlimit", refused)
    if may_raise:
        return preflight.check()
    with pytest.raises(StackError, match="^ulimit -Hu allows 100 processes and threads, and the services need 200 — "):
        preflight.check()


@pytest.mark.usefixtures("free")
def test_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers that were asked for, and cannot be had, are known before anything is installed."""
    monkeypatch.setenv("STACK", "compose")
    monkeypatch.setattr(engine, "find", lambda: (None, "docker is not installed"))
    with pytest.raises(StackError, match="no container engine: docker is not installed"):
        preflight.check()


@pytest.mark.usefixtures("free")
def test_with_python_alone() -> None:
    """It needs no package: it runs with an interpreter that has none, whatever it finds."""
    command = [sys.executable, "-S", "-m", "services.up", "preflight"]
    environment = {**os.environ, "PYTHONPATH": "client:services/rules"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode in (0, 1), "Traceback" in done.stderr) == (True, False), done.stderr


@pytest.mark.parametrize("folder", ["/proc/run", "/sys/run/rewards"])
def test_on_no_disk(free: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """A run directory where nothing can be made is refused as such, not for want of room."""
    monkeypatch.setenv("RUN_DIR", folder)
    with pytest.raises(StackError, match=r"^RUN_DIR: no file can be created in /\w+, which .* — name another .*$"):
        preflight.check()


def test_of_another(free: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One where this user may make nothing is named before anything is installed."""

    def refused(dir: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", f"{dir}/tmp4711")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with pytest.raises(StackError, match=f"^{free}: permission denied"):
        preflight.check()


def test_order(needs_process: None) -> None:
    """`make up` looks first, and installs then."""
    done = subprocess.run(["make", "--dry-run", "up"], cwd=ROOT, capture_output=True, text=True, check=True)
    steps = [done.stdout.index(step) for step in ("services.up preflight", "services.stack setup", "services.up up")]
    assert steps == sorted(steps)


def test_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What several paths need of one disk is counted together, whether or not they are there yet."""
    monkeypatch.setattr(space, "free", lambda path: 9 * GIB)
    half = 6 * GIB
    space.require({tmp_path / "not/there": half})
    with pytest.raises(StackError, match=r"not/there and .*also need .* GiB of disk"):
        space.require({tmp_path / "not/there": half, tmp_path / "also": half})


@pytest.mark.parametrize(
    ("path", "codeset", "words"),
    [
        ("/srv/my rewards", "UTF-8", "holds a space or another character that configuration files cannot hold"),
        ("/srv/it's", "UTF-8", "holds a space or another character"),
        (
            "/srv/försök",
            "ANSI_X3.4-1968",
            r"has non-ASCII characters, but the locale's encoding \(ANSI_X3.4-1968\) is not UTF-8",
        ),
        ("/srv/försök", "UTF-8", ""),
        ("/srv/rewards-2.1+x@y", "ANSI_X3.4-1968", ""),
    ],
)
def test_paths(monkeypatch: pytest.MonkeyPatch, path: str, codeset: str, words: str) -> None:
    """A path that not every part can have is refused, whichever way the stack runs and before `.venv` is made."""
    monkeypatch.setattr(locale, "nl_langinfo", lambda _: codeset)
    monkeypatch.setattr(venv, "ROOT", Path(path))
    monkeypatch.setattr(venv, "disk_bytes", dict)
    monkeypatch.setattr(venv, "_stamp", lambda kind: ROOT)
    if not words:
        require_safe_path(Path(path))
        return
    with pytest.raises(StackError, match=words):
        venv.make()


@pytest.mark.parametrize("command", ["down", "clean"])
def test_nothing_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """In a path that `make up` refuses nothing can run, and `make down` and `make clean` do not fail there."""
    tree = tmp_path / "my rewards"
    tree.mkdir()
    shutil.copy(ROOT / ".env", tree)
    monkeypatch.delenv("RUN_DIR", raising=False)
    monkeypatch.setattr(rundir, "ROOT", tree)
    monkeypatch.setattr(commands, "ROOT", tree)
    monkeypatch.setattr(sys, "argv", ["services.up", command])
    commands.main()
