"""Rewards for reinforcement learning of language models, from services outside the trainer.

At the top stands what is public (`api`, `score`, `errors`, the `*_remote` files that trainers load,
`remote_rm_client`), `settings`, and `client`, which holds a process's scorers and cache. The command
`rewardstack` is another distribution (`rewardstack_cli`). The packages:

- `core`: deadlines, batching, the event loop, the wire format; imports no other room
- `cache`, `routing`, `transport`: results, which route takes a sample, how a service is reached
- `scorers`: how each kind of service is asked
- `pipeline`: the way of a sample through all of them

`import rewardstack` loads the API and nothing else; the rest loads at the first call. Imports inside functions hold the
lock of `core.imports`.

The reward server (`rewardstack_rules`) stands on `core`, `cache`, `routing`, `scorers`, `pipeline`, `client`, `errors`,
`score` and `settings`: what changes there changes the server too. The import rules are in `pyproject.toml`.
"""

from rewardstack.api import (
    acompute_score,
    acompute_score_batched,
    ascore,
    compute_score,
    compute_score_batched,
    register_judge,
    register_reward_model,
    register_route,
    score,
)
from rewardstack.errors import RewardstackError
from rewardstack.score import Request, Score

__version__ = "0.1.0"

__all__ = [
    "Request",
    "RewardstackError",
    "Score",
    "acompute_score",
    "acompute_score_batched",
    "ascore",
    "compute_score",
    "compute_score_batched",
    "register_judge",
    "register_reward_model",
    "register_route",
    "score",
]
