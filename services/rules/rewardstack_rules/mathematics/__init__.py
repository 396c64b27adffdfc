"""Whether an answer to a problem of mathematics is right: `verify`.

`extract` finds the answer in what of a response is `visible`: by its marks (`boxes`), or in its `prose`, if that is
`settled`, by its last one of `sentences`: an answer that is `bare`, what it says in words (`wording`), its `values`,
its `formulas`; what a sentence denies, doubts and joins is known in several `languages`. `bounds` refuses what no
parser should see. What is read (`reading`, with `lexicon` for its words) is compared by its values (`comparison`,
`numbers`). The few that are not are compared by their texts: `notation` (`rewrites`, `symbols`) and `structure` read
what people write in many ways; `equal` compares what has parts, `single` what has none: by `ratios`, `exact` numbers,
`algebra` and, for the rest, math_verify (`symbolic`).

`verify` is `ask`, which reads the text, and `decide`, which compares. Everything here is pure: no signals, no threads,
no clock. `decide` may run for ever or take all memory on what passes the bounds, so it belongs into a process that can
be killed (`rewardstack_rules.isolation`); `ask` and `decide_plainly` need none, and load no library. What they found
and compared they tell (`trail`) to who explains a verdict (`explanation`).
"""

from rewardstack_rules.mathematics.explanation import decide_aloud, read_out
from rewardstack_rules.mathematics.question import Question, Verdict, ask
from rewardstack_rules.mathematics.shortcut import decide_plainly
from rewardstack_rules.mathematics.verification import decide, verify
from rewardstack_rules.mathematics.warming import warm_up

__all__ = ["Question", "Verdict", "ask", "decide", "decide_aloud", "decide_plainly", "read_out", "verify", "warm_up"]
