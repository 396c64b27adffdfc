"""The `data_source` names of verl's own data sets, as `verl/utils/reward_score/__init__.py` of 0.7 tells them apart."""

from __future__ import annotations

from collections.abc import Mapping

RULE_PREFIX = "rule_remote_"
JUDGE = "llm_judge_remote"
EMBEDDING = "embedding_remote"
"""What the files that trainers load by path score by, whatever a sample's `data_source` is."""
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
"""The reward function of each; `math_dapo` and `math_dapo_reasoning` are `math`'s, as every name is that goes on so."""
BEGINNINGS: Mapping[str, str] = {"aime": "math"}
"""The same for all names that begin so."""

_OWN = "a reward function of your own can (REWARD_FUNCTIONS), behind a route (REWARDSTACK_ROUTES)"
_SEARCH = f"no reward function here compares words as Search-R1 does, without case, articles and punctuation; {_OWN}"
UNSERVED: Mapping[str, str] = {
    "searchR1_": _SEARCH,
}
"""Why a name, or what begins with one that ends with an underscore, has no route, and the remedy."""


def why_unserved(source: str) -> str:
    """Why a name of verl's has no route, and the remedy; empty for any other."""
    return UNSERVED.get(source) or UNSERVED.get(f"{source.partition('_')[0]}_", "")
