"""Find or install vLLM, choose a judge model that fits this machine, and start the server."""
