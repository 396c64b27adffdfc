"""Images of bare machines: a Debian as `debootstrap` makes it, with `make`; no Python, no certificates, no services.

Everything that says where packages come from is read from this machine when an image is made or a container started.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from services.stack.venv import read_pip_settings

REPOSITORY = "rewardstack-machine"
SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
BARE = "make"
"""What a person has who typed README's first command, beyond the least that Debian is."""
SPEED = "force-unsafe-io\n"
"""For dpkg: the disk of a container that is thrown away need not be synchronized."""
APT = 'Acquire::Check-Valid-Until "false";\n'
"""A mirror may have been frozen."""


def image(suite: str, packages: Sequence[str] = ()) -> str:
    """The tag of a machine's image, which is made where it is not there yet.

    Args:
        suite: of Debian.
        packages: of Debian, that somebody has installed on it before.

    Raises:
        RuntimeError: it could not be made; with what was said.
    """
    bare = tagged(suite, mirror(), BARE, APT, SPEED)
    if not exists(bare):
        _import(suite, bare)
    if not packages:
        return bare
    tag = tagged(suite, bare, *packages)
    if not exists(tag):
        names = " ".join(packages)
        install = f"apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y {names} >/dev/null"
        said(["docker", "build", "--quiet", "--tag", tag, "-"], given=f"FROM {bare}\nRUN {install}\n")
    return tag


def mirror() -> str:
    """The address of the Debian mirror that this machine uses.

    Raises:
        RuntimeError: none of `SOURCES` names one.
    """
    for source in SOURCES:
        if source.exists() and (found := re.search(r"^(?:URIs:|deb (?:\[.*?\] )?)\s*(\S+)", source.read_text(), re.M)):
            return found[1]
    raise RuntimeError(f"no Debian mirror is named in {' or '.join(map(str, SOURCES))}")


@cache
def pip_settings() -> dict[str, str]:
    """What pip is told on this machine, in files and by the environment: `cert`, `find-links`, `extra-index-url` …"""
    return read_pip_settings(said([sys.executable, "-m", "pip", "config", "list"]))


def named_paths(settings: dict[str, str]) -> list[Path]:
    """The folders and files of this machine that pip's settings name, but for the certificate.

    An index in a folder is named with what stands beside it: its pages refer to that.
    """
    words = [word for name, value in settings.items() if name != "cert" for word in value.split()]
    indices = [Path(word.removeprefix("file://")).parent for word in words if word.startswith("file:///")]
    plain = [Path(word) for word in words if word.startswith("/")]
    return sorted(path for path in {*indices, *plain} if path.exists())


def pip_file(settings: dict[str, str], certificate: str) -> str:
    """The text of a `pip.conf`.

    Args:
        settings: by their names.
        certificate: the path that `cert` has there, where it is set.
    """
    there = settings | ({"cert": certificate} if "cert" in settings else {})
    return "".join(["[global]\n", *(f"{name} = {value}\n" for name, value in there.items())])


def tagged(suite: str, *recipe: str) -> str:
    """The tag of an image of a suite that is made by a recipe, whatever says how."""
    return f"{REPOSITORY}:{suite}-{hashlib.sha256(' '.join(recipe).encode()).hexdigest()[:12]}"


def exists(tag: str) -> bool:
    """Whether there is an image of that tag."""
    return subprocess.run(["docker", "image", "inspect", tag], capture_output=True, check=False).returncode == 0


def said(command: Sequence[str], given: str | None = None) -> str:
    """What a command prints.

    Args:
        command: without a shell.
        given: its standard input.

    Raises:
        RuntimeError: it failed; with what it said.
    """
    done = subprocess.run(command, input=given or "", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:4])} …: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def _import(suite: str, tag: str) -> None:
    print(f"==> making the bare machine {suite} (a minute)", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        said(["debootstrap", "--variant=minbase", f"--include={BARE}", suite, str(root), mirror()])
        (root / "etc/apt/apt.conf.d/90machine").write_text(APT)
        (root / "etc/dpkg/dpkg.cfg.d/90machine").write_text(SPEED)
        with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as tree:
            done = subprocess.run(["docker", "import", "-", tag], stdin=tree.stdout, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"docker import: {os.fsdecode(done.stderr)}")
