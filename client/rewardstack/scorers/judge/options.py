"""The judge options in a sample's `extra_info`; `docs/judge.md` has a table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from rewardstack.core.fields import Fields, field_error, is_missing
from rewardstack.core.json_types import plain
from rewardstack.scorers.judge.conversation import VIEWS, Shown, View
from rewardstack.scorers.judge.images import IMAGES
from rewardstack.scorers.judge.rubric import FIELD as RUBRICS
from rewardstack.scorers.judge.rubric import MOST_CRITERIA, Rubric
from rewardstack.scorers.judge.scale import read_range
from rewardstack.scorers.judge.templates import KINDS, LABELS, Kind, Template, find_template, read_template
from rewardstack.scorers.names import JUDGE_OPTIONS

Aggregate = Literal["mean", "median", "majority"]
AGGREGATES: tuple[Aggregate, ...] = ("mean", "median", "majority")

THINKING_TOKENS = 4096
"""Default of `thinking_budget`, the maximum number of tokens of reasoning, in addition to those of the reply."""
MOST_TOKENS = 131_072
"""Upper bound on `max_new_tokens` and on `thinking_budget`."""
MOST_SAMPLES = 64
"""Upper bound on `num_samples`."""
MOST_LABELS = 32
"""Maximum number of labels."""
LABEL_MASS_FLOOR = 0.5
"""Default of `label_mass_floor`."""


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """How one sample is judged. Options are compared by identity: `read_options` caches them.

    Args:
        model: the judge's model; empty for the model that the settings name, else the one that the server serves.
        verdict: how the verdict is read: from the reply's text (`text`), from the probabilities of labels
            (`logprob`), or from an answer to each criterion (`rubric`).
        template: the prompt template, with the scale of its verdicts.
        system_prompt: the system prompt; empty for none, None for the built-in one.
        temperature: sampling temperature; 0 for greedy decoding.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum number of tokens of the reply, without reasoning.
        enable_thinking: whether the model may reason before it replies.
        thinking_budget: maximum number of tokens of the reasoning.
        seed: seed of sampling; None for none.
        batch_size: maximum number of samples with this batch size in flight; None for no separate limit.
        labels: labels and their values if `verdict` is `logprob`; else empty.
        label_mass_floor: minimum total probability of the labels.
        num_samples: number of votes.
        aggregate: how votes are combined.
        max_criteria: maximum number of a rubric's criteria in one request; None for all.
        clip_negative: whether a rubric's value below 0 becomes 0.
        view: whether the judge sees the last reply (`last_reply`) or all turns of the response (`full_trace`).
        hide_reasoning: whether the policy's reasoning is hidden from the judge.
    """

    model: str
    verdict: Kind
    template: Template
    system_prompt: str | None
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
    max_criteria: int | None
    clip_negative: bool
    view: View
    hide_reasoning: bool


def read_options(extra: Mapping[str, Any]) -> Options:
    """Parse the judge options of a sample.

    Args:
        extra: the sample's `extra_info`.

    Raises:
        RequestError: an option is invalid; the error names the field and the remedy.
    """
    values = [extra.get(name) for name in JUDGE_OPTIONS]
    path = Fields(extra).text("prompt_template_path", "")
    if path:
        values[_TEMPLATE_AT] = read_template(path)
        values[_PATH_AT] = None
    if isinstance(extra.get("labels"), Mapping):
        values[_LABELS_AT] = _Pairs(tuple(plain(extra["labels"]).items()))
    values[_RANGE_AT] = read_range(Fields(extra).get("score_range"))
    try:
        return _parse(*values)
    except TypeError:  # a value is a list or an array, which cannot be a key of the cache
        return _parse.__wrapped__(*map(plain, values))


def portable_extra(extra: Mapping[str, Any], shown: Shown, rubric: Rubric) -> dict[str, Any]:
    """Return the `extra_info` to send to a reward server, with the template's text in place of its path.

    Args:
        extra: the sample's `extra_info`, which `read_options` accepts.
        shown: the result of `read_shown` for the sample.
        rubric: the result of `read_rubric` for the sample.

    Raises:
        RequestError: the template file cannot be read.
    """
    path = Fields(extra).text("prompt_template_path", "")
    read = {name: extra[name] for name in JUDGE_OPTIONS if name in extra and name != "prompt_template_path"}
    if path:
        read["prompt_template"] = read_template(path)
    if rubric:
        read[RUBRICS] = [one.record() for one in rubric]
    return {**read, **({} if Fields(extra).get(IMAGES) is not False else {IMAGES: False}), **shown.portable}


_TEMPLATE_AT = JUDGE_OPTIONS.index("prompt_template")
_PATH_AT = JUDGE_OPTIONS.index("prompt_template_path")
_RANGE_AT = JUDGE_OPTIONS.index("score_range")
_LABELS_AT = JUDGE_OPTIONS.index("labels")


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A hashable form of a mapping, for the cache."""

    pairs: tuple[tuple[str, Any], ...]


@lru_cache(maxsize=512, typed=True)
def _parse(*values: Any) -> Options:
    given = Fields(dict(zip(JUDGE_OPTIONS, values, strict=True)))
    verdict = given.choice("verdict", KINDS)
    labelled = verdict == "logprob"
    template, declared = given.text("prompt_template", "default"), read_range(given.get("score_range"))
    most = given.integer("max_criteria", None, 1, MOST_CRITERIA)
    options = Options(
        model=given.text("model_name", "") or given.text("model", ""),
        verdict=verdict,
        template=find_template(template, verdict=verdict, declared=declared, is_split=most is not None),
        system_prompt=given.text("system_prompt", None),
        temperature=given.number("temperature", 0.7, 0, 2),
        top_p=given.number("top_p", 0.8, 0, 1, is_exclusive=True),
        max_new_tokens=given.integer("max_new_tokens", 512, 1, MOST_TOKENS),
        enable_thinking=given.flag("enable_thinking", False),
        thinking_budget=given.integer("thinking_budget", THINKING_TOKENS, 1, MOST_TOKENS),
        seed=given.integer("seed", None, 0, 2**53),
        batch_size=given.integer("batch_size", None, 1, 2**31),
        labels=_labels(given.get("labels"), template) if labelled else (),
        label_mass_floor=given.number("label_mass_floor", LABEL_MASS_FLOOR, 0, 1),
        num_samples=given.integer("num_samples", 1, 1, MOST_SAMPLES),
        aggregate=given.choice("aggregate", AGGREGATES),
        max_criteria=most,
        clip_negative=given.flag("clip_negative", True),
        view=given.choice("view", VIEWS),
        hide_reasoning=given.flag("hide_reasoning", True),
    )
    _check_together(options)
    return options


def _check_together(options: Options) -> None:
    if options.labels and options.enable_thinking:
        raise field_error("verdict", "'logprob' reads the first token, so it cannot reason; leave enable_thinking out")
    if options.labels and options.num_samples > 1:
        raise field_error("num_samples", "verdict 'logprob' is deterministic; leave num_samples out")
    if options.verdict == "rubric" and options.num_samples > 1:
        raise field_error("num_samples", "verdict 'rubric' has an answer for each criterion; leave num_samples out")
    if options.verdict != "rubric" and (options.max_criteria or not options.clip_negative):
        name = "max_criteria" if options.max_criteria else "clip_negative"
        raise field_error(name, "is for verdict 'rubric'; set that, or leave it out")
    if options.num_samples > 1 and options.temperature == 0:
        raise field_error("num_samples", "verdicts at temperature 0 are all the same; raise temperature")


def _labels(value: Any, template: str) -> tuple[tuple[str, float], ...]:
    if value is None:
        if template not in LABELS:
            raise field_error("labels", "verdict 'logprob' with a custom template needs them, such as {'A': 1, 'B': 0}")
        value = LABELS[template]
    if isinstance(value, _Pairs):
        value = dict(value.pairs)
    if not isinstance(value, Mapping) or not 2 <= len(value) <= MOST_LABELS or any(map(is_missing, value.values())):
        raise field_error("labels", f"expected an object of 2 to {MOST_LABELS} labels with their values")
    given = Fields({f"labels.{name}": number for name, number in value.items()})
    return tuple((_label(name), given.number(f"labels.{name}", 0.0, 0, 1)) for name in value)


def _label(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 32:
        raise field_error("labels", f"{name!r} is not a label; use a short text that is one token, such as 'A'")
    return name
