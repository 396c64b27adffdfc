"""Watch the services while they run: `python -m services.up.native.watch RUN_DIR`.

supervisord runs this process next to the services, and restarts services that exit. Every few seconds, this process
starts services that supervisord no longer restarts (FATAL), kills services that hang, updates the gateway's lists of
model servers on other nodes, renews the endpoints file that trainers read, and rotates the logs.

A model server on another node writes its endpoint and heartbeat to a file on shared storage. A file is trusted only if
the user owns it and no other user can access it. Of the URL in a file, only the host (which is resolved) and the port
are used. A server counts as alive while its heartbeat keeps changing. The time in the heartbeat is not compared with
the clock of this node, because the clocks of nodes differ.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import stat
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from services.gateway.config import NO_SERVER
from services.stack import processes, template
from services.stack.errors import StackError
from services.stack.os_errors import explain_os_error
from services.stack.rundir import RunDir
from services.up.apptainer import endpoints
from services.up.native.health import hung_reason
from services.up.native.supervisor import Supervisor

INTERVAL_SECONDS = 5.0
LOG_BYTES = 10_000_000
"""Size in bytes above which a log is rotated. One earlier file is kept."""
ALIVE_SECONDS = 30.0
"""Seconds without a new heartbeat after which a server counts as gone."""
MAX_FILE_BYTES = 65_536
"""Maximum size of an endpoints file in bytes."""
SUFFIX = ".json"
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def log(text: str) -> None:
    """Print a line to the log. Ignore errors, such as a closed output."""
    with suppress(OSError):
        print(text, flush=True)


@dataclass
class HungServices:
    """Kills services that run but do not answer.

    A service that has never been healthy since its start is not killed, because it may be loading a model.

    Args:
        run: run directory of the stack.
        seconds: seconds without an answer after which a service is killed; 0 to kill none.
    """

    run: RunDir
    seconds: float
    _healthy: dict[tuple[str, int], float] = field(default_factory=dict)
    """Time when each process was last healthy, by service and process id."""

    def check(self) -> None:
        """Probe every running service, and kill services that hang."""
        running = self.run.load()
        if running is None or not self.seconds:
            return
        found = [(state.name, state.pid) for state in Supervisor(self.run).states() if state.state == "RUNNING"]
        self._healthy = {process: when for process, when in self._healthy.items() if process in found}
        found = [(name, pid) for name, pid in found if name in running.services]
        with ThreadPoolExecutor(max(len(found), 1)) as pool:  # a hung service answers no sooner than the timeout
            problems = [*pool.map(lambda service: hung_reason(service[0], self.run, running), found)]
        for (name, pid), problem in zip(found, problems, strict=True):
            now = time.monotonic()
            if not problem:
                if (name, pid) not in self._healthy:
                    log(f"{name} (pid {pid}) is healthy")
                self._healthy[name, pid] = now
            elif now - self._healthy.get((name, pid), now) >= self.seconds:
                log(f"{name} (pid {pid}) has not been healthy for {self.seconds:g} s and is killed: {problem}")
                processes.end_group(pid, running.session)


class InvalidFile(ValueError):
    """Raised for a file that is not a valid endpoints file. The message has the reason."""


@dataclass(frozen=True)
class Server:
    """A model server on another node.

    Args:
        url: URL in the server's file.
        written: time of the last heartbeat, by the clock of the server's node.
        address: IP address and port in nginx syntax.
        changed_at: time when the heartbeat last changed, by this process's clock. Until the first change, it is minus
            infinity, because the file may be left over from a dead server; see `Replicas.listed` for an exception.
    """

    url: str
    written: float
    address: str
    changed_at: float = -math.inf


@dataclass
class Replicas:
    """Watches one folder of endpoints files.

    Args:
        folder: folder with a file for each server.
        variable: name of the URL in these files. It is the client's variable, such as LLM_JUDGE_SERVER_URL.
        log: called with a message, once for each problem of a file.
        clock: returns the time in seconds.
        listed: addresses in the gateway's list when this process starts. These servers count as alive for
            `ALIVE_SECONDS` after this process first reads their files.
    """

    folder: Path
    variable: str
    log: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    listed: frozenset[str] = frozenset()
    _seen: dict[str, Server] = field(default_factory=dict)
    _logged: set[str] = field(default_factory=set)

    def alive(self) -> list[str]:
        """Return the addresses of the servers that are alive, sorted."""
        now = self.clock()
        try:
            names = sorted(name for name in os.listdir(self.folder) if name.endswith(SUFFIX))
        except OSError:
            # The storage does not answer. Known servers count as alive until ALIVE_SECONDS after their last heartbeat.
            names = sorted(self._seen)
        self._seen = {name: server for name in names if (server := self._read_server(name, now))}
        return sorted({server.address for server in self._seen.values() if now - server.changed_at < ALIVE_SECONDS})

    def _read_server(self, name: str, now: float) -> Server | None:
        last = self._seen.get(name)
        try:
            url, written = read(self.folder / name, self.variable)
            known = last and last.url == url
            address = last.address if last and known else resolve(url)
            initial = now if address in self.listed else -math.inf
            changed_at = last.changed_at if last and known and last.written == written else now if last else initial
            return Server(url, written, address, changed_at)
        except FileNotFoundError:
            return None
        except OSError:
            return last
        except InvalidFile as error:
            if (text := f"{self.folder / name}: {error}") not in self._logged:
                self._logged.add(text)
                self.log(text)
            return None


def read(path: Path, variable: str) -> tuple[str, float]:
    """Return the URL of a server and its heartbeat.

    Args:
        path: path of the server's file.
        variable: name of the URL in the file, such as LLM_JUDGE_SERVER_URL.

    Raises:
        InvalidFile: the file is not private to the user, or is malformed.
        OSError: the file cannot be read.
    """
    # O_NONBLOCK: do not wait for a writer if the file is a pipe.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise InvalidFile(f"it must belong to this user and have mode 600 (chmod 600 {path})")
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InvalidFile(f"it is longer than {MAX_FILE_BYTES} bytes")
    try:
        found: dict[str, Any] = json.loads(content)
        url, written = found["servers"][variable], found["written"]
        if isinstance(url, str) and not isinstance(written, bool) and math.isfinite(written):
            return url, float(written)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        pass
    raise InvalidFile(f"it is not an endpoints file with {variable}")


def resolve(url: str) -> str:
    """Return the IP address and port of a URL `http://HOST:PORT` in nginx syntax.

    Raises:
        InvalidFile: the URL has another form, or its host is unknown.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    plain = url.lower() in (f"http://{host}:{port}", f"http://[{host}]:{port}")
    if not plain or not port or not (HOST.fullmatch(host) or ":" in host):
        raise InvalidFile("the URL of its server is not of the form http://HOST:PORT")
    try:
        [family, _, _, _, (address, *_)], *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InvalidFile(f"the host {host} is not known here") from None
    return f"[{address}]:{port}" if family == socket.AF_INET6 else f"{address}:{port}"


class Upstream:
    """The gateway's list of a service's servers, including replicas on other nodes.

    Args:
        run: run directory of the stack.
        file: name of the gateway's file with the list.
        text: template of the file, with the variable SERVER for the servers.
        own: addresses of this stack's servers.
        folder: folder with an endpoints file for each replica on another node.
        variable: name of the URL in these files, such as LLM_JUDGE_SERVER_URL.
    """

    def __init__(self, run: RunDir, file: str, text: str, own: list[str], folder: str, variable: str) -> None:
        self._file, self._text, self._own = run.path / file, text, own
        # Keep the servers that are in the gateway's list, so that a restart of this process does not remove them before
        # their next heartbeats.
        listed = re.split(r"[\s;]+", self._file.read_text(encoding="utf-8"))
        self._replicas = Replicas(Path(folder), variable, log, listed=frozenset(listed))

    def update(self) -> bool:
        """Write the gateway's file if the list of servers has changed. Return whether the list has changed."""
        alive = self._replicas.alive()
        text = template.fill(self._text, {"SERVER": [*self._own, *alive] or [NO_SERVER]})
        if self._file.read_text(encoding="utf-8") == text:
            return False
        template.write({f"{self._file.name}.new": text}, self._file.parent)
        os.replace(f"{self._file}.new", self._file)
        log(f"servers in {self._replicas.folder}: {', '.join(alive) or 'none'}")
        return True


class Discovery:
    """Keeps the gateway's lists of servers in sync with the folders of replicas.

    Args:
        run: run directory of the stack.
        upstreams: arguments of `Upstream` for each service with replicas on other nodes, as JSON.
    """

    def __init__(self, run: RunDir, upstreams: str) -> None:
        self._run = run
        self._upstreams = [Upstream(run, **arguments) for arguments in json.loads(upstreams)]
        self._is_due = False
        """Whether the gateway still has to load the written files."""

    def check(self) -> None:
        """Update the lists, and reload the gateway if a list changed. The next check retries a failed reload."""
        for upstream in self._upstreams:
            self._is_due |= upstream.update()
        if self._is_due:
            Supervisor(self._run).reload_gateway()
            self._is_due = False


def renew_endpoints(run: RunDir) -> None:
    """Renew the endpoints file, if this stack has published one."""
    if problem := endpoints.renew(run):
        log(f"endpoints file removed: {problem}")


def rotate_logs(run: RunDir) -> None:
    """Rename large logs and make supervisord open new ones, so that no line is lost."""
    large = [file for file in run.logs.glob("*.log") if file.stat().st_size > LOG_BYTES]
    for file in large:
        file.replace(file.with_name(f"{file.name}.1"))
    if large:
        Supervisor(run).reopen_logs()


def _repeat(task: Callable[[], None]) -> None:
    """Run a task periodically. After an unexpected exception, exit the process, which supervisord then restarts."""
    while True:
        try:
            task()
        except (StackError, OSError) as error:
            log(str(explain_os_error(error)))
        except Exception:  # noqa: BLE001 - any unexpected error
            traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
            os._exit(1)
        time.sleep(INTERVAL_SECONDS)


def main(folder: str) -> None:
    """Watch until supervisord stops this process."""
    run = RunDir(folder)
    tasks = (
        Supervisor(run).restart_failed,
        HungServices(run, float(os.environ["UNHEALTHY_TIMEOUT"])).check,
        Discovery(run, os.environ["discovery"]).check,  # noqa: SIM112 - `make up` prints this name after a change
        partial(renew_endpoints, run),
        partial(rotate_logs, run),
    )
    # Each task has its own thread, so that a service that does not answer cannot delay the endpoints file's heartbeat.
    threads = [threading.Thread(target=_repeat, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()  # at the end of the main thread, thread pools stop


if __name__ == "__main__":
    main(sys.argv[1])
