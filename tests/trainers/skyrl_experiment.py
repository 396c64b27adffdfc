"""An experiment of SkyRL that trains nothing: its own data set and generator, a fake policy and a fake tokenizer.

SkyRL's entrypoints hand it the configuration in a task of Ray, and it leaves what was scored in `trainer.export_path`.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import ray
from skyrl.train.dataset import PromptDataset
from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator
from skyrl.train.generators.utils import prepare_generator_input

from rewardstack.ray_judge.service import NAME as JUDGE
from rewardstack_settings.kinds import RAY_NAMESPACE


class Characters:
    """A tokenizer with a token for each character."""

    eos_token_id = 0
    eos_token = chr(0)

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> list[int]:
        """The tokens of a chat."""
        text = "".join(f"{one['role']}: {one['content']}\n" for one in messages)
        begun = "assistant: " if options.get("add_generation_prompt") else ""
        return [*map(ord, text), self.eos_token_id, *map(ord, begun)]


class Policy:
    """An engine whose responses are numbers, each another."""

    model_name = "fake"

    def __init__(self) -> None:
        self._numbers = count()

    async def generate(self, asked: dict[str, Any], model: str | None = None) -> dict[str, Any]:
        """Responses to each prompt."""
        texts = [f"I think\n#### {next(self._numbers)}" for _ in asked["prompt_token_ids"]]
        tokens = [[*map(ord, text)] for text in texts]
        logprobs = [[0.0] * len(one) for one in tokens]
        stops = ["stop"] * len(texts)
        return {"responses": texts, "response_ids": tokens, "stop_reasons": stops, "response_logprobs": logprobs}

    async def finish_session(self, session_id: str) -> None:
        """A conversation is over."""


class Episodes:
    """In the place of `BasePPOExp`; where a judge is in the cluster, it scores once with it and once after its end."""

    def __init__(self, config: Any) -> None:
        self._config = config
        longest = config.trainer.max_prompt_length
        self._policy = Policy()
        self._data = PromptDataset(config.data.train_data, Characters(), longest, num_workers=1)

    def run(self) -> None:
        """Scores all rows, as often as there are samples of each."""
        batches = [self._batch()]
        with suppress(ValueError):
            judge = ray.get_actor(JUDGE, namespace=RAY_NAMESPACE)
            ray.kill(judge)
            with suppress(ray.exceptions.RayActorError):
                while True:  # it is killed a moment later
                    ray.get(judge.state.remote())
            batches.append(self._batch())
        Path(self._config.trainer.export_path).write_text(json.dumps(batches))

    def _batch(self) -> dict[str, Any]:
        config = self._config
        generator = SkyRLGymGenerator(config.generator, config.environment.skyrl_gym, self._policy, Characters())
        rows = self._data.collate_fn([self._data[at] for at in range(len(self._data))])
        samples = config.generator.n_samples_per_prompt
        asked, _ = prepare_generator_input(rows, samples, {"logprobs": 1}, config.environment.env_class, "train", 0)
        done = asyncio.run(generator.generate(asked, disable_tqdm=True))
        return {"rewards": [sum(one) for one in done["rewards"]], "logged": done["rollout_metrics"]}
