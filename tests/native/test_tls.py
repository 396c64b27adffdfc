"""TLS at the gateway, with the real services."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.native.test_stack import pids
from tests.native.tree import Tree
from tests.support.certificates import certificate

pytestmark = [pytest.mark.usefixtures("needs_stack", "needs_openssl"), pytest.mark.timeout(600)]


def shown(tree: Tree) -> str:
    """The certificate that the gateway shows."""
    return ssl.get_server_certificate(("127.0.0.1", int(tree.environment["REWARD_PORT"])))


def test_from_up_to_renewal(tree: Tree, tmp_path: Path) -> None:
    """With a certificate that signs itself every part speaks TLS; the same gateway shows the one that follows it."""
    first = certificate(tmp_path)
    tree.environment |= first.settings
    url = tree.url.replace("http://127.0.0.1", "https://localhost")

    up = tree.run("up")
    assert up.returncode == 0, up.stdout
    assert f"export REWARD_SERVER_URL={url}\n" in up.stdout
    assert f"export SSL_CERT_FILE={first.certificate}\n" in up.stdout
    assert shown(tree) == first.certificate.read_text()
    before = pids(tree)
    assert len(before) == 5, tree.run("status").stdout
    given = json.loads((tree.path / ".run/programs/rules.json").read_text())["environment"]
    assert given["SSL_CERT_FILE"] == str(first.certificate)
    check(url, str(first.certificate))

    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{tree.url}/health", timeout=20)
    with caught.value as reply:
        assert (reply.code, json.load(reply)) == (
            400,
            {"error": "this port speaks TLS: its address begins with https://"},
        )

    second = certificate(tmp_path)
    assert tree.run("up").returncode == 0
    assert shown(tree) == second.certificate.read_text()
    assert pids(tree)["gateway"] == before["gateway"]
    down = tree.run("down")
    assert (down.returncode, (tree.path / ".run/secrets/tls_key").exists()) == (0, False)


def check(url: str, trusted: str) -> None:
    """`rewardstack check --deep` finds nothing wrong."""
    command = [sys.executable, "-m", "rewardstack", "check", "--deep"]
    environment = {**os.environ, "REWARD_SERVER_URL": url, "SSL_CERT_FILE": trusted}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
