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
ThinkingField = Literal["chat_template_kwargs", "enable_thinking", "reasoning_effort", ""]

TOP_LOGPROBS = 20
"""Number of most likely tokens to request, unless a server rejects this number."""
REDUCED_TOP_LOGPROBS = 5
"""Number of most likely tokens to request if a server rejects `TOP_LOGPROBS`."""
STRUCTURED_OUTPUTS_VERSION = (0, 11)
"""First vLLM version with the field `structured_outputs`; older versions have `guided_regex`."""


Value = float | bool | None
"""What a server demands for a field; None if the field is omitted."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The optional fields of requests to a judge.

    What a request sends depends on the fields in `values` only, and not on the order in which a server rejected them.

    Args:
        constraints: how a request may constrain the reply's form, the best way first; see `constraint`.
        labels: how label probabilities may be read, the best way first; see `label_lookup`.
        most_likely: number of most likely tokens to request.
        thinking: field that turns reasoning on or off; empty for none.
        budgets_thinking: whether the server supports `thinking_token_budget`.
        continues_reply: whether the server supports `continue_final_message`.
        values: the fields that a server rejected or that the configuration omits, sorted, with the values to send
            instead; None to omit the field.
        is_guessed: whether the dialect is a guess; if so, a trial request tests the fields before samples are sent.
    """

    constraints: tuple[ReplyConstraint, ...] = ("structured_outputs", "json_schema")
    labels: tuple[LabelLookup, ...] = ("ids", "top")
    most_likely: int = TOP_LOGPROBS
    thinking: ThinkingField = "chat_template_kwargs"
    budgets_thinking: bool = True
    continues_reply: bool = False
    values: tuple[tuple[str, Value], ...] = ()
    is_guessed: bool = False

    def omit(self, field: str, value: Value = None) -> Dialect:
        """Return the dialect without a rejected field, with the value that the server demands, or with another field.

        Args:
            field: a field that was sent.
            value: the value that the server demands; None to omit the field.
        """
        changes = {field: value}
        if field in ("logprobs", "top_logprobs") and self.top_logprobs > REDUCED_TOP_LOGPROBS:
            changes = {"top_logprobs": REDUCED_TOP_LOGPROBS}
        elif field == "chat_template_kwargs" and value is not None:
            changes = {field: None, "enable_thinking": value}
        return replace(self, values=tuple(sorted({**dict(self.values), **changes}.items())))

    def has(self, *fields: str) -> bool:
        """Return whether none of these fields is omitted."""
        return not any((field, None) in self.values for field in fields)

    @property
    def constraint(self) -> ReplyConstraint:
        """How a request constrains the reply's form.

        `structured_outputs`, `guided_regex` and `regex` are the request fields with these names. `regex_format` is a
        `response_format` with a regular expression, and `json_schema` is a `response_format` with a JSON schema. Empty
        for no constraint.
        """
        return next((one for one in self.constraints if self.has(_FORMATS.get(one, one))), "")

    @property
    def label_lookup(self) -> LabelLookup:
        """Whether label probabilities are read by token ID (`ids`) or from the most likely tokens (`top`).

        Empty if the server does not return probabilities.
        """
        return next((one for one in self.labels if self.has(*LOOKUP_FIELDS[one])), "")

    @property
    def top_logprobs(self) -> int:
        """Number of most likely tokens to request."""
        return int(dict(self.values).get("top_logprobs", self.most_likely) or 0)

    @property
    def thinking_field(self) -> ThinkingField:
        """Field that turns reasoning on or off; empty for none."""
        if "enable_thinking" in dict(self.values) and self.has("enable_thinking"):
            return "enable_thinking"
        return self.thinking if self.has(self.thinking) else ""

    @property
    def has_thinking_budget(self) -> bool:
        """Whether to send `thinking_token_budget` when reasoning is on."""
        return self.budgets_thinking and self.has("thinking_token_budget")

    @property
    def starts_reply(self) -> bool:
        """Whether requests for labels include the start of the reply (`continue_final_message`)."""
        return self.continues_reply and self.has("continue_final_message", "add_generation_prompt")

    @property
    def limit_field(self) -> str:
        """Field that limits the tokens of the reply; empty for none."""
        return next(filter(self.has, LIMIT_FIELDS), "")


LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
LOOKUP_FIELDS: Mapping[LabelLookup, tuple[str, ...]] = {
    "ids": ("logprobs", "logprob_token_ids", "return_tokens_as_token_ids"),
    "top": ("logprobs", "top_logprobs"),
}
_FORMATS: Mapping[ReplyConstraint, str] = {"regex_format": "response_format", "json_schema": "response_format"}

VLLM = Dialect(continues_reply=True)
"""https://docs.vllm.ai/en/latest/features/structured_outputs/"""
OLD_VLLM = Dialect(("guided_regex", "json_schema"), ("top",), is_guessed=True)
"""https://docs.vllm.ai/en/v0.8.5/features/structured_outputs.html; versions before 0.6.5 reject unknown fields."""
SGLANG = Dialect(("regex", "json_schema"), ("top",), budgets_thinking=False, continues_reply=True)
"""https://docs.sglang.io/docs/advanced_features/structured_outputs.md; `continue_final_message` is in
https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/protocol.py"""
LLAMA_CPP = Dialect(("json_schema",), ("top",), budgets_thinking=False)
"""https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"""
OLLAMA = replace(LLAMA_CPP, thinking="reasoning_effort")
"""https://docs.ollama.com/api/openai-compatibility"""
TGI = Dialect(("regex_format",), ("top",), REDUCED_TOP_LOGPROBS, thinking="", budgets_thinking=False)
"""https://huggingface.co/docs/text-generation-inference/basic_tutorials/using_guidance"""
UNKNOWN = replace(LLAMA_CPP, is_guessed=True)
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
