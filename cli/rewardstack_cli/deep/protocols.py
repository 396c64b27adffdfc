"""Checks of the reward server's protocols, each with a right and a wrong response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from rewardstack_cli.deep.stack import REQUEST_TIMEOUT, Stack, require
from rewardstack_cli.probes.http import Probed

PROMPT, RIGHT, WRONG, REFERENCE = "What is 6 * 7?", "It is $42$.", "It is $41$.", "42"
BY_MATH = "?reward_type=math"

Ask = Callable[[Probed, str], Awaitable[Any]]
"""Sends a response to a reward server and returns its reward."""


async def speaks(ask: Ask, stack: Stack) -> str:
    """Check that every reward server scores a right and a wrong response correctly by one protocol."""
    for server in stack.servers("rules"):
        for response, value in ((RIGHT, 1.0), (WRONG, 0.0)):
            found = await ask(server, response)
            require(found == value, f"{response!r} scores {found}, expected {value:g}")
    return "1 for the right answer, 0 for the wrong one"


async def _post(server: Probed, path: str, body: dict[str, Any]) -> Any:
    return await server.ask_json(path, body, REQUEST_TIMEOUT)


async def _score(server: Probed, response: str) -> Any:
    item = {"data_source": "math", "solution_str": response, "ground_truth": REFERENCE}
    return (await _post(server, "/v1/score", {"items": [item]}))["scores"][0]["value"]


async def _align_anything(server: Probed, response: str) -> Any:
    body = {"prompts": [PROMPT], "responses": [response], "golden_responses": [REFERENCE], "reward_type": "math"}
    return (await _post(server, "/get_reward", body))["rewards"][0]


async def _openrlhf(server: Probed, response: str) -> Any:
    body = {"query": [PROMPT + response], "prompts": [PROMPT], "labels": [REFERENCE]}
    return (await _post(server, "/get_reward" + BY_MATH, body))["rewards"][0]


async def _slime(server: Probed, response: str) -> Any:
    return await _post(server, "/get_reward" + BY_MATH, {"prompt": PROMPT, "response": response, "label": REFERENCE})


async def _nemo_gym(server: Probed, response: str) -> Any:
    await _post(server, "/seed_session", {})
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": response}]}
    parameters = {"input": [{"role": "user", "content": PROMPT}]}
    body = {"responses_create_params": parameters, "response": {"output": [message]}, "expected_answer": REFERENCE}
    verified = {"reward": (await _post(server, "/verify" + BY_MATH, body))["reward"]}
    return (await _post(server, "/aggregate_metrics", {"verify_responses": [verified]}))["key_metrics"]["mean/reward"]


async def _roll(server: Probed, response: str) -> Any:
    body = {"prompt": PROMPT, "response": response, "reward_info": {"ground_truth": REFERENCE}}
    ident = (await _post(server, "/roll/submit" + BY_MATH, body))["reward_request_id"]
    return (await _post(server, "/roll/result", {"reward_request_id": ident}))["reward_score"]


PROTOCOLS = {
    "v1-score": partial(speaks, _score),
    "align-anything": partial(speaks, _align_anything),
    "openrlhf": partial(speaks, _openrlhf),
    "slime": partial(speaks, _slime),
    "nemo-gym": partial(speaks, _nemo_gym),
    "roll": partial(speaks, _roll),
}
"""A check for each protocol, by its name."""
