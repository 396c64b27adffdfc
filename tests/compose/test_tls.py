"""TLS at the gateway's published ports."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.stack import settings
from services.stack.rundir import ROOT, RunDir
from services.up.compose import composition
from tests.compose.config import services
from tests.support.certificates import certificate
from tests.support.compose import PORTS, ComposeStack


@pytest.fixture(scope="module")
def run_dir(needs_openssl: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with a certificate for localhost."""
    folder = tmp_path_factory.mktemp("run")
    composition.write_secrets(settings.load(ROOT, certificate(folder).settings), RunDir(str(folder)))
    return folder


@pytest.mark.usefixtures("needs_compose")
def test_published(run_dir: Path) -> None:
    """The ports that speak TLS are published, and no others."""
    gateway = services("compose.yaml", "compose.tls.yaml", RUN_DIR=str(run_dir))["gateway"]
    assert {(port["published"], port["target"]) for port in gateway["ports"]} == {
        ("6000", 6443),
        ("8600", 8445),
        ("8000", 8443),
        ("8080", 8444),
    }


@pytest.fixture(scope="module")
def gateway(needs_engine: None, run_dir: Path) -> Iterator[ComposeStack]:
    """A gateway with nothing behind it; its own health check speaks no TLS."""
    stack = ComposeStack((), COMPOSE_FILE="compose.yaml:compose.tls.yaml", RUN_DIR=str(run_dir))
    try:
        stack.run("up", "--detach", "--wait", "--no-deps", "gateway")
        yield stack
    finally:
        stack.stop()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("port", PORTS)
def test_served(gateway: ComposeStack, run_dir: Path, port: str) -> None:
    """A client that trusts the certificate is answered, and one without TLS is told that it needs some."""
    trusting = ssl.create_default_context(cafile=str(run_dir / "localhost.pem"))
    url = gateway.url(port).replace("http://127.0.0.1", "https://localhost")
    with urllib.request.urlopen(f"{url}/gateway/health", context=trusting, timeout=30) as reply:
        assert reply.status == 200

    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{gateway.url(port)}/gateway/health", timeout=30)
    with caught.value as refused:
        assert (refused.code, b"speaks TLS" in refused.read()) == (400, True)
