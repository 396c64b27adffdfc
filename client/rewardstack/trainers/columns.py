"""Helpers for the trainers' modules: convert rows of data sets to requests, and scores to rewards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardstack.cause import Cause
from rewardstack.core.fields import is_missing
from rewardstack.core.imports import import_lock
from rewardstack.core.messages import TRANSCRIPT, has_more_than_text, last_text
from rewardstack.errors import RequestError, ScoringError
from rewardstack.score import NO_OPTIONS, Request, Score
from rewardstack.settings import default_reward_type
from rewardstack_verifier.transcript import AUTO, NONE

TEMPLATE_TOKENS = {
    "<|im_middle|>": "kimi",
    "<|im_start|>": "chatml",
    "<|start_header_id|>": "llama3",
    "<|header_start|>": "llama4",
    "<start_of_turn>": "gemma",
    "<|turn>": "gemma4",
    "[INST]": "mistral",
    "\uff5cAssistant\uff5c": "deepseek",
    "seed:": "seed",
    "<|channel|>": "harmony",
    "]~b]": "minimax",
    "<|start_of_role|>": "granite",
    "<SPECIAL_11>": "nemotron",
    "<|assistant|>": "glm",
}
"""A token of the chat templates of each family (`rewardstack_verifier.transcript.FAMILIES`)."""
SOURCE, EXTRA = "data_source", "extra_info"
"""Columns of verl's data sets, which the modules for other trainers read, too."""
TOKENS = "completion_tokens"
"""The field of `extra_info` with the number of tokens in the completion, which the trainer has counted."""
REMEDIES = {
    SOURCE: "pass the route as the first argument, or add the column to the data set",
    "reference": "name the column with the references, or give reference=None if the route needs none",
    "columns": "correct the name, or leave it out of columns=",
}
"""The remedy for a missing column, by the argument that names the column."""
TASKS = ("problem", "prompt", "question")
"""Fields of `extra_info` that may have the task, i.e. the prompt without the chat template."""


def route_name(*names: str | None) -> str:
    """Return the name of the route: the first name that is not empty, else `REWARD_TYPE`.

    Raises:
        SettingsError: all names are empty, and an environment variable is malformed.
    """
    return next(filter(None, names), None) or default_reward_type()


def first_present(values: Iterable[Any]) -> Any:
    """Return the first value that is neither null nor NaN; None if there is none."""
    return next((value for value in values if not is_missing(value)), None)


def merge_options(extra: Any, defaults: Mapping[str, Any] = NO_OPTIONS) -> Any:
    """Return a row's `extra_info` without null and NaN fields, with `defaults` for missing fields.

    Args:
        extra: the row's `extra_info`, or None. Null and NaN fields are left out, because in Parquet each row has the
            fields of all rows. A value that is not a mapping is returned unchanged; scoring then reports the error.
        defaults: fields to add if they are missing in `extra`.
    """
    options = NO_OPTIONS if is_missing(extra) else extra
    if not isinstance(options, Mapping):
        return options
    return {**defaults, **{name: value for name, value in options.items() if not is_missing(value)}}


def add_task(extra: Any, task: Any) -> Any:
    """Return `extra` (an `extra_info`), with `task` added as the field `prompt` if `extra` has no task.

    A task in `extra` takes precedence, because `task` may contain the trainer's chat template.
    """
    if not isinstance(extra, Mapping) or any(extra.get(name) for name in TASKS):
        return extra
    return {**extra, "prompt": task}


def as_names(names: Iterable[str], argument: str) -> tuple[str, ...]:
    """Return the names as a tuple.

    Raises:
        RequestError: `names` is a string or not iterable; the error names `argument`.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise RequestError(f"{argument}: expected a list of names, got {names!r}; put it into a list", argument)
    return tuple(names)


def as_options(options: Mapping[str, Any] | None, argument: str) -> dict[str, Any]:
    """Return fields of `extra_info` as a dict, which is empty for None.

    Raises:
        RequestError: `options` is not a mapping; the error names `argument`.
    """
    if not isinstance(options, (Mapping, type(None))):
        why = f"expected fields of extra_info such as {{'temperature': 0}}, got {type(options).__name__}"
        raise RequestError(f"{argument}: {why}", argument)
    return dict(options or {})


def count_samples(responses: Sequence[Any], argument: str) -> int:
    """Return the number of responses; raise RequestError, which names `argument`, if they are not a list."""
    try:
        return len(responses)
    except TypeError:
        kind = type(responses).__name__
        raise RequestError(f"{argument}: expected a list with one value per sample, got {kind}", argument) from None


def get_column(values: Sequence[Any] | None, count: int, name: str) -> Sequence[Any]:
    """Return a column's `values`, one per sample; if `values` is None, a list of None.

    Raises:
        RequestError: the column is not a list, or does not have `count` values.
    """
    if values is None:
        return [None] * count
    if count_samples(values, name) == count:
        return values
    if isinstance(values, str):
        raise RequestError(f"{name}: expected a list with one value per sample, got str", name)
    raise RequestError(f"{name}: {len(values)} values for {count} samples", name)


def require_rewards(scores: Sequence[Score], remedy: str, samples: Sequence[str] = ("",)) -> list[float]:
    """Return the rewards of samples, for trainers that accept only numbers.

    Args:
        scores: the scores of the samples.
        remedy: where the trainer reads the reference; added to the error if a reference is missing.
        samples: for each sample, the start of an error message about it.

    Raises:
        ScoringError: a sample has no reward.
    """
    for score, sample in zip(scores, samples, strict=True):
        if score.value is None:
            end = f"; {remedy}" if score.cause is Cause.NO_REFERENCE else ""
            raise ScoringError(f"{sample}{score.status}: {score.reason}{end}", scores)
    return [score.value for score in scores if score.value is not None]


def transcript_option(tokenizer: Any) -> dict[str, str]:
    """Return the option `transcript` for the responses of a policy, by the chat template of its tokenizer.

    Args:
        tokenizer: a tokenizer of transformers, or another object with the template as `chat_template`. None for no
            option.

    Returns:
        The family whose token the template has first in `TEMPLATE_TOKENS`; `none` without a template, and `auto` for a
        template of an unknown family.
    """
    if tokenizer is None:
        return {}
    template = getattr(tokenizer, "chat_template", None)
    if not template:
        return {TRANSCRIPT: NONE}
    return {TRANSCRIPT: next((name for token, name in TEMPLATE_TOKENS.items() if token in str(template)), AUTO)}


@dataclass(frozen=True)
class Columns:
    """The columns that a reward function reads, for TRL and ms-swift, which pass a list per column.

    Args:
        data_source: the route; None to read it from the column `data_source` of each row.
        reference: the column with the references; None if the route needs none.
        fields: names of columns that become fields of `extra_info`.
        extra_info: fields of `extra_info` for every row.
        remedy: what to do if the trainer does not pass a column of the data set; added to the error about the column.
    """

    data_source: str | None
    reference: str | None
    fields: Sequence[str]
    extra_info: Mapping[str, Any]
    remedy: str = ""

    def requests(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        columns: Mapping[str, Sequence[Any]],
        token_ids: Sequence[Any] | None = None,
    ) -> list[Request]:
        """Return a request for each row.

        A request's `extra_info` combines the following; later items take precedence:

        - `question`: the last user message, or the whole prompt if it is a string
        - `messages`: the prompt, if it has more than the text of one message, and the column `extra_info` has no task
        - `self.extra_info`
        - the column `extra_info`, without null and NaN fields
        - the columns in `self.fields` and `completion_tokens`, without null and NaN values

        Args:
            prompts: strings or chat messages.
            completions: strings or chat messages.
            columns: the columns by name.
            token_ids: the token IDs of each completion; their number becomes `completion_tokens`. None if unknown.

        Raises:
            RequestError: a column is missing, or does not have a value for each completion.
        """
        count = len(completions)
        sources = [self.data_source] * count if self.data_source else self._column(columns, SOURCE, count, SOURCE)
        truths = self._column(columns, self.reference, count, "reference") if self.reference else [None] * count
        extras = get_column(columns.get(EXTRA), count, EXTRA)
        fields = {name: self._column(columns, name, count, "columns") for name in self.fields}
        if token_ids is not None:
            fields[TOKENS] = [None if ids is None else len(ids) for ids in get_column(token_ids, count, "token ids")]
        rows = zip(sources, completions, truths, get_column(prompts, count, "prompts"), extras, strict=True)
        return [
            Request(
                source, completion, truth, self._extra(prompt, extra, {name: fields[name][index] for name in fields})
            )
            for index, (source, completion, truth, prompt, extra) in enumerate(rows)
        ]

    def _extra(self, prompt: Any, extra: Any, fields: Mapping[str, Any]) -> Any:
        question = prompt if isinstance(prompt, str) else last_text(prompt, "user")
        has_task = isinstance(extra, Mapping) and any(not is_missing(extra.get(name)) for name in TASKS)
        conversation = {"messages": prompt} if has_more_than_text(prompt) and not has_task else {}
        options = merge_options(extra, {"question": question, **conversation, **self.extra_info})
        return merge_options(fields, options) if isinstance(options, Mapping) else options

    def _column(self, columns: Mapping[str, Sequence[Any]], name: str, count: int, argument: str) -> Sequence[Any]:
        if not isinstance(name, str):
            raise RequestError(f"{argument}: expected the name of a column, got {name!r}; pass a string", argument)
        if columns.get(name) is not None:
            return get_column(columns[name], count, name)
        with import_lock:
            from rewardstack.core.misspellings import did_you_mean
        end = f"; {self.remedy}" if self.remedy else ""
        message = f"{argument}: there is no column {name!r}; {did_you_mean(name, columns)}{REMEDIES[argument]}{end}"
        raise RequestError(message, argument)
