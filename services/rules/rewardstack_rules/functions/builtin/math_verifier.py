"""`math_verifier`: 0.5 for the format, and 1 more for a correct answer in that format.

The format is `<think>…</think><answer>…</answer>`. As in Align-Anything's reward of the same name, a correct answer
without the format scores 0.
"""

from __future__ import annotations

from rewardstack.cause import Cause
from rewardstack_rules.functions.builtin.format import answer_in_format
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.verifier import Verifier
from rewardstack_verifier.question import Ruling

FORMAT_REWARD = 0.5


def _select_text(response: str) -> str:
    return "" if answer_in_format(response) is None else response


def _outcome(response: str, verdict: Ruling) -> Outcome:
    if verdict.right is None:
        return Outcome(None, verdict.reason, cause=Cause.BAD_REFERENCE)
    if answer_in_format(response) is None:
        return Outcome(0.0, "not in the format <think>…</think><answer>…</answer>", {"format": 0.0, "accuracy": 0.0})
    accuracy = float(verdict.right)
    return Outcome(FORMAT_REWARD + accuracy, verdict.reason, {"format": FORMAT_REWARD, "accuracy": accuracy})


VERIFIER = Verifier(select_text=_select_text, make_outcome=_outcome, is_marked=True)
