"""The images that Apptainer runs: where each is, and whether `apptainer/images.mk` would build it again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.stack.console import say
from services.stack.errors import StackError
from services.stack.rundir import ROOT, require_plain
from services.stack.settings import Settings

PROGRAM = "apptainer"
OLDEST = (1, 2)
"""The first version that has `build --build-arg`; `exec --no-eval` is of 1.1."""
VERSION = re.compile(rf"{PROGRAM} version (\d+)\.(\d+)\.(\d+)")
MAKEFILE = "apptainer/images.mk"


@dataclass(frozen=True)
class Image:
    """One image.

    Args:
        name: of its file, without the suffix.
        setting: that names the image it is built from.
    """

    name: str
    setting: str

    def file(self, settings: Settings) -> Path:
        """Return where it is."""
        return ROOT / settings["SIF_DIR"] / f"{self.name}.sif"

    def is_outdated(self, settings: Settings) -> bool:
        """Return whether `make sif` would build it again, for a user who can."""
        file = self.file(settings)
        if not file.exists() or not os.access(file.parent, os.W_OK):
            return False
        return subprocess.run(_make(self, settings, "--question"), cwd=ROOT, capture_output=True).returncode == 1


IMAGES: Mapping[str, Image] = {
    name: Image(name, setting)
    for name, setting in {
        "rules": "PYTHON_IMAGE",
        "redis": "REDIS_IMAGE",
        "gateway": "GATEWAY_IMAGE",
        "judge": "VLLM_IMAGE",
        "embedding": "TEI_CUDA_IMAGE",
        "judge-cpu": "VLLM_CPU_IMAGE",
        "embedding-cpu": "TEI_CPU_IMAGE",
    }.items()
}
"""By name; judge and embedding server have others on GPUs than on processors."""
DEFAULT = ("rules", "redis", "gateway", "judge", "embedding")
"""Those for nodes with GPUs; the node where they are built may have none."""


def build(settings: Settings, names: Sequence[str]) -> None:
    """Build images that are missing or outdated.

    Args:
        settings: of the stack.
        names: of images; none for DEFAULT.

    Raises:
        StackError: there is none of that name, or one cannot be built.
    """
    chosen = _named(names)
    require_plain(ROOT)
    runtime()
    # Apptainer makes no folder in the home; one that is there may hold the user's credentials.
    own = {"APPTAINER_CONFIGDIR": str(ROOT / settings["SIF_DIR"] / ".apptainer")}
    environment = {**({} if (Path.home() / ".apptainer").exists() else own), **os.environ}
    for image in chosen:
        if subprocess.run(_make(image, settings), cwd=ROOT, env=environment, check=False).returncode != 0:
            raise StackError(
                f"{image.name}.sif was not built: the lines above say why",
                f"check that {image.setting} names an image within reach, and that APPTAINER_TMPDIR has room for it "
                "unpacked and is on a disk of this node",
            )


def where(settings: Settings, names: Sequence[str]) -> None:
    """Print where images are; arguments and errors as those of `build`."""
    for image in _named(names):
        say(str(image.file(settings)), whole=True)


def runtime() -> str:
    """Return the path of Apptainer.

    Raises:
        StackError: it is not installed, or too old.
    """
    found = shutil.which(PROGRAM)
    if found is None:
        raise StackError(f"{PROGRAM} is not installed", f"load its module (module load {PROGRAM}), or STACK=native")
    try:
        output = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        output = ""
    version = VERSION.match(output)
    if version and tuple(map(int, version.groups())) < OLDEST:
        raise StackError(
            f"{PROGRAM} ({found}) is {'.'.join(version.groups())}, and {'.'.join(map(str, OLDEST))} or later is needed",
            f"load a later module (module avail {PROGRAM})",
        )
    return found


def _named(names: Sequence[str]) -> list[Image]:
    for name in names:
        if name not in IMAGES:
            raise StackError(f"there is no image {name!r}", f"the images are {', '.join(IMAGES)}")
    return [IMAGES[name] for name in names or DEFAULT]


def _make(image: Image, settings: Settings, *options: str) -> list[str]:
    """Return the command that builds an image.

    Raises:
        StackError: there is no make.
    """
    if not (make := shutil.which("make")):
        raise StackError("make is not installed", "install GNU make")
    values = [f"{one.setting}={settings[one.setting]}" for one in IMAGES.values()]
    folder = f"SIF_DIR={ROOT / settings['SIF_DIR']}"
    return [make, "--no-print-directory", *options, "-f", MAKEFILE, folder, *values, str(image.file(settings))]
