"""Extract, parse and compare final answers with pure functions, without a server, network or clock.

The public functions are in `api`; `math_verify` has the interface of the Math-Verify library. `extraction` finds the
answer in the response, `reading` parses its text into trees, `comparison` compares two trees of answers, and `numbers`
compares two expressions by value. `lexicon` has tables of words and units. `bounds` refuses texts that are too long or
too deeply nested to parse. `transcript` finds the last assistant turn in a decoded response; the rewardstack
client imports only `transcript`. The Flint library is loaded at the first comparison that `shortcut` does not decide.

A comparison can be slow, so a server works in two steps. First, it calls `question.ask` and
`shortcut.decide_fast_path`, which take linear time. If these do not decide the verdict, it calls `verification.decide`,
which must run in a process that can be killed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardstack_verifier.api import Answer, Comparison, Value, Verdict, equivalent, explain, extract, parse, verify
    from rewardstack_verifier.question import Options

__version__ = "0.2.0"
__all__ = ["Answer", "Comparison", "Options", "Value", "Verdict", "equivalent", "explain", "extract", "parse", "verify"]


def __getattr__(name: str) -> Any:
    # `api` is imported at first use, because the client imports only `transcript`.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rewardstack_verifier import api

    return getattr(api, name)
