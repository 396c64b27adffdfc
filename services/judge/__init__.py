"""The LLM judge: vLLM, found or installed, given a model that this machine can have, and started."""
