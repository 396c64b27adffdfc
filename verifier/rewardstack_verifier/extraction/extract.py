"""Extract the final answer of a response in linear time.

`strict` reads the last `\\boxed`, `<answer>` tag or `####` line. `standard` also reads an announced answer ("the answer
is 5"), and a response that is only an answer. `flexible` also reads the last formula or number, as lm-eval's
flexible-extract does. Text before `</think>` counts only if the text after it has no answer.
"""

from __future__ import annotations

import re
import unicodedata
from numbers import Real

from rewardstack_verifier.bounds import MAX_ANSWER
from rewardstack_verifier.extraction.announced import (
    HEDGED,
    PHRASE,
    TAKEN_BACK,
    announced,
    announcements,
    final_answer,
    value_at_start,
    within_sentence,
    without_denials,
    without_retracted,
)
from rewardstack_verifier.extraction.bare import bare_answer, last_formula
from rewardstack_verifier.extraction.boxes import Box, boxed, content_of, last_box
from rewardstack_verifier.extraction.expressions import last_expression
from rewardstack_verifier.extraction.visible import visible
from rewardstack_verifier.trail import found
from rewardstack_verifier.transcript import split_reasoning

STANDARD, STRICT, FLEXIBLE = "standard", "strict", "flexible"
MODES = (STANDARD, STRICT, FLEXIBLE)
"""Extraction modes, the default first."""
WINDOW = 16 * MAX_ANSWER
"""Characters at the end of a response that are searched for an answer without a box, tag or `####`."""
_EMPHASIS = "*_ "
_VALUE = re.compile(r"[*_\s]*(?:[-+(\[{$\\£€.\d]|[A-Za-z]\w?\s?=|[A-J][.)*_\s]*\Z)")
"""The beginning of a `####` line that has a value, and so is not a heading."""
MAX_HEADINGS = 8
"""Maximum number of `####` lines that are examined, counted from the end; headings are skipped."""
_WORDS = re.compile(r"[^\d\n\\$]{1,200}")
"""Words in an answer tag, which are the answer if no other answer is found in the tag."""
_EXCLAMATION = re.compile(r"(?<=[A-Za-z]{2})!+\Z")


def extract_answer(response: str, mode: str = STANDARD) -> str | None:
    """Return the final answer as it is written in the response; None if there is none.

    Args:
        response: text of the response; the caller limits its length.
        mode: `strict`, `standard` or `flexible`.

    Returns:
        The answer. Its length is not limited.
    """
    thought, reply = split_reasoning(visible(response))
    answer = _marked(reply, mode) if "<think>" in reply else _answer(reply, mode)
    return _answer(thought, mode) if answer is None and thought else answer


def reference_answer(reference: str) -> str:
    """Return the answer of a reference: plain text, or a solution with a box, a `####` line or an announced answer."""
    reference = _balanced(reference)
    inside = boxed(reference)
    if inside is not None:
        return inside
    rest = reference.rpartition("####")[2].strip()
    return announced(rest[-WINDOW:]) or rest


def _balanced(reference: str) -> str:
    """Return a reference without surplus closing braces at its end, which no box could hold."""
    surplus = reference.count("}") - reference.count("{")
    end = len(reference)
    while surplus > 0 and reference.endswith("}", 0, end):
        end, surplus = end - 1, surplus - 1
        while reference[end - 1 : end].isspace():
            end -= 1
    return reference[:end]


def _answer(text: str, mode: str) -> str | None:
    """Return the answer of a text in which no `</think>` separates reasoning from the answer."""
    answer = _marked(text, mode)
    if answer is not None or mode == STRICT:
        return answer
    text = without_retracted(text[-WINDOW:].strip())
    text = text if text.isascii() else unicodedata.normalize("NFC", text)
    answer = found(announced(text), "the answer is ...") or found(bare_answer(text), "the whole response")
    if mode != FLEXIBLE:
        return answer
    if answer is None:
        text = without_denials(text)
        answer = found(last_formula(text) or last_expression(text), "the last formula or number")
    else:
        answer = found(within_sentence(answer), "the last number of the sentence") or answer
    return answer


def _marked(text: str, mode: str) -> str | None:
    """Return the answer in the last answer tag or box, else on the last `####` line; None without any of these.

    A "final answer" that is announced after the last box replaces the box, unless `mode` is `strict`. A box that is
    withdrawn or hedged by the text after it gives None.
    """
    tagged, box = tag_or_box(text)
    if tagged is not None:
        inside = _EXCLAMATION.sub("", tagged)
        worded = inside if _WORDS.fullmatch(inside) else None
        return found(_answer(inside, STANDARD) or worded, "<answer>")
    if box is not None:
        if TAKEN_BACK.match(text, box.end) or HEDGED.match(text, box.end):
            return None
        final = None if mode == STRICT else final_answer(text[box.end :][-WINDOW:])
        return found(final, "the final answer behind the last \\boxed") or found(content_of(text, box), "\\boxed")
    line = hash_line(text)
    return found(_value_of(line) if line else None, "####")


def tag_or_box(text: str) -> tuple[str | None, Box | None]:
    """Return the content of the last answer tag and None, or None and the last box, whichever comes later."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else -1
    box = last_box(text, len(text))
    if start >= 0 and (box is None or box.start < end):
        return text[start + len("<answer>") : end].strip(), None
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
        raise TypeError(f"{name}: expected a string, got {described(name, value)}")


def described(name: str, value: object) -> str:
    """Return the type of an argument that is not a string, and what to pass instead."""
    remedy = "pass an empty string if there is none" if value is None else ""
    remedy = f"pass str({name})" if isinstance(value, Real) else remedy
    remedy = f"pass {name}.decode()" if isinstance(value, (bytes, bytearray)) else remedy
    return f"{type(value).__name__}; {remedy}" if remedy else type(value).__name__


def hash_line(text: str) -> str | None:
    """Return the last `####` line that is not a heading; None if there is none."""
    end = len(text)
    for _ in range(MAX_HEADINGS):
        start = text.rfind("####", 0, end)
        if start < 0:
            return None
        line, _, below = text[start + len("####") :].strip().partition("\n")
        if not below.strip() or _VALUE.match(line) or any(announcements(line[:WINDOW])):
            return line.partition("<|")[0].replace("**", "").strip(_EMPHASIS)
        end = start
    return None


def _value_of(line: str) -> str | None:
    """Return the answer of a `####` line without words such as "the answer is"; None if nothing is left."""
    phrase = PHRASE.match(line.removeprefix("The ").removeprefix("the "))
    return (value_at_start(phrase.string[phrase.end() :]) if phrase else line) or None
