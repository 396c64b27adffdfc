"""Which servers of other nodes are believed to live, and what is taken from their files."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.stack.rundir import ROOT
from services.up.native.watch import ALIVE_SECONDS, Replicas
from tests.support.replicas import VARIABLE, write
from tests.support.table import Table

ADDRESS = ["127.0.0.1:8000"]
CASES = json.loads((ROOT / "tests/cases/replicas.json").read_text())


class Scene:
    """A folder, a clock, and what was said."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self.said = folder, 1000.0, list[str]()
        self.replicas = Replicas(folder, VARIABLE, self.said.append, lambda: self.now)

    def beat(self, url: object = "http://127.0.0.1:8000", written: float = 1.0, name: str = "a") -> Path:
        """One heartbeat."""
        return write(self.folder / f"{name}.json", url, written)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Nothing yet."""
    return Scene(tmp_path)


@pytest.mark.parametrize("case", CASES["alive"], ids=lambda case: case["url"])
def test_alive(scene: Scene, case: dict[str, str]) -> None:
    """A server lives from the first heartbeat that is seen to change, by whatever clock, until there is none."""
    scene.beat(case["url"], written=5e9)
    assert scene.replicas.alive() == []
    scene.beat(case["url"], written=-3.0)
    assert scene.replicas.alive() == [case["address"]]
    scene.now += ALIVE_SECONDS - 1
    assert scene.replicas.alive() == [case["address"]]
    scene.now += 1
    assert scene.replicas.alive() == []


def test_listed(tmp_path: Path) -> None:
    """A restarted watcher keeps the gateway's replicas until their heartbeats could have been seen."""
    scene = Scene(tmp_path)
    listed = Replicas(tmp_path, VARIABLE, scene.said.append, lambda: scene.now, listed=frozenset(ADDRESS))
    scene.beat()
    scene.beat("http://127.0.0.1:9000", name="b")
    assert listed.alive() == ADDRESS
    scene.now += ALIVE_SECONDS
    assert listed.alive() == []


def test_gone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose file is gone is gone at once; the others stay, and while the storage is away they grow old."""
    for written in (1.0, 2.0):
        scene.beat(written=written)
        scene.beat("http://127.0.0.1:9000", written, "b")
        found = scene.replicas.alive()
    assert found == ["127.0.0.1:8000", "127.0.0.1:9000"]
    (scene.folder / "a.json").unlink()
    assert scene.replicas.alive() == ["127.0.0.1:9000"]
    away = SimpleNamespace(**{**vars(os), "listdir": stale, "open": stale})
    monkeypatch.setattr("services.up.native.watch.os", away)
    assert scene.replicas.alive() == ["127.0.0.1:9000"]
    scene.now += ALIVE_SECONDS
    assert scene.replicas.alive() == []


def stale(*_: object) -> None:
    """What a shared file system says whose server is away."""
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def test_moved(scene: Scene) -> None:
    """A server that restarts at another address under its name is found there immediately."""
    scene.beat()
    scene.replicas.alive()
    scene.beat("http://127.0.0.1:8001")
    assert scene.replicas.alive() == ["127.0.0.1:8001"]


def content(case: dict[str, Any]) -> str | None:
    """Of a file that is no replica's; None where only its URL is wrong."""
    return "[" * 50_000 if case.get("text") == "DEEP" else case.get("text")


def test_refused(tmp_path: Path, table: Table) -> None:
    """A file that is malformed names nobody, which is logged once, without what it holds."""
    for at, case in enumerate(CASES["refused"]):
        with table.case(case["what"]):
            (folder := tmp_path / str(at)).mkdir()
            scene = Scene(folder)
            for written in (1.0, 2.0, 3.0):
                path = scene.beat(case.get("url"), written)
                if (text := content(case)) is not None:
                    path.write_text(text)
                assert scene.replicas.alive() == []
            assert len(scene.said) == 1 and str(path) in scene.said[0]


@pytest.mark.parametrize("mode", CASES["modes"])
def test_open_to_others(scene: Scene, mode: str) -> None:
    """A file that others may read or write is not believed."""
    for written in (1.0, 2.0):
        scene.beat(written=written).chmod(int(mode, 8))
        assert scene.replicas.alive() == []
    assert "chmod 600" in scene.said[0]


def test_of_another_user(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that another user wrote."""
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for written in (1.0, 2.0):
        scene.beat(written=written)
        assert scene.replicas.alive() == []
    assert "must belong to this user" in scene.said[0]


def test_not_a_file(scene: Scene) -> None:
    """A pipe or a folder of that name is refused, and nobody waits for it."""
    os.mkfifo(scene.folder / "a.json", 0o600)
    (scene.folder / "b.json").mkdir()
    assert scene.replicas.alive() == []
    assert "a.json" in scene.said[0]
