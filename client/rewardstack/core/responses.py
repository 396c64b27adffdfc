"""Extract the response from an OpenRLHF query, a text that contains prompt and response.

OpenRLHF decodes the query with special tokens, so a special token may precede the prompt.
"""

from __future__ import annotations

from typing import Any

BEFORE_PROMPT = 64
"""Maximum length, in characters, of a special token before the prompt."""


def extract_response(query: Any, prompt: Any) -> Any:
    """Return the response in a query: the text after the prompt.

    Args:
        query: prompt and response, as decoded from tokens.
        prompt: the prompt before tokenization.

    Returns:
        The response with its end tokens, which `pipeline.items.read_request` removes later. The whole query if it does
        not start with the prompt (OpenRLHF truncates long prompts), or if query or prompt is not a string.
    """
    if not (isinstance(query, str) and isinstance(prompt, str)):
        return query
    start = query.find(prompt, 0, len(prompt) + BEFORE_PROMPT)
    return query if start < 0 else query[start + len(prompt) :]
