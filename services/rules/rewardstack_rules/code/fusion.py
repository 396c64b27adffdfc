"""Run programs on SandboxFusion (github.com/bytedance/SandboxFusion), one request per process.

A request has the program, its input, and `inside.driver`, which limits and measures the program as `inside.launcher`
does for local programs.
SandboxFusion itself measures neither CPU time nor memory. It also truncates a long standard output without an error.
So the driver writes the program's output to a file, which the reply contains, and prints only its own report. Expected
outputs are never sent.
"""

from __future__ import annotations

import base64
import fcntl
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from rewardstack.core import event_loop
from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.errors import ReplyError
from rewardstack.settings_table import TABLE
from rewardstack.transport.http import open_session
from rewardstack.transport.message import Message
from rewardstack.transport.servers import Servers
from rewardstack.transport.service import find_service
from rewardstack_rules.code.inside.processes import FIXED
from rewardstack_rules.code.launcher import START, STARVED, Process, SandboxError, content, write

PATH = "/run_code"
RETRIES = "REWARDSTACK_MAX_RETRIES"
PACKAGE = Path(__file__).parents[1]
SENT = (
    *(f"code/inside/{name}.py" for name in ("driver", "processes", "programs", "values")),
    "isolation/process.py",
)
"""Modules that the driver needs; each request contains them."""
ARCHIVE, TASK = "rewardstack.zip", "task.json"
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
"""Environment variables that programs inherit from SandboxFusion."""
ENVIRONMENT = {**FIXED, "HOME": "/"}
"""Environment variables that programs get besides `KEPT`."""
CODE = f"""
import os, sys
if os.environ.get("PYTHONHASHSEED") != "0":
    kept = {{name: os.environ[name] for name in {KEPT!r} if name in os.environ}}
    os.execve(sys.executable, [sys.executable, "-s", *sys.argv], kept | {ENVIRONMENT})
sys.path.insert(0, os.path.abspath({ARCHIVE!r}))
from rewardstack_rules.code.inside.driver import main
main({TASK!r})
"""
"""The Python code of each request: restarts Python with the environment variables of `launcher` and runs the driver."""
DRIVER_SECONDS = 20.0
"""Seconds that the driver may take in addition to the program, before SandboxFusion stops it."""
REQUEST_SLACK = 30.0
"""Seconds that a request may take in addition to the program and the driver.

Requests also wait this long for SandboxFusion while it refuses connections.
"""
MESSAGE_CHARACTERS = 200
NOT_FUSION = "not a reply of SandboxFusion to /run_code"


class FusionLauncher:
    """Runs processes on SandboxFusion.

    A process has memory files. Those that are sealed against writing are its inputs; the others are its outputs.

    Args:
        urls: base URLs of equivalent servers.
    """

    is_shared = False

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = [url.removesuffix(PATH) for url in urls]
        self._max_retries = TABLE[RETRIES].read(os.environ.get(RETRIES, ""))
        self._service: Servers | None = None

    def start(self) -> None:
        """Do nothing: there is no launcher process."""

    def stop(self) -> None:
        """Do nothing: there is no launcher process."""

    def run(self, processes: Sequence[Process], wall: float) -> None:
        """Run a process, and set its result. The arguments are those of `Launcher.run`, with a single process.

        Raises:
            ServiceError: SandboxFusion gave no valid reply, after all retries.
            SandboxError: SandboxFusion did not run the process to its end.
        """
        [process] = processes
        timeout = STARVED * (process.cpu + START)
        inputs = [at for at, fd in enumerate(process.fds) if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE]
        outputs = [at for at in range(len(process.fds)) if at not in inputs]
        task = {
            "program": process.program,
            "options": process.options,
            "limits": {"cpu": process.cpu, "memory": process.memory, "output": process.output},
            "inputs": inputs,
            "outputs": outputs,
            "wall": wall,
            "timeout": timeout,
        }
        files = {str(at): content(process.fds[at], None) for at in inputs}
        files |= {TASK: json.dumps(task).encode(), ARCHIVE: _archive()}
        seconds = timeout + DRIVER_SECONDS
        body = {
            "language": "python",
            "code": CODE,
            "run_timeout": seconds,
            "files": {name: base64.b64encode(data).decode() for name, data in files.items()},
            "fetch_files": [*map(str, outputs)],
        }
        ran, found = event_loop.run(self._ask(json.dumps(body).encode(), seconds + REQUEST_SLACK))
        _read_report(process, ran, seconds)
        for at in outputs:
            write(process.fds[at], found.get(str(at), b""))

    async def _ask(self, body: bytes, seconds: float) -> tuple[Mapping[str, Any], Mapping[str, bytes]]:
        if self._service is None:
            service = partial(find_service, open_session())
            self._service = Servers(self._urls, "", service, 1, self._max_retries, refused_timeout=REQUEST_SLACK)
        deadline = SharedDeadline(Deadline(seconds, seconds))
        found: tuple[Mapping[str, Any], Mapping[str, bytes]] = await self._service.ask(
            Message("POST", PATH, body, read=_read), deadline
        )
        return found


@lru_cache
def _archive() -> bytes:
    """Return the modules of the driver as a ZIP file, from which Python can import them."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder in ("", "code/", "code/inside/", "isolation/"):
            archive.writestr(f"rewardstack_rules/{folder}__init__.py", "")
        for name in SENT:
            archive.writestr(f"rewardstack_rules/{name}", (PACKAGE / name).read_bytes())
    return file.getvalue()


def _read(reply: bytes) -> tuple[Mapping[str, Any], Mapping[str, bytes]]:
    """Return the field `run_result` of a reply, and the content of the fetched files by name.

    Raises:
        ReplyError: SandboxFusion reports its own failure, or the reply does not come from SandboxFusion.
    """
    try:
        found = json.loads(reply)
        if found["status"] == "SandboxError":
            raise ReplyError(f"SandboxFusion failed: {_last_line(found['message'])}")
        ran = found["run_result"]
        if found["status"] not in ("Success", "Failed") or not {"status", "stdout", "stderr"} <= ran.keys():
            raise ReplyError(NOT_FUSION)
        return ran, {name: base64.b64decode(data) for name, data in found["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ReplyError(NOT_FUSION) from error


def _read_report(process: Process, ran: Mapping[str, Any], seconds: float) -> None:
    """Set the result of a process from the driver's report; raise SandboxError if there is no valid report."""
    if ran["status"] == "TimeLimitExceeded":
        raise SandboxError(f"SandboxFusion stopped the program after {seconds:g} s")
    try:
        report = json.loads(str(ran["stdout"]).rstrip().rpartition("\n")[2])
        process.status, process.peak, process.killed = int(report["status"]), int(report["peak"]), str(report["killed"])
        process.used = float(report["used"])
        if ran["return_code"] != 0 or not 0 <= process.used < math.inf:
            raise ValueError("no report of the driver")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        why = _last_line(ran["stderr"]) or f"exit status {ran.get('return_code')}"
        raise SandboxError(f"SandboxFusion did not run the program to its end: {why}") from error


def _last_line(text: Any) -> str:
    return (str(text or "").strip().splitlines() or [""])[-1][-MESSAGE_CHARACTERS:]
