"""Read from a server's error message which request fields the server rejects, and omit them.

A message may quote a sample, whose text comes from a policy and can imitate an error. So only the start of a message is
parsed, and only fields of the request are returned.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rewardstack.errors import RejectedError
from rewardstack.scorers.judge.dialect import Dialect

ALIASES = {"top_n_tokens": "top_logprobs", "response_format.type": "response_format"}
"""Names that servers use in errors for fields that have another name in the request."""

_PREAMBLE = re.compile(
    r"""
      # the start of a JSON body: FastAPI's `detail`, or an error object up to its `message`
      (?:\{"detail":[ ]|\[?\{.{0,20}?(?:"\w{1,20}":[ ](?:"[^"]{0,60}"|[\w.]{1,20}),[ ]){0,4}"message":[ ]"|"?)
      (?:litellm\.)?(?:\w{1,40}(?:Error|Exception)[ ]?[-:][ ]){0,3}      # LiteLLM: its exception, then the provider's
      (?:Error[ ]code:[ ]\d{3}[ ]-[ ]\{'error':[ ]\{'message':[ ]\\?["'])?  # the OpenAI client, called by LiteLLM
      (?:Input[ ]validation[ ]error:[ ])?                              # TGI
    """,
    re.VERBOSE,
)
_NAME = r"\\?[`'\"]?([\w.]{1,40})\\?[`'\"]?"
MESSAGE_PATTERNS: tuple[tuple[str, str], ...] = (
    (
        r"Unrecognized request arguments? supplied: ([\w, ]{1,250})",
        "https://github.com/openai/openai-python/issues/1724",
    ),
    (rf"Unsupported (?:parameter|value): {_NAME}", "https://github.com/FoundationAgents/OpenManus/issues/555"),
    (rf"Unknown parameter: {_NAME}", "https://platform.openai.com/docs/guides/error-codes"),
    (rf"Invalid parameter: {_NAME} of type", "https://github.com/langchain-ai/langchain/issues/31490"),
    (r"You are not allowed to request (logprobs)", "https://platform.openai.com/docs/guides/reasoning"),
    (rf"{_NAME} (?:is|are) not supported (?:with|for) this model", "https://github.com/groq/groq-python/issues/25"),
    (rf"property {_NAME} is unsupported", "https://github.com/AnswerDotAI/shell_sage/issues/9"),
    (
        r"\[\{'type': 'extra_forbidden', 'loc': \('body', '(\w{1,40})'\)",
        "https://github.com/vllm-project/vllm/issues/3657",
    ),
    (
        r'\[?\{\\?"type\\?": ?\\?"extra_forbidden\\?", ?\\?"loc\\?": ?\[\\?"body\\?", ?\\?"(\w{1,40})\\?"\]',
        "https://github.com/partITech/php-mistral/issues/76",
    ),
    (rf"{_NAME}: Extra inputs are not permitted", "https://github.com/BerriAI/litellm/issues/13825"),
    (
        r"\w{1,40} does not support parameters: [\[{]([^\]]{1,250})",
        "https://docs.litellm.ai/docs/completion/drop_params",
    ),
    (r"(thinking_token_budget) is set but", "https://docs.vllm.ai/en/latest/features/reasoning_outputs/"),
    (
        r"(continue_final_message) is set but",
        "https://github.com/huggingface/transformers/blob/main/src/transformers/utils/chat_template_utils.py",
    ),
    (
        r"\w{1,40} renderer does not support (continue_final_message)",
        "https://github.com/vllm-project/vllm/blob/main/vllm/renderers/inkling.py",
    ),
    (
        r"Requested sample (logprobs) of \d+, which is greater than max allowed",
        "https://github.com/vllm-project/vllm/issues/5299",
    ),
    (
        r"\\?[`'\"]?(top_n_tokens|top_logprobs)\\?[`'\"]? must be >= 0 and <= \d+",
        "https://github.com/huggingface/text-generation-inference/blob/main/router/src/validation.rs",
    ),
    (
        r"Failed to deserialize the JSON body into the target type: ([\w.]{1,40})",
        "https://docs.rs/axum/latest/axum/extract/rejection/enum.JsonRejection.html",
    ),
    (
        rf"Invalid JSON payload received\. Unknown name {_NAME}",
        "https://github.com/zed-industries/zed/issues/44875",
    ),
    (rf"The parameter {_NAME} specified", "https://github.com/agno-agi/agno/issues/2553"),
)
"""Patterns for the start of a message, each with a page that shows such a message.

The group of a pattern matches one or more field names.
"""
_MESSAGE = re.compile("|".join(f"(?:{pattern})" for pattern, _ in MESSAGE_PATTERNS))
_TOO_MANY_LOGPROBS = "Requested sample logprobs"
"""Start of vLLM's error about the value of `top_logprobs`, which the message calls `logprobs`."""
_VALUE_ERRORS = ("Failed to deserialize", "The parameter ")
"""Starts of messages that may reject only the value of a field. Fields in `_OPTION_FIELDS` are then not omitted.

`Unsupported value` is not one of these starts: OpenAI's reasoning models accept only the default value, so the field
must be omitted.
"""
_OPTION_FIELDS = frozenset(
    {"temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "thinking_token_budget"}
)
"""Fields whose values come from a sample's options, so another sample's value may be valid."""


def rejected_fields(error: RejectedError, fields: Collection[str]) -> list[str]:
    """Return the fields of a request that a server rejects; empty if the error has another cause.

    Args:
        error: the server's error.
        fields: the names of the request's fields.
    """
    text = error.complaint
    preamble = _PREAMBLE.match(text)
    match = _MESSAGE.match(text, preamble.end()) if preamble else None
    if match is None:
        return []
    if match[0].startswith(_TOO_MANY_LOGPROBS):
        return ["top_logprobs"] if "top_logprobs" in fields else []
    names = next(group for group in match.groups() if group is not None)
    rejected = {ALIASES.get(name, name) for name in re.findall(r"[\w.]{1,40}", names)}
    if match[0].startswith(_VALUE_ERRORS):
        rejected -= _OPTION_FIELDS
    return [field for field in fields if field in rejected]


def omit_fields(dialect: Dialect, fields: Collection[str]) -> Dialect:
    """Return the dialect without these fields, or with alternatives to them; see `Dialect.omit`."""
    for field in fields:
        dialect = dialect.omit(field)
    return dialect
