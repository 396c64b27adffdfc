"""Parses named reward models: the tables `[reward_models.NAME]` of a routes file (`docs/reward_models.md`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from rewardstack.core.json_types import is_finite
from rewardstack.core.misspellings import not_known
from rewardstack.errors import RouteError
from rewardstack.routing.named_table import NamedTable, table_error
from rewardstack.routing.shaping import FIELDS as SHAPING
from rewardstack.routing.shaping import UNIT, Bounds, Shaping, read_shaping
from rewardstack.score import ON_ERROR, OnError

KIND = "reward_models"
REWARD_MODEL = "reward_model"
"""Name of the built-in route to the reward model at `REWARD_MODEL_SERVER_URL`."""
DEFAULT_FLOOR = -20.0
"""The `floor` of the route `REWARD_MODEL`: the value of a response that is too long; lower than most logits."""
FIELDS = (
    *("base_url", "model", "api_key_env", "api", "template", "outputs", "activation", "steps"),
    *(*SHAPING, "floor", "on_error"),
)
STEP_FIELDS = ("separator", "tag", "aggregate")
MAX_OUTPUTS = 1024
Api = Literal["vllm", "tei", "openrlhf", "sglang"]
Activation = Literal["none", "sigmoid"]
Aggregate = Literal["min", "mean", "product", "last"]


@dataclass(frozen=True, slots=True)
class Steps:
    """How a process reward model scores the steps of a response.

    Args:
        tag: token to insert after each step, such as `<extra_0>`. At this token, the model predicts whether the step is
            right.
        separator: text between the steps of a response.
        aggregate: how to combine the probabilities of the steps.
    """

    tag: str
    separator: str = "\n\n"
    aggregate: Aggregate = "min"


@dataclass(frozen=True, slots=True)
class RewardModel:
    """A reward model in a routes file.

    Args:
        name: name of the reward model and of its route.
        base_url: base URLs of equivalent servers; empty for `REWARD_MODEL_SERVER_URL`.
        model: served model name; empty for the model that the server reports.
        api_key_env: environment variable with the API key for `base_url`; empty for no key. Models without `base_url`
            use REWARD_MODEL_SERVER_API_KEY.
        api: the server's protocol.
        template: input text for servers other than vLLM, with placeholders `{PROBLEM}` and `{CANDIDATE_SOLUTION}`.
        outputs: weight of each of the model's outputs; empty for a model with one output.
        activation: function that is applied to the weighted sum of logits.
        steps: how a process reward model scores the steps of a response; None for an outcome reward model.
    """

    name: str
    base_url: tuple[str, ...] = ()
    model: str = ""
    api_key_env: str = ""
    api: Api = "vllm"
    template: str = ""
    outputs: tuple[float, ...] = ()
    activation: Activation = "none"
    steps: Steps | None = None

    @property
    def bounds(self) -> Bounds:
        """The lowest and highest possible value before the route's shaping."""
        return UNIT if self.activation == "sigmoid" or self.steps is not None else (-math.inf, math.inf)

    @property
    def definition(self) -> dict[str, Any]:
        """The model's table, as JSON types, without default values."""
        fields = asdict(self) | {"base_url": list(self.base_url), "outputs": list(self.outputs)}
        del fields["name"]
        return {field: value for field, value in fields.items() if value and value not in ("none", "vllm")}

    @property
    def score_definition(self) -> dict[str, Any]:
        """The fields of the model's table on which scores depend, as JSON types."""
        return {name: value for name, value in self.definition.items() if name not in ("base_url", "api_key_env")}

    def error(self, field: str, message: str) -> RouteError:
        """Return an error about a field; see `table_error`."""
        return table_error(KIND, self.name, field, message)


def parse_reward_model(name: str, table: object) -> tuple[RewardModel, Shaping, OnError | None]:
    """Parse the table of a reward model; return the model, and the shaping and error policy of its route.

    Args:
        name: name of the reward model and of its route.
        table: the reward model's fields.

    Raises:
        RouteError: a field is invalid; the error names the field.
    """
    parsed = NamedTable.read(KIND, name, table, FIELDS)
    model = RewardModel(
        name,
        base_url=parsed.base_url(),
        model=parsed.text("model"),
        api=parsed.choice("api", get_args(Api), "vllm"),
        template=parsed.text("template"),
        api_key_env=parsed.api_key_env("a reward model without base_url uses REWARD_MODEL_SERVER_API_KEY"),
        outputs=_outputs(parsed),
        activation=parsed.choice("activation", get_args(Activation), "none"),
        steps=_steps(parsed) if "steps" in parsed.fields else None,
    )
    _check_template(model)
    if model.steps is not None and (model.outputs or "activation" in parsed.fields):
        why = "a process reward model has one probability for each step; leave outputs and activation out"
        raise parsed.error("steps", why)
    on_error = parsed.choice("on_error", ON_ERROR, "") if "on_error" in parsed.fields else None
    return model, _shaping(parsed, model.bounds), on_error


def _check_template(model: RewardModel) -> None:
    """Raise RouteError if `template` or `steps` does not fit the API.

    vLLM applies the model's chat template and supports `steps`; the other APIs need a `template` for their input text.
    """
    if model.api == "vllm":
        if model.template:
            others = ", ".join(api for api in get_args(Api) if api != "vllm")
            raise model.error("template", f"is for api = {others}; leave it out: vLLM applies the chat template")
        return
    if "{CANDIDATE_SOLUTION}" not in model.template:
        why = (
            f"api = {model.api} needs a text with {{CANDIDATE_SOLUTION}}, and with {{PROBLEM}} if the model reads the "
            "problem"
        )
        raise model.error("template", why)
    if model.steps is not None:
        raise model.error("steps", f"needs api = vllm; {model.api} does not return a value for each step")


def _shaping(table: NamedTable, unshaped: Bounds) -> Shaping:
    """Parse the shaping, including the floor; `unshaped` has the bounds of the values before shaping."""
    fields = {field: table.fields[field] for field in SHAPING if field in table.fields}
    shaping = read_shaping(fields, table.error) or Shaping()
    if "floor" not in table.fields:
        low = shaping.bounds(unshaped)[0]
        if math.isinf(low):
            why = "missing; set the value of a response that is too long for the model, or set clip = [low, high]"
            raise table.error("floor", why)
        return replace(shaping, floor=low)
    floor = table.fields["floor"]
    if not is_finite(floor):
        raise table.error("floor", f"must be a finite number, got {floor!r}")
    if shaping.clip and not shaping.clip[0] <= floor <= shaping.clip[1]:
        raise table.error("floor", f"{floor:g} is outside of clip = {list(shaping.clip)}")
    return replace(shaping, floor=float(floor))


def _outputs(table: NamedTable) -> tuple[float, ...]:
    value = table.fields.get("outputs", ())
    if not isinstance(value, (list, tuple)) or len(value) > MAX_OUTPUTS or not all(map(is_finite, value)):
        raise table.error("outputs", "must be a list of weights, one for each output of the model, such as [-1, 1]")
    if value and not any(value):
        raise table.error("outputs", "must have a weight other than 0")
    return tuple(map(float, value))


def _steps(table: NamedTable) -> Steps:
    value = table.fields["steps"]
    if not isinstance(value, Mapping):
        raise table.error("steps", 'must be a table, such as { tag = "<extra_0>", separator = "\\n\\n" }')
    if unknown := [field for field in value if field not in STEP_FIELDS]:
        raise table.error(f"steps.{unknown[0]}", not_known(unknown[0], STEP_FIELDS))
    for field in ("tag", "separator"):
        if not isinstance(value.get(field, "x"), str) or not value.get(field, "x"):
            raise table.error(f"steps.{field}", f"must be a non-empty string, got {value[field]!r}")
    if "tag" not in value:
        raise table.error("steps.tag", "missing; name the token to insert after each step, such as <extra_0>")
    aggregate = value.get("aggregate", "min")
    if aggregate not in get_args(Aggregate):
        raise table.error("steps.aggregate", f"must be one of {', '.join(get_args(Aggregate))}, got {aggregate!r}")
    return Steps(value["tag"], value.get("separator", "\n\n"), aggregate)
