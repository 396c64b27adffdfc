"""Parses named judges: the tables `[judges.NAME]` of a routes file. See `docs/routing.md` for their fields.

This module does not validate the field `options`; `rewardstack.client` does, when it creates the route table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rewardstack.core.deadline import MAX_TIMEOUT
from rewardstack.core.groups import MAX_GROUP_SIZE as LARGEST_GROUP
from rewardstack.core.json_types import is_finite, plain
from rewardstack.errors import RouteError
from rewardstack.routing.named_table import NamedTable, table_error

KIND = "judges"
FIELDS = (
    *("base_url", "model", "api_key_env", "template", "template_path", "score_range", "options", "replicas"),
    *("allow_image_urls", "requests_per_minute", "tokens_per_minute"),
    *("compare", "pairs", "orders", "group_size", "group_wait", "max_group_size", "single_route"),
)
SCORE_FIELDS = ("model", "template", "score_range", "options", "compare", "pairs", "orders")
"""The fields of a judge's table that define its scores. The other fields define, for example, the judge's servers, its
rate limits, and the sizes of groups."""
MAX_REPLICAS = 1024
MAX_PER_MINUTE = 10**12
MODES = ("listwise", "pairwise")
DEFAULT_GROUP_LIMIT = 64
"""Default of `max_group_size`."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a judge compares the members of a group, i.e. the responses to one problem.

    Args:
        mode: `listwise` for all members in one request, `pairwise` for two members per request.
        pairs: which pairs are compared. `all`: each member with every other member. `circular`: each member with the
            next one, and the last member with the first.
        orders: 1 to judge each list or pair in one order; 2 to judge it in the reverse order, too.
        group_size: number of members to wait for, across calls; None to compare the members of the same call.
        group_wait: seconds to wait for the members; None for half of the judge's timeout.
        max_group_size: maximum number of members.
        single_route: route that scores a sample whose group has one member; empty for none.
    """

    mode: Literal["listwise", "pairwise"]
    pairs: Literal["all", "circular"] = "all"
    orders: int = 2
    group_size: int | None = None
    group_wait: float | None = None
    max_group_size: int = DEFAULT_GROUP_LIMIT
    single_route: str = ""

    @property
    def definition(self) -> dict[str, Any]:
        """The fields of the judge's table for the comparison, as JSON types; empty or None for default values."""
        fields: dict[str, Any] = {"compare": self.mode, "pairs": self.pairs if self.pairs != "all" else None}
        fields |= {"orders": self.orders if self.orders != 2 else None, "group_size": self.group_size}
        fields |= {"group_wait": self.group_wait, "single_route": self.single_route}
        return fields | {"max_group_size": self.max_group_size if self.max_group_size != DEFAULT_GROUP_LIMIT else None}


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """A judge in a routes file.

    Args:
        name: name of the judge and of its route.
        base_url: base URLs of equivalent servers; empty for the path `/judges/NAME` on `LLM_JUDGE_SERVER_URL`.
        model: name of the model at the server; empty (only with `base_url`) for the model that the server reports.
        api_key_env: environment variable with the API key for `base_url`; empty for no key. Judges without `base_url`
            use LLM_JUDGE_SERVER_API_KEY.
        template: name or text of a prompt template; empty for the default, which samples may replace unless
            `comparison` is set.
        score_range: lowest and highest verdict; None for the range that the template states.
        options: judge options, with the same names as in `extra_info`.
        requests_per_minute: maximum requests per minute and process; 0 for no limit.
        tokens_per_minute: maximum tokens per minute and process; 0 for no limit.
        allow_image_urls: whether samples may contain image URLs, which the judge then fetches.
        replicas: number of servers that `make up` starts if there is no `base_url`.
        comparison: how the judge compares the members of a group; None if it judges each sample alone.
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
    comparison: Comparison | None = None

    @property
    def may_be_negative(self) -> bool:
        """Whether the judge's scores can be below 0, so that 0 is not the lowest score."""
        return self.options.get("clip_negative") is False

    @property
    def verdict_identity(self) -> tuple[object, ...]:
        """The servers, model and task of the judge. Judges with the same identity give the same verdicts."""
        task = self.template, self.score_range, dict(self.options), self.comparison
        return frozenset(self.base_url), self.model, *task

    @property
    def score_definition(self) -> dict[str, Any]:
        """The fields in `SCORE_FIELDS`, as JSON types, without default values."""
        return {name: self.definition[name] for name in SCORE_FIELDS if name in self.definition}

    @property
    def definition(self) -> dict[str, Any]:
        """The judge's table, as JSON types, without default values; a template file is replaced by its text."""
        fields = {
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
            **({} if self.comparison is None else self.comparison.definition),
        }
        return {name: value for name, value in fields.items() if value}

    def error(self, field: str, message: str) -> RouteError:
        """Return an error about a field; see `table_error`."""
        return table_error(KIND, self.name, field, message)


def parse_judge(name: str, table: object, folder: Path | None = None) -> NamedJudge:
    """Parse the table of a judge.

    Args:
        name: name of the judge.
        table: the judge's fields; `base_url` or `model` is required.
        folder: base of a relative `template_path`; None for the current directory.

    Raises:
        RouteError: the definition is malformed; the error names the field.
    """
    parsed = NamedTable.read(KIND, name, table, FIELDS)
    judge = NamedJudge(
        name,
        base_url=parsed.base_url(),
        model=parsed.text("model"),
        api_key_env=parsed.api_key_env("a judge without base_url uses LLM_JUDGE_SERVER_API_KEY"),
        template=_template(parsed, folder or Path()),
        score_range=_score_range(parsed),
        options=_options(parsed),
        replicas=parsed.integer("replicas", MAX_REPLICAS, 1),
        allow_image_urls=parsed.flag("allow_image_urls"),
        requests_per_minute=parsed.integer("requests_per_minute", MAX_PER_MINUTE),
        tokens_per_minute=parsed.integer("tokens_per_minute", MAX_PER_MINUTE),
        comparison=_comparison(parsed),
    )
    if judge.base_url and "replicas" in parsed.fields:
        raise parsed.error("replicas", "is for judges that `make up` starts; leave it out, or leave out base_url")
    if not judge.base_url and not judge.model:
        raise parsed.error("", "needs base_url, or model if `make up` is to start the judge")
    return judge


def _comparison(table: NamedTable) -> Comparison | None:
    if "compare" not in table.fields:
        for name in FIELDS[FIELDS.index("compare") + 1 :]:
            if name in table.fields:
                raise table.error(name, f"needs compare; set it to one of {', '.join(MODES)}, or leave {name} out")
        return None
    mode = table.choice("compare", MODES, "")
    max_size = table.integer("max_group_size", LARGEST_GROUP, DEFAULT_GROUP_LIMIT)
    comparison = Comparison(
        mode,
        table.choice("pairs", ("all", "circular"), "all"),
        table.integer("orders", 2, 2),
        table.integer("group_size", max_size) or None,
        _seconds(table, "group_wait"),
        max_size,
        table.text("single_route"),
    )
    if mode == "listwise" and "pairs" in table.fields:
        raise table.error("pairs", "is for compare = 'pairwise'; leave it out")
    if comparison.group_wait is not None and comparison.group_size is None:
        raise table.error("group_wait", "needs group_size, the number of members to wait for")
    if comparison.group_size == 1 or max_size == 1:
        field = "group_size" if comparison.group_size == 1 else "max_group_size"
        raise table.error(field, "must be at least 2; leave compare out to judge each sample alone")
    if "score_range" in table.fields:
        raise table.error("score_range", "has no effect with compare, whose values are from 0 to 1; leave it out")
    return comparison


def _seconds(table: NamedTable, field: str) -> float | None:
    value = table.fields.get(field)
    if field in table.fields and not (is_finite(value) and 0 < value <= MAX_TIMEOUT):
        raise table.error(
            field, f"must be a number of seconds above 0 and at most {MAX_TIMEOUT:g}, got {str(value)[:50]!r}"
        )
    return None if value is None else float(value)


def _template(table: NamedTable, folder: Path) -> str:
    template, path = table.text("template"), table.text("template_path")
    if template and path:
        raise table.error("template_path", "cannot be combined with template; remove one of them")
    if not path:
        return template
    try:
        return (folder / path).read_text(encoding="utf-8")
    except OSError as error:
        why = f"{(folder / path).absolute()} cannot be read: {error.strerror}; correct the path"
        raise table.error("template_path", why) from error
    except ValueError as error:
        raise table.error("template_path", str(error)) from error


def _score_range(table: NamedTable) -> tuple[float, ...] | None:
    """Return the two values of the field, without validating their types; None if the field is missing."""
    value = table.fields.get("score_range")
    ends = plain(value)
    if ends is None:
        return None
    if not isinstance(ends, list) or len(ends) != 2:
        raise table.error("score_range", f"must be two numbers such as [1, 10], got {str(value)[:50]!r}")
    return tuple(ends)


def _options(table: NamedTable) -> dict[str, Any]:
    value = table.fields.get("options", {})
    if not isinstance(value, Mapping):
        raise table.error("options", f"must be a table, got {type(value).__name__}")
    options: dict[str, Any] = plain(value)
    return options
