"""The scripts that run TEI's own images: the commands they print, on machines with any GPU or none."""

from __future__ import annotations

import os
import shlex
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.support.table import Table

pytestmark = pytest.mark.usefixtures("needs_process")

HERE = Path(__file__).resolve().parents[2] / "services/embedding"
DOCKER, APPTAINER = HERE / "run_tei_docker.sh", HERE / "run_tei_apptainer.sh"
IMAGE = "ghcr.io/huggingface/text-embeddings-inference"
SECRET = "hf_never_shown"

NVIDIA_SMI = """#!/bin/sh
case "$*" in
    *--list-gpus*) echo 'GPU 0: made up (UUID: GPU-0)' ;;
    *compute_cap*) echo {capability} ;;
esac
"""


def run(script: Path, folder: Path, capability: str = "", *arguments: str, **environ: str) -> list[str]:
    """The command that a script would run, on a machine whose GPU has a compute capability; empty for no GPU."""
    done = attempt(script, folder, capability, *arguments, **environ)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout
    return shlex.split(done.stdout)


def attempt(
    script: Path, folder: Path, capability: str, *arguments: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    """A script's dry run, with a made-up nvidia-smi and nothing of the tests' own environment."""
    programs = folder / "programs"
    programs.mkdir()
    if capability:
        (programs / "nvidia-smi").write_text(NVIDIA_SMI.format(capability=capability), encoding="ascii")
        (programs / "nvidia-smi").chmod(0o755)
    own = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), **environ}
    return subprocess.run([str(script), "--dry-run", *arguments], env=own, capture_output=True, text=True, check=False)


TAGS = {
    "": "cpu-1.9",
    "7.5": "turing-1.9",
    "8.0": "1.9",
    "8.6": "86-1.9",
    "8.9": "89-1.9",
    "9.0": "hopper-1.9",
    "10.0": "100-1.9",
    "12.0": "120-1.9",
}
"""The image's tag for each compute capability."""


def test_the_image_suits_the_gpu(tmp_path: Path, table: Table) -> None:
    """Each GPU gets the image that TEI builds for it, a machine without one the CPU's."""
    for script, (capability, tag) in product((DOCKER, APPTAINER), TAGS.items()):
        with table.case(f"{script.name} {capability}"):
            (folder := tmp_path / f"{script.name}-{capability}").mkdir()
            command = run(script, folder, capability)
            name = f"{IMAGE}:{tag}"
            assert name in command or any(name.replace("/", "_").replace(":", "_") in part for part in command)


@pytest.mark.parametrize("script", [DOCKER, APPTAINER], ids=["docker", "apptainer"])
def test_an_old_gpu_is_refused(script: Path, tmp_path: Path) -> None:
    """A GPU for which TEI builds no image ends the script with the remedy."""
    done = attempt(script, tmp_path, "7.0")
    assert done.returncode == 1
    assert "compute capability 7.0" in done.stderr
    assert "run_tei_python.py" in done.stderr


def test_docker_command(tmp_path: Path) -> None:
    """The container has the original's name, one GPU, the settings of the environment, and flags of the user last."""
    settings = {"MODEL_ID": "a/b", "PORT": "9090", "MAX_BATCH_TOKENS": "9", "MAX_CLIENT_BATCH_SIZE": "7", "DTYPE": "x"}
    command = run(DOCKER, tmp_path, "9.0", "--pooling", "cls", CUDA_VISIBLE_DEVICES="3,4", **settings)
    joined = " ".join(command)
    assert command[:2] == ["docker", "run"]
    assert "--name qwen3-embedding-server" in joined
    assert "--publish 0.0.0.0:9090:80" in joined
    assert "--gpus device=3" in joined
    flags = "--model-id a/b --dtype x --max-batch-tokens 9 --max-client-batch-size 7 --pooling cls"
    assert joined.endswith(f"{IMAGE}:hopper-1.9 {flags}")


def test_hidden_gpus_are_not_used(tmp_path: Path) -> None:
    """With CUDA_VISIBLE_DEVICES empty the CPU's image runs, in float32, without a GPU."""
    command = run(DOCKER, tmp_path, "9.0", CUDA_VISIBLE_DEVICES="")
    assert f"{IMAGE}:cpu-1.9" in command
    assert "--gpus" not in command
    assert command[command.index("--dtype") + 1] == "float32"


def test_apptainer_command(tmp_path: Path) -> None:
    """Nothing of home and environment leaks in, models are kept, and the GPU is passed where there is one."""
    command = run(APPTAINER, tmp_path, "8.0", PORT="9090")
    assert command[:5] == ["apptainer", "run", "--cleanenv", "--no-home", "--writable-tmpfs"]
    assert "--nv" in command
    assert f"{tmp_path}/.cache/rewardstack/tei/models:/data" in command
    assert command[command.index("--port") + 1] == "9090"


@pytest.mark.parametrize("script", [DOCKER, APPTAINER], ids=["docker", "apptainer"])
def test_secrets_are_not_shown(script: Path, tmp_path: Path) -> None:
    """Neither the hub's token nor the server's key stands in the command, which any user of the machine can list."""
    command = run(script, tmp_path, "", HF_TOKEN=SECRET, EMBEDDING_SERVER_API_KEY=SECRET)
    assert "HF_TOKEN" not in " ".join(command)


def test_docker_is_given_no_key(tmp_path: Path) -> None:
    """Nor in a variable of the container, which `docker inspect` shows: the server reads it from a file."""
    command = run(DOCKER, tmp_path, "", EMBEDDING_SERVER_API_KEY=SECRET)
    assert "API_KEY" not in command
    given = ["/with_keys.sh", "API_KEY=/run/secrets/API_KEY", "text-embeddings-router", "--model-id"]
    at = command.index(f"{IMAGE}:cpu-1.9")
    assert command[at + 1 : at + 5] == given


@pytest.mark.parametrize("script", [DOCKER, APPTAINER], ids=["docker", "apptainer"])
def test_a_folder_is_mounted(script: Path, tmp_path: Path) -> None:
    """A model in a folder, spaces in its name, is mounted and served under the name it was given."""
    folder = tmp_path / "my model; true"
    folder.mkdir()
    command = run(script, tmp_path, "", MODEL_ID=str(folder))
    assert f"{folder}:/model:ro" in command
    assert command[command.index("--served-model-name") + 1] == str(folder)


def test_a_custom_image(tmp_path: Path) -> None:
    """TEI_IMAGE in the environment is taken as it is, whatever the GPU."""
    assert "registry.local/tei:mine" in run(DOCKER, tmp_path, "7.0", TEI_IMAGE="registry.local/tei:mine")


def test_the_originals_name(tmp_path: Path) -> None:
    """deploy_tei_docker.sh runs the same command."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    home = {"HOME": str(tmp_path)}
    assert run(HERE / "deploy_tei_docker.sh", tmp_path / "one", "", **home) == run(DOCKER, tmp_path / "two", "", **home)


def test_scripts_are_clean(needs_shellcheck: None) -> None:
    """shellcheck finds nothing in them."""
    scripts = [str(path) for path in sorted(HERE.glob("*.sh"))]
    done = subprocess.run(["shellcheck", "-x", *scripts], capture_output=True, text=True, check=False, env=os.environ)
    assert (0, "") == (done.returncode, done.stdout)
