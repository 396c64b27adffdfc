"""The body of a chat request; the part around the user message is cached, because many samples share it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rewardstack.scorers.judge.dialect import VLLM, Dialect
from rewardstack.scorers.judge.images import content_with
from rewardstack.scorers.judge.options import Options
from rewardstack.scorers.judge.rubric import Answers, closing_of, form_of, schema_of
from rewardstack.scorers.judge.scale import UNIT
from rewardstack.scorers.judge.templates import system_message

CHAT = "/chat/completions"
REMINDER = "\n\nYour reply to this could not be read, so reply once more. "
"""Appended to the user message, before the reply format, when the reply had no verdict and is requested again."""
DECIMALS = "with three decimals"
TOKENS_PER_CRITERION = 8
"""Number of tokens to allow for the answer to a criterion of a rubric."""
MEMBER = re.compile("([A-Z]+): ")
"""The name of a line in a template's regular expression; in a JSON reply, a member has this name."""
ALWAYS = frozenset({"model", "messages", "stream"})
"""Fields of a request that every server supports, so that they are never omitted."""


class Frame(NamedTuple):
    """The JSON of a request around the user message, as bytes.

    Args:
        head: the JSON before the content of the user message.
        tail: the JSON after the content.
        fields: names of the fields that a server may refuse.
    """

    head: bytes
    tail: bytes
    fields: frozenset[str]

    def body(self, user: str, images: Sequence[str] = ()) -> bytes:
        """Return the body of the request.

        Args:
            user: the user message.
            images: URLs of the images in the user message.
        """
        return b"".join((self.head, json.dumps(content_with(images, user)).encode(), self.tail))


@lru_cache(maxsize=512)
def frame(
    options: Options,
    model: str,
    vote: int = 0,
    label_ids: tuple[int, ...] = (),
    dialect: Dialect = VLLM,
    answers: Answers = (),
) -> Frame:
    """Return the frame of requests with these options.

    The field that turns reasoning on or off is always sent if the server supports it. Without this field, the server's
    reasoning parser may wait for the end of reasoning that never started, and not constrain the reply.

    Args:
        options: the options of the samples.
        model: the judge's model.
        vote: index of the vote, which is added to the seed.
        label_ids: token IDs whose probabilities are requested; empty if probabilities are not read by token ID.
        dialect: the dialect of the server.
        answers: the valid answers to each criterion; empty unless the verdict is `rubric`.
    """
    system = system_message(closing(options, dialect, answers), options.system_prompt)
    messages = [{"role": "system", "content": system}] if system.strip() else []
    messages.append({"role": "user", "content": ""})
    request = {"model": model, "messages": messages, **_sampling(options, vote, label_ids, dialect, answers)}
    request |= {**_thinking(options, dialect), "stream": False}
    if options.labels and dialect.begins:
        messages.append({"role": "assistant", "content": _beginning(options)})
        request |= {"add_generation_prompt": False, "continue_final_message": True}
    head, _, tail = json.dumps(request).partition('"role": "user", "content": ""')
    return Frame(f'{head}"role": "user", "content": '.encode(), tail.encode(), frozenset(request) - ALWAYS)


def reminded(user: str, options: Options, dialect: Dialect, answers: Answers = ()) -> str:
    """Return the user message with a reminder of the reply format appended."""
    return f"{user}{REMINDER}{closing(options, dialect, answers)}"


def is_json(options: Options, dialect: Dialect, answers: Answers = ()) -> bool:
    """Return whether the request constrains the reply by a JSON schema."""
    return dialect.form == "json_schema" and _form(options, answers) is not None


def is_deterministic(options: Options, dialect: Dialect) -> bool:
    """Return whether a repeated request gives the same verdict: with labels, temperature 0, or a seed."""
    if options.labels:
        return True
    cold = options.temperature == 0 and "temperature" not in dialect.without
    return cold or (options.seed is not None and "seed" not in dialect.without)


def _form(options: Options, answers: Answers) -> str | None:
    """Return the regular expression that constrains the reply; None for an unconstrained reply."""
    if options.enable_thinking or options.labels:
        return None
    return form_of(answers) if answers else options.template.form


def _sampling(
    options: Options, vote: int, label_ids: tuple[int, ...], dialect: Dialect, answers: Answers
) -> dict[str, Any]:
    if options.labels and dialect.labels == "top":
        top = {"top_logprobs": dialect.top_logprobs}
        sampling: dict[str, Any] = {"temperature": 0.0, dialect.limit: 1, "logprobs": True, **top}
    elif label_ids:
        ids = {"logprob_token_ids": label_ids, "return_tokens_as_token_ids": True}
        sampling = {"temperature": 0.0, dialect.limit: 1, "logprobs": True, **ids}
    else:
        sampling = _text_sampling(options, vote, dialect, answers)
    return {name: value for name, value in sampling.items() if name not in dialect.without}


def most_tokens(options: Options, dialect: Dialect, answers: Answers = ()) -> int:
    """Return the maximum number of tokens of a reply, including reasoning."""
    return 1 if options.labels else int(_text_sampling(options, 0, dialect, answers)[dialect.limit])


def _text_sampling(options: Options, vote: int, dialect: Dialect, answers: Answers) -> dict[str, Any]:
    sampling: dict[str, Any] = {
        "temperature": options.temperature,
        "top_p": options.top_p,
        dialect.limit: max(options.max_new_tokens, TOKENS_PER_CRITERION * len(answers)),
    }
    if options.seed is not None:
        sampling["seed"] = options.seed + vote
    # Models with `max_completion_tokens` always reason, and this limit includes the reasoning.
    if options.enable_thinking or dialect.limit == "max_completion_tokens":
        sampling[dialect.limit] += options.thinking_budget
    if options.enable_thinking and dialect.budget:
        sampling["thinking_token_budget"] = options.thinking_budget
    form = _form(options, answers)
    return sampling if form is None else {**sampling, **_constraint(form, dialect, answers)}


def _constraint(form: str, dialect: Dialect, answers: Answers) -> dict[str, Any]:
    """Return the field that constrains a reply to the regular expression `form`, or to the equivalent JSON schema."""
    if dialect.form == "structured_outputs":
        return {"structured_outputs": {"regex": form}}
    if dialect.form in ("guided_regex", "regex"):
        return {dialect.form: form}
    if dialect.form == "regex_format":
        return {"response_format": {"type": "regex", "value": form}}
    if dialect.form == "json_schema":
        schema = {"name": "verdict", "strict": True, "schema": schema_of(answers) if answers else _schema(form)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {}


def _schema(form: str) -> dict[str, Any]:
    """Return a JSON schema with a member for each line of a form; no bounds, as some servers lack them in `strict`."""
    members: dict[str, Any] = {name: {"type": "integer"} for name in MEMBER.findall(form)}
    members["REWARD"] = {"type": "number"}
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _thinking(options: Options, dialect: Dialect) -> dict[str, Any]:
    if dialect.thinking == "chat_template_kwargs":
        return {"chat_template_kwargs": {"enable_thinking": options.enable_thinking}}
    if dialect.thinking == "reasoning_effort":
        return {"reasoning_effort": "medium" if options.enable_thinking else "none"}
    return {}


def _beginning(options: Options) -> str:
    """Return the start of the assistant's message, which the model continues with a label.

    The start shows each label as it must be written, so that even a small model continues with a label. The start does
    not end with a space: chat templates may trim the space, and the next token would then be a label with a leading
    space.
    """
    choices = " or ".join(f"grade={name}" for name, _ in options.labels)
    return f"Either {choices}. Here grade="


def closing(options: Options, dialect: Dialect, answers: Answers = ()) -> str:
    """Return the part of the prompt that tells the judge how to end the reply."""
    if answers:
        return closing_of(answers, is_json=is_json(options, dialect, answers))
    if options.labels:
        labels = ", ".join(name for name, _ in options.labels)
        return f"Your whole reply is one of these labels and nothing else: {labels}"
    scale = options.template.scale
    number = f"from {scale.words}" + (f", {DECIMALS}" if scale == UNIT else "")
    if is_json(options, dialect):
        names = ", ".join(_schema(str(options.template.form))["properties"])
        return f"Instead of lines, your reply is a JSON object with the members {names}. REWARD is a number {number}."
    return f"The last line of your reply has this form, with nothing after it:\nREWARD: <number {number}>"
