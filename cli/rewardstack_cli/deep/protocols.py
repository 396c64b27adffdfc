"""Check the reward server's protocols, each with a right and a wrong response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from rewardstack_cli.deep.stack import REQUEST_TIMEOUT, Stack, require
from rewardstack_cli.probes.http import ProbedService

PROMPT, RIGHT, WRONG, REFERENCE = "What is 6 * 7?", "It is $42$.", "It is $41$.", "42"
BY_MATH = "?reward_type=math"

RequestReward = Callable[[ProbedService, str], Awaitable[Any]]
"""Sends a response to a reward server and returns its reward."""


async def check_protocol(request_reward: RequestReward, stack: Stack) -> str:
    """Check one protocol: every reward server must give reward 1 to a right response, and 0 to a wrong one."""
    for server in stack.servers("rules"):
        for response, value in ((RIGHT, 1.0), (WRONG, 0.0)):
            reward = await request_reward(server, response)
            require(reward == value, f"{response!r} scores {reward}, expected {value:g}")
    return "1 for the right answer, 0 for the wrong one"


async def _post(server: ProbedService, path: str, body: dict[str, Any]) -> Any:
    return await server.ask_json(path, body, REQUEST_TIMEOUT)


async def _score(server: ProbedService, response: str) -> Any:
    item = {"data_source": "math", "solution_str": response, "ground_truth": REFERENCE}
    return (await _post(server, "/v1/score", {"items": [item]}))["scores"][0]["value"]


async def _align_anything(server: ProbedService, response: str) -> Any:
    body = {"prompts": [PROMPT], "responses": [response], "golden_responses": [REFERENCE], "reward_type": "math"}
    return (await _post(server, "/get_reward", body))["rewards"][0]


async def _openrlhf(server: ProbedService, response: str) -> Any:
    body = {"query": [PROMPT + response], "prompts": [PROMPT], "labels": [REFERENCE]}
    return (await _post(server, "/get_reward" + BY_MATH, body))["rewards"][0]


async def _slime(server: ProbedService, response: str) -> Any:
    return await _post(server, "/get_reward" + BY_MATH, {"prompt": PROMPT, "response": response, "label": REFERENCE})


async def _nemo_gym(server: ProbedService, response: str) -> Any:
    await _post(server, "/seed_session", {})
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": response}]}
    parameters = {"input": [{"role": "user", "content": PROMPT}]}
    body = {"responses_create_params": parameters, "response": {"output": [message]}, "expected_answer": REFERENCE}
    verified = {"reward": (await _post(server, "/verify" + BY_MATH, body))["reward"]}
    return (await _post(server, "/aggregate_metrics", {"verify_responses": [verified]}))["key_metrics"]["mean/reward"]


async def _roll(server: ProbedService, response: str) -> Any:
    body = {"prompt": PROMPT, "response": response, "reward_info": {"ground_truth": REFERENCE}}
    ident = (await _post(server, "/roll/submit" + BY_MATH, body))["reward_request_id"]
    return (await _post(server, "/roll/result", {"reward_request_id": ident}))["reward_score"]


PROTOCOLS = {
    "v1-score": partial(check_protocol, _score),
    "align-anything": partial(check_protocol, _align_anything),
    "openrlhf": partial(check_protocol, _openrlhf),
    "slime": partial(check_protocol, _slime),
    "nemo-gym": partial(check_protocol, _nemo_gym),
    "roll": partial(check_protocol, _roll),
}
"""The check of each protocol, by name."""
