"""What is asked for one sample, and the key of its score."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from rewardstack.cache.key import FLOW_VERSION, PREFIX, digest, extended
from rewardstack.errors import RequestError
from rewardstack.score import Item
from rewardstack.scorer import Key
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.options import Options, problem_of, read_options
from rewardstack.scorers.judge.request import frame

JUDGE_VERSION = "1"
"""Raised whenever the reading of replies changes what a score is; the prompts themselves are part of the key."""
AFFINITY = "X-Prompt-Affinity"

_PROCESS = uuid.uuid4().hex


class Plan(NamedTuple):
    """What is asked for one sample.

    Args:
        destination: who is asked.
        options: how.
        users: the user's message for each reference; the best verdict counts.
        headers: of its requests.
    """

    destination: Destination
    options: Options
    users: list[str]
    headers: Mapping[str, str]


def make_plan(item: Item, destination: Destination) -> Plan:
    """The plan for a sample.

    Args:
        item: the sample.
        destination: who is asked.

    Raises:
        RequestError: the sample cannot be judged; names the field and the remedy.
    """
    options = read_options(item.extra)
    template = options.template
    references = item.references if template.uses("REFERENCE_SOLUTION") else ("",)
    if not references:
        raise RequestError("ground_truth: the prompt template needs a reference, and there is none", "ground_truth")
    problem = problem_of(item.extra)
    users = [template.render(problem, reference, item.solution) for reference in references]
    return Plan(destination, options, users, affinity(problem or references[0]))


@lru_cache(maxsize=1024)
def affinity(text: str) -> Mapping[str, str]:
    """The header by which a gateway can send all samples of one problem to the same replica."""
    return {AFFINITY: blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()}


def key_of(plan: Plan, model: Model, revision: str, run_id: str) -> Key | None:
    """The key of the plan's score, None where the judge does not say what it is.

    Args:
        plan: what is asked.
        model: that judges.
        revision: the operator's name for the state of the judge.
        run_id: within which a stochastic verdict is remembered; empty for this process.
    """
    if model.root is None:
        return None
    options = plan.options
    scope = "" if options.deterministic else run_id or f"{_PROCESS}:{os.getpid()}"
    text = extended(_state(options, model, revision, scope), *plan.users)
    return Key(PREFIX + text, options.deterministic and options.num_samples == 1)


@lru_cache(maxsize=512)
def _state(options: Options, model: Model, revision: str, scope: str) -> Any:
    request = frame(options, model.name)
    reading = (options.template.top, options.labels, options.label_mass_floor, options.num_samples, options.aggregate)
    sent = request.head.decode(), request.tail.decode()
    return digest(("judge", FLOW_VERSION, JUDGE_VERSION, str(model.root), revision, scope, repr(reading), *sent))
