"""What model servers need on a machine without containers: vLLM, small models, and a look at the machine itself."""
