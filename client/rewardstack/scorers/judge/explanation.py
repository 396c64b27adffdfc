"""Explain a judge's verdict in a trace: the effective options, the messages, the replies, and the parsed verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from rewardstack.core.json_types import shorten
from rewardstack.core.steps import Exchange, Step, drop_none
from rewardstack.core.wire import Record
from rewardstack.errors import ServiceError
from rewardstack.scorers.judge.calls import TRIAL_MESSAGE
from rewardstack.scorers.judge.named import JudgeConfig
from rewardstack.scorers.judge.options import Options
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.reply import (
    TOKEN_ID,
    content_text,
    get_reasoning,
    parse_label_verdict,
    parse_text_verdict,
    parse_top_verdict,
)
from rewardstack.scorers.judge.request import CHAT, REMINDER
from rewardstack.scorers.judge.rubric import parse_answer_pairs
from rewardstack.scorers.judge.templates import BUILTIN
from rewardstack.scorers.judge.verdict import UnreadableError, verdict_line

OPTION_FIELDS = {"model": ("model_name", "model"), "template": ("prompt_template", "prompt_template_path")}
"""Maps options to their fields in `extra_info`, for options whose fields have other names."""


def effective_options(options: Options, extra: Mapping[str, Any], model: str, named: JudgeConfig | None) -> Record:
    """Return the value of each option and where it is set: the sample, the routes file, a setting, or the default.

    Args:
        options: the effective options.
        extra: the sample's `extra_info`, after the options in the routes file have replaced its fields.
        model: the model that the environment or the routes file sets; empty for none.
        named: the judge if a routes file defines it; None for the environment's judge.
    """
    field_name = named.field_name if named is not None else "extra_info.{}".format
    setting = named.model_setting if named is not None else "LLM_JUDGE_MODEL"
    records: Record = {}
    for option in fields(options):
        value = getattr(options, option.name)
        set_fields = [name for name in OPTION_FIELDS.get(option.name, (option.name,)) if extra.get(name) is not None]
        origin = field_name(set_fields[-1]) if set_fields else "default"
        if option.name == "template":
            name = extra.get("prompt_template") or "default"
            value = (
                name
                if name in BUILTIN and "prompt_template_path" not in extra
                else "".join(_template_parts(value.parts))
            )
            records["score_range"] = _describe_range(options, extra, field_name)
        elif option.name == "labels":
            value = dict(value) or None
        elif option.name == "model" and not value:
            value, origin = model or "the one that the judge serves", setting if model else "default"
        records[option.name] = {"value": value, "from": origin}
    return records


def _describe_range(options: Options, extra: Mapping[str, Any], field_name: Callable[[str], str]) -> Record:
    declared = extra.get("score_range") is not None
    return {"value": list(options.template.scale), "from": field_name("score_range") if declared else "the template"}


def _template_parts(parts: tuple[str, ...]) -> list[str]:
    return [f"{{{part}}}" if at % 2 else part for at, part in enumerate(parts)]


def explain_exchange(plan: Plan, exchange: Exchange) -> Step:
    """Return the step of a trace for one HTTP request to a judge, with the verdict parsed from the reply."""
    if not exchange.path.endswith(CHAT):
        return exchange.step()
    if not exchange.sent:
        return exchange.step("request for a verdict", {"note": "not recorded, because the trace is too large"})
    request = json.loads(exchange.sent)
    messages = request.pop("messages")
    system, user, reply_start = (_message_text(messages, role) for role in ("system", "user", "assistant"))
    if user == TRIAL_MESSAGE:
        return exchange.step("trial", {"note": "tests which fields the judge accepts; scores nothing"})
    question, is_retry, _ = user.partition(REMINDER)
    number_by_message = {
        plan.user_message(reference, chunk): number
        for number, reference in enumerate(plan.references, 1)
        for chunk in plan.chunks
    }
    reference_number = number_by_message.get(question, len(plan.references) if is_retry else 0)
    facts: Record = {"reference": f"{reference_number} of {len(plan.references)}", "fields": request, "system": system}
    facts["images"] = [shorten(url) for url in plan.shown.images] or None
    facts = drop_none({**facts, "user": user, "retry": True if is_retry else None, "reply start": reply_start})
    if not exchange.received:
        return exchange.step("request for a verdict", facts)
    return exchange.step("request for a verdict", {**facts, **_describe_reply(plan, request, exchange.received)})


def _message_text(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    """Return the text of the first message with this role; empty if no message has it."""
    return next((content_text(message["content"]) for message in messages if message["role"] == role), "")


def _describe_reply(plan: Plan, request: Mapping[str, Any], received: bytes) -> Record:
    """Return the reply's text, reasoning and finish reason, the probabilities of labels, and the verdict."""
    try:
        choice = json.loads(received)["choices"][0]
        message = choice.get("message") or {}
        text, finish_reason = content_text(message.get("content")), choice.get("finish_reason")
        facts = {"reply": text, "reasoning": get_reasoning(message), "finish reason": finish_reason}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        choice, text, facts = {}, "", {"reply": received.decode("utf-8", "replace")}
    if plan.options.labels:
        facts["probabilities"] = _probabilities(plan, request, choice)
    elif plan.options.verdict == "rubric":
        facts["answers read"] = _describe_answers(text)
    elif text:
        facts["line read"] = verdict_line(text) or "none begins with REWARD:"
    try:
        return {**drop_none(facts), **_describe_verdict(plan, request, received)}
    except ServiceError as error:
        return {**drop_none(facts), "verdict": None, "why": str(error)}


def _describe_verdict(plan: Plan, request: Mapping[str, Any], received: bytes) -> Record:
    options = plan.options
    if options.verdict == "rubric":
        return {}
    if not options.labels:
        return {"verdict": parse_text_verdict(received, options.template.scale)}
    names, values = zip(*options.labels, strict=True)
    ids = request.get("logprob_token_ids")
    if ids:
        value, mass = parse_label_verdict(received, ids, values, options.label_mass_floor)
    else:
        value, mass = parse_top_verdict(received, names, values, options.label_mass_floor)
    return {"verdict": value, "label mass": mass}


def _describe_answers(text: str) -> Record:
    try:
        return {str(number): word for number, word in parse_answer_pairs(text)}
    except UnreadableError as error:
        return {"none": str(error)}


def _probabilities(plan: Plan, request: Mapping[str, Any], choice: Mapping[str, Any]) -> Record | None:
    """Return the probabilities of the labels or of the most likely tokens; None if they are not in the reply."""
    names = {
        f"{TOKEN_ID}{token}": name
        for token, (name, _) in zip(request.get("logprob_token_ids") or (), plan.options.labels, strict=False)
    }
    try:
        entries = choice["logprobs"]["content"][0]["top_logprobs"]
        return {
            names.get(option["token"], option["token"]): math.exp(min(float(option["logprob"]), 0.0))
            for option in entries
        }
    except (LookupError, TypeError, ValueError):
        return None
