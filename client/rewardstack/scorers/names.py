"""Names in `extra_info` that no scorer reads, but that are so near to one that is read that it was most likely meant.

All others are the trainer's own, or its data set's, and nobody's business.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from rewardstack.cache.key import CLIENT_FIELDS
from rewardstack.core.near_misses import closest
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
"""The fields that a judge reads beside the texts; what changes a verdict is part of its key (`judge.plan`)."""
JUDGE_FIELDS = (*JUDGE_OPTIONS, "problem", "messages", "rubrics", "images")
"""All that a judge reads, except where and how long to ask, and `prompt` or `question` where there is no `problem`."""
EMBEDDING_FIELDS = (
    *("length_penalty", "length_threshold"),
    *("prompt_name", "prompt_prefix", "truncate", "model", "model_name"),
    *("cache_enabled", "cache_size"),
)
"""The fields that an embedding similarity reads, except those of every scorer (`server_url`, `api_key`, `timeout`)."""
READ = tuple(sorted({*CLIENT_FIELDS, *FILTERS, "prompt", *RULE_OPTIONS, *JUDGE_FIELDS, *EMBEDDING_FIELDS}))
"""The names that somebody reads."""
SHORTEST = 5
"""Characters of a name that is looked at; among shorter ones, words of all kinds are alike."""
WORDS = {"template": "prompt_template", "template_path": "prompt_template_path"}
"""What a judge's table in a file of routes calls otherwise."""
TRAINERS_OWN = ("truncated", "n_samples", "num_samples")
"""What trainers write beside a sample, and what is near to an option by chance."""
MOST_NAMES = 500
"""That are looked at in a process, each for about 0.1 ms, so that names without end cost no more than that."""

_looked_at: set[str] = set()

log = logging.getLogger(__name__)


def warn_of_slips(requests: Iterable[Request]) -> None:
    """Warns of each name in the requests' `extra_info` that is nearly an option's, once in a process."""
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
        if isinstance(name, str) and name not in READ and name not in _looked_at and len(_looked_at) < MOST_NAMES:
            _looked_at.add(name)
            meant = _meant(name)
            if meant:
                log.warning("extra_info.%s is not known and has no effect; was extra_info.%s meant?", name, meant)


def _meant(name: str) -> str:
    """The name that somebody reads and that this one most likely stands for; empty where it is a word of its own."""
    if name in WORDS:
        return WORDS[name]
    if name in TRAINERS_OWN or len(name) < SHORTEST:
        return ""
    meant = closest(name, READ)
    is_column = name.removesuffix("s") == meant.removesuffix("s")  # of data sets: `label`, `prompts`
    return "" if is_column else meant
