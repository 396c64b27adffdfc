"""What is said of the services whichever way they run: the row of `make status`, and what helps a sick one."""

from __future__ import annotations

ROW = "{:<10} {:<9} {:>8} {:>10}  {}"
"""Service, state, process or container, uptime and health."""
LOG_LINES = 100
"""Of each service, that `make logs` begins with."""

LOADING = ("judge", "embedding")
"""The services that load a model first."""

REMEDIES = {
    "cache": "see that CACHE_PORT is free and CACHE_MAX_MEMORY fits this machine",
    "queue": "see that QUEUE_PORT is free and that the disk of RUN_DIR has room",
    "rules": "see what the log says of REWARD_FUNCTIONS and the other settings of the reward server",
    "worker": "see what the log says of REWARD_FUNCTIONS and the other settings of the reward server",
    "judge": "see what the log says of the model and of memory; JUDGE=off leaves the judge out",
    "embedding": "see what the log says of the model and of memory; EMBEDDING=off leaves it out",
    "gateway": "see that its ports are free and BIND_ADDRESS is an address of this machine",
}
"""What usually helps where a service does not come up."""
