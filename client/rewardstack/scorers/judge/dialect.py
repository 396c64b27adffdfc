"""Dialects of the OpenAI API: which optional fields of a request a judge's server supports.

Some servers refuse unknown fields (OpenAI, Azure), others ignore them (Ollama, old vLLM). So a recognized server
gets the fields that it supports. Any other server first gets the most common fields; each refusal that names a field
removes this field (`refusals`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Form = Literal["structured_outputs", "guided_regex", "regex", "regex_format", "json_schema", ""]
Labels = Literal["ids", "top", ""]
Thinking = Literal["chat_template_kwargs", "reasoning_effort", ""]

MOST_TOP_LOGPROBS = 20
"""Number of most likely tokens to request first."""
FEWEST_TOP_LOGPROBS = 5
"""Number of most likely tokens to request from a server that refuses `MOST_TOP_LOGPROBS`."""
STRUCTURED_OUTPUTS_SINCE = (0, 11)
"""First vLLM version with the field `structured_outputs`; older versions have `guided_regex`."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The optional fields of requests to a judge.

    Args:
        form: how a short reply is constrained: by a field `structured_outputs`, `guided_regex` or `regex`, or by a
            `response_format` with a regular expression (`regex_format`) or a JSON schema (`json_schema`); empty for
            no constraint.
        labels: how label probabilities are read: by token ID (`ids`) or from the most likely tokens (`top`); empty if
            the server does not return probabilities.
        top_logprobs: number of most likely tokens to request.
        thinking: field that turns reasoning on or off; empty for none.
        budget: whether `thinking_token_budget` is sent when reasoning is on.
        begins: whether a request for labels includes the start of the reply (`continue_final_message`).
        limit: field that limits the tokens of the reply.
        without: sampling fields to omit, sorted.
        guessed: whether it is uncertain that the server supports these fields, so that a trial request is sent first.
    """

    form: Form = "structured_outputs"
    labels: Labels = "ids"
    top_logprobs: int = MOST_TOP_LOGPROBS
    thinking: Thinking = "chat_template_kwargs"
    budget: bool = True
    begins: bool = False
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    without: tuple[str, ...] = ()
    guessed: bool = False

    def refused(self, field: str) -> Dialect:
        """Return the dialect without a refused field, or with an alternative to it; unchanged if it lacks the field.

        Args:
            field: name of the refused field.
        """
        if field in _FORM_FIELDS:
            return replace(self, form=_LESS_FORM[self.form]) if _FORM_FIELD[self.form] == field else self
        if field == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if field == self.thinking:
            return replace(self, thinking="")
        if field == "thinking_token_budget":
            return replace(self, budget=False)
        if field in ("continue_final_message", "add_generation_prompt"):
            return replace(self, begins=False)
        if field in ("logprob_token_ids", "return_tokens_as_token_ids"):
            return replace(self, labels="top") if self.labels == "ids" else self
        if field == "top_logprobs" and self.top_logprobs > FEWEST_TOP_LOGPROBS:
            return replace(self, top_logprobs=FEWEST_TOP_LOGPROBS)
        if field in ("logprobs", "top_logprobs"):
            return replace(self, labels="")
        if field in ("temperature", "top_p", "seed"):
            return replace(self, without=tuple(sorted({*self.without, field})))
        return self


_LESS_FORM: Mapping[Form, Form] = {
    "structured_outputs": "json_schema",
    "guided_regex": "json_schema",
    "regex": "json_schema",
    "regex_format": "",
    "json_schema": "",
    "": "",
}
"""The form to try next, by the form whose field was refused."""
_FORM_FIELD: Mapping[Form, str] = {
    "structured_outputs": "structured_outputs",
    "guided_regex": "guided_regex",
    "regex": "regex",
    "regex_format": "response_format",
    "json_schema": "response_format",
    "": "",
}
_FORM_FIELDS = frozenset(filter(None, _FORM_FIELD.values()))

VLLM = Dialect(begins=True)
"""https://docs.vllm.ai/en/latest/features/structured_outputs/"""
OLD_VLLM = Dialect(form="guided_regex", labels="top", guessed=True)
"""https://docs.vllm.ai/en/v0.8.5/features/structured_outputs.html; versions before 0.6.5 refuse unknown fields."""
SGLANG = Dialect(form="regex", labels="top", budget=False, begins=True)
"""https://docs.sglang.io/docs/advanced_features/structured_outputs.md; `continue_final_message` is in
https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py"""
LLAMA_CPP = Dialect(form="json_schema", labels="top", budget=False)
"""https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"""
OLLAMA = Dialect(form="json_schema", labels="top", thinking="reasoning_effort", budget=False)
"""https://docs.ollama.com/api/openai-compatibility"""
TGI = Dialect(form="regex_format", labels="top", top_logprobs=FEWEST_TOP_LOGPROBS, thinking="", budget=False)
"""https://huggingface.co/docs/text-generation-inference/basic_tutorials/using_guidance"""
UNKNOWN = Dialect(form="json_schema", labels="top", budget=False, guessed=True)
"""OpenAI, Azure, LiteLLM (which reports OpenAI as the owner of all models), and all servers that are not recognized."""

OWNERS: Mapping[str, Dialect] = {"vllm": VLLM, "sglang": SGLANG, "llamacpp": LLAMA_CPP, "library": OLLAMA}
"""Dialects by the field `owned_by` of a model in `/v1/models`."""


def dialect_of(models: bytes) -> Dialect:
    """Return the dialect of a server from its reply to `/v1/models`; `UNKNOWN` if the server is not recognized."""
    try:
        first: Any = json.loads(models)["data"][0]
        owner, name = str(first["owned_by"]), str(first["id"])
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return UNKNOWN
    if owner == name:  # https://github.com/huggingface/text-generation-inference/blob/main/router/src/server.rs
        return TGI
    return OWNERS.get(owner, UNKNOWN)


def vllm_of(version: bytes) -> Dialect:
    """Return the dialect of a vLLM server from its reply to `/version`; `VLLM` if the version cannot be read."""
    try:
        numbers = re.match(r"(\d{1,4})\.(\d{1,4})\.", str(json.loads(version)["version"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return VLLM
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= STRUCTURED_OUTPUTS_SINCE:
        return VLLM
    return OLD_VLLM
