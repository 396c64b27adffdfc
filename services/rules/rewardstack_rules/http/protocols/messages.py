"""Read text from messages in the format of OpenAI's Chat Completions or Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
"""Types of message parts that hold text. Other parts, such as images, are ignored."""


def last_user_text(prompt: Any) -> str | None:
    """Return the text of the last user message.

    Args:
        prompt: a text, which is returned unchanged, or a list of messages with `role` and `content`.

    Returns:
        The text; None if there is no user message.
    """
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, list):
        return None
    messages = (message for message in prompt if isinstance(message, Mapping))
    contents = [message.get("content") for message in messages if message.get("role") == "user"]
    return text_of(contents[-1]) if contents else None


def text_of(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(_texts(content)) if isinstance(content, list) else ""


def _texts(parts: list[Any]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str):
            yield part["text"]
