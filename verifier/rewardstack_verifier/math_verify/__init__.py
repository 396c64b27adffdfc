"""Provide the functions of the math_verify library with the same signatures. To switch graders, change the import.

    from rewardstack_verifier.math_verify import parse, verify    # was: from math_verify import parse, verify

The modules have the names of math_verify's modules: `parser`, `grader`, `metric`, `errors`, `utils`. `parse` returns a
list with the text of the answer instead of SymPy expressions; `verify` compares these lists. Arguments for SymPy and
for timeouts have no effect: no verdict depends on time. Signatures are those of math-verify 0.9
(https://github.com/huggingface/Math-Verify).
"""

from rewardstack_verifier.math_verify.grader import verify
from rewardstack_verifier.math_verify.metric import math_metric
from rewardstack_verifier.math_verify.parser import (
    ExprExtractionConfig,
    LatexExtractionConfig,
    StringExtractionConfig,
    parse,
)
from rewardstack_verifier.math_verify.parser import NormalizationConfig as LatexNormalizationConfig

__all__ = [
    "ExprExtractionConfig",
    "LatexExtractionConfig",
    "LatexNormalizationConfig",
    "StringExtractionConfig",
    "math_metric",
    "parse",
    "verify",
]
