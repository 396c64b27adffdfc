"""Read the text of chat messages from trainers.

A message is a mapping with `role` and `content`. The content is a string, or a list of parts such as
`{"type": "text", "text": …}`, as in OpenAI's chat completions and TRL's conversational data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardstack.core.json_types import is_array, plain

TEXTS = ("text", "output_text")
"""Types of text parts; `output_text` is used by OpenAI's Responses API."""


def is_conversation(value: Any) -> bool:
    """Return whether a value is a message (a mapping with `role`), or a non-empty list or NumPy array of messages."""
    if isinstance(value, (list, tuple)) or is_array(value):
        return len(value) > 0 and all(isinstance(message, Mapping) and "role" in message for message in value)
    return isinstance(value, Mapping) and "role" in value


def response_text(response: Any) -> str | None:
    """Return the text of a response: a string unchanged, or the text of the last assistant message.

    Returns:
        The text. Empty if the last assistant message has no `content`, e.g. because it is a tool call. None if the
        `content` has no text, or if `response` is neither a string nor messages with an assistant message.
    """
    if isinstance(response, str):
        return response
    last = _last(response, "assistant")
    return None if last is None else "" if last.get("content") is None else _text(last["content"])


def last_text(conversation: Any, role: str) -> str | None:
    """Return the text of the last message with a role.

    Args:
        conversation: a message, or a list (or NumPy array) of messages; other values have no messages.
        role: role such as `assistant`.

    Returns:
        The text. None if no message has the role, or if the last message with it has no text, e.g. a tool call.
    """
    last = _last(conversation, role)
    return None if last is None else _text(last.get("content"))


def message_text(message: Mapping[str, Any]) -> str:
    """Return the text of one message; empty if the message has no text, e.g. a tool call."""
    return _text(message.get("content")) or ""


def _last(conversation: Any, role: str) -> dict[str, Any] | None:
    value = plain(conversation)
    messages = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    matches = [message for message in messages if isinstance(message, dict) and message.get("role") == role]
    return matches[-1] if matches else None


def _text(content: Any) -> str | None:
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") in TEXTS]
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    return "".join(texts) if texts else None
