"""rewardstack_rules: the reward server. `reward_function` and `Unscored` are for one's own reward functions.

At the top stands what starts it (`run_reward_server`), what every room reads (`settings`, `logs`, `process`), and
`reward_functions`, the file for one's own. The rooms:

- `http`: endpoints, keys, limits and protocols, under Flask and gunicorn
- `jobs`: large evaluations, in chunks that workers score
- `scoring`: how a sample is evaluated by a rule
- `functions`: the reward functions and their registry
- `isolation`: processes that can be killed; imports no other room
- `golden`, `metrics`: golden answers by prompt; what is counted

The verifier of mathematics is another distribution (`rewardstack_verifier`). Of `rewardstack` the server imports
`core`, `cache`, `routing`, `scorers` and `pipeline`, and some modules at its top; `pyproject.toml` lists
them for each package.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardstack_rules.functions.outcome import Unscored
    from rewardstack_rules.functions.user_functions import reward_function

__all__ = ["Unscored", "reward_function"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Late, because the processes that only supervise others import this package too and are to stay small.
    if name == "Unscored":
        from rewardstack_rules.functions.outcome import Unscored

        return Unscored
    if name == "reward_function":
        from rewardstack_rules.functions.user_functions import reward_function

        return reward_function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
