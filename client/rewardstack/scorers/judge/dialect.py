"""What a judge's server takes beside the OpenAI interface that all have: known by what it says it is, learnt else.

A field that a server does not know is refused by some (OpenAI, Azure) and dropped without a word by others (Ollama, old
vLLM), so a known server is sent its own. An unknown one is sent what most take, and less after each refusal that names
a field (`refusals`).
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
FEWEST_TOP_LOGPROBS = 5
STRUCTURED_OUTPUTS_SINCE = (0, 11)
"""The vLLM that knows them; older ones have `guided_regex`."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What requests to a judge hold.

    Args:
        form: how a short reply is held to its form: by a field `structured_outputs`, `guided_regex` or `regex`, by a
            `response_format` with a regular expression (`regex_format`) or a JSON schema (`json_schema`), or not.
        labels: how the probabilities of labels are read: by token id (`ids`), among the likeliest tokens (`top`), or
            not.
        top_logprobs: how many likeliest tokens are asked for.
        thinking: the field that says whether the model may reason; empty for none.
        budget: whether `thinking_token_budget` is sent.
        begins: whether a reply that is to be a label is begun for the model (`continue_final_message`).
        limit: the field that bounds the reply's tokens.
        without: fields of sampling that are left out, sorted.
        guessed: whether it is uncertain what the server takes, which is then tried out before there are many requests.
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
        """The dialect without a field of the request that the server does not take; itself where it has no other way.

        Args:
            field: its name.
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
"""What is tried where a form's field is refused."""
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
"""https://docs.vllm.ai/en/v0.8.5/features/structured_outputs.html; before 0.6.5 it refuses what it does not know."""
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
"""OpenAI, Azure, LiteLLM, which names OpenAI as the owner of every model, and all others."""

OWNERS: Mapping[str, Dialect] = {"vllm": VLLM, "sglang": SGLANG, "llamacpp": LLAMA_CPP, "library": OLLAMA}
"""What servers write as `owned_by` of their models in `/v1/models`."""


def dialect_of(models: bytes) -> Dialect:
    """The dialect of the server that answered `/v1/models` with this; `UNKNOWN` where it does not tell."""
    try:
        first: Any = json.loads(models)["data"][0]
        owner, name = str(first["owned_by"]), str(first["id"])
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return UNKNOWN
    if owner == name:  # https://github.com/huggingface/text-generation-inference/blob/main/router/src/server.rs
        return TGI
    return OWNERS.get(owner, UNKNOWN)


def vllm_of(version: bytes) -> Dialect:
    """The dialect of a vLLM that answered `/version` with this; that of a new one where it does not tell."""
    try:
        numbers = re.match(r"(\d{1,4})\.(\d{1,4})\.", str(json.loads(version)["version"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return VLLM
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= STRUCTURED_OUTPUTS_SINCE:
        return VLLM
    return OLD_VLLM
