"""Whether an answer to a problem of mathematics is right: `verify`.

The stages are folders: the answer is found in the response (`extraction`); its text becomes tokens, and those a tree
(`reading`); trees are compared by their types (`comparison`), down to expressions, which are by their values
(`numbers`). What words mean in which language is data (`lexicon`). `bounds` refuses what no parser should see; what the
parser cannot read is compared as text.

`verify` is `ask`, which reads the text, and `decide`, which compares. `decide` may run for ever or take all memory on
what passes the bounds, so it belongs in a process that can be killed (`rewardstack_rules.isolation`); `ask` and
`decide_plainly` need none, and load no library. No verdict depends on a clock. What they found and compared they tell
(`trail`) to who explains a verdict (`explanation`), or counts them.
"""

from rewardstack_verifier.explanation import read_out
from rewardstack_verifier.question import EXTRACTIONS, Options, Question, Verdict, ask
from rewardstack_verifier.shortcut import decide_plainly
from rewardstack_verifier.verification import decide, decide_aloud, verify, warm_up

__all__ = [
    "EXTRACTIONS",
    "Options",
    "Question",
    "Verdict",
    "ask",
    "decide",
    "decide_aloud",
    "decide_plainly",
    "read_out",
    "verify",
    "warm_up",
]
