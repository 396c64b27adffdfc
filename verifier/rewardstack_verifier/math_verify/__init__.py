"""The functions of math_verify with their signatures, so that you can switch graders with one import line.

    from rewardstack_verifier.math_verify import parse, verify    # was: from math_verify import parse, verify

The modules have that library's names: `parser`, `grader`, `metric`, `errors`, `utils`. `parse` returns a list with the
extracted answer as text instead of SymPy expressions; `verify` compares such lists. Arguments that only concern SymPy
or a clock have no effect: no verdict depends on time. Signatures are those of math-verify 0.9
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
