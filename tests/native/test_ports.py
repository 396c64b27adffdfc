"""A port that somebody else holds is named at once, and so is its holder."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from services.stack import ports, settings
from services.stack.errors import StackError
from tests.native.tree import Tree
from tests.support.servers import free_port

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that this process listens on, on every address."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        yield server.getsockname()[1]


GATEWAY = ("REWARD_PORT", "JUDGE_PORT", "EMBEDDING_PORT")
NAMES = (*GATEWAY, "CACHE_PORT", "QUEUE_PORT")
"""Every setting of a port that the native stack can have."""


def stack(**environ: object) -> dict[str, tuple[str, int]]:
    """The ports of a stack with all its services, free ones but for what a test changes."""
    values = {**{name: free_port() for name in NAMES}, **environ}
    return ports.wanted(settings.load(ROOT, {name: str(value) for name, value in values.items()}), GATEWAY)


@pytest.mark.parametrize("name", NAMES)
def test_taken(taken: int, name: str) -> None:
    """The error names the variable, the port, the process and a way out."""
    with pytest.raises(StackError) as caught:
        ports.require_free(stack(**{name: taken}))
    message = str(caught.value)
    assert f"{name}: port {taken} is taken by" in message
    assert f"(pid {os.getpid()})" in message
    assert f"{name}=" in message.splitlines()[1]


def test_own_port(taken: int) -> None:
    """A port that the running stack holds itself is no conflict."""
    ports.require_free(stack(REWARD_PORT=taken), [taken])


@pytest.mark.parametrize(("one", "other"), list(combinations(NAMES, 2)))
def test_one_port_twice(one: str, other: str) -> None:
    """Two settings cannot name one port."""
    port = free_port()
    with pytest.raises(StackError, match=f"{one} and {other} are both {port}"):
        ports.require_free(stack(**{one: port, other: port}))


def test_address_of_another_machine() -> None:
    """An address that this machine does not have is blamed on BIND_ADDRESS."""
    with pytest.raises(StackError, match=r"BIND_ADDRESS: 192\.0\.2\.1 is no address of this machine"):
        ports.require_free(stack(BIND_ADDRESS="192.0.2.1"))


def test_ports_of_redis() -> None:
    """Cache and queue have a port where a setting names one, at the gateway's address."""
    assert stack(BIND_ADDRESS="0.0.0.0")["CACHE_PORT"][0] == "0.0.0.0"
    assert "QUEUE_PORT" not in stack(QUEUE_PORT="")


def test_make_up_names_the_holder(tree: Tree, taken: int) -> None:
    """`make up` fails before it starts anything."""
    result = tree.run("up", CACHE_PORT=str(taken))
    assert result.returncode == 1
    assert f"CACHE_PORT: port {taken} is taken by" in result.stdout
    assert tree.run("status").stdout.startswith("error: nothing runs here")
