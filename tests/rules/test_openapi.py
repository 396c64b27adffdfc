"""`GET /openapi.json` is true: it has what the server has, takes what trainers send, and gives what they are given."""

from __future__ import annotations

import re
from typing import Any

import pytest
import requests
from jsonschema import Draft202012Validator

from rewardstack.routing.routes import RULES
from tests.rules.conftest import ROOT, RewardServer
from tests.rules.test_protocols import CASES
from tests.support.table import Table

GATEWAY = (ROOT / "helm/rewardstack/files/gateway/rules.conf.template").read_text()
SCHEMAS = {
    "align_anything": ("AlignAnything", "Rewards"),
    "openrlhf": ("OpenRLHF", "Rewards"),
    "slime": ("Slime", "Rewards"),
    "nemo_gym": ("NeMoGymVerify", "NeMoGymReward"),
    "roll": ("RollTask", "RollReward"),
}
OTHERS = {
    "/seed_session": ("NeMoGymSession", "NeMoGymSeeded"),
    "/aggregate_metrics": ("NeMoGymVerified", "NeMoGymMetrics"),
}
"""Of a trainer's endpoints those with other schemas."""


@pytest.fixture(scope="module")
def document(server: RewardServer) -> dict[str, Any]:
    """The server's document."""
    found: dict[str, Any] = server.get("/openapi.json").json()
    return found


def fits(document: dict[str, Any], name: str, value: Any) -> bool:
    """Whether a value has the named schema."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    return Draft202012Validator(schema).is_valid(value)


def test_endpoints(server: RewardServer, document: dict[str, Any]) -> None:
    """It has exactly the endpoints and methods that the server has."""
    known = server.get("/nothing").json()["error"].partition("available: ")[2].split(", ")
    methods = {}
    for path in known:
        allow = requests.patch(server.url + path, timeout=60).headers["Allow"]
        methods[path] = set(allow.lower().split(", ")) - {"head", "options"}

    assert methods == {path: set(operations) for path, operations in document["paths"].items()}


def test_behind_the_gateway(document: dict[str, Any]) -> None:
    """The gateway lets all of them through, and nothing else."""
    exact = set(re.findall(r"location = (/\S*) +\{(?!\s+internal)", GATEWAY))
    patterns = [re.compile(one) for one in re.findall(r'location ~ "(\S+)"', GATEWAY)]
    paths = {path.replace("{job_id}", "0" * 32) for path in document["paths"]}

    assert exact == {path for path in paths if not any(one.search(path) for one in patterns)}


def test_reward_types(document: dict[str, Any]) -> None:
    """It names the reward functions of this server, built-in ones and others."""
    names = document["components"]["schemas"]["Slime"]["properties"]["reward_type"]["anyOf"][1]["anyOf"][0]["enum"]

    assert {*RULES, "concise", "hang"} <= set(names)


@pytest.mark.parametrize("trainer", SCHEMAS)
def test_cases(document: dict[str, Any], trainer: str, table: Table) -> None:
    """What trainers send and receive is what it says; a body it does not know is refused."""
    for case in CASES[trainer]:
        with table.case(case["case"]):
            body, reply = OTHERS.get(case["path"], SCHEMAS[trainer])
            if case["status"] == 400:
                assert fits(document, "Error", case["reply"])
            else:
                assert fits(document, body, case["body"])
                assert fits(document, reply if case["status"] == 200 else "Error", case["reply"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Slime", {"prompt": "p"}),
        ("AlignAnything", {"prompts": "p", "responses": ["r"]}),
        ("RollResult", {"reward_request_id": "x"}),
        ("Samples", {"items": [{"data_source": 3}]}),
        ("Samples", {"items": [{"data_source": "gsm8k", "extra_info": {"server_url": "http://x"}}]}),
        ("Scores", {"scores": [{"value": 1.0}]}),
    ],
)
def test_it_is_no_carte_blanche(document: dict[str, Any], name: str, value: Any) -> None:
    """It tells what is malformed."""
    assert not fits(document, name, value)
