"""The stack out of Apptainer's images, without root, as docs/hpc.md leads to it.

`make apptainer` runs this file, which `make test` does not collect: with the large images it takes a quarter of an
hour. Where no registry is in reach, images come from this machine's engine as archives, and Apptainer in a container.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rewardstack import __version__
from services.stack.rundir import ROOT
from services.stack.settings_table import TABLE
from services.up.apptainer.images import IMAGES
from tests.support.snippets import block

pytestmark = [pytest.mark.usefixtures("needs_engine"), pytest.mark.timeout(5400)]

TOOL = (ROOT / "../shared/tools/containers/apptainer").resolve()
SMALL = ("rules", "redis", "gateway")
LARGE = ("judge-cpu", "embedding-cpu")
USER = 1000
PAGE = "docs/hpc.md"
BLOCKS = {"up": "apptainer/stack.sh up", "check": "servers=", "down": "apptainer/stack.sh down"}
SECONDS = 5000


@dataclass(frozen=True)
class Node:
    """What was found on the node.

    Args:
        folder: of what each step said.
        images: that were built.
    """

    folder: Path
    images: tuple[str, ...]

    def said(self, step: str) -> str:
        """The output of a step."""
        return (self.folder / f"{step}.log").read_text(errors="replace")

    def status(self, step: str) -> int:
        """Its exit status."""
        return int((self.folder / f"{step}.status").read_text())

    def lines(self, name: str) -> list[str]:
        """A list of files or processes."""
        return (self.folder / name).read_text(errors="replace").splitlines()


def copy_of_the_tree(folder: Path) -> None:
    """What is under version control, as it is here now, where another user may write."""
    named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, named.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name, follow_symlinks=False)


@pytest.fixture(scope="module", params=["small", "large"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node on which the stack was built, started, killed, started and stopped: without the models, then with them."""
    if not TOOL.exists():
        pytest.skip("there is no container with Apptainer beside the checkout")
    images = (*SMALL, *(LARGE if request.param == "large" else ()))
    # On a disk: /tmp may be too small for the large images.
    folder = Path(tmp_path_factory.mktemp("node"))
    copy_of_the_tree(folder)
    sources = []
    for name in images:
        setting = IMAGES[name].setting
        archive = folder / f"{name}.tar"
        subprocess.run(["docker", "save", "--output", archive, TABLE[setting].default], check=True)
        sources.append(f"{setting}=docker-archive:{archive}")
    for name, begins in BLOCKS.items():
        (folder / f"page-{name}.sh").write_text(block(PAGE, "bash", begins))
    subprocess.run(["chown", "-R", f"{USER}:{USER}", folder], check=True)
    switch = "on" if request.param == "large" else "off"
    given = f"SOURCES='{' '.join(sources)}' JUDGE={switch} EMBEDDING={switch}"
    command = f"{given} bash tests/apptainer/node.sh {' '.join(images)}"
    subprocess.run(
        [TOOL, "bash", "-c", command], cwd=folder, env={**os.environ, "AS_ROOT": "1"}, timeout=SECONDS, check=True
    )
    yield Node(folder / "found", images)
    shutil.rmtree(folder)


def test_built(node: Node) -> None:
    """Every definition builds without root, its test passes, and it is not built a second time."""
    said = node.said("build")
    assert node.status("build") == 0, said[-3000:]
    assert said.count("Running testscript") == said.count("Build complete") == len(node.images)
    assert node.said("again").count("is up to date") == len(node.images)


def test_up(node: Node) -> None:
    """The page's lines bring the stack up, with every sample scored, though the home holds poisoned packages."""
    assert node.status("up") == 0, node.said("up")[-3000:]
    assert "The stack is up" in node.said("up")
    assert "poisoned" not in node.said("up")


def test_page(node: Node) -> None:
    """What docs/hpc.md says to type in the trainer's shell finds all that a whole stack must do."""
    assert node.status("check") == 0, node.said("check")[-5000:]


def test_endpoints(node: Node) -> None:
    """The file for trainers is its owner's alone, names what runs with a key each, and was written since the build."""
    modes, _, text = node.said("endpoints").partition("{")
    assert modes.split() == ["700", "600"]
    told = json.loads("{" + text)
    built, shown = ((node.folder / name).stat().st_mtime for name in ("build.status", "endpoints.status"))
    assert told["version"] == 1 and built < told["written"] < shown
    names = {"REWARD_SERVER"} | ({"LLM_JUDGE_SERVER", "EMBEDDING_SERVER"} if "judge-cpu" in node.images else set())
    assert told["servers"].keys() == {f"{name}_{part}" for name in names for part in ("URL", "API_KEY")}
    assert all(told["servers"].values())


def test_another_user(node: Node) -> None:
    """Without the key another user of the node gets nothing but health, and cannot read the run directory."""
    lines = node.said("other-user").splitlines()
    answers = {tuple(line.split()[:2]): line.split()[2] for line in lines if line[:4] in ("6000", "8000", "8080")}
    assert answers["6000", "/health"] == "200"
    served = {path for (_, path), status in answers.items() if status.startswith("2")}
    assert served <= {"/health"}, answers
    assert sum("rewardstack-user" in line and "Permission denied" in line for line in lines) == 2


def test_killed(node: Node) -> None:
    """After a job was killed, whatever it left, the next one comes up; a port that is taken by then is another one.

    The file for trainers is where it is asked for, and names that port.
    """
    assert node.status("up-again") == 0, node.said("up-again")[-3000:]
    assert "6000 is taken by" in node.said("up-again")
    (port,) = re.findall(r"^REWARD_PORT=(\d+): ", node.said("up-again"), re.MULTILINE)
    told = json.loads((node.folder / "endpoints-again").read_text())
    assert told["servers"]["REWARD_SERVER_URL"] == f"http://127.0.0.1:{port}"
    assert not (node.folder / "endpoints.json").exists()


def test_down(node: Node) -> None:
    """After down no process is left, and no file outside of the tree, the run folder and the installer's cache."""
    assert node.status("down") == 0, node.said("down")
    assert len(node.lines("processes")) > 10 and node.lines("processes-after") == []
    new = {*node.lines("files-after")} - {*node.lines("files-before")}
    expected = ("/tmp/rewardstack-user", "/home/user/.cache/uv")
    assert [path for path in new - {"/home/user/.cache"} if not path.startswith(expected)] == []


def test_images_alone(node: Node) -> None:
    """An image says what it is for, runs as an instance, and as a command."""
    assert node.said("run-help").count("apptainer instance start") == len(node.images)
    assert "PONG" in node.said("instance") and f"rewardstack {__version__}" in node.said("instance")
