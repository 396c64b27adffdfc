"""What the benchmark of verl and the tests of it share: its configuration, its reward loop, and batches of samples.

The policy's tokenizer has a token for each byte, so that a response comes out of it as it went in.
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

from rewardstack.score import NOTHING

PROMPT, RESPONSE = 4, 96
"""Tokens that a prompt and a response have at most."""


class Sample(NamedTuple):
    """A row and what the policy answered to it.

    Args:
        solution: the response.
        truth: its reference.
        source: its `data_source`.
        extra: its `extra_info`.
    """

    solution: str
    truth: Any
    source: str = "openai/gsm8k"
    extra: Mapping[str, Any] = NOTHING


def tokenizer(folder: Path) -> str:
    """A path for `actor_rollout_ref.model.path`, of which the reward loop reads the tokenizer alone."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    whole = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", pad_token="<pad>")
    whole.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    return str(folder)


def configuration(model: str, *overrides: str) -> DictConfig:
    """verl's own, as its trainer has it, with words of a command line.

    Args:
        model: a path of the policy's tokenizer.
        overrides: such as `reward.num_workers=2`.
    """
    own = str(Path(verl.__file__).parent / "trainer/config")
    with initialize_config_dir(own, version_base=None):
        return compose("ppo_trainer", [f"actor_rollout_ref.model.path={model}", *overrides])


@contextmanager
def reward_loop(config: DictConfig) -> Iterator[Any]:
    """verl's `RewardLoopManager`, of 0.8 and later, with its workers in Ray, which must be up."""
    from verl.experimental.reward_loop.reward_loop import RewardLoopManager, migrate_legacy_reward_impl

    manager = RewardLoopManager(migrate_legacy_reward_impl(config))
    try:
        yield manager
    finally:
        for worker in manager.reward_loop_workers:
            ray.kill(worker)


def batch(samples: Sequence[Sample], path: str) -> DataProto:
    """The samples as the trainer hands them to its reward loop.

    Args:
        samples: each with a response of `RESPONSE` bytes at most.
        path: of the tokenizer.
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
