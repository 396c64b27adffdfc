"""The supervisor starts when it is needed and ends when nobody is left who could need it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rewardstack.errors import ConfigError, UnreachableError
from rewardstack_rules.isolation import launch
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.launch import SupervisorHandle, start_supervisor, supervisor_handle
from tests.isolation.processes import MakeClient, alive, directory_of, supervisors_in
from tests.support.servers import free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("needs_process")

HERE = Path(__file__).parent
StartGunicorn = Callable[..., tuple[subprocess.Popen[str], str, Path]]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}

USER = """
import asyncio, os, sys
from rewardstack_rules.isolation.client import IsolationClient
from rewardstack_rules.isolation.config import IsolationConfig
from rewardstack_rules.isolation.launch import supervisor_handle

async def main():
    result, stats = await client.run({"with": 1}, timeout=60), await client.stats()
    print(result, stats["pid"], supervisor_handle(config).directory, flush=True)

config = IsolationConfig("isolation_entries:run", fast=1, slow=1)
client = IsolationClient(config)
asyncio.run(main())
"""


def run_user(*lines: str) -> tuple[int, Path]:
    """A process of its own that uses an isolation, and then these lines; the supervisor and its directory."""
    done = subprocess.run(
        [sys.executable, "-c", USER + "\n".join(lines)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, timeout=60
    )
    result, pid, directory = done.stdout.rsplit(maxsplit=2)
    assert result == "{'value': 1}"
    return int(pid), Path(directory)


@pytest.mark.parametrize("end", ["", "os._exit(3)", "os.kill(os.getpid(), 9)"], ids=["ends", "exits", "is killed"])
def test_single_process(end: str) -> None:
    """A process that prepared nothing has its own supervisor, which ends with it, however it ends."""
    supervisor, directory = run_user(end)
    eventually(lambda: not alive(supervisor) and not directory.exists())


def test_forked_process_keeps_it(tmp_path: Path) -> None:
    """A forked process inherits the lifeline: the supervisor ends when that one has gone, too."""
    path = tmp_path / "end"
    wait = f"while not os.path.exists({str(path)!r}): time.sleep(0.05)"
    supervisor, directory = run_user("import time", f"if os.fork() == 0:\n os.close(1)\n {wait}", "os._exit(0)")
    time.sleep(0.3)
    assert alive(supervisor)
    path.touch()
    eventually(lambda: not alive(supervisor) and not directory.exists())


def test_executed_process_does_not_keep_it(tmp_path: Path) -> None:
    """A program that the process starts does not inherit the lifeline."""
    path = tmp_path / "pid"
    start = "import subprocess; p = subprocess.Popen(['sleep', '600'], stdout=2, close_fds=False)"
    supervisor, directory = run_user(start, f"open({str(path)!r}, 'w').write(str(p.pid))", "os._exit(0)")
    program = int(path.read_text())
    try:
        eventually(lambda: not alive(supervisor) and not directory.exists())
        assert alive(program)
    finally:
        os.kill(program, signal.SIGKILL)


def test_fork_of_a_connected_process(make_client: MakeClient) -> None:
    """After a fork with an open connection both sides run tasks, on one supervisor, in any order."""
    client = make_client()
    parent = asyncio.new_event_loop()
    supervisor = parent.run_until_complete(_use(client))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, str([asyncio.run(_use(client)), asyncio.run(_use(client))]).encode())
            client.close()
        os._exit(0)
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    with open(reader) as answers:
        assert json.load(answers) == [supervisor, supervisor]
    assert parent.run_until_complete(asyncio.wait_for(_use(client), 60)) == supervisor
    client.close()
    parent.run_until_complete(asyncio.sleep(0))
    parent.close()


async def _use(client: IsolationClient) -> int:
    assert await client.run({"with": 1}, timeout=60) == {"value": 1}
    return (await client.stats())["pid"]


def test_fork_during_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is forked while a supervisor starts does not keep its parent from starting the next one."""
    home = SupervisorHandle(IsolationConfig("isolation_entries:run", fast=1, slow=1))
    launch_supervisor, (reader, writer), children = home._launch, os.pipe(), []

    def fork_and_launch() -> None:
        children.append(os.fork())
        if children[0] == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        launch_supervisor()

    monkeypatch.setattr(home, "_launch", fork_and_launch)
    home.start()
    monkeypatch.setattr(home, "_launch", launch_supervisor)
    [supervisor] = supervisors_in(home.directory)
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: not alive(supervisor))
    starting = threading.Thread(target=home.start)
    starting.start()
    starting.join(60)
    started = not starting.is_alive()
    os.close(writer)  # ends the forked process
    os.waitpid(children[0], 0)
    os.close(reader)
    starting.join()
    home.close()
    assert started


async def test_one_start_for_many(make_client: MakeClient) -> None:
    """Processes that find no supervisor at the same time start one, not several."""
    client = make_client()
    os.kill((await client.stats())["pid"], signal.SIGKILL)
    reader, writer = os.pipe()
    children = []
    for _ in range(4):
        children.append(os.fork())
        if children[-1] == 0:
            with contextlib.suppress(BaseException):
                os.write(writer, f"{asyncio.run(_use(client))}\n".encode())
            os._exit(0)
    os.close(writer)
    for child in children:
        os.waitpid(child, 0)
    with open(reader) as answers:
        supervisors = answers.read().split()
    assert supervisors == [str(await _use(client))] * 4
    assert supervisors_in(directory_of(client)) == [await _use(client)]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("isolation_entries:nothing", "AttributeError: module 'isolation_entries' has no attribute 'nothing'"),
        ("no_such_module:run", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_broken_entry(entry: str, why: str) -> None:
    """An entry that cannot be loaded is an error at the start, named, and leaves nothing behind."""
    config = IsolationConfig(entry)
    with pytest.raises(ConfigError, match="entry: ") as caught:
        start_supervisor(config)
    assert (caught.value.field, why in str(caught.value)) == ("entry", True)
    assert not supervisor_handle(config).directory.exists()
    supervisor_handle(config).close()


def test_cause_of_a_dead_zygote() -> None:
    """A supervisor that was busy while its zygote ended still reports why the entry cannot be loaded."""
    config = IsolationConfig("isolation_stopped:run")
    with pytest.raises(ConfigError, match="ImportError: it is gone"):
        start_supervisor(config)
    supervisor_handle(config).close()


async def test_no_start(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no supervisor can be had, that is an error of the infrastructure, not a result; later it may go again."""
    client = make_client()
    supervisor = (await client.stats())["pid"]
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: not alive(supervisor))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(UnreachableError, match="supervisor of .*isolation_entries:run: it did not start"):
            await client.run({}, timeout=60)
    assert await client.run({"with": 1}, timeout=60) == {"value": 1}


async def test_long_path(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where TMPDIR is too long for the path of a socket, tasks run in a directory of /tmp."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(launch.tempfile, "tempdir", str(long))
    client = make_client(slow=7)
    assert directory_of(client).parent == Path("/tmp")
    assert await client.run({"with": 1}, timeout=60) == {"value": 1}


def test_private(make_client: MakeClient) -> None:
    """Nobody but this user may enter the supervisor's directory."""
    assert directory_of(make_client()).stat().st_mode & 0o777 == 0o700


@pytest.fixture
def gunicorn(needs_process: None) -> Iterator[StartGunicorn]:
    """Starts gunicorn with two workers; its process, address and the supervisor's directory."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> tuple[subprocess.Popen[str], str, Path]:
        address = f"127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "gunicorn", "-w", "2", "-b", address, "-c", str(HERE / "isolation_app.py")]
        options = (*options, "--timeout", "0", "--no-control-socket", "isolation_app:app")
        started.append(subprocess.Popen([*command, *options], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        return started[-1], address, Path(started[-1].stdout.readline().split()[1])

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=30)


def ask(address: str) -> dict[str, Any]:
    """One request; waits until the server listens."""
    answers: list[dict[str, Any]] = []

    def is_answered() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/", timeout=60) as reply:
            answers.append(json.load(reply))
        return bool(answers)

    eventually(is_answered)
    return answers[0]


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_gunicorn_ends(gunicorn: StartGunicorn, end: signal.Signals) -> None:
    """When gunicorn's master is killed or stopped, the supervisor ends after the last worker."""
    process, address, directory = gunicorn()
    answer = ask(address)
    assert answer["result"] == {"value": "hello"}
    process.send_signal(end)
    eventually(lambda: not alive(answer["supervisor"]) and not directory.exists())


def test_gunicorn_recycles_workers(gunicorn: StartGunicorn) -> None:
    """Workers come and go, killed or recycled; the supervisor stays."""
    _, address, _ = gunicorn("--max-requests", "2")
    answers = [ask(address)]
    os.kill(answers[0]["worker"], signal.SIGKILL)  # which still had one request to answer
    answers += [ask(address) for _ in range(11)]
    assert len({answer["worker"] for answer in answers}) > 3
    assert len({answer["supervisor"] for answer in answers}) == 1


def test_gunicorn_restarts_the_supervisor(gunicorn: StartGunicorn) -> None:
    """A worker that finds the supervisor dead starts the next one for all; it does not hold the server's port."""
    process, address, directory = gunicorn()
    first = ask(address)["supervisor"]
    os.kill(first, signal.SIGKILL)
    supervisors = {ask(address)["supervisor"] for _ in range(6)}
    assert (len(supervisors), first in supervisors) == (1, False)
    [second] = supervisors
    inodes = set()
    for fd in os.listdir(f"/proc/{second}/fd"):
        with contextlib.suppress(FileNotFoundError):  # of a connection that has ended since
            inodes.add(os.readlink(f"/proc/{second}/fd/{fd}"))
    assert inodes.isdisjoint(_listening(address))
    process.kill()
    eventually(lambda: not alive(second) and not directory.exists())


def _listening(address: str) -> set[str]:
    """The sockets that listen on this address, as file descriptors name them."""
    port = f"0100007F:{int(address.partition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[1] == port and row[3] == "0A"}
