"""Look up golden responses (reference answers) by prompt, for requests without references.

`dataset` reads the file, `responses` finds the answer to a prompt, and `nearest` finds the most similar questions.
"""

from rewardstack_rules.golden.dataset import load_golden
from rewardstack_rules.golden.responses import GoldenResponses

__all__ = ["GoldenResponses", "load_golden"]
