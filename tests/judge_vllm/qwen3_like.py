"""`qwen3_like.py SOURCE TARGET TOKENS`: the small model with Qwen3's control tokens and a chat template like Qwen3's.

Run by the interpreter that has transformers. TOKENS is a JSON file that has them under `Qwen3`. Their weights mean
nothing: the model never learnt them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def main(source: str, target: str, tokens: str) -> None:
    """Writes the checkpoint."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AddedToken, AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source)
    control = json.loads(Path(tokens).read_text())["Qwen3"]
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    tokenizer.chat_template = TEMPLATE
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
