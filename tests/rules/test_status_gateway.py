"""The status page through the gateway, which asks the reward server who may see it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.native.nginx import Gateway, load
from tests.rules.conftest import RewardServer

pytestmark = pytest.mark.usefixtures("needs_nginx")


@pytest.fixture(scope="module")
def url(guarded: RewardServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The gateway's address, with a server that has keys behind it."""
    behind = {"rules": [guarded.url.removeprefix("http://")]}
    keys = load(REWARD_SERVER_API_KEYS="first-key-of-tests,second-key-of-tests")
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), behind, keys)
    yield f"http://127.0.0.1:{gateway.ports['rules']}"
    gateway.stop()


def test_page(url: str) -> None:
    """A browser is told to ask for a password; with a key as that it has the page, and what guards it."""
    refused = requests.get(f"{url}/", timeout=60)
    shown = requests.get(f"{url}/", auth=("any", "second-key-of-tests"), timeout=60)

    assert refused.status_code == 401 and refused.headers["WWW-Authenticate"].startswith("Basic ")
    assert shown.status_code == 200 and "script-src 'sha256-" in shown.headers["Content-Security-Policy"]


def test_figures(url: str) -> None:
    """So it is with what the page shows."""
    reply = requests.get(f"{url}/v1/status", auth=("any", "first-key-of-tests"), timeout=60)

    assert requests.get(f"{url}/v1/status", timeout=60).status_code == 401
    assert reply.status_code == 200 and reply.headers["Cache-Control"] == "no-store"
    assert reply.json()["services"][0]["service"] == "reward server"
