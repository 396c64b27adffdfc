"""Probe a reward model: whether its server has the model, and whether it returns the numbers that scoring expects."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from rewardstack.errors import ReplyError
from rewardstack.routing.reward_models import RewardModel
from rewardstack.scorers.judge.api import MODELS, api_path
from rewardstack.scorers.judge.models import parse_models
from rewardstack.scorers.reward_apis import APIS, TextApi, render
from rewardstack.scorers.reward_model import RAW_LOGITS, TEST_CONVERSATION, VARIABLE, key_of_model, parse_numbers
from rewardstack.settings import Settings
from rewardstack_cli.probes.finding import Finding, ProbeError
from rewardstack_cli.probes.http import LOGS, ProbedService, RemedyNames, probe

NAMES = RemedyNames(VARIABLE, "REWARD_MODEL_SERVER_API_KEY", "keys (--api-key)")


async def probe_reward_model(model: RewardModel, url: str, settings: Settings) -> Finding:
    """Probe the reward model at `url`.

    Args:
        model: the reward model, from the routes file or from environment variables.
        url: base URL of the server.
        settings: settings with the key to send.
    """
    model_names = RemedyNames(
        f"reward_models.{model.name}.base_url", model.api_key_env or NAMES.api_key, NAMES.server_key
    )
    names = model_names if model.base_url else NAMES
    return await probe(url, key_of_model(model, settings), names, partial(_probe, model=model, url=url))


async def _probe(server: ProbedService, finding: Finding, model: RewardModel, url: str) -> None:
    if (api := APIS.get(model.api)) is not None:
        await _probe_text_api(server, finding, model, api)
        return
    served = parse_models(await server.ask(api_path((url,), MODELS))) or {}
    name = finding.version = model.model or next(iter(served), "")
    if served and name not in served:
        raise ProbeError(f"it does not serve {name}", f"set the model to one of: {', '.join(served)}")
    path = "/pooling" if model.steps else "/classify"
    started = time.monotonic()
    numbers = await _request_numbers(server, path, name, model, {} if model.steps else RAW_LOGITS)
    elapsed = (time.monotonic() - started) * 1000
    if model.steps:
        finding.sample = f"step probabilities {[round(one[-1], 3) for one in numbers]} in {elapsed:.0f} ms"
        return
    _require_weights(model, numbers)
    if numbers == await _request_numbers(server, path, name, model, dict.fromkeys(RAW_LOGITS, True)) and all(
        0 <= one <= 1 for one in numbers
    ):
        raise ProbeError("it returns probabilities instead of raw logits", "use vLLM 0.13 or later")
    finding.sample = f"logits {[round(one, 3) for one in numbers]} in {elapsed:.0f} ms"


async def _probe_text_api(server: ProbedService, finding: Finding, model: RewardModel, api: TextApi) -> None:
    finding.version = model.model
    text = render(model.template, *(one["content"] for one in TEST_CONVERSATION))
    started = time.monotonic()
    reply = await server.ask(api.path, json.dumps(api.body(model.model, text)).encode())
    elapsed = (time.monotonic() - started) * 1000
    try:
        numbers = api.read(reply)
    except ReplyError as error:
        raise ProbeError(str(error), f"check that api = {model.api} fits the server; {LOGS}") from error
    _require_weights(model, numbers)
    finding.sample = f"outputs {[round(one, 3) for one in numbers]} in {elapsed:.0f} ms"


def _require_weights(model: RewardModel, numbers: Sequence[float]) -> None:
    if len(numbers) != len(model.outputs or (1.0,)):
        remedy = f"give reward_models.{model.name}.outputs one weight for each output"
        raise ProbeError(f"the model has {len(numbers)} outputs, expected {len(model.outputs or (1.0,))}", remedy)


async def _request_numbers(
    server: ProbedService, path: str, name: str, model: RewardModel, fields: dict[str, Any]
) -> Any:
    messages = [dict(one) for one in TEST_CONVERSATION]
    messages[-1]["content"] += model.steps.tag if model.steps else ""
    reply = await server.ask(path, json.dumps({"model": name, "messages": messages, **fields}).encode())
    try:
        return parse_numbers(reply, path)
    except ReplyError as error:
        raise ProbeError(
            str(error), f"start vLLM with --runner pooling, and set `steps` only for a process reward model; {LOGS}"
        ) from error
