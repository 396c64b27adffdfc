"""The format `<think>…</think><answer>…</answer>`, read in one pass over any response."""

from __future__ import annotations

THINK, THINK_END = "<think>", "</think>"
ANSWER, ANSWER_END = "<answer>", "</answer>"


def answer_in_format(response: str) -> str | None:
    """Return the text between `<answer>` and `</answer>`.

    Args:
        response: has the format if it is one `<think>` block and, right behind it, one `<answer>` block, and nothing
            before, between or after.

    Returns:
        The answer; None if the response does not have the format.
    """
    if not response.startswith(THINK) or response.count(THINK) != 1 or response.count(ANSWER) != 1:
        return None
    start = response.find(THINK_END) + len(THINK_END)
    if start < len(THINK_END) or not response.startswith(ANSWER, start):
        return None
    start += len(ANSWER)
    end = response.find(ANSWER_END, start)
    if end < 0 or end + len(ANSWER_END) != len(response):
        return None
    return response[start:end].strip()
