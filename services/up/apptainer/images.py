"""The images that Apptainer runs: what each is built from, and whether it is there as its definition now says.

Building them takes nothing but Python and Apptainer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import ROOT, require_plain
from services.stack.settings import Settings
from services.up.apptainer import node

PROGRAM = "apptainer"
OLDEST = (1, 2)
"""The first that fills a definition in (`build --build-arg`); `exec --no-eval` is of 1.1."""
VERSION = re.compile(rf"{PROGRAM} version (\d+)\.(\d+)\.(\d+)")
DEFINITIONS = ROOT / "apptainer"
REGISTRY = "docker"
AGENTS = ("docker-archive", "oci-archive", "docker-daemon", "localimage")
"""What an image can be taken from instead of a registry, as Apptainer writes it: `docker-archive:/path/image.tar`."""
SOURCES = (
    ROOT / "constraints.txt",
    ROOT / "verifier",
    ROOT / "client",
    ROOT / "cli",
    ROOT / "services/rules",
)
"""What the image of the reward server is built from beside its definition."""
KILLED_SECONDS = 24 * 3600.0
"""For which a half-built image has not been written, after which its build is taken for killed."""
READ = (".py", ".toml", ".txt", ".json", ".html")


@dataclass(frozen=True)
class Image:
    """One image.

    Args:
        name: of its file, without the suffix.
        definition: the name of the file that says how it is built.
        setting: that names the image it is built from.
    """

    name: str
    definition: str
    setting: str

    def file(self, settings: Settings) -> Path:
        """Where it is."""
        return ROOT / settings["SIF_DIR"] / f"{self.name}.sif"

    def built(self, settings: Settings) -> str:
        """What the image that is there was built from, as `wanted` says it; empty where there is none."""
        try:
            return self._record(settings).read_text(encoding="utf-8") if self.file(settings).exists() else ""
        except FileNotFoundError:
            return str(self.file(settings).stat().st_mtime_ns)  # it was brought here by hand

    def wanted(self, settings: Settings) -> str:
        """What it would be built from now: digests by name, as JSON."""
        _, source = _source(settings[self.setting])
        archive = [str(Path(source).stat().st_mtime_ns).encode()] if Path(source).is_file() else []
        parts = {
            "its definition": _digest([self.definition_file.read_bytes()]),
            self.setting: _digest([settings[self.setting].encode(), *archive]),
        }
        if self.definition == "rules":
            code = (part for file in _code() for part in (str(file.relative_to(ROOT)).encode(), file.read_bytes()))
            parts["the code of this tree"] = _digest(code)
        return json.dumps(parts)

    def outdated(self, settings: Settings) -> list[str]:
        """The names of what the image that is there was built from, and is another one now.

        Of one that was brought here by hand nothing is known.
        """
        try:
            before = dict(json.loads(self._record(settings).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return []
        return [name for name, digest in json.loads(self.wanted(settings)).items() if before.get(name) != digest]

    @property
    def definition_file(self) -> Path:
        """Its definition."""
        return DEFINITIONS / f"{self.definition}.def"

    def _record(self, settings: Settings) -> Path:
        return self.file(settings).with_suffix(".built-from")

    def build(self, settings: Settings) -> None:
        """Build it, under another name until it is whole: several nodes may share the folder.

        Raises:
            StackError: it cannot be built.
        """
        agent, source = _source(settings[self.setting])
        file, wanted = self.file(settings), self.wanted(settings)
        half = file.with_name(f".{self.name}-{socket.gethostname()}-{os.getpid()}.sif")
        file.parent.mkdir(parents=True, exist_ok=True)
        self._clear(settings)
        given = {"BOOTSTRAP": agent, "FROM": source} | ({"ROOT": str(ROOT)} if self.definition == "rules" else {})
        arguments = [part for name, value in given.items() for part in ("--build-arg", f"{name}={value}")]
        command = [runtime(), "build", "--disable-cache", "--force", *arguments]
        try:
            with step(f"building {file} from {settings[self.setting]}"):
                command += [str(half), str(self.definition_file)]
                done = subprocess.run(command, cwd=ROOT, env=_environment(file.parent), check=False)
            if done.returncode != 0:
                raise StackError(
                    f"{file.name} was not built; what {PROGRAM} said stands above",
                    f"see that {self.setting} names an image within reach, and that APPTAINER_TMPDIR has room for it "
                    "unpacked and is no network file system",
                )
            self._keep(file)
            half.replace(file)
        finally:
            half.unlink(missing_ok=True)
        self._record(settings).write_text(wanted, encoding="utf-8")

    def _keep(self, file: Path) -> None:
        """Keep the image that is there under another name: over a network, stacks that run out of it would lose it."""
        kept = file.with_name(f"{self.name}.before")
        if file.exists() and node.is_shared(file):
            kept.unlink(missing_ok=True)
            os.link(file, kept)

    def _clear(self, settings: Settings) -> None:
        """Remove what builds left that were killed, on whichever node."""
        for half in self.file(settings).parent.glob(f".{self.name}-*-*.sif"):
            with suppress(FileNotFoundError):
                if time.time() - half.stat().st_mtime > KILLED_SECONDS:
                    half.unlink()


IMAGES = {
    image.name: image
    for image in (
        Image("rules", "rules", "PYTHON_IMAGE"),
        Image("redis", "redis", "REDIS_IMAGE"),
        Image("gateway", "gateway", "GATEWAY_IMAGE"),
        Image("judge", "judge", "VLLM_IMAGE"),
        Image("embedding", "embedding", "TEI_CUDA_IMAGE"),
        Image("judge-cpu", "judge", "VLLM_CPU_IMAGE"),
        Image("embedding-cpu", "embedding", "TEI_CPU_IMAGE"),
    )
}
"""By name; the judge's and the embedding server's are others on GPUs than on processors."""
BY_DEFAULT = ("rules", "redis", "gateway", "judge", "embedding")
"""Those for a node with GPUs: the one where they are built may have none."""


def build(settings: Settings, names: Sequence[str]) -> None:
    """Build images: those that are missing, or whose definition is another one now.

    Args:
        settings: of the stack.
        names: of images; none for those that nodes with GPUs need.

    Raises:
        StackError: there is none of that name, or one cannot be built.
    """
    chosen = _named(names)
    require_plain(ROOT)
    runtime()
    for image in chosen:
        if image.built(settings) == image.wanted(settings):
            say(f"==> {image.file(settings)} is there, built from the same")
        else:
            image.build(settings)


def where(settings: Settings, names: Sequence[str]) -> None:
    """Print where images are; arguments and errors as those of `build`."""
    for image in _named(names):
        say(str(image.file(settings)), whole=True)


def _named(names: Sequence[str]) -> list[Image]:
    for name in names:
        if name not in IMAGES:
            raise StackError(f"there is no image {name!r}", f"the images are {', '.join(IMAGES)}")
    return [IMAGES[name] for name in names or BY_DEFAULT]


def runtime() -> str:
    """The path of Apptainer.

    Raises:
        StackError: it is not installed, or too old.
    """
    found = shutil.which(PROGRAM)
    if found is None:
        raise StackError(f"{PROGRAM} is not installed", f"load its module (module load {PROGRAM}), or STACK=native")
    version = _version(found)
    if version and version < OLDEST:
        raise StackError(
            f"{PROGRAM} ({found}) is {'.'.join(map(str, version))}, and the images take {'.'.join(map(str, OLDEST))} "
            "or later",
            f"load a later module (module avail {PROGRAM})",
        )
    return found


def _version(program: str) -> tuple[int, ...]:
    """What Apptainer says of its version; nothing where it says none."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = VERSION.match(said)
    return tuple(map(int, found.groups())) if found else ()


def _environment(folder: Path) -> dict[str, str]:
    """That Apptainer is given: it makes no folder in the home; one that is there may hold the user's credentials."""
    own = {} if (Path.home() / ".apptainer").exists() else {"APPTAINER_CONFIGDIR": str(folder / ".apptainer")}
    return {**own, **os.environ}


def _source(reference: str) -> tuple[str, str]:
    """The bootstrap agent and what it takes, of an image as a setting names it."""
    agent, _, source = reference.partition(":")
    return (agent, source) if agent in AGENTS else (REGISTRY, reference)


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _code() -> Iterator[Path]:
    for source in SOURCES:
        files = source.rglob("*") if source.is_dir() else [source]
        yield from sorted(file for file in files if file.suffix in READ and not {"build", "dist"} & {*file.parts})
