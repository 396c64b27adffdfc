"""What `make dist` built, used without the checkout: a first score, a reward server and its check, chart and image."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.stack import venv, version
from services.stack.rundir import ROOT
from services.up.dist import FOLDER
from tests.helm.rendering import CHART, render
from tests.rules.conftest import clean_environment
from tests.support.servers import free_port
from tests.support.snippets import block
from tests.support.waiting import eventually

VERSION = version.read(ROOT)
EXTRAS = {"rewardstack": "cache", "rewardstack-rules": "server"}
NAMES = ("rewardstack", "rewardstack-cli", "rewardstack-rules", "rewardstack-verifier")
SECONDS = 600
"""For what takes seconds where nothing else runs."""
pytestmark = [pytest.mark.usefixtures("needs_process"), pytest.mark.timeout(3 * SECONDS)]


class Environment:
    """An empty environment with the wheels, and a working directory, both outside the checkout.

    Args:
        folder: of both.
    """

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.bin = folder / "venv/bin"
        venv.create(folder / "venv")
        venv.install(folder / "venv", "--constraint", str(venv.CONSTRAINTS), *map(_requirement, NAMES))

    def variables(self, **settings: str) -> dict[str, str]:
        """Return the environment of its processes, without the checkout."""
        path = os.pathsep.join([str(self.bin), os.defpath])
        return {**clean_environment(**settings), "PATH": path}

    def run(self, *command: str, **settings: str) -> str:
        """Return what a command of the environment prints.

        Raises:
            AssertionError: it fails.
        """
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.work,
            env=self.variables(**settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def _requirement(name: str) -> str:
    [wheel] = FOLDER.glob(f"{name.replace('-', '_')}-{VERSION}-*.whl")
    extra = f"[{EXTRAS[name]}]" if name in EXTRAS else ""
    return f"{name}{extra} @ {wheel.as_uri()}"


@pytest.fixture(scope="module")
def installed(needs_process: None, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheels of `dist/`."""
    return Environment(tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def server(installed: Environment) -> Iterator[str]:
    """The URL of a reward server that `rewardstack-server` of the wheels runs."""
    port, log = free_port(), installed.work / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [installed.bin / "rewardstack-server", "--host", "127.0.0.1", "--port", str(port)],
            cwd=installed.work,
            env=installed.variables(),
            stdout=file,
            stderr=file,
        )
    try:
        eventually(lambda: "Running on" in log.read_text() or process.poll() is not None, log.read_text, SECONDS)
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(SECONDS)


def test_sdists() -> None:
    """Each distribution has a wheel and an sdist of this version, and nothing of another one is there."""
    found = {path.name for path in FOLDER.iterdir()}
    names = [f"{name.replace('-', '_')}-{VERSION}" for name in NAMES]
    wanted = {f"{name}{end}" for name in names for end in ("-py3-none-any.whl", ".tar.gz")}
    assert found - {f"rewardstack-{VERSION}.tgz", f"rewardstack-{VERSION}-image.tar"} == wanted


def test_first_score(installed: Environment) -> None:
    """README's first score runs from the wheels, with nothing running, and prints what README says."""
    code = block("README.md", "python", "from rewardstack")
    printed = re.findall(r"print\(.*\)  # (.*)", code)
    output = installed.run("python", "-c", f"{code}\nimport rewardstack; print(rewardstack.__file__)").splitlines()
    assert [line for line in output if line in printed] == printed
    assert output[-1].startswith(str(installed.bin.parent))


def test_check(installed: Environment, server: str) -> None:
    """`rewardstack check` finds the server healthy and of this version, and the command line is of it, too."""
    assert VERSION in installed.run("rewardstack", "--version")
    assert VERSION in installed.run("rewardstack", "check", REWARD_SERVER_URL=server)


def test_score_file(installed: Environment, server: str) -> None:
    """The command scores a file through the server."""
    samples = str(ROOT / "examples/samples.jsonl")
    installed.run("rewardstack", "score", samples, "-o", "scored.jsonl", REWARD_SERVER_URL=server)
    rows = (installed.work / "scored.jsonl").read_text().splitlines()
    assert rows and all('"status": "ok"' in row for row in rows)


def test_chart(needs_helm: None) -> None:
    """Helm renders the chart's package as it renders the folder."""
    values = CHART / "examples/8xh100-qwen3-32b-values.yaml"
    assert render(values, chart=FOLDER / f"rewardstack-{VERSION}.tgz").objects == render(values).objects


def test_image(needs_engine: None) -> None:
    """The saved image is loaded, and has the command line of this version."""
    image = FOLDER / f"rewardstack-{VERSION}-image.tar"
    loaded = subprocess.run(["docker", "load", "--input", image], capture_output=True, text=True, check=True).stdout
    name = loaded.rpartition("Loaded image: ")[2].strip()
    said = subprocess.run(["docker", "run", "--rm", name, "rewardstack", "--version"], capture_output=True, text=True)
    assert VERSION in said.stdout, said.stderr
