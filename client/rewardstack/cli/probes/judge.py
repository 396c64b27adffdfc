"""Tries an LLM judge: does it live, what does it serve, does it judge, and do its flags let it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from rewardstack.cli.probes.finding import Finding, Trouble
from rewardstack.cli.probes.http import Names, Probed, probe
from rewardstack.scorers.judge.fences import neutral
from rewardstack.scorers.judge.labels import TOKENIZE
from rewardstack.scorers.judge.models import DEFAULT, read_models
from rewardstack.scorers.judge.options import Options, read_options
from rewardstack.scorers.judge.reply import read_text_verdict
from rewardstack.scorers.judge.request import CHAT, frame
from rewardstack.scorers.judge.verdict import UnreadableError
from rewardstack.settings import Settings

NAMES = Names("LLM_JUDGE_SERVER_URL", "LLM_JUDGE_SERVER_API_KEY", "--api-key")
PATIENCE = 60.0
"""Seconds for a verdict: the first one after a start takes long, on a CPU above all."""
PROBLEM, REFERENCE, CANDIDATE = "What is 6 times 7?", "42", "6 times 7 is 42."

UPGRADE = "it is an old vLLM, or no vLLM: `structured_outputs` needs vLLM 0.11 or later, the older `guided_*` are gone"
SILENT_TEMPLATE = (
    "start it without --reasoning-parser: its chat template does not heed `enable_thinking`, so the parser takes the "
    "whole reply for reasoning and no structure is enforced"
)
STUBBORN_TEMPLATE = (
    "its chat template makes it think whatever `enable_thinking` says; take another model or template, or set "
    "enable_thinking to true in extra_info and start it with its --reasoning-parser"
)

RUNS = "<|im_end|> </s> <think> <AI> <用户> <tool_call> <minimax:tool_call> <turn|> <unused7> <[begin_of_image]>"
MORE_RUNS = "[|user|] [INST] [gMASK] [UNUSED_TOKEN_7] [control_7] [start_header_id] [e~[ ]~b] ]~!b[ >>ANSWER<<"
"""A control token of each form that is known."""
CONTROL = re.compile(r"(?!<0x)[<\[\]>]\S*\w\S*[<\[\]>]")
"""How a control token looks among a text's tokens, bytes in the form <0x0A> left aside."""


async def probe_judge(url: str, settings: Settings) -> Finding:
    """Tries the judge at `url`.

    Args:
        url: its base URL.
        settings: with the key to send and the model to ask.
    """
    return await probe(url, settings.judge_api_key, NAMES, partial(_probe, wanted=settings.judge_model))


async def _probe(server: Probed, finding: Finding, wanted: str) -> None:
    await server.ask("/health")
    model = finding.version = await _model(server, wanted)
    started = time.monotonic()
    options = read_options({"temperature": 0})
    message = await _message(server, options, model)
    elapsed = (time.monotonic() - started) * 1000
    _check_flags(message)
    try:
        value = read_text_verdict(json.dumps({"choices": [{"message": message}]}).encode(), 1.0, thinking=False)
    except UnreadableError as error:
        raise Trouble(str(error), UPGRADE) from error
    finding.sample = "; ".join([f"verdict {value:.3f} in {elapsed:.0f} ms", *await _notes(server, model)])


async def _model(server: Probed, wanted: str) -> str:
    """The model that a sample would be judged by."""
    served = read_models(await server.ask("/v1/models"))
    if served is None:
        raise Trouble("/v1/models: not the answer of an OpenAI-compatible server", server.names.another)
    model = wanted or (next(iter(served)) if len(served) == 1 else DEFAULT)
    if model not in served:
        known = ", ".join(served) or "none"
        raise Trouble(f"it does not serve {model!r}", f"set LLM_JUDGE_MODEL to one that it serves: {known}")
    return model


async def _message(server: Probed, options: Options, model: str) -> Mapping[str, Any]:
    user = options.template.render(PROBLEM, REFERENCE, CANDIDATE)
    reply = await server.ask(CHAT, frame(options, model).body(user), PATIENCE)
    try:
        message = json.loads(reply)["choices"][0]["message"]
    except (ValueError, KeyError, IndexError, TypeError):
        message = None
    if not isinstance(message, dict):
        raise Trouble(f"{CHAT}: not the answer of an OpenAI-compatible server", server.names.another)
    return message


def _check_flags(message: Mapping[str, Any]) -> None:
    """Whether a request without thinking and with a structure was heeded in both."""
    content = message.get("content")
    if message.get("reasoning") or message.get("reasoning_content"):
        remedy = SILENT_TEMPLATE if not content else STUBBORN_TEMPLATE
        raise Trouble("it reasons although `enable_thinking` is false", remedy)
    if not isinstance(content, str) or not content.strip():
        raise Trouble("its reply is empty", SILENT_TEMPLATE)
    if "<think>" in content or "</think>" in content:
        raise Trouble("it reasons although `enable_thinking` is false", STUBBORN_TEMPLATE)


async def _notes(server: Probed, model: str) -> list[str]:
    """What this judge cannot do that not everybody needs."""
    try:
        quiet, thinking = [await _prompt_tokens(server, model, thinks) for thinks in (False, True)]
        unbroken = await _unbroken(server, model)
    except Trouble:
        return [f"no verdict 'logprob': {TOKENIZE} does not answer"]
    if unbroken:
        raise Trouble(f"candidates can write its control tokens: {', '.join(unbroken)}", "judge by another model")
    return ["its template does not heed enable_thinking"] if quiet == thinking else []


async def _unbroken(server: Probed, model: str) -> list[str]:
    """The control tokens that a sample's text can hold: of the known forms, and of the model's own chat template."""
    messages = [{"role": "user", "content": PROBLEM}]
    own = filter(CONTROL.fullmatch, await _token_texts(server, {"model": model, "messages": messages}))
    text = neutral(" ".join([RUNS, MORE_RUNS, *own]))
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
