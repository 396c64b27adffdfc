"""`overlong`: DAPO's soft overlong punishment. The value is 0 or negative.

    value = min(-(completion_tokens - (max_response_length - overlong_buffer)) / overlong_buffer * overlong_penalty, 0)

This is equation 13 of Yu et al. 2025 (arXiv:2503.14476) without its lower bound of -1, as verl's `DAPORewardManager`
computes it. Add the value to another reward with a weighted sum.
"""

from __future__ import annotations

from rewardstack.core.fields import Fields, field_error
from rewardstack_rules.functions.outcome import Outcome

MAX_TOKENS = 10**9


def overlong(
    response: str,
    completion_tokens: float | None = None,
    max_response_length: float | None = None,
    overlong_buffer: float | None = None,
    overlong_penalty: float | None = None,
) -> Outcome:
    """Penalize a response whose number of tokens approaches the trainer's limit.

    Args:
        response: unused; the text does not show the number of tokens.
        completion_tokens: number of tokens of the response. It is set by rewardstack's integrations of TRL, ms-swift
            and slime, and by its reward manager for verl.
        max_response_length: the trainer's maximum number of tokens of a response.
        overlong_buffer: number of tokens before `max_response_length` at which the punishment begins.
        overlong_penalty: punishment of a response of `max_response_length` tokens; by default 1.

    Raises:
        RequestError: an option is missing or malformed, or the buffer is larger than the limit.
    """
    options = Fields(
        {
            "completion_tokens": completion_tokens,
            "max_response_length": max_response_length,
            "overlong_buffer": overlong_buffer,
            "overlong_penalty": overlong_penalty,
        }
    )
    tokens = _length(options, "completion_tokens", 0, "the trainer has to pass the number of tokens")
    limit = _length(options, "max_response_length", 1, "set it to the trainer's limit")
    buffer = _length(
        options, "overlong_buffer", 1, "set it to the number of tokens before the limit at which the penalty begins"
    )
    penalty = options.number("overlong_penalty", 1.0, 0, 1e6)
    if buffer > limit:
        raise field_error("overlong_buffer", f"{buffer:g} is more than max_response_length ({limit:g})")
    exceeding = tokens - (limit - buffer)
    return Outcome(-exceeding / buffer * penalty if exceeding > 0 else 0.0)


def _length(options: Fields, name: str, minimum: int, remedy: str) -> float:
    value = options.number(name, None, minimum, MAX_TOKENS)
    if value is None:
        raise field_error(name, f"missing; {remedy}")
    return value
