"""A chat completion, read with distrust."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rewardstack.core.messages import TEXTS
from rewardstack.errors import ReplyError
from rewardstack.scorers.judge.scale import Scale
from rewardstack.scorers.judge.verdict import END_OF_THINKING, UnreadableError, read_json_verdict, read_verdict

TOKEN_ID = "token_id:"
REASONING = ("reasoning", "reasoning_content", "thinking")
"""Where servers put what was thought: vLLM, Ollama and OpenRouter; SGLang, llama.cpp and old vLLM; others."""
BROKEN_OFF = ("abort", "error")
"""How a reply ends that the judge, or a provider behind it, was stopped in: vLLM and OpenRouter then say 200."""
Choice = Mapping[str, Any]
"""The one choice of a completion."""


class NoProbabilitiesError(ReplyError):
    """A reply does not tell the probabilities of tokens."""


def read_completion(data: bytes) -> Choice:
    """Return the choice of a chat completion.

    Raises:
        ReplyError: it is none, or the judge was stopped in the middle of it.
    """
    try:
        choice = json.loads(data)["choices"][0]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise ReplyError(f"it is no chat completion ({type(error).__name__})") from error
    if not isinstance(choice, dict):
        raise ReplyError("it is no chat completion")
    if choice.get("finish_reason") in BROKEN_OFF:
        raise ReplyError(f"the judge broke off its reply (finish_reason {choice['finish_reason']})")
    return choice


def _choice(reply: bytes | Choice) -> Choice:
    return read_completion(reply) if isinstance(reply, bytes) else reply


def reasoning_of(message: Mapping[str, Any]) -> Any:
    """What the model thought before its reply, in whichever field; something empty where there is nothing."""
    return next((message[field] for field in REASONING if message.get(field)), None)


def read_text_verdict(reply: bytes | Choice, scale: Scale, *, thinking: bool, structured: bool = False) -> float:
    """The verdict in words that a completion holds, from 0 to 1.

    Args:
        reply: the judge's, or its choice.
        scale: of the template.
        thinking: whether the model was allowed to reason before.
        structured: whether a JSON object was asked for; a server that does not heed this may reply in lines.

    Raises:
        UnreadableError: there is none.
    """
    choice = _choice(reply)
    text = read_text(choice, thinking=thinking)
    if structured and (value := read_json_verdict(text, scale)) is not None:
        return value
    return read_verdict(text, scale, cut=is_cut(choice))


def is_cut(choice: Choice) -> bool:
    """Whether a reply ended at the limit of tokens."""
    return choice.get("finish_reason") == "length"


def read_text(choice: Choice, *, thinking: bool) -> str:
    """The text of a reply.

    Args:
        choice: of a completion.
        thinking: whether the model was allowed to reason before.

    Raises:
        UnreadableError: there is none; says why.
    """
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text, reasoned = content_text(message.get("content")), bool(reasoning_of(message))
    if not text.strip():
        raise UnreadableError(_why_empty(choice, message, reasoned))
    if thinking and is_cut(choice) and not reasoned and END_OF_THINKING not in text:
        raise UnreadableError("its reasoning was cut; raise max_new_tokens or thinking_budget")
    return text


def content_text(content: Any) -> str:
    """The text of a message's content, which may be in parts; empty where there is none."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") in TEXTS]
        return "".join(str(part.get("text") or "") for part in parts)
    return content if isinstance(content, str) else ""


def _why_empty(choice: Choice, message: Mapping[str, Any], reasoned: bool) -> str:
    if refusal := message.get("refusal"):
        return f"the judge refused: {str(refusal)[:80]!r}"
    if choice.get("finish_reason") == "content_filter":
        return "the judge's provider filtered its reply (finish_reason content_filter)"
    if isinstance(content := message.get("content"), list) and content:
        kinds = sorted({str(part.get("type")) for part in content if isinstance(part, dict)})
        return f"its content is in parts of which none is text ({', '.join(kinds) or 'of no type'})"
    if not reasoned:
        return "it was cut before its first word; raise max_new_tokens" if is_cut(choice) else "it is empty"
    if is_cut(choice):
        return "nothing but reasoning, which was cut; raise max_new_tokens or thinking_budget"
    return "nothing but reasoning: --reasoning-parser takes the reply for thoughts; leave enable_thinking out"


def read_label_verdict(
    reply: bytes | Choice, ids: Sequence[int], values: Sequence[float], floor: float
) -> tuple[float, float]:
    """The verdict that lies in the probabilities of labels.

    Args:
        reply: the judge's, or its choice.
        ids: the labels' tokens.
        values: what each label is worth, from 0 to 1.
        floor: probability that they must have together.

    Returns:
        The expected value over the labels, from 0 to 1, and the probability that they have together.

    Raises:
        UnreadableError: they have less than `floor`, or the reply does not tell.
    """
    try:
        entries = _choice(reply)["logprobs"]["content"][0]["top_logprobs"]
        logprobs = {entry["token"]: float(entry["logprob"]) for entry in entries}
        chances = [math.exp(min(logprobs[f"{TOKEN_ID}{one}"], 0.0)) for one in ids]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ReplyError(
            "the judge does not tell the labels' probabilities: it needs vLLM with `logprob_token_ids`, and "
            "--max-logprobs not below the number of labels"
        ) from error
    return _expected(chances, values, floor)


def read_top_verdict(
    reply: bytes | Choice, labels: Sequence[str], values: Sequence[float], floor: float
) -> tuple[float, float]:
    """The verdict that lies in the probabilities of labels among the likeliest tokens; one that is not there has none.

    Args:
        reply: the judge's, or its choice.
        labels: each a token's text.
        values: what each label is worth, from 0 to 1.
        floor: probability that they must have together.

    Returns:
        As `read_label_verdict` does.

    Raises:
        NoProbabilitiesError: the reply has none, as if they had not been asked for.
        UnreadableError: they have less than `floor`, or what the reply has cannot be read.
    """
    logprobs = _choice(reply).get("logprobs")
    tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
    if tokens is None:
        raise NoProbabilitiesError("the judge does not tell the probabilities of tokens")
    try:
        entries = tokens[0].get("top_logprobs") or ()
        likeliest = [(str(entry["token"]).strip(), min(float(entry["logprob"]), 0.0)) for entry in entries]
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableError("the probabilities of its first token are not there") from error
    if not likeliest:
        raise NoProbabilitiesError("the judge does not tell the probabilities of tokens")
    chances = [math.fsum(math.exp(logprob) for text, logprob in likeliest if text == label.strip()) for label in labels]
    return _expected(chances, values, floor)


def _expected(chances: Sequence[float], values: Sequence[float], floor: float) -> tuple[float, float]:
    """The expected value over labels of these probabilities, and what they have together."""
    mass = math.fsum(chances)
    if not mass >= floor or mass <= 0 or not mass <= 1.001:
        raise UnreadableError(f"the labels have a probability of {mass:.3g} together, less than {floor:g}")
    return math.fsum(chance * value for chance, value in zip(chances, values, strict=True)) / mass, min(mass, 1.0)
