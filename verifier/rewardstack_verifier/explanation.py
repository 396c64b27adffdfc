"""Explain a verdict: the answer and where it was found, the answers in the references, and which step decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewardstack_verifier.bounds import MAX_RESPONSE, refusal
from rewardstack_verifier.extraction.extract import extract_answer, reference_answer
from rewardstack_verifier.question import DEFAULT, Options, Ruling, ask
from rewardstack_verifier.shortcut import decide_fast_path
from rewardstack_verifier.tracing import with_trace

DECIDERS = {
    "text": "a comparison of the texts",
    "plainly": "the fast path: texts that are the same, or plain numbers",
    "isolated": "an isolated process",
}
"""The steps that can decide a verdict, with their descriptions in the output."""


def read_out(solution: str, references: Sequence[str], options: Options = DEFAULT) -> dict[str, Any]:
    """Return the extracted answer, the answers in the references, and the step that decides the verdict, as JSON types.

    Args:
        solution: text of the response; a response longer than `MAX_RESPONSE` has no answer.
        references: as for `ask`.
        options: as for `ask`.
    """
    mode = options.extraction
    answer, places = with_trace(lambda: extract_answer(solution, mode)) if len(solution) <= MAX_RESPONSE else (None, [])
    question = ask(solution, references, options)
    facts: dict[str, Any] = {"answer": answer, "found in": ", in ".join(dict.fromkeys(places)) or "nothing"}
    facts["references as read"] = [reference_answer(one) for one in references]
    if isinstance(question, Ruling):
        return {**facts, "decided by": DECIDERS["text"]}
    refusals = {one: why for one in question.expected if (why := refusal(one))}
    is_fast = decide_fast_path(question) is not None
    return {
        **facts,
        **({"fault": question.fault} if question.fault else {}),
        **({"references refused": refusals} if refusals else {}),
        "decided by": DECIDERS["plainly" if is_fast else "isolated"],
    }
