"""Start, query and stop the stack, in containers (`compose`), as local processes (`native`) or under `apptainer`.

The stack is the reward server with its workers, cache, queue and gateway, and optional model servers.
"""
