"""`tiny_models.py TOKENIZER TARGET`: tiny random reward models, and what Hugging Face makes of a few conversations.

Run by the interpreter that has transformers. TARGET gets `one-label`, `two-labels`, `steps`, and `expected.json`: by
model, the logits of each conversation of CONVERSATIONS (for `steps` the probabilities of each step), in float32.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

TAG = "<file_sep>"
"""A token that the small model's tokenizer has, for steps."""
QUESTION = {"role": "user", "content": "What is 6 times 7?"}
ANSWERS = ["It is 42.", "41", "Six times seven, which is six added seven times, makes forty-two.", "x" * 200]
STEPS = ["6 times 7", "is 42"]


def conversations() -> list[list[dict[str, str]]]:
    """A question and an answer each."""
    return [[QUESTION, {"role": "assistant", "content": answer}] for answer in ANSWERS]


def main(source: str, target: str) -> None:
    """Write the models and what they say."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import (
        AutoTokenizer,
        LlamaConfig,
        LlamaForSequenceClassification,
        Qwen2Config,
        Qwen2ForSequenceClassification,
    )

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(source)
    # Heads of 32: smaller ones crash vLLM's engine on the CPU.
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "pad_token_id": 2,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "initializer_range": 0.2,
    }
    made = {
        "one-label": Qwen2ForSequenceClassification(Qwen2Config(**shape, num_labels=1)),
        "two-labels": LlamaForSequenceClassification(LlamaConfig(**shape, num_labels=2)),
    }
    expected: dict[str, list[list[float]]] = {}
    for name, model in made.items():
        model.float().eval().save_pretrained(Path(target) / name)
        tokenizer.save_pretrained(Path(target) / name)
        with torch.no_grad():
            expected[name] = [
                model(**tokenizer.apply_chat_template(one, return_tensors="pt", return_dict=True)).logits[0].tolist()
                for one in conversations()
            ]
    (Path(target) / "expected.json").write_text(json.dumps(expected))
    _write_steps(Path(target))


def _write_steps(target: Path) -> None:
    """Write a process reward model on the weights of the first one."""
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    folder = target / "steps"
    shutil.copytree(target / "one-label", folder)
    weights = load_file(folder / "model.safetensors")
    del weights["score.weight"]
    size = 128
    weights |= {"score.0.weight": torch.randn(size, size) * 0.2, "score.0.bias": torch.zeros(size)}
    weights |= {"score.2.weight": torch.randn(2, size) * 0.2, "score.2.bias": torch.zeros(2)}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["Qwen2ForProcessRewardModel"]
    for key in ("id2label", "label2id"):
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    main(*sys.argv[1:])
