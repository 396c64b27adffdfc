"""Final answers: extract, parse and compare them. Pure functions: no server, no network, no clock.

The public functions are in `api`; `math_verify` has the functions of that library. An answer is found in the response
(`extraction`), its text becomes tokens and a tree (`reading`), and trees are compared by type (`comparison`) and
finally as numbers (`numbers`). `lexicon` is data. `bounds` refuses texts that are too large to parse. Flint is loaded
at the first comparison by value.

A server works in two steps, because a comparison can be slow: `question.ask` and `shortcut.decide_fast_path` read text
in linear time, `verification.decide` compares and belongs in a process that can be killed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardstack_verifier.api import Answer, Comparison, Value, Verdict, equivalent, explain, extract, parse, verify
    from rewardstack_verifier.question import Options

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Comparison",
    "Options",
    "Value",
    "Verdict",
    "equivalent",
    "explain",
    "extract",
    "parse",
    "verify",
]


def __getattr__(name: str) -> Any:
    # Imported late, because a trainer imports only `transcript`.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rewardstack_verifier import api

    return getattr(api, name)
