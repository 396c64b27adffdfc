"""What a judge was asked and what it replied, for people: the options that hold, messages as sent, what was read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from rewardstack.core.steps import Exchange, Step, known
from rewardstack.core.wire import Record
from rewardstack.errors import ServiceError
from rewardstack.scorers.judge.calls import TRIAL
from rewardstack.scorers.judge.named import Named
from rewardstack.scorers.judge.options import Options
from rewardstack.scorers.judge.plan import Plan
from rewardstack.scorers.judge.reply import (
    TOKEN_ID,
    read_label_verdict,
    read_text_verdict,
    read_top_verdict,
    reasoning_of,
)
from rewardstack.scorers.judge.request import CHAT
from rewardstack.scorers.judge.templates import BUILTIN
from rewardstack.scorers.judge.verdict import verdict_line

WRITTEN = {"model": ("model_name", "model"), "template": ("prompt_template", "prompt_template_path")}
"""The fields of `extra_info` that an option is given by, where it is not by its own name."""


def options_that_hold(options: Options, extra: Mapping[str, Any], model: str, named: Named | None) -> Record:
    """Return each option's value, and whether the sample, the routes file or a setting gave it, or it is the default.

    `model` is the one that the environment or the routes file names, `named` what the latter says of the judge.
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
        elif one.name == "labels":
            value = dict(value) or None
        elif one.name == "model" and not value:
            value, origin = model or "the one that the judge serves", by_setting if model else "default"
        found[one.name] = {"value": value, "from": origin}
    return found


def _shown(parts: tuple[str, ...]) -> list[str]:
    return [f"{{{part}}}" if at % 2 else part for at, part in enumerate(parts)]


def explained(plan: Plan, exchange: Exchange) -> Step:
    """One exchange with a judge as a step: a request for a verdict with its reply and what was read in it."""
    if not exchange.path.endswith(CHAT):
        return exchange.step()
    if not exchange.sent:
        return exchange.step("request for a verdict", {"note": "left out: the texts before it are too long together"})
    request = json.loads(exchange.sent)
    system, user, *begun = (str(message["content"]) for message in request.pop("messages"))
    if user == TRIAL:
        return exchange.step("trial", {"note": "shows what the judge takes; scores nothing"})
    asked = next((at for at, one in enumerate(plan.references, 1) if plan.user(one) == user), 0)
    facts = {"reference": f"{asked} of {len(plan.references)}", "fields": request, "system": system, "user": user}
    facts |= {"the reply is begun": begun[0]} if begun else {}
    if not exchange.received:
        return exchange.step("request for a verdict", facts)
    return exchange.step("request for a verdict", {**facts, **_reply(plan, request, exchange.received)})


def _reply(plan: Plan, request: Mapping[str, Any], received: bytes) -> Record:
    """The reply's text, what was thought before it, why it ended, the labels' probabilities, and the verdict."""
    try:
        choice = json.loads(received)["choices"][0]
        message = choice.get("message") or {}
        text, ended = message.get("content"), choice.get("finish_reason")
        facts = {"reply": text, "reasoning": reasoning_of(message), "finish reason": ended}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        choice, text, facts = {}, None, {"reply": received.decode("utf-8", "replace")}
    if plan.options.labels:
        facts["probabilities"] = _probabilities(plan, request, choice)
    elif isinstance(text, str):
        facts["line read"] = verdict_line(text) or "none begins with REWARD:"
    try:
        return {**known(facts), **_verdict(plan, request, received)}
    except ServiceError as error:
        return {**known(facts), "verdict": None, "why": str(error)}


def _verdict(plan: Plan, request: Mapping[str, Any], received: bytes) -> Record:
    options = plan.options
    if not options.labels:
        structured = (request.get("response_format") or {}).get("type") == "json_schema"
        thinking = options.enable_thinking
        return {"verdict": read_text_verdict(received, options.template.top, thinking=thinking, structured=structured)}
    names, values = zip(*options.labels, strict=True)
    ids = request.get("logprob_token_ids")
    if ids:
        value, mass = read_label_verdict(received, ids, values, options.label_mass_floor)
    else:
        value, mass = read_top_verdict(received, names, values, options.label_mass_floor)
    return {"verdict": value, "label mass": mass}


def _probabilities(plan: Plan, request: Mapping[str, Any], choice: Mapping[str, Any]) -> Record | None:
    """What the reply gives each label, or each of the likeliest tokens; None where it gives nothing."""
    names = {
        f"{TOKEN_ID}{one}": name
        for one, (name, _) in zip(request.get("logprob_token_ids") or (), plan.options.labels, strict=False)
    }
    try:
        entries = choice["logprobs"]["content"][0]["top_logprobs"]
        return {names.get(one["token"], one["token"]): math.exp(min(float(one["logprob"]), 0.0)) for one in entries}
    except (LookupError, TypeError, ValueError):
        return None
