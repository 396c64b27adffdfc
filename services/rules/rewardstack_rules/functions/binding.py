"""Bind the parameters of a reward function by name.

Trainers pass arguments in different orders and under different names. This module knows the argument names of all
supported trainers, so a parameter's name, never its position, selects its value: the response, the reference, the
prompt, another argument of the trainer, or else the field of `extra_info` with that name.
"""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rewardstack.core.messages import WHOLE_RESPONSE, Chat, Message, is_conversation, last_text, response_text, to_chat
from rewardstack.core.misspellings import SUGGESTION_SIMILARITY, find_closest
from rewardstack.core.wire import is_server_field
from rewardstack.errors import RouteError
from rewardstack_rules.functions.call import ABSENT, Call, Getter, Parameter, Sample, code_folder, reads_messages
from rewardstack_rules.functions.outcome import Outcome
from rewardstack_rules.functions.unavailable import Unavailable, slime_sample

Evaluate = Callable[[str, Sequence[str], Mapping[str, Any]], Outcome]
"""A bound reward function: a function of a response, its references and `extra_info` that returns an outcome."""

RESPONSE = frozenset({"response", "solution_str", "completion", "predict_str", "model_output", "raw_response"})
RESPONSE_LISTS = frozenset({"responses", "solution_strs", "completions", "queries"})
"""Names for a list of responses. A function with both `queries` and `prompts` is written for OpenRLHF. It expects that
each query is the prompt and the response as one text (see `_query`)."""
WITH_TURNS = frozenset({"completion", "completions", "queries", "messages", "raw_response"})
"""Names of parameters that get all turns of the response."""
REFERENCE = ("reference", "ground_truth", "golden_response", "solution", "answer", "label")
REFERENCE_LISTS = tuple(f"{name}s" for name in REFERENCE)
PROMPT_FIELDS = ("prompt", "problem", "question")
"""Fields of `extra_info` that may hold the prompt. The first one present is used."""
SLIME = frozenset({"sample", "samples", "sample_or_samples"})
"""Names for slime's `Sample`, in a function without a parameter for the response."""
UNAVAILABLE = frozenset({"completion_ids", "prompt_ids", "trainer_state"})
"""Arguments of TRL and AReaL that a reward server does not have, unless `extra_info` has a field of that name."""
LOGGERS = frozenset({"log_extra", "log_metric"})
"""Parameters to which TRL passes logging functions. The reward server passes functions that do nothing."""
PLURAL = frozenset({*RESPONSE_LISTS, *REFERENCE_LISTS, "prompts", "data_sources", "extra_infos", "samples"})
"""Names of parameters that get a list with one value; `_Binder._is_list` has the exceptions."""
MEANINGS = (
    RESPONSE | RESPONSE_LISTS,
    frozenset({*REFERENCE, *REFERENCE_LISTS}),
    frozenset({"prompt", "prompts"}),
    frozenset({"data_source", "data_sources"}),
    frozenset({"extra_info", "extra_infos"}),
)
"""Groups of parameter names, singular and plural, for the same kind of value."""
MAX_TYPO_DISTANCE = 2
"""Maximum number of missing and extra letters in a typo. A replaced letter counts as two: one missing, one extra.

So `collection`, with two missing and two extra letters, is not a typo of `completion`.
"""
SignatureParameter = inspect.Parameter
VARIADIC = (SignatureParameter.VAR_POSITIONAL, SignatureParameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A reward function whose parameters are bound.

    Args:
        evaluate: scores a response.
        needs_reference: whether a sample without a reference is unscored.
        fields: the fields of `extra_info` that the function reads. `*` means all fields except those that only the
            server's settings may set (`wire.is_server_field`); if some of these are parameters, they are listed after
            `*`. `data_source` is listed if the function reads it, although it usually is a field of the sample itself.
        field_parameters: the fields of `extra_info` that are parameters of the function.
    """

    evaluate: Evaluate
    needs_reference: bool
    fields: tuple[str, ...]
    field_parameters: tuple[str, ...]


def bind(function: Callable[..., Any], title: str = "") -> BoundFunction:
    """Bind the parameters of a reward function by their names.

    Args:
        function: any callable with a signature, `async` ones included.
        title: name of the function for messages about a missing field; empty for a built-in function.

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
        self._names = names = {parameter.name for parameter in self._signature if parameter.kind not in VARIADIC}
        self._has_kwargs = any(parameter.kind is SignatureParameter.VAR_KEYWORD for parameter in self._signature)
        self._is_slime = bool(names & SLIME) and not names & (RESPONSE | RESPONSE_LISTS)
        # `completions` is one text in AReaL and a list in TRL. Only AReaL has `prompt_ids`.
        self._is_areal = {"completions", "prompt_ids"} <= names
        self._is_batch = bool(names & RESPONSE_LISTS) and not self._is_areal
        # TRL and ms-swift pass every column of the data set as a list.
        self._is_trl = "completions" in names and self._is_batch
        # verl passes everything by keyword, so **kwargs gets the arguments that have no parameter.
        self._is_verl = "solution_str" in names and self._has_kwargs
        self._reads_turns = bool(names & WITH_TURNS)
        self._reads_source = bool(names & {"data_source", "data_sources"}) or self._is_verl

    def bind(self, title: str) -> BoundFunction:
        """Return the bound function; `title` and errors are those of the function `bind`."""
        self._reject_typos()
        self._require_response()
        named = [parameter for parameter in self._signature if parameter.kind not in VARIADIC]
        fields = [parameter.name for parameter in named if self._is_field(parameter.name)]
        call = Call(
            self._function,
            [self._bind_parameter(parameter) for parameter in named],
            self._kwargs_getter() if self._has_kwargs else None,
            self._required(named),
            _forms(self._function) if self._names & {"completion", "completions"} else (False,),
            code_folder(self._function),
            title,
            self._reads_turns,
        )
        references = [parameter for parameter in named if parameter.name in (*REFERENCE, *REFERENCE_LISTS)]
        # verl and TRL pass the reference to every function, so the function may read it from **kwargs.
        sees_reference = references or self._is_slime or (self._has_kwargs and self._trainer_keywords())
        return BoundFunction(
            # A function that does not get the reference needs only one call for all references.
            call.evaluate if sees_reference else call.evaluate_once,
            any(parameter.default is SignatureParameter.empty for parameter in references),
            self._used_fields(fields),
            tuple(fields),
        )

    def _parameters(self) -> list[SignatureParameter]:
        """Return the parameters, without those that a `functools.partial` has set by keyword."""
        try:
            parameters = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):
            raise RouteError("its signature cannot be read; call it from a function with named parameters") from None
        return [parameter for parameter in parameters if parameter.name not in self._fixed]

    def _reject_typos(self) -> None:
        """Raise RouteError if the name of a parameter is most likely a typo and not a field of `extra_info`."""
        bound = [name for meaning in MEANINGS if self._names & meaning for name in meaning]
        for name in sorted(self._names):
            meant = _typo_of(name, bound) if self._is_field(name) else ""
            if meant:
                raise RouteError(
                    f"parameter {name!r} would get the field {name!r} of extra_info; did you mean {meant!r}? rename "
                    f"it; if you mean the field, add a parameter `extra_info` and read extra_info[{name!r}]"
                )

    def _require_response(self) -> None:
        if self._names & (RESPONSE | RESPONSE_LISTS) or self._is_slime:
            return
        signature = ", ".join(str(parameter) for parameter in self._signature) or "none"
        hidden = any(parameter.kind is SignatureParameter.VAR_POSITIONAL for parameter in self._signature)
        raise RouteError(
            f"no parameter gets the response (parameters: {signature}); name the parameter for it `response`, "
            "`solution_str`, `completion`, `completions` or `queries`"
            + ("; if a decorator hides the parameters, use functools.wraps in it" if hidden else "")
        )

    def _bind_parameter(self, parameter: SignatureParameter) -> Parameter:
        name = parameter.name
        by_position = parameter.kind is SignatureParameter.POSITIONAL_ONLY
        if by_position and self._is_field(name):
            raise RouteError(
                f"parameter {name!r} is positional-only, so a field of extra_info cannot be passed to it by name; "
                "remove the `/` after it; or, if it is to get another value, name it after that value, such as "
                "`response` or `reference`"
            )
        if parameter.default is SignatureParameter.empty:
            default = Unavailable(name) if name in UNAVAILABLE else {"prompts": [""], "prompt": ""}.get(name)
        else:
            default = parameter.default if by_position else ABSENT
        return Parameter(name, self._getter(name), default, self._is_list(name), by_position)

    def _is_field(self, name: str) -> bool:
        """Return whether a parameter gets a field of `extra_info` because its name has no other meaning."""
        if name in SLIME or name == "args":
            return not self._is_slime
        return name not in GETTERS and name not in UNAVAILABLE

    def _is_list(self, name: str) -> bool:
        """Return whether a parameter gets its value in a list with one element."""
        if name in PLURAL and not self._is_field(name):
            return not (self._is_areal and name == "completions")
        if name in LOGGERS or name == "trainer_state":
            return False
        return self._is_trl or (self._is_batch and name in GETTERS)

    def _getter(self, name: str) -> Getter:
        if self._is_field(name) or name in UNAVAILABLE:
            return partial(_field, name)
        if name in ("extra_info", "extra_infos") and self._reads_source:
            return _extra_info_without_source
        if name == "prompts" and "queries" in self._names:
            return _openrlhf_prompt
        if name == "queries":
            return _query if "prompts" in self._names else _raw_text
        return SLIME_GETTERS.get(name) or GETTERS[name]

    def _required(self, named: Sequence[SignatureParameter]) -> dict[str, Sequence[str]]:
        """Return the required parameters, each with the fields of `extra_info` that can provide its value."""
        empty = [parameter.name for parameter in named if parameter.default is SignatureParameter.empty]
        required: dict[str, Sequence[str]] = {name: (name,) for name in empty if self._is_field(name)}
        if "prompt" in empty and not self._is_areal:
            required["prompt"] = PROMPT_FIELDS
        return required

    def _used_fields(self, named: Sequence[str]) -> tuple[str, ...]:
        """Return the fields of `extra_info` that the function reads; see `BoundFunction.fields`.

        Args:
            named: the fields that are parameters of the function.
        """
        sources = [*(["data_source"] if self._reads_source else ()), *([WHOLE_RESPONSE] if self._reads_turns else ())]
        if self._has_kwargs or self._is_slime or self._names & {"extra_info", "extra_infos"}:
            return ("*", *filter(is_server_field, named), *sources)
        prompts: Sequence[str] = ()
        if self._names & {"prompt", "prompts"}:
            prompts = PROMPT_FIELDS[:1] if "queries" in self._names else PROMPT_FIELDS
        if "messages" in self._names:
            prompts = ("messages", *PROMPT_FIELDS)
        return tuple(dict.fromkeys((*named, *prompts, *sources, *sorted(self._names & UNAVAILABLE))))

    def _trainer_keywords(self) -> dict[str, Getter]:
        """Return getters for the values of `**kwargs` that are not fields of `extra_info`.

        For verl's functions, these are verl's own arguments. For TRL's functions, they are `prompts` and, if no
        parameter gets the reference, also the reference under its singular names. Other trainers' functions have none.
        """
        if self._is_verl:
            keywords: Sequence[str] = ("data_source", "ground_truth", "extra_info")
        elif self._is_trl:
            keywords = ("prompts",) if self._names & {*REFERENCE, *REFERENCE_LISTS} else ("prompts", *REFERENCE)
        else:
            return {}
        return {name: self._getter(name) for name in keywords if name not in self._names}

    def _kwargs_getter(self) -> Callable[[Sample], dict[str, Any]]:
        """Return the function that collects the values of `**kwargs`."""
        return partial(_collect_kwargs, self._fixed | self._names, self._trainer_keywords(), self._is_trl)


def _typo_of(name: str, bound: Collection[str]) -> str:
    """Return the name that the user most likely meant by a misspelled parameter; empty if it is not a typo.

    Args:
        name: the parameter's name.
        bound: names to exclude, because another parameter already gets their value.
    """
    known = sorted(frozenset().union(*MEANINGS).difference(bound))
    if any(word in name.lower() for word in known):  # a name that contains a known name, such as answer_id, is no typo
        return ""
    meant = find_closest(name, known, SUGGESTION_SIMILARITY)
    letters, others = (Counter(word.lower().replace("_", "")) for word in (name, meant))
    is_typo = meant[:1] == name[:1].lower() and ((letters - others) + (others - letters)).total() <= MAX_TYPO_DISTANCE
    return meant if is_typo else ""


def _forms(function: Callable[..., Any]) -> tuple[bool, bool]:
    """Return `Call.forms`: True and False if the function seems to read chat messages, else False and True."""
    first = reads_messages(function)
    return first, not first


def _completion(sample: Sample) -> Any:
    """Return all turns: as chat messages, or as the text that the trainer sent."""
    if sample.messages:
        return [{**turn} for turn in sample.turns]
    return _raw_text(sample) if len(sample.turns) > 1 else sample.response


def _raw(sample: Sample) -> Any:
    return [*sample.raw] if isinstance(sample.raw, list) else sample.raw


def _raw_text(sample: Sample) -> str:
    """Return the response as the trainer sent it, with all turns and tokens; of chat messages, the last reply."""
    return sample.raw if isinstance(sample.raw, str) else sample.response


def _messages(sample: Sample) -> list[Message]:
    """Return the task and all turns of the response as chat messages; `extra_info.messages` may already have them."""
    given = sample.extra.get("messages")
    prompt = _prompt(sample._replace(messages=True)) if given is None else given
    task = to_chat(prompt) if is_conversation(prompt) else Chat()
    is_complete = bool(task) and task[-1]["role"] == "assistant" and response_text(task) == sample.response
    turns = [] if is_complete else sample.turns
    return [{**turn} for turn in (turns if turns[: len(task)] == task else [*task, *turns])]


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
    """Return the prompt and the response as one text, from which OpenRLHF's functions cut off the prompt."""
    return _openrlhf_prompt(sample) + _raw_text(sample)


def _data_source(sample: Sample) -> Any:
    return sample.extra.get("data_source", "")


def _extra_info(sample: Sample) -> dict[str, Any]:
    return dict(sample.extra)


def _extra_info_without_source(sample: Sample) -> dict[str, Any]:
    """Return `extra_info` without the `data_source`, which is passed as a separate argument."""
    return {name: value for name, value in sample.extra.items() if name != "data_source"}


def _field(name: str, sample: Sample) -> Any:
    return sample.extra.get(name, ABSENT)


def _logger(sample: Sample) -> Callable[..., None]:
    return _log_nothing


def _log_nothing(*_: Any, **__: Any) -> None:
    """Ignore a call of TRL's `log_extra` or `log_metric`."""


def _slime_args(sample: Sample) -> Namespace:
    """Return the fields of `extra_info` as attributes. They replace slime's `args`, the trainer's arguments."""
    args = Namespace()
    vars(args).update(sample.extra)
    return args


def _slime_sample(sample: Sample) -> Any:
    """Return the sample as slime's `Sample`, or as a replacement if this process has not imported slime."""
    prompt = _prompt(sample)
    return slime_sample(
        {
            "prompt": "" if prompt is ABSENT else prompt,
            "response": sample.response,
            "label": sample.reference,
            "metadata": dict(sample.extra),
        }
    )


def _collect_kwargs(
    names: frozenset[str], keywords: Mapping[str, Getter], as_lists: bool, sample: Sample
) -> dict[str, Any]:
    """Return the values for `**kwargs`: the trainer's arguments and the fields of `extra_info` without a parameter.

    Args:
        names: the fields of `extra_info` to leave out: those with the name of a parameter, or of an argument that a
            `functools.partial` has set.
        keywords: getters for the trainer's arguments, by name.
        as_lists: whether each value is passed as a list with one element.
        sample: the sample to score.
    """
    values = {name: get(sample) for name, get in keywords.items()}
    values |= {name: value for name, value in sample.extra.items() if name not in names}
    return {name: [value] if as_lists else value for name, value in values.items() if value is not ABSENT}


GETTERS: Mapping[str, Getter] = {
    **dict.fromkeys((*RESPONSE, *RESPONSE_LISTS), _response),
    **dict.fromkeys(("completion", "completions"), _completion),
    "raw_response": _raw,
    "messages": _messages,
    **dict.fromkeys((*REFERENCE, *REFERENCE_LISTS), _reference),
    **dict.fromkeys(("prompt", "prompts"), _prompt),
    **dict.fromkeys(("data_source", "data_sources"), _data_source),
    **dict.fromkeys(("extra_info", "extra_infos"), _extra_info),
    **dict.fromkeys(LOGGERS, _logger),
}
SLIME_GETTERS: Mapping[str, Getter] = {**dict.fromkeys(SLIME, _slime_sample), "args": _slime_args}
