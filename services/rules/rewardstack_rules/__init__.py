"""rewardstack_rules: the reward server. `reward_function` and `Unscored` are for one's own reward functions."""

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
