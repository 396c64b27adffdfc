"""Golden responses by prompt, for callers that send none.

`dataset` reads the file, `responses` finds the answer to a prompt, `nearest` the question most like a prompt.
This package does not score: the answers replace references that a request lacks.
"""

from rewardstack_rules.golden.dataset import load_golden
from rewardstack_rules.golden.responses import GoldenResponses

__all__ = ["GoldenResponses", "load_golden"]
