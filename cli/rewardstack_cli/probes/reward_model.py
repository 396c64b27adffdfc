"""Tries a reward model: what does it serve, and does it give raw logits, or a probability for each step."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any

from rewardstack.errors import ReplyError
from rewardstack.routing.reward_models import RewardModel
from rewardstack.scorers.judge.api import MODELS, below
from rewardstack.scorers.judge.models import read_models
from rewardstack.scorers.reward_model import RAW, TRIAL, VARIABLE, key_of_model, read_numbers
from rewardstack.settings import Settings
from rewardstack_cli.probes.finding import Finding, Trouble
from rewardstack_cli.probes.http import LOGS, Names, Probed, probe


async def probe_reward_model(model: RewardModel, url: str, settings: Settings) -> Finding:
    """Try the reward model at `url`.

    Args:
        model: as the routes file has it.
        url: its base URL.
        settings: of the environment.
    """
    address = f"reward_models.{model.name}.base_url" if model.base_url else VARIABLE
    names = Names(address, model.api_key_env or "REWARD_MODEL_SERVER_API_KEY", "--api-key")
    return await probe(url, key_of_model(model, settings), names, partial(_probe, model=model, url=url))


async def _probe(server: Probed, finding: Finding, model: RewardModel, url: str) -> None:
    served = read_models(await server.ask(below((url,), MODELS))) or {}
    name = finding.version = model.model or next(iter(served), "")
    if served and name not in served:
        raise Trouble(f"it does not serve {name}", f"set the model to one of: {', '.join(served)}")
    path = "/pooling" if model.steps else "/classify"
    started = time.monotonic()
    numbers = await _numbers(server, path, name, model, {} if model.steps else RAW)
    elapsed = (time.monotonic() - started) * 1000
    if model.steps:
        finding.sample = f"step probabilities {[round(one[-1], 3) for one in numbers]} in {elapsed:.0f} ms"
        return
    if len(numbers) != len(model.outputs or (1.0,)):
        raise Trouble(f"it has {len(numbers)} outputs", f"give reward_models.{model.name}.outputs one weight for each")
    if numbers == await _numbers(server, path, name, model, dict.fromkeys(RAW, True)) and max(numbers) <= 1:
        raise Trouble("it gives probabilities instead of raw logits", "take vLLM 0.13 or later")
    finding.sample = f"logits {[round(one, 3) for one in numbers]} in {elapsed:.0f} ms"


async def _numbers(server: Probed, path: str, name: str, model: RewardModel, fields: dict[str, Any]) -> Any:
    messages = [dict(one) for one in TRIAL]
    messages[-1]["content"] += model.steps.tag if model.steps else ""
    reply = await server.ask(path, json.dumps({"model": name, "messages": messages, **fields}).encode())
    try:
        return read_numbers(reply, path)
    except ReplyError as error:
        raise Trouble(str(error), f"is it started with --runner pooling, for this kind of model? {LOGS}") from error
