"""The place for one's own reward functions: this file is loaded by every server. Add yours below.

A function marked with `@reward_function` can be asked for by its name at once, as a `reward_type`, or as the
`data_source` `rule_remote_NAME`. Files elsewhere do as well: name them in REWARD_FUNCTIONS. What a function may take
and return is told in `docs/rules.md`; `examples/reward_functions.py` in the repository shows one of each kind.
"""

from rewardstack_rules import reward_function

__all__ = ["reward_function"]
