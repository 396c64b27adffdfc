"""Rewards for reinforcement learning of language models, from services outside the trainer.

The top level has the public modules (`api`, `score`, `errors`, the `*_remote` files that trainers load,
`remote_rm_client`), the settings (`settings`, `settings_table`, `endpoints`), and `client`, which keeps the scorers and
caches of each event loop. The command `rewardstack` comes from another distribution (`rewardstack_cli`). The packages:

- `core`: deadlines, batching, the event loop, the wire format; imports none of the packages below
- `cache`: the result cache
- `routing`: chooses the scorer of each sample
- `transport`: sends requests to services
- `scorers`: clients of each kind of service
- `pipeline`: the stages of scoring
- `trainers`: integrations, one module per trainer
- `ray_judge`: runs a judge in a Ray cluster

`import rewardstack` loads only `api` and its imports; the first call loads the rest. Imports inside functions hold the
lock `core.imports.import_lock`, so that a process is not forked in the middle of an import.

The reward server (`rewardstack_rules`) imports these packages, except `trainers` and `ray_judge`, and the modules
`client`, `errors`, `score`, `settings` and `settings_table`. A change in any of them also changes the server. The rules
for imports are in `pyproject.toml`.
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

__version__ = "0.2.0"

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
