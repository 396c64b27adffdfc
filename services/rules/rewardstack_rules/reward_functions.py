"""The file for your reward functions. Every reward server loads it. Add yours below.

Mark a function with `@reward_function`. A request selects the function by its name in `reward_type`, or by
`rule_remote_NAME` in `data_source`. To load other files, list them in REWARD_FUNCTIONS. `docs/rules.md` describes
parameters and return values; `examples/reward_functions.py` in the repository shows one function of each kind.
"""

from rewardstack_rules import reward_function

__all__ = ["reward_function"]
