"""TLS at the gateway, alone and with the real services."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.stack import packages, template
from services.stack.rundir import RunDir
from services.up.native import health, stack
from services.up.native.stack import Stack
from services.up.native.supervisor import Supervisor
from tests.native.nginx import load
from tests.native.test_stack import pids
from tests.native.tree import Tree
from tests.support.certificates import Certificate, certificate
from tests.support.servers import free_port
from tests.support.table import Table
from tests.support.waiting import eventually

pytestmark = [pytest.mark.usefixtures("needs_stack", "needs_openssl"), pytest.mark.timeout(600)]


def shown(port: int) -> str:
    """Return the certificate that the gateway shows."""
    return ssl.get_server_certificate(("127.0.0.1", port))


def refuses_plain_http(port: int) -> None:
    """A request without TLS is answered by a sentence."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=60)
    with caught.value as reply:
        assert (reply.code, json.load(reply)) == (
            400,
            {"error": "this port speaks TLS: its address begins with https://"},
        )


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[tuple[RunDir, Supervisor]]:
    """A run directory, and what starts a stack there; the stack is gone at the end."""
    run = RunDir(str(tmp_path / "run"))
    run.make()
    made = Supervisor(run)
    yield run, made
    made.stop()


def write(run: RunDir, port: int, shows: Certificate) -> Stack:
    """Write the files of a stack of nothing but a gateway that shows a certificate."""
    settings = load(REWARD_PORT=port, PAGE_PORT=free_port(), **shows.settings)
    described = stack.describe(settings, run, stack.Runtime(packages.find()), [], None)
    described = replace(described, programs=[one for one in described.programs if one.name == "gateway"])
    described.secrets.write()
    template.write(described.files(run), run.path)
    return described


def test_renewal(supervisor: tuple[RunDir, Supervisor], tmp_path: Path) -> None:
    """The gateway shows its certificate, refuses plain HTTP with a sentence, and shows the certificate that follows."""
    (run, supervised), port = supervisor, free_port()
    first = certificate(tmp_path)
    supervised.start(dict(os.environ), write(run, port, first).to_state)
    running = run.load()
    assert running
    eventually(lambda: not health.problem("gateway", run, running))
    assert shown(port) == first.certificate.read_text()
    refuses_plain_http(port)

    second = certificate(tmp_path)
    write(run, port, second)
    supervised.reload_gateway()
    assert shown(port) == second.certificate.read_text()


def handshake(port: int, ciphers: str) -> str:
    """Return the cipher that the gateway picks of these in TLS 1.2; raise `ssl.SSLError` if it takes none."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", port)) as plain, client.wrap_socket(plain) as secure:
        chosen = secure.cipher()
    assert chosen is not None
    return chosen[0]


def test_ciphers(supervisor: tuple[RunDir, Supervisor], tmp_path: Path, table: Table) -> None:
    """In TLS 1.2 the gateway takes ciphers with forward secrecy and authenticated encryption, and no others."""
    (run, supervised), port = supervisor, free_port()
    supervised.start(dict(os.environ), write(run, port, certificate(tmp_path)).to_state)
    running = run.load()
    assert running
    eventually(lambda: not health.problem("gateway", run, running))
    for name in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"):
        with table.case(name):
            assert handshake(port, name) == name
    for name in ("AES128-SHA", "AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES128-SHA256"):
        with table.case(name), pytest.raises(ssl.SSLError):
            handshake(port, name)


@pytest.mark.nightly
def test_from_up_to_renewal(tree: Tree, tmp_path: Path) -> None:
    """With a certificate that signs itself every part speaks TLS; the same gateway shows the one that follows it."""
    first = certificate(tmp_path)
    tree.environment |= first.settings
    url = tree.url.replace("http://127.0.0.1", "https://localhost")
    port = int(tree.environment["REWARD_PORT"])

    up = tree.run("up")
    assert up.returncode == 0, up.stdout
    assert f"export REWARD_SERVER_URL={url}\n" in up.stdout
    assert f"export SSL_CERT_FILE={first.certificate}\n" in up.stdout
    assert shown(port) == first.certificate.read_text()
    before = pids(tree)
    assert len(before) == 5, tree.run("status").stdout
    given = json.loads((tree.path / ".run/programs/rules.json").read_text())["environment"]
    assert given["SSL_CERT_FILE"] == str(first.certificate)
    check(url, str(first.certificate))

    refuses_plain_http(port)

    second = certificate(tmp_path)
    assert tree.run("up").returncode == 0
    assert shown(port) == second.certificate.read_text()
    assert pids(tree)["gateway"] == before["gateway"]
    down = tree.run("down")
    assert (down.returncode, (tree.path / ".run/secrets/tls_key").exists()) == (0, False)


def check(url: str, trusted: str) -> None:
    """`rewardstack check --deep` finds nothing wrong."""
    command = [sys.executable, "-m", "rewardstack_cli", "check", "--deep"]
    environment = {**os.environ, "REWARD_SERVER_URL": url, "SSL_CERT_FILE": trusted}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
