"""Names of the fields of `extra_info` that scorers read, and warnings about names that look like misspelled options.

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
    *("max_new_tokens", "enable_thinking", "thinking_budget", "seed", "batch_size"),
    *("prompt_template", "prompt_template_path", "score_range", "system_prompt"),
    *("verdict", "labels", "label_mass_floor", "num_samples", "aggregate", "max_criteria", "clip_negative"),
    *("view", "hide_reasoning"),
)
"""The options of a judge; those that change a verdict are part of the score's cache key (`judge.plan`)."""
JUDGE_FIELDS = (
    *(*JUDGE_OPTIONS, "problem", "messages", "rubrics", "images"),
    *("group_id", "group_size", "rollout_index"),
)
"""The fields that a judge reads, except server, timeout, and the alternatives to `problem` (`prompt`, `question`)."""
EMBEDDING_FIELDS = (
    *("length_penalty", "length_threshold"),
    *("prompt_name", "prompt_prefix", "truncate", "model", "model_name"),
    *("cache_enabled", "cache_size"),
)
"""The options of the embedding similarity, except those that all scorers read (`server_url`, `api_key`, `timeout`)."""
READ = tuple(sorted({*CLIENT_FIELDS, *FILTERS, "prompt", *RULE_OPTIONS, *JUDGE_FIELDS, *EMBEDDING_FIELDS}))
"""All fields that are known, and so cause no warning."""
SHORTEST = 5
"""Minimum length of a name to check; shorter names are often similar to an option by chance."""
WORDS = {"template": "prompt_template", "template_path": "prompt_template_path"}
"""Fields of `extra_info` by their names in the judge tables of a routes file, which users confuse with them."""
TRAINERS_OWN = ("truncated", "n_samples", "num_samples")
"""Fields that trainers add, and that are similar to an option by chance."""
MOST_NAMES = 500
"""Maximum number of names that a process checks; a check takes about 0.1 ms."""

_checked: set[str] = set()

log = logging.getLogger(__name__)


def warn_of_slips(requests: Iterable[Request]) -> None:
    """Warn about names in the requests' `extra_info` that look like misspelled options, once per name and process."""
    before: tuple[Any, ...] = ()
    for request in requests:
        extra = request.extra_info
        if extra is not None and isinstance(extra, (dict, Mapping)):  # a Mapping alone takes ten times as long
            names = tuple(extra)
            if names != before:
                _look_at(names)
                before = names


@lru_cache(maxsize=1024)
def _look_at(names: tuple[Any, ...]) -> None:
    for name in names:
        if isinstance(name, str) and name not in READ and name not in _checked and len(_checked) < MOST_NAMES:
            _checked.add(name)
            meant = _meant(name)
            if meant:
                log.warning("extra_info.%s is not known and has no effect; did you mean extra_info.%s?", name, meant)


def _meant(name: str) -> str:
    """Return the field that an unknown name most likely misspells; empty if there is none."""
    if name in WORDS:
        return WORDS[name]
    if name in TRAINERS_OWN or len(name) < SHORTEST:
        return ""
    meant = find_closest(name, READ)
    is_column = name.removesuffix("s") == meant.removesuffix("s")  # `label` and `prompts` are columns of data sets
    return "" if is_column else meant
