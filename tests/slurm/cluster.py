"""A Slurm cluster of several logical nodes in a container, in which an ordinary user submits jobs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from services.stack.rundir import ROOT
from services.stack.settings_table import TABLE
from services.stack.template import fill
from services.up.apptainer.images import IMAGES
from tests.apptainer.running_stack import TOOL, USER, copy_of_the_tree
from tests.support.servers import free_port
from tests.support.waiting import eventually

HERE = Path(__file__).parent
NODES = ("n1", "n2", "n3")
BUILT = ("rules", "redis", "gateway")
START_SECONDS = 300.0
"""For the container's image, the first time."""
JOB_SECONDS = 400.0
COMMAND_SECONDS = 900.0
NOTHING: Mapping[str, str] = MappingProxyType({})
GIVEN = {
    "APPTAINER_TMPDIR": "/scratch",
    "APPTAINER_MKSQUASHFS_ARGS": "-comp zstd -Xcompression-level 1",
    "SERVER_GRES": "",
    "TRAINER_GRES": "",
    "JUDGE": "off",
    "EMBEDDING": "off",
}


class Cluster:
    """The cluster, with a copy of the tree on storage that all nodes share.

    Args:
        folder: for the copy and for what the daemons say.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree, self._own = folder, folder / "tree", folder / "daemons"
        self.jobs = self.tree / "apptainer/jobs"
        for made in (self.tree, self._own):
            made.mkdir(parents=True)
        copy_of_the_tree(self.tree)
        # Programs in images see the services' folder alone.
        for judge in (self.judge, self.loading_judge):
            shutil.copy(HERE / "fake_judge.py", judge)
            judge.chmod(0o755)
        nodes = [
            f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={free_port()} CPUs=4" for node in NODES
        ]
        values = {"CONTROL_PORT": str(free_port()), "NODE": nodes}
        (self._own / "slurm.conf").write_text(fill((HERE / "slurm.conf.template").read_text(), values))
        subprocess.run(["chown", "-R", f"{USER}:{USER}", folder], check=True)
        self._process = subprocess.Popen(
            [TOOL, "bash", str(self.tree / HERE.relative_to(ROOT) / "cluster.sh"), str(self._own)],
            cwd=folder,
            env={**os.environ, "AS_ROOT": "1"},
        )

    @property
    def judge(self) -> Path:
        """What takes vLLM's place."""
        return self.tree / "services/fake_judge.py"

    @property
    def loading_judge(self) -> Path:
        """The same, which never has its model."""
        return self.judge.with_name("loading_judge.py")

    def wait(self) -> None:
        """Until every node is there."""
        eventually(lambda: self._container() or self._process.poll() is not None, seconds=START_SECONDS)
        self._id = self._container()
        eventually(lambda: self.run("sinfo -h -N -o %t", check=False).split() == ["idle"] * len(NODES))

    def _container(self) -> str:
        found = ["docker", "ps", "--quiet", "--filter", f"volume={self.folder}"]
        return subprocess.run(found, capture_output=True, text=True, check=True).stdout.strip()

    def prepare(self) -> None:
        """Build the images out of this machine's engine; the judge's is one that runs what it is given."""
        sources = {}
        for name in BUILT:
            setting, archive = IMAGES[name].setting, self.tree / f"{name}.tar"
            subprocess.run(["docker", "save", "--output", archive, TABLE[setting].default], check=True)
            archive.chmod(0o644)
            sources[setting] = f"docker-archive:{archive}"
        self.run(f"apptainer/stack.sh build {' '.join(BUILT)}", given=sources)
        self.run("ln apptainer/images/rules.sif apptainer/images/judge-cpu.sif; apptainer/stack.sh setup")
        self._before = {*self._files()}

    def start(self, command: str, user: str = "user", given: Mapping[str, str] = NOTHING) -> subprocess.Popen[str]:
        """Start a command of a user in the tree, with these variables; what it says on stderr comes with stdout."""
        own = {**GIVEN, "JUDGE_CPU_MODEL": str(self.judge), "HOME": f"/home/{user}", "USER": user, **given}
        told = [part for name, value in own.items() for part in ("--env", f"{name}={value}")]
        as_user = ["--user", user, "--workdir", str(self.tree), *told]
        return subprocess.Popen(
            ["docker", "exec", *as_user, self._id, "bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str, user: str = "user", check: bool = True, given: Mapping[str, str] = NOTHING) -> str:
        """Run it to its end; returns what it said."""
        with self.start(command, user, given) as process:
            said, _ = process.communicate(timeout=COMMAND_SECONDS)
        assert process.returncode == 0 or not check, said[-5000:]
        return said

    def submit(self, *what: str, **given: str) -> int:
        """Submit a job as the page says; returns its number."""
        said = self.run(shlex.join(["apptainer/slurm/submit.sh", *what]), given=given)
        [number] = re.findall(r"^job (\d+)$", said, re.MULTILINE)
        return int(number)

    def said(self, job: int | str) -> str:
        """What a job has printed; of an array's first task by `NUMBER_1`."""
        file = self.tree / f"slurm-{job}.out"
        return file.read_text(errors="replace") if file.exists() else ""

    def shown(self, job: int, field: str) -> str:
        """What Slurm knows of a job, such as its JobState."""
        return re.findall(rf"\b{field}=(\S+)", self.run(f"scontrol --oneliner show job {job}"))[0]

    def until_ended(self, job: int) -> str:
        """Wait until a job has ended; returns its state."""
        running = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")
        eventually(
            lambda: self.shown(job, "JobState") not in running and not self.run(f"squeue -h -j {job}", check=False),
            lambda: self.said(job),
            JOB_SECONDS,
        )
        return self.shown(job, "JobState")

    def endpoints(self, job: int) -> Path:
        """Wait until a stack is up; returns the file that says where."""
        file = self.jobs / str(job) / "endpoints.json"
        eventually(file.exists, lambda: self.said(job), JOB_SECONDS)
        return file

    def left(self) -> list[str]:
        """What is left on the nodes and on shared storage: processes and files of the user, but for folders' keys."""
        processes = self.run("ps -u user -o stat=,args=", user="root", check=False).splitlines()
        return [line for line in processes if line[0] != "Z"] + [
            file for file in self._files() if file not in self._before
        ]

    def _files(self) -> list[str]:
        own = "find /tmp /var/tmp /dev/shm /scratch /home/user -xdev -user user"
        jobs = f"find {self.jobs} -mindepth 1 -not -path '*/judges' -not -path '*/judges/key'"
        return self.run(f"{own}; [ ! -e {self.jobs} ] || {jobs}", user="root", check=False).splitlines()

    def stop(self) -> None:
        """It is gone."""
        if container := self._container():
            subprocess.run(["docker", "stop", "--time", "1", container], capture_output=True, check=True)
        self._process.wait()
        shutil.rmtree(self.folder)
