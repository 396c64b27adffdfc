"""A randomly initialized policy of a few hundred thousand weights, which the CPU trains in seconds.

    python tiny_policy.py FOLDER

It reads and writes characters. What it says is noise until a reward says otherwise.
"""

from __future__ import annotations

import sys

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

LETTERS = " abcdefghijklmno0123456789#?+."
SPECIAL = ["<pad>", "<unk>", "<end>"]
CHAT = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def write(folder: str, seed: int = 0) -> None:
    """Writes model and tokenizer into a folder, from which `from_pretrained` reads them.

    Args:
        folder: made where it is not.
        seed: of the weights.
    """
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *LETTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    marks = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "<end>"}
    read = PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=CHAT, **marks)
    read.save_pretrained(folder)
    torch.manual_seed(seed)
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    ends = {"pad_token_id": 0, "eos_token_id": 2, "bos_token_id": None}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(vocabulary), **size, **ends)).save_pretrained(folder)


if __name__ == "__main__":
    write(sys.argv[1])
