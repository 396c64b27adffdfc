"""The two shapes that a reward function may have, read from its signature and brought to one.

Per item: `f(response, reference, **fields of extra_info) -> float | dict with "score" and parts`.
Align-Anything's batch: `f(prompts, responses, golden_responses=None) -> list[float]`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from rewardstack.errors import RequestError, RouteError
from rewardstack_rules.functions.outcome import Outcome, Unscored

RewardFunction = Callable[[str, Sequence[str], Mapping[str, Any]], Outcome]
"""A reward function in the one shape: (response, references, extra_info) to an outcome."""

EVERY_FIELD = ("*",)
KINDS = inspect.Parameter
SIGNATURES = "(response, reference, ...) for one sample, or (prompts, responses, golden_responses=None) for a batch"


@dataclass(frozen=True, slots=True)
class Shape:
    """A reward function as its signature describes it.

    Args:
        evaluate: the function, brought to the one shape.
        needs_reference: whether it gives no value without one.
        fields: what it reads of `extra_info`; `("*",)` for all of it.
    """

    evaluate: RewardFunction
    needs_reference: bool
    fields: tuple[str, ...]


def read_shape(function: Callable[..., Any]) -> Shape:
    """The shape of `function`.

    Raises:
        RouteError: its signature is neither of the two.
    """
    parameters = list(inspect.signature(function).parameters.values())
    positional = [one for one in parameters if one.kind in (KINDS.POSITIONAL_ONLY, KINDS.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 2:
        raise RouteError(f"{function.__name__}: a reward function takes {SIGNATURES}")
    if positional[0].name in ("prompt", "prompts"):
        return _read_batch(function, parameters)
    return _read_per_item(function, parameters)


def _read_batch(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> Shape:
    if len(parameters) != 3:
        raise RouteError(f"{function.__name__}: a reward function takes {SIGNATURES}")

    def evaluate(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        prompt = extra.get("prompt", "")
        golds = [[reference] for reference in references]
        return best_of([_only(function([prompt], [response], gold)) for gold in golds or (None,)])

    return Shape(evaluate, needs_reference=parameters[2].default is KINDS.empty, fields=("prompt",))


def _only(rewards: Any) -> Outcome:
    if not hasattr(rewards, "__len__") or len(rewards) != 1:
        raise TypeError(f"expected a list of one reward for one response, got {type(rewards).__name__}")
    return as_outcome(rewards[0])


def _read_per_item(function: Callable[..., Any], parameters: list[inspect.Parameter]) -> Shape:
    options = [one for one in parameters[2:] if one.kind in (KINDS.POSITIONAL_OR_KEYWORD, KINDS.KEYWORD_ONLY)]
    required = tuple(one.name for one in options if one.default is KINDS.empty)
    takes_all = any(one.kind is KINDS.VAR_KEYWORD for one in parameters)
    fields = EVERY_FIELD if takes_all else tuple(one.name for one in options)
    taken = frozenset(one.name for one in parameters[:2])
    return Shape(per_item(function, fields, required, taken), parameters[1].default is KINDS.empty, fields)


def per_item(
    function: Callable[..., Any],
    fields: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    taken: frozenset[str] = frozenset(),
) -> RewardFunction:
    """A function of one response and one reference, valued by its best reference.

    Args:
        function: `f(response, reference, **fields)`; `reference` is None where there is none.
        fields: the fields of `extra_info` it is given, where they are there.
        required: those it cannot do without.
        taken: names that are no fields, being those of its first two arguments.
    """

    def evaluate(response: str, references: Sequence[str], extra: Mapping[str, Any]) -> Outcome:
        missing = [name for name in required if name not in extra]
        if missing:
            return Outcome(None, f"extra_info.{missing[0]} is missing", field=f"extra_info.{missing[0]}")
        names = extra.keys() - taken if fields == EVERY_FIELD else extra.keys() & set(fields)
        options = {name: extra[name] for name in names}
        return best_of([_attempt(function, response, reference, options) for reference in references or (None,)])

    return evaluate


def _attempt(function: Callable[..., Any], response: str, reference: str | None, options: dict[str, Any]) -> Outcome:
    try:
        return as_outcome(function(response, reference, **options))
    except Unscored as error:
        return Outcome(None, str(error))
    except RequestError as error:
        return Outcome(None, str(error), field=error.field or "")


def best_of(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome with the highest value; the first where none has one."""
    return max(outcomes, key=lambda outcome: -math.inf if outcome.value is None else outcome.value)


def as_outcome(result: Any) -> Outcome:
    """What a reward function returned, as an outcome.

    Args:
        result: an outcome; a number; a mapping with `score` and further numbers, its parts; None for a sample without a
            score.

    Raises:
        TypeError: it is something else.
        ValueError: a number is not finite.
    """
    if isinstance(result, Outcome):
        return result
    if result is None:
        return Outcome(None, "the reward function gave no score")
    if not isinstance(result, Mapping):
        return Outcome(_number("the score", result))
    if "score" not in result:
        raise TypeError('the returned dict has no "score"')
    parts = {str(name): _number(str(name), value) for name, value in result.items() if name != "score"}
    return Outcome(_number("score", result["score"]), parts=parts or None)


def _number(what: str, value: Any) -> float:
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, Real):
        raise TypeError(f"{what} is not a number but {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{what} is {value}, which is not finite")
    return float(value)
