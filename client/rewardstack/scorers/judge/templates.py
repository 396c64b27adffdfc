"""Prompt templates of a judge: built-in ones, from files in the folder `templates`, and custom ones."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from rewardstack.core.fields import field_error
from rewardstack.scorers.judge.fences import Fenced, fence
from rewardstack.scorers.judge.scale import FIELD, UNIT, Scale, read_range, scale_of

Kind = Literal["text", "logprob", "rubric"]
"""How a verdict is read."""
KINDS: tuple[Kind, ...] = ("text", "logprob", "rubric")
FOLDER = Path(__file__).with_name("templates")
MAX_CHARACTERS = 100_000
"""Maximum length of a custom template, in characters."""
PLACEHOLDERS = {
    "PROBLEM": "problem",
    "REFERENCE_SOLUTION": "reference",
    "CRITERIA": "criteria",
    "CANDIDATE_SOLUTION": "candidate",
}
"""Names of the placeholders, and of the fences around the texts that replace them."""

_NUMBER = r"(0\.[0-9]{3}|1\.000)"
_POINTS = r"(10|[0-9])"
BUILTIN: Mapping[str, str | None] = {
    "default": rf"REWARD: {_NUMBER}",
    "binary": r"REWARD: [01]\.000",
    "points": rf"CORRECTNESS: {_POINTS}\nCOMPLETENESS: {_POINTS}\nREASONING: {_POINTS}\nREWARD: {_NUMBER}",
    "detailed": None,
}
"""The built-in templates by name: a regular expression that constrains the reply; None for a free-form reply."""
LABELS: Mapping[str, Mapping[str, float]] = {
    "default": {str(digit): digit / 9 for digit in range(10)},
    "binary": {"0": 0.0, "1": 1.0},
}
"""The labels and their values for `verdict: "logprob"`, by the built-in templates that support it."""

FORMS: Mapping[str, Collection[str]] = {"logprob": LABELS, "rubric": ("default",)}
"""The built-in templates that support each kind of verdict; all of them support `text`."""
CRITERIA = "Criteria:\n{CRITERIA}\n\n"
"""The section with the criteria in the built-in rubric template; it moves to the end if requests split the criteria."""

_PLACEHOLDER = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")
_HEADER = re.compile(rf"\s*{FIELD}\s*=\s*(\[[^\]\n]{{0,60}}\])[ \t\r]*\n")
"""A first line of a custom template that declares the scale."""
_FENCES_KEPT = 1024
"""Number of fenced texts to cache, because samples of a group have the same problem and reference."""


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A prompt with placeholders for untrusted text.

    Args:
        parts: texts and names of placeholders in turn, starting and ending with a text.
        scale: the scale of the verdicts.
        form: regular expression that constrains the reply; None for a free-form reply.
    """

    parts: tuple[str, ...]
    scale: Scale
    form: str | None

    @property
    def identity(self) -> str:
        """The whole template as a string, for cache keys."""
        low = f", low={self.scale.low!r}" if self.scale.low else ""
        return f"Template(parts={self.parts!r}, top={self.scale.high!r}{low}, form={self.form!r})"

    @property
    def size(self) -> int:
        """The number of characters of the template without the placeholders."""
        return sum(map(len, self.parts[::2]))

    def uses(self, placeholder: str) -> bool:
        """Return whether the template has a placeholder."""
        return placeholder in self.parts[1::2]

    def render(self, problem: str, reference: str, candidate: str, criteria: str = "") -> str:
        """Return the template with each placeholder replaced by a fenced text; placeholders in the texts stay.

        Args:
            problem: the task; empty for none.
            reference: one reference solution; empty for none.
            candidate: the response of the policy.
            criteria: the list of a rubric's criteria; empty for none.
        """
        texts = {"PROBLEM": problem, "REFERENCE_SOLUTION": reference, "CANDIDATE_SOLUTION": candidate}
        texts["CRITERIA"] = criteria
        pieces = list(self.parts)
        for at in range(1, len(pieces), 2):
            name = pieces[at]
            pieces[at] = _wrapped(name, texts[name])
        return "".join(pieces)


def _wrapped(placeholder: str, text: str) -> str:
    if isinstance(text, Fenced) or not text.strip():
        return text if text.strip() else "(none)"
    return (fence if placeholder == "CANDIDATE_SOLUTION" else _known_fence)(PLACEHOLDERS[placeholder], text)


_known_fence = lru_cache(maxsize=_FENCES_KEPT)(fence)


def find_template(
    name_or_text: str, *, verdict: Kind = "text", declared: Scale | None = None, is_split: bool = False
) -> Template:
    """Return a built-in template by its name, or a custom template from its text.

    Args:
        name_or_text: a name in `BUILTIN`, or a text with `{CANDIDATE_SOLUTION}`.
        verdict: how the verdict is read.
        declared: the `score_range` of the sample; None for none. Only `text` verdicts can have one.
        is_split: whether the criteria are split over several requests. The criteria then come last in a built-in
            template, so that the requests share a prefix.

    Raises:
        RequestError: there is no such template, it does not support the verdict, or its scale contradicts `declared`.
    """
    if name_or_text not in BUILTIN:
        return _own(name_or_text, verdict, declared)
    _check_scale(verdict, declared)
    if declared not in (None, UNIT):
        raise field_error(FIELD, f"the template {name_or_text!r} has verdicts from {UNIT.words}; leave score_range out")
    if verdict != "text" and name_or_text not in FORMS[verdict]:
        lacks = "labels" if verdict == "logprob" else "criteria"
        known = ", ".join(FORMS[verdict])
        why = f"{name_or_text!r} has no {lacks} for verdict {verdict!r}; those that have: {known}"
        raise field_error("prompt_template", why)
    return _builtin(name_or_text, verdict, is_split)


def _check_scale(verdict: Kind, declared: Scale | None) -> None:
    if verdict != "text" and declared is not None:
        source = "labels, whose values are in `labels`" if verdict == "logprob" else "criteria, which have points"
        raise field_error(FIELD, f"verdict {verdict!r} reads {source}; leave score_range out")


@lru_cache(maxsize=64)
def _own(text: str, verdict: Kind, declared: Scale | None) -> Template:
    needed = ("{CANDIDATE_SOLUTION}", "{CRITERIA}") if verdict == "rubric" else ("{CANDIDATE_SOLUTION}",)
    if any(one not in text for one in needed):
        raise field_error(
            "prompt_template",
            f"{text[:60]!r} is not one of {', '.join(BUILTIN)}, and a custom template needs {' and '.join(needed)}; "
            "set prompt_template_path to use a file",
        )
    if len(text) > MAX_CHARACTERS:
        raise field_error("prompt_template", f"longer than {MAX_CHARACTERS} characters")
    header = _HEADER.match(text)
    if header:
        text = text[header.end() :]
        declared = _declared_in(header[1], declared)
    _check_scale(verdict, declared)
    parts = tuple(_PLACEHOLDER.split(text))
    return Template(parts, scale_of(" ".join(parts[::2]), declared) if verdict == "text" else UNIT, None)


def _declared_in(header: str, declared: Scale | None) -> Scale | None:
    """Return the scale in a template's first line; raise RequestError if `declared` is a different scale."""
    try:
        own = read_range(json.loads(header))
    except ValueError:
        raise field_error(FIELD, f"the template's first line has {header!r}; write {FIELD} = [1, 10]") from None
    if declared not in (None, own):
        raise field_error(FIELD, f"the template's first line declares {header}; remove one of the two")
    return own


@lru_cache
def _builtin(name: str, verdict: Kind, is_split: bool) -> Template:
    kind = "" if verdict == "text" else f".{verdict}"
    text = (FOLDER / f"{name}{kind}.txt").read_text(encoding="utf-8").rstrip("\n")
    if is_split:
        text = f"{text.replace(CRITERIA, '')}\n\n{CRITERIA.rstrip()}"
    return Template(tuple(_PLACEHOLDER.split(text)), UNIT, BUILTIN[name] if verdict == "text" else None)


@lru_cache
def comparing_template(mode: str) -> str:
    """Return the text of the built-in template for judges with `compare`; the candidates replace CANDIDATE_SOLUTION.

    Args:
        mode: `listwise` or `pairwise`.
    """
    return (FOLDER / f"{mode}.txt").read_text(encoding="utf-8").rstrip("\n")


def read_template(path: str) -> str:
    """Return the text of a template file.

    Raises:
        RequestError: the file cannot be read.
    """
    try:
        return _read(path, os.stat(path).st_mtime_ns)
    except (OSError, ValueError) as error:
        raise field_error("prompt_template_path", f"{path}: {error}") from error


@lru_cache(maxsize=64)
def _read(path: str, _: int) -> str:
    return Path(path).read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def system_message(closing: str, own: str | None = None) -> str:
    """Return the system message of the judge; empty for none.

    Args:
        closing: how the judge must end the reply; replaces `{CLOSING}` in the text.
        own: a custom text; None for the built-in text.
    """
    text = (FOLDER / "system.txt").read_text(encoding="utf-8") if own is None else own
    return text.replace("{CLOSING}", closing).rstrip("\n")
