"""`GET /v1/status` and `GET /`: what they tell, to whom, and that nothing but the page's own script can run there."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests
from jsonschema import Draft202012Validator

from rewardstack.cause import Cause
from rewardstack.score import STATUSES
from tests.page.stack import SCRIPT
from tests.rules.conftest import RewardServer
from tests.rules.test_operations import metric
from tests.support.waiting import eventually

RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "runbook.md"
RIGHT = {"data_source": "gsm8k", "solution_str": "#### 1", "ground_truth": "1"}
GUARDS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}


def told(server: RewardServer) -> dict[str, Any]:
    """Return a report that the server made after this was called; it keeps one for a second."""
    asked, found = round(time.time(), 3), list[dict[str, Any]]()

    def is_new() -> bool:
        found.append(server.get("/v1/status").json())
        return bool(found[-1]["at"] >= asked)

    eventually(is_new)
    return found[-1]


def test_figures_are_those_of_metrics(server: RewardServer) -> None:
    """Samples, by route and status, since the start and in the last hour, are as many as `/metrics` tells."""
    server.score(RIGHT, RIGHT, {**RIGHT, "ground_truth": None})

    status, text = told(server), server.get("/metrics").text

    assert status["routes"]
    for one in status["routes"]:
        for name in STATUSES:
            labels = f'{{route="{one["route"]}",status="{name}"}}'
            assert one["hour"][name] == one["total"][name] == metric(text, f"rewardstack_samples_total{labels}")
            assert sum(one["minutes"][name]) == one["hour"][name]


def test_form(server: RewardServer) -> None:
    """The reply is what the OpenAPI document says."""
    server.score(RIGHT)
    document = server.get("/openapi.json").json()
    schema = {"$ref": "#/components/schemas/StatusReport", "components": document["components"]}

    assert not list(Draft202012Validator(schema).iter_errors(told(server)))


def test_one_server_alone(server: RewardServer) -> None:
    """Without a Redis the figures are this server's, and it says so; minutes before its start are not counted in."""
    scope = told(server)["scope"]

    assert scope["shared"] is False and "REWARD_CACHE_URL is not set" in scope["note"]
    assert [one["asked"] for one in scope["replicas"]] == [True]
    started = psutil.Process(server.process.pid).create_time()
    assert started - 2 <= scope["since"] <= time.time()  # the kernel rounds the time


def test_causes(server: RewardServer) -> None:
    """Samples without a score of their own are told by cause, with the minute of the last, and no word of theirs."""
    minute = time.time() // 60 * 60
    server.score({"data_source": "rule_remote_raises", "solution_str": SCRIPT, "ground_truth": SCRIPT})
    server.score({**RIGHT, "ground_truth": None}, {**RIGHT, "solution_str": 42})

    reply = told(server)
    found = {(one["cause"], one["route"], one["status"]): one for one in reply["causes"]}

    assert ("function_raised", "rule:raises", "failed") in found
    missing = found["no_reference", "rule:gsm8k", "unscored"]
    assert missing["description"] == "the reference is missing"
    assert minute <= missing["last_minute"] <= time.time()
    assert "document.title" not in str(reply)


@pytest.mark.parametrize("path", ["/", "/v1/status"])
def test_keys(guarded: RewardServer, path: str) -> None:
    """Where there are keys one is asked for: as a password, or as other requests have it."""
    assert guarded.get(path).status_code == 401
    assert guarded.get(path, auth=("any", "wrong")).status_code == 401
    assert guarded.get(path, auth=("any", "first-key-of-tests")).status_code == 200
    assert guarded.get(path, headers={"Authorization": "Bearer second-key-of-tests"}).status_code == 200


def test_browsers_are_asked_for_a_password(guarded: RewardServer) -> None:
    """Only the page makes a browser ask for a password: other routes are for programs, which read the refusal."""
    assert guarded.get("/").headers["WWW-Authenticate"].startswith('Basic realm="rewardstack')
    assert guarded.get("/v1/status").headers["WWW-Authenticate"] == "Bearer"


def test_policy(server: RewardServer) -> None:
    """The policy allows the page's own script and style, by their hashes, and no others, inline or external."""
    reply = server.get("/")
    policy = dict(part.strip().partition(" ")[::2] for part in reply.headers["Content-Security-Policy"].split(";"))
    hashes = {
        f"{tag}-src": f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for tag, text in re.findall(r"(?s)<(script|style)>(.*?)</\1>", reply.text)
    }

    assert hashes == {name: policy[name] for name in ("script-src", "style-src")}
    assert (
        policy.pop("default-src")
        == policy["base-uri"]
        == policy["form-action"]
        == policy["frame-ancestors"]
        == "'none'"
    )
    assert policy["connect-src"] == "'self'" and policy["img-src"] == "data:"
    assert not re.search(r"<[^<>]*\s(?:style|on\w+)=", reply.text.partition("<script>")[0])


@pytest.mark.parametrize("path", ["/", "/v1/status"])
def test_guards(server: RewardServer, path: str) -> None:
    """Nothing is kept by the browser, guessed to be of another kind, or told to other sites."""
    reply = server.get(path)

    assert {name: reply.headers[name] for name in GUARDS} == GUARDS


def test_page_asks_nobody_else(server: RewardServer) -> None:
    """The page names no other host, and puts nothing into itself as markup."""
    text = server.get("/").text

    assert set(re.findall(r"https?://[^\s\"'`)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", text)


def test_many_viewers_share_one_report(server: RewardServer) -> None:
    """Who asks within the same second is given the same report by a process."""
    with requests.Session() as session:
        times = sorted({session.get(f"{server.url}/v1/status", timeout=60).json()["at"] for _ in range(20)})

    # Of three reports of two processes, two are of the same one.
    assert all(later - earlier > 0.9 for earlier, later in zip(times, times[2:], strict=False))


def test_causes_are_documented() -> None:
    """The runbook lists all causes, with their descriptions; there are no more than a metric can have labels."""
    rows = "".join(f"| `{cause.value}` | {cause.description} |\n" for cause in Cause)
    assert f"| cause | description |\n| --- | --- |\n{rows}" in RUNBOOK.read_text()
    assert len(Cause) < 40
