"""The file for your reward functions: every server loads it. Add yours below.

Use a function marked with `@reward_function` by its name, as a `reward_type`, or as the `data_source`
`rule_remote_NAME`. Name other files in REWARD_FUNCTIONS. `docs/rules.md` describes parameters and return values;
`examples/reward_functions.py` in the repository shows one of each kind.
"""

from rewardstack_rules import reward_function

__all__ = ["reward_function"]
