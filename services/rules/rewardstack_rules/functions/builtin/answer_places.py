"""Find the final answer of a response at a place that the prompt asked for, such as the last `<answer>` tag."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rewardstack_rules.code.extraction import fenced_blocks
from rewardstack_verifier.extraction.announcements import find_announcements
from rewardstack_verifier.extraction.boxes import extract_boxed
from rewardstack_verifier.extraction.expressions import last_match
from rewardstack_verifier.extraction.visible_text import get_visible_text

MAX_ANSWER = 100_000
"""Maximum number of characters of an answer; a longer one is not read."""
_RETRIEVED = re.compile(r"<information>.*?(?:</information>|\Z)", re.DOTALL)
"""Matches documents that a search returned; an answer in them is not the policy's."""
_WRAPPER = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|emph)\s{0,3}\{([^{}]*)\}")
"""Matches a LaTeX command around words."""


def find_answer(response: str, place: str) -> tuple[str, str]:
    """Return the answer at a place, and why there is none. Reasoning and retrieved documents are not searched.

    Args:
        response: the policy's text.
        place: a key of `PLACES`.

    Returns:
        The answer and an empty text; an empty text and the reason if the answer is missing or too long.
    """
    found = PLACES[place](_RETRIEVED.sub(" ", get_visible_text(response)))
    if found is None:
        return "", MISSING[place]
    answer = _WRAPPER.sub(r"\1", found).strip()
    return ("", "the answer is too long") if len(answer) > MAX_ANSWER else (answer, "")


def count_tags(response: str) -> int:
    """Return how many `<answer>` or `</answer>` tags a response has, whichever are more."""
    return max(response.count("<answer>"), response.count("</answer>"))


def _last_tag(name: str) -> Callable[[str], str | None]:
    def find(text: str) -> str | None:
        lowered = text.lower() if len(text.lower()) == len(text) else text
        end = lowered.rfind(f"</{name}>")
        start = lowered.rfind(f"<{name}>", 0, end) if end >= 0 else -1
        return text[start + len(name) + 2 : end] if start >= 0 else None

    return find


def _last_announced(text: str) -> str | None:
    last = last_match(find_announcements(text))
    return None if last is None else text[last.end() :].lstrip(" :").partition("\n")[0]


def _last_fence(text: str) -> str | None:
    blocks = fenced_blocks(text)
    return blocks[-1][1] if blocks else None


PLACES: Mapping[str, Callable[[str], str | None]] = {
    "answer": _last_tag("answer"),
    "finish": _last_tag("finish"),
    "box": extract_boxed,
    "announced": _last_announced,
    "fence": _last_fence,
    "all": lambda text: text,
}
"""The last closed tag `<answer>` or `<finish>`, the last `\\boxed{}`, the rest of the line behind "the answer is", the
last closed fenced block, or the whole text."""
MISSING: Mapping[str, str] = {
    "answer": "the response has no <answer>…</answer>",
    "finish": "the response has no <finish>…</finish>",
    "box": r"the response has no \boxed{…}",
    "announced": "the response does not say what its answer is",
    "fence": "the response has no closed fenced block",
    "all": "the response is empty",
}
"""The reason if there is no answer at a place."""
