"""Build the Apptainer images that are missing or outdated. This needs only Python and Apptainer."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import ROOT, require_safe_path
from services.stack.settings import Settings

PROGRAM = "apptainer"
OLDEST = (1, 2)
"""Oldest supported version of Apptainer: the first with `build --build-arg`."""
VERSION = re.compile(rf"{PROGRAM} version (\d+)\.(\d+)\.(\d+)")
ARCHIVES = ("docker-archive", "oci-archive", "docker-daemon", "localimage")
"""Apptainer's prefixes for images that do not come from a registry, as in `docker-archive:/path/image.tar`."""
CODE = ("constraints.txt", "verifier", "client", "cli", "services/rules")
SUFFIXES = (".py", ".toml", ".txt", ".json", ".html")
"""Suffixes of the source files in the image of the reward server."""
KILLED_SECONDS = 24 * 3600.0
"""Age in seconds above which an incomplete image is assumed to be from a killed build."""


@dataclass(frozen=True)
class Image:
    """An Apptainer image.

    Args:
        name: name of the image's file without the suffix.
        setting: name of the setting with the container image that this image is built from.
    """

    name: str
    setting: str

    @property
    def definition(self) -> Path:
        """Path of the image's definition file."""
        return ROOT / f"apptainer/{self.name.removesuffix('-cpu')}.def"

    def file(self, settings: Settings) -> Path:
        """Return the path of the image's file."""
        return ROOT / settings["SIF_DIR"] / f"{self.name}.sif"

    def is_outdated(self, settings: Settings) -> bool:
        """Return whether the image is older than its source files, or `setting` now names another container image.

        `build` writes the container image's name to a file next to the Apptainer image. If this file is missing, for
        example because only the Apptainer image was copied here, the name is not checked.
        """
        file, record = self.file(settings), self._record(settings)
        if record.exists() and record.read_text(encoding="utf-8") != settings[self.setting]:
            return True
        built = file.stat().st_mtime
        return any(source.stat().st_mtime > built for source in self._sources(settings))

    def build(self, settings: Settings) -> None:
        """Build the image under a temporary name, then rename it, so that other nodes never see an incomplete image.

        The previous image is kept as NAME.before for stacks that still use it.

        Raises:
            StackError: the build fails.
        """
        file, (agent, source) = self.file(settings), _source(settings[self.setting])
        incomplete = file.with_name(f".{self.name}-{socket.gethostname()}-{os.getpid()}.sif")
        file.parent.mkdir(parents=True, exist_ok=True)
        self._remove_killed(file.parent)
        arguments = {"BOOTSTRAP": agent, "FROM": source} | ({"ROOT": str(ROOT)} if self.name == "rules" else {})
        command = [runtime(), "build", "--disable-cache", "--force"]
        command += [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
        # Keep Apptainer from creating `~/.apptainer`. If this folder exists, use it, because it may hold credentials.
        own = {} if (Path.home() / ".apptainer").exists() else {"APPTAINER_CONFIGDIR": str(file.parent / ".apptainer")}
        command += [str(incomplete), str(self.definition)]
        try:
            with step(f"building {file} from {settings[self.setting]}", f"{file} built"):
                done = subprocess.run(command, cwd=ROOT, env={**own, **os.environ}, check=False)
                if done.returncode != 0:
                    raise StackError(
                        f"{file.name} was not built: the lines above say why",
                        f"check that this node can fetch the image that {self.setting} names, and that "
                        "APPTAINER_TMPDIR is on a disk of this node and has space for the unpacked image",
                    )
            if file.exists():
                file.with_suffix(".before").unlink(missing_ok=True)
                os.link(file, file.with_suffix(".before"))
            incomplete.replace(file)
        finally:
            incomplete.unlink(missing_ok=True)
        self._record(settings).write_text(settings[self.setting], encoding="utf-8")

    def _record(self, settings: Settings) -> Path:
        return self.file(settings).with_suffix(".from")

    def _sources(self, settings: Settings) -> Iterator[Path]:
        """Yield the source files of the image."""
        yield self.definition
        archive = Path(_source(settings[self.setting])[1])
        if archive.is_file():
            yield archive
        for source in map(ROOT.joinpath, CODE if self.name == "rules" else ()):
            files = source.rglob("*") if source.is_dir() else [source]
            yield from (file for file in files if file.suffix in SUFFIXES and not {"build", "dist"} & {*file.parts})

    def _remove_killed(self, folder: Path) -> None:
        """Remove incomplete images of killed builds on any node."""
        for incomplete in folder.glob(f".{self.name}-*.sif"):
            with suppress(FileNotFoundError):
                if time.time() - incomplete.stat().st_mtime > KILLED_SECONDS:
                    incomplete.unlink()


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
"""Images by name. Judge and embedding server have different images for GPUs and CPUs."""
DEFAULT = ("rules", "redis", "gateway", "judge", "embedding")
"""Names of the images for nodes with GPUs. They can be built on a node without GPUs."""


def build(settings: Settings, names: Sequence[str]) -> None:
    """Build images, except those that exist and are up to date.

    Args:
        settings: settings of the stack.
        names: names of the images; empty for `DEFAULT`.

    Raises:
        StackError: a name is unknown, or a build fails.
    """
    chosen = _named(names)
    require_safe_path(ROOT)
    runtime()
    for image in chosen:
        if image.file(settings).exists() and not image.is_outdated(settings):
            say(f"{image.file(settings)} is up to date")
        else:
            image.build(settings)


def print_paths(settings: Settings, names: Sequence[str]) -> None:
    """Print the paths of images. Parameters and errors are those of `build`."""
    for image in _named(names):
        say(str(image.file(settings)), whole=True)


def runtime() -> str:
    """Return the path of Apptainer.

    Raises:
        StackError: Apptainer is not installed, or is too old.
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


def _source(reference: str) -> tuple[str, str]:
    """Split an image reference of a setting into Apptainer's bootstrap agent and source."""
    agent, _, source = reference.partition(":")
    return (agent, source) if agent in ARCHIVES else ("docker", reference)
