"""What mounts an image outlives a program that is killed; it is found, and ended."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.stack import processes
from services.stack.rundir import RunDir, Running, boot_id
from services.up.native.supervisor import Supervisor
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program of a session of its own that has mounted an image; it works in a directory of nobody's."""
    mounting = tmp_path / "squashfuse_ll"
    shutil.copy("/bin/sleep", mounting)
    command = ["/bin/sh", "-c", f"{mounting} 1000 & wait"]
    with subprocess.Popen(command, cwd="/", start_new_session=True) as started:
        eventually(lambda: mounting.name in {one.name for one in processes.members(started.pid)})
        yield started
        processes.end(lambda: processes.members(started.pid), 0)


def test_abandoned(leader: subprocess.Popen[bytes]) -> None:
    """The mount of a program that lives is none of those that are to be ended; once it was killed it is."""
    assert [*processes.orphaned_mounts(leader.pid)] == []
    leader.kill()
    leader.wait()
    assert [one.name for one in processes.orphaned_mounts(leader.pid)] == ["squashfuse_ll"]


def test_part_of_the_stack(leader: subprocess.Popen[bytes], run: RunDir) -> None:
    """Where supervisord was killed, what mounts its images is among what is left of the stack, and stopped with it."""
    run.save(Running(leader.pid, boot=boot_id(), gateway="", host="", ports={}, services=[], backend="apptainer"))
    leader.kill()
    leader.wait()
    assert len(Supervisor(run).members()) == 1
    Supervisor(run).stop()
    assert [*processes.members(leader.pid)] == []
