"""`data_source` names: those of verl's data sets, and those that the `*_remote` files use.

The former are as in `verl/utils/reward_score/__init__.py` of verl 0.7.
"""

from __future__ import annotations

from collections.abc import Mapping

RULE_PREFIX = "rule_remote_"
JUDGE = "llm_judge_remote"
EMBEDDING = "embedding_remote"
"""The file `rule_remote.py` uses RULE_PREFIX and a function's name in place of a sample's `data_source`;
`llm_judge_remote.py` uses JUDGE, and `embedding_remote.py` EMBEDDING."""
NAMES: Mapping[str, str] = {
    "openai/gsm8k": "gsm8k",
    "lighteval/MATH": "math",
    "DigitalLearningGmbH/MATH-lighteval": "math",
    "HuggingFaceH4/MATH-500": "math",
    "hiyouga/geometry3k": "math",
    "numina_aops_forum": "math",
    "numina_synthetic_math": "math",
    "numina_amc_aime": "math",
    "numina_synthetic_amc": "math",
    "numina_cn_k12": "math",
    "numina_olympiads": "math",
    **dict.fromkeys(("codecontests", "apps", "codeforces", "taco", "livecodebench"), "code"),
}
"""Reward function of each data set. `math_dapo` and `math_dapo_reasoning` match the route `math` by its prefix."""
BEGINNINGS: Mapping[str, str] = {"aime": "math"}
"""Reward functions by prefix of the data set's name."""

_OWN = "a reward function of your own can (REWARD_FUNCTIONS), behind a route (REWARDSTACK_ROUTES)"
_SEARCH = f"no reward function here compares words as Search-R1 does, without case, articles and punctuation; {_OWN}"
UNSERVED: Mapping[str, str] = {
    "searchR1_": _SEARCH,
}
"""Reason and remedy for names of verl without a route; a name that ends with an underscore is a prefix."""


def why_unserved(source: str) -> str:
    """Return why a data set of verl has no route, and the remedy; empty for other names."""
    return UNSERVED.get(source) or UNSERVED.get(f"{source.partition('_')[0]}_", "")
