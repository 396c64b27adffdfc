"""Create verl's configuration, reward loop and batches, for the benchmark `verl_loop` and for tests.

The tokenizer has one token for each byte, so that responses survive encoding and decoding unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import ray
import torch
import verl
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from tensordict import TensorDict
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from verl import DataProto

from rewardstack.score import NO_OPTIONS

PROMPT, RESPONSE = 4, 96
"""Maximum number of tokens of a prompt and of a response."""


class Sample(NamedTuple):
    """A row of a data set with the policy's response.

    Args:
        solution: response of the policy.
        truth: reference of the row.
        source: `data_source` of the row.
        extra: `extra_info` of the row.
    """

    solution: str
    truth: Any
    source: str = "openai/gsm8k"
    extra: Mapping[str, Any] = NO_OPTIONS


def tokenizer(folder: Path) -> str:
    """Save a byte tokenizer in a folder; return its path for `actor_rollout_ref.model.path`."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    whole = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", pad_token="<pad>")
    whole.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    return str(folder)


def configuration(model: str, *overrides: str) -> DictConfig:
    """Return the configuration of verl's PPO trainer with command-line overrides.

    Args:
        model: path of the policy's tokenizer.
        overrides: Hydra overrides, such as `reward.num_workers=2`.
    """
    own = str(Path(verl.__file__).parent / "trainer/config")
    with initialize_config_dir(own, version_base=None):
        return compose("ppo_trainer", [f"actor_rollout_ref.model.path={model}", *overrides])


@contextmanager
def reward_loop(config: DictConfig) -> Iterator[Any]:
    """Yield the `RewardLoopManager` of verl 0.8 or later, with workers in Ray, which must be initialized."""
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager, migrate_legacy_reward_impl

    manager = RewardLoopManager(migrate_legacy_reward_impl(config))
    try:
        yield manager
    finally:
        for worker in manager.reward_loop_workers:
            ray.kill(worker)


def batch(samples: Sequence[Sample], path: str) -> DataProto:
    """Return samples in the form in which the trainer passes them to its reward loop.

    Args:
        samples: samples with responses of at most `RESPONSE` bytes.
        path: path of the tokenizer.
    """
    encode = PreTrainedTokenizerFast.from_pretrained(path)
    responses = torch.full((len(samples), RESPONSE), encode.pad_token_id)
    mask = torch.zeros((len(samples), PROMPT + RESPONSE), dtype=torch.long)
    mask[:, :PROMPT] = 1
    for row, sample in enumerate(samples):
        ids = torch.tensor(encode(sample.solution, add_special_tokens=False)["input_ids"])
        responses[row, : len(ids)] = ids
        mask[row, PROMPT : PROMPT + len(ids)] = 1
    prompts = torch.zeros((len(samples), PROMPT), dtype=torch.long)
    tensors = {"prompts": prompts, "responses": responses, "attention_mask": mask}
    rows: dict[str, list[Any]] = {
        "data_source": [sample.source for sample in samples],
        "reward_model": [{"style": "rule", "ground_truth": sample.truth} for sample in samples],
        "extra_info": [{"index": row, **sample.extra} for row, sample in enumerate(samples)],
    }
    columns = {name: _objects(values) for name, values in rows.items()}
    return DataProto(batch=TensorDict(tensors, batch_size=len(samples)), non_tensor_batch=columns)


def _objects(values: list[Any]) -> np.ndarray[Any, Any]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
