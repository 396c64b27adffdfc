"""Explanations of verdicts, for traces: the effective options, the messages, the replies, and the parsed verdicts."""

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
from rewardstack.scorers.judge.calls import TRIAL
from rewardstack.scorers.judge.named import Named
from rewardstack.scorers.judge.options import Options
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.reply import (
    TOKEN_ID,
    content_text,
    read_label_verdict,
    read_text_verdict,
    read_top_verdict,
    reasoning_of,
)
from rewardstack.scorers.judge.request import CHAT, REMINDER
from rewardstack.scorers.judge.rubric import pairs_in
from rewardstack.scorers.judge.templates import BUILTIN
from rewardstack.scorers.judge.verdict import UnreadableError, verdict_line

WRITTEN = {"model": ("model_name", "model"), "template": ("prompt_template", "prompt_template_path")}
"""Fields of `extra_info` by option, where the names differ."""


def options_that_hold(options: Options, extra: Mapping[str, Any], model: str, named: Named | None) -> Record:
    """Return the value of each option and where it is set: the sample, the routes file, a setting, or the default.

    Args:
        options: the effective options.
        extra: the sample's `extra_info`, overridden by the options in the routes file.
        model: the model that the environment or the routes file sets; empty for none.
        named: the judge if a routes file defines it; None for the environment's judge.
    """
    place = named.place if named is not None else "extra_info.{}".format
    by_setting = named.model if named is not None else "LLM_JUDGE_MODEL"
    found: Record = {}
    for one in fields(options):
        value = getattr(options, one.name)
        given = [name for name in WRITTEN.get(one.name, (one.name,)) if extra.get(name) is not None]
        origin = place(given[-1]) if given else "default"
        if one.name == "template":
            name = extra.get("prompt_template") or "default"
            value = name if name in BUILTIN and "prompt_template_path" not in extra else "".join(_shown(value.parts))
            found["score_range"] = _range_shown(options, extra, place)
        elif one.name == "labels":
            value = dict(value) or None
        elif one.name == "model" and not value:
            value, origin = model or "the one that the judge serves", by_setting if model else "default"
        found[one.name] = {"value": value, "from": origin}
    return found


def _range_shown(options: Options, extra: Mapping[str, Any], place: Callable[[str], str]) -> Record:
    declared = extra.get("score_range") is not None
    return {"value": list(options.template.scale), "from": place("score_range") if declared else "the template"}


def _shown(parts: tuple[str, ...]) -> list[str]:
    return [f"{{{part}}}" if at % 2 else part for at, part in enumerate(parts)]


def explained(plan: Plan, exchange: Exchange) -> Step:
    """Return a request to a judge and its reply as a step of a trace, with the verdict parsed from the reply."""
    if not exchange.path.endswith(CHAT):
        return exchange.step()
    if not exchange.sent:
        return exchange.step("request for a verdict", {"note": "left out: the texts before it are too long together"})
    request = json.loads(exchange.sent)
    messages = request.pop("messages")
    system, user, begun = (_content(messages, role) for role in ("system", "user", "assistant"))
    if user == TRIAL:
        return exchange.step("trial", {"note": "shows what the judge takes; scores nothing"})
    first_asked, again, _ = user.partition(REMINDER)
    known_users = {plan.user(one, chunk): at for at, one in enumerate(plan.references, 1) for chunk in plan.chunks}
    asked = known_users.get(first_asked, len(plan.references) if again else 0)
    facts: Record = {"reference": f"{asked} of {len(plan.references)}", "fields": request, "system": system}
    facts["images"] = [shorten(url) for url in plan.shown.images] or None
    facts = drop_none({**facts, "user": user, "asked once more": True if again else None, "the reply is begun": begun})
    if not exchange.received:
        return exchange.step("request for a verdict", facts)
    return exchange.step("request for a verdict", {**facts, **_reply(plan, request, exchange.received)})


def _content(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    """Return the text of the first message with a role; empty if there is none."""
    return next((content_text(message["content"]) for message in messages if message["role"] == role), "")


def _reply(plan: Plan, request: Mapping[str, Any], received: bytes) -> Record:
    """Return the reply's text, reasoning and finish reason, the labels' probabilities if any, and the verdict."""
    try:
        choice = json.loads(received)["choices"][0]
        message = choice.get("message") or {}
        text, ended = content_text(message.get("content")), choice.get("finish_reason")
        facts = {"reply": text, "reasoning": reasoning_of(message), "finish reason": ended}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        choice, text, facts = {}, "", {"reply": received.decode("utf-8", "replace")}
    if plan.options.labels:
        facts["probabilities"] = _probabilities(plan, request, choice)
    elif plan.options.verdict == "rubric":
        facts["answers read"] = _pairs(text)
    elif text:
        facts["line read"] = verdict_line(text) or "none begins with REWARD:"
    try:
        return {**drop_none(facts), **_verdict(plan, request, received)}
    except ServiceError as error:
        return {**drop_none(facts), "verdict": None, "why": str(error)}


def _verdict(plan: Plan, request: Mapping[str, Any], received: bytes) -> Record:
    options = plan.options
    if options.verdict == "rubric":
        return {}
    if not options.labels:
        structured = (request.get("response_format") or {}).get("type") == "json_schema"
        thinking = options.enable_thinking
        return {
            "verdict": read_text_verdict(received, options.template.scale, thinking=thinking, structured=structured)
        }
    names, values = zip(*options.labels, strict=True)
    ids = request.get("logprob_token_ids")
    if ids:
        value, mass = read_label_verdict(received, ids, values, options.label_mass_floor)
    else:
        value, mass = read_top_verdict(received, names, values, options.label_mass_floor)
    return {"verdict": value, "label mass": mass}


def _pairs(text: str) -> Record:
    try:
        return {str(number): word for number, word in pairs_in(text)}
    except UnreadableError as error:
        return {"none": str(error)}


def _probabilities(plan: Plan, request: Mapping[str, Any], choice: Mapping[str, Any]) -> Record | None:
    """Return the probability of each label, else of each of the most likely tokens; None if the reply has none."""
    names = {
        f"{TOKEN_ID}{one}": name
        for one, (name, _) in zip(request.get("logprob_token_ids") or (), plan.options.labels, strict=False)
    }
    try:
        entries = choice["logprobs"]["content"][0]["top_logprobs"]
        return {names.get(one["token"], one["token"]): math.exp(min(float(one["logprob"]), 0.0)) for one in entries}
    except (LookupError, TypeError, ValueError):
        return None
