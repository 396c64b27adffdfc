"""Which images are built, and from what."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.stack.errors import StackError
from services.stack.settings import Settings
from services.stack.settings_table import TABLE
from services.up.apptainer import images
from services.up.apptainer.images import BY_DEFAULT, IMAGES
from services.up.apptainer.plan import outdated

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
    """What is there is built anew only where its source is another one; those for GPUs are built by default."""
    images.build(empty, [])
    images.build(empty, [])
    assert [Path(line.split()[-1]).stem for line in called.read_text().splitlines()] == [*BY_DEFAULT]
    empty["REDIS_IMAGE"] = "docker-archive:/shared/redis.tar"
    images.build(empty, [])
    last = called.read_text().splitlines()[len(BY_DEFAULT) :]
    assert len(last) == 1 and "--build-arg BOOTSTRAP=docker-archive --build-arg FROM=/shared/redis.tar" in last[0]


@pytest.mark.usefixtures("needs_process")
def test_half_built(empty: Settings, called: Path) -> None:
    """A build that fails leaves nothing, and names the setting of its source."""
    called.with_name("fails").touch()
    with pytest.raises(StackError, match="REDIS_IMAGE"):
        images.build(empty, ["redis"])
    assert [*Path(empty["SIF_DIR"]).iterdir()] == []


@pytest.mark.usefixtures("needs_process", "called")
def test_outdated(empty: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that was built from something else is said before it runs, with what changed.

    One as it should be is not, nor is one that was brought by hand, of which nothing is known.
    """
    images.build(empty, ["rules", "redis", "gateway"])
    services = ["cache", "queue", "gateway", "rules", "worker"]
    assert outdated(empty, services) == []
    empty["REDIS_IMAGE"] = "redis:other"
    monkeypatch.setattr(images, "SOURCES", images.SOURCES[:1])
    of_redis, of_rules = outdated(empty, services)
    assert "redis.sif was built before REDIS_IMAGE changed" in of_redis and "make sif t=redis" in of_redis
    assert "rules.sif was built before the code of this tree changed" in of_rules
    for record in Path(empty["SIF_DIR"]).glob("*.built-from"):
        record.unlink()
    assert outdated(empty, services) == []


@pytest.mark.usefixtures("needs_process", "called")
@pytest.mark.parametrize("shared", [False, True], ids=["disk", "shared"])
def test_replaced(empty: Settings, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    """On a shared file system an image that is replaced is kept, for stacks run out of it; the one before that goes."""
    monkeypatch.setattr(images.node, "is_shared", lambda _: shared)
    folder = Path(empty["SIF_DIR"])
    images.build(empty, ["redis"])
    (folder / "redis.sif").write_text("first")
    for source, kept in (("second", "first"), ("third", "image\n")):
        empty["REDIS_IMAGE"] = source
        images.build(empty, ["redis"])
        before = folder / "redis.before"
        assert (folder / "redis.sif").read_text() == "image\n"
        assert (before.read_text() if before.exists() else None) == (kept if shared else None)


@pytest.mark.usefixtures("needs_process", "called")
def test_killed_build(empty: Settings) -> None:
    """What a build left that was killed is cleared by a later one; one that another node builds now stays."""
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
        text = image.definition_file.read_text()
        for section in ("%arguments", "%labels", "%help", "%test", "%startscript"):
            assert f"\n{section}\n" in text, (image.name, section)
        if not image.name.endswith("-cpu"):
            assert f"    FROM={TABLE[image.setting].default}\n" in text


def test_code_is_in_the_digest(empty: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image of the reward server is another one with other code, the others are not."""
    before = {name: image.wanted(empty) for name, image in IMAGES.items()}
    monkeypatch.setattr(images, "SOURCES", images.SOURCES[:1])
    changed = {name for name, image in IMAGES.items() if image.wanted(empty) != before[name]}
    assert changed == {"rules"}


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
