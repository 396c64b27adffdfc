"""The place for one's own reward functions: this file is loaded by every server. Add yours below.

A function marked with `@reward_function` is asked for by its name, as a `reward_type`, or as the `data_source`
`rule_remote_NAME`. Name other files in REWARD_FUNCTIONS. `docs/rules.md` says what a function may take and return;
`examples/reward_functions.py` in the repository shows one of each kind.
"""

from rewardstack_rules import reward_function

__all__ = ["reward_function"]
