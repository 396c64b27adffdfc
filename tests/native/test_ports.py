"""A port that somebody else holds is named at once, and so is its holder."""

from __future__ import annotations

import errno
import os
import pwd
import socket
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.stack import ports, processes, settings
from services.stack.errors import COMMAND, StackError
from tests.native.tree import Tree
from tests.support.servers import free_port

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that this process listens on, on every address."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        yield server.getsockname()[1]


def take_only(monkeypatch: pytest.MonkeyPatch, *taken: int) -> None:
    """Have no other ports taken than these, whatever other processes listen on meanwhile."""
    refusal = ports._refusal
    monkeypatch.setattr(ports, "_refusal", lambda address, port: refusal(address, port) if port in taken else None)


GATEWAY = ("REWARD_PORT", "PAGE_PORT", "JUDGE_PORT", "EMBEDDING_PORT")
NAMES = (*GATEWAY, "CACHE_PORT", "QUEUE_PORT")
"""Every setting of a port that the native stack can have."""


def stack(**environ: object) -> dict[str, tuple[str, int]]:
    """The ports of a stack with all its services, free ones but for what a test changes."""
    values = {**{name: free_port() for name in NAMES}, **environ}
    return ports.native_ports(settings.load(ROOT, {name: str(value) for name, value in values.items()}), GATEWAY)


@pytest.mark.parametrize("name", NAMES)
def test_taken(taken: int, name: str) -> None:
    """The error names the variable, the port, the process and a way out."""
    with pytest.raises(StackError) as caught:
        ports.require_free(stack(**{name: taken}))
    message = str(caught.value)
    assert f"{name}: port {taken} is taken by" in message
    assert f"(pid {os.getpid()})" in message
    assert f"{name}=" in message.splitlines()[-1]


def test_every_taken_port_is_named(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every port that is taken is named, and one command starts the stack on ports that are free."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        second = other.getsockname()[1]
        take_only(monkeypatch, taken, second)
        with pytest.raises(StackError) as caught:
            ports.require_free(stack(REWARD_PORT=taken, JUDGE_PORT=second, EMBEDDING_PORT=taken))
    first, second_line, third, command = str(caught.value).splitlines()
    assert [line.split(" is taken")[0].strip() for line in (first, second_line)] == [
        f"REWARD_PORT: port {taken}",
        f"JUDGE_PORT: port {second}",
    ]
    assert third.strip() == f"REWARD_PORT and EMBEDDING_PORT are both {taken} — choose other ports:"
    assert f"\n{command}".startswith(COMMAND) and command.endswith(" make up")
    chosen = dict(word.split("=") for word in command.split()[:-2])
    assert {"REWARD_PORT", "JUDGE_PORT", "EMBEDDING_PORT"} <= {*chosen}
    ports.require_free(stack(**chosen))


def test_suggested_port_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that somebody holds, or that another setting names, is never suggested."""
    busy = {6000, 7000, 7001}
    monkeypatch.setattr(ports, "_refusal", lambda _, port: OSError(errno.EADDRINUSE, "") if port in busy else None)
    monkeypatch.setattr(ports, "listener", lambda port: ports.Listener("redis-server (pid 812)", "redis-server"))
    wanted = {"REWARD_PORT": ("127.0.0.1", 6000), "JUDGE_PORT": ("127.0.0.1", 7002)}
    with pytest.raises(StackError, match=r"choose other ports:\n +.*REWARD_PORT=7003 make up") as caught:
        ports.require_free(wanted)
    assert "stop Debian's own services: systemctl disable --now redis-server; or" in str(caught.value)


def test_holder_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a process that cannot be looked into, its user is named, and how Debian's own Redis is ended."""
    (tmp_path / "self/net").mkdir(parents=True)
    row = "0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 104 0 4711 1 0 100 0 0 10 0"
    (tmp_path / "self/net/tcp").write_text(f"sl local_address rem_address st\n{row}\n")
    monkeypatch.setattr(processes, "PROC", tmp_path)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name={104: "redis"}[uid]))
    monkeypatch.setattr(ports, "_refusal", lambda _, port: OSError(errno.EADDRINUSE, "") if port == 6379 else None)
    with pytest.raises(StackError, match=r"by a process of the user redis(.|\n)*disable --now redis-server"):
        ports.require_free({"CACHE_PORT": ("127.0.0.1", 6379)})
    assert ports.listener(6380) == ports.Listener("an unknown process")


def test_ports_of_containers() -> None:
    """Containers publish the gateway's ports, the cache's with its password alone, and those of monitoring."""
    plain = ports.compose_ports(settings.load(ROOT, {"CACHE_PORT": "6379", "BIND_ADDRESS": "0.0.0.0"}))
    assert plain == {name: ("0.0.0.0", port) for name, port in zip(GATEWAY, (6000, 8600, 8000, 8080), strict=True)}
    values = {"CACHE_PORT": "6379", "CACHE_PASSWORD": "sesame", "MONITORING": "on"}
    assert {*ports.compose_ports(settings.load(ROOT, values))} - {*GATEWAY} == {"CACHE_PORT", *ports.MONITORING}


def test_own_port(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that the running stack holds itself is no conflict."""
    take_only(monkeypatch, taken)
    ports.require_free(stack(REWARD_PORT=taken), [taken])


@pytest.mark.parametrize(("one", "other"), list(combinations(NAMES, 2)))
def test_one_port_twice(one: str, other: str) -> None:
    """Two settings cannot name one port."""
    port = free_port()
    with pytest.raises(StackError, match=f"{one} and {other} are both {port}"):
        ports.require_free(stack(**{one: port, other: port}))


def test_address_of_another_machine() -> None:
    """An address that this machine does not have is blamed on BIND_ADDRESS."""
    with pytest.raises(StackError, match=r"BIND_ADDRESS: 192\.0\.2\.1 is not an address of this machine"):
        ports.require_free(stack(BIND_ADDRESS="192.0.2.1"))


def test_address_of_another_machine_while_it_runs() -> None:
    """Its ports are held already, but not at that address."""
    ports_of = stack(BIND_ADDRESS="192.0.2.1")
    with pytest.raises(StackError, match="BIND_ADDRESS: 192.0.2.1 is not an address of this machine"):
        ports.require_free(ports_of, [port for _, port in ports_of.values()])


def test_no_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """An IPv6 address where there is no IPv6 is blamed on BIND_ADDRESS too."""

    def refused(family: int) -> None:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))

    monkeypatch.setattr(ports, "socket", SimpleNamespace(**{**vars(socket), "socket": refused}))
    with pytest.raises(StackError, match="BIND_ADDRESS: ::1 is not an address of this machine"):
        ports.require_free({"REWARD_PORT": ("::1", 6000)})


def test_ports_of_redis() -> None:
    """Cache and queue have a port where a setting names one, at the gateway's address."""
    assert stack(BIND_ADDRESS="0.0.0.0")["CACHE_PORT"][0] == "0.0.0.0"
    assert "QUEUE_PORT" not in stack(QUEUE_PORT="")


def test_make_up_names_the_holder(tree: Tree, taken: int) -> None:
    """`make up` fails before it starts anything."""
    result = tree.run("up", CACHE_PORT=str(taken))
    assert result.returncode == 1
    assert f"CACHE_PORT: port {taken} is taken by" in result.stdout
    assert tree.run("status").stdout.startswith("ERROR: nothing runs here")


def test_remedy_repeats_the_users_settings(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that a remedy names has the settings that the user gave, and shows no secret."""
    given = {"STACK": "native", "JUDGE_VLLM_ARGS": "--a b", "REWARD_SERVER_API_KEYS": "sesame-of-the-tests-1"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StackError) as caught:
        ports.require_free(stack(REWARD_PORT=taken))
    command = str(caught.value).splitlines()[-1]
    assert "STACK=native" in command and "JUDGE_VLLM_ARGS='--a b'" in command and command.endswith(" make up")
    assert "REWARD_SERVER_API_KEYS=..." in command and "sesame" not in command
