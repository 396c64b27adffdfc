"""A service is healthy only where its own processes hold its port: another user of the machine may have it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack import packages, ports, template
from services.stack.rundir import RunDir, Running, boot_id
from services.up.native import health, stack
from services.up.native.supervisor import State, Supervisor
from services.up.native.up import Startup, StartupTimeout, start
from tests.native.nginx import load
from tests.support.servers import free_port, wait_for_port
from tests.support.waiting import eventually


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run directory."""
    made = RunDir(str(tmp_path_factory.mktemp("run")))
    made.make()
    return made


@pytest.fixture
def unrelated(needs_process: None, tmp_path: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The port at which an unrelated process says that it is healthy, and the process."""
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway/health").write_text("ok")
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        wait_for_port(port)
        yield port, process
        process.kill()


@pytest.fixture
def gateway(
    needs_stack: None, run: RunDir, unrelated: tuple[int, subprocess.Popen[bytes]]
) -> Iterator[tuple[RunDir, Running]]:
    """A gateway under supervisord, whose port was taken after it was chosen."""
    described = stack.describe(
        load(REWARD_PORT=unrelated[0], PAGE_PORT=free_port()), run, stack.Runtime(packages.find()), [], None
    )
    described = replace(described, programs=[one for one in described.programs if one.name == "gateway"])
    described.secrets.write()
    template.write(described.files(run), run.path)
    supervisor = Supervisor(run)
    supervisor.start(dict(os.environ), described.to_state)
    running = run.load()
    assert running
    yield run, running
    supervisor.stop()


def test_taken_while_it_starts(gateway: tuple[RunDir, Running], unrelated: tuple[int, subprocess.Popen[bytes]]) -> None:
    """A port that is lost between check and bind ends `up`, which names the owner, even if that answers as healthy.

    Once the unrelated process is gone the gateway has its port, and is healthy.
    """
    (run, running), (port, process) = gateway, unrelated
    with pytest.raises(
        StartupTimeout, match=rf"REWARD_PORT: port {port} is taken by .*\(pid {process.pid}\)"
    ) as caught:
        Startup(run, load(UP_TIMEOUT=120)).wait()
    assert "give the stack another port" in str(caught.value)
    eventually(lambda: "is taken by" in health.problem("gateway", run, running))
    process.kill()
    process.wait()
    eventually(lambda: not health.problem("gateway", run, running))


@pytest.mark.usefixtures("needs_stack")
def test_a_stack_without_its_port_is_stopped(run: RunDir, unrelated: tuple[int, subprocess.Popen[bytes]]) -> None:
    """A stack whose port an unrelated process has is stopped: its workers would send that process keys and prompts."""
    with pytest.raises(StartupTimeout, match=f"REWARD_PORT: port {unrelated[0]} is taken by"):
        start(load(REWARD_PORT=unrelated[0], PAGE_PORT=free_port()), run, stack.Runtime(packages.find()), [])
    assert Supervisor(run).members() == [] and run.load() is None


def running(port: int) -> Running:
    """What is remembered of a stack in this process's session."""
    return Running(os.getsid(0), boot_id(), "", "127.0.0.1", ports={"REWARD_PORT": port}, services=["gateway"])


def test_whose(run: RunDir) -> None:
    """A port is a service's own if its process group holds it, else an unrelated process's, or free if none listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = running(server.getsockname()[1])
        assert f"(pid {os.getpid()})" in health.port_conflict("gateway", run, here)
        run.group_file("gateway").write_text(str(os.getpgrp()))
        assert health.unbound_reason("gateway", run, here) == ""
        assert health.unbound_reason("gateway", run, replace(here, host="localhost")) == ""
        assert health.port_conflict("gateway", run, replace(here, session=1)) != ""
    assert health.port_conflict("gateway", run, here) == ""
    assert "no process listens" in health.unbound_reason("gateway", run, here)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6 here")
def test_addresses() -> None:
    """The socket that is asked is that of the very address, else that of all; another address's is none of them."""
    with socket.create_server(("127.0.0.1", 0)) as four:
        port = four.getsockname()[1]
        own = f"socket:[{os.fstat(four.fileno()).st_ino}]"
        with socket.create_server(("::1", port), family=socket.AF_INET6) as six:
            assert [*ports.accepting_sockets("127.0.0.1", port)] == [own]
            assert [*ports.accepting_sockets("::1", port)] == [f"socket:[{os.fstat(six.fileno()).st_ino}]"]
            assert ports.accepting_sockets("127.0.0.2", port) == {}
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as every:
        assert len(ports.accepting_sockets("127.0.0.1", every.getsockname()[1])) == 1


@pytest.mark.parametrize(("state", "healthy"), [("RUNNING", True), ("STARTING", False), ("BACKOFF", False)])
def test_state(state: str, healthy: bool) -> None:
    """What supervisord does not have as running is not healthy, whatever is answered at its port."""
    assert (State("gateway", state, 1, 1).problem == "") == healthy
