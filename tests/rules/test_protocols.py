"""Trainers' protocols, by the cases in `tests/cases/protocols/`: what each trainer sends, and what it is answered."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import requests

from rewardstack.settings import DEFAULTS
from rewardstack_rules.http.app import create_app
from rewardstack_rules.http.protocols.scoring import drop_server_fields
from rewardstack_rules.settings import Settings
from tests.client.judge.conftest import FAKE_JUDGE
from tests.rules.conftest import ROOT, RewardServer
from tests.support.servers import FaultServer
from tests.support.table import Table

CASES = {path.stem: json.loads(path.read_text()) for path in (ROOT / "tests/cases/protocols").glob("*.json")}
VERIFIED: dict[str, Any] = {"responses_create_params": {}, "response": {"output": []}}
JSON = {"Content-Type": "application/json"}


def roll_result(server: RewardServer, ident: Any, method: str = "GET") -> requests.Response:
    """What ROLL asks for a result: JSON in the body of a GET."""
    url, body = f"{server.url}/roll/result", json.dumps({"reward_request_id": ident})
    return requests.request(method, url, data=body, headers=JSON, timeout=60)


def never_ends(case: dict[str, Any]) -> bool:
    """Whether no sample of a case ever ends."""
    return "the sample took longer than 1 s" in json.dumps(case["reply"])


@pytest.mark.parametrize("trainer", ["align_anything", "openrlhf", "slime", "nemo_gym"])
def test_one_answer(server: RewardServer, hasty: RewardServer, trainer: str, table: Table) -> None:
    """The reply is the case's, key by key in their order."""
    for case in CASES[trainer]:
        with table.case(case["case"]):
            reply = (hasty if never_ends(case) else server).post(case["path"], case["body"])

            assert (case["status"], json.dumps(case["reply"])) == (reply.status_code, json.dumps(reply.json()))
            assert ("Retry-After" in reply.headers) == (case["status"] == 503)


def test_submit_and_result(server: RewardServer, hasty: RewardServer, table: Table) -> None:
    """ROLL submits and then asks; what is refused is refused when it is submitted."""
    for case in CASES["roll"]:
        with table.case(case["case"]):
            submitted = (hasty if never_ends(case) else server).post(case["path"], case["body"])
            reply = submitted
            if submitted.status_code == 200:
                assert (list(submitted.json()), submitted.json()["errcode"]) == (["reward_request_id", "errcode"], 0)
                reply = roll_result(server, submitted.json()["reward_request_id"])

            assert (case["status"], json.dumps(case["reply"])) == (reply.status_code, json.dumps(reply.json()))


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_result_at_any_process(server: RewardServer, guarded: RewardServer, method: str) -> None:
    """Every worker, and another server, can return a result, more than once."""
    case = CASES["roll"][0]
    ident = server.post(case["path"], case["body"]).json()["reward_request_id"]

    replies = [roll_result(server, ident, method) for _ in range(20)]
    other = requests.request(
        method,
        f"{guarded.url}/roll/result",
        json={"reward_request_id": ident},
        headers={"X-API-Key": "first-key-of-tests"},
        timeout=60,
    )

    assert {200} == {reply.status_code for reply in (*replies, other)}
    assert [case["reply"]] * 21 == [reply.json() for reply in (*replies, other)]


def test_two_submissions_have_two_ids(server: RewardServer) -> None:
    """The same sample submitted twice has two ids."""
    case = CASES["roll"][0]

    idents = {server.post(case["path"], case["body"]).json()["reward_request_id"] for _ in range(2)}

    assert len(idents) == 2


@pytest.mark.parametrize(
    "ident",
    [
        "",
        "x",
        "1" * 10**6,
        "ok_1.0_" + "0" * 31,
        "ok_1.0_" + "0" * 32 + "\n",
        "ok_nan_" + "0" * 32,
        "ok_1e999_" + "0" * 32,
        "ok_1.2.3_" + "0" * 32,
        "ok_1.0_" + "\u0661" * 32,
        "fine_1.0_" + "0" * 32,
        "\ud800",
    ],
    ids=lambda ident: ascii(ident[:20]),
)
def test_unknown_result(server: RewardServer, ident: str) -> None:
    """An id that no submission gave is 404."""
    reply = roll_result(server, ident)

    assert (404, "reward_request_id") == (reply.status_code, reply.json()["field"])


@pytest.mark.parametrize("ident", [None, 3, ["x"], {}])
def test_malformed_result(server: RewardServer, ident: Any) -> None:
    """An id that is no string is 400."""
    reply = roll_result(server, ident)

    assert (400, "reward_request_id") == (reply.status_code, reply.json()["field"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"label": "42"}, "body"),
        ({"prompt": "p"}, "body"),
        ({"prompts": ["p"]}, "responses"),
        ({"prompts": ["p"], "responses": ["r"], "query": ["pr"]}, "query"),
        ({"prompt": "p", "response": "r", "query": ["pr"]}, "response"),
        ({"prompts": ["p"], "prompt": "p", "responses": ["r"], "response": "r"}, "response"),
    ],
)
def test_whose_body(server: RewardServer, body: dict[str, Any], field: str) -> None:
    """A body that is no trainer's, or that of two, is 400, and the reply names the bodies there are."""
    reply = server.post("/get_reward", body)

    assert (400, field) == (reply.status_code, reply.json()["field"])
    assert all(name in reply.json()["error"] for name in ("Align-Anything", "OpenRLHF", "slime"))


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", "9" * 5000])
def test_what_cannot_be_sent_back(server: RewardServer, text: str) -> None:
    """`/verify` answers with what it was sent; what JSON cannot hold is 400."""
    body = json.dumps(VERIFIED | {"weight": "..."}).replace('"..."', text)

    reply = server.post("/verify", data=body, headers=JSON)

    assert (400, "body") == (reply.status_code, reply.json()["field"])


def test_deep_nesting(server: RewardServer, table: Table) -> None:
    """However deeply a body is nested, it is scored or refused."""
    item = {"data_source": "rule_remote_echo", "solution_str": "r", "extra_info": {"x": "..."}}
    bodies: dict[str, dict[str, Any]] = {
        "/get_reward?reward_type=echo": {"prompts": ["..."], "responses": ["r"]},
        "/verify?reward_type=echo": VERIFIED | {"x": "..."},
        "/v1/score": {"items": [item]},
    }
    for path, depth in product(bodies, [200, 450, 600, 900, 960, 985, 5000]):
        with table.case(f"{path} {depth}"):
            data = json.dumps(bodies[path]).replace('"..."', "[" * depth + "]" * depth)

            assert server.post(path, data=data, headers=JSON).status_code in (200, 400)


def test_rows_without_secrets() -> None:
    """Addresses, keys and paths in a row of a data set are not passed on to reward functions."""
    row = {"image_url": 1, "url": 2, "judge_api_key": 3, "path": 4, "curl": 5, "kind": 6, "path_length": 7}

    assert {"curl": 5, "kind": 6, "path_length": 7} == drop_server_fields(row)


def test_hostile_query(server: RewardServer) -> None:
    """A response of nothing but end tokens is taken apart in one pass."""
    body = {"query": ["p" + "<|im_end|>" * 1_000_000], "prompts": ["p"], "labels": [""]}

    reply = server.post("/get_reward?reward_type=exact_match", body)

    assert (200, ["unscored"]) == (reply.status_code, reply.json()["statuses"])


def test_messages_of_the_policy(server: RewardServer) -> None:
    """`/verify` scores the policy's last message, and no message of another role."""
    texts = {"assistant": ["First guess: 41", "2 is not it.\n#### 42"], "user": ["#### 7"]}
    output = [{"type": "message", "role": role, "content": text} for role, parts in texts.items() for text in parts]
    body = {"responses_create_params": {}, "response": {"output": output}, "answer": texts["assistant"][1]}
    reply = server.post("/verify", {**body, "reward_type": "exact_match"})
    assert (200, 1.0) == (reply.status_code, reply.json()["reward"])


def test_turns_of_nemo_gym(server: RewardServer, table: Table) -> None:
    """`/verify` pays the policy's last turn, as `/v1/score` does for the same items, and no call of a tool."""
    cases = json.loads((ROOT / "tests/cases/gym_turns.json").read_text())
    for case, rule in product(cases, ("math", "gsm8k", "exact_match")):
        with table.case(f"{rule} {case['name']}"):
            body = {"responses_create_params": {}, "response": {"output": case["output"]}, "answer": "42"}
            reward = server.post(f"/verify?reward_type={rule}", body).json()["reward"]
            item = {"data_source": rule, "solution_str": case["output"], "ground_truth": "42"}
            [score] = server.post("/v1/score", {"items": [item]}).json()["scores"]
            assert (reward, score["status"]) == (score["value"], "ok")
            assert rule != "math" or reward == case["math"]


def test_what_a_judge_sees_of_nemo_gym(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: Table) -> None:
    """A judge reads all turns of task and rollout; what it cannot be shown makes the sample unscored."""
    judge = FaultServer(script=FAKE_JUDGE)
    routes = tmp_path / "routes.toml"
    routes.write_text(JUDGE_OF_TRACES.format(url=judge.url))
    monkeypatch.setenv("REWARDSTACK_ROUTES", str(routes))
    client = create_app(Settings.from_env({})).test_client()
    try:
        for case in json.loads((ROOT / "tests/cases/gym_judged.json").read_text()):
            with table.case(case["name"]):
                before = len(judge.stats()["bodies"])
                reply = client.post("/verify?reward_type=agent", json=case["body"]).get_json()
                bodies = judge.stats()["bodies"][before:]
                seen = json.dumps(bodies)
                assert [mark for mark in case["seen"] if mark not in seen] == []
                assert case.get("unscored", "") in reply.get("failure_reason", "")
                assert len(bodies) == ("unscored" not in case) != ("mask_sample" in reply)
    finally:
        judge.kill()


JUDGE_OF_TRACES = """[judges.agent]
base_url = "{url}"
template = "{{PROBLEM}}\\n{{CANDIDATE_SOLUTION}}\\nREWARD: <number from 0 to 1>"
options = {{ view = "full_trace" }}
"""
ASK = {"reward_type": "llm_judge_remote"}
OUTPUT = [{"type": "message", "content": [{"type": "output_text", "text": "42"}]}]
JUDGED: dict[str, dict[str, Any]] = {
    "/v1/score": {"items": [{"data_source": "llm_judge_remote", "solution_str": "42", "ground_truth": "42"}] * 2},
    "/get_reward": {"prompts": ["6*7?"], "responses": ["42"], "golden_responses": ["42"], **ASK},
    "/get_reward?reward_type=llm_judge_remote": {"query": ["6*7?42"], "prompts": ["6*7?"], "labels": ["42"]},
    "/get_reward?": {"prompt": "6*7?", "response": "42", "label": "42", **ASK},
    "/verify": {"responses_create_params": {}, "response": {"output": OUTPUT}, "answer": "42", "question": "?", **ASK},
    "/roll/submit": {"prompt": "6*7?", "response": "42", "reward_info": {"ground_truth": "42"}, **ASK},
}
"""Of each protocol a sample for the judge, by its path."""


@pytest.mark.usefixtures("needs_process")
@pytest.mark.parametrize("path", JUDGED)
def test_a_spent_budget(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Whatever the protocol, what a run may not spend any more is refused for good, and the header says so."""
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    judge = FaultServer(script=FAKE_JUDGE)
    judge.set(usage={"prompt_tokens": 9, "completion_tokens": 1})
    monkeypatch.setenv("LLM_JUDGE_SERVER_URL", judge.url)
    monkeypatch.setenv("REWARDSTACK_MAX_TOKENS", "5")
    client = create_app(Settings.from_env({})).test_client()
    try:
        client.post(path, json=JUDGED[path])
        refused = client.post(path, data=json.dumps(JUDGED[path]).replace("42", "43"), content_type="application/json")
    finally:
        judge.kill()
    assert (503, "REWARDSTACK_MAX_TOKENS") == (refused.status_code, refused.headers["X-Reward-Budget"])
    assert refused.headers["X-Reward-Cause"] == "budget"
    assert "Retry-After" not in refused.headers and refused.get_json()["field"] == "REWARDSTACK_MAX_TOKENS"
