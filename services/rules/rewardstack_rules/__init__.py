"""rewardstack_rules: the reward server. `reward_function` and `Unscored` are for custom reward functions.

The top level has the entry point (`run_reward_server`), shared modules (`settings`, `logs`, `process`), and
`reward_functions`, the file for custom functions. The packages:

- `http`: endpoints, keys, limits and protocols, under Flask and gunicorn
- `jobs`: large evaluations, in chunks that workers score
- `scoring`: evaluation of a sample by a rule
- `functions`: the reward functions and their registry
- `isolation`: processes that can be killed; imports no other package except `confinement`
- `golden`, `metrics`: golden answers by prompt; counters

The math verifier is a separate distribution (`rewardstack_verifier`). From `rewardstack` the server imports `core`,
`cache`, `routing`, `scorers` and `pipeline`, and some top-level modules; `pyproject.toml` lists them for each package.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardstack_rules.functions.outcome import Unscored
    from rewardstack_rules.functions.user_functions import reward_function

__all__ = ["Unscored", "reward_function"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported late, because supervising processes import this package, too, and must stay small.
    if name == "Unscored":
        from rewardstack_rules.functions.outcome import Unscored

        return Unscored
    if name == "reward_function":
        from rewardstack_rules.functions.user_functions import reward_function

        return reward_function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
