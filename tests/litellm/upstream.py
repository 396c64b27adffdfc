"""Scripted providers behind LiteLLM: Anthropic, OpenAI with gpt-5's rules, DeepSeek and Gemini, each in its own API.

Each refuses what the provider refuses, in its words. While `overloaded_until` lies ahead, all reply as overloaded.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler
from typing import Any

Json = dict[str, Any]
OVERLOADED: dict[str, tuple[int, Any]] = {
    "anthropic": (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    "openai": (429, {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}),
    "deepseek": (503, {"error": {"message": "Server overloaded", "type": "service_unavailable_error"}}),
    "gemini": (503, {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
}
VERDICT = "REWARD: 0.800"


class Upstream:
    """The state of the providers.

    Attributes:
        overloaded_until: time on `time.monotonic()` until which all providers are overloaded.
        answers: number of verdicts by provider.
    """

    def __init__(self) -> None:
        self.overloaded_until = 0.0
        self.answers: Counter[str] = Counter()

    def answer(self, provider: str, body: Json) -> tuple[int, Any]:
        """Return the status and the body of a provider's reply."""
        if time.monotonic() < self.overloaded_until:
            return OVERLOADED[provider]
        refusal = REFUSALS[provider](body)
        if refusal:
            return refusal
        self.answers[provider] += 1
        return 200, REPLIES[provider](body)


def _refuse_anthropic(body: Json) -> tuple[int, Any] | None:
    if "temperature" not in body or "top_p" not in body:
        return None
    message = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def _refuse_openai(body: Json) -> tuple[int, Any] | None:
    message = ""
    if body.get("temperature", 1) != 1:
        message = (
            f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. "
            "Only the default (1) value is supported."
        )
    for name in ("max_tokens", "top_p"):
        if name in body:
            message = f"Unsupported parameter: '{name}' is not supported with this model."
    if "chat_template_kwargs" in body:
        message = "Unrecognized request argument supplied: chat_template_kwargs"
    return (400, {"error": {"message": message, "type": "invalid_request_error", "code": None}}) if message else None


def _refuse_deepseek(body: Json) -> tuple[int, Any] | None:
    if body.get("response_format", {}).get("type") != "json_schema":
        return None
    message = "This response_format type is unavailable now"
    return 400, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def _refuse_gemini(body: Json) -> tuple[int, Any] | None:
    names = [name for name in ("chat_template_kwargs", "extra_body") if name in json.dumps(body)]
    lines = [f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in names]
    error = {"code": 400, "message": "\n".join(lines), "status": "INVALID_ARGUMENT"}
    return (400, {"error": error}) if names else None


def _reply_anthropic(body: Json) -> Json:
    content: Json = {"type": "text", "text": VERDICT}
    reason = "end_turn"
    if "output_format" in body or "output_config" in body:
        content = {"type": "text", "text": '{"REWARD": 0.8}'}
    elif body.get("tools"):
        content = {"type": "tool_use", "id": "t", "name": body["tools"][0]["name"], "input": {"REWARD": 0.8}}
        reason = "tool_use"
    usage = {"input_tokens": 10, "output_tokens": 5}
    message: Json = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": [content]}
    return {**message, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def _reply_openai(body: Json) -> Json:
    text = '{"REWARD": 0.8}' if "response_format" in body else VERDICT
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


def _reply_gemini(body: Json) -> Json:
    config = body.get("generationConfig", {})
    text = '{"REWARD": 0.8}' if any("chema" in name for name in config) else VERDICT
    candidate = {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": text}]}}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"candidates": [candidate], "usageMetadata": usage}


REFUSALS = {
    "anthropic": _refuse_anthropic,
    "openai": _refuse_openai,
    "deepseek": _refuse_deepseek,
    "gemini": _refuse_gemini,
}
REPLIES = {"anthropic": _reply_anthropic, "openai": _reply_openai, "deepseek": _reply_openai, "gemini": _reply_gemini}


def handler(upstream: Upstream) -> type[BaseHTTPRequestHandler]:
    """Return the handler of HTTP requests; the first part of the path is the provider."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, reply = upstream.answer(self.path.split("/")[1], body)
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
