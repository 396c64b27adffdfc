"""Takes the place of vLLM where its faults are tested: how it is started, that it dies, that it leaves children."""
