"""Model servers without containers: vLLM, small models, and the GPUs and memory of the machine."""
