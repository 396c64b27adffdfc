"""Which images are built, and from what."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest

from services.stack.errors import StackError
from services.stack.settings import Settings
from services.stack.settings_table import TABLE
from services.up.apptainer import images
from services.up.apptainer.images import DEFAULT, IMAGES
from services.up.apptainer.up import warn_outdated

APPTAINER = """#!/bin/sh
if [ "$1" = --version ]; then cat "$(dirname "$0")/version"; exit; fi
echo "$@" >>"$(dirname "$0")/called"
for last; do before=${file:-}; file=$last; done
[ -e "$(dirname "$0")/fails" ] && exit 1
echo image >"$before"
"""


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of Apptainer, which notes how it is called."""
    program = tmp_path / "bin/apptainer"
    program.parent.mkdir()
    program.write_text(APPTAINER)
    program.chmod(0o755)
    program.with_name("version").write_text("apptainer version 1.4.2-1.el9\n")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.defpath}")
    return program.with_name("called")


@pytest.fixture
def empty(settings: Settings, tmp_path: Path) -> Settings:
    """Settings of a folder without images."""
    settings["SIF_DIR"] = str(tmp_path / "images")
    return settings


@pytest.mark.usefixtures("needs_process")
def test_built_once(empty: Settings, called: Path) -> None:
    """What is there is built again only where its source is another one; those for GPUs are built by default."""
    images.build(empty, [])
    images.build(empty, [])
    assert [source(line) for line in built(called)] == [
        *(f"BOOTSTRAP=docker FROM={empty[IMAGES[name].setting]}" for name in DEFAULT)
    ]
    empty["REDIS_IMAGE"] = "docker-archive:/shared/redis.tar"
    images.build(empty, [])
    assert [source(line) for line in built(called)[len(DEFAULT) :]] == [
        "BOOTSTRAP=docker-archive FROM=/shared/redis.tar"
    ]


def built(called: Path) -> list[str]:
    """The builds that Apptainer was called for."""
    return called.read_text().splitlines()


def source(line: str) -> str:
    """The agent and the source of a build, by its command line."""
    pairs = itertools.pairwise(line.split())
    return " ".join(word for option, word in pairs if option == "--build-arg" and "ROOT" not in word)


@pytest.mark.usefixtures("needs_process")
def test_by_time(empty: Settings, called: Path, tmp_path: Path) -> None:
    """An image that is older than its definition, its archive or its code is outdated, and built again."""
    archive = tmp_path / "redis.tar"
    archive.touch()
    empty["REDIS_IMAGE"] = f"docker-archive:{archive}"
    names = ["rules", "redis", "gateway"]
    images.build(empty, names)
    assert not any(IMAGES[name].is_outdated(empty) for name in names)
    os.utime(IMAGES["rules"].file(empty), (0, 0))
    future = time.time() + 60
    os.utime(archive, (future, future))
    assert {name for name in names if IMAGES[name].is_outdated(empty)} == {"rules", "redis"}
    said = warn_outdated(empty, ["cache", "queue", "gateway", "rules", "worker"])
    assert [f"make sif t={name}" in line for name, line in zip(["redis", "rules"], said, strict=True)] == [True, True]
    before = len(built(called))
    images.build(empty, names)
    assert len(built(called)) == before + 2


@pytest.mark.usefixtures("needs_process", "called")
def test_brought_by_hand(empty: Settings) -> None:
    """An image that was copied here is taken for one that was built from what is set now."""
    folder = Path(empty["SIF_DIR"])
    folder.mkdir()
    (folder / "redis.sif").touch()
    images.build(empty, ["redis"])
    assert [file.name for file in folder.iterdir()] == ["redis.sif"]


@pytest.mark.usefixtures("needs_process")
def test_half_built(empty: Settings, called: Path) -> None:
    """A build that fails leaves nothing, and the error names the setting of its source."""
    called.with_name("fails").touch()
    with pytest.raises(StackError, match="REDIS_IMAGE"):
        images.build(empty, ["redis"])
    assert [*Path(empty["SIF_DIR"]).iterdir()] == []


@pytest.mark.usefixtures("needs_process", "called")
def test_replaced(empty: Settings) -> None:
    """An image that is replaced is kept, for stacks run out of it; the one before that goes."""
    folder = Path(empty["SIF_DIR"])
    images.build(empty, ["redis"])
    (folder / "redis.sif").write_text("first")
    for name, kept in (("second", "first"), ("third", "image\n")):
        empty["REDIS_IMAGE"] = name
        images.build(empty, ["redis"])
        assert ((folder / "redis.sif").read_text(), (folder / "redis.before").read_text()) == ("image\n", kept)


@pytest.mark.usefixtures("needs_process", "called")
def test_killed_build(empty: Settings) -> None:
    """What a build left that was killed is removed by a later one; one that another node builds now stays."""
    folder = Path(empty["SIF_DIR"])
    folder.mkdir()
    left, current = folder / ".redis-n1-7.sif", folder / ".redis-n2-7.sif"
    left.touch()
    current.touch()
    os.utime(left, (0, 0))
    images.build(empty, ["redis"])
    assert (left.exists(), current.exists()) == (False, True)


def test_unknown(empty: Settings) -> None:
    """A name that is no image is refused with those that are."""
    with pytest.raises(StackError, match=r"no image 'judges' — the images are rules, redis"):
        images.build(empty, ["judges"])


def test_definitions() -> None:
    """Every definition says what it is for, is tested, and starts as an instance; its default is the table's."""
    for image in IMAGES.values():
        text = image.definition.read_text()
        for section in ("%arguments", "%labels", "%help", "%test", "%startscript"):
            assert f"\n{section}\n" in text, (image.name, section)
        if not image.name.endswith("-cpu"):
            assert f"    FROM={TABLE[image.setting].default}\n" in text


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize(
    ("said", "old"),
    [("apptainer version 1.1.9-1.el8\n", "1.1.9"), ("apptainer version 1.2.0\n", ""), ("apptainer version 2.0.1\n", ""),
     ("singularity version 3.8.7\n", ""), ("", "")],
)  # fmt: skip
def test_version(called: Path, said: str, old: str) -> None:
    """An Apptainer before 1.2 is refused with its version; one that does not tell its version is tried."""
    called.with_name("version").write_text(said)
    if old:
        with pytest.raises(StackError, match=rf"apptainer .* is {old}.* 1\.2"):
            images.runtime()
    else:
        assert images.runtime() == str(called.with_name("apptainer"))
