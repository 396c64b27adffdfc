"""Build chat requests; the JSON around the user message is cached, because many samples share it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rewardstack.scorers.judge.dialect import VLLM, Dialect
from rewardstack.scorers.judge.images import make_content
from rewardstack.scorers.judge.options import Options
from rewardstack.scorers.judge.rubric import Answers, answer_instructions, answers_pattern, answers_schema
from rewardstack.scorers.judge.scale import UNIT
from rewardstack.scorers.judge.templates import system_message

CHAT = "/chat/completions"
REMINDER = "\n\nYour reply to this could not be read, so reply once more. "
"""Text in the second request, which is sent after an unreadable reply. It is inserted between the user message and the
description of the reply format."""
DECIMALS = "with three decimals"
TOKENS_PER_CRITERION = 8
"""Number of tokens to allow for the answer to a criterion of a rubric, or for the score of a compared candidate."""
LINE_NAME = re.compile("([A-Z]+): ")
"""Matches the name of a reply line, such as `CORRECTNESS`, in the `pattern` of a template. In a JSON reply, a
member has this name."""
REQUIRED_FIELDS = frozenset({"model", "messages", "stream"})
"""Fields of a request that are never omitted."""


class Frame(NamedTuple):
    """The JSON of a request around the user message, as bytes.

    Args:
        head: the JSON before the content of the user message.
        tail: the JSON after the content.
        fields: the fields that a server may reject, with their values.
    """

    head: bytes
    tail: bytes
    fields: Mapping[str, Any]

    def body(self, user: str, images: Sequence[str] = ()) -> bytes:
        """Return the body of the request.

        Args:
            user: the user message.
            images: URLs of the images in the user message.
        """
        return b"".join((self.head, json.dumps(make_content(images, user)).encode(), self.tail))


@lru_cache(maxsize=512)
def make_frame(
    options: Options,
    model: str,
    vote: int = 0,
    label_ids: tuple[int, ...] = (),
    dialect: Dialect = VLLM,
    answers: Answers = (),
    limit_factor: int = 1,
) -> Frame:
    """Return the JSON around the user message for requests with these options.

    The field that turns reasoning on or off is always sent if the server supports it. Without this field, the server
    may wait for the end of reasoning that never started, and so never constrain the reply.

    Args:
        options: the options of the samples.
        model: the judge's model.
        vote: index of the vote, which is added to the seed.
        label_ids: token IDs whose probabilities are requested; empty if probabilities are not read by token ID.
        dialect: the dialect of the server.
        answers: the result of `Plan.valid_answers`, which is empty except for rubrics and listwise comparisons.
        limit_factor: factor of the maximum number of tokens of the reply.
    """
    system = system_message(reply_instructions(options, dialect, answers), options.system_prompt)
    messages = [{"role": "system", "content": system}] if system.strip() else []
    messages.append({"role": "user", "content": ""})
    sampling = _sampling_fields(options, vote, label_ids, dialect, answers)
    if limit_factor > 1 and dialect.limit_field:
        sampling[dialect.limit_field] *= limit_factor
    request: dict[str, Any] = {**sampling, **_thinking_fields(options, dialect)}
    values = dict(dialect.values)
    request = {name: values.get(name, value) for name, value in request.items() if dialect.has(name)}
    request = {"model": model, "messages": messages, **request, "stream": False}
    if options.labels and dialect.starts_reply:
        messages.append({"role": "assistant", "content": _reply_start(options)})
        request |= {"add_generation_prompt": False, "continue_final_message": True}
    head, _, tail = json.dumps(request).partition('"role": "user", "content": ""')
    fields = {name: value for name, value in request.items() if name not in REQUIRED_FIELDS}
    return Frame(f'{head}"role": "user", "content": '.encode(), tail.encode(), fields)


def with_reminder(user: str, options: Options, dialect: Dialect, answers: Answers = ()) -> str:
    """Return the user message with a reminder of the reply format appended."""
    return f"{user}{REMINDER}{reply_instructions(options, dialect, answers)}"


def uses_json(options: Options, dialect: Dialect, answers: Answers = ()) -> bool:
    """Return whether the request constrains the reply by a JSON schema."""
    return dialect.constraint == "json_schema" and _reply_pattern(options, answers) is not None


def is_deterministic(options: Options, dialect: Dialect) -> bool:
    """Return whether a repeated request gives the same verdict.

    It does if the verdict is read from labels, or if the request has the temperature 0 or a seed.
    """
    if options.labels:
        return True
    values = {"temperature": options.temperature, "seed": options.seed, **dict(dialect.values)}
    return values["temperature"] == 0 or values["seed"] is not None


def changes_sampling(options: Options, dialect: Dialect) -> bool:
    """Return whether the server or the configuration takes the temperature or the seed of the options away."""
    values = dict(dialect.values)
    lost = values.get("temperature", options.temperature) != options.temperature
    return not options.labels and (lost or (options.seed is not None and "seed" in values))


def _reply_pattern(options: Options, answers: Answers) -> str | None:
    """Return the regular expression that constrains the reply; None for an unconstrained reply."""
    if options.enable_thinking or options.labels:
        return None
    return answers_pattern(answers) if answers else options.template.pattern


def _sampling_fields(
    options: Options, vote: int, label_ids: tuple[int, ...], dialect: Dialect, answers: Answers
) -> dict[str, Any]:
    if not options.labels:
        return _text_sampling_fields(options, vote, dialect, answers)
    limit = {dialect.limit_field: 1} if dialect.limit_field else {}
    sampling: dict[str, Any] = {"temperature": 0.0, **limit, "logprobs": True}
    if not dialect.label_lookup:
        return {**limit, "temperature": 0.0}
    if dialect.label_lookup == "ids":
        return {**sampling, "logprob_token_ids": label_ids, "return_tokens_as_token_ids": True}
    return {**sampling, "top_logprobs": dialect.top_logprobs}


def max_reply_tokens(options: Options, dialect: Dialect, answers: Answers = ()) -> int:
    """Return the maximum number of tokens of a reply, including reasoning."""
    if options.labels:
        return 1
    tokens = max(options.max_new_tokens, TOKENS_PER_CRITERION * len(answers))
    # Models with `max_completion_tokens` always reason, and this limit includes the reasoning.
    reasons = options.enable_thinking or dialect.limit_field == "max_completion_tokens"
    return tokens + (options.thinking_budget if reasons else 0)


def _text_sampling_fields(options: Options, vote: int, dialect: Dialect, answers: Answers) -> dict[str, Any]:
    sampling: dict[str, Any] = {"temperature": options.temperature, "top_p": options.top_p}
    if dialect.limit_field:
        sampling[dialect.limit_field] = max_reply_tokens(options, dialect, answers)
    if options.seed is not None:
        sampling["seed"] = options.seed + vote
    if options.enable_thinking and dialect.has_thinking_budget:
        sampling["thinking_token_budget"] = options.thinking_budget
    pattern = _reply_pattern(options, answers)
    return sampling if pattern is None else {**sampling, **_constraint_fields(pattern, dialect, answers)}


def _constraint_fields(pattern: str, dialect: Dialect, answers: Answers) -> dict[str, Any]:
    """Return the request field that constrains the reply, by `pattern` or by a JSON schema; empty for no constraint."""
    if dialect.constraint == "structured_outputs":
        return {"structured_outputs": {"regex": pattern}}
    if dialect.constraint in ("guided_regex", "regex"):
        return {dialect.constraint: pattern}
    if dialect.constraint == "regex_format":
        return {"response_format": {"type": "regex", "value": pattern}}
    if dialect.constraint == "json_schema":
        schema = {
            "name": "verdict",
            "strict": True,
            "schema": answers_schema(answers) if answers else _pattern_schema(pattern),
        }
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {}


def _pattern_schema(pattern: str) -> dict[str, Any]:
    """Return a JSON schema with a member for each line of a pattern.

    The numbers have no bounds in the schema, because some servers reject schemas with bounds.
    """
    members: dict[str, Any] = {name: {"type": "integer"} for name in LINE_NAME.findall(pattern)}
    members["REWARD"] = {"type": "number"}
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _thinking_fields(options: Options, dialect: Dialect) -> dict[str, Any]:
    if dialect.thinking_field == "chat_template_kwargs":
        return {"chat_template_kwargs": {"enable_thinking": options.enable_thinking}}
    if dialect.thinking_field == "enable_thinking":
        return {"enable_thinking": options.enable_thinking}
    if dialect.thinking_field == "reasoning_effort":
        return {"reasoning_effort": "medium" if options.enable_thinking else "none"}
    return {}


def _reply_start(options: Options) -> str:
    """Return the start of the assistant's message, which the model continues with a label.

    The start contains each label, so that even small models continue with a label. It does not end with a space,
    because chat templates may trim the space, and the next token would then be a label with a leading space.
    """
    choices = " or ".join(f"grade={name}" for name, _ in options.labels)
    return f"Either {choices}. Here grade="


def reply_instructions(options: Options, dialect: Dialect, answers: Answers = ()) -> str:
    """Return the part of the prompt that describes the end of the reply."""
    if answers:
        return answer_instructions(answers, uses_json=uses_json(options, dialect, answers))
    if options.labels:
        labels = ", ".join(name for name, _ in options.labels)
        return f"Your whole reply is one of these labels and nothing else: {labels}"
    scale = options.template.scale
    number = f"from {scale.text}" + (f", {DECIMALS}" if scale == UNIT else "")
    if uses_json(options, dialect):
        names = ", ".join(_pattern_schema(str(options.template.pattern))["properties"])
        return f"Instead of lines, your reply is a JSON object with the members {names}. REWARD is a number {number}."
    return f"The last line of your reply has this form, with nothing after it:\nREWARD: <number {number}>"
