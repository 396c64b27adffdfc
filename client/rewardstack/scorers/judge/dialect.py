"""Describe the dialects of the OpenAI API: the optional request fields that a judge's server supports.

Some servers reject unknown fields (OpenAI, Azure), others ignore them (Ollama, vLLM since 0.6.5). A server that is
recognized gets the fields that it supports. Other servers first get the most common fields; fields that a server
rejects are then omitted (`rejected_fields`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

ReplyConstraint = Literal["structured_outputs", "guided_regex", "regex", "regex_format", "json_schema", ""]
LabelLookup = Literal["ids", "top", ""]
ThinkingField = Literal["chat_template_kwargs", "reasoning_effort", ""]

TOP_LOGPROBS = 20
"""Number of most likely tokens to request, unless a server rejects this number."""
REDUCED_TOP_LOGPROBS = 5
"""Number of most likely tokens to request if a server rejects `TOP_LOGPROBS`."""
STRUCTURED_OUTPUTS_VERSION = (0, 11)
"""First vLLM version with the field `structured_outputs`; older versions have `guided_regex`."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The optional fields of requests to a judge.

    Args:
        constraint: how a request constrains the reply's form. `structured_outputs`, `guided_regex` and `regex` are the
            request fields with these names. `regex_format` is a `response_format` with a regular expression, and
            `json_schema` is a `response_format` with a JSON schema. Empty for no constraint.
        label_lookup: whether label probabilities are read by token ID (`ids`) or from the most likely tokens (`top`);
            empty if the server does not return probabilities.
        top_logprobs: number of most likely tokens to request.
        thinking_field: field that turns reasoning on or off; empty for none.
        has_thinking_budget: whether to send `thinking_token_budget` when reasoning is on.
        starts_reply: whether requests for labels include the start of the reply (`continue_final_message`).
        limit_field: field that limits the tokens of the reply.
        omitted_fields: sampling fields to omit, sorted.
        is_guessed: whether the dialect is a guess; if so, a trial request tests the fields before samples are sent.
    """

    constraint: ReplyConstraint = "structured_outputs"
    label_lookup: LabelLookup = "ids"
    top_logprobs: int = TOP_LOGPROBS
    thinking_field: ThinkingField = "chat_template_kwargs"
    has_thinking_budget: bool = True
    starts_reply: bool = False
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    omitted_fields: tuple[str, ...] = ()
    is_guessed: bool = False

    def omit(self, field: str) -> Dialect:
        """Return the dialect without a rejected field, or with an alternative to the field.

        The dialect is unchanged if it does not use the field.
        """
        if field in _CONSTRAINT_FIELDS:
            return (
                replace(self, constraint=_WEAKER_CONSTRAINT[self.constraint])
                if _CONSTRAINT_FIELD[self.constraint] == field
                else self
            )
        if field == "max_tokens":
            return replace(self, limit_field="max_completion_tokens")
        if field == self.thinking_field:
            return replace(self, thinking_field="")
        if field == "thinking_token_budget":
            return replace(self, has_thinking_budget=False)
        if field in ("continue_final_message", "add_generation_prompt"):
            return replace(self, starts_reply=False)
        if field in ("logprob_token_ids", "return_tokens_as_token_ids"):
            return replace(self, label_lookup="top") if self.label_lookup == "ids" else self
        if field == "top_logprobs" and self.top_logprobs > REDUCED_TOP_LOGPROBS:
            return replace(self, top_logprobs=REDUCED_TOP_LOGPROBS)
        if field in ("logprobs", "top_logprobs"):
            return replace(self, label_lookup="")
        if field in ("temperature", "top_p", "seed"):
            return replace(self, omitted_fields=tuple(sorted({*self.omitted_fields, field})))
        return self


_WEAKER_CONSTRAINT: Mapping[ReplyConstraint, ReplyConstraint] = {
    "structured_outputs": "json_schema",
    "guided_regex": "json_schema",
    "regex": "json_schema",
    "regex_format": "",
    "json_schema": "",
    "": "",
}
"""Maps each constraint to its replacement if the server rejects the constraint's field; empty for no constraint."""
_CONSTRAINT_FIELD: Mapping[ReplyConstraint, str] = {
    "structured_outputs": "structured_outputs",
    "guided_regex": "guided_regex",
    "regex": "regex",
    "regex_format": "response_format",
    "json_schema": "response_format",
    "": "",
}
_CONSTRAINT_FIELDS = frozenset(filter(None, _CONSTRAINT_FIELD.values()))

VLLM = Dialect(starts_reply=True)
"""https://docs.vllm.ai/en/latest/features/structured_outputs/"""
OLD_VLLM = Dialect(constraint="guided_regex", label_lookup="top", is_guessed=True)
"""https://docs.vllm.ai/en/v0.8.5/features/structured_outputs.html; versions before 0.6.5 reject unknown fields."""
SGLANG = Dialect(constraint="regex", label_lookup="top", has_thinking_budget=False, starts_reply=True)
"""https://docs.sglang.io/docs/advanced_features/structured_outputs.md; `continue_final_message` is in
https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py"""
LLAMA_CPP = Dialect(constraint="json_schema", label_lookup="top", has_thinking_budget=False)
"""https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"""
OLLAMA = Dialect(
    constraint="json_schema", label_lookup="top", thinking_field="reasoning_effort", has_thinking_budget=False
)
"""https://docs.ollama.com/api/openai-compatibility"""
TGI = Dialect(
    constraint="regex_format",
    label_lookup="top",
    top_logprobs=REDUCED_TOP_LOGPROBS,
    thinking_field="",
    has_thinking_budget=False,
)
"""https://huggingface.co/docs/text-generation-inference/basic_tutorials/using_guidance"""
UNKNOWN = Dialect(constraint="json_schema", label_lookup="top", has_thinking_budget=False, is_guessed=True)
"""The dialect of servers that are not recognized. These include OpenAI, Azure, and LiteLLM, which reports OpenAI as the
owner of all models."""

OWNERS: Mapping[str, Dialect] = {"vllm": VLLM, "sglang": SGLANG, "llamacpp": LLAMA_CPP, "library": OLLAMA}
"""Dialects by the field `owned_by` of a model in `/v1/models`."""


def detect_dialect(models: bytes) -> Dialect:
    """Return the dialect of a server from its reply to `/v1/models`; `UNKNOWN` if the server is not recognized."""
    try:
        first: Any = json.loads(models)["data"][0]
        owner, name = str(first["owned_by"]), str(first["id"])
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return UNKNOWN
    # TGI reports the same text as ID and as owner:
    # https://github.com/huggingface/text-generation-inference/blob/main/router/src/server.rs
    if owner == name:
        return TGI
    return OWNERS.get(owner, UNKNOWN)


def parse_vllm_version(version: bytes) -> Dialect:
    """Return the dialect of a vLLM server from its reply to `/version`; `VLLM` if the version cannot be read."""
    try:
        numbers = re.match(r"(\d{1,4})\.(\d{1,4})\.", str(json.loads(version)["version"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return VLLM
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= STRUCTURED_OUTPUTS_VERSION:
        return VLLM
    return OLD_VLLM
