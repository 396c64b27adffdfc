"""Extract the answer from a response in the format `<think>…</think><answer>…</answer>`, in linear time."""

from __future__ import annotations

THINK, THINK_END = "<think>", "</think>"
ANSWER, ANSWER_END = "<answer>", "</answer>"


def answer_in_format(response: str) -> str | None:
    """Return the text between `<answer>` and `</answer>`.

    Args:
        response: the policy's text.

    Returns:
        The answer; None unless the response consists of one `<think>` block immediately followed by one `<answer>`
        block.
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
