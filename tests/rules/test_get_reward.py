"""`POST /get_reward` in Align-Anything's protocol."""

from __future__ import annotations

import pytest

from rewardstack.remote_rm_client import RemoteRewardModel
from tests.rules.conftest import RewardServer

BODY = {"prompts": ["p", "p"], "responses": ["#### 1", "#### 2"], "golden_responses": ["1", "1"]}


@pytest.mark.parametrize(
    ("query", "body", "rewards"),
    [
        ("", {}, [0.0, 0.0]),
        ("", {"reward_type": "gsm8k"}, [1.0, 0.0]),
        ("?reward_type=gsm8k", {}, [1.0, 0.0]),
        ("?reward_type=example_safety", {"reward_type": "gsm8k"}, [1.0, 0.0]),
        ("?reward_type=gsm8k_main", {}, [1.0, 0.0]),
        ("?reward_type=concise", {}, [1.0, 1.0]),
        ("?reward_type=shares_a_word_with_the_prompt", {"responses": ["p q", "q"]}, [1.0, 0.0]),
    ],
    ids=["the server's", "body", "query", "body first", "a route", "own", "own batch"],
)
def test_reward_type(server: RewardServer, query: str, body: dict[str, object], rewards: list[float]) -> None:
    """The reward function is the body's, else the query's, else the server's; a route's name does as well."""
    reply = server.post(f"/get_reward{query}", BODY | body)

    assert reply.json() == {"rewards": rewards, "statuses": ["ok", "ok"]}


def test_unscored_is_zero(server: RewardServer) -> None:
    """What has no value has the reward 0.0 and a status that says so."""
    body = {"prompts": ["p"] * 4, "responses": ["#### 1", None, 1, {}], "golden_responses": [None, "1", "1", "1"]}

    reply = server.post("/get_reward?reward_type=gsm8k", body)

    assert (reply.status_code, *reply.json().values()) == (200, [0.0] * 4, ["unscored"] * 4)


def test_zero_is_no_reward_below_zero(server: RewardServer) -> None:
    """A sample without a score of a function that goes below 0 is refused in every protocol of numbers alone."""
    nemo = {"responses_create_params": {"input": "p"}, "response": {"output": []}, "reward_type": "overlong"}
    asked = {
        "/get_reward": {"prompts": ["p"], "responses": ["x"], "reward_type": "overlong"},
        "/get_reward?reward_type=overlong": {"query": ["px"], "prompts": ["p"], "labels": [""]},
        "/verify": nemo,
        "/roll/submit": {"prompt": "p", "response": "x", "reward_type": "overlong"},
    }
    replies = {path: server.post(path, body) for path, body in asked.items()}
    assert dict.fromkeys(asked, (400, True)) == {
        path: (reply.status_code, "completion_tokens" in reply.json()["error"]) for path, reply in replies.items()
    }


def test_prompts_of_any_kind(server: RewardServer) -> None:
    """A prompt that is no string stops no reward function that does not read it."""
    body = {"prompts": [None, [{"role": "user", "content": "p"}]], "responses": ["a 1+1", "b"]}

    assert server.post("/get_reward?reward_type=example_math", body).json()["rewards"] == [0.8, 0.2]


def test_empty_batch(server: RewardServer) -> None:
    """An empty batch has empty rewards."""
    assert server.post("/get_reward", {"prompts": [], "responses": []}).json() == {"rewards": [], "statuses": []}


def test_some_failed(server: RewardServer) -> None:
    """Where some samples failed the others keep their rewards."""
    body = {"prompts": ["p", "p"], "responses": ["slow", "fine"]}

    reply = server.post("/get_reward?reward_type=hang", body)

    assert (reply.status_code, reply.json()) == (200, {"rewards": [0.0, 1.0], "statuses": ["failed", "ok"]})


def test_all_failed(hasty: RewardServer) -> None:
    """Where the infrastructure failed every sample the reply is 503, so that the trainer tries again."""
    reply = hasty.post("/get_reward?reward_type=hang", {"prompts": ["p"], "responses": ["slow"]})

    assert (reply.status_code, reply.headers["Retry-After"], reply.json()["statuses"]) == (503, "1", ["failed"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"responses": []}, "prompts"),
        ({"prompts": []}, "responses"),
        ({"prompts": "p", "responses": ["r"]}, "prompts"),
        ({"prompts": ["p"], "responses": {}}, "responses"),
        ({"prompts": ["p"], "responses": ["a", "b"]}, "responses"),
        ({"prompts": ["p"], "responses": ["a"], "golden_responses": []}, "golden_responses"),
        ({"prompts": ["p"], "responses": ["a"], "golden_responses": "g"}, "golden_responses"),
        ({"prompts": ["p"], "responses": ["a"], "reward_type": 3}, "reward_type"),
    ],
)
def test_malformed(server: RewardServer, body: object, field: str) -> None:
    """A key that is missing, of the wrong type or of another length is 400, and the reply names it."""
    reply = server.post("/get_reward", body)

    assert (400, field, True) == (reply.status_code, reply.json()["field"], field in reply.json()["error"])


def test_unknown_reward_type(server: RewardServer) -> None:
    """An unknown reward type is 404, and the reply lists those there are."""
    reply = server.post("/get_reward", {"prompts": [], "responses": [], "reward_type": "gsm9k"})

    assert (reply.status_code, reply.json()["field"]) == (404, "reward_type")
    assert all(name in reply.json()["error"] for name in ("'gsm9k'", "math_verifier", "keywords", "rule_remote_*"))


def test_client_class(server: RewardServer) -> None:
    """The client class of the original's name and signature gets its rewards here."""
    model = RemoteRewardModel(f"{server.url}/get_reward?reward_type=gsm8k")

    assert model.score(["p", "p"], ["#### 1", "#### 2"], golden_responses=["1", "1"]) == [1.0, 0.0]
