"""List the fields of `extra_info` that scorers read, and warn about fields that look like a misspelled option.

Other unknown fields belong to the trainer or the data set, and are ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from rewardstack.cache.key import CLIENT_FIELDS
from rewardstack.core.misspellings import find_closest
from rewardstack.pipeline.items import FILTERS
from rewardstack.routing.routes import RULE_OPTIONS
from rewardstack.score import Request

JUDGE_OPTIONS = (
    *("model_name", "model", "temperature", "top_p"),
    *("max_new_tokens", "max_tokens", "enable_thinking", "thinking_budget", "seed", "batch_size"),
    *("prompt_template", "prompt_template_path", "score_range", "system_prompt"),
    *("verdict", "labels", "label_mass_floor", "num_samples", "aggregate", "max_criteria", "clip_negative"),
    *("view", "hide_reasoning", "omit"),
)
"""The options of a judge. The score's cache key (`judge.plan`) includes the options that change a verdict."""
JUDGE_FIELDS = (
    *(*JUDGE_OPTIONS, "problem", "messages", "rubrics", "images"),
    *("group_id", "group_size", "rollout_index"),
)
"""The fields that the client sends if a reward server calls the judge (`relay`). If the task or the criteria are in
other fields, `Judge.portable` moves them to `problem` and `rubrics`."""
EMBEDDING_FIELDS = (
    *("length_penalty", "length_threshold"),
    *("prompt_name", "prompt_prefix", "truncate", "model", "model_name"),
    *("cache_enabled", "cache_size"),
)
"""The options of the embedding similarity, except the common options `server_url`, `api_key` and `timeout`."""
KNOWN_FIELDS = tuple(sorted({*CLIENT_FIELDS, *FILTERS, "prompt", *RULE_OPTIONS, *JUDGE_FIELDS, *EMBEDDING_FIELDS}))
"""The fields that an unknown name is compared with: those of the client, built-in rules, judges and embeddings."""
MIN_LENGTH = 5
"""Minimum length of a name to check; shorter names are often similar to an option by chance."""
RENAMED = {"template": "prompt_template", "template_path": "prompt_template_path"}
"""Maps options in the judge tables of a routes file to their names in `extra_info`, if the names differ."""
TRAINER_FIELDS = ("truncated", "n_samples", "num_samples")
"""Fields that trainers add, and that are similar to an option by chance."""
MAX_NAMES = 500
"""Maximum number of names that a process checks; a check takes about 0.1 ms."""

_checked: set[str] = set()

log = logging.getLogger(__name__)


def warn_of_misspelled_fields(requests: Iterable[Request]) -> None:
    """Warn about names in the requests' `extra_info` that look like misspelled options, once per name and process."""
    last_names: tuple[Any, ...] = ()
    for request in requests:
        extra = request.extra_info
        if extra is not None and isinstance(extra, (dict, Mapping)):  # checking dict first is ten times as fast
            names = tuple(extra)
            if names != last_names:
                _check_names(names)
                last_names = names


@lru_cache(maxsize=1024)
def _check_names(names: tuple[Any, ...]) -> None:
    for name in names:
        if isinstance(name, str) and name not in KNOWN_FIELDS and name not in _checked and len(_checked) < MAX_NAMES:
            _checked.add(name)
            suggestion = _suggest(name)
            if suggestion:
                log.warning(
                    "extra_info.%s is not known and has no effect; did you mean extra_info.%s?", name, suggestion
                )


def _suggest(name: str) -> str:
    """Return the field that an unknown name most likely misspells; empty if there is none."""
    if name in RENAMED:
        return RENAMED[name]
    if name in TRAINER_FIELDS or len(name) < MIN_LENGTH:
        return ""
    suggestion = find_closest(name, KNOWN_FIELDS)
    # A name that differs only by a final s is probably a column of the data set, such as `label`.
    is_column = name.removesuffix("s") == suggestion.removesuffix("s")
    return "" if is_column else suggestion
