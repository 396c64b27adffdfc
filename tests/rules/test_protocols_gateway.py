"""Trainers' protocols through the gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import requests

from tests.native.nginx import Gateway, load
from tests.rules.conftest import RewardServer
from tests.rules.test_protocols import CASES

pytestmark = pytest.mark.usefixtures("needs_nginx")


@pytest.fixture(scope="module")
def url(server: RewardServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The gateway's address, with the reward server behind it."""
    behind = {"rules": [server.url.removeprefix("http://")]}
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), behind, load())
    yield f"http://127.0.0.1:{gateway.ports['rules']}"
    gateway.stop()


@pytest.mark.parametrize("trainer", ["align_anything", "openrlhf", "slime", "nemo_gym"])
def test_first_case(url: str, trainer: str) -> None:
    """Every trainer is answered as it is without a gateway."""
    case = CASES[trainer][0]

    reply = requests.post(url + case["path"], json=case["body"], timeout=60)

    assert (case["status"], case["reply"]) == (reply.status_code, reply.json())


def test_reason(url: str) -> None:
    """Why a request is refused reaches the trainer's log, which shows the first line of the answer."""
    body = {"query": ["q"], "prompts": ["p"]}

    assert "'gsm9k' is not known" in requests.post(f"{url}/get_reward?reward_type=gsm9k", json=body, timeout=60).reason


def test_roll(url: str) -> None:
    """The body of a GET comes through."""
    case = CASES["roll"][0]
    ident = requests.post(url + case["path"], json=case["body"], timeout=60).json()["reward_request_id"]

    assert case["reply"] == requests.get(f"{url}/roll/result", json={"reward_request_id": ident}, timeout=60).json()


@pytest.mark.parametrize(
    ("given", "kept"), [("Trainer-7_step.3", True), ("a b", False), ("a" * 129, False), ("", False)]
)
def test_request_id(url: str, given: str, kept: bool) -> None:
    """The client's request id reaches the reward server; one that would not do is replaced at the gateway."""
    reply = requests.get(f"{url}/v1/reward_types", headers={"X-Request-Id": given}, timeout=60)

    ident = reply.headers["X-Request-Id"]
    assert (ident == given) is kept
    assert kept or re.fullmatch("[0-9a-f]{32}", ident)
