"""Probe an LLM judge: which models does it serve, does it return verdicts, and do its start options fit."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rewardstack.core.addresses import shown_url
from rewardstack.errors import RejectedError, ReplyError, ServiceError, SettingsError
from rewardstack.scorers.judge.api import MODELS, api_path, deployment_name, query_string
from rewardstack.scorers.judge.dialect import VLLM, Dialect, detect_dialect, parse_vllm_version
from rewardstack.scorers.judge.fences import neutralize
from rewardstack.scorers.judge.labels import TOKENIZE, label_request
from rewardstack.scorers.judge.models import DEFAULT, UNREPORTED, VERSION, ServerReport, parse_models
from rewardstack.scorers.judge.named import JudgeConfig
from rewardstack.scorers.judge.options import LABEL_MASS_FLOOR, Options, read_options
from rewardstack.scorers.judge.refusals import omit_fields, refused_fields
from rewardstack.scorers.judge.reply import get_reasoning, parse_label_verdict, parse_text_verdict, parse_top_verdict
from rewardstack.scorers.judge.request import CHAT, make_frame, uses_json
from rewardstack.scorers.judge.scale import UNIT
from rewardstack.scorers.judge.verdict import UnreadableError
from rewardstack.settings import Settings
from rewardstack.transport.reply import body_of
from rewardstack_cli.probes.finding import Finding, ProbeError
from rewardstack_cli.probes.http import Names, Probed, probe

NAMES = Names("LLM_JUDGE_SERVER_URL", "LLM_JUDGE_SERVER_API_KEY", "--api-key")
TIMEOUT = 60.0
"""Timeout in seconds of a verdict: the first verdict after a start is slow, especially on a CPU."""
PROBLEM, REFERENCE, CANDIDATE = "What is 6 times 7?", "42", "6 times 7 is 42."

UPGRADE = "it is an old vLLM, or no vLLM: `structured_outputs` needs vLLM 0.11 or later, the older `guided_*` are gone"
FREE = "it does not enforce structured output, and the model does not keep to the format; use a stronger model"
NO_LABELS = "no verdict 'logprob'"
NO_SUCH_PATH = (404, 405, 501)
SILENT_TEMPLATE = (
    "start it without --reasoning-parser: its chat template does not honor `enable_thinking`, so the parser takes the "
    "whole reply for reasoning and no structure is enforced"
)
STUBBORN_TEMPLATE = (
    "its chat template makes it think whatever `enable_thinking` says; use another model or template, or set "
    "enable_thinking to true in extra_info and start it with its --reasoning-parser"
)

RUNS = "<|im_end|> </s> <think> <AI> <用户> <tool_call> <minimax:tool_call> <turn|> <unused7> <[begin_of_image]>"
MORE_RUNS = "[|user|] [INST] [gMASK] [UNUSED_TOKEN_7] [control_7] [start_header_id] [e~[ ]~b] ]~!b[ >>ANSWER<<"
"""Together with `RUNS`: one control token of each known form."""
CONTROL = re.compile(r"(?!<0x)[<\[\]>]\S*\w\S*[<\[\]>]")
"""Matches a control token among a text's tokens, but not bytes in the form <0x0A>."""


async def probe_judge(url: str, settings: Settings) -> Finding:
    """Probe the judge at `url`.

    Args:
        url: base URL of the judge.
        settings: settings with the key to send and the model to use.
    """
    return await _probe_as(url, settings, NAMES, None)


async def probe_named(named: JudgeConfig, url: str, settings: Settings) -> Finding:
    """Probe a judge of the routes file, as `probe_judge` does, with the environment's settings."""
    try:
        own = named.settings(settings)
    except SettingsError as error:
        problem = ProbeError(str(error), f"set {named.key_setting} to the judge's key")
        return Finding(shown_url(url), problem=problem)
    return await _probe_as(url, own, _names(named), named)


def _names(named: JudgeConfig) -> Names:
    """Return the names for the remedies; the stack does not start a judge whose URL is in the routes file."""
    if named.url_setting == NAMES.url:
        return NAMES
    return Names(named.url_setting, named.key_setting, "keys", by="")


async def _probe_as(url: str, settings: Settings, names: Names, named: JudgeConfig | None) -> Finding:
    look = partial(_probe, url=url, settings=settings, named=named)
    return await probe(url, settings.judge_api_key, names, look, dict(settings.judge_headers), query_string(settings))


class Asked(NamedTuple):
    """How requests to the judge are made.

    Args:
        path: path of the chat API.
        model: the model that judges.
        dialect: dialect of the server, as far as it is known.
    """

    path: str
    model: str
    dialect: Dialect


async def _probe(server: Probed, finding: Finding, url: str, settings: Settings, named: JudgeConfig | None) -> None:
    served = await _served(server, url)
    model = finding.version = _model(served, settings.judge_model, named.model_setting if named else "LLM_JUDGE_MODEL")
    asked = Asked(api_path((url,), CHAT), model, served.dialect)
    started = time.monotonic()
    options = read_options({"temperature": 0})
    reply, asked = await _reply(server, asked, options)
    elapsed = (time.monotonic() - started) * 1000
    notes = _check_flags(_message(server, asked, reply), asked.dialect)
    try:
        value = parse_text_verdict(reply, UNIT, thinking=False, structured=uses_json(options, asked.dialect))
    except UnreadableError as error:
        raise ProbeError(str(error), UPGRADE if asked.dialect == VLLM else FREE) from error
    notes += await (_notes(server, asked) if asked.dialect.label_lookup == "ids" else _foreign_notes(server, asked))
    lacking = [note for note in notes if note.startswith(NO_LABELS)]
    if lacking and named is not None and named.uses_logprobs:
        remedy = f"leave `verdict` out of judges.{named.name}.options"
        raise ProbeError(lacking[0], f"set judges.{named.name}.compare to listwise" if named.comparison else remedy)
    finding.sample = "; ".join([f"verdict {value:.3f} in {elapsed:.0f} ms", *notes])


async def _served(server: Probed, url: str) -> ServerReport:
    """Return the models and dialect that the server reports; `UNREPORTED` if it has no list of models."""
    if name := deployment_name(url):
        return ServerReport({name: name})
    path = api_path((url,), MODELS)
    reply = await server.reply(path)
    if reply.status in NO_SUCH_PATH:
        return UNREPORTED
    try:
        data = body_of(reply)
    except ServiceError as error:
        raise server.probe_error(error) from error
    roots = parse_models(data)
    if roots is None:
        raise ProbeError(f"{path}: not the answer of an OpenAI-compatible server", server.names.another)
    dialect = detect_dialect(data)
    if dialect is VLLM:
        version = await server.reply(VERSION)
        dialect = parse_vllm_version(version.data)
    return ServerReport(roots, dialect)


def _model(served: ServerReport, wanted: str, model_name: str) -> str:
    """Return the model that would judge a sample; raise `ProbeError` if the server does not serve that model."""
    model = wanted or (next(iter(served.roots)) if len(served.roots) == 1 else DEFAULT)
    if served is not UNREPORTED and model not in served.roots and not (served.dialect.is_guessed and wanted):
        known = ", ".join(served.roots) or "none"
        raise ProbeError(f"it does not serve {model!r}", f"set {model_name} to one that it serves: {known}")
    return model


async def _reply(
    server: Probed, asked: Asked, options: Options, label_ids: tuple[int, ...] = ()
) -> tuple[bytes, Asked]:
    """Return the reply to a sample, and how it was requested: without the fields that the server refused."""
    user = options.template.render(PROBLEM, REFERENCE, CANDIDATE)
    while True:
        request = make_frame(options, asked.model, label_ids=label_ids, dialect=asked.dialect)
        reply = await server.reply(asked.path, request.body(user), TIMEOUT)
        try:
            return body_of(reply), asked
        except RejectedError as error:
            better = omit_fields(asked.dialect, refused_fields(error, request.fields))
            if better == asked.dialect:
                raise server.probe_error(error) from error
            asked = asked._replace(dialect=better)
        except ServiceError as error:
            raise server.probe_error(error) from error


def _message(server: Probed, asked: Asked, reply: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(reply)["choices"][0]["message"]
    except (ValueError, KeyError, IndexError, TypeError):
        message = None
    if not isinstance(message, dict):
        raise ProbeError(f"{asked.path}: not the answer of an OpenAI-compatible server", server.names.another)
    return message


def _check_flags(message: Mapping[str, Any], dialect: Dialect) -> list[str]:
    """Raise `ProbeError` if the judge reasons or the reply is empty; return notes on deviations that are no errors."""
    content, reasons = message.get("content"), get_reasoning(message)
    if dialect.is_guessed and content:
        return ["it reasons, asked or not"] if reasons else []
    if reasons:
        remedy = SILENT_TEMPLATE if not content else STUBBORN_TEMPLATE
        raise ProbeError("it reasons although `enable_thinking` is false", remedy)
    if not isinstance(content, str) or not content.strip():
        raise ProbeError("its reply is empty", SILENT_TEMPLATE)
    if "<think>" in content or "</think>" in content:
        raise ProbeError("it reasons although `enable_thinking` is false", STUBBORN_TEMPLATE)
    return []


async def _foreign_notes(server: Probed, asked: Asked) -> list[str]:
    """Return notes on what a judge other than vLLM does not support, and on its label mass."""
    dialect = asked.dialect
    notes = [] if dialect.constraint else ["it does not support structured output"]
    notes += [] if dialect.thinking_field else ["it does not honor enable_thinking"]
    return [*notes, await _label_mass(server, asked)]


async def _notes(server: Probed, asked: Asked) -> list[str]:
    """Return notes on what a vLLM judge does not support, and on its label mass."""
    try:
        quiet, thinking = [await _prompt_tokens(server, asked.model, thinks) for thinks in (False, True)]
        unbroken = await _unbroken(server, asked.model)
    except ProbeError:
        return [f"{NO_LABELS}: {TOKENIZE} does not answer"]
    if unbroken:
        raise ProbeError(f"candidates can write its control tokens: {', '.join(unbroken)}", "judge by another model")
    notes = ["its template does not honor enable_thinking"] if quiet == thinking else []
    return [*notes, await _label_mass(server, asked)]


async def _label_mass(server: Probed, asked: Asked) -> str:
    """Return a note on the total probability of the labels, or on why no verdict can be read from labels."""
    options = read_options({"verdict": "logprob", "label_mass_floor": 0})
    labels, values = zip(*options.labels, strict=True)
    try:
        ids = await _label_ids(server, asked.model, labels) if asked.dialect.label_lookup == "ids" else ()
        reply, asked = await _reply(server, asked, options, ids)
        if asked.dialect.label_lookup == "ids":
            _, mass = parse_label_verdict(reply, ids, values, 0.0)
        else:
            _, mass = parse_top_verdict(reply, labels, values, 0.0)
    except UnreadableError as error:
        return f"verdict 'logprob': {error}"
    except (ProbeError, ReplyError):
        return f"{NO_LABELS}: it returns no probabilities"
    low = "" if mass >= LABEL_MASS_FLOOR else f", which is below label_mass_floor {LABEL_MASS_FLOOR:g}"
    return f"label mass {mass:.2f}{low}"


async def _label_ids(server: Probed, model: str, labels: Sequence[str]) -> tuple[int, ...]:
    """Return the token of each label; raise `ProbeError` if a label is not a single token."""
    replies = [await server.ask_json(TOKENIZE, label_request(label, model)) for label in labels]
    try:
        [ids] = zip(*(map(int, reply["tokens"]) for reply in replies), strict=True)
    except (ValueError, KeyError, TypeError) as error:
        raise ProbeError(f"{TOKENIZE} does not return one token for each label", server.names.another) from error
    return ids


async def _unbroken(server: Probed, model: str) -> list[str]:
    """Return control tokens, of known forms or of the model's chat template, that `neutralize` leaves in a sample."""
    messages = [{"role": "user", "content": PROBLEM}]
    own = filter(CONTROL.fullmatch, await _token_texts(server, {"model": model, "messages": messages}))
    text = neutralize(" ".join([RUNS, MORE_RUNS, *own]))
    found = await _token_texts(server, {"model": model, "prompt": text, "add_special_tokens": False})
    return sorted({token for token in found if CONTROL.fullmatch(token)})


async def _token_texts(server: Probed, asked: Mapping[str, Any]) -> list[str]:
    reply = await server.ask_json(TOKENIZE, {**asked, "return_token_strs": True})
    texts = reply.get("token_strs") if isinstance(reply, dict) else None
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


async def _prompt_tokens(server: Probed, model: str, thinks: bool) -> Any:
    messages = [{"role": "user", "content": PROBLEM}]
    asked = {"model": model, "messages": messages, "chat_template_kwargs": {"enable_thinking": thinks}}
    reply = await server.ask_json(TOKENIZE, asked)
    return reply.get("tokens") if isinstance(reply, dict) else None
