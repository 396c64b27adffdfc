"""What a sample's `extra_info` asks of the judge, checked; `docs/judge.md` has the table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from rewardstack.core.json_types import is_finite, plain
from rewardstack.errors import RequestError
from rewardstack.scorers.judge.templates import LABELS, Template, find_template, read_template

Aggregate = Literal["mean", "median", "majority"]
AGGREGATES: tuple[Aggregate, ...] = ("mean", "median", "majority")

THINKING_TOKENS = 4096
"""Tokens that reasoning may take beside the reply, where it is enabled and nothing else is said."""
MOST_TOKENS = 131_072
MOST_SAMPLES = 64
MOST_LABELS = 32
LABEL_MASS_FLOOR = 0.5
"""Probability that the labels must have together, unless told otherwise."""

DEFAULTS: Mapping[str, Any] = {
    "model_name": "",
    "model": "",
    "temperature": 0.7,
    "top_p": 0.8,
    "max_new_tokens": 512,
    "enable_thinking": False,
    "thinking_budget": THINKING_TOKENS,
    "seed": None,
    "batch_size": None,
    "prompt_template": "default",
    "prompt_template_path": "",
    "verdict": "text",
    "labels": None,
    "label_mass_floor": LABEL_MASS_FLOOR,
    "num_samples": 1,
    "aggregate": "mean",
}
"""The fields of `extra_info` beside the texts, and what holds where one is missing or None."""
FIELDS = (*DEFAULTS, "problem")
"""All that the judge reads, but for where and how long to ask, and for `prompt` where there is no `problem`."""


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """How one sample is judged; equal options are the same object, as long as they are remembered.

    Args:
        model: that judges; empty for the environment's, else the one that the server serves.
        template: what the judge is told.
        temperature: of sampling; 0 takes the likeliest token.
        top_p: probability mass that is sampled from.
        max_new_tokens: of the reply, reasoning aside.
        enable_thinking: whether the model may reason before it replies.
        thinking_budget: tokens of that reasoning.
        seed: of sampling; None for none.
        batch_size: samples with this option in flight at a time; None for no limit of their own.
        labels: and their values, where the verdict is read from probabilities; else empty.
        label_mass_floor: probability that the labels must have together.
        num_samples: verdicts that are asked for.
        aggregate: how they become one.
    """

    model: str
    template: Template
    temperature: float
    top_p: float
    max_new_tokens: int
    enable_thinking: bool
    thinking_budget: int
    seed: int | None
    batch_size: int | None
    labels: tuple[tuple[str, float], ...]
    label_mass_floor: float
    num_samples: int
    aggregate: Aggregate

    @property
    def deterministic(self) -> bool:
        """Whether asking twice brings the same."""
        return bool(self.labels) or self.temperature == 0 or self.seed is not None


def read_options(extra: Mapping[str, Any]) -> Options:
    """The options that a sample brings.

    Args:
        extra: its `extra_info`.

    Raises:
        RequestError: one of them cannot be used; names the field and the remedy.
    """
    values = [extra.get(name) for name in DEFAULTS]
    path = extra.get("prompt_template_path")
    if path and not _is_missing(path):
        values[_TEMPLATE_AT] = read_template(_text(path, "prompt_template_path", ""))
        values[_PATH_AT] = None
    if isinstance(extra.get("labels"), Mapping):
        values[_LABELS_AT] = _Pairs(tuple(plain(extra["labels"]).items()))
    try:
        return _parse(*values)
    except TypeError:  # a list or an array: it cannot be remembered
        return _parse.__wrapped__(*map(plain, values))


def portable_extra(extra: Mapping[str, Any], problem: str) -> dict[str, Any]:
    """What the judge reads of `extra_info`, for another machine: the template's text in place of its path.

    Args:
        extra: a sample's own, which `read_options` has taken.
        problem: what `problem_of` has found in it.

    Raises:
        RequestError: the template's file cannot be read.
    """
    path = extra.get("prompt_template_path")
    read = {name: extra[name] for name in DEFAULTS if name in extra and name != "prompt_template_path"}
    if path and not _is_missing(path):
        read["prompt_template"] = read_template(path)
    return {**read, "problem": problem}


def problem_of(extra: Mapping[str, Any]) -> str:
    """The task that the candidate was given: `problem`, else the text or last user message of `prompt`; else empty.

    Raises:
        RequestError: `problem` is no text.
    """
    problem = extra.get("problem")
    if isinstance(problem, str):
        return problem
    if problem is not None and not _is_missing(problem):
        raise RequestError(f"extra_info.problem: expected a string, got {type(problem).__name__}", "extra_info.problem")
    prompt = plain(extra.get("prompt"))
    if isinstance(prompt, str):
        return prompt
    said = [one.get("content") for one in _messages(prompt) if one.get("role") == "user"]
    return said[-1] if said and isinstance(said[-1], str) else ""


def _messages(prompt: Any) -> list[dict[str, Any]]:
    return [one for one in prompt if isinstance(one, dict)] if isinstance(prompt, list) else []


_TEMPLATE_AT = list(DEFAULTS).index("prompt_template")
_PATH_AT = list(DEFAULTS).index("prompt_template_path")
_LABELS_AT = list(DEFAULTS).index("labels")


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A mapping that can be remembered."""

    pairs: tuple[tuple[str, Any], ...]


@lru_cache(maxsize=512, typed=True)
def _parse(*values: Any) -> Options:
    given = dict(zip(DEFAULTS, values, strict=True))
    raw = {name: DEFAULTS[name] if _is_missing(value) else plain(value) for name, value in given.items()}
    verdict = _choice(raw["verdict"], "verdict", ("text", "logprob"))
    name = _text(raw["prompt_template"], "prompt_template", "")
    options = Options(
        model=_text(raw["model_name"], "model_name", "") or _text(raw["model"], "model", ""),
        template=find_template(name, labelled=verdict == "logprob"),
        temperature=_number(raw["temperature"], "temperature", 0, 2),
        top_p=_number(raw["top_p"], "top_p", 0, 1, open_below=True),
        max_new_tokens=_whole(raw["max_new_tokens"], "max_new_tokens", 1, MOST_TOKENS),
        enable_thinking=_flag(raw["enable_thinking"], "enable_thinking"),
        thinking_budget=_whole(raw["thinking_budget"], "thinking_budget", 1, MOST_TOKENS),
        seed=None if raw["seed"] is None else _whole(raw["seed"], "seed", 0, 2**53),
        batch_size=None if raw["batch_size"] is None else _whole(raw["batch_size"], "batch_size", 1, 2**31),
        labels=_labels(raw["labels"], name) if verdict == "logprob" else (),
        label_mass_floor=_number(raw["label_mass_floor"], "label_mass_floor", 0, 1),
        num_samples=_whole(raw["num_samples"], "num_samples", 1, MOST_SAMPLES),
        aggregate=_choice(raw["aggregate"], "aggregate", AGGREGATES),
    )
    _check_together(options)
    return options


def _check_together(options: Options) -> None:
    if options.labels and options.enable_thinking:
        raise _error("verdict", "'logprob' reads the first token; leave enable_thinking out")
    if options.labels and options.num_samples > 1:
        raise _error("num_samples", "'logprob' has one verdict that does not vary; leave num_samples out")
    if options.num_samples > 1 and options.temperature == 0:
        raise _error("num_samples", "verdicts at temperature 0 are all the same; raise temperature")


def _labels(value: Any, template: str) -> tuple[tuple[str, float], ...]:
    if value is None:
        if template not in LABELS:
            raise _error("labels", "verdict 'logprob' with a template of your own needs them, such as {'A': 1, 'B': 0}")
        value = LABELS[template]
    if isinstance(value, _Pairs):
        value = dict(value.pairs)
    if not isinstance(value, Mapping) or not 2 <= len(value) <= MOST_LABELS:
        raise _error("labels", f"expected an object of 2 to {MOST_LABELS} labels with their values")
    return tuple((_label(name), _number(number, f"labels.{name}", 0, 1)) for name, number in value.items())


def _label(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 32:
        raise _error("labels", f"{name!r} is no label; write a short text that is one token, such as 'A'")
    return name


def _text(value: Any, name: str, default: str) -> str:
    if value is None:
        return default
    if not isinstance(value, str):
        raise _error(name, f"expected a string, got {type(value).__name__}")
    return value


def _number(value: Any, name: str, low: float, high: float, *, open_below: bool = False) -> float:
    if not is_finite(value) or not low <= value <= high or (open_below and value == low):
        bounds = f"above {low:g} and at most {high:g}" if open_below else f"from {low:g} to {high:g}"
        raise _error(name, f"expected a number {bounds}, got {_shown(value)}")
    return float(value)


def _whole(value: Any, name: str, low: int, high: int) -> int:
    if not is_finite(value) or value != int(value) or not low <= value <= high:
        raise _error(name, f"expected a whole number from {low} to {high}, got {_shown(value)}")
    return int(value)


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise _error(name, f"expected true or false, got {_shown(value)}")
    return value


def _choice(value: Any, name: str, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise _error(name, f"must be one of {', '.join(known)}, got {_shown(value)}")
    return value


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _shown(value: Any) -> str:
    return repr(value)[:60]


def _error(name: str, message: str) -> RequestError:
    return RequestError(f"extra_info.{name}: {message}", f"extra_info.{name}")
