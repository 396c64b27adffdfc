"""`run_vllm_docker.sh` with a stub in docker's place: what it would run, and what it says."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from services.stack.settings import read_dotenv

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "services/judge/run_vllm_docker.sh"
SHIPPED = read_dotenv(ROOT / ".env")
NEEDED = ("sh", "sed", "grep", "head", "cut", "dirname", "mkdir", "hostname", "sleep", "python3")
DOCKER = """
printf '%s\\n' "$*" >>"$HERE/docker.log"
case "$1" in
    run) printf '%s\\n' "$@" >"$HERE/run"; export -p >"$HERE/variables" ;;
    inspect) echo "${RESTARTS:-0}" ;;
    ps) case "$*" in *label=*) echo "${OWN:-}" ;; *) echo "${THERE:-}" ;; esac ;;
    logs) echo "the container is out of memory" ;;
esac
"""


class Machine:
    """A machine with these programs alone.

    Args:
        folder: that holds them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in NEEDED:
            found = shutil.which(name)
            assert found is not None
            (folder / name).symlink_to(found)
        self.program("docker", DOCKER)
        self.program("curl", 'test -e "$HERE/run"')

    def program(self, name: str, script: str) -> None:
        """Put a program there."""
        (self.folder / name).write_text(f"#!/bin/sh\n{script}")
        (self.folder / name).chmod(0o755)

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Run the script to its end; returns its exit status and all that it said."""
        own = {"PATH": str(self.folder), "HOME": str(self.folder / "home"), "HERE": str(self.folder), **environment}
        done = subprocess.run(
            ["sh", str(SCRIPT), *arguments],
            cwd=self.folder,
            env=own,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout

    @property
    def arguments(self) -> list[str]:
        """What `docker run` was given."""
        return (self.folder / "run").read_text().splitlines()


@pytest.fixture
def machine(needs_process: None, tmp_path: Path) -> Machine:
    """A machine with docker and without a GPU."""
    return Machine(tmp_path)


def pairs(arguments: list[str]) -> set[tuple[str, str]]:
    """Each argument with the one after it."""
    return set(itertools.pairwise(arguments))


def test_gpu(machine: Machine) -> None:
    """On a GPU it is the original: its container name, its defaults, the image of `.env`, memory that is shared."""
    machine.program("nvidia-smi", "echo 'GPU 0: NVIDIA H200'")
    status, said = machine.run()
    assert status == 0, said
    given = pairs(machine.arguments)
    assert {("--name", "vllm-server"), ("--gpus", "all"), ("--shm-size", "8g")} <= given
    flags = f"{ROOT}/helm/rewardstack/files/judge/vllm-gpu.yaml:/etc/vllm.yaml:ro"
    assert {("--volume", flags), ("--config", "/etc/vllm.yaml"), ("--gpu-memory-utilization", "0.9")} <= given
    assert {(SHIPPED["VLLM_IMAGE"], "Qwen/Qwen3-32B"), ("--publish", "0.0.0.0:8000:8000")} <= given
    assert ("--volume", f"{machine.folder}/home/.cache/huggingface:/root/.cache/huggingface") in given
    assert "export LLM_JUDGE_SERVER_URL=http://localhost:8000\n" in said and "On other nodes:" in said


def test_processor(machine: Machine) -> None:
    """Without a GPU it is the image and the flags for processors."""
    assert machine.run()[0] == 0
    assert (SHIPPED["VLLM_CPU_IMAGE"], "Qwen/Qwen3-0.6B") in pairs(machine.arguments)
    assert ("--volume", f"{ROOT}/helm/rewardstack/files/judge/vllm-cpu.yaml:/etc/vllm.yaml:ro") in pairs(
        machine.arguments
    )
    assert not {"--gpus", "--gpu-memory-utilization"} & set(machine.arguments)


def test_originals_variables(machine: Machine) -> None:
    """The original's variables are all taken, and arguments come last, so that they win."""
    machine.program("nvidia-smi", "echo 'GPU 0: NVIDIA H200'")
    own = {"DTYPE": "bfloat16", "MAX_MODEL_LEN": "4096", "GPU_MEMORY_UTILIZATION": "0.5"}
    place = {"MODEL_ID": "org/m", "HOST": "127.0.0.1", "PORT": "9000"}
    status, said = machine.run("--reasoning-parser", "qwen3", **own, **place)
    given = pairs(machine.arguments)
    assert {("--dtype", "bfloat16"), ("--max-model-len", "4096"), ("--gpu-memory-utilization", "0.5")} <= given
    assert {(SHIPPED["VLLM_IMAGE"], "org/m"), ("--publish", "127.0.0.1:9000:8000")} <= given
    assert machine.arguments[-2:] == ["--reasoning-parser", "qwen3"]
    assert (status, "http://localhost:9000" in said, "On other nodes" in said) == (0, True, False)


def test_folder(machine: Machine) -> None:
    """A model in a folder is mounted, and served under the name that it was asked for by."""
    (machine.folder / "my model").mkdir()
    assert machine.run(MODEL_ID="my model")[0] == 0
    assert ("--volume", f"{machine.folder}/my model:/model:ro") in pairs(machine.arguments)
    assert {(SHIPPED["VLLM_CPU_IMAGE"], "/model"), ("--served-model-name", "my model")} <= pairs(machine.arguments)


def test_secrets(machine: Machine) -> None:
    """Key and token are files that the container reads, in no command line and no variable of it; or there are none."""
    status, said = machine.run(LLM_JUDGE_SERVER_API_KEY="hidden-key", HF_TOKEN="hidden-token")
    secrets = machine.folder / "home/.cache/rewardstack/secrets/vllm-server"
    files = {path.name: path.read_text() for path in secrets.iterdir()}
    assert files == {"VLLM_API_KEY": "hidden-key", "HF_TOKEN": "hidden-token"}
    assert [path.stat().st_mode & 0o077 for path in (secrets, *secrets.iterdir())] == [0, 0, 0]
    assert ("--volume", f"{secrets}:/run/secrets:ro") in pairs(machine.arguments)
    at = machine.arguments.index("/with_keys.sh")
    given = ["VLLM_API_KEY=/run/secrets/VLLM_API_KEY", "HF_TOKEN=/run/secrets/HF_TOKEN", "vllm", "serve"]
    assert machine.arguments[at + 1 : at + 5] == given
    assert not {"VLLM_API_KEY", "HF_TOKEN"} & set(machine.arguments)
    assert "hidden" not in (machine.folder / "docker.log").read_text() + said
    machine.run()
    assert "/with_keys.sh" not in machine.arguments
    assert ({path.read_text() for path in secrets.iterdir()}, status) == ({""}, 0)


def test_does_not_start(machine: Machine) -> None:
    """A container that dies ends the script with the last lines of its log, and is stopped."""
    machine.program("curl", "exit 7")
    status, said = machine.run(RESTARTS="1")
    assert status == 1
    assert "the container is out of memory" in said and "ERROR: the judge did not start" in said
    assert "stop vllm-server" in (machine.folder / "docker.log").read_text()


def test_a_container_of_somebody_else_stays(machine: Machine) -> None:
    """What has the name and was made by another is not removed; the message says what to do."""
    status, said = machine.run(THERE="0a1b")
    assert (status, "a container vllm-server exists that this script did not create" in said) == (1, True)
    assert not {"rm", "run"} & {line.split()[0] for line in (machine.folder / "docker.log").read_text().splitlines()}


def test_a_container_of_an_earlier_run_is_replaced(machine: Machine) -> None:
    """The script's own has its label, by which the next run knows it."""
    assert machine.run(THERE="0a1b", OWN="0a1b")[0] == 0
    assert "rm --force vllm-server" in (machine.folder / "docker.log").read_text().splitlines()
    assert ("--label", "rewardstack.launcher") in pairs(machine.arguments)


def test_no_engine(machine: Machine) -> None:
    """Without docker, or without its engine, the other script is named."""
    machine.program("docker", "exit 1")
    assert "ERROR: the Docker engine does not answer" in machine.run()[1]
    (machine.folder / "docker").unlink()
    status, said = machine.run()
    assert (status, "ERROR: docker is not installed" in said, "run_vllm_server.py" in said) == (1, True, True)


def test_shellcheck(needs_shellcheck: None) -> None:
    """shellcheck finds nothing in the scripts of services, examples and training data, and of Apptainer's way."""
    folders = [ROOT / name for name in ("services", "apptainer", "examples", "scripts")]
    found = [path for folder in folders for kind in ("*.sh", "*.sbatch") for path in folder.rglob(kind)]
    scripts = [str(path) for path in found if not path.is_symlink()]
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, env=os.environ, check=False)
    assert (done.returncode, done.stdout) == (0, "")
