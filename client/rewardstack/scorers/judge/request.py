"""The body of a chat request, most of which samples have in common."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from rewardstack.scorers.judge.options import Options
from rewardstack.scorers.judge.templates import system_message

CHAT = "/v1/chat/completions"
DECIMALS = "with three decimals"


class Frame(NamedTuple):
    """A request's JSON around the user's message, as bytes."""

    head: bytes
    tail: bytes

    def body(self, user: str) -> bytes:
        """The whole request.

        Args:
            user: the user's message.
        """
        return b"".join((self.head, json.dumps(user).encode(), self.tail))


@lru_cache(maxsize=512)
def frame(options: Options, model: str, vote: int = 0, label_ids: tuple[int, ...] = (), budget: bool = True) -> Frame:
    """The frame of requests with these options.

    `enable_thinking` is always said: a reasoning parser with a template that is silent about it waits for the end of a
    reasoning that never began, and drops the structure of the reply.

    Args:
        options: of the samples.
        model: that judges.
        vote: which of several verdicts on one sample is asked for; moves the seed.
        label_ids: tokens whose probabilities are the verdict; none for a verdict in words.
        budget: whether the server is told how many tokens the reasoning may take.
    """
    sampling = _label_sampling(label_ids) if label_ids else _sampling(options, vote, budget)
    rest = {**sampling, "chat_template_kwargs": {"enable_thinking": options.enable_thinking}, "stream": False}
    messages = [{"role": "system", "content": system_message(_closing(options))}, {"role": "user", "content": ""}]
    text = json.dumps({"model": model, "messages": messages, **rest})
    head, _, tail = text.partition('"role": "user", "content": ""')
    return Frame(f'{head}"role": "user", "content": '.encode(), tail.encode())


def _sampling(options: Options, vote: int, budget: bool) -> dict[str, Any]:
    sampling: dict[str, Any] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        "max_tokens": options.max_new_tokens,
    }
    if options.seed is not None:
        sampling["seed"] = options.seed + vote
    if options.enable_thinking:
        sampling["max_tokens"] += options.thinking_budget
        if budget:
            sampling["thinking_token_budget"] = options.thinking_budget
    elif options.template.form is not None:
        sampling["structured_outputs"] = {"regex": options.template.form}
    return sampling


def _label_sampling(label_ids: tuple[int, ...]) -> dict[str, Any]:
    return {
        "temperature": 0.0,
        "max_tokens": 1,
        "logprobs": True,
        "logprob_token_ids": label_ids,
        "return_tokens_as_token_ids": True,
    }


def _closing(options: Options) -> str:
    if options.labels:
        labels = ", ".join(name for name, _ in options.labels)
        return f"Your whole reply is one of these labels and nothing else: {labels}"
    scale = f"from 0 to {options.template.top:g}"
    number = f"{scale}, {DECIMALS}" if options.template.top == 1 else scale
    return f"The last line of your reply has this form, with nothing after it:\nREWARD: <number {number}>"
