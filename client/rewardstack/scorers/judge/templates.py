"""Load and render the prompt templates of a judge: built-in templates (in the folder `templates`) and custom ones."""

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
from rewardstack.core.misspellings import did_you_mean
from rewardstack.scorers.judge.fences import Fenced, fence
from rewardstack.scorers.judge.scale import FIELD, UNIT, Scale, find_scale, read_range

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
"""Maps each placeholder to the name of the fence around the text that replaces the placeholder."""

_NUMBER = r"(0\.[0-9]{3}|1\.000)"
_POINTS = r"(10|[0-9])"
BUILTIN: Mapping[str, str | None] = {
    "default": rf"REWARD: {_NUMBER}",
    "binary": r"REWARD: [01]\.000",
    "points": rf"CORRECTNESS: {_POINTS}\nCOMPLETENESS: {_POINTS}\nREASONING: {_POINTS}\nREWARD: {_NUMBER}",
    "detailed": None,
}
"""The built-in templates, and the regular expression that constrains the reply; None for a free-form reply."""
LABELS: Mapping[str, Mapping[str, float]] = {
    "default": {str(digit): digit / 9 for digit in range(10)},
    "binary": {"0": 0.0, "1": 1.0},
}
"""The built-in templates that support `verdict: "logprob"`, and their labels with values."""

SUPPORTED_TEMPLATES: Mapping[str, Collection[str]] = {"logprob": LABELS, "rubric": ("default",)}
"""The built-in templates that support each kind of verdict, except `text`, which all templates support."""
CRITERIA = "Criteria:\n{CRITERIA}\n\n"
"""The section with the criteria in the built-in rubric template. It is moved to the end if the criteria are divided
among several requests, so that the requests have a common prefix."""

_PLACEHOLDER = re.compile(rf"\{{({'|'.join(PLACEHOLDERS)})\}}")
_PLACEHOLDER_LIKE = re.compile(r"\{([A-Z_]{4,30})\}")
_HEADER = re.compile(rf"\s*{FIELD}\b([^\n]{{0,80}})\n", re.IGNORECASE)
"""Matches the first line of a custom template if this line declares the scale."""
_CACHED_FENCES = 1024
"""Number of fenced texts to cache: problems, references and lists of criteria, which the samples of a group share."""


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A prompt with placeholders for untrusted text.

    Args:
        parts: alternating texts and names of placeholders; the first and last part are texts.
        scale: the scale of the verdicts.
        pattern: regular expression that constrains the reply; None for a free-form reply.
    """

    parts: tuple[str, ...]
    scale: Scale
    pattern: str | None

    @property
    def identity(self) -> str:
        """The whole template as a string, for cache keys."""
        low = f", low={self.scale.low!r}" if self.scale.low else ""
        return f"Template(parts={self.parts!r}, top={self.scale.high!r}{low}, form={self.pattern!r})"

    def uses(self, placeholder: str) -> bool:
        """Return whether the template has a placeholder."""
        return placeholder in self.parts[1::2]

    def render(self, problem: str, reference: str, candidate: str, criteria: str = "") -> str:
        """Return the template with fenced texts in place of the placeholders; placeholders in the texts have no effect.

        Args:
            problem: the task; empty for none.
            reference: one reference solution; empty for none.
            candidate: the response of the policy.
            criteria: the list of a rubric's criteria; empty for none.
        """
        texts = {"PROBLEM": problem, "REFERENCE_SOLUTION": reference, "CANDIDATE_SOLUTION": candidate}
        texts["CRITERIA"] = criteria
        pieces = list(self.parts)
        for index in range(1, len(pieces), 2):
            name = pieces[index]
            pieces[index] = _fence_text(name, texts[name])
        return "".join(pieces)


def _fence_text(placeholder: str, text: str) -> str:
    if isinstance(text, Fenced) or not text.strip():
        return text if text.strip() else "(none)"
    return (fence if placeholder == "CANDIDATE_SOLUTION" else _cached_fence)(PLACEHOLDERS[placeholder], text)


_cached_fence = lru_cache(maxsize=_CACHED_FENCES)(fence)


def find_template(
    name_or_text: str, *, verdict: Kind = "text", declared_scale: Scale | None = None, is_split: bool = False
) -> Template:
    """Return a built-in template by its name, or parse the text of a custom template.

    Args:
        name_or_text: a name in `BUILTIN`, or a text with `{CANDIDATE_SOLUTION}`.
        verdict: how the verdict is read.
        declared_scale: the `score_range` of the sample; None if it has none. Only samples with `text` verdicts can have
            a `score_range`.
        is_split: whether the criteria are divided among several requests; a built-in template then ends with the
            criteria, so that the requests have a common prefix.

    Raises:
        RequestError: the template does not exist or does not support the verdict, or the scales contradict each other.
    """
    if name_or_text not in BUILTIN:
        return _custom_template(name_or_text, verdict, declared_scale)
    _check_scale(verdict, declared_scale)
    if declared_scale not in (None, UNIT):
        raise field_error(FIELD, f"the template {name_or_text!r} has verdicts from {UNIT.text}; leave score_range out")
    if verdict != "text" and name_or_text not in SUPPORTED_TEMPLATES[verdict]:
        missing = "labels" if verdict == "logprob" else "criteria"
        known = ", ".join(SUPPORTED_TEMPLATES[verdict])
        why = f"{name_or_text!r} has no {missing} for verdict {verdict!r}; templates that have them: {known}"
        raise field_error("prompt_template", why)
    return _builtin_template(name_or_text, verdict, is_split)


def _check_scale(verdict: Kind, declared_scale: Scale | None) -> None:
    if verdict != "text" and declared_scale is not None:
        why = "`labels` sets the values" if verdict == "logprob" else "the criteria have points"
        raise field_error(FIELD, f"not supported with verdict {verdict!r}, because {why}; leave score_range out")


@lru_cache(maxsize=64)
def _custom_template(text: str, verdict: Kind, declared_scale: Scale | None) -> Template:
    needed = ("{CANDIDATE_SOLUTION}", "{CRITERIA}") if verdict == "rubric" else ("{CANDIDATE_SOLUTION}",)
    if any(one not in text for one in needed):
        raise field_error(
            "prompt_template",
            f"{text[:60]!r} is not one of {', '.join(BUILTIN)}; {did_you_mean(text, BUILTIN)}a custom template needs "
            f"{' and '.join(needed)} (to use a file, set prompt_template_path)",
        )
    for name in {*_PLACEHOLDER_LIKE.findall(text)} - {*PLACEHOLDERS}:
        if meant := did_you_mean(name, PLACEHOLDERS).strip():
            raise field_error("prompt_template", f"the placeholder {{{name}}} is not known; {meant}")
    if len(text) > MAX_CHARACTERS:
        raise field_error("prompt_template", f"longer than {MAX_CHARACTERS} characters")
    header = _HEADER.match(text)
    if header:
        text = text[header.end() :]
        declared_scale = _header_scale(header[1], declared_scale)
    _check_scale(verdict, declared_scale)
    parts = tuple(_PLACEHOLDER.split(text))
    return Template(parts, find_scale(" ".join(parts[::2]), declared_scale) if verdict == "text" else UNIT, None)


def _header_scale(header: str, declared_scale: Scale | None) -> Scale | None:
    """Return the scale in a template's first line; raise RequestError if `declared_scale` is a different scale."""
    try:
        sign, value = header.strip()[:1], header.strip()[1:]
        custom = read_range(json.loads(value)) if sign == "=" else None
    except ValueError:
        custom = None
    if custom is None:
        first_line = f"{FIELD}{header.rstrip()}"
        raise field_error(
            FIELD, f"the template's first line is invalid: {first_line!r}; write it like {FIELD} = [1, 10]"
        )
    if declared_scale not in (None, custom):
        raise field_error(
            FIELD, f"the template's first line declares {custom.text}, but score_range differs; remove one of the two"
        )
    return custom


@lru_cache
def _builtin_template(name: str, verdict: Kind, is_split: bool) -> Template:
    suffix = "" if verdict == "text" else f".{verdict}"
    text = (FOLDER / f"{name}{suffix}.txt").read_text(encoding="utf-8").rstrip("\n")
    if is_split:
        text = f"{text.replace(CRITERIA, '')}\n\n{CRITERIA.rstrip()}"
    return Template(tuple(_PLACEHOLDER.split(text)), UNIT, BUILTIN[name] if verdict == "text" else None)


@lru_cache
def comparison_template(mode: str) -> str:
    """Return the text of the built-in template for judges with `compare`.

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
        return _read_file(path, os.stat(path).st_mtime_ns)
    except OSError as error:
        why = f"{Path(path).absolute()} cannot be read: {error.strerror}; correct the path"
        raise field_error("prompt_template_path", why) from error
    except ValueError as error:
        raise field_error("prompt_template_path", f"{path}: {error}") from error


@lru_cache(maxsize=64)
def _read_file(path: str, _: int) -> str:
    return Path(path).read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def system_message(closing: str, custom: str | None = None) -> str:
    """Return the system message of the judge; empty for none.

    Args:
        closing: the reply instructions, which replace `{CLOSING}` in the text.
        custom: a custom text; None for the built-in text.
    """
    text = (FOLDER / "system.txt").read_text(encoding="utf-8") if custom is None else custom
    return text.replace("{CLOSING}", closing).rstrip("\n")
