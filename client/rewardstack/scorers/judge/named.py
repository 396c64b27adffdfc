"""Configure named judges, which a routes file defines: their servers, and options that override a sample's options."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from rewardstack.core.fields import Fields, is_missing
from rewardstack.core.misspellings import not_known
from rewardstack.errors import RequestError, RouteError
from rewardstack.routing.judges import NamedJudge
from rewardstack.scorers.judge.options import REQUEST_FIELDS, read_options
from rewardstack.scorers.judge.rubric import read_rubric
from rewardstack.scorers.judge.templates import BUILTIN, comparison_template
from rewardstack.scorers.names import JUDGE_OPTIONS
from rewardstack.settings import Settings, read_api_key

NAMED_JUDGES_PATH = "judges"
"""Judges without `base_url` are at `/judges/NAME` below LLM_JUDGE_SERVER_URL."""
TEMPLATES = ("prompt_template", "prompt_template_path")
MODELS = ("model_name", "model")
SERVER_FIELDS = ("server_url", "api_key", *MODELS)
"""Fields of `extra_info` that select a server or a model; ignored for named judges."""
RANGE = "score_range"
POINTWISE_OPTIONS = ("verdict", "labels", "num_samples", "aggregate", "max_criteria", "clip_negative", "rubrics")
"""Options that the routes file must not set for a judge with `compare`, and that are ignored in its samples."""
COMPARISON_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "listwise": {"verdict": "text"},
    "pairwise": {"verdict": "logprob", "labels": {"A": 1.0, "B": 0.0}},
}
"""Maps each value of `compare` to the options that it sets. Label A means that the first candidate is better."""
VALID_OPTIONS = (*(name for name in JUDGE_OPTIONS if name not in (*TEMPLATES, *MODELS, RANGE)), "rubrics", "images")
"""The valid names in the `options` of a judge's table."""

log = logging.getLogger(__name__)


class JudgeConfig:
    """The configuration of a named judge, and the names that error messages use for its settings.

    Attributes:
        url_setting: the variable or field with the judge's URL, for errors.
        model_setting: the field with the judge's model, for errors.
        key_setting: the variable with the judge's key, for error messages such as `set KEY_SETTING to one that the
            server accepts`. A judge with `base_url` but without `api_key_env` has no such variable. The value is
            then `judges.NAME.api_key_env to the name of a variable, and that variable`.
        rate_limits: maximum requests and maximum tokens per minute; 0 for no limit.

    Args:
        judge: the judge's definition in the routes file.
    """

    def __init__(self, judge: NamedJudge) -> None:
        self.name = judge.name
        self.source = f"llm_judge:{judge.name}"
        self.url_setting = f"judges.{judge.name}.base_url" if judge.base_url else "LLM_JUDGE_SERVER_URL"
        self.rate_limits = judge.requests_per_minute, judge.tokens_per_minute
        self.allow_image_urls = judge.allow_image_urls
        if judge.base_url:
            no_variable = f"judges.{judge.name}.api_key_env to the name of a variable, and that variable"
            self.key_setting = judge.api_key_env or no_variable
        else:
            self.key_setting = "LLM_JUDGE_SERVER_API_KEY"
        self.model_setting = f"judges.{judge.name}.model"
        self._judge = judge
        self.comparison = judge.comparison
        self._comparison_options = COMPARISON_OPTIONS[judge.comparison.mode] if judge.comparison else {}
        template_text = judge.template or (comparison_template(judge.comparison.mode) if judge.comparison else "")
        template = {"prompt_template": template_text} if template_text else {}
        score_range = {RANGE: judge.score_range} if judge.score_range else {}
        self._fixed_options = {**_named_options(judge.options), **template, **score_range, **self._comparison_options}
        self._ignored = frozenset(
            (
                *SERVER_FIELDS,
                *((*TEMPLATES, RANGE) if template_text else ()),
                *(POINTWISE_OPTIONS if self._comparison_options else ()),
            )
        )

    @property
    def fixed_options(self) -> Collection[str]:
        """The options that the routes file sets."""
        return self._fixed_options.keys()

    @property
    def uses_logprobs(self) -> bool:
        """Whether the judge's verdicts are always read from label probabilities."""
        return self._fixed_options.get("verdict") == "logprob"

    @property
    def may_be_negative(self) -> bool:
        """Whether the judge's scores can be below 0."""
        return self._judge.may_be_negative

    @property
    def has_environment_url(self) -> bool:
        """Whether the judge has no `base_url`, so that its URL is a path below LLM_JUDGE_SERVER_URL."""
        return not self._judge.base_url

    def urls(self, settings: Settings) -> tuple[str, ...]:
        """Return the base URLs of the judge's servers; empty if neither routes file nor environment sets one."""
        environment_urls = tuple(f"{url}/{NAMED_JUDGES_PATH}/{self.name}" for url in settings.judge_urls)
        return self._judge.base_url or environment_urls

    def settings(self, settings: Settings) -> Settings:
        """Return the settings with the servers, key and model of this judge.

        For a judge with a `base_url`, the environment's headers and query parameters are kept only if all URLs of
        `base_url` are in LLM_JUDGE_SERVER_URL, too.

        Raises:
            SettingsError: the judge's key is not set, cannot be read or is not valid.
        """
        judge = self._judge
        own_settings = replace(settings, judge_urls=self.urls(settings), judge_model=judge.model)
        if not judge.base_url:
            return own_settings
        own_settings = replace(own_settings, judge_api_key=read_api_key(judge.api_key_env) if judge.api_key_env else "")
        are_environment_urls = set(judge.base_url) <= set(settings.judge_urls)
        return own_settings if are_environment_urls else replace(own_settings, judge_headers=(), judge_query=())

    def extra(self, extra: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a sample's `extra_info`, in which the options of the routes file replace those of the sample.

        Fields that select a server or a model are removed, with one warning for each judge and field. If the judge has
        a template or `compare`, the sample's template and `score_range` are removed. If the judge has `compare`, the
        sample's `POINTWISE_OPTIONS` are removed, too.
        """
        if not self._fixed_options and not any(name in extra for name in self._ignored):
            return extra
        for name in SERVER_FIELDS:
            if name in extra and Fields(extra).get(name):
                _warn_of_ignored(self.name, name)
        return {**{name: value for name, value in extra.items() if name not in self._ignored}, **self._fixed_options}

    def rename_option(self, error: RequestError) -> RequestError:
        """Return the error about an option, with the option's full name (see `field_name`)."""
        name = (error.field or "").removeprefix("extra_info.")
        if name not in self._fixed_options:
            return error
        field = self.field_name(name)
        return RequestError(_rename_field(error, name, field), field, cause=error.cause)

    def field_name(self, option: str) -> str:
        """Return the full name of an option, for errors and traces.

        If the routes file sets the option, this is the setting in the routes file, such as `judges.small.options.seed`
        or `judges.small.compare`. Otherwise it is the field of the sample, such as `extra_info.seed`.
        """
        if option in self._comparison_options:
            return f"judges.{self.name}.compare"
        return _field_name(self.name, option) if option in self._fixed_options else f"extra_info.{option}"


def _named_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a judge's table; options that are None become names in `omit`."""
    missing = [name for name in REQUEST_FIELDS if name in options and is_missing(options[name])]
    omitted = [field for name in missing for field in REQUEST_FIELDS[name]]
    kept = {name: value for name, value in options.items() if not is_missing(value)}
    return {**kept, "omit": [*kept.get("omit", ()), *omitted]} if omitted else kept


def check_named_judge(judge: NamedJudge) -> None:
    """Check the template and the options of a judge.

    Raises:
        RouteError: an option is invalid; the error names its field, such as `judges.small.options.temperature`.
    """
    for name, value in judge.options.items():
        if name in (RANGE, *TEMPLATES, *MODELS):
            field = {"model_name": "model"}.get(name, name.removeprefix("prompt_"))
            raise judge.error(f"options.{name}", f"belongs in the table itself: set judges.{judge.name}.{field}")
        if name not in VALID_OPTIONS:
            raise judge.error(f"options.{name}", not_known(name, VALID_OPTIONS))
        if name in POINTWISE_OPTIONS and judge.comparison is not None:
            raise judge.error(f"options.{name}", "has no meaning for a judge with compare; leave it out")
        if name == "images" and value is not False:
            raise judge.error(
                "options.images", "must be false, which hides all images from the judge; to show images, leave it out"
            )
        if is_missing(value) and name not in REQUEST_FIELDS:
            raise judge.error(f"options.{name}", "has no value; leave it out")
    if judge.comparison is not None and judge.template in BUILTIN:
        why = "is for judges without compare; leave template out, or set it to a text with {CANDIDATE_SOLUTION}"
        raise judge.error("template", f"{judge.template!r} {why}")
    try:
        extra = JudgeConfig(judge).extra({})
        read_options(extra)
        read_rubric(extra)
    except RequestError as error:
        name = (error.field or "").removeprefix("extra_info.")
        field = _field_name(judge.name, name)
        raise RouteError(_rename_field(error, name, field), field) from error


def _rename_field(error: RequestError, option: str, field: str) -> str:
    return str(error).replace(f"extra_info.{option}", field, 1).replace("prompt_template_path", "template_path")


def _field_name(judge: str, option: str) -> str:
    if option in TEMPLATES:
        return f"judges.{judge}.template"
    return f"judges.{judge}.{option}" if option == RANGE else f"judges.{judge}.options.{option}"


@lru_cache(maxsize=1024)
def _warn_of_ignored(judge: str, field: str) -> None:
    log.warning("extra_info.%s has no effect on the judge %r, which the routes file defines", field, judge)
