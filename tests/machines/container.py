"""A machine as a container, on which a person at a terminal types."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from services.models.environment import Models, is_ready
from services.stack import settings, venv
from services.stack.rundir import ROOT
from tests.machines import images
from tests.machines.images import said
from tests.machines.situation import Situation, Step, plain

WIDTH, HEIGHT = 80, 24
INTERRUPT = b"\x03"
EXIT_SECONDS = 20.0
CERTIFICATE = "/etc/pip-certificates.crt"
"""Where a machine finds the certificates that pip trusts on this one; Debian has its own in another place."""
SHARED_MEMORY = "--shm-size=2g"
"""As much as a machine has that is no container; a situation's own option beats it."""


def lacks(situation: Situation) -> str:
    """What this machine has not that a situation needs; empty where nothing is missing."""
    if situation.python and not _python(situation.python):
        return f"no Python {situation.python} in ~/.pyenv here"
    if situation.models and not is_ready(_models()):
        return "the model servers are not installed here: make models, or MODELS_DIR"
    return ""


class Machine:
    """A container that runs, with the checkout in it.

    Args:
        name: of the container.
        situation: how it is made.
    """

    def __init__(self, name: str, situation: Situation) -> None:
        self.name = name
        self._situation = situation

    def type(self, step: Step) -> tuple[int | None, float, str]:
        """Type a line at a terminal of 80 columns, and wait for its end.

        Returns:
            Its exit status (None where it did not end in time), the seconds it took, and all that was shown.
        """
        # Not the time is tried here, on a machine that may have other work.
        given = {"UP_TIMEOUT": "600", **self._situation.environment}
        if self._situation.models:
            given = {"MODELS_DIR": str(_models().folder.resolve()), **given}
        if self._situation.python:
            given = {"PYTHON": f"{_python(self._situation.python)}/bin/python3", **given}
        environment = [part for name, value in given.items() for part in ("--env", f"{name}={value}")]
        place = ["--user", step.by or self._situation.user, "--workdir", self._situation.tree]
        command = ["docker", "exec", "--interactive", "--tty", *place, *environment, self.name, "sh", "-c", step.type]
        began = time.monotonic()
        status, shown = _at_a_terminal(command, step)
        return status, time.monotonic() - began, shown

    def root(self, line: str, folder: str = "") -> None:
        """Run a shell line as root.

        Args:
            line: of the shell.
            folder: in which it runs; empty: that of the tree.

        Raises:
            RuntimeError: it failed; with what it said.
        """
        said(["docker", "exec", "--workdir", folder or self._situation.tree, self.name, "sh", "-ec", line])


@contextlib.contextmanager
def running(situation: Situation) -> Iterator[Machine]:
    """A machine as a situation wants it, gone afterwards.

    Raises:
        RuntimeError: it could not be started or broken; with the output.
    """
    image = _set_up(situation) if situation.setup else images.image(situation.machine, situation.packages)
    with _started(situation, image, situation.options) as machine:
        for line in situation.spoil:
            machine.root(line)
        yield machine


@contextlib.contextmanager
def _started(situation: Situation, image: str, own: Sequence[str]) -> Iterator[Machine]:
    """A machine that is not broken yet, with the checkout in it, which is removed afterwards."""
    machine = Machine(f"{images.REPOSITORY}-{situation.name}-{os.getpid()}", situation)
    with tempfile.TemporaryDirectory() as folder:
        pip = Path(folder) / "pip.conf"
        pip.write_text(images.pip_file(images.pip_settings(), CERTIFICATE))
        options = ["--init", SHARED_MEMORY, *_mounts(situation, pip), *own]
        try:
            said(["docker", "run", "--detach", "--name", machine.name, *options, image, "sleep", "infinity"])
            _check_out(machine, situation)
            yield machine
        finally:
            subprocess.run(["docker", "rm", "--force", "--volumes", machine.name], capture_output=True, check=False)


def _set_up(situation: Situation) -> str:
    """The tag of an image in which `.venv` stands where the checkout will be; made where it is not there."""
    base = images.image(situation.machine, situation.packages)
    sources = [source.read_text(encoding="utf-8") for source in venv.SOURCES]
    tag = images.tagged(situation.machine, base, situation.user, situation.tree, situation.python, *sources)
    if not images.exists(tag):
        with _started(replace(situation, environment={}), base, ()) as machine:
            status, _, shown = machine.type(Step("make setup"))
            if status != 0:
                raise RuntimeError(f"make setup: {plain(shown)[-2000:]}")
            machine.root("find . -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -r {} +")
            said(["docker", "commit", machine.name, tag])
    return tag


def _mounts(situation: Situation, pip: Path) -> list[str]:
    """The options of `docker run` that show the machine what it may know of this one; nothing can be written there."""
    shown = {str(path): str(path) for path in images.named_paths(images.pip_settings())}
    shown[str(pip)] = "/etc/pip.conf"
    if certificate := images.pip_settings().get("cert"):
        shown[certificate] = CERTIFICATE
    if situation.python:
        # At the same path: its interpreter looks for its library there.
        shown[str(_python(situation.python))] = str(_python(situation.python))
    if situation.models:
        models = _models()
        interpreter = Path(models.python).resolve().parent.parent
        shown |= {str(path): str(path) for path in (models.folder.resolve(), interpreter)}
    return [part for here, there in shown.items() for part in ("--volume", f"{here}:{there}:ro")]


def _python(version: str) -> Path | None:
    """The folder of a Python of this machine."""
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*"))
    return found[-1] if found else None


def _models() -> Models:
    return Models(ROOT / settings.load(ROOT)["MODELS_DIR"])


def _check_out(machine: Machine, situation: Situation) -> None:
    """The files of this tree that git knows or would take, the uncommitted ones as well, in the hands of the user."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = [name for name in said(listed).split("\0") if name and (ROOT / name).exists()]
    user, tree = situation.user, situation.tree
    if user != "root":
        machine.root(f"id {user} >/dev/null 2>&1 || useradd --create-home {user}", "/")
    said(["docker", "exec", machine.name, "mkdir", "-p", tree])
    pack = ["tar", "-C", str(ROOT), "--no-recursion", "-c", "--null", "-T", "-"]
    packed = subprocess.run(pack, input="\0".join(files).encode(), capture_output=True, check=True).stdout
    unpack = ["docker", "exec", "--interactive", machine.name, "tar", "-C", tree, "--no-same-owner", "-x"]
    subprocess.run(unpack, input=packed, capture_output=True, check=True)
    said(["docker", "exec", machine.name, "chown", "-R", user, tree])


def _at_a_terminal(command: list[str], step: Step) -> tuple[int | None, str]:
    """Run a command at a terminal of its own.

    Returns:
        Its exit status, None where it did not end in `step.seconds`, and all that the terminal was sent.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        try:
            ended, shown = _watch(ours, step.interrupt, step.seconds)
            if not ended:
                # What hangs may say what it was at, and is ended inside the container, too.
                os.write(ours, INTERRUPT)
                shown += _watch(ours, "", EXIT_SECONDS)[1]
                process.kill()
            status = process.wait()
            return status if ended else None, shown
        finally:
            os.close(ours)


def _watch(terminal: int, awaited: str, seconds: float) -> tuple[bool, str]:
    """Whether a terminal's other side was closed in so many seconds, and what it was sent until then.

    Args:
        terminal: the descriptor on this side.
        awaited: Ctrl-C is typed once this was seen; empty: never.
        seconds: that are waited at most.
    """
    shown = b""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        if not select.select([terminal], [], [], left)[0]:
            continue
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # the other side is closed
            return True, shown.decode(errors="replace")
        if awaited and plain(awaited) in plain(shown.decode(errors="replace")):
            awaited = ""
            os.write(terminal, INTERRUPT)
    return False, shown.decode(errors="replace")
