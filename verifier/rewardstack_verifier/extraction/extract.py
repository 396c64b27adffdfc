"""Extract the final answer of a response in linear time.

`strict` reads the last `\\boxed` or `<answer>` tag, or, without these, the last `####` line that is not a heading.
`standard` also reads an announced answer ("the answer is 5"), and a response that is only an answer. `flexible` also
reads the last formula or number, as lm-eval's flexible-extract does. In each mode, the content of an `<answer>` tag is
read as in `standard`. Text before `</think>` counts only if the text after it has no answer; unless that text is blank,
only a box, tag or `####` line before it counts, and so it is if a `<think>` is not closed.
"""

from __future__ import annotations

import re
import unicodedata
from numbers import Real

from rewardstack_verifier.bounds import MAX_ANSWER
from rewardstack_verifier.extraction.announcements import (
    HEDGED,
    PHRASE,
    extract_announced,
    find_announcements,
    find_number_in_sentence,
    is_value_withdrawn,
    read_value,
)
from rewardstack_verifier.extraction.bare_answers import bare_answer, last_formula
from rewardstack_verifier.extraction.boxes import Box, extract_boxed, find_last_box, read_box_content
from rewardstack_verifier.extraction.denials import is_denied_before, is_withdrawn
from rewardstack_verifier.extraction.expressions import find_last_expression
from rewardstack_verifier.extraction.visible_text import get_visible_text
from rewardstack_verifier.tracing import trace_place
from rewardstack_verifier.transcript import split_reasoning

STANDARD, STRICT, FLEXIBLE = "standard", "strict", "flexible"
MODES = (STANDARD, STRICT, FLEXIBLE)
"""Extraction modes, the default first."""
WINDOW = 16 * MAX_ANSWER
"""Number of characters at the end of a text to search for an answer without a box, tag or `####`."""
_EMPHASIS = "*_ "
"""Signs around bold or italic text, and blanks."""
_VALUE = re.compile(r"[*_\s]*(?:[-+(\[{$\\£€.\d]|[A-Za-z]\w?\s?=|[A-J][.)*_\s]*\Z)")
"""Matches the value with which a `####` line begins. A line that begins with a value is not a heading."""
_FIGURE = re.compile(r"[\d\\]")
"""A digit or a command, one of which an answer that replaces a box contains."""
MAX_HEADINGS = 8
"""Maximum number of `####` lines to examine, from the end; headings are skipped."""
_WORDS = re.compile(r"[^\d\n\\$]{1,200}")
"""Words in an answer tag, which are the answer if the tag has no other answer."""
_BARE_NUMBER = re.compile(r"[\s$]*-?\d[\d.,]*[\s$]+")
"""A number before a box, which is another answer."""
_EXCLAMATION = re.compile(r"(?<=[A-Za-z]{2})!+\Z")
"""Exclamation marks after a word, which are not factorials."""


def extract_answer(response: str, mode: str = STANDARD) -> str | None:
    """Return the final answer as it is written in the response; None if there is none.

    Args:
        response: text of the response; the caller limits its length.
        mode: `strict`, `standard` or `flexible`.

    Returns:
        The answer. Its length is not limited.
    """
    thought, reply = split_reasoning(get_visible_text(response))
    answer = _marked_answer(reply, mode) if "<think>" in reply else _find_answer(reply, mode)
    return _find_answer(thought, STRICT if reply.strip() else mode) if answer is None and thought else answer


def reference_answer(reference: str) -> str:
    """Return the answer of a reference.

    If there is a box, this is the content of the last one. Otherwise, text up to the last `####` is ignored, and the
    result is the answer that the rest announces ("the answer is 5"), or the whole rest if it announces none.
    """
    reference = _drop_surplus_braces(reference)
    content = extract_boxed(reference)
    if content is not None:
        return content
    rest = reference.rpartition("####")[2].strip()
    return extract_announced(rest[-WINDOW:]) or rest


def _drop_surplus_braces(reference: str) -> str:
    """Return a reference without surplus closing braces at its end."""
    surplus = reference.count("}") - reference.count("{")
    end = len(reference)
    while surplus > 0 and reference.endswith("}", 0, end):
        end, surplus = end - 1, surplus - 1
        while reference[end - 1 : end].isspace():
            end -= 1
    return reference[:end]


def _find_answer(text: str, mode: str) -> str | None:
    """Return the answer in a reply, in reasoning, or in the content of an answer tag; None if there is none."""
    answer = _marked_answer(text, mode)
    if answer is not None or mode == STRICT:
        return answer
    text = text[-WINDOW:].strip()
    text = text if text.isascii() else unicodedata.normalize("NFC", text)
    answer = trace_place(extract_announced(text), "the answer is ...") or trace_place(
        bare_answer(text), "the whole response"
    )
    if mode == FLEXIBLE and answer is None:
        return trace_place(_last_expression(text), "the last formula or number")
    if mode == FLEXIBLE and answer is not None:
        return trace_place(find_number_in_sentence(answer), "the last number of the sentence") or answer
    return answer


def _last_expression(text: str) -> str | None:
    """Return the last formula or number of a text; None if there is none, or if the text denies or withdraws it."""
    last = last_formula(text) or find_last_expression(text)
    start = max(0, text.rfind(last)) if last is not None else 0
    if last is None or is_denied_before(text, start) or is_value_withdrawn(text, last, start):
        return None
    return last


def _marked_answer(text: str, mode: str) -> str | None:
    """Return the answer in the last answer tag or box, else on the last `####` line; None without any of these.

    An answer that is announced after the last box replaces the box, unless `mode` is `strict`. The result is None if
    the text after the box withdraws or hedges it.
    """
    tagged, box = find_tag_or_box(text)
    if tagged is not None:
        content = _EXCLAMATION.sub("", tagged)
        words = content if _WORDS.fullmatch(content) else None
        inner = find_last_box(content, len(content))
        if inner is not None and _BARE_NUMBER.fullmatch(content[: inner.start]):
            return ""  # two answers
        return trace_place(_find_answer(content, STANDARD) or words, "<answer>")
    if box is not None:
        if HEDGED.match(text, box.end):
            return None
        rest = text[box.end :][-WINDOW:]
        announced = extract_announced(rest) if mode != STRICT and _FIGURE.search(rest.strip("\\])$. \n")) else None
        later = announced if announced is not None and _FIGURE.search(announced) else None
        boxed = None if is_withdrawn(text, box.end) else read_box_content(text, box)
        return trace_place(later, "the answer announced after the last \\boxed") or trace_place(boxed, "\\boxed")
    line = find_hash_line(text)
    return trace_place(_hash_line_value(line) if line else None, "####")


def find_tag_or_box(text: str) -> tuple[str | None, Box | None]:
    """Return the content of the last answer tag, and the last box. At least one of the two is None.

    If a text has both, the earlier one is None. A box inside the tag also counts as earlier.
    """
    lowered = text.lower() if len(text.lower()) == len(text) else text
    end = lowered.rfind("</answer>")
    start = lowered.rfind("<answer>", 0, end) if end >= 0 else -1
    box = find_last_box(text, len(text))
    if start >= 0 and (box is None or box.start < end):
        before = lowered.rfind("</answer>", 0, start)
        is_joined = before >= 0 and HEDGED.match(text, before + len("</answer>"))
        return ("" if is_joined else text[start + len("<answer>") : end].strip()), None
    return None, box


def check_mode(mode: str) -> None:
    """Raise an error if a mode is unknown.

    Raises:
        ValueError: `mode` is not one of `MODES`.
    """
    if mode not in MODES:
        raise ValueError(f"extraction: {mode!r} is unknown; use one of {', '.join(MODES)}")


def check_text(name: str, value: object) -> None:
    """Raise an error if a value is not a string.

    Args:
        name: name of the argument.
        value: value of the argument.

    Raises:
        TypeError: the value is not a string.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {describe_type(name, value)}")


def describe_type(name: str, value: object) -> str:
    """Return the type of an argument that is not a string, and advice on what to pass instead, if any."""
    remedy = f"pass an empty string for a missing {name}" if value is None else ""
    remedy = f"pass str({name})" if isinstance(value, Real) else remedy
    remedy = f"pass {name}.decode()" if isinstance(value, (bytes, bytearray)) else remedy
    return f"{type(value).__name__}; {remedy}" if remedy else type(value).__name__


def find_hash_line(text: str) -> str | None:
    """Return the last `####` line that is not a heading, without `####` and emphasis; None if there is none.

    The result is empty if the line has several `####`. A line is a heading if text follows it, and it neither begins
    with a value nor announces an answer.
    """
    end = len(text)
    for _ in range(MAX_HEADINGS):
        start = text.rfind("####", 0, end)
        if start < 0:
            return None
        if "####" in text[text.rfind("\n", 0, start) + 1 : start].rstrip("# "):
            return ""
        line, _, below = text[start + len("####") :].strip().partition("\n")
        if not below.strip() or _VALUE.match(line) or any(find_announcements(line[:WINDOW])):
            return line.partition("<|")[0].replace("**", "").strip(_EMPHASIS)
        end = start
    return None


def _hash_line_value(line: str) -> str | None:
    """Return the answer of a `####` line, without words such as "the answer is"; None if nothing is left."""
    phrase = PHRASE.match(line.removeprefix("The ").removeprefix("the "))
    return (read_value(phrase.string[phrase.end() :]) if phrase else line) or None
