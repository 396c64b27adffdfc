"""Serve the LLM judge: find or install vLLM, choose a model that fits this machine, and start the server."""
