"""Parse chat completions: the text of the reply, and the verdict in the text or in token probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack.cause import Cause
from rewardstack.core.messages import TEXTS
from rewardstack.errors import ReplyError
from rewardstack.scorers.judge.scale import Scale
from rewardstack.scorers.judge.verdict import IncompleteError, UnreadableError, parse_verdict

TOKEN_ID = "token_id:"
"""Prefix of a token ID in vLLM's probabilities (`return_tokens_as_token_ids`)."""
REASONING = ("reasoning", "reasoning_content", "thinking")
"""Fields of a message that may contain the reasoning.

vLLM, Ollama and OpenRouter send `reasoning`; SGLang, llama.cpp and old vLLM send `reasoning_content`.
"""
INTERRUPTED = ("abort", "error")
"""Values of `finish_reason` for a request that the server gave up, with HTTP status 200, such as vLLM at its end."""
COMPLETE = frozenset({"stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "endoftext"})
"""Values of `finish_reason`, in lower case, for a reply that ended by itself: those of OpenAI, Anthropic, TGI, Cohere …

A reply with any other value, such as `null`, is incomplete. Servers that report no finish reason at all are trusted.
"""
TRUNCATED = frozenset({"length", "max_tokens", "max_output_tokens", "max_completion_tokens"})
"""Values of `finish_reason`, in lower case, for a reply that was truncated at the token limit."""
REFUSED = frozenset({"refusal", "content_filter", "safety"})
Choice = Mapping[str, Any]
"""The first of a completion's `choices`, as parsed JSON."""


class NoProbabilitiesError(ReplyError):
    """A reply that should have token probabilities has none."""


def read_completion(data: bytes) -> Choice:
    """Return the first choice of a chat completion.

    Raises:
        ReplyError: the reply is not a chat completion, or was interrupted.
    """
    try:
        reply = json.loads(data)
        choice = reply["choices"][0]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise ReplyError(f"not a chat completion ({type(error).__name__})") from error
    if not isinstance(choice, dict):
        raise ReplyError("not a chat completion")
    if choice.get("finish_reason") in INTERRUPTED:
        raise ReplyError(f"the judge's reply was interrupted (finish_reason {choice['finish_reason']})")
    if fault := reply.get("error") or choice.get("error"):
        raise ReplyError(f"the judge's reply has an error beside its text: {str(fault)[:80]}")
    return choice


def _first_choice(reply: bytes | Choice) -> Choice:
    return read_completion(reply) if isinstance(reply, bytes) else reply


def get_reasoning(message: Mapping[str, Any]) -> Any:
    """Return the reasoning in a message; None if the message has no reasoning."""
    return next((message[field] for field in REASONING if message.get(field)), None)


def parse_text_verdict(reply: bytes | Choice, scale: Scale) -> float:
    """Return the verdict in a completion's text, from 0 to 1.

    Args:
        reply: the completion, or its first choice.
        scale: the scale of the template.

    Raises:
        UnreadableError: the reply is incomplete, or its text has no valid verdict.
    """
    return parse_verdict(read_text(_first_choice(reply)), scale)


def _finish_reason(choice: Choice) -> str:
    return str(choice.get("finish_reason", "stop"))


def is_complete(choice: Choice, *, is_label: bool = False) -> bool:
    """Return whether a reply ended by itself; a label, which is one token, may also end at the token limit."""
    reason = _finish_reason(choice).lower()
    return reason in COMPLETE or (is_label and reason in TRUNCATED)


def check_complete(choice: Choice, *, is_label: bool = False) -> None:
    """Raise IncompleteError if a reply did not end by itself."""
    if is_complete(choice, is_label=is_label):
        return
    reason = _finish_reason(choice)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    refusal, cause = message.get("refusal"), None
    if reason.lower() in TRUNCATED:
        what = "its reasoning" if get_reasoning(message) and not content_text(message.get("content")) else "it"
        why = f"{what} was truncated at max_new_tokens; raise max_new_tokens or thinking_budget"
    elif refusal or reason == "refusal":
        why = f"the judge refused{f': {str(refusal)[:80]!r}' if refusal else ''}"
        cause = Cause.JUDGE_REFUSED
    else:
        is_filtered = reason.lower() in REFUSED
        why = "the judge's provider filtered its reply" if is_filtered else "it was interrupted"
        cause = Cause.JUDGE_REFUSED if is_filtered else None
    raise IncompleteError(f"{why} (finish_reason {reason[:40]})", is_truncated=reason.lower() in TRUNCATED, cause=cause)


def read_text(choice: Choice) -> str:
    """Return the text of a reply.

    Raises:
        UnreadableError: the reply is incomplete, or has no text.
    """
    check_complete(choice)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text = content_text(message.get("content"))
    if not text.strip() or message.get("refusal"):
        cause = Cause.JUDGE_REFUSED if message.get("refusal") else None
        raise UnreadableError(_describe_empty(message), cause=cause)
    return text


def content_text(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts; empty if the content has no text."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") in TEXTS]
        return "".join(str(part.get("text") or "") for part in parts)
    return content if isinstance(content, str) else ""


def _describe_empty(message: Mapping[str, Any]) -> str:
    if refusal := message.get("refusal"):
        return f"the judge refused: {str(refusal)[:80]!r}"
    if isinstance(content := message.get("content"), list) and content:
        kinds = sorted({str(part.get("type")) for part in content if isinstance(part, dict)})
        return f"its content has no text part ({', '.join(kinds) or 'parts have no type'})"
    if not get_reasoning(message):
        return "it is empty"
    return (
        "it has only reasoning, because the server's --reasoning-parser treats the whole reply as reasoning; "
        "leave enable_thinking out"
    )


def parse_label_verdict(
    reply: bytes | Choice, ids: Sequence[int], values: Sequence[float], floor: float
) -> tuple[float, float]:
    """Return the verdict from the probabilities of label tokens, which the reply lists by token ID.

    Args:
        reply: the completion, or its first choice.
        ids: token IDs of the labels.
        values: value of each label, from 0 to 1.
        floor: minimum total probability of the labels.

    Returns:
        The expected value over the labels, from 0 to 1, and their total probability.

    Raises:
        UnreadableError: the total probability is below `floor`.
        ReplyError: the reply does not have the probabilities.
    """
    try:
        entries = _first_choice(reply)["logprobs"]["content"][0]["top_logprobs"]
        logprobs = {entry["token"]: float(entry["logprob"]) for entry in entries}
        probabilities = [math.exp(min(logprobs[f"{TOKEN_ID}{one}"], 0.0)) for one in ids]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ReplyError(
            "the judge's reply has no label probabilities: this needs vLLM with `logprob_token_ids`, and "
            "--max-logprobs of at least the number of labels"
        ) from error
    return _expected_value(probabilities, values, floor)


def parse_top_verdict(
    reply: bytes | Choice, labels: Sequence[str], values: Sequence[float], floor: float
) -> tuple[float, float]:
    """Return the verdict from the probabilities of the most likely tokens; labels not among these have probability 0.

    Args:
        reply: the completion, or its first choice.
        labels: texts of the label tokens.
        values: value of each label, from 0 to 1.
        floor: minimum total probability of the labels.

    Returns:
        The expected value over the labels, from 0 to 1, and their total probability.

    Raises:
        NoProbabilitiesError: the reply has no token probabilities.
        UnreadableError: the total probability is below `floor`, or the token probabilities are malformed.
    """
    logprobs = _first_choice(reply).get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if tokens is None:
        raise NoProbabilitiesError("the judge's reply has no token probabilities")
    try:
        entries = tokens[0].get("top_logprobs") or ()
        likeliest = [(str(entry["token"]).strip(), min(float(entry["logprob"]), 0.0)) for entry in entries]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableError("the probabilities of its first token are missing") from error
    if not likeliest:
        raise NoProbabilitiesError("the judge's reply has no token probabilities")
    probabilities = [
        math.fsum(math.exp(logprob) for text, logprob in likeliest if text == label.strip()) for label in labels
    ]
    return _expected_value(probabilities, values, floor)


def _expected_value(probabilities: Sequence[float], values: Sequence[float], floor: float) -> tuple[float, float]:
    """Return the expected value over the labels, and their total probability."""
    mass = math.fsum(probabilities)
    if not mass >= floor or mass <= 0 or not mass <= 1.001:
        raise UnreadableError(f"the total probability of the labels is {mass:.4g}, expected {floor:g} to 1")
    return math.fsum(probability * value for probability, value in zip(probabilities, values, strict=True)) / mass, min(
        mass, 1.0
    )
