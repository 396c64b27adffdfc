"""Reward models by name: the tables `[reward_models.NAME]` of a routes file (`docs/reward_models.md`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from rewardstack.core.json_types import is_finite
from rewardstack.errors import RouteError, SettingsError
from rewardstack.routing.judges import NAME, VARIABLE
from rewardstack.routing.shaping import FIELDS as SHAPING
from rewardstack.routing.shaping import UNIT, Bounds, Shaping, read_shaping
from rewardstack.score import ON_ERROR, OnError
from rewardstack.settings import parse_urls

REWARD_MODEL = "reward_model"
"""The route of the environment's reward model (`REWARD_MODEL_SERVER_URL`)."""
DEFAULT_FLOOR = -20.0
"""Its value of a response that the model cannot read to the end: below all but the worst logits."""
FIELDS = ("base_url", "model", "api_key_env", "outputs", "activation", "steps", *SHAPING, "floor", "on_error")
STEP_FIELDS = ("separator", "tag", "aggregate")
MOST_OUTPUTS = 1024
Activation = Literal["none", "sigmoid"]
Aggregate = Literal["min", "mean", "product", "last"]


@dataclass(frozen=True, slots=True)
class Steps:
    """How a process reward model reads a response.

    Args:
        tag: token behind each step, at which the model says whether the step is right, such as `<extra_0>`.
        separator: between steps.
        aggregate: how the steps' probabilities become one value.
    """

    tag: str
    separator: str = "\n\n"
    aggregate: Aggregate = "min"


@dataclass(frozen=True, slots=True)
class RewardModel:
    """A reward model as a routes file names it.

    Args:
        name: of its route.
        base_url: of equivalent servers; empty for `REWARD_MODEL_SERVER_URL`.
        model: as it is served; empty for the one that the server serves.
        api_key_env: environment variable that holds its key; empty for none.
        outputs: weight of each of the model's outputs; empty for a model that has one.
        activation: of the weighted sum of logits.
        steps: of a process reward model; None for an outcome reward model.
    """

    name: str
    base_url: tuple[str, ...] = ()
    model: str = ""
    api_key_env: str = ""
    outputs: tuple[float, ...] = ()
    activation: Activation = "none"
    steps: Steps | None = None

    @property
    def bounds(self) -> Bounds:
        """The lowest and the highest value that it gives."""
        return UNIT if self.activation == "sigmoid" or self.steps is not None else (-math.inf, math.inf)

    @property
    def definition(self) -> dict[str, Any]:
        """The fields of its table, in JSON."""
        given = asdict(self) | {"base_url": list(self.base_url), "outputs": list(self.outputs)}
        del given["name"]
        return {field: value for field, value in given.items() if value and value != "none"}

    @property
    def keyed(self) -> dict[str, Any]:
        """What its scores depend on: not where it is, or under which key."""
        return {name: value for name, value in self.definition.items() if name not in ("base_url", "api_key_env")}

    def error(self, field: str, complaint: str) -> RouteError:
        """Return the error about a field of its table."""
        where = f"reward_models.{self.name}" + (f".{field}" if field else "")
        return RouteError(f"{where}: {complaint}", where)


def parse_reward_model(name: str, table: object) -> tuple[RewardModel, Shaping, OnError | None]:
    """Return a reward model, with the shaping and the error policy of its route.

    Args:
        name: of the route.
        table: its fields, all of which have defaults but for a floor.

    Raises:
        RouteError: a field cannot be used; names it.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        why = (
            "a name has letters, digits, `_`, `-` and `.`, the first one a letter or a digit, and is no version (`v1`)"
        )
        raise RouteError(f"reward_models: {why}; got {str(name)[:64]!r}", "reward_models")
    model = RewardModel(name)
    if not isinstance(table, Mapping):
        raise model.error("", f"expected a table, got {type(table).__name__}")
    if unknown := [field for field in table if field not in FIELDS]:
        raise model.error(str(unknown[0]), f"is not known; known: {', '.join(FIELDS)}")
    model = replace(
        model,
        base_url=_base_url(model, table.get("base_url", ())),
        model=_text(model, table, "model"),
        api_key_env=_variable(model, table),
        outputs=_outputs(model, table.get("outputs", ())),
        activation=_choice(model, "activation", table.get("activation", "none"), get_args(Activation)),
        steps=_steps(model, table["steps"]) if "steps" in table else None,
    )
    if model.steps is not None and (model.outputs or "activation" in table):
        raise model.error(
            "steps", "a process reward model has one probability for each step; leave outputs and activation out"
        )
    on_error = _choice(model, "on_error", table["on_error"], ON_ERROR) if "on_error" in table else None
    return model, _shaping(model, table), on_error


def _shaping(model: RewardModel, table: Mapping[str, Any]) -> Shaping:
    """Return the shaping, with the floor that a response beyond the model's context has."""
    given = {field: table[field] for field in SHAPING if field in table}
    shaping = read_shaping(given, model.error) or Shaping()
    if "floor" not in table:
        low = shaping.bounds(model.bounds)[0]
        if math.isinf(low):
            why = "needs floor, the value of a response that is too long for the model, or clip = [low, high]"
            raise model.error("floor", why)
        return replace(shaping, floor=low)
    floor = table["floor"]
    if not is_finite(floor):
        raise model.error("floor", f"must be a finite number, got {floor!r}")
    if shaping.clip and not shaping.clip[0] <= floor <= shaping.clip[1]:
        raise model.error("floor", f"{floor:g} is outside of clip = {list(shaping.clip)}")
    return replace(shaping, floor=float(floor))


def _base_url(model: RewardModel, value: Any) -> tuple[str, ...]:
    urls = [value] if isinstance(value, str) else value
    if not isinstance(urls, (list, tuple)) or not all(isinstance(url, str) and url.strip() for url in urls):
        raise model.error("base_url", "must be a base URL, or a list of equivalent ones")
    try:
        return parse_urls(",".join(urls), f"reward_models.{model.name}.base_url")
    except SettingsError as error:
        raise RouteError(str(error), error.field) from None


def _text(model: RewardModel, table: Mapping[str, Any], field: str) -> str:
    value = table.get(field, "")
    if not isinstance(value, str) or (field in table and not value.strip()):
        raise model.error(field, f"must be a non-empty string, got {value!r}")
    return value


def _variable(model: RewardModel, table: Mapping[str, Any]) -> str:
    name = table.get("api_key_env", "")
    if name and (not isinstance(name, str) or not VARIABLE.fullmatch(name)):  # not shown: it may be the key itself
        raise model.error("api_key_env", "must be the name of the environment variable that holds the key")
    if name and "base_url" not in table:
        raise model.error("api_key_env", "goes with base_url; REWARD_MODEL_SERVER_URL has REWARD_MODEL_SERVER_API_KEY")
    return name


def _outputs(model: RewardModel, value: Any) -> tuple[float, ...]:
    if not isinstance(value, (list, tuple)) or len(value) > MOST_OUTPUTS or not all(map(is_finite, value)):
        raise model.error("outputs", "must be a list of weights, one for each output of the model, such as [-1, 1]")
    if value and not any(value):
        raise model.error("outputs", "has no weight but 0")
    return tuple(map(float, value))


def _choice(model: RewardModel, field: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise model.error(field, f"must be one of {', '.join(choices)}, got {value!r}")
    return value


def _steps(model: RewardModel, value: Any) -> Steps:
    if not isinstance(value, Mapping):
        raise model.error("steps", 'must be a table, such as { tag = "<extra_0>", separator = "\\n\\n" }')
    if unknown := [field for field in value if field not in STEP_FIELDS]:
        raise model.error(f"steps.{unknown[0]}", f"is not known; known: {', '.join(STEP_FIELDS)}")
    for field in ("tag", "separator"):
        if not isinstance(value.get(field, "x"), str) or not value.get(field, "x"):
            raise model.error(f"steps.{field}", f"must be a non-empty string, got {value[field]!r}")
    if "tag" not in value:
        raise model.error("steps.tag", "missing; name the token behind each step, such as <extra_0>")
    aggregate = _choice(model, "steps.aggregate", value.get("aggregate", "min"), get_args(Aggregate))
    return Steps(value["tag"], value.get("separator", "\n\n"), aggregate)
