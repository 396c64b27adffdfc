"""Plan the requests for one sample's verdict, and compute the cache key of its score."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from rewardstack.cache.key import ANY, PIPELINE_VERSION, PREFIX, UNIT, Key, digest, hex_digest
from rewardstack.cause import Cause
from rewardstack.core.fields import field_error
from rewardstack.errors import RequestError
from rewardstack.score import Item
from rewardstack.scorers.budget import Meter
from rewardstack.scorers.destination import Destination
from rewardstack.scorers.judge.conversation import ShownParts, read_shown_parts
from rewardstack.scorers.judge.models import Model
from rewardstack.scorers.judge.options import REQUEST_FIELDS, Options
from rewardstack.scorers.judge.request import changes_sampling, is_deterministic, make_frame
from rewardstack.scorers.judge.rubric import FIELD as RUBRICS
from rewardstack.scorers.judge.rubric import GRADES, Answers, Rubric, format_criteria, read_rubric, valid_answers

AFFINITY = "X-Prompt-Affinity"
"""Header that lets a gateway send all samples of a problem to one replica, which caches their common prefix."""

_ATTRIBUTES = {"max_tokens": "max_new_tokens"}
"""Maps an option with two names to the attribute of `Options`."""
_PROCESS = uuid.uuid4().hex
"""Part of the cache keys of stochastic verdicts if there is no run ID."""

log = logging.getLogger(__name__)


class Plan(NamedTuple):
    """The inputs of the requests for one sample; prompts are rendered when they are sent.

    Args:
        destination: the judge's servers and key.
        options: how the sample is judged.
        shown: what the judge sees of the sample.
        references: the references, each of which has its own requests. If no reference is used, one empty text.
        meter: counts the usage of the requests; None until the sample is scored.
        rubric: the criteria; empty if neither the verdict nor the template needs any.
        created_at: time of creation, on `time.monotonic()`; the latency of the score is measured from then.
        compared: number of candidates that a request compares; 0 if it shows a single candidate without comparison.
        own: the options that the sample sets itself, of those for which a judge may reject a value.
    """

    destination: Destination
    options: Options
    shown: ShownParts
    references: tuple[str, ...]
    meter: Meter | None = None
    rubric: Rubric = ()
    created_at: float = 0.0
    compared: int = 0
    own: tuple[str, ...] = ()

    @property
    def own_fields(self) -> Mapping[str, tuple[str, Any]]:
        """The option and its value for each field of a request whose value the sample sets itself."""
        options = () if self.options.labels else self.own
        return {
            field: (option, getattr(self.options, _ATTRIBUTES.get(option, option)))
            for option in options
            for field in REQUEST_FIELDS[option]
        }

    def texts(self, user: str) -> Sequence[str]:
        """Return the texts of the sample that the judge gets in a request with the user message `user`."""
        return (user, self.shown.problem, self.shown.candidate, *self.references)

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the plan's requests; see `AFFINITY`."""
        return _affinity_header(self.shown.problem or self.references[0])

    @property
    def chunks(self) -> list[Rubric]:
        """The criteria of each request; one empty rubric if there are no criteria."""
        size = self.options.max_criteria or len(self.rubric) or 1
        return [self.rubric[start : start + size] for start in range(0, len(self.rubric), size)] or [()]

    def user_message(self, reference: str, criteria: Rubric = ()) -> str:
        """Return the user message for a reference and for some of the criteria."""
        listing = format_criteria(criteria, with_points=self.options.verdict != "rubric")
        return self.options.template.render(self.shown.problem, reference, self.shown.candidate, listing)

    def valid_answers(self, criteria: Rubric = ()) -> Answers:
        """Return the valid answers to each of `criteria` if the verdict is `rubric`, else an empty tuple.

        In a listwise comparison, return `GRADES` for each candidate instead.
        """
        if self.compared and not self.options.labels:
            return (GRADES,) * self.compared
        return valid_answers(criteria) if self.options.verdict == "rubric" else ()


def make_plan(
    item: Item, options: Options, destination: Destination, *, allow_urls: bool = False, compares: bool = False
) -> Plan:
    """Return the plan for a sample; raise RequestError if it cannot be judged.

    Args:
        item: the sample.
        options: the result of `read_options` for the sample.
        destination: the judge's servers and key.
        allow_urls: whether images may be web URLs, which the judge's server then fetches.
        compares: whether the judge compares candidates, which needs no reference.
    """
    shown = read_shown_parts(item, options.view, hide=options.hide_reasoning, allow_urls=allow_urls)
    references = item.references if options.template.uses("REFERENCE_SOLUTION") else ("",)
    references = references or (("",) if compares else ())
    if not references:
        raise RequestError(
            "ground_truth: missing, but the prompt template needs a reference", "ground_truth", cause=Cause.NO_REFERENCE
        )
    if not shown.problem and options.template.uses("PROBLEM"):
        _warn_of_missing_problem()
    rubric = _needed_rubric(options, item.extra)
    return Plan(destination, options, shown, references, rubric=rubric, created_at=time.monotonic())


def _needed_rubric(options: Options, extra: Mapping[str, Any]) -> Rubric:
    """Return the sample's criteria if the verdict or the template needs them; else an empty rubric."""
    if options.verdict != "rubric" and not options.template.uses("CRITERIA"):
        if extra.get(RUBRICS) is not None:
            _warn_of_unused_rubric()
        return ()
    rubric = read_rubric(extra)
    if not rubric:
        needs = "verdict 'rubric'" if options.verdict == "rubric" else "the prompt template"
        raise field_error(RUBRICS, f"{needs} needs a list of criteria, and there is none")
    return rubric


@lru_cache
def _warn_of_unused_rubric() -> None:
    log.warning("extra_info.rubrics has no effect unless verdict = 'rubric' or the template has {CRITERIA}")


@lru_cache
def _warn_of_missing_problem() -> None:
    log.warning("extra_info has no problem, so the judge does not see the task; send it as extra_info.problem")


@lru_cache(maxsize=1024)
def _affinity_header(text: str) -> Mapping[str, str]:
    return {AFFINITY: blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()}


def cache_key(plan: Plan, model: Model, revision: str, run_id: str, name: str = "") -> Key | None:
    """Return the cache key of the plan's score; None if the score cannot be cached.

    It cannot if the judge does not report its underlying model, or does not use the temperature or the seed that the
    options set.

    Args:
        plan: the plan.
        model: the judge's model.
        revision: revision of the judge, which the operator changes to discard cached verdicts.
        run_id: ID of the run; empty for none. Verdicts that are not deterministic are cached for this run only or,
            without a run ID, for this process only.
        name: name of a named judge; empty for the environment's judge.
    """
    options = plan.options
    if model.root is None or changes_sampling(options, model.dialect):
        return None
    deterministic = is_deterministic(options, model.dialect)
    scope = "" if deterministic else run_id or f"{_PROCESS}:{os.getpid()}"
    criteria_text = [repr(tuple(map(tuple, plan.rubric)))] if plan.rubric else []
    prefix = _key_prefix(options, model, revision, scope, name)
    shown = plan.shown
    # The key needs the kinds, because texts of different kinds can be equal, such as an image URL and a reference.
    kinds = bool(shown.task), bool(shown.trace), len(shown.images)
    shape = [repr(kinds)] if any(kinds) else []
    texts = shown.problem, shown.candidate, *plan.references, *criteria_text, *shown.images
    text = hex_digest(prefix, *texts, *shape)
    bounds = UNIT if options.clip_negative else ANY
    return Key(PREFIX + text, deterministic and options.num_samples == 1, bounds)


@lru_cache(maxsize=512)
def _key_prefix(options: Options, model: Model, revision: str, scope: str, name: str) -> Any:
    request = make_frame(options, model.name, dialect=model.dialect)
    aggregation = (options.labels, options.label_mass_floor, options.num_samples, options.aggregate)
    sent = request.head.decode(), request.tail.decode()
    rubric = [f"{options.max_criteria} {options.clip_negative}"] if options.verdict == "rubric" else []
    parts = (options.template.identity, repr(aggregation), *sent, *([name] if name else ()), *rubric)
    return digest(("judge", PIPELINE_VERSION, _source_hash(), str(model.root), revision, scope, *parts))


@lru_cache
def _source_hash() -> str:
    """Return a hash of this package's source, which renders prompts and parses replies."""
    source_hash = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source_hash.update(path.read_bytes())
    return source_hash.hexdigest()
