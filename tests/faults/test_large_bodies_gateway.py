"""Large bodies at the gateway: what one server broke off at is not given to the next."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.native.nginx import Gateway, load
from tests.native.test_gateway import ITEM, Scene
from tests.support.servers import fault_server
from tests.support.table import Table

LARGE = 1_000_000
"""Bytes, from which on a body is tried once."""
PATHS = ["/v1/score", "/v1/explain", "/get_reward", "/roll/submit", "/roll/result"]
PATHS += ["/verify", "/seed_session", "/aggregate_metrics"]


@pytest.fixture
def scene(needs_nginx: None, tmp_path: Path) -> Iterator[Scene]:
    """A gateway before three servers."""
    with ExitStack() as stack:
        servers = [stack.enter_context(fault_server()) for _ in range(3)]
        gateway = Gateway(tmp_path, {"rules": [f"127.0.0.1:{server.port}" for server in servers]}, load())
        stack.callback(gateway.stop)
        yield Scene(gateway, servers)


def body(size: int) -> bytes:
    """A batch of one sample, in so many bytes."""
    return json.dumps({"items": [ITEM]}).encode().ljust(size)


def ask(scene: Scene, size: int, chunked: bool) -> tuple[int, dict[str, object], str | None]:
    """Status, body and Retry-After of the answer to a batch of a length, or sent in chunks."""
    sent = iter([body(size)]) if chunked else body(size)
    with closing(http.client.HTTPConnection("127.0.0.1", scene.gateway.ports["rules"], timeout=60)) as connection:
        connection.request("POST", "/v1/score", sent, {"Content-Type": "application/json"}, encode_chunked=chunked)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read()), reply.headers["Retry-After"]


@pytest.mark.parametrize(
    ("size", "chunked", "tries"), [(LARGE - 1, False, 2), (LARGE, False, 1), (2 * LARGE, False, 1), (1000, True, 1)]
)
def test_tries(scene: Scene, size: int, chunked: bool, tries: int) -> None:
    """Where servers break off at a large body, or one of unknown length, the first is the last; a small one has two."""
    for server in scene.servers:
        server.set(mode="drop")

    status, said, retry = ask(scene, size, chunked)

    assert (status, retry) == (502, "1")
    assert said == {"error": "the reward server does not answer the gateway; try again"}
    assert sum(scene.requests()) == tries


@pytest.mark.parametrize(("size", "chunked"), [(LARGE, False), (1000, True)])
def test_a_server_that_is_gone(scene: Scene, size: int, chunked: bool) -> None:
    """A server that takes no connection was given nothing, and costs no request, however large."""
    scene.servers[0].kill()

    assert [ask(scene, size, chunked)[0] for _ in range(6)] == [200] * 6


@pytest.mark.parametrize(("size", "chunked"), [(LARGE - 1, False), (3 * LARGE, False), (3 * LARGE, True)])
def test_nothing_on_the_disk(scene: Scene, tmp_path: Path, size: int, chunked: bool) -> None:
    """The gateway writes no body into a file: it needs no folder for them."""
    shutil.rmtree(tmp_path / "tmp" / "body")

    assert ask(scene, size, chunked)[0] == 200


def test_paths(scene: Scene, table: Table) -> None:
    """Every endpoint that takes bodies takes large ones, and no other path does."""
    answers = {}
    for path in PATHS:
        scene.gateway.ask(path, body(LARGE), headers={"Content-Type": "application/json"})
        answers[path] = scene.gateway.ask(f"{path}/", body(LARGE), headers={"Content-Type": "application/json"})
    asked = scene.gateway.stop().splitlines()
    for path, (status, text) in answers.items():
        with table.case(path):
            assert (status, "no such path" in text) == (404, True)
            assert any(f"POST {path} " in line and "upstream=127.0.0.1" in line for line in asked)
