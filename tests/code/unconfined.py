"""Run attacks without any confinement, in a throwaway container, and print which of them work.

`docker run --rm --init --network none --memory 512m --pids-limit 512 --cap-add SYS_PTRACE --security-opt
seccomp=unconfined … python unconfined.py FILE…`, with the cases and this file mounted read-only. It needs the standard
library alone. Never run it outside of a container.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

SECONDS = 12
PRELUDE = """import builtins as _b, os as _o
def print(*words, _print=print, **options):
    if any(word in " ".join(map(str, words)) for word in ("BREACH", "can", "wrote")):
        _o.write(1, b"\\nBREACH\\n"); _o._exit(0)
    _print(*words, **options)
"""
"""Makes any success of an attack one line, `BREACH`."""


class Bait:
    """What attacks are after: a secret file, listeners, a process with a secret in its environment."""

    def __init__(self, folder: Path) -> None:
        self.secret = folder / "probe-secret"
        self.secret.write_text("TOPSECRET")
        self.secret.chmod(0o666)
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self._unix = socket.socket(socket.AF_UNIX)
        self._name = f"\0probe{os.getpid()}"  # tests of other processes have listeners, too
        self._unix.bind(self._name)
        self._unix.listen()
        for listener in (self._tcp, self._udp, self._unix):
            listener.setblocking(False)

    def close(self) -> None:
        """Stop listening."""
        for listener in (self._tcp, self._udp, self._unix):
            listener.close()

    def fill(self, source: str, server: int) -> str:
        """Return an attack with its targets."""
        for name, value in (
            ("UPORT", self._udp.getsockname()[1]),
            ("PORT", self._tcp.getsockname()[1]),
            ("SECRETFILE", self.secret),
            ("SERVERPID", server),
            (r"\0probe", self._name.replace("\0", r"\0")),
        ):
            source = source.replace(name, str(value))
        return source

    def touched(self) -> list[str]:
        """Return what attacks have reached or left behind."""
        found = []
        for listener, name in ((self._tcp, "tcp"), (self._unix, "unix")):
            try:
                listener.accept()[0].close()
                found.append(name)
            except BlockingIOError:
                pass
        if self.secret.read_text() != "TOPSECRET" or self.secret.stat().st_mode & 0o777 != 0o666:
            found.append("secret")
        for path in ("/tmp/probe-breach-w", "/dev/shm/probe-breach", "/breach.txt"):
            if os.path.exists(path):
                found.append(path)
        return found


def run(source: str) -> str:
    """Return what an attack came to: `breach`, `timeout`, or its exit status and output."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=tempfile.gettempdir(),
    )
    try:
        out = process.communicate(b"", SECONDS)[0]
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    return "breach" if b"BREACH" in out else f"exit {process.returncode}, {len(out)} bytes"


def main() -> None:
    """Print the outcome of each attack as JSON, by name."""
    assert Path("/.dockerenv").exists(), "only in a container"
    os.environ["TOPSECRET"] = "TOPSECRET"
    bait = Bait(Path(tempfile.gettempdir()))
    Path(tempfile.gettempdir(), "probe_module.py").write_text("")
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    threading.Thread(target=lambda: None).start()
    cases = [case for file in sys.argv[1:] for case in json.loads(Path(file).read_text())]
    print(json.dumps({case["name"]: run(bait.fill(case["source"], sleeper.pid)) for case in cases}, indent=1))
    sleeper.kill()


if __name__ == "__main__":
    main()
