"""Probe an LLM judge: which models it serves, whether it returns verdicts, and whether its start options are right."""

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
from rewardstack.scorers.judge.rejected_fields import omit_fields, rejected_fields
from rewardstack.scorers.judge.reply import get_reasoning, parse_label_verdict, parse_text_verdict, parse_top_verdict
from rewardstack.scorers.judge.request import CHAT, make_frame
from rewardstack.scorers.judge.scale import UNIT
from rewardstack.scorers.judge.verdict import UnreadableError
from rewardstack.settings import Settings
from rewardstack.transport.message import get_body
from rewardstack_cli.probes.finding import Finding, ProbeError
from rewardstack_cli.probes.http import ProbedService, RemedyNames, probe

NAMES = RemedyNames("LLM_JUDGE_SERVER_URL", "LLM_JUDGE_SERVER_API_KEY", "keys (--api-key)")
TIMEOUT = 60.0
"""Timeout in seconds of a verdict: the first verdict after a start is slow, especially on a CPU."""
PROBLEM, REFERENCE, CANDIDATE = "What is 6 times 7?", "42", "6 times 7 is 42."

OLD_VLLM_REMEDY = (
    "the server does not enforce the format of replies, because it is an older vLLM, or not vLLM: `structured_outputs` "
    "needs vLLM 0.11 or later"
)
UNSTRUCTURED = (
    "the server does not enforce the format of replies, and the model does not keep to it; use a stronger model"
)

PATH_NOT_FOUND = (404, 405, 501)
NO_THINKING_SWITCH = (
    "start the server without --reasoning-parser: the model's chat template does not honor `enable_thinking`, so the "
    "parser treats the whole reply as reasoning, and the reply's format is not enforced"
)
ALWAYS_THINKS = (
    "with its chat template, the model thinks even if `enable_thinking` is false; use another model or template, or "
    "set enable_thinking to true in extra_info, and start the server with the --reasoning-parser of the model"
)

CONTROL_TOKENS = (
    "<|im_end|> </s> <think> <AI> <用户> <tool_call> <minimax:tool_call> <turn|> <unused7> <[begin_of_image]>"
)
MORE_CONTROL_TOKENS = (
    "[|user|] [INST] [gMASK] [UNUSED_TOKEN_7] [control_7] [start_header_id] [e~[ ]~b] ]~!b[ >>ANSWER<<"
)
"""More control tokens. The two texts together have an example of each known form of control token."""
CONTROL_TOKEN = re.compile(r"(?!<0x)[<\[\]>]\S*\w\S*[<\[\]>]")
"""Matches a control token, but not a byte token such as <0x0A>."""


class NoLabels(str):
    """A note: why `verdict: "logprob"` cannot be used."""

    __slots__ = ()

    def __new__(cls, why: str) -> NoLabels:
        """Return the note that gives this reason."""
        return super().__new__(cls, f"verdict 'logprob' cannot be used: {why}")


async def probe_judge(url: str, settings: Settings) -> Finding:
    """Probe the judge at `url`.

    Args:
        url: base URL of the judge.
        settings: settings with the key to send and the model to use.
    """
    return await _probe_with(url, settings, NAMES, None)


async def probe_judge_config(config: JudgeConfig, url: str, settings: Settings) -> Finding:
    """Probe a judge that the routes file defines, as `probe_judge` does."""
    try:
        own_settings = config.settings(settings)
    except SettingsError as error:
        problem = ProbeError(str(error), f"set {config.key_setting} to the judge's key")
        return Finding(shown_url(url), problem=problem)
    return await _probe_with(url, own_settings, _remedy_names(config), config)


def _remedy_names(config: JudgeConfig) -> RemedyNames:
    """Return the names of a judge's settings.

    For a judge whose URL is in the routes file, `started_by` is empty, because `make up` does not start such a judge.
    """
    if config.url_setting == NAMES.url:
        return NAMES
    return RemedyNames(config.url_setting, config.key_setting, "keys", started_by="")


async def _probe_with(url: str, settings: Settings, names: RemedyNames, config: JudgeConfig | None) -> Finding:
    check = partial(_probe, url=url, settings=settings, config=config)
    return await probe(url, settings.judge_api_key, names, check, dict(settings.judge_headers), query_string(settings))


class ChatParams(NamedTuple):
    """The parameters of requests to the judge.

    Args:
        path: path of the chat API.
        model: the model that judges.
        dialect: the optional request fields that the server supports.
    """

    path: str
    model: str
    dialect: Dialect


async def _probe(
    server: ProbedService, finding: Finding, url: str, settings: Settings, config: JudgeConfig | None
) -> None:
    report = await _fetch_report(server, url)
    model = finding.version = _choose_model(
        report, settings.judge_model, config.model_setting if config else "LLM_JUDGE_MODEL"
    )
    params = ChatParams(api_path((url,), CHAT), model, report.dialect)
    started = time.monotonic()
    options = read_options({"temperature": 0})
    reply, params = await _request_verdict(server, params, options)
    elapsed = (time.monotonic() - started) * 1000
    notes = _check_reasoning(_parse_message(server, params, reply), params.dialect)
    try:
        value = parse_text_verdict(reply, UNIT)
    except UnreadableError as error:
        raise ProbeError(str(error), OLD_VLLM_REMEDY if params.dialect == VLLM else UNSTRUCTURED) from error
    notes += await (
        _vllm_notes(server, params) if params.dialect.label_lookup == "ids" else _other_server_notes(server, params)
    )
    missing_labels = [note for note in notes if isinstance(note, NoLabels)]
    if missing_labels and config is not None and config.uses_logprobs:
        remedy = f"leave `verdict` out of judges.{config.name}.options"
        raise ProbeError(
            missing_labels[0], f"set judges.{config.name}.compare to listwise" if config.comparison else remedy
        )
    finding.sample = "; ".join([f"verdict {value:.3f} in {elapsed:.0f} ms", *notes])


async def _fetch_report(server: ProbedService, url: str) -> ServerReport:
    """Return the models and dialect that the server reports; `UNREPORTED` if it has no list of models.

    For the URL of an Azure deployment, the model is the deployment, and the server is not asked.
    """
    if name := deployment_name(url):
        return ServerReport({name: name})
    path = api_path((url,), MODELS)
    reply = await server.reply(path)
    if reply.status in PATH_NOT_FOUND:
        return UNREPORTED
    try:
        data = get_body(reply)
    except ServiceError as error:
        raise server.probe_error(error) from error
    roots = parse_models(data)
    if roots is None:
        raise ProbeError(f"{path}: not the answer of an OpenAI-compatible server", server.names.another_service)
    dialect = detect_dialect(data)
    if dialect is VLLM:
        version = await server.reply(VERSION)
        dialect = parse_vllm_version(version.data)
    return ServerReport(roots, dialect)


def _choose_model(report: ServerReport, configured: str, model_name: str) -> str:
    """Return the model to request.

    Raises:
        ProbeError: the server lists its models, and the model is not among them. If the dialect is guessed, this is no
            error for a model that the user has configured.
    """
    model = configured or (next(iter(report.roots)) if len(report.roots) == 1 else DEFAULT)
    if report is not UNREPORTED and model not in report.roots and not (report.dialect.is_guessed and configured):
        served_models = ", ".join(report.roots) or "none"
        raise ProbeError(f"it does not serve {model!r}", f"set {model_name} to one that it serves: {served_models}")
    return model


async def _request_verdict(
    server: ProbedService, params: ChatParams, options: Options, label_ids: tuple[int, ...] = ()
) -> tuple[bytes, ChatParams]:
    """Return the reply to a test sample, and the parameters, whose dialect omits fields that the server rejected."""
    user = options.template.render(PROBLEM, REFERENCE, CANDIDATE)
    while True:
        request = make_frame(options, params.model, label_ids=label_ids, dialect=params.dialect)
        reply = await server.reply(params.path, request.body(user), TIMEOUT)
        try:
            return get_body(reply), params
        except RejectedError as error:
            new_dialect = omit_fields(params.dialect, rejected_fields(error, request.fields))
            if new_dialect == params.dialect:
                raise server.probe_error(error) from error
            params = params._replace(dialect=new_dialect)
        except ServiceError as error:
            raise server.probe_error(error) from error


def _parse_message(server: ProbedService, params: ChatParams, reply: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(reply)["choices"][0]["message"]
    except (ValueError, KeyError, IndexError, TypeError):
        message = None
    if not isinstance(message, dict):
        raise ProbeError(f"{params.path}: not the answer of an OpenAI-compatible server", server.names.another_service)
    return message


def _check_reasoning(message: Mapping[str, Any], dialect: Dialect) -> list[str]:
    """Raise `ProbeError` if the reply is empty or contains reasoning; return notes for the finding.

    If the dialect is guessed and the reply is not empty, reasoning is not an error, but only a note.
    """
    content, reasons = message.get("content"), get_reasoning(message)
    if dialect.is_guessed and content:
        return ["it reasons although it is not asked to"] if reasons else []
    if reasons:
        remedy = NO_THINKING_SWITCH if not content else ALWAYS_THINKS
        raise ProbeError("it reasons although `enable_thinking` is false", remedy)
    if not isinstance(content, str) or not content.strip():
        raise ProbeError("its reply is empty", NO_THINKING_SWITCH)
    if "<think>" in content or "</think>" in content:
        raise ProbeError("it reasons although `enable_thinking` is false", ALWAYS_THINKS)
    return []


async def _other_server_notes(server: ProbedService, params: ChatParams) -> list[str]:
    """Return notes on missing features of a judge that is an older vLLM or not vLLM, and on its label probabilities."""
    dialect = params.dialect
    notes = [] if dialect.constraint else ["it does not support structured output"]
    notes += [] if dialect.thinking_field else ["it does not honor enable_thinking"]
    return [*notes, await _label_mass(server, params)]


async def _vllm_notes(server: ProbedService, params: ChatParams) -> list[str]:
    """Return notes on missing features of a vLLM judge, and on its label probabilities.

    Raises:
        ProbeError: `neutralize` does not split all control tokens of the model.
    """
    try:
        without_thinking, with_thinking = [
            await _prompt_tokens(server, params.model, enable_thinking) for enable_thinking in (False, True)
        ]
        unsplit = await _find_unsplit_tokens(server, params.model)
    except ProbeError:
        return [NoLabels(f"{TOKENIZE} does not answer")]
    if unsplit:
        raise ProbeError(
            f"responses can contain control tokens of the model, which are not neutralized: {', '.join(unsplit)}",
            "use another model as the judge",
        )
    notes = ["its template does not honor enable_thinking"] if without_thinking == with_thinking else []
    return [*notes, await _label_mass(server, params)]


async def _label_mass(server: ProbedService, params: ChatParams) -> str:
    """Return a note: the total probability of the labels (one-token answers), or why this probability is unknown."""
    options = read_options({"verdict": "logprob", "label_mass_floor": 0})
    labels, values = zip(*options.labels, strict=True)
    try:
        ids = await _label_ids(server, params.model, labels) if params.dialect.label_lookup == "ids" else ()
        reply, params = await _request_verdict(server, params, options, ids)
        if params.dialect.label_lookup == "ids":
            _, mass = parse_label_verdict(reply, ids, values, 0.0)
        else:
            _, mass = parse_top_verdict(reply, labels, values, 0.0)
    except UnreadableError as error:
        return f"verdict 'logprob': {error}"
    except (ProbeError, ReplyError):
        return NoLabels("it returns no probabilities")
    low = "" if mass >= LABEL_MASS_FLOOR else f", which is below label_mass_floor {LABEL_MASS_FLOOR:g}"
    return f"label mass {mass:.2f}{low}"


async def _label_ids(server: ProbedService, model: str, labels: Sequence[str]) -> tuple[int, ...]:
    """Return the token ID of each label; raise `ProbeError` if a label is not a single token."""
    replies = [await server.ask_json(TOKENIZE, label_request(label, model)) for label in labels]
    try:
        [ids] = zip(*(map(int, reply["tokens"]) for reply in replies), strict=True)
    except (ValueError, KeyError, TypeError) as error:
        raise ProbeError(
            f"{TOKENIZE} does not return one token for each label", server.names.another_service
        ) from error
    return ids


async def _find_unsplit_tokens(server: ProbedService, model: str) -> list[str]:
    """Return the control tokens that are still single tokens after `neutralize`, which should split them.

    One control token of each known form is tested, and all control tokens in the chat template.
    """
    messages = [{"role": "user", "content": PROBLEM}]
    template_tokens = filter(
        CONTROL_TOKEN.fullmatch, await _token_texts(server, {"model": model, "messages": messages})
    )
    text = neutralize(" ".join([CONTROL_TOKENS, MORE_CONTROL_TOKENS, *template_tokens]))
    tokens = await _token_texts(server, {"model": model, "prompt": text, "add_special_tokens": False})
    return sorted({token for token in tokens if CONTROL_TOKEN.fullmatch(token)})


async def _token_texts(server: ProbedService, params: Mapping[str, Any]) -> list[str]:
    reply = await server.ask_json(TOKENIZE, {**params, "return_token_strs": True})
    texts = reply.get("token_strs") if isinstance(reply, dict) else None
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


async def _prompt_tokens(server: ProbedService, model: str, enable_thinking: bool) -> Any:
    messages = [{"role": "user", "content": PROBLEM}]
    params = {"model": model, "messages": messages, "chat_template_kwargs": {"enable_thinking": enable_thinking}}
    reply = await server.ask_json(TOKENIZE, params)
    return reply.get("tokens") if isinstance(reply, dict) else None
