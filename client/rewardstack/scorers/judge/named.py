"""Named judges, which a routes file defines: their servers, and the options that override those of samples."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from rewardstack.core.fields import Fields, is_missing
from rewardstack.errors import RequestError, RouteError
from rewardstack.routing.judges import NamedJudge
from rewardstack.scorers.judge.options import read_options
from rewardstack.scorers.judge.rubric import read_rubric
from rewardstack.scorers.judge.templates import BUILTIN, comparing_template
from rewardstack.scorers.names import JUDGE_OPTIONS
from rewardstack.settings import Settings, read_api_key

BELOW = "judges"
"""A judge without a `base_url` is at this path below the environment's judge URL, followed by the judge's name."""
TEMPLATES = ("prompt_template", "prompt_template_path")
MODELS = ("model_name", "model")
MOVING = ("server_url", "api_key", *MODELS)
"""Fields of `extra_info` that select another server or model; ignored for named judges."""
RANGE = "score_range"
ALONE = ("verdict", "labels", "num_samples", "aggregate", "max_criteria", "clip_negative", "rubrics")
"""Options that have no meaning for a judge that compares the members of a group."""
COMPARED: Mapping[str, Mapping[str, Any]] = {
    "listwise": {"verdict": "text"},
    "pairwise": {"verdict": "logprob", "labels": {"A": 1.0, "B": 0.0}},
}
"""The options of such a judge by the value of `compare`: A wins, or B does."""
KNOWN = (*(name for name in JUDGE_OPTIONS if name not in (*TEMPLATES, *MODELS, RANGE)), "rubrics", "images")
"""The valid names in the `options` of a judge's table."""

log = logging.getLogger(__name__)


class Named:
    """A judge that a routes file defines: its source, its limits, its options, and how errors name its settings.

    Args:
        judge: the judge's definition in the routes file.
    """

    def __init__(self, judge: NamedJudge) -> None:
        self.name = judge.name
        self.source = f"llm_judge:{judge.name}"
        self.address = f"judges.{judge.name}.base_url" if judge.base_url else "LLM_JUDGE_SERVER_URL"
        self.per_minute = judge.requests_per_minute, judge.tokens_per_minute
        self.allow_image_urls = judge.allow_image_urls
        self.key = judge.api_key_env or f"the variable that judges.{judge.name}.api_key_env names"
        if not judge.base_url:
            self.key = "LLM_JUDGE_SERVER_API_KEY"
        self.model = f"judges.{judge.name}.model"
        self._judge = judge
        self.comparison = judge.comparison
        compared = COMPARED[judge.comparison.mode] if judge.comparison else {}
        text = judge.template or (comparing_template(judge.comparison.mode) if judge.comparison else "")
        template = {"prompt_template": text} if text else {}
        scale = {RANGE: judge.score_range} if judge.score_range else {}
        self._fixed = {**judge.options, **template, **scale, **compared}
        self._ignored = frozenset((*MOVING, *((*TEMPLATES, RANGE) if text else ()), *(ALONE if compared else ())))

    @property
    def is_labelled(self) -> bool:
        """Whether the judge's verdicts are always read from label probabilities."""
        return self._fixed.get("verdict") == "logprob"

    @property
    def may_be_negative(self) -> bool:
        """Whether the judge's scores can be below 0."""
        return self._judge.may_be_negative

    @property
    def is_below(self) -> bool:
        """Whether the judge has no `base_url`, so that its URL is below the environment's judge URL (`BELOW`)."""
        return not self._judge.base_url

    def addresses(self, settings: Settings) -> tuple[str, ...]:
        """Return the base URLs of the judge's servers; empty if neither the file nor the environment sets any."""
        below = (f"{url}/{BELOW}/{self.name}" for url in settings.judge_urls)
        return self._judge.base_url or tuple(below)

    def settings(self, settings: Settings) -> Settings:
        """Return the settings with this judge's servers, key and model in place of the environment's.

        Raises:
            SettingsError: the environment variable with the judge's key is not set.
        """
        judge = self._judge
        own = replace(settings, judge_urls=self.addresses(settings), judge_model=judge.model)
        if not judge.base_url:
            return own
        own = replace(own, judge_api_key=read_api_key(judge.api_key_env) if judge.api_key_env else "")
        known = set(judge.base_url) <= set(settings.judge_urls)
        return own if known else replace(own, judge_headers=(), judge_query=())

    def extra(self, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a sample's `extra_info`, overridden by the options in the routes file.

        Fields that select another server or model are ignored with a warning, which is logged once.
        """
        if not self._fixed and not any(name in extra for name in self._ignored):
            return extra
        for name in MOVING:
            if name in extra and Fields(extra).get(name):
                _warn(self.name, name)
        return {**{name: value for name, value in extra.items() if name not in self._ignored}, **self._fixed}

    def restated(self, error: RequestError) -> RequestError:
        """Return an error that names the option as in the routes file, if it is set there; else `error` unchanged."""
        name = (error.field or "").removeprefix("extra_info.")
        if name not in self._fixed:
            return error
        return RequestError(_renamed(error, name, self.place(name)), self.place(name))

    def place(self, option: str) -> str:
        """Return the full name of an option where it is set: in the routes file, else in `extra_info`."""
        return _field(self.name, option) if option in self._fixed else f"extra_info.{option}"


def check_named(judge: NamedJudge) -> None:
    """Check the template and the options of a judge.

    Raises:
        RouteError: one is invalid; the error names the field, such as `judges.small.options.temperature`.
    """
    for name, value in judge.options.items():
        if name in (RANGE, *TEMPLATES, *MODELS):
            field = {"model_name": "model"}.get(name, name.removeprefix("prompt_"))
            raise judge.error(f"options.{name}", f"belongs in the table itself: set judges.{judge.name}.{field}")
        if name not in KNOWN:
            raise judge.error(f"options.{name}", f"is not known; available: {', '.join(KNOWN)}")
        if name in ALONE and judge.comparison is not None:
            raise judge.error(f"options.{name}", "has no meaning for a judge with compare; leave it out")
        if name == "images" and value is not False:
            raise judge.error("options.images", "must be false, to judge without images, or left out")
        if is_missing(value):
            raise judge.error(f"options.{name}", "has no value; leave it out")
    if judge.comparison is not None and judge.template in BUILTIN:
        why = "is for samples alone; with compare leave it out, or give a text with {CANDIDATE_SOLUTION}"
        raise judge.error("template", f"{judge.template!r} {why}")
    try:
        extra = Named(judge).extra({})
        read_options(extra)
        read_rubric(extra)
    except RequestError as error:
        name = (error.field or "").removeprefix("extra_info.")
        field = _field(judge.name, name)
        raise RouteError(_renamed(error, name, field), field) from error


def _renamed(error: RequestError, option: str, field: str) -> str:
    return str(error).replace(f"extra_info.{option}", field, 1).replace("prompt_template_path", "template_path")


def _field(judge: str, option: str) -> str:
    if option in TEMPLATES:
        return f"judges.{judge}.template"
    return f"judges.{judge}.{option}" if option == RANGE else f"judges.{judge}.options.{option}"


@lru_cache(maxsize=1024)
def _warn(judge: str, field: str) -> None:
    log.warning("extra_info.%s has no effect on the judge %r, which the routes file defines", field, judge)
