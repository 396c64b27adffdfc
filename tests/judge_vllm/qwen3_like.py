"""`qwen3_like.py SOURCE TARGET`: the small model with Qwen3's control tokens and a chat template like Qwen3's.

Run by the interpreter that has transformers. The new tokens' weights mean nothing: the model never learnt them.
"""

from __future__ import annotations

import os
import sys

CONTROL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>"),
    *("<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>"),
    *("<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>"),
    *("</tool_response>", "<think>", "</think>"),
)
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


def main(source: str, target: str) -> None:
    """Writes the checkpoint."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AddedToken, AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source)
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in CONTROL])
    tokenizer.chat_template = TEMPLATE
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
