"""Virtual environments are made and completed with uv, which gets pip's settings, or with pip."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.stack import venv
from services.stack.errors import StackError
from tests.support.table import Table

FAKE_PYTHON = """#!{python}
import os, signal, sys, time
words = sys.argv[2:]
if words[:3] == ["pip", "config", "list"]:
    print({settings!r})
    sys.exit()
program = words[0] if words[-1] != "uv" else "bootstrap"
names = sorted(name for name in os.environ if name.startswith(("UV_", "PIP_", "SSL_CERT_FILE", "ALL_PROXY")))
print(program, *(f"{{name}}={{os.environ[name]}}" for name in names))
if "--reinstall" in words:
    print("again")
if program == {interrupting!r}:
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(0.5)
    print("cleaned up")
sys.exit(program in {failing!r})
"""
"""A Python that prints which installer it runs, with which variables; it can fail, and interrupt who started it."""

LIKE_PIP = " ".join(f"{name}={value}" for name, value in sorted(venv.UV_LIKE_PIP.items()))

Fake = Callable[..., Path]


@pytest.fixture
def fake(needs_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Makes an environment with a fake Python; this process has no settings of pip and uv."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_")) or name == "SSL_CERT_FILE"]:
        monkeypatch.delenv(name)

    def made(settings: str = "", failing: tuple[str, ...] = (), interrupting: str = "") -> Path:
        python = tmp_path / "bin/python"
        python.parent.mkdir(exist_ok=True)
        script = FAKE_PYTHON.format(
            python=sys.executable, settings=settings, failing=failing, interrupting=interrupting
        )
        python.write_text(script)
        python.chmod(0o755)
        return tmp_path

    return made


def log(environment: Path) -> list[str]:
    """The lines of its installation."""
    return (environment / "install.log").read_text().splitlines()


def test_pip_settings(fake: Fake, table: Table) -> None:
    """uv gets pip's settings by its own names; the environment beats `install`, and that `global`."""
    cases = {
        "": [],
        "global.index-url='https://a'\n:env:.index-url='https://b'": ["UV_DEFAULT_INDEX=https://b"],
        "install.index-url='https://i'\nglobal.index-url='https://g'": ["UV_DEFAULT_INDEX=https://i"],
        "global.extra-index-url='\\nhttps://a\\nhttps://b'": ["UV_INDEX=https://a https://b"],
        "global.find-links='/a /b'": ["UV_FIND_LINKS=/a,/b"],
        "global.cert='/c.pem'\n:env:.proxy='http://p:3128'": ["ALL_PROXY=http://p:3128", "SSL_CERT_FILE=/c.pem"],
        ":env:.default-timeout='60'\n:env:.no-cache-dir='1'": ["UV_HTTP_TIMEOUT=60", "UV_NO_CACHE=1"],
        ":env:.disable-pip-version-check='1'\nglobal.retries='9'\ndownload.no-binary='all'": [],
    }
    for settings, variables in cases.items():
        with table.case(settings):
            environment = fake(settings)
            venv.install(environment, "anything")
            words = sorted(("PIP_USER=0", *variables, *LIKE_PIP.split()), key=lambda word: word.partition("=")[0])
            assert log(environment) == ["bootstrap PIP_USER=0", f"uv {' '.join(words)}"]


def test_settings_that_uv_does_not_support(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    """A setting of pip that uv does not support leaves the installation to pip, and a line says so."""
    environment = fake("global.no-binary=':all:'")
    venv.install(environment, "anything")
    assert log(environment) == ["pip PIP_USER=0"]
    assert capsys.readouterr().out == "    uv failed; trying pip\n"


def test_uv_fails(fake: Fake, table: Table) -> None:
    """Where PyPI has no uv, or uv fails, pip installs."""
    cases = {"bootstrap": ["bootstrap", "pip"], "uv": ["bootstrap", "uv", "pip"]}
    for failing, programs in cases.items():
        with table.case(failing):
            environment = fake(failing=(failing,))
            venv.install(environment, "anything")
            assert [line.split()[0] for line in log(environment)] == programs


def test_nothing_installs(fake: Fake, capsys: pytest.CaptureFixture[str]) -> None:
    """The last lines are shown, with the remedy; the next installation puts every package in place again."""
    environment = fake(failing=("bootstrap", "uv", "pip"))
    with pytest.raises(StackError, match=f"cannot install Python packages into {environment}(.|\n)*package index"):
        venv.install(environment, "anything")
    assert capsys.readouterr().out.endswith("pip PIP_USER=0\n")
    for lines in (["again"], []):
        venv.install(fake(), "anything")
        assert log(environment)[2:] == lines


def test_interrupted(fake: Fake) -> None:
    """Ctrl-C ends the installation after uv has cleaned up, without trying pip; the next one starts again."""
    environment = fake(interrupting="uv")
    with pytest.raises(KeyboardInterrupt):
        venv.install(environment, "anything")
    assert log(environment)[2:] == ["cleaned up"]
    venv.install(fake(), "anything")
    assert log(environment)[2:] == ["again"]


def test_variables_of_another_folder(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that make a user's pip install into another folder do not reach the stack's."""
    for name in venv.REDIRECTIONS:
        monkeypatch.setenv(name, "/another/folder")
    environment = fake(failing=("bootstrap",))
    venv.install(environment, "anything")
    assert log(environment) == ["bootstrap PIP_USER=0", "pip PIP_USER=0"]


def test_a_cache_of_its_own(fake: Fake, tmp_path: Path) -> None:
    """An installation can have uv's cache on its own disk."""
    environment = fake()
    venv.install(environment, "anything", cache=tmp_path / "cache")
    assert f" UV_CACHE_DIR={tmp_path}/cache " in log(environment)[1]


def test_its_python_is_gone(tmp_path: Path) -> None:
    """An environment whose Python was removed, as by an upgrade of the system, is named with the remedy."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/nowhere/python3")
    with pytest.raises(StackError, match=f"{tmp_path}: its Python does not exist any more — rm -r {tmp_path}"):
        venv.create(tmp_path)


def test_stamps(fake: Fake) -> None:
    """An installation removes the stamps of earlier ones, whose packages it may replace."""
    environment = fake()
    (environment / ".installed-1").touch()
    venv.install(environment, "anything")
    assert not (environment / ".installed-1").exists()


@pytest.mark.nightly
def test_make(needs_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call does nothing; an environment of another path is made again, and so is one without pip."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(venv, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(venv, "install", lambda folder, *arguments: calls.append(arguments))
    venv.make()
    venv.make()
    assert len(calls) == 1
    (tmp_path / ".venv").rename(tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / ".venv-moved")
    monkeypatch.setattr(venv, "VENV", tmp_path / ".venv-moved")
    (tmp_path / ".venv-moved/mine").touch()
    venv.make()
    assert len(calls) == 2 and not (tmp_path / ".venv-moved/mine").exists()
    venv.make(dev=True)
    venv.make()
    assert [venv.DEVELOPMENT[-1] in arguments for arguments in calls] == [False, False, True]
    (tmp_path / ".venv-moved/bin/pip").unlink()
    venv.create(tmp_path / ".venv-moved")
    assert (tmp_path / ".venv-moved/bin/pip").exists()
