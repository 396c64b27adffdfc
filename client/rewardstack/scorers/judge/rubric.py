"""Parse rubrics and the judge's answers to them, and compute the reward.

A rubric is a list of criteria. For each criterion, the judge answers yes or no, or selects a choice. The reward is the
sum of the points of met criteria, divided by the sum of all positive points, as in HealthBench. A criterion with
negative points describes an undesired property. The judge sees the points only if a custom template shows the
criteria and asks for a single verdict on all of them (`format_criteria`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from rewardstack.core.fields import Fields, field_error
from rewardstack.core.json_types import is_finite, plain
from rewardstack.core.misspellings import MAX_NAMES, find_closest
from rewardstack.errors import RequestError
from rewardstack.scorers.judge.verdict import CONTINUED, DECORATION, UnreadableError, Verdict, without_thinking

FIELD = "rubrics"
"""Field of `extra_info` with the criteria."""
TEXT_FIELDS = ("criterion", "criteria", "description", "text")
POINTS_FIELDS = ("points", "weight", "score", "value", "reward", "max_points", "importance")
NAME_FIELDS = ("title", "name")
"""Fields of a criterion that may contain its name. The first match is used; the same is true for `TEXT_FIELDS`."""
NUMBER_FIELDS = ("id", "index", "idx", "number", "order", "position", "rank", "level", "version")
"""Fields of a criterion whose numbers are not its points."""
MAX_CRITERIA = 128
"""Maximum number of criteria."""
MAX_CHARACTERS = 10_000
"""Maximum length of a criterion's text, in characters."""
MAX_NAME = 80
"""Maximum length of a criterion's name, in characters; longer names are cut."""
MAX_POINTS = 1e6
"""Maximum absolute value of a criterion's points."""
YES_NO = ("no", "yes")
"""The valid answers to a criterion without choices, from worst to best."""
GRADES = ("0.00", "1.00")
"""The lowest and the highest valid answer if the judge scores a candidate. All numbers between them with two decimals
are valid, too."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Valid answers to a criterion with choices, one letter for each choice."""
RESERVED_PARTS = frozenset({"acc", "accuracy", "positive", "negative"})
"""Names of parts of a score that have another meaning, and so cannot be the name of a criterion."""

_ANSWER = re.compile(
    r"(?P<number>[0-9]{1,4})\s{0,4}(?:[.)]?[:=-]{1,2}|(?P<item>[.)]{1,2}))\s{0,4}"
    r"(?P<word>[A-Za-z](?!\s{1,4}\w)|\w{2,12})(?![\w/])(?!\s{1,4}(?:and|or)\b)(?(item)(?:(?<=yes)|(?!\s{1,4}\w)))",
    re.IGNORECASE,
)
"""A criterion's number and answer. In a list item such as `1. No dose is named`, the first word is not an answer."""
_GRADE = re.compile(
    r"(?P<number>[0-9]{1,4})\s{0,4}(?:[:)=]{1,2}|[.-](?=\s))\s{0,4}(?P<word>[0-9]{0,4}\.?[0-9]{1,9})(?![\w./%])"
    rf"(?!{CONTINUED.pattern})",
    re.IGNORECASE,
)
"""A candidate's number and score; `1.5` is not candidate 1 with score 5."""
_NUMBER = re.compile(r"[0-9]{1,4}")
_OBJECT_START = re.compile(r"^[ \t]{0,8}(?:```(?:json)?[ \t]{0,8})?(?=\{)", re.MULTILINE)
"""The start of a line that begins with a JSON object."""
_OBJECT_END = re.compile(r"[ \t]{0,8}(?:```)?[ \t]{0,8}(?:\n|\Z)")
"""The end of a line after a JSON object."""
_MAX_OBJECTS = 64
"""Maximum number of positions in a reply at which to look for a JSON object."""
_WORDS = {"yes": "yes", "no": "no", "true": "yes", "false": "no", "met": "yes", "unmet": "no"}


class Criterion(NamedTuple):
    """One criterion of a rubric.

    Args:
        name: name of the criterion in the score's `parts`: the name that the sample gives it or, if this name is
            missing, reserved, a number or not unique, the criterion's number.
        text: the text of the criterion, in one line.
        points: points for a response that meets the criterion; below 0 for an undesired property.
        choices: texts of the choices from worst to best; empty for a criterion that is answered with yes or no.
        must_pass: whether the reward is at most 0 if the criterion is not fully met.
    """

    name: str
    text: str
    points: float = 1.0
    choices: tuple[str, ...] = ()
    must_pass: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The valid answers to the criterion, from worst to best."""
        return tuple(LETTERS[: len(self.choices)]) or YES_NO

    def to_record(self) -> dict[str, Any]:
        """Return the criterion as a record that `read_rubric` can parse."""
        modifiers = {"category": "must_pass"} if self.must_pass else {}
        fields = {"name": self.name, "text": self.text, "points": self.points}
        return {**fields, "choices": list(self.choices), "modifiers": modifiers}


Rubric = tuple[Criterion, ...]
Answers = tuple[tuple[str, ...], ...]
"""The valid answers to each criterion; in a listwise comparison, `GRADES` for each candidate."""


def read_rubric(extra: Mapping[str, Any]) -> Rubric:
    """Parse the criteria of a sample; return an empty rubric if there are none.

    Args:
        extra: the sample's `extra_info`. The criteria are in `rubrics`, else `rubric`, else `reward_model.rubrics`, as
            a list or as JSON.

    Raises:
        RequestError: a criterion is invalid; the error names the criterion and the field.
    """
    fields = Fields(extra)
    model = fields.get("reward_model")
    value = next((one for name in (FIELD, "rubric") if (one := fields.get(name)) is not None), None)
    if value is None and isinstance(model, dict):
        value = plain(model.get(FIELD))
    if value is None:
        return ()
    entries = _find_criteria(value)
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_CRITERIA:
        shown = f"{len(entries)} criteria" if isinstance(entries, list) else f"a value of type {type(value).__name__}"
        why = f"expected a list of 1 to {MAX_CRITERIA} criteria such as {{'criterion': 'Names a dose', 'points': -5}}"
        raise field_error(FIELD, f"{why}, got {shown}")
    criteria = [_parse_criterion(number, entry) for number, entry in enumerate(entries, 1)]
    if not any(criterion.points > 0 for criterion in criteria):
        raise field_error(FIELD, "no criterion has points above 0; add a criterion that describes a good response")
    names = [criterion.name for criterion in criteria]
    return tuple(
        criterion if _is_part_name(name) and names.count(name) == 1 else criterion._replace(name=str(number))
        for number, (name, criterion) in enumerate(zip(names, criteria, strict=True), 1)
    )


def _is_part_name(name: str) -> bool:
    return bool(name) and not name.isdigit() and name.lower() not in RESERVED_PARTS


def _find_criteria(value: Any) -> Any:
    """Return the list of criteria in `value`, which may be JSON, JSON encoded twice, or an object with the list."""
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return value
    if isinstance(value, dict):
        return next((value[name] for name in (FIELD, "rubric", "criteria") if isinstance(value.get(name), list)), value)
    return value


def _parse_criterion(number: int, entry: Any) -> Criterion:
    if isinstance(entry, str):
        entry = {"text": entry}
    if not isinstance(entry, dict):
        raise _criterion_error(number, "", f"expected an object, got {type(entry).__name__}")
    _check_names(number, entry)
    text = next((entry[name] for name in TEXT_FIELDS if isinstance(entry.get(name), str)), "")
    text = " ".join(text.split())
    if not text or len(text) > MAX_CHARACTERS:
        names = ", ".join(TEXT_FIELDS)
        raise _criterion_error(
            number, "", f"expected a text of at most {MAX_CHARACTERS} characters in one of the fields {names}"
        )
    modifiers = entry.get("modifiers")
    modifiers = modifiers if isinstance(modifiers, dict) else {}
    name = next((entry[name] for name in NAME_FIELDS if isinstance(entry.get(name), str)), "")
    points = _parse_points(number, entry, modifiers)
    choices = _parse_choices(number, entry.get("choices"))
    name = " ".join(name.split())[:MAX_NAME]
    return Criterion(name, text, points, choices, modifiers.get("category") == "must_pass")


def _check_names(number: int, entry: Mapping[str, Any]) -> None:
    """Raise RequestError if a field, such as `point`, is probably a misspelling of a field that is missing.

    Without this check, a penalty could become a reward: if the field with negative points is misspelled, the criterion
    gets the default of one point.
    """
    missing = [name for name in ("choices", "modifiers") if name not in entry]
    missing += [] if any(name in entry for name in POINTS_FIELDS) else POINTS_FIELDS
    for name in islice(entry, MAX_NAMES):
        if name not in missing and (meant := find_closest(name, missing)):
            raise _criterion_error(number, f".{name[:50]}", f"is not known; did you mean {meant!r}?")


def _parse_points(number: int, entry: Mapping[str, Any], modifiers: Mapping[str, Any]) -> float:
    """Return the points of a criterion; raise RequestError if its fields disagree, or have a number of another name."""
    points = {name: _parse_number(number, name, entry[name]) for name in POINTS_FIELDS if entry.get(name) is not None}
    (first, value), *others = [*points.items()] or [("", 1.0)]
    for name, other in others:
        if other != value:
            raise _criterion_error(number, f".{name}", f"is {other:g}, but {first} is {value:g}; leave one of them out")
    if points:
        return value
    unknown = [name for name in islice(entry, MAX_NAMES) if is_finite(entry[name]) and name not in NUMBER_FIELDS]
    if unknown:
        why = "is a number, but not the points of the criterion; rename it to points (below 0 for a penalty)"
        raise _criterion_error(number, f".{unknown[0][:50]}", why)
    severity = modifiers.get("severity")
    return 1.0 if severity is None else _parse_number(number, "modifiers.severity", severity)


def _parse_number(number: int, name: str, value: Any) -> float:
    if not is_finite(value) or abs(value) > MAX_POINTS:
        why = f"expected a number from {-MAX_POINTS:,.0f} to {MAX_POINTS:,.0f}, got {str(value)[:50]!r}"
        raise _criterion_error(number, f".{name}", why)
    return float(value)


def _parse_choices(number: int, value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    if (
        not isinstance(value, list)
        or not 2 <= len(value) <= len(LETTERS)
        or not all(isinstance(choice, str) for choice in value)
    ):
        raise _criterion_error(number, ".choices", f"expected a list of 2 to {len(LETTERS)} texts, from worst to best")
    return tuple(" ".join(choice.split()) for choice in value)


def _criterion_error(number: int, name: str, why: str) -> RequestError:
    error = field_error(FIELD, why)
    return RequestError(str(error).replace(f".{FIELD}:", f".{FIELD}[{number}]{name}:", 1), error.field)


def format_criteria(rubric: Sequence[Criterion], *, with_points: bool) -> str:
    """Return the criteria as a numbered list for the judge.

    Args:
        rubric: the criteria.
        with_points: whether to show the points, for templates in which the judge gives one verdict on all criteria.
    """
    lines = []
    for number, criterion in enumerate(rubric, 1):
        lines.append(f"{number}. {criterion.text}" + (f" ({criterion.points:+g} points)" if with_points else ""))
        lines += [f"   {letter}: {choice}" for letter, choice in zip(LETTERS, criterion.choices, strict=False)]
    return "\n".join(lines)


def valid_answers(rubric: Iterable[Criterion]) -> Answers:
    """Return the valid answers to each criterion."""
    return tuple(criterion.labels for criterion in rubric)


def answers_pattern(answers: Answers) -> str:
    """Return the regular expression for a reply with a numbered line for each answer."""
    forms = (r"0\.[0-9]{2}|1\.00" if labels == GRADES else "|".join(labels) for labels in answers)
    return r"\n".join(f"{number}: ({form})" for number, form in enumerate(forms, 1))


def answers_schema(answers: Answers) -> dict[str, Any]:
    """Return the JSON schema for a reply with a member for each answer."""
    members: dict[str, Any] = {
        str(number): {"type": "number"} if labels == GRADES else {"type": "string", "enum": list(labels)}
        for number, labels in enumerate(answers, 1)
    }
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def answer_instructions(answers: Answers, *, uses_json: bool) -> str:
    """Return the part of the prompt that describes the answers at the end of the reply."""
    if answers[0] == GRADES:
        return _grade_instructions(len(answers), uses_json=uses_json)
    count, choices = len(answers), any(labels != YES_NO for labels in answers)
    kinds = "`yes` or `no`" + (", or the letter of a choice where the criterion has choices" if choices else "")
    if uses_json:
        return f'Your reply is a JSON object with the members "1" to "{count}", one for each criterion: {kinds}.'
    return (
        f"Your reply ends with one line for each criterion, from 1 to {count}, with its number and the answer, {kinds}."
        f" Nothing comes after these lines. The first one is, for example:\n1: {answers[0][-1]}"
    )


def _grade_instructions(count: int, *, uses_json: bool) -> str:
    if uses_json:
        return f'Your reply is a JSON object with the members "1" to "{count}", one for each candidate: its score.'
    return (
        f"Your reply ends with one line for each candidate, from 1 to {count}, with its number and its score from 0 to "
        "1, with two decimals. Nothing comes after these lines. The first one is, for example:\n1: 0.50"
    )


def parse_grades(text: str, count: int) -> list[float]:
    """Parse the scores of a list of candidates, from 0 to 1.

    Args:
        text: the reply, with or without reasoning.
        count: number of candidates.

    Raises:
        UnreadableError: a candidate does not have exactly one score, or a score is not from 0 to 1.
    """
    grades: dict[int, float] = {}
    for number, word in parse_answer_pairs(text, _GRADE):
        if not 1 <= number <= count or number in grades:
            why = "twice" if number in grades else f"but the candidates are 1 to {count}"
            raise UnreadableError(f"it has a score for candidate {number}, {why}")
        grades[number] = _parse_grade(number, word)
    if len(grades) < count:
        missing = ", ".join(str(number) for number in range(1, count + 1) if number not in grades)
        raise UnreadableError(f"scores for {len(grades)} of {count} candidates; missing: {missing[:100]}")
    return [grades[number] for number in range(1, count + 1)]


def _parse_grade(number: int, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise UnreadableError(f"the score of candidate {number}, {word[:24]!r}, is not from 0 to 1")
    return value


def parse_answers(text: str, answers: Answers) -> dict[int, float]:
    """Parse the answers in a reply; criteria without exactly one valid answer are omitted.

    Args:
        text: the reply, with or without reasoning.
        answers: the valid answers to each criterion.

    Returns:
        A map from the index of each criterion to how far it is met, from 0 to 1.

    Raises:
        UnreadableError: the reply answers a criterion that does not exist, or its reasoning does not end.
    """
    words_by_index: dict[int, set[str]] = {}
    for number, word in parse_answer_pairs(text):
        if not 1 <= number <= len(answers):
            raise UnreadableError(f"it answers criterion {number}, but the criteria are 1 to {len(answers)}")
        words_by_index.setdefault(number - 1, set()).add(word)
    shares = {index: _answer_share(words, answers[index]) for index, words in words_by_index.items()}
    return {index: share for index, share in shares.items() if share is not None}


def _answer_share(words: set[str], labels: tuple[str, ...]) -> float | None:
    """Return how far a criterion is met, from 0 to 1; None if `words` is not exactly one valid answer."""
    known = {_WORDS.get(word.lower(), "") if labels == YES_NO else word.upper() for word in words}
    word = known.pop()
    return None if known or word not in labels else labels.index(word) / (len(labels) - 1)


def parse_answer_pairs(text: str, answer: re.Pattern[str] = _ANSWER) -> list[tuple[int, str]]:
    """Return the number and the word of each answer in a reply.

    Return the last block of successive lines with answers. If the reply has a JSON object on lines of its own, only the
    lines after the last such object count; if they have no answers, return the members of the object.

    Args:
        text: the reply.
        answer: matches a line; its groups are `number` and `word`.
    """
    text = without_thinking(text).strip()
    members, text = _last_object(text)
    answers = [(int(name), str(word)) for name, word in members if _NUMBER.fullmatch(name)]
    lines = [line for line in text.split("\n") if line.strip()]
    block: list[tuple[int, str]] = []
    for line in reversed(lines):
        line = line.replace("*", "").lstrip(DECORATION + "-([").removeprefix("Criterion ").removeprefix("Candidate ")
        if match := answer.match(line):
            block.append((int(match["number"]), match["word"]))
        elif block:
            break
    return block[::-1] or answers


def _last_object(text: str) -> tuple[list[tuple[str, Any]], str]:
    """Return the members of a reply's last JSON object, and the text after it; `([], text)` if there is none.

    An object that shares a line with other text does not count, because it may be a quotation.
    """
    decoder = json.JSONDecoder(object_pairs_hook=list)
    members: list[tuple[str, Any]] = []
    end = 0
    for match in islice(_OBJECT_START.finditer(text), _MAX_OBJECTS):
        with suppress(ValueError, RecursionError):
            if match.end() >= end and _OBJECT_END.match(text, (found := decoder.raw_decode(text, match.end()))[1]):
                members, end = found
    return members, text[end:]


def rubric_verdict(rubric: Rubric, met_shares: Sequence[float], *, clip_negative: bool) -> Verdict:
    """Return the verdict from the answers to all criteria.

    Args:
        rubric: the criteria.
        met_shares: how far each criterion is met, from 0 to 1.
        clip_negative: whether a reward below 0 becomes 0.
    """
    results = list(zip(rubric, met_shares, strict=True))
    positive = [result for result in results if result[0].points > 0]
    negative = [result for result in results if result[0].points <= 0]
    max_points = sum(criterion.points for criterion, _ in positive)
    value = min(1.0, sum(criterion.points * met_share for criterion, met_share in results) / max_points)
    if any(criterion.must_pass and met_share < 1 for criterion, met_share in results):
        value = min(value, 0.0)
    parts = {criterion.name: met_share for criterion, met_share in results}
    parts |= {"positive": _met_share(positive), "negative": _met_share(negative)}
    note = f"{sum(met_share == 1 for met_share in met_shares)} of {len(met_shares)} met"
    return Verdict(max(value, 0.0) if clip_negative else value, note, parts=parts)


def _met_share(results: Sequence[tuple[Criterion, float]]) -> float:
    """Return how far the criteria are met on average, weighted by their absolute points; 0 if all points are 0."""
    total = sum(abs(criterion.points) for criterion, _ in results)
    return sum(abs(criterion.points) * met_share for criterion, met_share in results) / total if total else 0.0
