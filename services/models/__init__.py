"""Support model servers without containers: install vLLM and small models, and find GPUs and memory."""
