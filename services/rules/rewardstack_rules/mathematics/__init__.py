"""Whether an answer to a problem of mathematics is right: `verify`.

`extract` finds the answer in a response, `bounds` refuses what no parser should see, `notation` and `structure` read
what people write in many ways, `exact`, `words` and, for the rest, math_verify decide equality (`equal`).

Everything here is pure: no signals, no threads, no clock. It may run for ever or take all memory on what passes the
bounds, so it belongs into a process that can be killed (`rewardstack_rules.isolation`).
"""

from rewardstack_rules.mathematics.verification import Verdict, verify
from rewardstack_rules.mathematics.warming import warm_up

__all__ = ["Verdict", "verify", "warm_up"]
