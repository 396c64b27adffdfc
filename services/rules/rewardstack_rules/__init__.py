"""The reward server. Custom reward functions import `reward_function` and `Unscored` from this package.

The top level holds the entry points (`run_reward_server`; `reward_server` to try functions), shared modules (`settings`
with its table `settings_table`, `logs`, `process`) and `reward_functions`, the file for custom functions. The packages:

- `http`: endpoints, API keys, limits and trainer protocols, under Flask and gunicorn
- `jobs`: a queue for large evaluations; workers score a job in chunks
- `scoring`: scores samples through the client's pipeline, with rules that run on this machine
- `functions`: the reward functions and their registry
- `code`: runs generated programs against tests
- `isolation`: runs tasks in child processes that can be killed
- `confinement`: limits a process with seccomp and Landlock, and drops its capabilities
- `golden`: looks up golden responses by prompt
- `metrics`: Prometheus counters
- `status`: the status page

The math verifier is a separate distribution (`rewardstack_verifier`). `pyproject.toml` lists which package may import
which.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardstack_rules.functions.outcome import Unscored
    from rewardstack_rules.functions.user_functions import reward_function

__all__ = ["Unscored", "reward_function"]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    # Imported late, because the supervisor processes of `isolation` import this package and must stay small.
    if name == "Unscored":
        from rewardstack_rules.functions.outcome import Unscored

        return Unscored
    if name == "reward_function":
        from rewardstack_rules.functions.user_functions import reward_function

        return reward_function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
