"""Built-in `data_source` names: the data sets that verl 0.7 knows, and the names that the `*_remote` files use.

The data sets are those in `verl/utils/reward_score/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

RULE_PREFIX = "rule_remote_"
JUDGE = "llm_judge_remote"
EMBEDDING = "embedding_remote"
"""The names that the `*_remote` files use in place of a sample's `data_source`: `rule_remote.py` uses RULE_PREFIX and a
function's name, `llm_judge_remote.py` uses JUDGE, and `embedding_remote.py` uses EMBEDDING."""
DATA_SOURCES: Mapping[str, str] = {
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
"""The reward function for each data set. `math_dapo` and `math_dapo_reasoning` are not listed, because the route `math`
matches names that begin with `math_`."""
PREFIXES: Mapping[str, str] = {"aime": "math", "searchR1_": "qa_match"}
"""The reward function for each prefix of a data set's name."""
