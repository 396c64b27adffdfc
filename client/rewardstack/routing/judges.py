"""Judges by name: the tables `[judges.NAME]` of a routes file. `docs/routing.md` has their fields.

What stands in `options` is the judge's own to read, which is done where all routes are put together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardstack.core.json_types import plain
from rewardstack.errors import RouteError, SettingsError
from rewardstack.settings import parse_urls

FIELDS = (
    *("base_url", "model", "api_key_env", "template", "template_path", "score_range", "options", "replicas"),
    *("allow_image_urls", "requests_per_minute", "tokens_per_minute"),
)
KEYED = ("model", "template", "score_range", "options")
"""Of these, what a score depends on."""
NAME = re.compile(r"(?!v\d)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""What a path can hold; `v1` at its end would be taken for the interface's version."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
MOST_REPLICAS = 1024
MOST_PER_MINUTE = 10**12


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """A judge as a routes file names it.

    Args:
        name: of its route.
        base_url: base URLs of equivalent servers; empty for one below the environment's own judges (`/judges/NAME`).
        model: that judges, as it is served; empty where `base_url` is given and says it.
        api_key_env: the environment variable that holds its key; empty for none.
        template: a prompt template, by its name or as a text; empty where samples may say it.
        score_range: the scale of the template's verdicts; None where the template says it.
        options: what `extra_info` may say of a judge, by the same names.
        requests_per_minute: that a process may send it; 0 for any number.
        tokens_per_minute: that these may take; 0 for any number.
        allow_image_urls: whether samples may have URLs of images, which the judge then fetches.
        replicas: of it that `make up` starts where it has no `base_url`.
    """

    name: str
    base_url: tuple[str, ...] = ()
    model: str = ""
    api_key_env: str = ""
    template: str = ""
    score_range: tuple[float, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    replicas: int = 1
    allow_image_urls: bool = False
    requests_per_minute: int = 0
    tokens_per_minute: int = 0

    @property
    def may_be_negative(self) -> bool:
        """Whether its scores can be below 0, so that 0 is no score for a sample that has none."""
        return self.options.get("clip_negative") is False

    @property
    def asked(self) -> tuple[object, ...]:
        """Who is asked for what: two names with an equal one are one judge."""
        return frozenset(self.base_url), self.model, self.template, self.score_range, dict(self.options)

    @property
    def keyed(self) -> dict[str, Any]:
        """What its scores depend on of its table, in JSON: not where it is, or under which key."""
        return {name: self.definition[name] for name in KEYED if name in self.definition}

    @property
    def definition(self) -> dict[str, Any]:
        """Its table, in JSON; a template's file as its text."""
        given = {
            "base_url": list(self.base_url),
            "model": self.model,
            "api_key_env": self.api_key_env,
            "template": self.template,
            "score_range": None if self.score_range is None else list(self.score_range),
            "options": dict(self.options),
            "replicas": self.replicas if self.replicas > 1 else None,
            "allow_image_urls": self.allow_image_urls,
            "requests_per_minute": self.requests_per_minute,
            "tokens_per_minute": self.tokens_per_minute,
        }
        return {name: value for name, value in given.items() if value}

    def error(self, field: str, complaint: str) -> RouteError:
        """What is raised where a field of it cannot be used; both as `judge_error` has them."""
        return judge_error(self.name, field, complaint)


def judge_error(name: str, field: str, complaint: str) -> RouteError:
    """What is raised where a judge's table cannot be used.

    Args:
        name: of the judge.
        field: such as `options.temperature`; empty for the table itself.
        complaint: with the remedy.
    """
    where = f"judges.{name}.{field}" if field else f"judges.{name}"
    return RouteError(f"{where}: {complaint}", where)


def parse_judge(name: str, table: object, folder: Path | None = None) -> NamedJudge:
    """A judge from its table.

    Args:
        name: of the judge.
        table: with `base_url` or `model`, or both, and what else there is to say.
        folder: to which a `template_path` is relative; None for the current directory.

    Raises:
        RouteError: the definition is malformed; names the field.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        why = "letters, digits, `_`, `-` and `.`, the first one a letter or a digit, and not as in a version (`v1`)"
        raise RouteError(f"judges: a judge's name has {why}; got {str(name)[:64]!r}", "judges")
    if not isinstance(table, Mapping):
        raise judge_error(name, "", f"expected a table, got {type(table).__name__}")
    if unknown := [one for one in table if one not in FIELDS]:
        raise judge_error(name, str(unknown[0]), f"is not known; known: {', '.join(FIELDS)}")
    judge = NamedJudge(
        name,
        _base_url(name, table.get("base_url", ())),
        _text(name, table, "model"),
        _text(name, table, "api_key_env"),
        _template(name, table, folder or Path()),
        _score_range(name, table.get("score_range")),
        _options(name, table.get("options", {})),
        _whole(name, table, "replicas", MOST_REPLICAS, 1),
        _flag(name, table, "allow_image_urls"),
        _whole(name, table, "requests_per_minute", MOST_PER_MINUTE),
        _whole(name, table, "tokens_per_minute", MOST_PER_MINUTE),
    )
    _check_together(judge, table)
    return judge


def _check_together(judge: NamedJudge, table: Mapping[str, Any]) -> None:
    """What goes with a `base_url`, and what goes without."""
    variable = judge.api_key_env
    if variable and not VARIABLE.fullmatch(variable):  # not shown: it may be the key itself
        raise judge.error("api_key_env", "must be the name of the environment variable that holds the key")
    if judge.base_url and "replicas" in table:
        raise judge.error("replicas", "is for judges that `make up` starts; leave it out, or leave out base_url")
    if not judge.base_url and variable:
        why = "goes with base_url; a judge without one is asked with LLM_JUDGE_SERVER_API_KEY"
        raise judge.error("api_key_env", why)
    if not judge.base_url and not judge.model:
        raise judge.error("", "needs base_url, or model for one that `make up` starts")


def _base_url(name: str, value: Any) -> tuple[str, ...]:
    urls = [value] if isinstance(value, str) else value
    if not isinstance(urls, (list, tuple)) or not all(isinstance(url, str) and url.strip() for url in urls):
        raise judge_error(name, "base_url", "must be a base URL, or a list of equivalent ones")
    try:
        return parse_urls(",".join(urls), f"judges.{name}.base_url")
    except SettingsError as error:
        raise RouteError(str(error), error.field) from None


def _text(name: str, table: Mapping[str, Any], field: str) -> str:
    value = table.get(field, "")
    if not isinstance(value, str) or (field in table and not value.strip()):
        raise judge_error(name, field, f"must be a non-empty string, got {type(value).__name__}")
    return value


def _template(name: str, table: Mapping[str, Any], folder: Path) -> str:
    template, path = _text(name, table, "template"), _text(name, table, "template_path")
    if template and path:
        raise judge_error(name, "template_path", "stands beside template; leave one of them out")
    if not path:
        return template
    try:
        return (folder / path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise judge_error(name, "template_path", str(error)) from error


def _score_range(name: str, value: Any) -> tuple[float, ...] | None:
    ends = plain(value)
    if ends is None:
        return None
    if not isinstance(ends, list) or len(ends) != 2:
        raise judge_error(name, "score_range", f"must be two numbers such as [1, 10], got {str(value)[:50]!r}")
    return tuple(ends)


def _options(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise judge_error(name, "options", f"must be a table, got {type(value).__name__}")
    options: dict[str, Any] = plain(value)
    return options


def _flag(name: str, table: Mapping[str, Any], field: str) -> bool:
    value = table.get(field, False)
    if not isinstance(value, bool):
        raise judge_error(name, field, f"must be true or false, got {str(value)[:50]!r}")
    return value


def _whole(name: str, table: Mapping[str, Any], field: str, most: int, default: int = 0) -> int:
    value = table.get(field)
    if field not in table:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise judge_error(name, field, f"must be a whole number from 1 to {most}")
    return value
