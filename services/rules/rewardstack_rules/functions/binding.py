"""Binds the parameters of a reward function by name.

Trainers pass arguments in different orders and with different names. Here only the name of a parameter decides which
value it gets: the response, the reference, the prompt, or a field of `extra_info`.
"""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rewardstack.core.messages import last_text
from rewardstack.core.misspellings import SUGGESTION_SIMILARITY, find_closest
from rewardstack.errors import RouteError
from rewardstack_rules.functions.calling import ABSENT, Call, Get, Parameter, Sample, folder_of, reads_messages
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.unavailable import Unavailable, slime_sample

RewardFunction = Callable[[str, Sequence[str], Mapping[str, Any]], Outcome]
"""A bound reward function: takes response, references and `extra_info`, and returns an outcome."""

RESPONSE = frozenset({"response", "solution_str", "completion", "predict_str", "model_output"})
RESPONSES = frozenset({"responses", "solution_strs", "completions", "queries"})
REFERENCE = ("reference", "ground_truth", "golden_response", "solution", "answer", "label")
REFERENCES = tuple(f"{name}s" for name in REFERENCE)
PROMPT_FIELDS = ("prompt", "problem", "question")
"""Fields of `extra_info` that may hold the prompt; the first one present counts."""
SLIME = frozenset({"sample", "samples", "sample_or_samples"})
UNKNOWN = frozenset({"completion_ids", "prompt_ids", "trainer_state"})
"""Arguments of TRL and AReaL that a reward server does not have, unless `extra_info` has a field of that name."""
LOGGERS = frozenset({"log_extra", "log_metric"})
"""Parameters to which TRL passes logging functions; here these functions do nothing."""
PLURAL = frozenset({*RESPONSES, *REFERENCES, "prompts", "data_sources", "extra_infos", "samples"})
"""Parameters that get a list with one value."""
MEANINGS = (
    RESPONSE | RESPONSES,
    frozenset({*REFERENCE, *REFERENCES}),
    frozenset({"prompt", "prompts"}),
    frozenset({"data_source", "data_sources"}),
    frozenset({"extra_info", "extra_infos"}),
)
"""Names of parameters, in groups that get the same value."""
MOST_OTHER_LETTERS = 2
"""Maximum difference of a typo: one letter is replaced, or up to two are missing or extra.

`collection` is no typo of `completion`.
"""
KINDS = inspect.Parameter
VARIADIC = (KINDS.VAR_POSITIONAL, KINDS.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A reward function whose parameters are bound.

    Args:
        evaluate: the function, which scores a response.
        needs_reference: whether a sample without a reference is unscored.
        fields: the fields of `extra_info` that the function reads; `("*",)` for all.
        named: the fields of `extra_info` that are parameters of the function.
    """

    evaluate: RewardFunction
    needs_reference: bool
    fields: tuple[str, ...]
    named: tuple[str, ...]


def bind(function: Callable[..., Any], title: str = "") -> BoundFunction:
    """Bind the parameters of a reward function by their names.

    Args:
        function: any callable with a signature, `async` ones included.
        title: name of the function in reasons about a missing field; empty for a built-in function.

    Raises:
        RouteError: a parameter cannot be bound, or no parameter gets the response; the message has a remedy.
    """
    return _Binder(function).bind(title)


class _Binder:
    """Binds one reward function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._fixed = frozenset(function.keywords) if isinstance(function, partial) else frozenset()
        self._signature = self._parameters()
        self._names = names = {one.name for one in self._signature if one.kind not in VARIADIC}
        self._takes_all = any(one.kind is KINDS.VAR_KEYWORD for one in self._signature)
        self._is_slime = bool(names & SLIME) and not names & (RESPONSE | RESPONSES)
        # AReaL's `completions` is one text, TRL's a list; `prompt_ids` is AReaL's alone.
        self._is_areal = {"completions", "prompt_ids"} <= names
        self._is_batch = bool(names & RESPONSES) and not self._is_areal
        # TRL and ms-swift pass every column of the data set as a list.
        self._is_trl = "completions" in names and self._is_batch
        # verl passes everything by keyword, so **kwargs gets the arguments without a parameter of their own.
        self._is_verl = "solution_str" in names and self._takes_all
        self._reads_source = bool(names & {"data_source", "data_sources"}) or self._is_verl

    def bind(self, title: str) -> BoundFunction:
        """Return the bound function; for the argument and errors, see the function `bind`."""
        self._reject_typos()
        self._require_response()
        named = [one for one in self._signature if one.kind not in VARIADIC]
        fields = [one.name for one in named if self._is_field(one.name)]
        call = Call(
            self._function,
            [self._bind(one) for one in named],
            self._rest() if self._takes_all else None,
            self._required(named),
            _forms(self._function) if self._names & {"completion", "completions"} else (False,),
            folder_of(self._function),
            title,
        )
        references = [one for one in named if one.name in (*REFERENCE, *REFERENCES)]
        # verl and TRL pass the reference to every function, so it may be read out of **kwargs.
        sees_reference = references or self._is_slime or (self._takes_all and self._trainer_keywords())
        return BoundFunction(
            call.evaluate if sees_reference else call.evaluate_once,
            any(one.default is KINDS.empty for one in references),
            self._fields(fields),
            tuple(fields),
        )

    def _parameters(self) -> list[inspect.Parameter]:
        """Return the parameters, except those that a `functools.partial` sets by keyword."""
        try:
            parameters = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):
            raise RouteError("its signature cannot be read; call it from a function with named parameters") from None
        return [one for one in parameters if one.name not in self._fixed]

    def _reject_typos(self) -> None:
        """Raise RouteError if a parameter's name is most likely a typo, not the name of a field of `extra_info`."""
        bound = [name for meaning in MEANINGS if self._names & meaning for name in meaning]
        for name in sorted(self._names):
            meant = _typo_of(name, bound) if self._is_field(name) else ""
            if meant:
                raise RouteError(
                    f"parameter {name!r} would get the field {name!r} of extra_info; did you mean {meant!r}? rename "
                    f"it, or read a field of that name as extra_info[{name!r}] by a parameter `extra_info`"
                )

    def _require_response(self) -> None:
        if self._names & (RESPONSE | RESPONSES) or self._is_slime:
            return
        has = ", ".join(str(one) for one in self._signature) or "no parameters"
        hidden = any(one.kind is KINDS.VAR_POSITIONAL for one in self._signature)
        raise RouteError(
            f"no parameter gets the response, it has ({has}); name the parameter for the response `response`, "
            "`solution_str`, `completion`, `completions` or `queries`"
            + ("; if a decorator hides the parameters, use functools.wraps in it" if hidden else "")
        )

    def _bind(self, parameter: inspect.Parameter) -> Parameter:
        name = parameter.name
        by_position = parameter.kind is KINDS.POSITIONAL_ONLY
        if by_position and self._is_field(name):
            raise RouteError(
                f"parameter {name!r} is positional-only, so a field of extra_info cannot be passed to it by name; "
                "remove the `/` behind it, or rename it to what it is to get, such as `response` or `reference`"
            )
        if parameter.default is KINDS.empty:
            default = Unavailable(name) if name in UNKNOWN else {"prompts": [""], "prompt": ""}.get(name)
        else:
            default = parameter.default if by_position else ABSENT
        return Parameter(name, self._getter(name), default, self._is_list(name), by_position)

    def _is_field(self, name: str) -> bool:
        """Return whether a parameter gets the field of `extra_info` with its name."""
        if name in SLIME or name == "args":
            return not self._is_slime
        return name not in GETTERS and name not in UNKNOWN

    def _is_list(self, name: str) -> bool:
        if name in PLURAL and not self._is_field(name):
            return not (self._is_areal and name == "completions")
        if name in LOGGERS or name == "trainer_state":
            return False
        return self._is_trl or (self._is_batch and name in GETTERS)

    def _getter(self, name: str) -> Get:
        if self._is_field(name) or name in UNKNOWN:
            return partial(_field, name)
        if name in ("extra_info", "extra_infos") and self._reads_source:
            return _extra_info_alone
        if name == "prompts" and "queries" in self._names:
            return _openrlhf_prompt
        if name == "queries" and "prompts" in self._names:
            return _query
        return SLIME_GETTERS.get(name) or GETTERS[name]

    def _required(self, named: Sequence[inspect.Parameter]) -> dict[str, Sequence[str]]:
        """Return the parameters that need a field of `extra_info`, each with the fields that can provide it."""
        empty = [one.name for one in named if one.default is KINDS.empty]
        required: dict[str, Sequence[str]] = {name: (name,) for name in empty if self._is_field(name)}
        if "prompt" in empty and not self._is_areal:
            required["prompt"] = PROMPT_FIELDS
        return required

    def _fields(self, named: Sequence[str]) -> tuple[str, ...]:
        sources = ["data_source"] if self._reads_source else []
        if self._takes_all or self._is_slime or self._names & {"extra_info", "extra_infos"}:
            return ("*", *sources)
        prompts: Sequence[str] = ()
        if self._names & {"prompt", "prompts"}:
            prompts = PROMPT_FIELDS[:1] if "queries" in self._names else PROMPT_FIELDS
        return tuple(dict.fromkeys((*named, *prompts, *sources, *sorted(self._names & UNKNOWN))))

    def _trainer_keywords(self) -> dict[str, Get]:
        """Return getters for what verl or TRL passes by keyword besides fields; empty for other trainers' functions."""
        if self._is_verl:
            keywords: Sequence[str] = ("data_source", "ground_truth", "extra_info")
        elif self._is_trl:
            keywords = ("prompts",) if self._names & {*REFERENCE, *REFERENCES} else ("prompts", *REFERENCE)
        else:
            return {}
        return {name: self._getter(name) for name in keywords if name not in self._names}

    def _rest(self) -> Callable[[Sample], dict[str, Any]]:
        """Return the function that collects the values of `**kwargs`."""
        return partial(_rest_of, self._fixed | self._names, self._trainer_keywords(), self._is_trl)


def _typo_of(name: str, bound: Collection[str]) -> str:
    """Return the name that a parameter's name is most likely a typo of; empty if there is none.

    Args:
        name: the parameter's name.
        bound: names that cannot be meant, because another parameter already gets their value.
    """
    known = sorted(frozenset().union(*MEANINGS).difference(bound))
    if any(one in name.lower() for one in known):  # answer_id, preference, labeled
        return ""
    meant = find_closest(name, known, SUGGESTION_SIMILARITY)
    letters, others = (Counter(one.lower().replace("_", "")) for one in (name, meant))
    is_typo = meant[:1] == name[:1].lower() and ((letters - others) + (others - letters)).total() <= MOST_OTHER_LETTERS
    return meant if is_typo else ""


def _forms(function: Callable[..., Any]) -> tuple[bool, bool]:
    first = reads_messages(function)
    return first, not first


def _completion(sample: Sample) -> Any:
    return [{"role": "assistant", "content": sample.response}] if sample.messages else sample.response


def _response(sample: Sample) -> str:
    return sample.response


def _reference(sample: Sample) -> Any:
    return ABSENT if sample.reference is None else sample.reference


def _prompt(sample: Sample) -> Any:
    prompt = next((sample.extra[name] for name in PROMPT_FIELDS if sample.extra.get(name) is not None), ABSENT)
    return [{"role": "user", "content": prompt}] if sample.messages and isinstance(prompt, str) else prompt


def _openrlhf_prompt(sample: Sample) -> str:
    prompt = sample.extra.get("prompt")
    return prompt if isinstance(prompt, str) else last_text(prompt, "user") or ""


def _query(sample: Sample) -> str:
    """Return the prompt and the response as one text: OpenRLHF's functions remove the prompt by its length."""
    return _openrlhf_prompt(sample) + sample.response


def _data_source(sample: Sample) -> Any:
    return sample.extra.get("data_source", "")


def _extra_info(sample: Sample) -> dict[str, Any]:
    return dict(sample.extra)


def _extra_info_alone(sample: Sample) -> dict[str, Any]:
    """Return `extra_info` without the `data_source`, which the function gets separately."""
    return {name: value for name, value in sample.extra.items() if name != "data_source"}


def _field(name: str, sample: Sample) -> Any:
    return sample.extra.get(name, ABSENT)


def _logger(sample: Sample) -> Callable[..., None]:
    return _log_nothing


def _log_nothing(*_: Any, **__: Any) -> None:
    """Ignore a call of TRL's `log_extra` or `log_metric`."""


def _slime_args(sample: Sample) -> Namespace:
    args = Namespace()
    vars(args).update(sample.extra)
    return args


def _slime_sample(sample: Sample) -> Any:
    """Return slime's own `Sample` if this process has imported it, else an object with the same attributes."""
    prompt = _prompt(sample)
    return slime_sample(
        {
            "prompt": "" if prompt is ABSENT else prompt,
            "response": sample.response,
            "label": sample.reference,
            "metadata": dict(sample.extra),
        }
    )


def _rest_of(names: frozenset[str], keywords: Mapping[str, Get], as_lists: bool, sample: Sample) -> dict[str, Any]:
    """Return the values for `**kwargs`: fields without a parameter of their own, and what the trainer adds.

    Args:
        names: names of the parameters.
        keywords: getters for what the trainer adds, by name.
        as_lists: whether each value is passed as a list of one.
        sample: the sample to score.
    """
    rest = {name: get(sample) for name, get in keywords.items()}
    rest |= {name: value for name, value in sample.extra.items() if name not in names}
    return {name: [value] if as_lists else value for name, value in rest.items() if value is not ABSENT}


GETTERS: Mapping[str, Get] = {
    **dict.fromkeys((*RESPONSE, *RESPONSES), _response),
    **dict.fromkeys(("completion", "completions"), _completion),
    **dict.fromkeys((*REFERENCE, *REFERENCES), _reference),
    **dict.fromkeys(("prompt", "prompts"), _prompt),
    **dict.fromkeys(("data_source", "data_sources"), _data_source),
    **dict.fromkeys(("extra_info", "extra_infos"), _extra_info),
    **dict.fromkeys(LOGGERS, _logger),
}
SLIME_GETTERS: Mapping[str, Get] = {**dict.fromkeys(SLIME, _slime_sample), "args": _slime_args}
