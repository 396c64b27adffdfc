"""Build the files of a release into `dist/`: wheels, sdists, the packaged Helm chart, and the container image."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import yaml

from services.stack import version
from services.stack.chart import CHART
from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from services.stack.venv import DISTRIBUTIONS
from services.up.compose import engine
from services.up.compose.up import make_image
from services.up.preflight import read_settings

FOLDER = ROOT / "dist"
SAVE_SECONDS = 600


def make_dist(image: bool = True) -> None:
    """Empty `dist/`, and build all files into it.

    Args:
        image: whether to build the container image, too; skipped if no container engine answers.

    Raises:
        StackError: a part cannot be built.
    """
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    FOLDER.mkdir()
    for name in DISTRIBUTIONS:
        with step(f"building the wheel and the sdist of {name}", f"{name}: wheel and sdist built"):
            _build_distribution(ROOT / name)
    pack_chart(ROOT / CHART, FOLDER)
    if image:
        _save_image(FOLDER / f"rewardstack-{version.read(ROOT)}-image.tar")
    for path in sorted(FOLDER.iterdir()):
        say(f"  {path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")


def _build_distribution(folder: Path) -> None:
    """Build the sdist of a distribution, and the wheel from the sdist."""
    # Build without isolation, because the development tools include the pinned version of hatchling.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(FOLDER), str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        say(done.stdout)
        raise StackError(f"{folder.relative_to(ROOT)} could not be built", "the lines above say why")


def pack_chart(chart: Path, folder: Path) -> Path:
    """Package a Helm chart reproducibly (unlike `helm package`), and return the path of the package.

    Args:
        chart: folder of the chart; files that match its `.helmignore` are omitted.
        folder: folder to write the package to.
    """
    metadata = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    package = folder / f"{metadata['name']}-{metadata['version']}.tgz"
    with (
        package.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for path in _chart_files(chart):
            entry = tarfile.TarInfo(f"{metadata['name']}/{path.relative_to(chart).as_posix()}")
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return package


def _chart_files(chart: Path) -> Iterator[Path]:
    lines = (chart / ".helmignore").read_text(encoding="utf-8").splitlines()
    ignored = [line.rstrip("/") for line in lines if line and not line.startswith("#")]
    for path in sorted(chart.rglob("*")):
        parts = path.relative_to(chart).parts
        if path.is_file() and not any(fnmatch(part, pattern) for part in parts for pattern in ignored):
            yield path


def _save_image(path: Path) -> None:
    """Build the image of reward server and workers, and save it for `docker load`."""
    container_engine, reason = engine.find()
    if not container_engine:
        say(f"no container image: {reason}")
        return
    settings, run = read_settings(quiet=True)
    run.make()
    make_image(settings, run, "")
    with step(f"saving {path.name}", f"{path.name} saved"):
        image = settings["REWARDSTACK_IMAGE"]
        engine.ask(container_engine.docker, "save", "--output", str(path), image, seconds=SAVE_SECONDS)
