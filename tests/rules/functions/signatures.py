"""Reward functions with the signatures of the trainers and of their users: each returns what it got, as a JSON text."""

# mypy: disallow-untyped-defs=False

from __future__ import annotations

import asyncio
import functools
import json
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from rewardstack_rules import reward_function


def got(**values: Any) -> dict[str, Any]:
    """Return a score whose reason is what the function got."""
    values = {name: vars(value) if isinstance(value, Namespace) else value for name, value in values.items()}
    return {"score": 1.0, "reason": json.dumps(values, default=lambda value: type(value).__name__)}


def passing_on(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate as most decorators do."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@reward_function
def own(response, reference):
    return got(response=response, reference=reference)


@reward_function
def swapped(reference, response):
    return got(response=response, reference=reference)


@reward_function
def alone(response):
    return got(response=response)


@reward_function
def keyword_only(*, response, reference=None):
    return got(response=response, reference=reference)


@reward_function
def positional_only(reference, response="", /):
    return got(response=response, reference=reference)


@reward_function
def default_reference(response, reference="a default"):
    return got(reference=reference)


@reward_function
def default_field(response, tag="answer"):
    return got(tag=tag)


@reward_function
def required_field(response, reference, unit):
    return got(unit=unit)


@reward_function
def rest(response, reference, tag="answer", **others):
    return got(tag=tag, others=others)


@reward_function
def reserved(response, image_path="none", **others):
    return got(image_path=image_path, others=others)


@reward_function
def two_names(response, solution_str, answer, ground_truth):
    return got(response=response, solution_str=solution_str, answer=answer, ground_truth=ground_truth)


@reward_function
def with_prompt(response, prompt):
    return got(prompt=prompt)


@reward_function
def annotated(response: str, reference: str | None = None, *args: int, digits: int = 2) -> dict[str, Any]:
    return got(reference=reference, args=args, digits=digits)


@reward_function
def verl(data_source, solution_str, ground_truth, extra_info=None):
    return got(data_source=data_source, solution_str=solution_str, ground_truth=ground_truth, extra_info=extra_info)


@reward_function
def verl_defaults(data_source, solution_str, ground_truth=None, extra_info=None):
    return got(data_source=data_source, solution_str=solution_str, ground_truth=ground_truth)


@reward_function
def verl_keywords(solution_str, **kwargs):
    return got(solution_str=solution_str, kwargs=kwargs)


@reward_function
def verl_grader(solution_str, ground_truth, method="strict", format_score=0.0):
    return got(ground_truth=ground_truth, method=method, format_score=format_score)


@reward_function
def verl_batch(data_sources, solution_strs, ground_truths, extra_infos, scale=1.0):
    return [got(sources=data_sources, texts=solution_strs, truths=ground_truths, infos=extra_infos, scale=scale)]


@reward_function
async def verl_async(data_source, solution_str, ground_truth, extra_info, reward_router_address=None):
    await asyncio.sleep(0)
    return got(solution_str=solution_str, ground_truth=ground_truth)


@reward_function
def trl(completions, **kwargs):
    return [got(completions=completions, kwargs=kwargs)]


@reward_function
def trl_columns(prompts, completions, answer, level=None, **kwargs):
    return [got(prompts=prompts, completions=completions, answer=answer, level=level, kwargs=kwargs)]


@reward_function
def trl_all(prompts, completions, completion_ids, trainer_state, log_extra, log_metric, solution):
    log_metric("accuracy", 1.0)
    log_extra("solution", solution)
    return [got(completion_ids=completion_ids, trainer_state=trainer_state, solution=solution)]


@reward_function
def trl_messages(prompts, completions, ground_truth, **kwargs):
    texts = [completion[0]["content"] for completion in completions]
    return [got(question=prompts[0][-1]["content"], texts=texts, ground_truth=ground_truth)]


def _text_of(message):
    return message[-1].get("content", "")


@reward_function
def trl_messages_by_a_helper(completions, **kwargs):
    return [got(texts=[_text_of(completion) for completion in completions])]


@reward_function
def trl_calls(completions, messages, **kwargs):
    calls = [sum(len(message.get("tool_calls") or ()) for message in completion) for completion in completions]
    return [got(calls=calls, completions=completions, messages=messages)]


@reward_function
def all_turns(response, raw_response, messages):
    return got(response=response, raw_response=raw_response, messages=messages)


@reward_function
class SwiftReward:
    """A class, as ms-swift's users write them."""

    def __init__(self, args=None, **kwargs):
        self.calls = 0

    def __call__(self, completions, solution, **kwargs):
        return [got(completions=completions, solution=solution)]


@reward_function
def openrlhf(queries, prompts, labels):
    responses = [query[len(prompt) :] for query, prompt in zip(queries, prompts, strict=True)]
    reason = got(queries=queries, prompts=prompts, labels=labels, responses=responses)["reason"]
    return {"rewards": [1.0], "scores": [0.5], "extra_logs": {"length": [3]}, "reason": reason}


@reward_function
def openrlhf_without_prompts(queries, labels):
    return [got(queries=queries, labels=labels)]


@reward_function
def align_anything(prompts, responses, golden_responses=None):
    return [got(prompts=prompts, responses=responses, golden_responses=golden_responses)]


@reward_function
async def slime(args, sample, **kwargs):
    return got(
        prompt=sample.prompt, response=sample.response, label=sample.label, metadata=sample.metadata, unit=args.unit
    )


@reward_function
async def slime_group(args, samples, **kwargs):
    return [got(response=sample.response, label=sample.label) for sample in samples]


@reward_function
def areal(prompt, completions, prompt_ids, completion_ids, answer, **kwargs):
    return got(prompt=prompt, completions=completions, answer=answer, prompt_ids=prompt_ids)


@reward_function
@passing_on
def decorated(response, reference, unit="m"):
    return got(response=response, reference=reference, unit=unit)


@passing_on
@reward_function
def decorated_above(response, reference):
    return got(response=response, reference=reference)


fixed = reward_function(functools.partial(rest, tag="fixed"))
from_lambda = reward_function(lambda response, reference: got(response=response, reference=reference))


class Weighted:
    """Callable, with a method that is a reward function as well."""

    def __init__(self, weight):
        self.weight = weight

    async def __call__(self, response, reference, unit=None):
        return got(weight=self.weight, response=response, unit=unit)

    def method(self, response, reference):
        return got(weight=self.weight, reference=reference)


weighted = reward_function(Weighted(2))
method = reward_function(Weighted(3).method)
