"""Parse the judge options in a sample's `extra_info`; `docs/judge.md` has a table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from rewardstack.core.fields import Fields, field_error, is_missing
from rewardstack.core.json_types import plain
from rewardstack.core.misspellings import not_known
from rewardstack.scorers.judge.conversation import VIEWS, ShownParts, View
from rewardstack.scorers.judge.dialect import LIMIT_FIELDS
from rewardstack.scorers.judge.images import IMAGES
from rewardstack.scorers.judge.rubric import FIELD as RUBRICS
from rewardstack.scorers.judge.rubric import MAX_CRITERIA, Rubric
from rewardstack.scorers.judge.scale import read_range
from rewardstack.scorers.judge.templates import KINDS, LABELS, Kind, Template, find_template, read_template
from rewardstack.scorers.names import JUDGE_OPTIONS

Aggregate = Literal["mean", "median", "majority"]
AGGREGATES: tuple[Aggregate, ...] = ("mean", "median", "majority")

THINKING_TOKENS = 4096
"""Default of `thinking_budget`, the maximum number of tokens of reasoning, in addition to those of the reply."""
MAX_TOKENS = 131_072
"""Upper bound on `max_new_tokens` and on `thinking_budget`."""
MAX_SAMPLES = 64
"""Upper bound on `num_samples`."""
MAX_LABELS = 32
"""Maximum number of labels."""
OMITTABLE = (
    *("temperature", "top_p", "seed", "max_tokens", "max_completion_tokens"),
    *("response_format", "structured_outputs", "guided_regex", "regex"),
    *("chat_template_kwargs", "enable_thinking", "reasoning_effort", "thinking_token_budget"),
    *("continue_final_message", "add_generation_prompt"),
)
"""Fields of a request that can be omitted; without any other field, the verdict would mean something else."""
REQUEST_FIELDS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("temperature", "top_p", "seed")},
    **dict.fromkeys(("max_new_tokens", "max_tokens"), LIMIT_FIELDS),
}
"""Maps the options with values that a judge may reject to the fields of a request that have the value.

If `register_judge` sets such an option to None, the fields are omitted.
"""
LABEL_MASS_FLOOR = 0.5
"""Default of `label_mass_floor`."""


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The options for judging one sample; `read_options` caches them, so equal options are usually the same object.

    Args:
        model: the judge's model. If empty, the model in the settings is used. If that is empty, too, `Models.choose`
            selects the model.
        verdict: whether the verdict is read from the reply's text (`text`), from the probabilities of labels
            (`logprob`), or from an answer to each criterion (`rubric`).
        template: the prompt template, with the scale of its verdicts.
        system_prompt: the system prompt. An empty text means no system prompt; None means the built-in one.
        temperature: sampling temperature; 0 for greedy decoding.
        top_p: probability mass of nucleus sampling.
        max_new_tokens: maximum number of tokens of the reply, without reasoning.
        enable_thinking: whether the model may reason before it replies.
        thinking_budget: maximum number of tokens of the reasoning.
        seed: seed of sampling; None to send no seed.
        batch_size: maximum number of samples in flight, counting only samples with the same `batch_size`; None for the
            default in `Judge.batch`.
        labels: labels and their values if `verdict` is `logprob`; else empty.
        label_mass_floor: minimum total probability of the labels.
        num_samples: number of votes.
        aggregate: how votes are combined.
        max_criteria: maximum number of a rubric's criteria in one request; None for all.
        clip_negative: whether a rubric's value below 0 becomes 0.
        view: whether the judge sees the last reply (`last_reply`) or all turns of the response (`full_trace`).
        hide_reasoning: whether the policy's reasoning is hidden from the judge.
        omit: fields that requests leave out, sorted.
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
    omit: tuple[str, ...] = ()


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
        values[_TEMPLATE_INDEX] = read_template(path)
        values[_PATH_INDEX] = None
    if isinstance(extra.get("labels"), Mapping):
        values[_LABELS_INDEX] = _HashableMapping(tuple(plain(extra["labels"]).items()))
    values[_OMIT_INDEX] = _read_omit(Fields(extra).get("omit"))
    values[_RANGE_INDEX] = read_range(Fields(extra).get("score_range"))
    try:
        return _parse(*values)
    except TypeError:  # a list or an array cannot be a key of the cache
        return _parse.__wrapped__(*map(plain, values))


def _read_omit(value: Any) -> tuple[str, ...] | None:
    """Return the fields to omit, sorted; None if there are none.

    Raises:
        RequestError: `value` is not a list of fields in `OMITTABLE`.
    """
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise field_error("omit", f"expected a list of fields such as ['top_p'], got {str(value)[:50]!r}")
    for name in value:
        if name not in OMITTABLE:
            raise field_error("omit", not_known(name[:50], OMITTABLE))
    return tuple(sorted(set(value)))


def portable_extra(extra: Mapping[str, Any], shown: ShownParts, rubric: Rubric) -> dict[str, Any]:
    """Return the `extra_info` to send to a reward server, with the template's text in place of its path.

    Args:
        extra: the sample's `extra_info`, which `read_options` accepts.
        shown: the result of `read_shown_parts` for the sample.
        rubric: the result of `read_rubric` for the sample.

    Raises:
        RequestError: the template file cannot be read.
    """
    path = Fields(extra).text("prompt_template_path", "")
    portable = {name: extra[name] for name in JUDGE_OPTIONS if name in extra and name != "prompt_template_path"}
    if path:
        portable["prompt_template"] = read_template(path)
    if rubric:
        portable[RUBRICS] = [one.to_record() for one in rubric]
    return {**portable, **({} if Fields(extra).get(IMAGES) is not False else {IMAGES: False}), **shown.portable}


_TEMPLATE_INDEX = JUDGE_OPTIONS.index("prompt_template")
_PATH_INDEX = JUDGE_OPTIONS.index("prompt_template_path")
_RANGE_INDEX = JUDGE_OPTIONS.index("score_range")
_LABELS_INDEX = JUDGE_OPTIONS.index("labels")
_OMIT_INDEX = JUDGE_OPTIONS.index("omit")


@dataclass(frozen=True, slots=True)
class _HashableMapping:
    """A hashable form of a mapping, for the cache."""

    pairs: tuple[tuple[str, Any], ...]


@lru_cache(maxsize=512, typed=True)
def _parse(*values: Any) -> Options:
    fields = Fields(dict(zip(JUDGE_OPTIONS, values, strict=True)))
    verdict = fields.choice("verdict", KINDS)
    uses_labels = verdict == "logprob"
    template, declared_scale = fields.text("prompt_template", "default"), read_range(fields.get("score_range"))
    max_criteria = fields.integer("max_criteria", None, 1, MAX_CRITERIA)
    max_tokens = fields.integer("max_tokens", 512, 1, MAX_TOKENS)
    options = Options(
        model=fields.text("model_name", "") or fields.text("model", ""),
        verdict=verdict,
        template=find_template(
            template, verdict=verdict, declared_scale=declared_scale, is_split=max_criteria is not None
        ),
        system_prompt=fields.text("system_prompt", None),
        temperature=fields.number("temperature", 0.7, 0, 2),
        top_p=fields.number("top_p", 0.8, 0, 1, is_exclusive=True),
        max_new_tokens=fields.integer("max_new_tokens", max_tokens, 1, MAX_TOKENS),
        enable_thinking=fields.flag("enable_thinking", False),
        thinking_budget=fields.integer("thinking_budget", THINKING_TOKENS, 1, MAX_TOKENS),
        seed=fields.integer("seed", None, 0, 2**53),
        batch_size=fields.integer("batch_size", None, 1, 2**31),
        labels=_parse_labels(fields.get("labels"), template) if uses_labels else (),
        label_mass_floor=fields.number("label_mass_floor", LABEL_MASS_FLOOR, 0, 1),
        num_samples=fields.integer("num_samples", 1, 1, MAX_SAMPLES),
        aggregate=fields.choice("aggregate", AGGREGATES),
        max_criteria=max_criteria,
        clip_negative=fields.flag("clip_negative", True),
        view=fields.choice("view", VIEWS),
        hide_reasoning=fields.flag("hide_reasoning", True),
        omit=fields.get("omit") or (),
    )
    _check_combinations(options)
    return options


def _check_combinations(options: Options) -> None:
    if options.labels and options.enable_thinking:
        why = "'logprob' reads the first token, so the judge cannot reason; leave enable_thinking out"
        raise field_error("verdict", why)
    if options.labels and options.num_samples > 1:
        raise field_error("num_samples", "verdict 'logprob' is deterministic; leave num_samples out")
    if options.verdict == "rubric" and options.num_samples > 1:
        raise field_error("num_samples", "verdict 'rubric' has an answer for each criterion; leave num_samples out")
    if options.verdict != "rubric" and (options.max_criteria or not options.clip_negative):
        name = "max_criteria" if options.max_criteria else "clip_negative"
        raise field_error(name, f"is for verdict 'rubric'; set this verdict, or leave {name} out")
    if options.num_samples > 1 and options.temperature == 0:
        raise field_error("num_samples", "verdicts at temperature 0 are all the same; raise temperature")


def _parse_labels(value: Any, template: str) -> tuple[tuple[str, float], ...]:
    if value is None:
        if template not in LABELS:
            raise field_error(
                "labels", "verdict 'logprob' with a custom template needs labels such as {'A': 1, 'B': 0}"
            )
        value = LABELS[template]
    if isinstance(value, _HashableMapping):
        value = dict(value.pairs)
    if not isinstance(value, Mapping) or not 2 <= len(value) <= MAX_LABELS or any(map(is_missing, value.values())):
        raise field_error("labels", f"expected an object of 2 to {MAX_LABELS} labels with their values")
    fields = Fields({f"labels.{name}": number for name, number in value.items()})
    return tuple((_check_label(name), fields.number(f"labels.{name}", 0.0, 0, 1)) for name in value)


def _check_label(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 32:
        raise field_error("labels", f"{name!r} is not a label; use a short text that is one token, such as 'A'")
    return name
